// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
)

// TestFilesLinks: a link in a folder on disk led out of it.
func TestFilesLinks(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(outside, "passwd"), []byte("x"), 0o600),
		os.MkdirAll(filepath.Join(dir, "u/conf"), 0o700),
		os.WriteFile(filepath.Join(dir, "u/plain"), []byte("x"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "u/conf/link")),
		os.Symlink(filepath.Join(outside, "passwd"), filepath.Join(dir, "u/file")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	tree := Files(os.DirFS(dir))
	for _, name := range []string{"u/conf/link/passwd", "u/conf/link", "u/file"} {
		_, readErr := tree.ReadFile(name)
		_, listErr := tree.ReadDir(name)
		_, hashErr := tree.Hash(name)
		_, openErr := tree.Open(name)
		for i, err := range []error{readErr, listErr, hashErr, openErr} {
			var refusal document.Refusal
			if !errors.As(err, &refusal) {
				t.Errorf("%s, call %d: got %v, want it refused", name, i, err)
			}
		}
	}
	if _, err := tree.ReadFile("u/plain/below"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: got %v", err)
	}
	if content, err := tree.ReadFile("u/plain"); err != nil || string(content) != "x" {
		t.Errorf("plain: %q, %v", content, err)
	}
	if _, err := tree.Hash("."); err != nil {
		t.Error(err)
	}
}

// TestLinkForUnit: a link, or a submodule, where the folder of a unit was leaves a unit with a
// problem, which is kept, and not a unit that is gone.
func TestLinkForUnit(t *testing.T) {
	files := fstest.MapFS{
		"swell.yaml":           {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n")},
		"fleet/a.yaml":         {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n")},
		"services/team/link":   {Data: []byte("elsewhere"), Mode: fs.ModeSymlink},
		"services/swell.yaml":  {Data: []byte("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: x}\nspec: {tenant: x}\n")},
		"services/sub/.git":    {Data: []byte("gitdir: ../../.git/modules/sub")},
		"services/sub/b.yaml":  {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")},
		"services/team/a.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")},
	}
	r := Load(Files(files), nil)
	got := map[UnitPath]int{}
	for unit := range r.Units() {
		got[unit.Path] = len(unit.Problems)
		if unit.Defaults.Tenant != "x" {
			t.Errorf("%s: tenant %q, want that of the swell.yaml beside or above it", unit.Path, unit.Defaults.Tenant)
		}
	}
	if diff := cmp.Diff(map[UnitPath]int{"services/sub": 1, "services/team": 1, "services/team/link": 1}, got); diff != "" {
		t.Errorf("problems by unit (-want +got):\n%s", diff)
	}
}

// TestHashNamesFile: what cannot be read deep in a folder is named, and not the folder alone.
func TestHashNamesFile(t *testing.T) {
	for _, c := range []struct {
		name string
		file *fstest.MapFile
		want string
	}{
		{"fleet/more/a\xe9.yaml", &fstest.MapFile{}, `fleet/more: entry "a\xe9.yaml": name is not UTF-8`},
		{"kinds/x/a\xe9.yaml", &fstest.MapFile{}, `kinds/x: entry "a\xe9.yaml": name is not UTF-8`},
		{"services", &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink}, "services: folder of units (spec.units of swell.yaml, default services): a symbolic link: only plain files and folders are read"},
	} {
		files := fstest.MapFS{
			"swell.yaml":   {Data: []byte("apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n")},
			"fleet/a.yaml": {Data: []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n")},
			c.name:         c.file,
		}
		if c.name != "services" {
			files["services/.keep"] = &fstest.MapFile{}
		}
		r := Load(Files(files), nil)
		if got := strings.TrimSpace(r.Problems.Error()); got != c.want+" (SW1014)" && got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
