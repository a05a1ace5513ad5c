// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/testdata/large"
)

func nodesIn(n *yaml.Node) int {
	count := 1
	for _, below := range n.Content {
		count += nodesIn(below)
	}
	return count
}

// TestDefinitionsAreKeptAsText: the nodes of all definitions in a unit stood in memory at the
// same time, which took twenty times their text.
func TestDefinitionsAreKeptAsText(t *testing.T) {
	files := fstest.MapFS{}
	if err := (large.Operators{Definitions: 3, InUnit: true}).Files(func(name, content string) error {
		files[name] = &fstest.MapFile{Data: []byte(content)}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var c Compiler
	s := c.Snapshot("", config.Files(files))
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	w := s.world
	u := unitRenderer{world: w, unit: s.Units.Get("services/operators").source, reads: recorder{world: w}}
	u.read()
	if len(u.sources) != 3 {
		t.Fatalf("%d documents, want 3", len(u.sources))
	}
	for _, src := range u.sources {
		if n := nodesIn(src.doc.Node); n > 20 || src.hard != nil || len(src.doc.Packed) < 10_000 {
			t.Errorf("%s: %d nodes and %d bytes of text are kept, and its value: %t", src.doc.Name, n, len(src.doc.Packed), src.hard != nil)
		}
	}
	if len(w.again.docs) > 0 {
		t.Error("a file was read again, and is kept")
	}
}

// TestPackedDefinition: a definition that is kept as text has its problems at their lines,
// is judged by policies, and is the same object as before.
func TestPackedDefinition(t *testing.T) {
	policy := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: scope}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apiextensions.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [customresourcedefinitions]}
  validations:
  - {expression: "object.spec.scope == 'Namespaced'", message: only namespaced kinds}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: scope}
spec: {policyName: scope, validationActions: [Deny]}
`
	crd := crdOf("Box", "boxes", "packed.example.org")
	for name, test := range map[string]struct{ text, want string }{
		"good":             {crd, ""},
		"misspelt":         {strings.Replace(crd, "    served: true", "    servd: true", 1), `services/platform/packed/x.yaml:10:5: spec.versions[0].servd: unknown field, did you mean "served"?`},
		"of a wrong type":  {strings.Replace(crd, "storage: true", "storage: 3", 1), "services/platform/packed/x.yaml:11:5: spec.versions[0].storage: "},
		"a wrong schema":   {strings.Replace(crd, "type: integer", "type: integr", 1), "services/platform/packed/x.yaml:12:100: spec.versions[0].schema"},
		"by a policy":      {strings.Replace(crd, "Namespaced", "Cluster", 1), `refused by policy "scope" (binding "scope"): only namespaced kinds`},
		"two in one file":  {configMapOf("x", "boxes", "1") + "---\n" + strings.Replace(crd, "    served: true", "    servd: true", 1), "services/platform/packed/x.yaml:15:5: spec.versions[0].servd"},
		"of another group": {strings.Replace(crd, "packed.example.org}", "other.example.org}", 1), `services/platform/packed/x.yaml:3:12: metadata.name: want "boxes.packed.example.org"`},
	} {
		files := with(richFiles(), map[string]string{"policies/scope.yaml": policy, "services/platform/packed/x.yaml": test.text})
		var c Compiler
		s := snapshot(&c, files)
		got := s.Units.Get("services/platform/packed").Problems.String()
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %s\nwant %s", name, got, test.want)
		}
		if again := c.Snapshot("", config.Files(maps.Clone(files))).Problems.String(); again != s.Problems.String() {
			t.Errorf("%s: another time:\n%s\nat first:\n%s", name, again, s.Problems)
		}
		if test.want != "" {
			continue
		}
		target := s.Units.Get("services/platform/packed").Placements[0].Target.Name
		blamed, err := s.Blame("services/platform/packed", target)
		if err != nil || len(blamed) != 1 || len(blamed[0].Fields) == 0 {
			t.Errorf("blame: %v %v", blamed, err)
		}
	}
}

// TestDefinitionsOfTheCache: the definitions in a file are the same whether its YAML is read
// or the cache has them, also when the file moves or gets a problem.
func TestDefinitionsOfTheCache(t *testing.T) {
	files := with(richFiles(), map[string]string{"services/platform/packed/x.yaml": crdOf("Box", "boxes", "packed.example.org"), "schemas/a.yaml": crdOf("Bag", "bags", "packed.example.org")})
	var kept Compiler
	snapshot(&kept, files)
	again := Compiler{Cache: kept.Cache}
	for _, change := range []map[string]string{
		{},
		{"schemas/a.yaml": "# moved\n" + crdOf("Bag", "bags", "packed.example.org")},
		{"schemas/a.yaml": "", "schemas/b.yaml": crdOf("Bag", "bags", "packed.example.org")},
		{"schemas/a.yaml": crdOf("Bag", "bags", "packed.example.org") + "---\n" + configMapOf("x", "x", "1")},
		{"services/platform/packed/x.yaml": strings.Replace(crdOf("Box", "boxes", "packed.example.org"), "integer", "integr", 1)},
	} {
		changed := with(files, change)
		var cold Compiler
		want, got := snapshot(&cold, changed), snapshot(&again, changed)
		if want.DefinitionsHash() != got.DefinitionsHash() || want.Problems.String() != got.Problems.String() {
			t.Errorf("%v: got\n%s\nwant\n%s", change, got.Problems, want.Problems)
		}
	}
}
