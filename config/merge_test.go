// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
)

// contents are the files of a tree and what they hold; links are told by "-> ".
func contents(t *rapid.T, tree Tree) map[string]string {
	found := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if e.Type() == fs.ModeSymlink {
			to, err := tree.(LinkTree).ReadLink(name)
			found[name] = "-> " + to
			return err
		}
		text, err := tree.ReadFile(name)
		found[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func treeOf(files map[string]string) Tree {
	m := fstest.MapFS{}
	for name, text := range files {
		if to, isLink := strings.CutPrefix(text, "-> "); isLink {
			m[name] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Files(m)
}

// TestMerge holds a merge against the rule for each file: what one side changed is as that
// side has it, and what both changed in two ways is as in head, and said.
func TestMerge(t *testing.T) {
	names := []string{"swell.yaml", "fleet/a.yaml", "fleet/b.yaml", "services/eu/one/x.yaml", "services/eu/one/y.yaml", "services/eu/two/x.yaml", "services/us/x.yaml"}
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"", "1", "2", "3", "-> x.yaml"}) // empty: there is none
		origin, base, head, want := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
		var both []string
		for _, name := range names {
			o := text.Draw(t, "origin")
			b, h := o, o
			if rapid.Bool().Draw(t, "base changed") {
				b = text.Draw(t, "base")
			}
			if rapid.Bool().Draw(t, "head changed") {
				h = text.Draw(t, "head")
			}
			result := h
			switch {
			case h == o:
				result = b
			case b != o && b != h:
				both = append(both, name)
			}
			for text, into := range map[string]map[string]string{"o" + o: origin, "b" + b: base, "h" + h: head, "r" + result: want} {
				if text[1:] != "" {
					into[name] = text[1:]
				}
			}
		}
		merged, got, err := Merge(treeOf(origin), treeOf(base), treeOf(head))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, contents(t, merged)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if slices.Sort(both); !slices.Equal(got, both) {
			t.Errorf("changed on both sides: %q, want %q", got, both)
		}
		links, err := merged.(LinkTree).Links(".")
		var wanted []string
		for name, text := range want {
			if strings.HasPrefix(text, "-> ") {
				wanted = append(wanted, name)
			}
		}
		if slices.Sort(wanted); err != nil || !slices.Equal(links, wanted) {
			t.Errorf("links %q, want %q: %v", links, wanted, err)
		}
	})
}

// unreadable fails when a folder is read.
type unreadable struct {
	Tree
	t      *testing.T
	folder string
}

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.folder {
		u.t.Errorf("%s was read", name)
	}
	return u.Tree.ReadDir(name)
}

// TestMergeReadsWhatChanged: folders that are equal, or equal in origin and base, are not
// looked into.
func TestMergeReadsWhatChanged(t *testing.T) {
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("services/s%02d/x.yaml", i)] = "1"
	}
	origin := treeOf(files)
	files["services/s07/x.yaml"] = "2"
	merged, both, err := Merge(unreadable{origin, t, "services/s07"}, origin, unreadable{treeOf(files), t, "services/s08"})
	if err != nil || len(both) > 0 {
		t.Fatal(both, err)
	}
	if text, err := merged.ReadFile("services/s07/x.yaml"); string(text) != "2" {
		t.Error(string(text), err)
	}
}

// addressed is a tree whose entries tell their hashes, as those of a commit do.
type addressed struct{ Tree }

type addressedEntry struct {
	fs.DirEntry
	hash string
}

func (e addressedEntry) Hash() string { return e.hash }

func (a addressed) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := a.Tree.ReadDir(name)
	for i, e := range entries {
		hash, err := a.Hash(path.Join(name, e.Name()))
		if err != nil {
			return nil, err
		}
		entries[i] = addressedEntry{e, hash}
	}
	return entries, err
}

// TestMergeHashes: no entry of a merged tree tells a hash that is not that of its content,
// which would pass an old state off as the new one.
func TestMergeHashes(t *testing.T) {
	origin := addressed{treeOf(map[string]string{"services/x/a.yaml": "1", "services/x/b.yaml": "1", "services/y/a.yaml": "1"})}
	base := addressed{treeOf(map[string]string{"services/x/b.yaml": "1", "services/y/a.yaml": "1"})}
	head := addressed{treeOf(map[string]string{"services/y/a.yaml": "1"})}
	merged, both, err := Merge(origin, base, head)
	if err != nil || len(both) > 0 {
		t.Fatal(both, err)
	}
	entries, err := merged.ReadDir("services")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if known, ok := e.(interface{ Hash() string }); ok && e.Name() == "x" {
			t.Errorf("services/%s tells the hash %s", e.Name(), known.Hash())
		}
	}
	// The same trees with other parts replaced are another tree.
	one, errOne := Overlay(base, head, "services/x/b.yaml").Hash("services")
	other, errOther := Overlay(base, head, "services/x").Hash("services")
	if errOne != nil || errOther != nil || one == other {
		t.Errorf("%s and %s: %v, %v", one, other, errOne, errOther)
	}
}

// TestMergeOfOtherSorts: what was a file or a link may have become a folder on both sides.
func TestMergeOfOtherSorts(t *testing.T) {
	for name, was := range map[string]map[string]string{"a file": {"services/x": "1"}, "a link": {"services/x": "-> y"}, "nothing": {"swell.yaml": "1"}} {
		base := treeOf(map[string]string{"services/x/a": "1", "services/x/b": "1"})
		head := treeOf(map[string]string{"services/x/b": "2", "services/x/c": "1"})
		merged, both, err := Merge(treeOf(was), base, head)
		if err != nil || !slices.Equal(both, []string{"services/x/b"}) {
			t.Errorf("%s: %q, %v", name, both, err)
			continue
		}
		for file, want := range map[string]string{"services/x/a": "1", "services/x/b": "2", "services/x/c": "1"} {
			if text, err := merged.ReadFile(file); string(text) != want {
				t.Errorf("%s: %s: %q, %v", name, file, text, err)
			}
		}
		// Where base has nothing, the folder is there all the same.
		merged, _, err = Merge(treeOf(map[string]string{"charts/x/a": "1"}), treeOf(map[string]string{"swell.yaml": "1"}), treeOf(map[string]string{"charts/x/a": "2"}))
		if err != nil {
			t.Fatal(err)
		}
		if info, err := fs.Stat(merged, "charts/x"); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
}
