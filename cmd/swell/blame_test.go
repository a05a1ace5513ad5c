// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/object"
)

// TestFieldForms: a path in each of the forms leads to the same place.
func TestFieldForms(t *testing.T) {
	object := map[string]any{
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "side"}, map[string]any{"name": "main", "image": "x"}}},
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d", "0": "zero", "app.example.com/name": "web"}, "finalizers": []any{"example.com/a", "b"}},
		"ports":    []any{map[string]any{"port": 80}, map[string]any{"port": 80, "protocol": "UDP"}},
	}
	for want, forms := range map[string][]string{
		"spec.containers[name=main].image": {
			"spec.containers[name=main].image", "spec.containers[1].image", "spec.containers[-1].image", "spec.containers[?name=='main'].image",
			"spec.containers[?name==`main`].image", `spec.containers[? name == "main" ].image`, "/spec/containers/1/image", `"spec"."containers"[1]["image"]`,
		},
		`metadata.labels["a.b/c"]`: {`metadata.labels["a.b/c"]`, "metadata.labels[a.b/c]", "/metadata/labels/a.b~1c", `metadata.labels."a.b/c"`},
		// As managed fields, and so history and status, have it.
		`spec.containers[name=side]`:              {`.spec.containers[name="side"]`},
		`metadata.labels["app.example.com/name"]`: {".metadata.labels.app.example.com/name", "metadata.labels.app.example.com/name"},
		`metadata.finalizers[1]`:                  {`.metadata.finalizers[="b"]`, "metadata.finalizers[=b]"},
		`metadata.finalizers[0]`:                  {`.metadata.finalizers[="example.com/a"]`},
		`ports[0].port`:                           {`.ports[port=80,protocol="TCP"].port`},
		`ports[1].port`:                           {`.ports[port=80,protocol="UDP"].port`},
		"metadata.labels.0":                       {"/metadata/labels/0", "metadata.labels.0"},
	} {
		for _, form := range forms {
			steps, err := parseField(form)
			if err != nil {
				t.Errorf("%s: %v", form, err)
				continue
			}
			path, err := findField(object, steps)
			if err != nil {
				t.Errorf("%s: %v", form, err)
				continue
			}
			if got := fieldText(object, path); got != want {
				t.Errorf("%s leads to %s, want %s", form, got, want)
			}
		}
	}
	for form, want := range map[string]string{
		"spec.":                                 "nothing after the last dot",
		"spec..x":                               `want a name or [ at ".x"`,
		"spec.containers[":                      "the [ is never closed",
		"spec.containers[*]":                    "[*]: want [0], [name=main]",
		"spec.containers[]":                     "[]: want [0], [name=main]",
		`.ports[port=81,protocol="TCP"]`:        "no such item",
		".metadata.labels.app.example.com/nome": "metadata.labels.app: no such field",
		`.metadata.finalizers[="c"]`:            "no such item",
		"spec.containers[7]":                    "spec.containers[7]: no such item",
		"spec.containers[-3]":                   "spec.containers[-3]: no such item",
		"spec.containers.x":                     "spec.containers",
		"spec[0]":                               "spec[0]: no such item",
		"/spec/containers/x":                    "no such",
		"spec.containers[1].image.y":            "spec.containers[1].image holds no fields",
	} {
		steps, err := parseField(form)
		if err == nil {
			_, err = findField(object, steps)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", form, err, want)
		}
	}
}

// FuzzField: no text makes it panic, and what it finds is there.
func FuzzField(f *testing.F) {
	for _, text := range []string{"spec.containers[name=main].image", "/spec/0", `["a.b"]`, "a[?x=='y']", `"\u0000"`, "[", "a[1].b[-1]"} {
		f.Add(text)
	}
	object := map[string]any{"a": []any{map[string]any{"name": "x", "b": []any{"c"}}}, "spec": map[string]any{"": 1, "a.b": 2}}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := parseField(text)
		if err != nil {
			return
		}
		path, err := findField(object, steps)
		if err != nil {
			return
		}
		again, err := parseField(fieldText(object, path))
		if err != nil {
			if strings.Contains(fieldText(object, path), "spec.") { // an empty name has no form
				return
			}
			t.Fatalf("%q leads to %q, which is no path: %v", text, fieldText(object, path), err)
		}
		if _, err := findField(object, again); err != nil {
			t.Fatalf("%q leads to %q, which is nowhere: %v", text, fieldText(object, path), err)
		}
	})
}

// TestExplained: the comments change nothing of what the YAML says.
func TestExplained(t *testing.T) {
	var c render.Compiler
	s := c.Snapshot("", config.Files(os.DirFS("../../testdata/monorepo")))
	w := blameWriter{ctx: context.Background()}
	objects := 0
	for _, unit := range s.Units.Sorted() {
		for _, on := range unit.Placements {
			blamed, err := s.Blame(unit.Path, on.Target.Name)
			if err != nil {
				t.Fatal(err)
			}
			for i := range blamed {
				objects++
				text, err := w.explain(&blamed[i])
				if err != nil {
					t.Fatal(err)
				}
				if comments := strings.Count(text, "# "); comments < len(blamed[i].Fields) {
					t.Errorf("%s: %d comments for %d fields", blamed[i].Object.ID, comments, len(blamed[i].Fields))
				}
				back, err := yaml.YAMLToJSON([]byte(text))
				if err != nil {
					t.Fatalf("%v in\n%s", err, text)
				}
				if diff := cmp.Diff(decodeObject(blamed[i].Object), decodeObject(&object.Object{JSON: back})); diff != "" {
					t.Errorf("%s (-rendered +explained):\n%s", blamed[i].Object.ID, diff)
				}
			}
		}
	}
	if objects < 50 {
		t.Errorf("%d objects were looked at", objects)
	}
}

// TestExplainedTexts: the same for texts that are hard to write as YAML.
func TestExplainedTexts(t *testing.T) {
	w := blameWriter{ctx: context.Background()}
	texts := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a #:\n"'|>{}\[\]&*!%-]{0,200}`), rapid.StringMatching(`([a-z]{1,12} ){0,40}`),
		rapid.SampledFrom([]string{"", " ", "#", "a: b", "a #b", "- a", "|\n", "\n", "\n\n", "a\n b\n", " a\nb", "no", "1", "~", "a\tb", "\u2028", "a\n\n# c\n"}))
	tried, judged := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tried++
		var fields []blame.Field
		origins := []blame.Origin{{Kind: blame.FromSpec, Position: document.Position{File: "a # b.yaml", Line: 1}, Text: texts.Draw(t, "origin")}}
		data := map[string]any{}
		for _, key := range rapid.SliceOfNDistinct(texts, 1, 4, rapid.ID).Draw(t, "keys") {
			switch rapid.IntRange(0, 3).Draw(t, "form") {
			case 0:
				value := texts.Draw(t, "item")
				data[key] = []any{value, []any{}, map[string]any{"k": []any{value}}}
				fields = append(fields, blame.Field{Path: []any{"data", key, 0}, Value: value, Origins: origins},
					blame.Field{Path: []any{"data", key, 1}, Origins: origins}, blame.Field{Path: []any{"data", key, 2, "k", 0}, Origins: origins})
			default:
				data[key] = texts.Draw(t, "value")
				fields = append(fields, blame.Field{Path: []any{"data", key}, Value: data[key], Origins: origins})
			}
		}
		whole, err := json.Marshal(map[string]any{"data": data})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := yaml.JSONToYAML(whole)
		if err != nil {
			return
		}
		if back, err := yaml.YAMLToJSON(plain); err != nil || cmp.Diff(decodeObject(&object.Object{JSON: whole}), decodeObject(&object.Object{JSON: back})) != "" {
			return // the YAML library does not read what it writes
		}
		judged++
		text, err := w.explain(&render.Blamed{Object: &object.Object{JSON: whole}, Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		back, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if diff := cmp.Diff(decodeObject(&object.Object{JSON: whole}), decodeObject(&object.Object{JSON: back})); diff != "" {
			t.Errorf("(-want +explained):\n%s\n%s", diff, text)
		}
	})
	if judged < tried/2 {
		t.Errorf("%d of %d objects were judged", judged, tried)
	}
}
