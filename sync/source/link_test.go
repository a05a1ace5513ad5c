// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// TestLinksInGitAndOnDisk: a commit and a folder on disk say the same of links, also where
// the monorepo is a folder of the repository and a link leads out of that.
func TestLinksInGitAndOnDisk(t *testing.T) {
	c := newClone(t)
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: x}\n"
	c.commit("mono/swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n",
		"mono/fleet/a.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n",
		"mono/services/a/x.yaml", object, "mono/services/b/deep/x.yaml", object, "outside.yaml", object, "mono/shared/x.yaml", object)
	for name, text := range map[string]string{"good.yaml": "../../shared/x.yaml", "chain.yaml": "good.yaml", "out.yaml": "../../../outside.yaml", "gone.yaml": "gone/x.yaml", "folder": "../b",
		"git.yaml": "../../../.git/config", "circle.yaml": "circle.yaml", "absolute.yaml": "/etc/passwd", "file.yaml": "x.yaml/x", "through.yaml": "folder/deep/x.yaml"} {
		if err := os.Symlink(text, filepath.Join(c.dir, "mono/services/a", name)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, c.dir, "add", "--all")
	git(t, c.dir, "commit", "-q", "-m", "links")
	names := []string{"good.yaml", "chain.yaml", "out.yaml", "gone.yaml", "folder", "git.yaml", "circle.yaml", "absolute.yaml", "file.yaml", "through.yaml", "folder/deep/x.yaml"}
	said := func(tree config.Tree) map[string]string {
		r := config.Load(tree, nil)
		all := map[string]string{}
		for _, name := range names {
			content, err := r.Tree.ReadFile("services/a/" + name)
			all["read "+name] = string(content)
			if err != nil {
				all["read "+name] = "an error"
			}
			hash, err := r.Tree.Hash("services/a/" + name)
			all["hash "+name] = hash
			if err != nil {
				all["hash "+name] = "an error"
			}
		}
		for unit := range r.Units() {
			all["unit "+string(unit.Path)] = unit.Hash
			all["problems "+string(unit.Path)] = unit.Problems.Sorted().String()
		}
		return all
	}
	inGit := said(config.Sub(treeOf(t, local(t, c), c.head()), "mono"))
	onDisk := said(config.Files(os.DirFS(filepath.Join(c.dir, "mono"))))
	for _, name := range []string{"read good.yaml", "read chain.yaml"} {
		if inGit[name] != object {
			t.Errorf("%s: got %q", name, inGit[name])
		}
	}
	for _, name := range names[2:] {
		if inGit["read "+name] != "an error" || inGit["hash "+name] != "an error" {
			t.Errorf("%s is followed", name)
		}
	}
	for _, all := range []map[string]string{inGit, onDisk} { // trees call a link on the way in their own words
		delete(all, "problems services/a")
		delete(all, "problems services/a/through.yaml")
	}
	if diff := cmp.Diff(inGit, onDisk); diff != "" {
		t.Errorf("(-git +disk):\n%s", diff)
	}
}

// TestLinkedFolderHash: the address of a folder with a link changes with the commit that
// changes the file that it leads to, and others do not.
func TestLinkedFolderHash(t *testing.T) {
	c := newClone(t)
	c.commit("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n",
		"fleet/a.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n",
		"services/a/text", "x", "services/b/text", "x", "shared/x", "one")
	if err := os.Symlink("../../shared/x", filepath.Join(c.dir, "services/a/link")); err != nil {
		t.Fatal(err)
	}
	git(t, c.dir, "add", "--all")
	git(t, c.dir, "commit", "-q", "-m", "link")
	first := c.head()
	c.commit("shared/x", "two")
	second := c.head()
	s := local(t, c)
	hash := func(commit config.Commit, name string) string {
		tree := config.Load(treeOf(t, s, commit), nil).Tree
		h, err := tree.Hash(name)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	for name, changes := range map[string]bool{"services": true, "services/a": true, "services/b": false, "services/a/link": true, "services/a/text": false} {
		if (hash(first, name) != hash(second, name)) != changes {
			t.Errorf("%s: changes: %t, want %t", name, !changes, changes)
		}
	}
	// An entry tells no address that does not cover what its links lead to.
	entries, err := fs.ReadDir(config.Load(treeOf(t, s, first), nil).Tree, "services")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, tells := e.(interface{ Hash() string }); tells != (e.Name() == "b") {
			t.Errorf("%s tells its address: %t", e.Name(), tells)
		}
	}
}
