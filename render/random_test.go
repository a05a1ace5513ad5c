// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// variants are other texts of the files in richFiles, and files that are not
// there; an empty text takes the file away.
var variants = map[string][]string{
	"swell.yaml":         {strings.Replace(richTexts["swell.yaml"], "data: data", "data: more", 1), strings.Replace(richTexts["swell.yaml"], "[services]", "[services/shop, services/platform]", 1)},
	"more/zones.yaml":    {richTexts["data/zones.yaml"], "a: x\n"},
	"more/quotas.yaml":   {richTexts["data/quotas.yaml"]},
	"fleet/one.yaml":     {strings.Replace(richTexts["fleet/one.yaml"], "ring: canary", "ring: late", 1), strings.Replace(richTexts["fleet/one.yaml"], "net: n2", "net: n9", 1), strings.Replace(richTexts["fleet/one.yaml"], "name: c2", "name: c3", 1), strings.Replace(richTexts["fleet/one.yaml"], `"1.36"`, `"1.35"`, 1)},
	"fleet/two.yaml":     {"", strings.Replace(richTexts["fleet/two.yaml"], "region: b", "region: a", 1), strings.Replace(richTexts["fleet/two.yaml"], "region: b", "region: zz", 1), strings.Replace(richTexts["fleet/two.yaml"], `["*"]`, "[shop]", 1)},
	"fleet/three.yaml":   {strings.NewReplacer("name: two", "name: three", "n3", "n4").Replace(richTexts["fleet/two.yaml"])},
	"fleet/rollout.yaml": {"apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all, match: {labels: {region: a}}}]}\n"},
	"data/quotas.yaml":   {"", "shop: {pods: 6}\npay: {pods: 7}\nunused: 1\n", "shop: {pods: 5}\npay: {pods: 7}\nunused: 2\n", "pay: {pods: 7}\nsshop: {pods: 3}\n", "shop: [\n"},
	"data/zones.yaml":    {"", "a: up\nb: south\n", "a: {x: y}\nb: south\n"},
	"data/new.yaml":      {"x: 1\n"},

	"kinds/app/app.tmpl":        {"", "net = {{.net}}\n", "{{.nett}}\n", "{{"},
	"kinds/app/app.proto":       {"", protoOf("App", "  string image = 1;\n  string config = 2;\n  string size = 3;\n"), "syntax = \"proto3\";\n"},
	"kinds/app/kind.yaml":       {"", strings.Replace(richTexts["kinds/app/kind.yaml"], "id: main", "id: other", 1), "# comment\n" + richTexts["kinds/app/kind.yaml"], strings.Replace(richTexts["kinds/app/kind.yaml"], "ConfigMap", "Secret", 1), strings.Replace(richTexts["kinds/app/kind.yaml"], "namespace: \"${ns}\"", "namespace: one", 1)},
	"kinds/room/kind.yaml":      {"", strings.Replace(richTexts["kinds/room/kind.yaml"], "kind: Namespace", "kind: Node", 1), strings.Replace(richTexts["kinds/room/kind.yaml"], "data.quotas[unit.tenant].pods", "data.quotas.shop.pods", 1)},
	"kinds/stack/kind.yaml":     {strings.Replace(richTexts["kinds/stack/kind.yaml"], "kind: App", "kind: Stack", 1), strings.Replace(richTexts["kinds/stack/kind.yaml"], "image:", "imag:", 1)},
	"kinds/pipe/pipe.proto":     {protoOf("Pipe", "  string source = 1;\n"), protoOf("Pipe", "  int32 source = 1;\n"), protoOf("Tube", "  string source = 1;\n  string body = 2;\n")},
	"kinds/pipe/kind.yaml":      {"", easyKind("Pipe", "  objects:\n  - id: own\n    template:\n"+configMapTemplate+"      metadata: {name: \"pipe-${self.metadata.name}\", namespace: \"${target.name.replace('/', '-')}\"}\n")},
	"kinds/vector/kind.yaml":    {"", strings.Replace(richTexts["kinds/vector/kind.yaml"], "scope: fleet", "scope: tenant", 1), strings.Replace(richTexts["kinds/vector/kind.yaml"], "scope: fleet", "scope: fleet, onInvalid: hold", 1), strings.Replace(richTexts["kinds/vector/kind.yaml"], "kind: Pipe,", "kind: App,", 1), strings.Replace(richTexts["kinds/vector/kind.yaml"], "p.unit.path", "p.unit.labels['team']", 1)},
	"kinds/gather/kind.yaml":    {strings.Replace(richTexts["kinds/gather/kind.yaml"], "hold", "exclude", 1)},
	"kinds/again/kind.yaml":     {richTexts["kinds/box/kind.yaml"]},
	"kinds/again/box.proto":     {richTexts["kinds/box/box.proto"]},
	"kinds/near/near.proto":     {protoOf("Apps", "  int32 size = 1;\n")},
	"kinds/near/kind.yaml":      {easyKind("Apps", "  objects:\n  - id: own\n    template:\n"+configMapTemplate+"      metadata: {name: x, namespace: x}\n")},
	"kinds/box/tests/one.txtar": {"# one\n", "# two\n"},

	"services/swell.yaml":               {"", defaultsOf("placement: {topology: cluster}"), defaultsOf("placement: {topology: cell}\n  labels: {team: some}"), defaultsOf("placement: {topology: cell, match: {labels: {region: nowhere}}}")},
	"services/shop/swell.yaml":          {"", defaultsOf("tenant: pay"), defaultsOf("tenant: shop\n  rollout: other"), defaultsOf("tenant: shop\n  rollout: none"), "# moved\n" + richTexts["services/shop/swell.yaml"], strings.Replace(richTexts["services/shop/swell.yaml"], "object: main", "object: mian", 1), strings.Replace(richTexts["services/shop/swell.yaml"], "kind: App", "kind: Apps", 1), strings.Replace(richTexts["services/shop/swell.yaml"], "data.extra", "dota.extra", 1), strings.Replace(richTexts["services/shop/swell.yaml"], "region: a", "region: b", 1), strings.Replace(richTexts["services/shop/swell.yaml"], "tenant: shop", "tenant: SHOP", 1)},
	"services/shop/cart/swell.yaml":     {defaultsOf("labels: {team: cart}"), defaultsOf("placement: {topology: cluster}"), "x: [\n"},
	"services/shop/cart/conf/cart.toml": {"", "[cart]\nx = 1\n"},
	"services/shop/cart/app.yaml":       {"", easySpec("App", "cart", "{image: \"cart:2\"}"), easySpec("App", "cart", "{imag: \"cart:2\"}"), easySpec("Appp", "cart", "{}"), easySpec("App", "ledger", "{image: \"x\"}") + "---\n" + crdOf("Cork", "corks", "corks.example.org"), configMapOf("cart", "shop-two", "x")},
	"services/shop/cart/pipe.yaml":      {"", easySpec("Pipe", "cart", "{source: basket}"), easySpec("Pipe", "cart", "{sorce: basket}"), easySpec("Pipe", "cart", "{source: {fromFile: pipe.txt}}"), "x: [\n", easySpec("Tube", "cart", "{source: a}")},
	"services/shop/cart/pipe.txt":       {"one", "two"},
	"services/shop/gather/x.yaml":       {easySpec("Pipe", "own", "{source: own}"), easySpec("Gather", "gather", "{}"), easySpec("Vector", "gather", "{}")},
	"services/pay/pipe/pipe.yaml":       {"", easySpec("Pipe", "ledger", "{source: other}"), "# moved\n" + easySpec("Pipe", "ledger", "{source: ledger}"), "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: easy.example.com/v1, kind: Pipe, metadata: {name: a}, spec: {source: a}}\n", "\"apiVersion\": \"easy.example.com/v1\"\n\"k\\x69nd\": Pipe\nmetadata: {name: b}\nspec: {source: b}\n"},
	"services/pay/shared/x.yaml":        {configMapOf("shared", "shared", "2"), configMapOf("web", "boxes", "2"), configMapOf("shared", "shared", "1") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: boxes}\n"},
	"services/pay/twin/x.yaml":          {configMapOf("shared", "shared", "1"), easySpec("App", "ledger", "{image: \"twin\"}")},

	"services/platform/crds/carton.yaml":       {"", strings.Replace(richTexts["services/platform/crds/carton.yaml"], "type: integer", "type: string", 1), strings.Replace(richTexts["services/platform/crds/carton.yaml"], "type: object", "type: objct", 1), "# moved\n" + richTexts["services/platform/crds/carton.yaml"]},
	"services/platform/crds/tube.yaml":         {"", strings.Replace(richTexts["services/platform/crds/tube.yaml"], "Namespaced", "Cluster", 1), richTexts["services/platform/crds/carton.yaml"]},
	"services/platform/boxes/crd.yaml":         {richTexts["services/platform/crds/carton.yaml"], crdOf("Tub", "tubs", "tubes.example.org")},
	"services/platform/tubes/tube.yaml":        {"", "apiVersion: tubes.example.org/v1\nkind: Tub\nmetadata: {name: tube, namespace: boxes}\nspec: {size: 2}\n", "apiVersion: tubes.example.org/v1\nkind: Tube\nmetadata: {name: tube, namespace: boxes}\nspec: {sise: 2}\n"},
	"services/platform/spaces/x.yaml":          {"", "apiVersion: v1\nkind: Namespace\nmetadata: {name: boxes}\n", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop-one-c1}\n"},
	"services/platform/web/kustomization.yaml": {"", "namespace: boxes\nresources: [../../../bases/web]\n", "resources: [../../../bases]\n"},
	"services/platform/web/sub/x.yaml":         {"", configMapOf("sub", "boxes", "2"), easySpec("Pipe", "sub", "{source: sub}"), easySpec("Pipe", "sub", "{source: bus}"), crdOf("Tub", "tubs", "tubes.example.org"), "services: [\n"},
	"bases/web/x.yaml":                         {"", configMapOf("web", "boxes", "2"), easySpec("Pipe", "base", "{source: base}"), easySpec("Pipe", "base", "{source: esab}"), crdOf("Tub", "tubs", "tubes.example.org")},
	"bases/web/Kustomization":                  {"resources: [x.yaml]\n"},
}

// edit changes the files at random and says how.
func edit(t *rapid.T, files fstest.MapFS) {
	original := richFiles()
	names := slices.Sorted(maps.Keys(files))
	switch rapid.IntRange(0, 11).Draw(t, "edit") {
	case 0, 1, 2, 3, 4: // a variant
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(variants))).Draw(t, "file")
		text := rapid.SampledFrom(variants[name]).Draw(t, "text")
		if delete(files, name); text != "" {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
	case 5, 6: // as it was
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(variants))).Draw(t, "file")
			if delete(files, name); original[name] != nil {
				files[name] = original[name]
			}
		}
	case 7: // some other text
		name := rapid.SampledFrom(names).Draw(t, "file")
		data := files[name].Data
		switch rapid.IntRange(0, 4).Draw(t, "how") {
		case 0:
			data = append([]byte("# first line\n"), data...)
		case 1:
			data = append(bytes.Clone(data), "# last line\n"...)
		case 2:
			data = bytes.ReplaceAll(data, []byte("1"), []byte("2"))
		case 3:
			data = bytes.ReplaceAll(data, []byte("spec:"), []byte("spce:"))
		case 4:
			data = data[:len(data)/2]
		}
		files[name] = &fstest.MapFile{Data: data}
	case 8, 9: // a folder moved or copied, mostly a unit's
		folder := filepath.Dir(rapid.SampledFrom(names).Draw(t, "file"))
		to := rapid.SampledFrom([]string{"services/shop/new", "services/pay/new", "services/platform/zz", "services/shop/cart", "kinds/new"}).Draw(t, "to")
		copied := rapid.Bool().Draw(t, "copy")
		for _, name := range names {
			if rest, ok := strings.CutPrefix(name, folder+"/"); ok && !strings.HasPrefix(to+"/", folder+"/") {
				files[to+"/"+rest] = files[name]
				if !copied {
					delete(files, name)
				}
			}
		}
	case 10: // a link instead of a file
		name := rapid.SampledFrom(names).Draw(t, "file")
		files[name] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../x")}
	case 11:
		clear(files)
		maps.Copy(files, original)
	}
}

// TestRandomEdits: after every one of some edits, a compiler that lived through
// all of them gives what a new one gives, what a new one gives on the cache of
// a third, and that third one, whose cache is damaged or lost now and then.
func TestRandomEdits(t *testing.T) {
	rapidtest.Check(t, 4, 4*time.Second, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "swell")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		files := richFiles()
		var long, disk Compiler
		if disk.Cache, err = cache.Open(dir, 1<<30); err != nil {
			t.Fatal(err)
		}
		defer disk.Cache.Close()
		snapshot(&long, files)
		snapshot(&disk, files)
		asked := map[object.ID]bool{}
		for step := range rapid.IntRange(1, 5).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "edits") {
				edit(t, files)
			}
			if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
				damage(t, dir)
			}
			var cold Compiler
			want := all(&cold, snapshot(&cold, files), asked)
			compare := func(what string, c *Compiler) {
				if diff := differ(want, all(c, snapshot(c, files), asked)); diff != "" {
					t.Fatalf("step %d, %s (-cold +%s):\n%s", step, what, what, diff)
				}
			}
			compare("long", &long)
			compare("disk", &disk)
			var restarted Compiler
			if restarted.Cache, err = cache.Open(dir, 1<<30); err != nil {
				t.Fatal(err)
			}
			compare("restarted", &restarted)
			if err := restarted.Cache.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// damage changes a byte in the cache, cuts a segment or removes it.
func damage(t *rapid.T, dir string) {
	names, err := filepath.Glob(dir + "/*.seg")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		return
	}
	name := rapid.SampledFrom(names).Draw(t, "segment")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) == 0 {
		return
	}
	at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
	switch rapid.IntRange(0, 2).Draw(t, "damage") {
	case 0:
		data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		err = os.WriteFile(name, data, 0o600)
	case 1:
		err = os.Truncate(name, int64(at))
	case 2:
		err = os.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
