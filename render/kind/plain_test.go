// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"math"
	"testing"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
)

// TestPlainRefuses: numbers that JSON cannot hold became invalid JSON, or
// vanished.
func TestPlainRefuses(t *testing.T) {
	for _, v := range []ref.Val{
		types.Double(math.NaN()), types.Double(math.Inf(1)), types.Uint(1 << 63),
		types.NewDynamicList(types.DefaultTypeAdapter, []float64{math.NaN()}),
	} {
		if value, present, err := plain(v); err == nil {
			t.Errorf("%v: got %v, present %t, want an error", v, value, present)
		}
		if h := hash(v); !types.IsError(h) {
			t.Errorf("hash(%v): got %v, want an error", v, h)
		}
	}
}

// TestMapKeys: keys of several types had no order, and of two that read the
// same either one won.
func TestMapKeys(t *testing.T) {
	mixed := map[ref.Val]ref.Val{
		types.Int(10): types.True, types.Int(9): types.True, types.String("1"): types.True,
		types.Uint(8): types.True, types.Bool(true): types.True, types.String("0"): types.True,
	}
	for range 20 {
		var got []any
		for _, key := range sortedKeys(types.NewRefValMap(types.DefaultTypeAdapter, mixed)) {
			got = append(got, key.Value())
		}
		if diff := cmp.Diff([]any{true, int64(9), int64(10), "0", "1", uint64(8)}, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	same := types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{types.Int(1): types.String("a"), types.String("1"): types.String("b")})
	if value, _, err := plain(same); err == nil {
		t.Errorf("got %v, want an error", value)
	}
}

// TestPlainMessage: a whole message reads as its fields do one by one.
func TestPlainMessage(t *testing.T) {
	const proto = `syntax = "proto3";
package t;
import "google/protobuf/duration.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message All {
  string apiVersion = 1;
  string kind = 2;
  google.protobuf.Duration wait = 3;
  google.protobuf.Timestamp at = 4;
  google.protobuf.Struct any = 5;
  google.protobuf.Value value = 6;
  google.protobuf.ListValue list = 7;
  google.protobuf.Int32Value count = 8;
  repeated google.protobuf.Duration waits = 9;
  map<string, google.protobuf.Value> values = 10;
  Color color = 11;
  repeated Color colors = 12;
  map<string, Color> named = 13;
  All inner = 14;
  double number = 15;
  enum Color { NONE = 0; RED = 1; }
}`
	file, problems := document.CompileProto("t.proto", func(name string) ([]byte, error) {
		if name != "t.proto" {
			return nil, document.Refusal("no such file")
		}
		return []byte(proto), nil
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	docs, problems := document.ReadDocuments("f.yaml", []byte(`
apiVersion: v1
kind: All
wait: 90s
at: "2026-01-02T03:04:05Z"
any: {a: [1, "b", null], c: {d: true}}
value: 3
list: [1.5, x]
count: 0
waits: [1s]
values: {a: text, b: 2}
color: RED
colors: [RED, NONE]
named: {a: RED}
inner: {wait: 1s}
number: 12345678
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	message, problems := docs[0].Decode(file.Messages().ByName("All"), document.Decoding{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got, _, err := new(conversion).plainMessage(message)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"apiVersion": "v1", "kind": "All",
		"wait": "1m30s", "at": "2026-01-02T03:04:05Z", "count": int64(0), "waits": []any{"1s"},
		"any":   map[string]any{"a": []any{1.0, "b", nil}, "c": map[string]any{"d": true}},
		"value": 3.0, "list": []any{1.5, "x"}, "values": map[string]any{"a": "text", "b": 2.0},
		"color": "RED", "colors": []any{"RED", "NONE"}, "named": map[string]any{"a": "RED"},
		"inner": map[string]any{"wait": "1s"}, "number": 12345678.0,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestText(t *testing.T) {
	for value, want := range map[float64]string{12345678: "12345678", 1234567.5: "1234567.5", 0: "0", -3: "-3", 1e21: "1e+21", 0.25: "0.25"} {
		if got, err := text(value); got != want || err != nil {
			t.Errorf("%v: got %q, %v, want %q", value, got, err, want)
		}
	}
}

// TestSizeOf: facts count as what they are made of does when it is converted.
func TestSizeOf(t *testing.T) {
	value := map[string]any{"key": []any{"text", int64(1), map[string]any{"a": nil, "bb": true}}, "m": map[string]any{"x": map[string]any{}}}
	var converted, fact conversion
	if _, _, err := converted.plain(types.DefaultTypeAdapter.NativeToValue(value)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := fact.plain(&facts{fact: newFact(nil, value, nil, nil)}); err != nil {
		t.Fatal(err)
	}
	if want := (conversion{nodes: 9, bytes: 12}); converted != want || fact != want {
		t.Errorf("converted %v and as facts %v, want %v", converted, fact, want)
	}
}
