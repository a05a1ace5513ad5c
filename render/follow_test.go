// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// TestFollows: steps after which a compiler with a memory once did, or might
// have done, something else than a new one.
func TestFollows(t *testing.T) {
	tub := "apiVersion: tubes.example.org/v1\nkind: Tub\nmetadata: {name: tube, namespace: boxes}\nspec: {size: 2}\n"
	for name, steps := range map[string][]map[string]string{
		"a definition below a kustomization": {
			{"services/platform/tubes/tube.yaml": tub},
			{"services/platform/web/sub/x.yaml": crdOf("Tub", "tubs", "tubes.example.org")},
			{"services/platform/web/sub/x.yaml": richTexts["services/platform/web/sub/x.yaml"]},
		},
		"a definition in a base": {
			{"services/platform/tubes/tube.yaml": tub},
			{"bases/web/x.yaml": crdOf("Tub", "tubs", "tubes.example.org")},
			{"bases/web/x.yaml": richTexts["bases/web/x.yaml"]},
		},
		"a collected document below a kustomization": {
			{"services/platform/web/sub/x.yaml": easySpec("Pipe", "sub", "{source: sub}")},
			{"services/platform/web/sub/x.yaml": easySpec("Pipe", "sub", "{source: bus}")},
			{"services/platform/web/sub/x.yaml": richTexts["services/platform/web/sub/x.yaml"]},
		},
		"a collected document in a base": {
			{"bases/web/x.yaml": easySpec("Pipe", "base", "{source: base}")},
			{"bases/web/x.yaml": easySpec("Pipe", "base", "{source: esab}")},
			{"bases/web/x.yaml": richTexts["bases/web/x.yaml"]},
		},
		"a better name for a kind that is not there": {
			{"services/shop/cart/app.yaml": easySpec("Appetite", "cart", "{}")},
			{"kinds/near/near.proto": protoOf("Appetit", "  int32 size = 1;\n"), "kinds/near/kind.yaml": easyKind("Appetit", "  objects:\n  - id: own\n    template:\n"+configMapTemplate+"      metadata: {name: x, namespace: x}\n")},
			{"kinds/near/near.proto": "", "kinds/near/kind.yaml": ""},
			{"services/platform/crds/near.yaml": crdOf("Appetit", "appetits", "easy.example.com")},
		},
		"a better name for a kind in Defaults": {
			{"services/shop/swell.yaml": strings.Replace(richTexts["services/shop/swell.yaml"], "kind: App", "kind: Appetite", 1)},
			{"kinds/near/near.proto": protoOf("Appetit", "  int32 size = 1;\n"), "kinds/near/kind.yaml": easyKind("Appetit", "  objects:\n  - id: own\n    template:\n"+configMapTemplate+"      metadata: {name: x, namespace: x}\n")},
			{"services/platform/crds/near.yaml": crdOf("Appetita", "appetitas", "easy.example.com")},
		},
		"kinds elsewhere": {
			{"services/shop/stack/stack.yaml": easySpec("Stack", "stack", "{parts: [A]}")},
			{"swell.yaml": strings.Replace(richTexts["swell.yaml"], "kinds: kinds", "kinds: types", 1), "": "kinds types"},
		},
		"data elsewhere": {
			{"data/quotas.yaml": "shop: [\n"},
			{"swell.yaml": strings.Replace(richTexts["swell.yaml"], "data: data", "data: facts", 1), "": "data facts"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := richFiles()
			var kept Compiler
			snapshot(&kept, files)
			asked := map[object.ID]bool{}
			for i, step := range steps {
				moves := step[""]
				files = with(files, step)
				if from, to, ok := strings.Cut(moves, " "); ok {
					files = moved(files, from, to)
				}
				var cold Compiler
				want := all(&cold, snapshot(&cold, files), asked)
				if diff := differ(want, all(&kept, snapshot(&kept, files), asked)); diff != "" {
					t.Errorf("step %d (-cold +kept):\n%s", i, diff)
				}
			}
		})
	}
}

func moved(files fstest.MapFS, from, to string) fstest.MapFS {
	all := fstest.MapFS{}
	for name, file := range files {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			name = to + "/" + rest
		}
		all[name] = file
	}
	return all
}

// TestReadErrorElsewhere: what could not be read is read again, though nothing
// in the tree differs, and all that depends on it is made again too.
func TestReadErrorElsewhere(t *testing.T) {
	files := richFiles()
	files["services/shop/cart/pipe.yaml"] = &fstest.MapFile{Data: []byte(easySpec("Pipe", "cart", "{source: {fromFile: pipe.txt}}"))}
	files["services/shop/cart/pipe.txt"] = &fstest.MapFile{Data: []byte("cart")}
	var cold Compiler
	asked := map[object.ID]bool{}
	s := snapshot(&cold, files)
	if len(s.Problems) > 0 {
		t.Fatal(s.Problems)
	}
	want := all(&cold, s, asked)
	for name := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readErrorElsewhere(t, files, name, want, maps.Clone(asked))
		})
	}
}

func readErrorElsewhere(t *testing.T, files fstest.MapFS, name, want string, asked map[object.ID]bool) {
	for what, start := range map[string]func(*Compiler){
		"first": func(*Compiler) {},
		"later": func(c *Compiler) { snapshot(c, files) },
		"moved": func(c *Compiler) {
			snapshot(c, with(files, map[string]string{name: "# " + name + "\n"}))
		},
	} {
		var c Compiler
		start(&c)
		tree := config.Files(maps.Clone(files))
		c.Snapshot("", flaky{tree, name})
		s := c.Snapshot("", tree)
		if diff := differ(want, all(&c, s, asked)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// TestCommitBundleFromCache: a bundle that is in the cache comes from there.
func TestCommitBundleFromCache(t *testing.T) {
	var c Compiler
	c.Cache = cache.Memory()
	files := richFiles()
	s := snapshot(&c, files)
	commit, err := NewCommit(config.Files(files), c.Cache, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range s.Units.Sorted() {
		for _, on := range unit.Placements {
			if on.Digest == "" {
				continue
			}
			if b, err := commit.Bundle(unit.Path, on.Target.Name, on.Digest); err != nil || b.Digest != on.Digest {
				t.Errorf("%s on %s: got %v %v", unit.Path, on.Target.Name, b, err)
			}
		}
	}
}
