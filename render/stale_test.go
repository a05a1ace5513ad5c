// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

func exampleRuntime(t testing.TB) fstest.MapFS {
	return with(exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space"), map[string]string{
		"services/swell.yaml": "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {tenant: shop, placement: {topology: cluster}}\n",
	})
}

// sameAsCold holds what a compiler with a memory makes of files against what a
// new one does.
func sameAsCold(t *testing.T, c *Compiler, files fstest.MapFS) *Snapshot {
	t.Helper()
	s := c.Snapshot("", config.Files(files))
	var cold Compiler
	if diff := cmp.Diff(cold.Snapshot("", config.Files(files)).text(), s.text()); diff != "" {
		t.Errorf("(-cold +incremental):\n%s", diff)
	}
	return s
}

// TestDefinitionInKustomization: a definition that came into a file which only
// a kustomization names was not seen, as the file is no part of the static key.
func TestDefinitionInKustomization(t *testing.T) {
	files := with(exampleRuntime(t), map[string]string{
		"services/kz/kustomization.yaml": "resources: [sub/x.yaml]\n",
		"services/kz/sub/x.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: a}\n",
		"services/user/x.yaml":           "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: x, namespace: a}\nspec: {size: 3}\n",
	})
	var c Compiler
	if s := sameAsCold(t, &c, files); len(s.Problems) != 1 {
		t.Errorf("got %v, want one unknown kind", s.Problems)
	}
	if s := sameAsCold(t, &c, with(files, map[string]string{"services/kz/sub/x.yaml": gadgets})); len(s.Problems) > 0 {
		t.Errorf("got %v", s.Problems)
	}
}

// TestDefinitionLines: a problem of a definition stayed at its old line.
func TestDefinitionLines(t *testing.T) {
	bad := strings.Replace(gadgets, "type: integer", "type: bogus", 1)
	var c Compiler
	sameAsCold(t, &c, with(exampleRuntime(t), map[string]string{"services/gadgets/x.yaml": bad}))
	sameAsCold(t, &c, with(exampleRuntime(t), map[string]string{"services/gadgets/x.yaml": strings.Replace(bad, "spec:\n", "spec:\n  # a comment\n\n", 1)}))
}

// TestDataLines: a problem that names a line of data follows it when it moves.
func TestDataLines(t *testing.T) {
	kind := "apiVersion: swell.sh/v1\nkind: EasyKind\nmetadata: {name: x}\nspec:\n  message: example.x.X\n  objects:\n  - id: space\n    template:\n" +
		"      apiVersion: v1\n      kind: Namespace\n      metadata: {name: a, annotations: {a: \"${data.limits.rooms.small}\"}}\n"
	proto := "syntax = \"proto3\";\npackage example.x;\nimport \"library/go/k8s/protoc_gen_crd/proto/crd.proto\";\nmessage X {\n" +
		"  option (protoc_gen_crd.k8s_crd) = {api_group: \"easy.example.com\", kind: \"X\"};\n  Spec spec = 1;\n}\nmessage Spec { string key = 1; }\n"
	files := with(exampleRuntime(t), map[string]string{
		"data/limits.yaml": "rooms: 4\n", "kinds/x/kind.yaml": kind, "kinds/x/x.proto": proto,
		"services/a/x.yaml": "apiVersion: easy.example.com/v1\nkind: X\nmetadata: {name: a}\nspec: {key: a}\n",
	})
	var c Compiler
	for line, content := range []string{"rooms: 4\n", "# Of each region.\nrooms: 4\n"} {
		s := sameAsCold(t, &c, with(files, map[string]string{"data/limits.yaml": content}))
		if want := fmt.Sprintf("data.limits.rooms is a number (data/limits.yaml:%d:8), want a map with small", line+1); !strings.Contains(s.Problems.String(), want) {
			t.Errorf("got %s, want %s", s.Problems, want)
		}
	}
	files["kinds/x/kind.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(kind, "rooms.small", "rooms", 1))}
	for line, content := range []string{"rooms: 4\n", "# Of each region.\nrooms: 4\n"} {
		s := sameAsCold(t, &c, with(files, map[string]string{"data/limits.yaml": content}))
		if want := fmt.Sprintf("want a string, got the number 4, from data.limits.rooms (data/limits.yaml:%d:8)", line+1); !strings.Contains(s.Problems.String(), want) {
			t.Errorf("got %s, want %s", s.Problems, want)
		}
	}
}

// TestDefinitionRenamed: a custom resource waited for a definition that was gone.
func TestDefinitionRenamed(t *testing.T) {
	files := with(exampleRuntime(t), map[string]string{
		"services/gadgets/x.yaml": gadgets,
		"services/user/x.yaml":    "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: x, namespace: a}\nspec: {size: 3}\n",
	})
	var c Compiler
	sameAsCold(t, &c, files)
	s := sameAsCold(t, &c, with(files, map[string]string{"services/gadgets/x.yaml": strings.ReplaceAll(gadgets, "gadgets", "gizmos")}))
	if diff := cmp.Diff([]object.UnitTarget{{Unit: "services/gadgets", Target: "sas-1"}}, s.Units.Get("services/user").On("sas-1").Needs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPlacementRewritten: of a placement that was written in another way to the
// same effect, the old way was used when the objects had to be rendered again.
func TestPlacementRewritten(t *testing.T) {
	placed := func(match string) string {
		return "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {match: {labels: {" + match + "}}}}\n"
	}
	files := with(exampleRuntime(t), map[string]string{
		"services/a/x.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: a}\n",
		"services/a/swell.yaml": placed("ring: canary"),
	})
	edit := func(file, old, new string) {
		files = with(files, map[string]string{file: strings.Replace(string(files[file].Data), old, new, 1)})
	}
	edit("fleet/sas-1.yaml", "ring: canary", "ring: canary, two: second")
	var c Compiler
	sameAsCold(t, &c, files)
	edit("services/a/swell.yaml", "ring: canary", "two: second")
	sameAsCold(t, &c, files)
	edit("fleet/vla-1.yaml", "name: rz10a,", "name: rz10a, labels: {ring: canary},")
	s := sameAsCold(t, &c, files)
	s.world.cache = cache.Memory() // as after it was deleted
	if b, err := s.Bundle("services/a", "sas-1/rz00a"); err != nil || b == nil {
		t.Errorf("got %v, %v", b, err)
	}
}

// switched is a tree of which one file cannot be read for a while.
type switched struct {
	config.Tree
	file string
	off  *bool
}

func (t switched) ReadFile(name string) ([]byte, error) {
	if *t.off {
		return flaky{t.Tree, t.file}.ReadFile(name)
	}
	return t.Tree.ReadFile(name)
}

// TestCommitReadAgain: an earlier commit of which a file could not be read once
// was not read again.
func TestCommitReadAgain(t *testing.T) {
	const kindFile = "kinds/runtime/kind.yaml"
	files := with(exampleRuntime(t), map[string]string{
		"data/x.yaml":             "a: b\n",
		"schemas/x.yaml":          gadgets,
		"services/gadgets/x.yaml": strings.ReplaceAll(strings.ReplaceAll(gadgets, "gadget", "gizmo"), "Gadget", "Gizmo"),
		"services/a/x.yaml":       "apiVersion: easy.example.com/v1\nkind: Runtime\nmetadata: {name: x}\nspec: {image: x, replicas: {sas: 1}}\n",
		"services/a/swell.yaml":   "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {match: {labels: {ring: canary}}}}\n",
		kindFile:                  strings.Replace(string(exampleRuntime(t)[kindFile].Data), "{'app': name}", "{'app': name, 'x': string(data.x.a)}", 1),
	})
	tree := config.Files(files)
	var c Compiler
	s := c.Snapshot("", tree)
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	on := s.Units.Get("services/a").Placements[0]
	for _, file := range []string{kindFile, "data/x.yaml", "schemas/x.yaml", "services/gadgets/x.yaml", "services/a/x.yaml"} {
		off := true
		commit, err := NewCommit(switched{tree, file, &off}, nil, "", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := commit.Bundle("services/a", on.Target.Name, on.Digest); err == nil {
			t.Errorf("%s cannot be read: got %v", file, b)
		}
		off = false
		if _, err := commit.Bundle("services/a", on.Target.Name, on.Digest); err != nil {
			t.Errorf("%s can be read again: %v", file, err)
		}
	}
}

// TestMonorepoRenamed: all objects carry the name, and what was kept has the old
// one.
func TestMonorepoRenamed(t *testing.T) {
	files := with(exampleRuntime(t), map[string]string{
		"services/x/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: a}\n",
	})
	named := func(name string) fstest.MapFS {
		return with(files, map[string]string{"swell.yaml": "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: " + name + "}\nspec: {}\n"})
	}
	var c Compiler
	for _, name := range []string{"one", "other"} {
		s := sameAsCold(t, &c, named(name))
		if text := s.text(); !strings.Contains(text, `"swell.sh/repository":"`+name+`"`) {
			t.Errorf("got %s", text)
		}
	}
	if s := sameAsCold(t, &c, named("No_Label")); len(s.Problems) != 1 || !s.Held || !strings.Contains(s.Problems[0].String(), `swell.yaml:3:18: metadata.name: want a DNS label`) {
		t.Errorf("got %v", s.Problems)
	}
}
