// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
)

// TestBefore: a place of the result that no operation touched held the same
// value at the place that Before names.
func TestBefore(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		next := 0
		leaf := func() any { next++; return fmt.Sprintf("value %d", next) }
		list := func(below func() any) []any {
			items := make([]any, rapid.IntRange(1, 5).Draw(t, "items"))
			for i := range items {
				items[i] = below()
			}
			return items
		}
		object := map[string]any{"kind": "X", "l": list(func() any {
			return map[string]any{"name": leaf(), "in": list(leaf)}
		})}
		var text strings.Builder
		text.WriteString("apiVersion: v1\nkind: K\nmetadata: {name: x}\nspec:\n")
		if rapid.Bool().Draw(t, "remove") {
			text.WriteString("  remove:\n")
			for range rapid.IntRange(1, 3).Draw(t, "removals") {
				path := rapid.SampledFrom([]string{"l[0]", "l[-1]", "l[*].in[0]", "l[0].in[-1]", "l[?name=='value 1']", "l[0:2]", "l[*].in[0:2]"}).Draw(t, "path")
				fmt.Fprintf(&text, "  - %s\n", path)
			}
		}
		text.WriteString("  patch:\n")
		for range rapid.IntRange(1, 3).Draw(t, "patches") {
			at := rapid.SampledFrom([]string{"/l/0", "/l/1", "/l/-", "/l/0/in/0", "/l/0/in/-", "/l/1/in/1"}).Draw(t, "at")
			op := rapid.SampledFrom([]string{"{op: add, path: %s, value: {name: new}}", "{op: remove, path: %s}"}).Draw(t, "op")
			fmt.Fprintf(&text, "  - "+op+"\n", at)
		}
		docs, problems := config.ReadDocuments("f.yaml", []byte(text.String()))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		o, problems := read(docs[0], "spec", config.Lookup(docs[0].Node, "spec"), nil)
		if len(problems) > 0 {
			t.Skip("an operation that is refused")
		}
		result, touched, problems := Trace(object, nil, o)
		if len(problems) > 0 {
			t.Skip("a path that leads nowhere")
		}
		before := Before(object, nil, o)
		var visit func(value any, path []any)
		visit = func(value any, path []any) {
			switch v := value.(type) {
			case map[string]any:
				for key, item := range v {
					visit(item, append(path[:len(path):len(path)], key))
				}
				return
			case []any:
				for i, item := range v {
					visit(item, append(path[:len(path):len(path)], i))
				}
				return
			}
			if _, ok := Origin(touched, path); ok {
				return
			}
			was, ok := before(path)
			if !ok {
				t.Fatalf("%v: %v is said to be put in by\n%s", path, value, text.String())
			}
			var at any = object
			for _, step := range was {
				switch s := step.(type) {
				case string:
					at = at.(map[string]any)[s]
				case int:
					at = at.([]any)[s]
				}
			}
			if at != value {
				t.Fatalf("%v is %v, and was %v at %v before\n%s", path, value, at, was, text.String())
			}
			if fmt.Sprint(was) != fmt.Sprint(path) {
				moved++
			}
		}
		visit(result, nil)
	})
	if moved == 0 {
		t.Error("nothing was moved")
	}
}
