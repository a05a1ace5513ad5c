// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

func TestOpenLocal(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, c *clone) string{
		"work tree":      func(t *testing.T, c *clone) string { return c.dir },
		"folder in it":   func(t *testing.T, c *clone) string { return filepath.Join(c.dir, "dir") },
		".git":           func(t *testing.T, c *clone) string { return filepath.Join(c.dir, ".git") },
		"bare":           func(t *testing.T, c *clone) string { return c.origin },
		"folder in bare": func(t *testing.T, c *clone) string { return filepath.Join(c.origin, "refs") },
		"linked work tree": func(t *testing.T, c *clone) string {
			dir := t.TempDir()
			git(t, c.dir, "worktree", "add", "-q", dir)
			return dir
		},
		"detached": func(t *testing.T, c *clone) string { git(t, c.dir, "checkout", "-q", "--detach"); return c.dir },
		"git file": func(t *testing.T, c *clone) string {
			dir := t.TempDir()
			git(t, dir, "init", "-q", "--separate-git-dir", filepath.Join(t.TempDir(), "x"), ".")
			git(t, dir, "pull", "-q", c.origin, "main")
			return dir
		},
		"borrows objects": func(t *testing.T, c *clone) string {
			dir := t.TempDir()
			git(t, dir, "clone", "-q", "--shared", c.origin, ".")
			return dir
		},
		"borrows from borrower": func(t *testing.T, c *clone) string {
			middle, dir := t.TempDir(), t.TempDir()
			git(t, dir, "clone", "-q", "--shared", c.origin, middle)
			git(t, dir, "clone", "-q", "--shared", middle, ".")
			return dir
		},
		"borrows by a relative path": func(t *testing.T, c *clone) string {
			dir := filepath.Join(filepath.Dir(c.origin), "relative")
			git(t, c.dir, "clone", "-q", "--shared", c.origin, dir)
			overwrite(t, filepath.Join(dir, ".git/objects/info/alternates"), func([]byte) []byte { return []byte("# of the pool\n../../../origin.git/objects\n") })
			return dir
		},
		"sparse": func(t *testing.T, c *clone) string { git(t, c.dir, "sparse-checkout", "set", "dir"); return c.dir },
		"partial": func(t *testing.T, c *clone) string {
			dir := t.TempDir()
			git(t, c.origin, "config", "uploadpack.allowFilter", "true")
			git(t, dir, "clone", "-q", "--filter=blob:limit=1k", "file://"+c.origin, ".")
			return dir
		},
		"file in it": func(t *testing.T, c *clone) string { return filepath.Join(c.dir, "dir", "a") },
		"link to it": func(t *testing.T, c *clone) string {
			dir := filepath.Join(t.TempDir(), "link")
			os.Symlink(c.dir, dir)
			return dir
		},
		"submodule": func(t *testing.T, c *clone) string {
			dir := t.TempDir()
			git(t, dir, "init", "-q")
			git(t, dir, "submodule", "--quiet", "add", c.origin, "module")
			return filepath.Join(dir, "module")
		},
		"packed": func(t *testing.T, c *clone) string { git(t, c.dir, "gc", "-q"); return c.dir },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			head := c.commit("dir/a", "1")
			c.push()
			dir := make(t, c)
			before := listing(t, dir)
			s, err := OpenLocal(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := fetch(t, s); got != head {
				t.Errorf("Fetch = %s, want %s", got, head)
			}
			if got, err := s.Resolve("HEAD"); got != head || err != nil {
				t.Errorf("Resolve = %s, %v, want %s", got, err, head)
			}
			if diff := cmp.Diff(map[string]string{"dir/a": "1"}, files(t, s, head)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
				t.Errorf("the repository was written to: %s", diff)
			}
		})
	}
}

func TestOpenLocalRefuses(t *testing.T) {
	empty := t.TempDir()
	file := write(t, filepath.Join(t.TempDir(), "file"), "x")
	odd := t.TempDir()
	write(t, filepath.Join(odd, ".git"), "hello")
	sha256 := t.TempDir()
	git(t, sha256, "init", "-q", "--object-format=sha256")
	reftable := t.TempDir()
	git(t, reftable, "init", "-q")
	git(t, reftable, "config", "extensions.refstorage", "reftable")
	for dir, want := range map[string]string{
		empty:                        `^source: ` + empty + `: not a Git repository$`,
		filepath.Join(empty, "none"): `^source: stat .*/none: no such file or directory$`,
		file:                         `^source: .*: not a Git repository$`,
		odd:                          `^source: .*/.git: want "gitdir: ...", got "hello"$`,
		sha256:                       `extensions.objectFormat "sha256": only "sha1" can be read$`,
		reftable:                     `extensions.refStorage "reftable": only "files" can be read$`,
	} {
		_, err := OpenLocal(dir)
		checkMessage(t, err, want)
	}
}

// In a linked work tree HEAD is its own and the branches are everyone's.
func TestLinkedWorkTree(t *testing.T) {
	c := newClone(t)
	first := c.commit("a", "1")
	dir := t.TempDir()
	git(t, c.dir, "worktree", "add", "-q", "-b", "side", dir)
	second := c.commit("a", "2")
	s, err := OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for rev, want := range map[string]config.Commit{"HEAD": first, "side": first, "main": second} {
		if got, err := s.Resolve(rev); got != want || err != nil {
			t.Errorf("Resolve(%s) = %s, %v, want %s", rev, got, err, want)
		}
	}
}

// What others do to a repository on this machine is seen, and what is read
// from it goes on.
func TestLocalChangedByOthers(t *testing.T) {
	c := newClone(t)
	first := c.commit(manyFiles()...)
	s := follow(t, Config{URL: c.dir, Branch: "main"})
	fetch(t, s)
	old := files(t, s, first)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"loose objects", func() { c.commit("a", "1") }},
		{"a pack", func() { c.commit("a", "2"); git(t, c.dir, "repack", "-dq") }},
		{"all in one pack", func() { c.commit("a", "3"); git(t, c.dir, "repack", "-adq") }},
		{"refs packed", func() { c.commit("a", "4"); git(t, c.dir, "pack-refs", "--all", "--prune") }},
		{"gc", func() { c.commit("a", "5"); git(t, c.dir, "gc", "-q", "--prune=now") }},
	} {
		step.do()
		commit := fetch(t, s)
		if want := c.head(); commit != want {
			t.Errorf("%s: Fetch = %s, want %s", step.name, commit, want)
		}
		if _, err := readAll(s, commit); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	// Packed anew between two reads, with no fetch in between.
	next := c.commit("a", "6")
	git(t, c.dir, "repack", "-adfq")
	if diff := cmp.Diff("6", files(t, s, next)["a"]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(old, files(t, s, first)); diff != "" {
		t.Error(diff)
	}
}

// TestLocalPackReplaced: a pack is damaged, and replaced whole under the same name.
func TestLocalPackReplaced(t *testing.T) {
	c := newClone(t)
	commit := c.commit(manyFiles()...)
	git(t, c.dir, "repack", "-adq")
	file := one(t, filepath.Join(c.dir, ".git"), "objects/pack/*.pack")
	good := readFile(t, file)
	if err := errors.Join(os.Remove(file), os.WriteFile(file, make([]byte, len(good)), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := follow(t, Config{URL: c.dir, Branch: "main"})
	if _, err := readAll(s, commit); err == nil {
		t.Fatal("the damage did no harm: the test tests nothing")
	}
	if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte(good), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := readAll(s, commit); err != nil {
		t.Error(err)
	}
}

// A disk that is not there is no reason to believe that the branch is gone.
func TestLocalUnmounted(t *testing.T) {
	c := newClone(t)
	commit := c.commit("a", "1")
	c.push()
	s := follow(t, Config{URL: c.origin, Branch: "main"})
	fetch(t, s)
	away := c.origin + ".away"
	if err := os.Rename(c.origin, away); err != nil {
		t.Fatal(err)
	}
	got, err := s.Fetch(t.Context())
	if err == nil || errors.Is(err, ErrBranchGone) {
		t.Errorf("Fetch = %q, %v", got, err)
	}
	checkMessage(t, err, `origin.git: not a Git repository$`)
	if err := os.Rename(away, c.origin); err != nil {
		t.Fatal(err)
	}
	if got := fetch(t, s); got != commit {
		t.Errorf("Fetch = %s, want %s", got, commit)
	}
}

// A branch of which only longer or shorter names exist is gone.
func TestLocalBranchOfAnotherName(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	git(t, c.dir, "branch", "feature/x")
	for _, branch := range []string{"feature", "main/x", "none"} {
		if _, err := follow(t, Config{URL: c.dir, Branch: branch}).Fetch(t.Context()); !errors.Is(err, ErrBranchGone) {
			t.Errorf("%s: %v, want ErrBranchGone", branch, err)
		}
	}
}

// A ref that cannot be read is not a ref that is gone.
func TestLocalTornRef(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	s := follow(t, Config{URL: c.dir, Branch: "main"})
	fetch(t, s)
	ref := filepath.Join(c.dir, ".git/refs/heads/main")
	for content, want := range map[string]string{
		"":                       `refs/heads/main: malformed: ""$`,
		strings.Repeat("1", 39):  `refs/heads/main: malformed: "1`,
		"ref: refs/heads/main\n": `more than 5 symbolic refs in a row$`,
		strings.Repeat("12", 20): `object 1212.*: not in the repository$`,
	} {
		write(t, ref, content)
		got, err := s.Fetch(t.Context())
		if err == nil || errors.Is(err, ErrBranchGone) {
			t.Errorf("%q: Fetch = %q, %v", content, got, err)
		}
		checkMessage(t, err, want)
	}
}
