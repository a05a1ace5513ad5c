// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestKinds: a kind that stands for a custom resource of the tree loads as it
// does for a snapshot, with the same problems.
func TestKinds(t *testing.T) {
	base := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	add := func(name, content string) { base[name] = &fstest.MapFile{Data: []byte(content)} }
	add("kinds/gadgets/gadgets.proto", protoOf("Gadgets", "  int32 size = 1;\n"))
	add("kinds/gadgets/kind.yaml", easyKind("Gadgets", "  objects:\n  - id: own\n    template:\n      apiVersion: example.com/v1\n      kind: Gadget\n      metadata: {name: x, namespace: x}\n      spec: {size: \"${self.spec.size}\"}\n"))
	for name, test := range map[string]struct {
		files   map[string]string
		loads   bool
		problem string
	}{
		"in a unit":              {map[string]string{"services/gadgets/crd.yaml": gadgets, "services/gadgets/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cluster}}\n"}, true, ""},
		"in a folder of schemas": {map[string]string{"schemas/gadgets.yaml": gadgets}, true, ""},
		"nowhere":                {map[string]string{"services/.keep": ""}, false, "example.com/v1 Gadget"},
		"broken":                 {map[string]string{"schemas/gadgets.yaml": strings.Replace(gadgets, "group: example.com", "group: Example", 1)}, false, "schemas/gadgets.yaml:5:3: spec.group"},
		"held":                   {map[string]string{"schemas/gadgets.yaml": gadgets, "fleet/x.yaml": "apiVersion: swell.sh/v1\nkind: Clutter\nmetadata: {name: x}\n"}, false, "fleet/x.yaml"},
		"no settings":            {map[string]string{"swell.yaml": "a: [\n"}, false, "swell.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(base)
			files["services/.keep"] = &fstest.MapFile{}
			for name, content := range test.files {
				files[name] = &fstest.MapFile{Data: []byte(content)}
			}
			loaded := Kinds(config.Files(files))
			if got := loaded.Kinds.ByName("easy.example.com/v1", "Gadgets") != nil; got != test.loads {
				t.Errorf("the kind loads: %v, want %v: %s", got, test.loads, loaded.Problems)
			}
			if got := loaded.Problems.String(); !strings.Contains(got, test.problem) || test.problem == "" && got != "" {
				t.Errorf("problems %q, want %q", got, test.problem)
			}
			if name != "no settings" && loaded.Kinds.ByName("easy.example.com/v1", "Runtime") == nil {
				t.Error("another kind does not load")
			}
			if got := loaded.Hard.Kind("example.com/v1", "Gadget") != nil; got != test.loads {
				t.Errorf("the custom resource is known: %v", got)
			}
			var c Compiler
			if s := c.Snapshot("", config.Files(files)); !s.Held {
				if diff := cmp.Diff(s.Problems.String(), loaded.Problems.String()); diff != "" {
					t.Errorf("problems (-snapshot +kinds):\n%s", diff)
				}
			}
		})
	}
}
