// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/schema"
)

// TestPaths: the paths are those of Fields, for any two objects.
func TestPaths(t *testing.T) {
	texts := rapid.SampledFrom([]string{"", "a", "b", `"`, `\`, "a.b", "x[0]", ",", "{}", "name", "é\n"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		scalars := []*rapid.Generator[any]{
			rapid.Custom(func(t *rapid.T) any { return texts.Draw(t, "text") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.Int64Range(-3, 3).Draw(t, "number") }),
			rapid.Custom(func(t *rapid.T) any { return rapid.Bool().Draw(t, "bool") }),
			rapid.Just[any](nil), rapid.Just[any](1.5),
		}
		if depth == 0 {
			return rapid.OneOf(scalars...)
		}
		return rapid.OneOf(append(scalars,
			rapid.Custom(func(t *rapid.T) any {
				m := map[string]any{}
				for key, v := range rapid.MapOfN(texts, value(depth-1), 0, 3).Draw(t, "map") {
					m[key] = v
				}
				return m
			}),
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(value(depth-1), 0, 3).Draw(t, "list") }),
			rapid.Custom(func(t *rapid.T) any {
				var list []any
				for range rapid.IntRange(0, 3).Draw(t, "items") {
					list = append(list, map[string]any{"name": texts.Draw(t, "name"), "v": value(depth-1).Draw(t, "v")})
				}
				return list
			}))...)
	}
	object := func(t *rapid.T, what string) *render.Object {
		spec := value(3).Draw(t, what)
		return &render.Object{ID: render.ObjectID{Kind: "ConfigMap"}, JSON: schema.AppendObject(nil, map[string]any{"spec": spec})}
	}
	rapid.Check(t, func(t *rapid.T) {
		old, now := object(t, "old"), object(t, "now")
		var want []string
		for _, f := range Fields(old, now) {
			want = append(want, f.Path)
		}
		if diff := cmp.Diff(want, Paths(old, now)); diff != "" {
			t.Fatalf("%s\n%s\n(-want +got):\n%s", old.JSON, now.JSON, diff)
		}
	})
}
