// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

func TestChanged(t *testing.T) {
	c := newClone(t)
	start := c.commit("a", "1", "dir/x", "1", "dir/y", "1", "dir/deep/z", "1", "foo.yaml", "1", "foo/bar", "1", "same/file", "1")
	for _, test := range []struct {
		name   string
		change func()
		want   []string
	}{
		{"nothing", func() {}, nil},
		{"modified", func() { c.commit("dir/x", "2") }, []string{"dir/x"}},
		{"added", func() { c.commit("dir/new", "1", "new/er/file", "1") }, []string{"dir/new", "new/er/file"}},
		{"deleted", func() { c.commit("a", "", "dir/deep/z", "") }, []string{"a", "dir/deep/z"}},
		{"moved", func() { git(t, c.dir, "mv", "dir", "moved") },
			[]string{"dir/deep/z", "dir/x", "dir/y", "moved/deep/z", "moved/x", "moved/y"}},
		{"file becomes folder", func() { git(t, c.dir, "rm", "-q", "a"); c.commit("a/b", "1") }, []string{"a", "a/b"}},
		{"folder becomes file", func() { git(t, c.dir, "rm", "-rq", "foo"); c.commit("foo", "1") }, []string{"foo", "foo/bar"}},
		{"beside a folder of like name", func() { c.commit("foo.yaml", "2", "foo/bar", "2", "foo-x", "1") },
			[]string{"foo-x", "foo.yaml", "foo/bar"}},
		{"executable", func() { os.Chmod(filepath.Join(c.dir, "a"), 0o755) }, []string{"a"}},
		{"becomes a link", func() {
			os.Remove(filepath.Join(c.dir, "a"))
			os.Symlink("dir/x", filepath.Join(c.dir, "a"))
		}, []string{"a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			git(t, c.dir, "reset", "-q", "--hard", string(start))
			git(t, c.dir, "clean", "-fdq")
			test.change()
			c.commit()
			s := local(t, c)
			for _, pair := range [][2]config.Commit{{start, c.head()}, {c.head(), start}} {
				got, err := s.Changed(pair[0], pair[1])
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
				git := strings.Fields(git(t, c.dir, "diff-tree", "-r", "--no-renames", "--name-only", string(pair[0]), string(pair[1])))
				if slices.Sort(git); !slices.Equal(git, got) {
					t.Errorf("git says %v, got %v", git, got)
				}
			}
		})
	}
}

func TestChangedFromNothing(t *testing.T) {
	c := newClone(t)
	commit := c.commit("a", "1", "dir/x", "1")
	s := local(t, c)
	for _, pair := range [][2]config.Commit{{"", commit}, {commit, ""}} {
		if got, err := s.Changed(pair[0], pair[1]); err != nil || !slices.Equal(got, []string{"a", "dir/x"}) {
			t.Errorf("Changed(%q, %q) = %v, %v", pair[0], pair[1], got, err)
		}
	}
	if got, err := s.Changed("", ""); err != nil || got != nil {
		t.Errorf("Changed of nothing = %v, %v", got, err)
	}
}

// Thirty folders, each of which holds the next one ten times: 10^30 files.
func TestChangedBomb(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	mode, hash := "100644", git(t, c.dir, "rev-parse", "HEAD:a")
	for range 30 {
		var raw string
		for _, name := range strings.Split("abcdefghij", "") {
			raw += treeObject(mode, name, hash)
		}
		hash = gitWith(t, c.dir, raw, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
		mode = "40000"
	}
	bomb := config.Commit(git(t, c.dir, "commit-tree", "-m", "bomb", hash))
	s := local(t, c)
	if _, err := s.Changed("", bomb); err == nil || !strings.HasSuffix(err.Error(), "more than 2,097,152 files and folders differ") {
		t.Error(err)
	}
	if _, err := treeOf(t, s, bomb).ReadFile(strings.Repeat("a/", 29) + "a"); err != nil {
		t.Error(err)
	}
}
