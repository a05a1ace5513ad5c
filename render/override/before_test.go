// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/rapidtest"
)

// TestBefore: a place of the result that no operation touched held the same
// value at the place that Before names.
func TestBefore(t *testing.T) {
	moved := 0
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
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
		text := operations(t, object)
		o, problems := overrideOf(t, text)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		result, touched, problems := Trace(object, nil, o)
		if len(problems) > 0 {
			t.Fatal(problems)
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
				t.Fatalf("%v: %v is said to be put in by\n%s", path, value, text)
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
				t.Fatalf("%v is %v, and was %v at %v before\n%s", path, value, at, was, text)
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

// operations are up to three removals and up to three patches of the object, each
// of a place that is there when it runs.
func operations(t *rapid.T, object map[string]any) string {
	text := "apiVersion: v1\nkind: K\nmetadata: {name: x}\nspec:\n"
	more := func(field string, least int, candidates []string) {
		for i := range rapid.IntRange(least, 3).Draw(t, field) {
			begun := text
			if i == 0 {
				begun += "  " + field + ":\n"
			}
			var fit []string
			for _, line := range candidates {
				if o, problems := overrideOf(t, begun+line); len(problems) == 0 {
					if _, _, problems := Trace(object, nil, o); len(problems) == 0 {
						fit = append(fit, line)
					}
				}
			}
			if len(fit) == 0 {
				return // all is removed
			}
			text = begun + rapid.SampledFrom(fit).Draw(t, "operation")
		}
	}
	var removals, patches []string
	for _, path := range []string{"l[0]", "l[-1]", "l[*].in[0]", "l[0].in[-1]", "l[?name=='value 1']", "l[0:2]", "l[*].in[0:2]"} {
		removals = append(removals, fmt.Sprintf("  - %s\n", path))
	}
	for _, at := range []string{"/l/0", "/l/1", "/l/-", "/l/0/in/0", "/l/0/in/-", "/l/1/in/1"} {
		patches = append(patches, fmt.Sprintf("  - {op: add, path: %s, value: {name: new}}\n", at), fmt.Sprintf("  - {op: remove, path: %s}\n", at))
	}
	more("remove", 0, removals)
	more("patch", 1, patches)
	return text
}

func overrideOf(t *rapid.T, text string) (*Override, document.Problems) {
	docs, problems := document.ReadDocuments("f.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return read(docs[0], "spec", document.Lookup(docs[0].Node, "spec"), nil)
}
