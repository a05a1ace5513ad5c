// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// compileText compiles t.proto out of the text and other files.
func compileText(t testing.TB, text string, others map[string]string) (protoreflect.FileDescriptor, Problems) {
	t.Helper()
	file, problems := CompileProto("t.proto", func(name string) ([]byte, error) {
		if name == "t.proto" {
			return []byte(text), nil
		}
		if other, ok := others[name]; ok {
			return []byte(other), nil
		}
		return nil, fs.ErrNotExist
	})
	if len(problems) > 0 {
		return nil, problems
	}
	return file, nil
}

// kindOf is the envelope of the message K and the compiled rules.
func kindOf(t testing.TB, text string, others map[string]string) (protoreflect.MessageDescriptor, *Rules, Problems) {
	t.Helper()
	file, problems := compileText(t, text, others)
	if len(problems) > 0 {
		return nil, nil, problems
	}
	declared := file.Messages().ByName("K")
	envelope, err := Envelope(declared)
	if err != nil {
		t.Fatal(err)
	}
	rules, problems := CompileRules(envelope, declared)
	return envelope, rules, problems
}

// checkSpec decodes and checks a spec of the kind.
func checkSpec(t testing.TB, envelope protoreflect.MessageDescriptor, rules *Rules, spec string) Problems {
	t.Helper()
	docs, problems := ReadDocuments("f.yaml", []byte("apiVersion: v1\nkind: K\nmetadata: {name: x}\n"+spec))
	if len(problems) > 0 {
		return problems
	}
	message, problems := docs[0].Decode(envelope, Decoding{Lift: []string{"override"}, File: func(path string) ([]byte, error) {
		return []byte("hunter2 of " + path), nil
	}})
	if len(problems) > 0 {
		return problems
	}
	return rules.Check(docs[0], message)
}

const ruledHead = `syntax = "proto3";
package test;
import "buf/validate/validate.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/descriptor.proto";
`

const ruled = ruledHead + `import "codes.proto";
message K { Spec spec = 1; }
message Spec {
  option (buf.validate.message).cel = {id: "low_high", message: "low must be below high", expression: "this.low <= this.high"};
  string image = 1 [(buf.validate.field).required = true];
  map<string, int32> replicas = 2 [(buf.validate.field).map = {
    keys: {string: {pattern: "^[a-z]+$"}}, values: {int32: {gte: 1, lte: 9}}}];
  repeated string hosts = 3 [(buf.validate.field).repeated = {unique: true, max_items: 3, items: {string: {hostname: true}}}];
  repeated Item items = 4;
  map<int32, Item> numbered = 5;
  oneof source { option (buf.validate.oneof).required = true; string file = 6; Item item = 7; }
  optional string password = 8 [debug_redact = true, (buf.validate.field).string.min_len = 20,
    (buf.validate.field).cel = {id: "echo", expression: "this.startsWith('x') ? '' : 'got ' + this"}];
  string config = 9 [(buf.validate.field).string.max_len = 5,
    (buf.validate.field).cel = {id: "say", expression: "this == '' ? '' : 'got ' + this"}];
  google.protobuf.Duration wait = 10 [(buf.validate.field).duration = {gte: {seconds: 1}, lt: {seconds: 60}}];
  google.protobuf.Int32Value maybe = 11 [(buf.validate.field).int32.gt = 5];
  int32 low = 12;
  int32 high = 13;
  Color color = 14 [(buf.validate.field).enum = {not_in: [0]}, (buf.validate.field).ignore = IGNORE_IF_ZERO_VALUE];
  bytes data = 15 [(buf.validate.field).bytes.max_len = 2];
  optional string opt = 16 [(buf.validate.field).string.min_len = 2];
  repeated int32 all = 17 [(buf.validate.field).cel = {id: "even", message: "want even numbers", expression: "this.all(x, x % 2 == 0)"}];
  repeated string codes = 18 [(buf.validate.field).repeated.items.string.(is_code) = true];
}
enum Color { NONE = 0; RED = 1; }
message Item {
  string name = 1 [(buf.validate.field).string.min_len = 2];
  Item inner = 2;
  int32 div = 3 [(buf.validate.field).cel = {id: "div", expression: "10 / this > 0"}];
}
`

// predefined has a rule of the kind's own.
func predefined(expression string) map[string]string {
	return map[string]string{"codes.proto": `syntax = "proto2";
package test;
import "buf/validate/validate.proto";
extend buf.validate.StringRules {
  optional bool is_code = 80048954 [(buf.validate.predefined).cel = {id: "string.code", message: "must be a code", expression: "` + expression + `"}];
}
`}
}

func TestRules(t *testing.T) {
	envelope, rules, problems := kindOf(t, ruled, predefined("!rule || this.matches('^[A-Z]{3}$')"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	const good = "  image: x\n  file: a\n"
	for _, c := range []struct{ name, spec, want string }{
		{"good", "spec:\n" + good, ""},
		{"required, at the nearest key", "spec:\n  low: 0\n  file: x\n", `f.yaml:4:1: spec.image: value is required`},
		{"no spec at all", "", "f.yaml:1:1: spec.image: value is required\nf.yaml:1:1: spec.source: exactly one field is required in oneof"},
		{"map", "spec:\n" + good + "  replicas:\n    sas: 0\n    vla: 3\n    \"B b\": 10\n",
			`f.yaml:8:10: spec.replicas.sas: must be greater than or equal to 1 and less than or equal to 9, got the number 0
f.yaml:10:5: spec.replicas["B b"]: does not match regex pattern ` + "`^[a-z]+$`" + `, got the key "B b"
f.yaml:10:12: spec.replicas["B b"]: must be greater than or equal to 1 and less than or equal to 9, got the number 10`},
		{"list", "spec:\n" + good + "  hosts: [a.b, _, a.b, c]\n",
			`f.yaml:7:3: spec.hosts: must contain no more than 3 item(s)
f.yaml:7:3: spec.hosts: repeated value must contain unique items
f.yaml:7:16: spec.hosts[1]: must be a valid hostname, got the string "_"`},
		{"nested", "spec:\n  image: x\n  items:\n  - {name: ab, div: 1}\n  - name: a\n    div: 1\n    inner:\n      div: 1\n      name: b\n  item: {name: c, div: 1}\n",
			`f.yaml:8:11: spec.items[1].name: must be at least 2 characters, got the string "a"
f.yaml:12:13: spec.items[1].inner.name: must be at least 2 characters, got the string "b"
f.yaml:13:16: spec.item.name: must be at least 2 characters, got the string "c"`},
		{"missing", "spec:\n  image: x\n  item: {div: 1}\n", "f.yaml:6:3: spec.item.name: must be at least 2 characters: " +
			"the field is missing; write it, or let the .proto say `optional`, which lets it be left out"},
		{"numbered", "spec:\n" + good + "  numbered:\n    '0x1': {name: a, div: 1}\n",
			`f.yaml:8:19: spec.numbered.1.name: must be at least 2 characters, got the string "a"`},
		{"oneof", "spec:\n  image: x\n", `f.yaml:4:1: spec.source: exactly one field is required in oneof`},
		{"secret", "spec:\n" + good + "  password: hunter2\n",
			"f.yaml:7:13: spec.password: must be at least 20 characters\nf.yaml:7:13: spec.password: rule \"echo\" is broken"},
		{"file", "spec:\n" + good + "  config: {fromFile: a.txt}\n",
			"f.yaml:7:3: spec.config: must be at most 5 characters\nf.yaml:7:3: spec.config: rule \"say\" is broken"},
		{"text of an expression", "spec:\n" + good + "  config: a\n", "f.yaml:7:11: spec.config: got a"},
		{"duration", "spec:\n" + good + "  wait: 2m\n", `f.yaml:7:9: spec.wait: must be greater than or equal to 1s and less than 60s, got the string "2m"`},
		{"wrapper", "spec:\n" + good + "  maybe: 5\n", "f.yaml:7:10: spec.maybe: must be greater than 5, got the number 5"},
		{"of the message, beside a secret", "spec:\n" + good + "  low: 3\n  high: 2\n", "f.yaml:4:1: spec: low must be below high"},
		{"ignored", "spec:\n" + good + "  color: NONE\n", ""},
		{"bytes", "spec:\n" + good + "  data: YWJj\n", `f.yaml:7:9: spec.data: must be at most 2 bytes, got the string "YWJj"`},
		{"optional", "spec:\n" + good + "  opt: ''\n", `f.yaml:7:8: spec.opt: must be at least 2 characters, got the string ""`},
		{"loop", "spec:\n" + good + "  all: [2, 3]\n", "f.yaml:7:3: spec.all: want even numbers"},
		{"predefined", "spec:\n" + good + "  codes: [ABC, x]\n", "f.yaml:7:16: spec.codes[1]: must be a code"},
		{"fails, others are still told", "spec:\n  image: x\n  items:\n  - {name: ab}\n  - {name: b, div: 3}\n  all: [1]\n  item: {name: ab, div: 1}\n",
			"f.yaml:7:5: spec.items[0].div: a rule of test.Item.div cannot be evaluated for this value\n" +
				"f.yaml:8:12: spec.items[1].name: must be at least 2 characters, got the string \"b\"\n" +
				"f.yaml:9:3: spec.all: want even numbers"},
	} {
		got := checkSpec(t, envelope, rules, c.spec)
		if diff := cmp.Diff(c.want, got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		for _, p := range got {
			if p.Code != CodeRule {
				t.Errorf("%s: code %s, want %s", c.name, p.Code, CodeRule)
			}
			if strings.Contains(p.Message, "hunter2") {
				t.Errorf("%s: a secret in %s", c.name, p)
			}
		}
	}
}

// TestRulesOfKind: rules that cannot work are problems of the kind.
func TestRulesOfKind(t *testing.T) {
	for _, c := range []struct{ field, want string }{
		{`string a = 1 [(buf.validate.field).int32.gt = 1];`, `t.proto:10:3: a: rules: expected rule "buf.validate.FieldRules.string", got "buf.validate.FieldRules.int32"`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "this >"}];`, `t.proto:10:3: a: rule "x": Syntax error: mismatched input '<EOF>'`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "this > 1"}];`, `t.proto:10:3: a: rule "x": found no matching overload for '_>_'`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "size(this)"}];`, `t.proto:10:3: a: rule "x": want an expression that gives a bool or a string, got int`},
		{`string a = 1 [(buf.validate.field).cel_expression = "this.b"];`, `t.proto:10:3: a: rule "this.b": type 'string' does not support field selection`},
		{`string a = 1 [(buf.validate.field).string.pattern = "("];`, "t.proto:10:3: a: rules:"},
		{`repeated string a = 1 [(buf.validate.field).repeated.items.cel = {id: "x", expression: "this + 1"}];`, `t.proto:10:3: a: rule "x": found no matching overload`},
		{`map<string, int32> a = 1 [(buf.validate.field).map.values.string.min_len = 1];`, `t.proto:10:3: a: rules: failed to compile value rules for map test.Spec.a`},
		{`option (buf.validate.message).cel = {id: "x", expression: "this.nothing"};`, `t.proto:9:1: Spec: rule "x": undefined field 'nothing'`},
		{`option (buf.validate.message).oneof = {fields: ["nothing"]};`, `t.proto:9:1: Spec: rules: field nothing not found in message test.Spec`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "this < string(now)"}];`, `t.proto:10:3: a: rule "x": now: a rule may not read the clock`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "timestamp(this).getHours('Local') > 3"}];`, `t.proto:10:3: a: rule "x": getHours: want the zone "UTC" or an offset like "+02:00", written out: other zones differ from machine to machine`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "timestamp(this).getDate(this) > 3"}];`, `t.proto:10:3: a: rule "x": getDate: want the zone "UTC" or an offset like "+02:00", written out: other zones differ from machine to machine`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "timestamp('2020-01-01T00:00:00Z').getFullYear('Europe/Berlin') > 3"}];`, `t.proto:10:3: a: rule "x": getFullYear: want the zone "UTC" or an offset like "+02:00", written out: other zones differ from machine to machine`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "string(timestamp(this) + duration('4800h')).endsWith('Z')"}];`, `t.proto:10:3: a: rule "x": string: a rule that reads a time from a string may not make a string of one`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "'%s'.format([timestamp('2020-01-01T00:00:00+01:00')]).endsWith('Z')"}];`, `t.proto:10:3: a: rule "x": format: a rule that reads a time from a string may not make a string of one`},
		{`google.protobuf.Timestamp a = 1 [(buf.validate.field).timestamp.lt_now = true];`, `t.proto:10:3: a: a rule that reads the clock`},
		{`repeated google.protobuf.Timestamp a = 1 [(buf.validate.field).repeated.items.timestamp.within.seconds = 1];`, `t.proto:10:3: a: a rule that reads the clock`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "this.replace('a', this) == ''"}];`, `t.proto:10:3: a: rule "x": replace: want literal strings`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "'%x'.format(['%x'.format([this])]) == ''"}];`, `t.proto:10:3: a: rule "x": format: a format inside another`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "strings.quote(this) == ''"}];`, `t.proto:10:3: a: rule "x": strings.quote: not in rules`},
		{`repeated string a = 1 [(buf.validate.field).cel = {id: "x", expression: "this.join(this[0]) == ''"}];`, `t.proto:10:3: a: rule "x": join: want a separator`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "` + literalLoops(7) + `"}];`, `t.proto:10:3: a: rule "x": takes too much computing, even for an empty message`},
		{`string a = 1 [(buf.validate.field).cel = {id: "x", expression: "this == '` + strings.Repeat("x", 4096) + `'"}];`, `t.proto:10:3: a: rule "x": want an expression of at most 4096 bytes, got 4106`},
	} {
		text := ruledHead + "message K { Spec spec = 1; }\nmessage Spec {\n  " + c.field + "\n}\n"
		_, rules, problems := kindOf(t, text, nil)
		if rules != nil || !strings.HasPrefix(problems.String(), c.want) {
			t.Errorf("%.200s:\n got %s\nwant %s", c.field, problems, c.want)
		}
	}
}

// TestPredefinedRule: rules that a kind defines are run when they are compiled.
func TestPredefinedRule(t *testing.T) {
	for expression, want := range map[string]string{
		literalLoops(9):            `codes.proto:5:3: is_code: rule "string.code": a predefined rule may not go over lists or maps`,
		"this == string(now)":      `codes.proto:5:3: is_code: rule "string.code": now: a rule may not read the clock`,
		"this >":                   `codes.proto:5:3: is_code: rule "string.code": Syntax error`,
		"this.replace('', 'a')":    `codes.proto:5:3: is_code: rule "string.code": replace: want literal strings`,
		"this.nothing == rule + 1": `t.proto:`,
	} {
		_, rules, problems := kindOf(t, ruled, predefined(expression))
		if rules != nil || !strings.HasPrefix(problems.String(), want) {
			t.Errorf("%s:\n got %s\nwant %s", expression, problems, want)
		}
	}
}

// literalLoops is an expression that goes over ten numbers for each of ten
// numbers and so on.
func literalLoops(deep int) string {
	text := "true"
	for i := range deep {
		text = fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(v%d, %s)", i, text)
	}
	return text
}

// TestSeveralRuleProblems: one problem for each field, none twice.
func TestSeveralRuleProblems(t *testing.T) {
	_, _, problems := kindOf(t, ruledHead+`
message K { Spec spec = 1; Spec status = 2; }
message Spec {
  string a = 1 [(buf.validate.field).int32.gt = 1];
  string b = 2 [(buf.validate.field).bool.const = true];
  Below below = 3;
}
message Below {
  option (buf.validate.message).oneof = {fields: ["x"]};
  string c = 1 [(buf.validate.field).bool.const = true];
}`, nil)
	var lines []string
	for _, p := range problems {
		lines = append(lines, fmt.Sprint(p.Line))
	}
	if got := strings.Join(lines, " "); got != "11 12 15 17" {
		t.Errorf("problems on lines %s, want 11 12 15 17:\n%s", got, problems)
	}
}

// TestRunawayRule: a rule that is quick for short values and not for long ones.
func TestRunawayRule(t *testing.T) {
	envelope, rules, problems := kindOf(t, ruledHead+`
message K { Spec spec = 1; }
message Spec {
  repeated int32 a = 1 [(buf.validate.field).cel = {id: "cube", expression: "this.all(x, this.all(y, this.all(z, x + y + z >= 0)))"}];
  repeated Item items = 2;
  string text = 3;
}
message Item { repeated int32 b = 1 [(buf.validate.field).cel = {id: "square", expression: "this.all(x, this.all(y, x + y >= 0))"}];
  repeated string c = 2 [(buf.validate.field).repeated.items.cel = {id: "long", expression: "[1,2,3,4,5,6,7,8,9].all(x, this.isUri() || this != string(x))"}]; }
`, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	numbers := func(n int) string { return "[" + strings.Repeat("1, ", n) + "1]" }
	for name, c := range map[string]struct{ spec, want string }{
		"short": {"spec:\n  a: " + numbers(10), ""},
		"long":  {"spec:\n  a: " + numbers(1000), `f.yaml:5:3: spec.a: rule "cube" takes too much computing for this value`},
		"many":  {"spec:\n  items:\n" + strings.Repeat("  - b: "+numbers(200)+"\n", 400), `takes too much computing for this value`},
		"texts": {"spec:\n  items: [{c: [x, " + strings.Repeat("x", 4<<20) + "]}]", `f.yaml:5:19: spec.items[0].c[1]: rule "long" takes too much computing`},
	} {
		if got := checkSpec(t, envelope, rules, c.spec).String(); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %.300s, want %s", name, got, c.want)
		}
	}
}

// TestForeignOption: an option that has the number of a rule and is none.
func TestForeignOption(t *testing.T) {
	_, rules, problems := kindOf(t, `syntax = "proto3";
package test;
import "google/protobuf/descriptor.proto";
extend google.protobuf.FieldOptions { string mine = 1159; }
message K { Spec spec = 1; }
message Spec { string a = 1 [(mine) = "x"]; }`, nil)
	if rules != nil || len(problems) > 0 {
		t.Errorf("got rules %v and %s, want neither", rules, problems)
	}
}

// TestRulesOfDeclared: rules on the kind's own message and on its field spec.
func TestRulesOfDeclared(t *testing.T) {
	envelope, rules, problems := kindOf(t, ruledHead+`
message K {
  option (buf.validate.message).cel = {id: "named", message: "want another name", expression: "this.metadata.name != 'x'"};
  Spec spec = 1 [(buf.validate.field).required = true];
}
message Spec { string a = 1; }`, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := "f.yaml:1:1: spec: value is required\nf.yaml:1:1: want another name"
	if got := checkSpec(t, envelope, rules, "").String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	_, _, problems = kindOf(t, ruledHead+`
message K { option (buf.validate.message).cel = {id: "x", expression: "this.none"};
  Spec spec = 1 [(buf.validate.field).int32.gt = 1]; }
message Spec { string a = 1; }`, nil)
	if got := problems.String(); !strings.HasPrefix(got, "t.proto:9:1: K: rule \"x\": undefined field 'none'") {
		t.Errorf("got %s", got)
	}
}

// FuzzDecode reads documents as specs of a kind with rules: whatever the text,
// it ends, each problem is one line, and the same text gives the same problems.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{"", "spec: {image: x, file: a}", "spec:\n  items: [{name: a, inner: {div: 0}}]\n  numbered: {0x1: {}}",
		"spec: {config: {fromFile: a}, password: x, wait: 1h, data: aGk=, all: [1, 2], codes: [ABC], maybe: 1}",
		"spec: {replicas: {a: 1, B: 0}, hosts: [a, a], opt: ''}", "metadata: {labels: &a {x: *a}}"} {
		f.Add([]byte(seed))
	}
	envelope, rules, problems := kindOf(f, ruled, predefined("!rule || this.matches('^[A-Z]{3}$')"))
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first := checkSpec(t, envelope, rules, string(text))
		for _, p := range first {
			if p.Message == "" || !IsPrintable(p.Message) {
				t.Errorf("problem %q: want one line that prints", p.Message)
			}
			if strings.Contains(p.Message, "hunter2") {
				t.Errorf("%s: what a file holds", p)
			}
		}
		if again := checkSpec(t, envelope, rules, string(text)); again.String() != first.String() {
			t.Errorf("first\n%s\nthen\n%s", first, again)
		}
	})
}

// BenchmarkDecode reads specs of a kind without rules, and of the same kind
// with some.
func BenchmarkDecode(b *testing.B) {
	const spec = "apiVersion: v1\nkind: K\nmetadata: {name: x}\nspec:\n  image: x\n  replicas: {sas: 2, vla: 3}\n  hosts: [a.example.com]\n  items: [{name: ab}]\n"
	const fields = `message K { Spec spec = 1; }
message Spec { string image = 1%s; map<string, int32> replicas = 2%s; repeated string hosts = 3%s; repeated Item items = 4; }
message Item { string name = 1; }
`
	for name, text := range map[string]string{
		"plain": "syntax = \"proto3\";\n" + fmt.Sprintf(fields, "", "", ""),
		"rules": ruledHead + fmt.Sprintf(fields, " [(buf.validate.field).required = true]", " [(buf.validate.field).map.values.int32.gte = 1]", " [(buf.validate.field).repeated.items.string.hostname = true]"),
	} {
		b.Run(name, func(b *testing.B) {
			envelope, rules, problems := kindOf(b, text, nil)
			if len(problems) > 0 || (rules == nil) != (name == "plain") {
				b.Fatal(problems, rules)
			}
			docs, problems := ReadDocuments("f.yaml", []byte(spec))
			if len(problems) > 0 {
				b.Fatal(problems)
			}
			b.ReportAllocs()
			for b.Loop() {
				message, _ := docs[0].Decode(envelope, Decoding{})
				if problems := rules.Check(docs[0], message); len(problems) > 0 {
					b.Fatal(problems)
				}
			}
		})
	}
}
