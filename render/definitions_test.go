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
	"github.com/swell-sh/swell/render/object"
)

const gadgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer, maximum: 9}}}}}}
`

// TestDefinitions: a custom resource is known by its definition, in a unit,
// which is waited for then, or in the folder of schemas.
func TestDefinitions(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	files["services/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cluster}}\n")}
	files["services/user/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: x, namespace: a}\nspec: {size: 3}\n")}
	files["services/other/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: a}\n")}
	var c Compiler
	step := func(name, problem string, needs []object.UnitTarget, rendered int, change func()) {
		t.Helper()
		change()
		s := c.Snapshot("", config.Files(maps.Clone(files)))
		if problem == "" && len(s.Problems) > 0 || problem != "" && !strings.Contains(s.Problems.String(), problem) {
			t.Errorf("%s: got %v, want %q", name, s.Problems, problem)
		}
		if diff := cmp.Diff(needs, s.Units.Get("services/user").On("sas-1").Needs); diff != "" {
			t.Errorf("%s: needs (-want +got):\n%s", name, diff)
		}
		if s.Rendered != rendered {
			t.Errorf("%s: rendered %d units, want %d", name, s.Rendered, rendered)
		}
	}
	crd := func(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }
	step("unknown", "example.com/v1 Gadget: its definition is nowhere", nil, 2, func() {})
	step("in the folder of schemas", "", nil, 1, func() { files["schemas/deep/gadgets.yaml"] = crd(gadgets) })
	step("too strict", "spec.size: want at most 2", nil, 1, func() {
		files["schemas/deep/gadgets.yaml"] = crd(strings.Replace(gadgets, "maximum: 9", "maximum: 2", 1))
	})
	step("broken", "schemas/deep/gadgets.yaml:5:3: spec.group", nil, 0, func() {
		files["schemas/deep/gadgets.yaml"] = crd(strings.Replace(gadgets, "group: example.com", "group: Example", 1))
	})
	step("in a unit", "", []object.UnitTarget{{Unit: "services/gadgets", Target: "sas-1"}}, 1, func() { // the user's result is in the cache
		delete(files, "schemas/deep/gadgets.yaml")
		files["services/gadgets/crd.yaml"] = crd(gadgets)
	})
	step("in both, alike", "", []object.UnitTarget{{Unit: "services/gadgets", Target: "sas-1"}}, 0, func() { files["schemas/gadgets.yaml"] = crd("# the same\n" + gadgets) })
	step("in both, unlike", "", []object.UnitTarget{{Unit: "services/gadgets", Target: "sas-1"}}, 0, func() {
		files["schemas/gadgets.yaml"] = crd(strings.Replace(gadgets, "maximum: 9", "maximum: 2", 1))
	})
	step("something else", "want definitions of custom resources only", []object.UnitTarget{{Unit: "services/gadgets", Target: "sas-1"}}, 0, func() {
		files["schemas/gadgets.yaml"] = crd("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
	})
}
