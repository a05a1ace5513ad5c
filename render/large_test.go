// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// largeFiles are monorepos with very many of one thing, and how one file of it
// changes.
func largeFiles(what string, n int) (files fstest.MapFS, name, text string) {
	files = richFiles()
	add := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	switch what {
	case "collected":
		for i := range n {
			add(fmt.Sprintf("services/shop/pipe%d/x.yaml", i), easySpec("Pipe", fmt.Sprintf("p%d", i), "{source: a}"))
		}
		for i := range n / 50 {
			add(fmt.Sprintf("services/platform/vector%d/x.yaml", i), easySpec("Vector", fmt.Sprintf("v%d", i), "{}"))
		}
		return files, "services/shop/pipe1/x.yaml", easySpec("Pipe", "p1", "{source: b}")
	case "invalid":
		for i := range n {
			add(fmt.Sprintf("services/shop/pipe%d/x.yaml", i), easySpec("Pipe", fmt.Sprintf("p%d", i), "{sorce: a}"))
		}
		for i := range n / 50 {
			add(fmt.Sprintf("services/platform/vector%d/x.yaml", i), easySpec("Vector", fmt.Sprintf("v%d", i), "{}"))
		}
		return files, "services/shop/pipe1/x.yaml", easySpec("Pipe", "p1", "{source: b}")
	case "definitions":
		for i := range n {
			add(fmt.Sprintf("services/platform/crd%d/x.yaml", i), crdOf(fmt.Sprintf("K%dx", i), fmt.Sprintf("k%dxs", i), "many.example.org"))
			add(fmt.Sprintf("services/platform/custom%d/x.yaml", i), fmt.Sprintf("apiVersion: many.example.org/v1\nkind: K%dx\nmetadata: {name: x, namespace: boxes}\nspec: {size: 1}\n", i))
		}
		return files, "services/platform/crd1/x.yaml", strings.Replace(crdOf("K1x", "k1xs", "many.example.org"), "integer", "number", 1)
	case "specs of a kind":
		for i := range n {
			add(fmt.Sprintf("services/pay/t%d/app%d/x.yaml", i/100, i), easySpec("App", fmt.Sprintf("a%d", i), "{image: a}"))
		}
		return files, "kinds/app/kind.yaml", strings.Replace(richTexts["kinds/app/kind.yaml"], "zone:", "place:", 1)
	}
	panic(what)
}

// TestLarge: with many of one thing all is right, at first and after a change.
func TestLarge(t *testing.T) {
	for what, want := range map[string]int{"collected": 1 + 4, "invalid": 1 + 4, "definitions": 2, "specs of a kind": 103} {
		files, name, text := largeFiles(what, 100)
		var c, cold Compiler
		snapshot(&c, files)
		changed := with(files, map[string]string{name: text})
		s := snapshot(&c, changed)
		if s.Rendered != want {
			t.Errorf("%s: %d units rendered, want %d", what, s.Rendered, want)
		}
		asked := map[object.ID]bool{}
		if diff := differ(all(&cold, snapshot(&cold, changed), asked), all(&c, s, asked)); diff != "" {
			t.Errorf("%s (-cold +kept):\n%s", what, diff)
		}
	}
}

// BenchmarkLarge tells what many of one thing cost, at first and when one file
// changes.
func BenchmarkLarge(b *testing.B) {
	for what, n := range map[string]int{"collected": 5000, "invalid": 5000, "definitions": 3000, "specs of a kind": 20_000} {
		b.Run(what, func(b *testing.B) {
			files, name, text := largeFiles(what, n)
			trees := [2]config.Tree{hashed(b, onDisk(b, files)), hashed(b, onDisk(b, with(files, map[string]string{name: text})))}
			var c Compiler
			b.Run("first", func(b *testing.B) {
				for b.Loop() {
					c = Compiler{}
					c.Snapshot("", trees[0])
				}
			})
			b.Run("changed", func(b *testing.B) {
				i := 0
				for b.Loop() {
					i++
					c.Snapshot("", trees[i%2])
				}
			})
		})
	}
}
