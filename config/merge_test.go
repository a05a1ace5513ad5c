// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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
	rapid.Check(t, func(t *rapid.T) {
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
