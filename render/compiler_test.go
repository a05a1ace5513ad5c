// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// text is all of a snapshot, in order.
func (s *Snapshot) text() string {
	var b strings.Builder
	b.WriteString(s.Problems.String() + "\n")
	for _, unit := range s.Units.Sorted() {
		bundles, err := s.Bundles(unit)
		if err != nil {
			fmt.Fprintln(&b, err)
		}
		for _, bundle := range bundles {
			fmt.Fprintf(&b, "%s %s %s needs %v\n", unit.Path, bundle.Target, bundle.Digest, unit.On(bundle.Target).Needs)
			for _, o := range bundle.Objects {
				fmt.Fprintf(&b, "  %s %s\n", o.ID, o.JSON)
			}
		}
	}
	return b.String()
}

// TestGolden holds one target of each kind of unit in the example against the
// checked-in objects.
func TestGolden(t *testing.T) {
	var c Compiler
	s := c.Snapshot("", config.Files(os.DirFS("../testdata/monorepo")))
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	for name, where := range map[string]object.UnitTarget{
		"cart":       {Unit: "services/shop/cart", Target: "sas-1/rz00a"},
		"catalog":    {Unit: "services/shop/catalog", Target: "vla-1/rz10a"},
		"ledger":     {Unit: "services/pay/ledger", Target: "myt-1/rz20a"},
		"space":      {Unit: "services/shop/space", Target: "sas-1/rz01a"},
		"priorities": {Unit: "services/platform/priorities", Target: "vla-1"},
		"smoke":      {Unit: "services/platform/smoke/canary", Target: "sas-1/rz00a"},
		"balancer":   {Unit: "services/shop/balancer", Target: "vla-1/rz11a"},
		"logs":       {Unit: "services/shop/logs", Target: "sas-1/rz01a"},
		"sessions":   {Unit: "services/pay/sessions", Target: "myt-1/rz20a"},
		"booking":    {Unit: "services/travel/booking", Target: "sas-1/rz00a"},
	} {
		t.Run(name, func(t *testing.T) {
			bundle, err := s.Bundle(where.Unit, where.Target)
			if err != nil || bundle == nil {
				t.Fatalf("nothing is rendered for %v: %v", where, err)
			}
			var got bytes.Buffer
			for _, o := range bundle.Objects {
				text, err := yaml.JSONToYAML(o.JSON)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "---\n%s", text)
			}
			file := "testdata/golden/" + name + ".yaml"
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// TestSameBytes renders the example many times: map orders differ each time,
// the bytes must not.
func TestSameBytes(t *testing.T) {
	render := func() string {
		var c Compiler
		return c.Snapshot("", config.Files(os.DirFS("../testdata/monorepo"))).text()
	}
	first := render()
	for i := range 19 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(first, render()); diff != "" {
				t.Fatalf("differs (-first +now):\n%s", diff)
			}
		})
	}
}

// TestIncremental changes the example at random and compares what a compiler
// with a memory makes of it with what a fresh one does.
func TestIncremental(t *testing.T) {
	original := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services")
	names := slices.Sorted(maps.Keys(original))
	rapidtest.Check(t, 4, 4*time.Second, func(t *rapid.T) { incremental(t, original, names) })
}

func incremental(t *rapid.T, original fstest.MapFS, names []string) {
	files := maps.Clone(original)
	var kept Compiler
	kept.Snapshot("", config.Files(maps.Clone(files)))
	for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
		change(t, files, names)
		fresh := Compiler{Before: kept.past().Taken} // both judge the same change
		incremental := kept.Snapshot("", config.Files(maps.Clone(files))).text()
		cold := fresh.Snapshot("", config.Files(maps.Clone(files))).text()
		if diff := cmp.Diff(cold, incremental); diff != "" {
			t.Fatalf("after step %d (-cold +incremental):\n%s", step, diff)
		}
	}
}

// change edits, removes, restores or copies one file.
func change(t *rapid.T, files fstest.MapFS, names []string) {
	name := rapid.SampledFrom(names).Draw(t, "file")
	file := files[name]
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case file == nil:
		files[name] = &fstest.MapFile{Data: []byte("# restored as an empty file\n")}
	case kind == 0:
		delete(files, name)
	case kind == 1: // the same objects in another unit
		files[strings.Replace(name, "services/shop", "services/other", 1)] = file
	case kind == 2:
		files[name] = &fstest.MapFile{Data: bytes.ReplaceAll(file.Data, []byte("1"), []byte("2"))}
	case kind == 3:
		files[name] = &fstest.MapFile{Data: bytes.ReplaceAll(file.Data, []byte("spec:"), []byte("spce:"))}
	default:
		files[name] = &fstest.MapFile{Data: append(bytes.Clone(file.Data), "# changed\n"...)}
	}
}

// TestNothingRenderedTwice: a commit that changes one unit renders one unit.
func TestNothingRenderedTwice(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "data", "kinds", "services")
	var c Compiler
	first := c.Snapshot("a", config.Files(files))
	if first.Rendered != first.Units.Len() {
		t.Errorf("cold: rendered %d of %d units", first.Rendered, first.Units.Len())
	}
	if again := c.Snapshot("b", config.Files(maps.Clone(files))); again.Rendered != 0 {
		t.Errorf("unchanged: rendered %d units", again.Rendered)
	}
	changed := maps.Clone(files)
	changed["services/shop/cart/cart.toml"] = &fstest.MapFile{Data: []byte("[cart]\n")}
	s := c.Snapshot("c", config.Files(changed))
	if s.Rendered != 1 {
		t.Errorf("one file: rendered %d units", s.Rendered)
	}
	for path, unit := range s.Units.All() {
		if same := unit == first.Units.Get(path); same != (path != "services/shop/cart") {
			t.Errorf("%s: same unit as before: %t", path, same)
		}
	}
	delete(changed, "services/shop/swell.yaml")
	if s := c.Snapshot("d", config.Files(maps.Clone(changed))); s.Rendered != 9 {
		t.Errorf("defaults of one team: rendered %d units, want its 9", s.Rendered)
	}
}

// TestNeedsInOrder: of units that bring one namespace, any came first.
func TestNeedsInOrder(t *testing.T) {
	files := exampleFiles(t, "swell.yaml", "fleet", "kinds/runtime", "kinds/space")
	files["services/swell.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {placement: {topology: cluster}}\n")}
	for _, name := range []string{"a", "b", "c", "d"} {
		files["services/"+name+"/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: shared}\n")}
	}
	files["services/user/x.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shared}\n")}
	want := []object.UnitTarget{{Unit: "services/a", Target: "sas-1"}, {Unit: "services/b", Target: "sas-1"}, {Unit: "services/c", Target: "sas-1"}, {Unit: "services/d", Target: "sas-1"}}
	for range 10 {
		var c Compiler
		s := c.Snapshot("", config.Files(files))
		if diff := cmp.Diff(want, s.Units.Get("services/user").On("sas-1").Needs); diff != "" {
			t.Fatalf("needs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, c.Wants("sas-1", object.ID{Kind: "Namespace", Name: "shared"})); diff != "" {
			t.Fatalf("wants (-want +got):\n%s", diff)
		}
	}
}

// TestCommitBundle gets single bundles of an earlier commit back: rendered
// again, and from a cache, which once took swell down in a rollback.
func TestCommitBundle(t *testing.T) {
	for _, kept := range []*cache.Cache{nil, cache.Memory()} {
		testCommitBundle(t, kept)
	}
}

func testCommitBundle(t *testing.T, kept *cache.Cache) {
	tree := config.Files(os.DirFS("../testdata/monorepo"))
	c := Compiler{Cache: kept}
	s := c.Snapshot("", tree)
	commit, err := NewCommit(tree, kept, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for path, unit := range s.Units.All() {
		for _, want := range unit.Placements {
			if want.Digest == "" {
				continue
			}
			got, err := commit.Bundle(path, want.Target.Name, want.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if got.Digest != want.Digest {
				t.Errorf("%s on %s: digest %s, want %s", path, want.Target.Name, got.Digest, want.Digest)
			}
		}
	}
	if _, err := commit.Bundle("services/shop/cart", "sas-1/rz00a", "0000"); err == nil {
		t.Error("a digest that the commit does not give: no error")
	}
}
