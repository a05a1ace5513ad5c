// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/schema"
)

// keyedSchema draws the schema of a mapping with a keyed list somewhere below
// it, and a value of it, whose list has n items. path leads to the list.
func keyedSchema(t *rapid.T, n, depth int) (s map[string]any, value any, path []string) {
	form := rapid.SampledFrom([]string{"fields", "keys", "typeless", "embedded"}).Draw(t, "form")
	if depth == 0 {
		form = "list"
	}
	switch form {
	case "list":
		items := make([]any, n)
		for i := range items {
			items[i] = map[string]any{"name": fmt.Sprint("item", i), "size": int64(i)}
		}
		item := map[string]any{"type": "object", "required": []any{"name"}, "properties": map[string]any{
			"name": map[string]any{"type": "string"}, "size": map[string]any{"type": "integer"}, "more": map[string]any{"type": "integer"}}}
		open(t, item)
		return map[string]any{"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"name"}}, items, nil
	case "keys":
		below, value, path := keyedSchema(t, n, depth-1)
		return map[string]any{"type": "object", "additionalProperties": below}, map[string]any{"any": value}, append([]string{"any"}, path...)
	}
	below, inner, path := keyedSchema(t, n, depth-1)
	s = map[string]any{"properties": map[string]any{"field": below, "other": map[string]any{"type": "string"}}}
	m := map[string]any{"field": inner, "other": "text"}
	switch form {
	case "typeless":
		s["x-kubernetes-preserve-unknown-fields"] = true
	case "embedded":
		s["type"], s["x-kubernetes-embedded-resource"] = "object", true
		m["apiVersion"], m["kind"], m["metadata"] = "v1", "X", map[string]any{"name": "x"}
		open(t, s)
	default:
		s["type"] = "object"
		open(t, s)
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true {
		m["unknown"] = []any{map[string]any{"name": "kept"}}
	}
	return s, m, append([]string{"field"}, path...)
}

// open lets some mappings keep the fields that their schema does not know.
func open(t *rapid.T, s map[string]any) {
	if rapid.Bool().Draw(t, "open") {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
}

// TestPropertyKeyed: an update of one item of a keyed list keeps the others,
// whatever mappings of a custom resource are around it. It replaced the list
// where one of them keeps unknown fields.
func TestPropertyKeyed(t *testing.T) {
	kubernetes, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	rapidtest.Check(t, 100, 300*time.Millisecond, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "items")
		spec, value, path := keyedSchema(t, n, rapid.IntRange(1, 4).Draw(t, "depth"))
		root := map[string]any{"type": "object", "properties": map[string]any{"spec": spec}}
		open(t, root)
		definition := kubernetes.Define("crd", schema.AppendJSON(nil, definitionOf(root)), false)
		set := kubernetes.With([]*schema.Definition{definition})
		if problems := definition.Violations(); len(problems) > 0 {
			t.Fatalf("%v", problems)
		}
		object := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"}, "spec": value}

		changed := rapid.IntRange(0, n-1).Draw(t, "changed")
		var overlay any = []any{map[string]any{"name": fmt.Sprint("item", changed), "more": int64(7)}}
		whole := append([]string{"spec"}, path...)
		cut := rapid.IntRange(1, len(whole)).Draw(t, "cut") // the path of the update, and what stands in its value
		for i := len(whole) - 1; i >= cut; i-- {
			overlay = map[string]any{whole[i]: overlay}
		}
		at := whole[0]
		for _, name := range whole[1:cut] {
			at += "." + name
		}
		got, found := Apply(object, set.Kind("example.com/v1", "Widget").Type(), single(t, verbUpdate, at, overlay))
		if len(found) > 0 {
			t.Fatal(found)
		}
		want := deepCopy(object)
		list := want
		for _, name := range whole {
			list = list.(map[string]any)[name]
		}
		list.([]any)[changed].(map[string]any)["more"] = int64(7)
		if diff := cmp.Diff(want, any(got)); diff != "" {
			text, _ := json.Marshal(spec)
			t.Fatalf("update of %s with %v; schema %s\n(-want +got):\n%s", at, overlay, text, diff)
		}
	})
}

// definitionOf is a CustomResourceDefinition with this schema.
func definitionOf(root map[string]any) map[string]any {
	return map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": root}}}}}
}
