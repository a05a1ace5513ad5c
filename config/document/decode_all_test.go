// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// decodeCase is a document of a message T and what comes of it: JSON, or a
// problem with its line and column.
type decodeCase struct{ yaml, want string }

func testDecode(t *testing.T, proto string, others map[string]string, cases []decodeCase) {
	t.Helper()
	file, problems := compileText(t, proto, others)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	message := file.Messages().ByName("T")
	for _, c := range cases {
		got := ""
		if decoded, problems := decodeText(message, c.yaml); len(problems) > 0 {
			got = problems.Sorted().String()
		} else {
			text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(decoded.Interface())
			if err != nil {
				t.Fatal(err)
			}
			got = strings.ReplaceAll(string(text), " ", "")
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.yaml, got, c.want)
		}
	}
}

func TestDecodeWellKnown(t *testing.T) {
	testDecode(t, `syntax = "proto3";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/empty.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message T {
  google.protobuf.Any any = 1;
  google.protobuf.Duration wait = 2;
  google.protobuf.Empty empty = 3;
  google.protobuf.FieldMask mask = 4;
  google.protobuf.Struct object = 5;
  google.protobuf.Value value = 6;
  google.protobuf.ListValue list = 7;
  google.protobuf.NullValue null = 8;
  google.protobuf.Timestamp at = 9;
  google.protobuf.BoolValue b = 10;
  google.protobuf.BytesValue bytes = 11;
  google.protobuf.DoubleValue d = 12;
  google.protobuf.FloatValue f = 13;
  google.protobuf.Int32Value i32 = 14;
  google.protobuf.Int64Value i64 = 15;
  google.protobuf.StringValue s = 16;
  google.protobuf.UInt32Value u32 = 17;
  google.protobuf.UInt64Value u64 = 18;
  repeated google.protobuf.Value values = 19;
  map<string, google.protobuf.Value> named = 20;
  repeated google.protobuf.Duration waits = 21;
}`, nil, []decodeCase{
		{"any: {'@type': x}", "f.yaml:1:6: any: google.protobuf.Any is not understood: declare the message, a oneof of messages or a google.protobuf.Value in the kind's .proto"},
		{"any: null", "{}"},
		{"wait: 1.5s", `{"wait":"1.500s"}`},
		{"wait: -1h", `{"wait":"-3600s"}`},
		{"wait: 0s", `{"wait":"0s"}`},
		{"wait: 1.0000000001s", `f.yaml:1:7: wait: want a duration of whole nanoseconds, got "1.0000000001s"`},
		{"wait: 0.5ns", `f.yaml:1:7: wait: want a duration of whole nanoseconds, got "0.5ns"`},
		{"wait: -1h1.000000001000s", `{"wait":"-3601.000000001s"}`},
		{"wait: 1d", `f.yaml:1:7: wait: want a duration like 30s or 1h30m, got "1d"`},
		{"wait: 9999999999h", `f.yaml:1:7: wait: want a duration like 30s or 1h30m, got "9999999999h"`},
		{"wait: [1s]", "f.yaml:1:7: wait: want a duration like 30s or 1h30m, got a list"},
		{"waits: [1s, null]", "f.yaml:1:13: waits[1]: want a duration like 30s or 1h30m, got nothing"},
		{"empty: {}", `{"empty":{}}`},
		{"empty: {a: 1}", "f.yaml:1:9: empty.a: unknown field"},
		{"empty: x", `f.yaml:1:8: empty: want a map, got the string "x"`},
		{"mask: a_b,c.d", `{"mask":"aB,c.d"}`},
		{"mask: ''", `{"mask":""}`},
		{"mask: a b", `f.yaml:1:7: mask: want paths of fields like "a,b.c", got "a b"`},
		{"mask: [a]", `f.yaml:1:7: mask: want paths of fields like "a,b.c", got a list`},
		{"mask: 'a,,b'", `f.yaml:1:7: mask: want paths of fields like "a,b.c", got "a,,b"`},
		{"object: {a: {b: [1, null, x]}}", `{"object":{"a":{"b":[1,null,"x"]}}}`},
		{"object: [a]", "f.yaml:1:9: object: want a map, got a list"},
		{"value: null", `{"value":null}`},
		{"value: 1e3", `{"value":1000}`},
		{"value: .nan", "f.yaml:1:8: value: a number that JSON cannot hold: write a string in quotes"},
		{"values: [null, 1]", `{"values":[null,1]}`},
		{"named: {a: null}", `{"named":{"a":null}}`},
		{"list: [1, [x]]", `{"list":[1,["x"]]}`},
		{"list: x", `f.yaml:1:7: list: want a list, got the string "x"`},
		{"null: null", "f.yaml:1:1: a key that is nothing: write it in quotes"},
		{"'null': null", "{}"},
		{"at: 2026-01-02T03:04:05.5+02:00", `{"at":"2026-01-02T01:04:05.500Z"}`},
		{"at: 2026-01-02", `f.yaml:1:5: at: want a time like 2006-01-02T15:04:05Z, got the string "2026-01-02"`},
		{"at: '0000-01-01T00:00:00Z'", `f.yaml:1:5: at: want a time like 2006-01-02T15:04:05Z, got the string "0000-01-01T00:00:00Z"`},
		{"b: false\nbytes: YQ==\nd: 1\nf: 0.5\ni32: -1\ni64: \"-9223372036854775808\"\ns: ''\nu32: 0\nu64: 18446744073709551615",
			`{"b":false,"bytes":"YQ==","d":1,"f":0.5,"i32":-1,"i64":"-9223372036854775808","s":"","u32":0,"u64":"18446744073709551615"}`},
		{"i32: null", "{}"},
		{"i32: x", `f.yaml:1:6: i32: want a 32-bit integer, got the string "x"`},
		{"i32: {value: 1}", "f.yaml:1:6: i32: want a 32-bit integer, got a map"},
		{"s: {fromFile: a.txt}", `{"s":"content"}`},
	})
}

func TestDecodeScalars(t *testing.T) {
	testDecode(t, `syntax = "proto3";
message T {
  int64 i = 1; uint64 u = 2; sint64 s = 3; fixed64 f = 4; sfixed64 sf = 5;
  int32 i32 = 6; uint32 u32 = 7; float real = 8; double big = 9; bytes data = 10; bool flag = 11; string text = 12;
  Color color = 13; repeated Color colors = 14; repeated int32 numbers = 15;
  string secret = 16 [debug_redact = true]; T hidden = 17 [debug_redact = true]; optional int32 maybe = 18;
}
enum Color { NONE = 0; RED = 1; MINUS = -1; }`, nil, []decodeCase{
		{"i: 9223372036854775807", `{"i":"9223372036854775807"}`},
		{"i: 9223372036854775808", "f.yaml:1:4: i: want a 64-bit integer, got the number 9223372036854775808"},
		{"i: '9007199254740993'", `{"i":"9007199254740993"}`},
		{"i: '1e3'", `f.yaml:1:4: i: want a 64-bit integer, got the string "1e3"`},
		{"i: 1e3", "f.yaml:1:4: i: want a 64-bit integer, got the number 1e3"},
		{"i: '017'", `f.yaml:1:4: i: want a 64-bit integer, got the string "017"`},
		{"i: '0x10'", `f.yaml:1:4: i: want a 64-bit integer, got the string "0x10"`},
		{"i: ' 1'", `f.yaml:1:4: i: want a 64-bit integer, got the string " 1"`},
		{"u: 18446744073709551615", `{"u":"18446744073709551615"}`},
		{"u: '18446744073709551615'", `{"u":"18446744073709551615"}`},
		{"u: 18446744073709551616", "f.yaml:1:4: u: want a 64-bit integer from 0, got the number 18446744073709551616"},
		{"u: -1", "f.yaml:1:4: u: want a 64-bit integer from 0, got the number -1"},
		{"s: -5\nf: 7\nsf: -9", `{"s":"-5","f":"7","sf":"-9"}`},
		{"i32: '1'", `f.yaml:1:6: i32: want a 32-bit integer, got the string "1"`},
		{"u32: 4294967296", "f.yaml:1:6: u32: want a 32-bit integer from 0, got the number 4294967296"},
		{"real: 1e39", "f.yaml:1:7: real: want a number, got the number 1e39"},
		{"real: 0x10", `{"real":16}`},
		{"big: 1.5e308", `{"big":1.5e+308}`},
		{"big: 1e309", "f.yaml:1:6: big: want a number, got the string \"1e309\""},
		{"big: '1'", `f.yaml:1:6: big: want a number, got the string "1"`},
		{"data: ''", "{}"},
		{"data: !!binary aGk=", "f.yaml:1:7: a tag (!) is not understood: write the value plainly, in quotes if it is a string that begins with !"},
		{"big: 9007199254740993", "f.yaml:1:6: big: want a number, got the number 9007199254740993, of which 64 bits do not keep all digits: write 9.007199254740992e+15"},
		{"big: 99999999999999999999", "f.yaml:1:6: big: want a number, got the number 99999999999999999999, of which 64 bits do not keep all digits: write 1e+20"},
		{"big: 100000000000000000000", `{"big":100000000000000000000}`},
		{"big: 0.30000000000000004", `{"big":0.30000000000000004}`},
		{"big: 0.12345678901234567890", "f.yaml:1:6: big: want a number, got the number 0.12345678901234567890, of which 64 bits do not keep all digits: write 0.12345678901234568"},
		{"big: 1e-999", "f.yaml:1:6: big: want a number, got the number 1e-999, of which 64 bits do not keep all digits: write 0"},
		{"big: 0e-999999999", "{}"},
		{"real: 16777217", "f.yaml:1:7: real: want a number, got the number 16777217, of which 32 bits do not keep all digits: write 1.6777216e+07"},
		{"real: 0.1", `{"real":0.1}`},
		{"data: aGk", `f.yaml:1:7: data: want bytes in base64, got the string "aGk"`},
		{"flag: True", "f.yaml:1:7: flag: want true or false, got the boolean True"},
		{"text: 0o17", `f.yaml:1:7: a number that is octal to some YAML readers and decimal to others: write it in quotes, or the decimal number`},
		{"text: 1e3", `f.yaml:1:7: text: want a string, got the number 1e3: write "1e3"`},
		{"text: null", "{}"},
		{"color: -1", `{"color":"MINUS"}`},
		{"color: 2", "f.yaml:1:8: color: want one of the enum's names, got the number 2, want one of MINUS, NONE, RED"},
		{"color: red", `f.yaml:1:8: color: want one of the enum's names, got the string "red", did you mean "RED"?`},
		{"color: '1'", `f.yaml:1:8: color: want one of the enum's names, got the string "1", want one of MINUS, NONE, RED`},
		{"colors: [RED, 1, BLUE]", `f.yaml:1:18: colors[2]: want one of the enum's names, got the string "BLUE", want one of MINUS, NONE, RED`},
		{"numbers: [1, null]", "f.yaml:1:14: numbers[1]: want a 32-bit integer, got nothing"},
		{"secret: 12345", "f.yaml:1:9: secret: want a string, got something else"},
		{"secret: [a]", "f.yaml:1:9: secret: want a string, got a list"},
		{"hidden: {i32: hunter2, big: hunter2, color: hunter2}",
			"f.yaml:1:15: hidden.i32: want a 32-bit integer, got something else\nf.yaml:1:29: hidden.big: want a number, got something else\nf.yaml:1:45: hidden.color: want one of the enum's names, got something else"},
		{"hidden: {}\ni32: hunter2", `f.yaml:2:6: i32: want a 32-bit integer, got the string "hunter2"`},
		{"maybe: 0", `{"maybe":0}`},
		{"maybe: null", "{}"},
		{"\"a\\nb\": 1", `f.yaml:1:1: ["a\nb"]: unknown field`},
		{"\"\\u202eabc\": 1", `f.yaml:1:1: ["\u202eabc"]: unknown field`},
	})
}

func TestDecodeMaps(t *testing.T) {
	testDecode(t, `syntax = "proto3";
message T {
  map<int32, string> i32 = 1; map<int64, string> i64 = 2; map<uint32, string> u32 = 3; map<uint64, string> u64 = 4;
  map<sint32, string> s32 = 5; map<sint64, string> s64 = 6; map<fixed32, string> f32 = 7; map<fixed64, string> f64 = 8;
  map<sfixed32, string> sf32 = 9; map<sfixed64, string> sf64 = 10; map<bool, string> flags = 11; map<string, T> nested = 12;
  map<string, bytes> files = 13; map<string, Color> colors = 14;
}
enum Color { NONE = 0; RED = 1; }`, nil, []decodeCase{
		{"i32: {1: a, -2: b}\ni64: {1: a}\nu32: {1: a}\nu64: {18446744073709551615: a}\ns32: {-1: a}\ns64: {-1: a}\nf32: {1: a}\nf64: {1: a}\nsf32: {-1: a}\nsf64: {-1: a}\nflags: {'true': a}",
			`{"i32":{"-2":"b","1":"a"},"i64":{"1":"a"},"u32":{"1":"a"},"u64":{"18446744073709551615":"a"},"s32":{"-1":"a"},"s64":{"-1":"a"},"f32":{"1":"a"},"f64":{"1":"a"},"sf32":{"-1":"a"},"sf64":{"-1":"a"},"flags":{"true":"a"}}`},
		{"i32: {1: a, '0x1': b}", "f.yaml:1:13: i32.0x1: set twice: the same key is written in another way above"},
		{"i32: {1: a, '1': b}", "f.yaml:1:13: 1: set twice, first on line 1"},
		{"i64: {10: a, '1_0': b}", "f.yaml:1:14: i64.1_0: set twice: the same key is written in another way above"},
		{"u32: {-1: a}", "f.yaml:1:7: u32.-1: want a 32-bit integer from 0, got the number -1"},
		{"flags: {maybe: a}", `f.yaml:1:9: flags.maybe: want true or false, got the string "maybe"`},
		{"i32: {}", "{}"},
		{"i32: [a]", "f.yaml:1:6: i32: want a map, got a list"},
		{"i32: {1: null}", "f.yaml:1:10: i32.1: want a string, got nothing: write \"null\""},
		{"nested: {a: {nested: {b.c: {i32: {1: 2}}}}}", `f.yaml:1:38: nested.a.nested["b.c"].i32.1: want a string, got the number 2: write "2"`},
		{"nested: {'': {x: 1}}", `f.yaml:1:15: nested[""].x: unknown field, want one of colors, f32, f64, files, flags, i32, i64, nested, s32, s64, sf32, sf64, u32, u64`},
		{"nested: {a: null}", "f.yaml:1:13: nested.a: want a map, got nothing"},
		{"files: {a: {fromFile: a.txt}}", `{"files":{"a":"Y29udGVudA=="}}`},
		{"colors: {a: 1, b: RED}", `{"colors":{"a":"RED","b":"RED"}}`},
	})
}

// TestDecodeTree: nested, recursive, imported and alternative messages.
func TestDecodeTree(t *testing.T) {
	deep := "inner: " + strings.Repeat("{inner: ", 99) + "{}" + strings.Repeat("}", 99)
	testDecode(t, `syntax = "proto3";
package p;
import "other.proto";
message T { T inner = 1; q.Other other = 2; message In { int32 a = 1; } In in = 3; repeated In ins = 4;
  oneof one { string left = 5; T right = 6; q.Other both = 7; } }`,
		map[string]string{"other.proto": `syntax = "proto3"; package q; message Other { int32 number = 1; E e = 2; enum E { Z = 0; } }`},
		[]decodeCase{
			{"other: {number: 1, e: Z}", `{"other":{"number":1}}`},
			{"other: {m: 1}", `f.yaml:1:9: other.m: unknown field, did you mean "e"?`},
			{"in: {a: 1}\nins: [{}, {a: 2}]", `{"in":{"a":1},"ins":[{},{"a":2}]}`},
			{"ins:\n- {}\n- {a: x}", `f.yaml:3:7: ins[1].a: want a 32-bit integer, got the string "x"`},
			{"ins:\n- null", "f.yaml:2:3: ins[0]: want a map, got nothing"},
			{"left: a\nright: {left: b}", "f.yaml:2:8: right: only one of one may be set, left is set too"},
			{"right: {left: b}", `{"right":{"left":"b"}}`},
			{"right: {}\nboth: null", `{"right":{}}`},
			{"both: {}\nleft: x\nright: {}", "f.yaml:2:7: left: only one of one may be set, both is set too\nf.yaml:3:8: right: only one of one may be set, both is set too"},
			{deep, "f.yaml:1:800: nested more than 100 levels deep"},
		})
}

func TestDecodeProto2(t *testing.T) {
	const proto = `syntax = "proto2";
message T {
  optional In in = 1; repeated In ins = 2; map<string, In> named = 3; optional int32 port = 4 [default = 8080];
  optional group Old = 5 { optional int32 a = 1; }
  repeated group Olds = 6 { optional int32 a = 1; }
  optional Color color = 7; optional Spec spec = 8;
}
message Spec { required string image = 1; }
message In { required int32 a = 1; required In2 b = 2; }
message In2 { required string c = 1; }
enum Color { RED = 1; BLUE = 2; }`
	testDecode(t, proto, nil, []decodeCase{
		{"spec: {image: x}\nin: {a: 0, b: {c: ''}}", `{"in":{"a":0,"b":{"c":""}},"spec":{"image":"x"}}`},
		{"spec: {image: x}\nin:\n  b: {}", "f.yaml:3:3: in.b.c: value is required"},
		{"spec: {image: x}\nin:\n  b: {c: x}", "f.yaml:2:1: in.a: value is required"},
		{"spec: {image: x}\nins:\n- {a: 1, b: {c: x}}\n- a: 1", "f.yaml:4:3: ins[1].b: value is required"},
		{"spec: {image: x}\nnamed:\n  k: {}", "f.yaml:3:3: named.k.a: value is required\nf.yaml:3:3: named.k.b: value is required"},
		{"port: 1", "f.yaml:1:1: spec.image: value is required"},
		{"spec: {}", "f.yaml:1:1: spec.image: value is required"},
		{"spec: {image: x}\nold: {a: 1}\nolds: []", "f.yaml:2:1: old: a group of proto2 is not understood: declare a message in the kind's .proto instead\n" +
			"f.yaml:3:1: olds: a group of proto2 is not understood: declare a message in the kind's .proto instead"},
		{"spec: {image: x}\ncolor: 0", "f.yaml:2:8: color: want one of the enum's names, got the number 0, want one of BLUE, RED"},
		{"spec: {image: x}\ncolor: BLUE", `{"color":"BLUE","spec":{"image":"x"}}`},
	})
	file, problems := compileText(t, proto, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	decoded, problems := decodeText(file.Messages().ByName("T"), "spec: {image: x}")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	fields := decoded.Descriptor().Fields()
	port, color := fields.ByName("port"), fields.ByName("color")
	if decoded.Has(port) || decoded.Get(port).Int() != 8080 || decoded.Get(color).Enum() != protoreflect.EnumNumber(1) {
		t.Errorf("port %v, color %v: want the defaults 8080 and RED, not set", decoded.Get(port), decoded.Get(color))
	}
}

func TestDecodeEditions(t *testing.T) {
	const proto = `edition = "2023";
message T {
  int32 explicit = 1 [default = 7];
  int32 implicit = 2 [features.field_presence = IMPLICIT];
  Need need = 3;
  In framed = 4 [features.message_encoding = DELIMITED];
  repeated In frames = 5 [features.message_encoding = DELIMITED];
  Closed closed = 6;
  Open open = 7;
}
message Need { int32 num = 1 [features.field_presence = LEGACY_REQUIRED]; }
message In { int32 a = 1; }
enum Closed { option features.enum_type = CLOSED; ONE = 1; }
enum Open { ZERO = 0; }`
	testDecode(t, proto, nil, []decodeCase{
		{"explicit: 0\nimplicit: 0", `{"explicit":0}`},
		{"need: {num: 0}", `{"need":{"num":0}}`},
		{"need: {}", "f.yaml:1:1: need.num: value is required"},
		{"framed: {a: 1}\nframes: [{a: 2}]", `{"framed":{"a":1},"frames":[{"a":2}]}`},
		{"framed: {b: 1}", `f.yaml:1:10: framed.b: unknown field, did you mean "a"?`},
		{"closed: ONE\nopen: ZERO", `{"closed":"ONE","open":"ZERO"}`},
		{"closed: 0", "f.yaml:1:9: closed: want one of the enum's names, got the number 0, want one of ONE"},
		{"open: 5", "f.yaml:1:7: open: want one of the enum's names, got the number 5, want one of ZERO"},
	})
	_, problems := compileText(t, `edition = "2024"; message T {}`, nil)
	if !strings.Contains(problems.String(), "2024") {
		t.Errorf("edition 2024: got %s, want it refused", problems)
	}
}
