// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
)

func TestOfMessage(t *testing.T) {
	const proto = `syntax = "proto3";
package t;
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/wrappers.proto";
message Doc { Spec spec = 1; }
message Spec {
  string text = 1; bytes raw = 2; int32 count = 3; int64 big = 4; double ratio = 5; bool on = 6; Color color = 7;
  map<string, int32> byName = 8; repeated Spec children = 9; google.protobuf.Duration wait = 10; google.protobuf.Value any = 11;
  google.protobuf.Int32Value maybe = 12; google.protobuf.Struct free = 13; oneof one { string a = 14; string b = 15; } Spec self = 16;
  enum Color { RED = 0; }
}`
	file, problems := document.CompileProto("t.proto", func(name string) ([]byte, error) {
		if name != "t.proto" {
			return nil, fs.ErrNotExist
		}
		return []byte(proto), nil
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	typ := OfMessage(file.Messages().ByName("Doc"))
	good := map[string]any{
		"text": map[string]any{"fromFile": "a"}, "raw": "eA==", "count": int64(1), "big": "9007199254740993", "ratio": 0.5, "on": true, "color": "RED",
		"byName": map[string]any{"a": int64(1)}, "wait": "1s", "any": []any{1.5}, "maybe": int64(1), "free": map[string]any{"x": nil}, "a": "x",
		"override": map[string]any{"anything": []any{}}, "children": []any{map[string]any{"text": "x", "self": map[string]any{"big": int64(1)}}},
	}
	if violations := Check(typ, map[string]any{"spec": good}); len(violations) > 0 {
		t.Errorf("got %v", violations)
	}
	var got []string
	for _, v := range Check(typ, map[string]any{"spec": map[string]any{
		"text": int64(1), "raw": "?", "count": "1", "ratio": "x", "on": "true", "byName": map[string]any{"a": "b"}, "wait": int64(1), "maybe": "x",
		"nosuch": "x", "children": []any{map[string]any{"override": "x"}}, "self": map[string]any{"text": map[string]any{"fromFil": "x"}},
	}}) {
		got = append(got, PathText(v.Path)+" "+string(v.Code))
	}
	slices.Sort(got)
	want := []string{"spec.byName.a SW1004", "spec.children[0].override SW1003", "spec.count SW1004", "spec.maybe SW1004", "spec.nosuch SW1003", "spec.on SW1004",
		"spec.ratio SW1004", "spec.raw SW1004", "spec.self.text.fromFil SW1003", "spec.text SW1004", "spec.wait SW1004"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
