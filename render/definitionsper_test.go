// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestDefinitionsPerCluster: a change of a definition for one cluster renders no unit of
// another one again, and what is the same is compiled once.
func TestDefinitionsPerCluster(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	place := func(region string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {tenant: shop, placement: {topology: cluster, match: {labels: {region: " + region + "}}}}\n")}
	}
	gadget := &fstest.MapFile{Data: []byte("apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: x, namespace: a}\nspec: {size: 3}\n")}
	crd := func(maximum string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.Replace(gadgets, "maximum: 9", "maximum: "+maximum, 1))}
	}
	for _, region := range []string{"sas", "vla"} {
		files["services/"+region+"/swell.yaml"] = place(region)
		files["services/"+region+"/crd/crd.yaml"], files["services/"+region+"/user/x.yaml"] = crd("9"), gadget
	}
	var c Compiler
	step := func(name string, rendered int, broken ...config.UnitPath) {
		t.Helper()
		s := c.Snapshot("", config.Files(maps.Clone(files)))
		var got []config.UnitPath
		for _, unit := range s.Units.Sorted() {
			if len(unit.Problems) > 0 {
				got = append(got, unit.Path)
			}
		}
		if diff := cmp.Diff(broken, got); diff != "" || s.Rendered != rendered {
			t.Errorf("%s: rendered %d units, want %d; units with problems (-want +got):\n%s\n%s", name, s.Rendered, rendered, diff, s.Problems)
		}
	}
	step("alike", 4)
	kindIn := func(cluster string) string {
		on := c.world.places.named[config.TargetName(cluster)]
		return c.world.hard.ofCluster(on.cluster).Kind("example.com/v1", "Gadget").Hash()
	}
	if kindIn("sas-1") != kindIn("vla-1") {
		t.Error("the same definition is another kind in another cluster")
	}
	files["services/sas/crd/crd.yaml"] = crd("8")
	step("another one in sas", 2)
	if kindIn("sas-1") == kindIn("vla-1") {
		t.Error("another definition is the same kind")
	}
	files["services/sas/crd/crd.yaml"] = crd("2")
	step("too strict in sas", 2, "services/sas/user")
	files["schemas/gadgets.yaml"] = crd("1")
	step("units come before the folder of schemas", 0, "services/sas/user")
	delete(files, "services/vla/crd/crd.yaml")
	step("the folder of schemas where no unit defines it", 1, "services/sas/user", "services/vla/user")
	delete(files, "schemas/gadgets.yaml")
	step("only in the other cluster", 1, "services/sas/user", "services/vla/user")
	if got := c.units.Get("services/vla/user").Problems.String(); !strings.Contains(got, "its definition at services/sas/crd/crd.yaml:1:1 is not placed on this cluster") {
		t.Errorf("got %s", got)
	}
	files["services/vla/swell.yaml"] = &fstest.MapFile{Data: slices.Concat(files["services/vla/swell.yaml"].Data, []byte("typo: 1\n"))}
	files["services/vla/crd/crd.yaml"] = crd("9")
	files["services/user/swell.yaml"], files["services/user/x.yaml"] = place("vla"), gadget
	s := c.Snapshot("", config.Files(maps.Clone(files)))
	if p := s.Units.Get("services/user").Problems; len(p) > 0 {
		t.Errorf("a unit is frozen for a definition whose clusters are not known: %v", p)
	}
}

// TestKindByOneDefinition: a template that one of the definitions takes loads, and its
// objects are checked by that of their own cluster.
func TestKindByOneDefinition(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	for region, field := range map[string]string{"sas": "size", "vla": "mass"} {
		files["services/"+region+"/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {tenant: shop, placement: {topology: cluster, match: {labels: {region: " + region + "}}}}\n")}
		files["services/"+region+"/crd/crd.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(gadgets, "size:", field+":", 1))}
		files["services/"+region+"/user/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: easy.example.com/v1\nkind: Maker\nmetadata: {name: x}\nspec: {mass: 3}\n")}
	}
	files["kinds/maker/maker.proto"] = &fstest.MapFile{Data: []byte(`syntax = "proto3";
package example.maker;
import "github.com/yandex/protoc-gen-crd/library/go/k8s/protoc_gen_crd/proto/crd.proto";
message Maker {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "Maker", singular: "maker", plural: "makers"};
  MakerSpec spec = 1;
}
message MakerSpec { int32 mass = 1; }
`)}
	const maker = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: maker}
spec:
  message: example.maker.Maker
  objects:
  - id: gadget
    template:
      apiVersion: example.com/v1
      kind: Gadget
      metadata: {name: x, namespace: a}
      spec: {mass: "${self.spec.mass}"}
`
	files["kinds/maker/kind.yaml"] = &fstest.MapFile{Data: []byte(maker)}
	var c Compiler
	s := c.Snapshot("", config.Files(maps.Clone(files)))
	if len(s.Kinds().Problems) > 0 || len(s.Units.Get("services/vla/user").Problems) > 0 {
		t.Fatalf("the kind is refused, or its spec: %v", s.Problems)
	}
	if got := s.Units.Get("services/sas/user").Problems.String(); !strings.Contains(got, "spec.mass: unknown field") {
		t.Errorf("in the other cluster: got %q", got)
	}
	files["kinds/maker/kind.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(maker, "{mass: \"", "{heft: \"", 1))}
	s = c.Snapshot("", config.Files(maps.Clone(files)))
	if got := s.Kinds().Problems.String(); strings.Count(got, "spec.heft: unknown field") != 1 {
		t.Errorf("a field that no definition has: got %q", got)
	}
}

// TestAFleetChangeKeepsKinds: another wave, label or variable is no reason to compile all
// kinds again, which takes a tenth of a second each. Another version of Kubernetes is one.
func TestAFleetChangeKeepsKinds(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds", "data", "services/shop")
	replace := func(name, old, new string) {
		text := string(files[name].Data)
		if !strings.Contains(text, old) {
			t.Fatalf("%s: no %q", name, old)
		}
		files[name] = &fstest.MapFile{Data: []byte(strings.Replace(text, old, new, 1))}
	}
	var c Compiler
	snapshot := func() *world {
		c.Snapshot("", config.Files(maps.Clone(files)))
		return c.world
	}
	first := snapshot()
	replace("fleet/rollout.yaml", "soak: 10m", "soak: 20m")
	replace("fleet/myt-1.yaml", "_MYT_NETS_", "_MYT_OTHER_NETS_")
	if w := snapshot(); w.kinds != first.kinds || w.hard != first.hard {
		t.Error("the kinds were compiled again for another soak and another variable")
	}
	replace("fleet/myt-1.yaml", `"1.36"`, `"1.35"`)
	if w := snapshot(); w.hard == first.hard {
		t.Error("a cluster with another version of Kubernetes has the kinds of before")
	}
}
