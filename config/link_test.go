// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// linkedFiles is a monorepo whose unit services/a has a link of that text.
func linkedFiles(link string) fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"swell.yaml":          "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n",
		"fleet/fleet.yaml":    "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: one}\nspec: {}\n---\napiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all}]}\n",
		"services/a/x.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\n",
		"services/b/one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: x}\n",
		"shared/two.yaml":     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: x}\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	files["services/a/link.yaml"] = linkTo(link)
	return files
}

func linkTo(text string) *fstest.MapFile {
	return &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(text)}
}

// TestLinks: links to files in the tree are followed, all others are a problem of the unit.
func TestLinks(t *testing.T) {
	for link, want := range map[string]string{
		"../b/one.yaml":                   "",
		"../../shared/two.yaml":           "",
		"x.yaml":                          "",
		"./../../services/a/x.yaml":       "",
		"../b":                            `a symbolic link to "../b": links to files are followed, links to folders are not`,
		".":                               `a symbolic link to ".": links to files are followed, links to folders are not`,
		"../../..":                        `a symbolic link to "../../..": it leads out of the monorepo`,
		"../../../../etc/passwd":          "it leads out of the monorepo",
		"/etc/passwd":                     "an absolute path: want one relative to the link",
		`C:\windows`:                      "want the path of a file",
		"../../.git/config":               "it leads into the store of Git",
		"../../.GIT/config":               "it leads into the store of Git",
		"gone.yaml":                       `a symbolic link to "gone.yaml": there is no such file in the monorepo`,
		"x.yaml/y":                        "there is no such file in the monorepo",
		"link.yaml":                       "it leads in a circle, or over more than 8 links",
		strings.Repeat("../a/", 500):      "want the path of a file",
		"":                                "want the path of a file",
		"../../fleet/over.yaml":           "it leads there over a link that is not followed",
		"../b/folder/one.yaml":            "only plain files and folders are read",
		"../c/chain.yaml":                 "",
		"../../services/a/../b/../a/\x00": "want the path of a file",
	} {
		files := linkedFiles(link)
		files["fleet/over.yaml"] = linkTo("fleet.yaml")
		files["services/b/folder"] = linkTo("../b")
		files["services/c/chain.yaml"], files["services/c/more.yaml"] = linkTo("more.yaml"), linkTo("../b/one.yaml")
		r := Load(Files(files), nil)
		for unit := range r.Units() {
			if unit.Path != "services/a" {
				continue
			}
			got := unit.Problems.String()
			if want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("link to %q: got %q, want %q", link, got, want)
			}
			if want == "" && len(unit.Files) != 2 {
				t.Errorf("link to %q: the unit has the files %q", link, unit.Files)
			}
		}
	}
}

// TestLinkedHash: the address of a folder changes when what a link in it leads to does, and
// so does the unit's; that of a link is the file's.
func TestLinkedHash(t *testing.T) {
	files := linkedFiles("../c/chain.yaml")
	files["services/c/chain.yaml"] = linkTo("../../shared/two.yaml")
	hashes := func() (all map[string]string, unit string) {
		r := Load(Files(maps.Clone(files)), nil)
		all = map[string]string{}
		for _, name := range []string{"services", "services/a", "services/b", "services/a/link.yaml", "shared/two.yaml"} {
			hash, err := r.Tree.Hash(name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = hash
		}
		for u := range r.Units() {
			if u.Path == "services/a" {
				unit = u.Hash
			}
		}
		return all, unit
	}
	before, unitBefore := hashes()
	if before["services/a/link.yaml"] != before["shared/two.yaml"] {
		t.Error("a link has another address than the file that it leads to")
	}
	files["shared/two.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: x}\n")}
	after, unitAfter := hashes()
	for name, changed := range map[string]bool{"services": true, "services/a": true, "services/b": false, "services/a/link.yaml": true} {
		if (before[name] != after[name]) != changed {
			t.Errorf("%s: address changed: %t, want %t", name, !changed, changed)
		}
	}
	if unitBefore == unitAfter {
		t.Error("the unit has the same address")
	}
}

// TestLinksOfRules: where rules stand, and for a swell.yaml, no link is followed.
func TestLinksOfRules(t *testing.T) {
	files := linkedFiles("x.yaml")
	files["fleet/linked.yaml"], files["policies/linked.yaml"], files["services/b/swell.yaml"] = linkTo("../shared/two.yaml"), linkTo("../shared/two.yaml"), linkTo("../../shared/two.yaml")
	r := Load(Files(files), nil)
	if got := r.Problems.String(); !strings.Contains(got, "fleet/linked.yaml: a symbolic link: want a plain file") {
		t.Errorf("got %s", got)
	}
	if _, err := r.Tree.ReadFile("policies/linked.yaml"); err == nil {
		t.Error("a link in the folder of policies was followed")
	}
	for unit := range r.Units() {
		if unit.Path == "services/b" && !strings.Contains(unit.Defaults.Problems.String(), "services/b/swell.yaml: a symbolic link: want a plain file") {
			t.Errorf("got %v", unit.Defaults.Problems)
		}
	}
}

// TestTooManyLinks: a folder with more links than are followed is a problem of its unit alone, and
// units with few links each are none, however many there are together. The address of the
// folder above them changes with the whole tree.
func TestTooManyLinks(t *testing.T) {
	dir := t.TempDir()
	files := linkedFiles("")
	delete(files, "services/a/link.yaml")
	if err := os.CopyFS(dir, files); err != nil {
		t.Fatal(err)
	}
	link := func(n int, folder string) {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := os.Symlink("../b/one.yaml", filepath.Join(dir, folder, fmt.Sprintf("l%d.txt", i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(MaxLinks+1, "services/c")
	link(100, "services/few")
	write("services/few/one.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: few, namespace: x}\n")
	r := Load(Files(os.DirFS(dir)), nil)
	if len(r.Problems) > 0 {
		t.Fatal(r.Problems)
	}
	found := false
	for unit := range r.Units() {
		got, want := unit.Problems.String(), ""
		if unit.Path == "services/c" {
			want, found = "services/c: more than 10000 symbolic links in it", true
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %.300q, want %q", unit.Path, got, want)
		}
	}
	before, err := r.Tree.Hash("services")
	if err != nil || !found {
		t.Fatal(found, err)
	}
	write("shared/two.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: x}\n")
	if after, err := Load(Files(os.DirFS(dir)), nil).Tree.Hash("services"); err != nil || after == before {
		t.Errorf("the address covers less than it may: %v", err)
	}
}
