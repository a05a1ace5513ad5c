// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
)

var someFolders = []string{"a", "b", "a/c", "a/d", "a/d/e", "b/f", "b/g"}

// randomFile is a file of the folder that makes it a unit, or may change which
// ones are units.
func randomFile(t *rapid.T, folder string) (name, content string) {
	switch rapid.IntRange(0, 7).Draw(t, "file") {
	case 0:
		return "x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	case 1:
		return "kustomization.yaml", "kind: Component\nresources: [../b]\n"
	case 2:
		return "kustomization.yaml", "resources: [../a, ../b\n - x\n"
	}
	text := "resources:\n- x.yaml\n"
	for _, to := range rapid.SliceOfN(rapid.SampledFrom(someFolders), 0, 2).Draw(t, "names") {
		up := ".."
		for rest := path.Dir(folder); rest != "."; rest = path.Dir(rest) {
			up += "/.."
		}
		text += fmt.Sprintf("- %s/%s\n", up, to)
	}
	return rapid.SampledFrom([]string{"kustomization.yaml", "Kustomization"}).Draw(t, "spelling"), text
}

// TestPropertyKept: whatever one commit changes in other folders, a unit whose
// own folder stays as it is stays a unit, or is kept.
func TestPropertyKept(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		files := map[string]string{}
		for _, folder := range someFolders {
			for range rapid.IntRange(0, 2).Draw(t, "files") {
				name, content := randomFile(t, folder)
				files[path.Join(folder, name)] = content
			}
		}
		before := Load(Files(repositoryOf(files)), nil)
		after := maps.Clone(files)
		touched := rapid.SliceOfNDistinct(rapid.SampledFrom(someFolders), 1, 3, rapid.ID).Draw(t, "touched")
		for _, folder := range touched {
			for name := range files {
				if path.Dir(name) == folder {
					delete(after, name)
				}
			}
			name, content := randomFile(t, folder)
			after[path.Join(folder, name)] = content
		}
		now := Load(Files(repositoryOf(after)), before)
		units := map[UnitPath]bool{}
		for u := range now.Units() {
			units[u.Path] = true
		}
		for u := range before.Units() {
			own := slices.Contains(touched, strings.TrimPrefix(string(u.Path), "services/"))
			if !own && !units[u.Path] && now.Kept(u.Path) == "" {
				t.Fatalf("%s went although only %v changed\nbefore: %q\nafter: %q", u.Path, touched, files, after)
			}
		}
	})
}
