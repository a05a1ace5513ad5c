// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
)

// TestBaseElsewhere: a unit is rendered again when a base outside its folder
// changes, comes or goes, and only then.
func TestBaseElsewhere(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	maps.Copy(files, fstest.MapFS{
		"services/a/swell.yaml":             {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: a, placement: {topology: cluster}}\n")},
		"services/a/web/kustomization.yaml": {Data: []byte("namespace: a\nresources: [../../../bases/web]\n")},
		"services/a/other/x.yaml":           {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: a}\n")},
		"bases/web/kustomization.yaml":      {Data: []byte("resources: [x.yaml]\n")},
	})
	x := func(value string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {key: " + value + "}\n")}
	}
	var c Compiler
	for _, step := range []struct {
		name     string
		change   func()
		rendered int
		value    string // empty: a problem
	}{
		{"missing", func() {}, 2, ""},
		{"made", func() { files["bases/web/x.yaml"] = x("one") }, 1, "one"},
		{"unchanged", func() {}, 0, "one"},
		{"changed", func() { files["bases/web/x.yaml"] = x("two") }, 1, "two"},
		{"beside", func() { files["bases/other.yaml"] = x("three") }, 0, "two"},
		{"a second kustomization", func() { files["bases/web/Kustomization"] = files["bases/web/kustomization.yaml"] }, 1, ""},
		{"taken away", func() { delete(files, "bases/web/Kustomization") }, 0, "two"},
		{"gone", func() { delete(files, "bases/web/x.yaml") }, 0, ""},
	} {
		step.change()
		s := c.Snapshot("", config.Files(maps.Clone(files)))
		if s.Rendered != step.rendered {
			t.Errorf("%s: %d units rendered, want %d", step.name, s.Rendered, step.rendered)
		}
		unit := s.Units.Get("services/a/web")
		if step.value == "" {
			if len(unit.Problems) != 1 {
				t.Errorf("%s: got %v, want one problem", step.name, unit.Problems)
			}
			continue
		}
		bundle, err := s.Bundle("services/a/web", "sas-1")
		if err != nil || bundle == nil || !strings.Contains(string(bundle.Objects[0].JSON), `"key":"`+step.value+`"`) {
			t.Errorf("%s: got %v %v, want the value %s", step.name, bundle, unit.Problems, step.value)
		}
	}
}

// TestList: a list of objects gives what its items give as documents of their
// own, easy ones expanded, each from its own line.
func TestList(t *testing.T) {
	const single = "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: x}\nspec: {image: \"registry.example.com/x:1\", replicas: {sas: 1}}\n---\n" +
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: a}\n"
	const list = "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n- apiVersion: easy.example.com/v1\n  kind: Runtime\n  metadata: {name: x}\n" +
		"  spec: {image: \"registry.example.com/x:1\", replicas: {sas: 1}}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: one, namespace: a}\n"
	objects := func(content string) (text string, places []string) {
		files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
		files["services/a/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: a}\nspec: {tenant: a, placement: {match: {labels: {ring: canary}}}}\n")}
		files["services/a/x/x.yaml"] = &fstest.MapFile{Data: []byte(content)}
		var c Compiler
		s := c.Snapshot("", config.Files(files))
		bundle, err := s.Bundle("services/a/x", "sas-1/rz00a")
		if len(s.Problems) > 0 || bundle == nil || err != nil {
			t.Fatal(s.Problems, err)
		}
		for _, o := range bundle.Objects {
			places = append(places, o.Spec.String())
		}
		return s.text(), places
	}
	want, _ := objects(single)
	got, places := objects(list)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if all := strings.Join(places, " "); !strings.Contains(all, "x.yaml:5:3") || !strings.Contains(all, "x.yaml:9:3") {
		t.Errorf("the objects come from %s, want lines 5 and 9", all)
	}
}
