// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/schema"
)

// decodedFields is [Fields] of objects that hide nothing, as it is written on a first day: all
// is decoded, then compared.
func decodedFields(old, obj *object.Object) []Field {
	var c decodedComparer
	c.compare("", decode(old.JSON), decode(obj.JSON))
	return c.fields
}

type decodedComparer struct{ fields []Field }

func (c *decodedComparer) compare(path string, from, to any) {
	fromMap, isMap := from.(map[string]any)
	toMap, isMapToo := to.(map[string]any)
	fromList, isList := from.([]any)
	toList, isListToo := to.([]any)
	switch {
	case isMap && isMapToo:
		keys := maps.Clone(fromMap)
		maps.Copy(keys, toMap)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c.compare(below(path, key), fromMap[key], toMap[key])
		}
	case isList && isListToo:
		c.compareLists(path, fromList, toList)
	case !equal(from, to):
		c.fields = append(c.fields, Field{Path: path, From: from, To: to})
	}
}

func (c *decodedComparer) compareLists(path string, from, to []any) {
	fromNames, ok1 := names(from)
	toNames, ok2 := names(to)
	if ok1 && ok2 {
		order := slices.Clone(fromNames)
		for _, name := range toNames {
			if !slices.Contains(order, name) {
				order = append(order, name)
			}
		}
		for _, name := range order {
			c.compare(fmt.Sprintf("%s[name=%s]", path, name), named(from, fromNames, name), named(to, toNames, name))
		}
		return
	}
	for i := range max(len(from), len(to)) {
		c.compare(fmt.Sprintf("%s[%d]", path, i), at(from, i), at(to, i))
	}
}

func names(items []any) ([]string, bool) {
	found := make([]string, len(items))
	for i, item := range items {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if !ok || slices.Contains(found[:i], name) {
			return nil, false
		}
		found[i] = name
	}
	return found, true
}

func named(items []any, names []string, name string) any {
	return at(items, slices.Index(names, name))
}

func at(items []any, i int) any {
	if i < 0 || i >= len(items) {
		return nil
	}
	return items[i]
}

// TestFields: what differs is found in canonical JSON as in decoded values, for any two
// objects; and Paths are its paths.
func TestFields(t *testing.T) {
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
	obj := func(t *rapid.T, what string) *object.Object {
		spec := value(3).Draw(t, what)
		return &object.Object{ID: object.ID{Kind: "ConfigMap"}, JSON: schema.AppendObject(nil, map[string]any{"spec": spec})}
	}
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		old, now := obj(t, "old"), obj(t, "now")
		fields := Fields(old, now)
		if diff := cmp.Diff(decodedFields(old, now), fields); diff != "" {
			t.Fatalf("%s\n%s\n(-want +got):\n%s", old.JSON, now.JSON, diff)
		}
		var want []string
		for _, f := range fields {
			want = append(want, f.Path)
		}
		if diff := cmp.Diff(want, Paths(old, now)); diff != "" {
			t.Fatalf("%s\n%s\n(-want +got):\n%s", old.JSON, now.JSON, diff)
		}
	})
}

// TestListWithOneNameTwice: where names are not of one item each, items are compared by index.
func TestListWithOneNameTwice(t *testing.T) {
	binding := func(second string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: p, namespace: ns}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\n" +
			"subjects: [{kind: User, name: ci, apiGroup: rbac.authorization.k8s.io}, " +
			"{kind: ServiceAccount, name: ci, namespace: " + second + "}]\n"
	}
	report := compare(t, snapshot(t, map[string]string{"p": binding("one")}), snapshot(t, map[string]string{"p": binding("two")}))
	var got strings.Builder
	if err := report.Write(&got); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"- subjects[1].namespace: one", "+ subjects[1].namespace: two"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no %q in\n%s", want, &got)
		}
	}
}
