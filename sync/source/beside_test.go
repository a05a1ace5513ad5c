// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// A store beside another one has what pull requests bring, and reads the rest there: also
// while that one gets on, and after it was replaced.
func TestBeside(t *testing.T) {
	c := newClone(t)
	server := serve(t, c)
	dir := t.TempDir()
	main := filepath.Join(dir, "git")
	base := c.commit("a.yaml", "one", "dir/b.yaml", "two")
	c.push()
	s := follow(t, Config{URL: server.url(), Branch: "main", Dir: main})
	fetch(t, s)
	open := func() *Source {
		t.Helper()
		beside, err := OpenBeside(Config{URL: server.url(), Branch: "main", Dir: filepath.Join(dir, "beside")}, main)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = beside.Close() })
		return beside
	}
	beside := open()
	pull := c.commit("a.yaml", "three")
	git(t, c.dir, "push", "-q", "origin", "HEAD:refs/pull/7/head")
	ref := func(on *Source, want config.Commit) {
		t.Helper()
		got, err := on.FetchRef(t.Context(), "refs/pull/7/head", base)
		if err != nil || got != want {
			t.Fatalf("FetchRef = %s, %v; want %s", got, err, want)
		}
	}
	ref(beside, pull)
	if diff := cmp.Diff(map[string]string{"a.yaml": "three", "dir/b.yaml": "two"}, files(t, beside, pull)); diff != "" {
		t.Error(diff)
	}
	if parted, err := beside.MergeBase(base, pull); err != nil || parted != base {
		t.Errorf("MergeBase = %s, %v", parted, err)
	}
	// Nothing of it is in the other store, and nothing of that in this one.
	if _, err := s.Tree(pull); err == nil {
		t.Error("the pull request is in the store that is followed")
	}
	server.requests()
	ref(beside, pull) // it is there
	if got := server.requests(); got != "GET" {
		t.Errorf("requests %q", got)
	}
	// The branch gets on, by another process.
	git(t, c.dir, "checkout", "-q", "-b", "next", string(base))
	next := c.commit("dir/b.yaml", "four")
	c.push()
	fetch(t, s)
	git(t, c.dir, "checkout", "-q", "-B", "pull", string(next))
	pushed := c.commit("a.yaml", "five")
	git(t, c.dir, "push", "-q", "-f", "origin", "HEAD:refs/pull/7/head")
	before := beside.beside
	ref(beside, pushed) // forced, and from the newer base
	if again := open(); before == 0 || beside.beside <= before || again.beside < beside.beside || again.IsFull() {
		t.Errorf("%d bytes, then %d; %d when it is opened anew", before, beside.beside, again.beside)
	}
	if diff := cmp.Diff(map[string]string{"a.yaml": "five", "dir/b.yaml": "four"}, files(t, beside, pushed)); diff != "" {
		t.Error(diff)
	}
	if _, err := beside.FetchRef(t.Context(), "refs/pull/8/head", base); !errors.Is(err, ErrNoRevision) {
		t.Errorf("a ref that is not there: %v", err)
	}
	// It is opened once more, and deleted.
	ref(open(), pushed)
	if err := os.RemoveAll(filepath.Join(dir, "beside")); err != nil {
		t.Fatal(err)
	}
	ref(open(), pushed)
	// The other store is gone: what is missing is told from other errors.
	if err := os.RemoveAll(filepath.Join(main, objectsDir)); err != nil {
		t.Fatal(err)
	}
	if _, err := open().Tree(base); !IsDamage(err) {
		t.Errorf("without the other store: %v", err)
	}
}

func TestBetween(t *testing.T) {
	c := newClone(t)
	first := c.commit("a.yaml", "1")
	git(t, c.dir, "checkout", "-q", "-b", "pull")
	c.commit("b.yaml", "1")
	git(t, c.dir, "checkout", "-q", "-B", "trunk", string(first))
	second := c.commit("a.yaml", "2")
	git(t, c.dir, "merge", "-q", "--no-ff", "-m", "merge", "pull")
	merge := c.head()
	s, err := OpenLocal(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, test := range []struct {
		from, to config.Commit
		want     []config.Commit
	}{
		{first, merge, []config.Commit{merge, second}},
		{second, merge, []config.Commit{merge}},
		{merge, merge, nil},
		{merge, first, []config.Commit{first}}, // rewound
	} {
		if got, err := s.Between(test.from, test.to); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("Between(%s, %s) = %v, %v; want %v", test.from.Short(), test.to.Short(), got, err, test.want)
		}
	}
}
