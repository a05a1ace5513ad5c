// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

// manyFiles are enough for their commit to be kept as a pack.
func manyFiles() []string {
	var files []string
	for i := range 2 * unpackObjects {
		name := "many/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		files = append(files, name, "content of "+name)
	}
	return files
}

// overwrite changes a file of the store, which are read-only. No change removes
// it.
func overwrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		write(t, path, string(change(content)))
	}
}

func one(t *testing.T, pattern ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v, want one", filepath.Join(pattern...), found, err)
	}
	return found[0]
}

// A damaged store is cloned anew by the next fetch that is due to find out, in
// one go, and everything can be read again.
func TestDamage(t *testing.T) {
	zeroes := func(content []byte) []byte { return make([]byte, len(content)) }
	empty := func([]byte) []byte { return nil }
	half := func(content []byte) []byte { return content[:len(content)/2] }
	flipped := func(content []byte) []byte {
		content[len(content)/2] ^= 1
		return content
	}
	pack := func(extension string, change func([]byte) []byte) func(*testing.T, *damageable, string) {
		return func(t *testing.T, _ *damageable, dir string) {
			overwrite(t, one(t, dir, "objects/pack/*."+extension), change)
		}
	}
	loose := func(rev string, change func([]byte) []byte) func(*testing.T, *damageable, string) {
		return func(t *testing.T, d *damageable, dir string) {
			hash := git(t, d.dir, "rev-parse", string(d.commit)+rev)
			overwrite(t, filepath.Join(dir, "objects", hash[:2], hash[2:]), change)
		}
	}
	packed, unpacked := newDamageable(t, manyFiles()...), newDamageable(t, "other", "x")
	for name, test := range map[string]struct {
		*damageable
		damage func(*testing.T, *damageable, string)
	}{
		"pack cut in half":       {packed, pack("pack", half)},
		"pack of zeroes":         {packed, pack("pack", zeroes)},
		"pack with a bit wrong":  {packed, pack("pack", flipped)},
		"pack gone":              {packed, pack("pack", nil)},
		"index gone":             {packed, pack("idx", nil)},
		"index empty":            {packed, pack("idx", empty)},
		"index with a bit wrong": {packed, pack("idx", flipped)},
		"objects gone": {packed, func(t *testing.T, _ *damageable, dir string) {
			os.RemoveAll(filepath.Join(dir, "objects"))
		}},
		"commit empty":     {unpacked, loose("", empty)},
		"commit gone":      {unpacked, loose("", nil)},
		"root folder gone": {unpacked, loose("^{tree}", nil)},
		"folder gone":      {unpacked, loose(":dir", nil)},
		"file gone":        {unpacked, loose(":dir/file", nil)},
		"file cut":         {unpacked, loose(":dir/file", half)},
		"file is another": {unpacked, func(t *testing.T, d *damageable, dir string) {
			other := git(t, d.dir, "rev-parse", string(d.commit)+":other")
			content := readFile(t, filepath.Join(dir, "objects", other[:2], other[2:]))
			loose(":dir/file", func([]byte) []byte { return []byte(content) })(t, d, dir)
		}},
	} {
		for _, moved := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", branch moved"}[moved], func(t *testing.T) {
				srv, commit, want := test.srv, test.commit, test.want
				if moved {
					srv, commit, want = test.next, test.nextCommit, test.nextWant
				}
				cfg := Config{URL: srv.url(), Dir: t.TempDir()}
				if err := os.CopyFS(cfg.Dir, os.DirFS(test.store)); err != nil {
					t.Fatal(err)
				}
				test.damage(t, test.damageable, cfg.Dir)
				s := follow(t, cfg)
				// What reads first finds the damage, if the fetch does not.
				if _, err := readAll(s, test.commit); err == nil {
					t.Fatal("the damage did no harm: the test tests nothing")
				}
				srv.requests()
				if got := fetch(t, s); got != commit {
					t.Errorf("Fetch = %s, want %s", got, commit)
				}
				if got := strings.Count(srv.requests(), "POST"); got != 1 {
					t.Errorf("%d downloads, want one", got)
				}
				if diff := cmp.Diff(want, files(t, s, commit)); diff != "" {
					t.Error(diff)
				}
				fetch(t, s)
				if got := srv.requests(); got != "GET" {
					t.Errorf("a fetch after it was cloned anew made the requests %q, want GET", got)
				}
				if left := leftovers(t, cfg.Dir); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

// damageable is a repository with a store of its first commit, and a second
// repository where the branch has moved on.
type damageable struct {
	*clone
	store              string
	srv, next          *server
	commit, nextCommit config.Commit
	want, nextWant     map[string]string
}

func newDamageable(t *testing.T, list ...string) *damageable {
	d := &damageable{clone: newClone(t), store: t.TempDir()}
	d.clone.commit("dir/file", "content")
	d.clone.commit(list...)
	d.commit = d.push()
	d.srv = serve(t, d.clone)
	s := follow(t, Config{URL: d.srv.url(), Dir: d.store})
	fetch(t, s)
	d.want = files(t, s, d.commit)
	next := &clone{t, d.dir, filepath.Join(t.TempDir(), "origin.git")}
	git(t, d.dir, "clone", "-q", "--bare", d.origin, next.origin)
	git(t, d.dir, "remote", "set-url", "origin", next.origin)
	next.commit("new", "1")
	d.nextCommit = next.push()
	d.next = serve(t, next)
	d.nextWant = maps.Clone(d.want)
	d.nextWant["new"] = "1"
	return d
}

// When the repository itself lacks an object, cloning it again and again does
// not help.
func TestDamageOfTheServer(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	bad := c.commit("b", "2")
	c.push()
	// The server sends what it is asked for, less one blob: a pack made by hand.
	blob := git(t, c.dir, "rev-parse", "HEAD:b")
	list := strings.ReplaceAll(git(t, c.dir, "rev-list", "--objects", "--no-object-names", "HEAD"), blob, git(t, c.dir, "rev-parse", "HEAD:a"))
	pack := gitOutput(t, c.dir, list, "pack-objects", "--stdout", "-q")
	srv := fakeServer(t, string(bad), pack)
	s := follow(t, Config{URL: srv.url(), Dir: t.TempDir()})
	read := func() error {
		t.Helper()
		tree, err := s.Tree(bad)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tree.ReadFile("b")
		return err
	}
	fetch(t, s)
	checkMessage(t, read(), `^read b: object `+blob+`: not in the repository$`)
	srv.requests()
	fetch(t, s) // cloned anew, once
	if got := srv.requests(); got != "GET POST" {
		t.Errorf("requests %q", got)
	}
	for range 3 {
		if err := read(); err == nil {
			t.Fatal("read b: no error")
		}
		_, err := s.Fetch(t.Context())
		checkMessage(t, err, `cloned anew for `+string(bad)+`; waiting until the branch moves$`)
		if got := srv.requests(); got != "GET" {
			t.Errorf("requests %q, want GET", got)
		}
	}
}

// A process that is killed may leave anything unfinished; the next one clears
// it away and goes on.
func TestKilled(t *testing.T) {
	for name, leave := range map[string]func(dir string) error{
		"while downloading": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "objects/pack/tmp_pack_1"), []byte("PACK"), 0o600)
		},
		"while writing a ref": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "tmp_2"), []byte("012"), 0o600)
		},
		"while cloning anew": func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, "objects.new/pack"), 0o755),
				os.WriteFile(filepath.Join(dir, "objects.new/pack/tmp_pack_1"), nil, 0o600))
		},
		"before the swap": func(dir string) error {
			return os.CopyFS(filepath.Join(dir, "objects.new"), os.DirFS(filepath.Join(dir, "objects")))
		},
		"within the swap": func(dir string) error {
			return errors.Join(os.CopyFS(filepath.Join(dir, "objects.new"), os.DirFS(filepath.Join(dir, "objects"))),
				os.Rename(filepath.Join(dir, "objects"), filepath.Join(dir, "objects.old")))
		},
		"after the swap": func(dir string) error {
			return os.CopyFS(filepath.Join(dir, "objects.old"), os.DirFS(filepath.Join(dir, "objects")))
		},
		"before the commit was accepted": func(dir string) error {
			return os.Remove(filepath.Join(dir, "packed-refs"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			cfg := Config{URL: serve(t, c).url(), Dir: t.TempDir()}
			good := c.commit("a", "1")
			c.push()
			s := follow(t, cfg)
			fetch(t, s)
			s.Close()
			if err := leave(cfg.Dir); err != nil {
				t.Fatal(err)
			}
			s = follow(t, cfg)
			if diff := cmp.Diff(map[string]string{"a": "1"}, files(t, s, good)); diff != "" {
				t.Error(diff)
			}
			if left := leftovers(t, cfg.Dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			next := c.commit("a", "2")
			c.push()
			if got := fetch(t, s); got != next {
				t.Errorf("Fetch = %s, want %s", got, next)
			}
		})
	}
}

// Killed before the folder was one of ours.
func TestKilledAtFirst(t *testing.T) {
	c := newClone(t)
	want := c.commit("a", "1")
	c.push()
	dir := filepath.Join(t.TempDir(), "[odd*name")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tmp_123"), "swell obj")
	s := follow(t, Config{URL: serve(t, c).url(), Dir: dir})
	if got := fetch(t, s); got != want {
		t.Errorf("Fetch = %s, want %s", got, want)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Losing the folder costs a clone and no more.
func TestStoreLost(t *testing.T) {
	c := newClone(t)
	cfg := Config{URL: serve(t, c).url(), Dir: filepath.Join(t.TempDir(), "not", "yet", "there")}
	c.commit("a", "1")
	c.push()
	fetch(t, follow(t, cfg))
	if err := os.RemoveAll(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	s := follow(t, cfg)
	if diff := cmp.Diff(map[string]string{"a": "1"}, files(t, s, fetch(t, s))); diff != "" {
		t.Error(diff)
	}
}

// TestStoreLostWhileInUse: the folder is made anew by the next fetch. What was followed is
// not forgotten, so a branch that was moved back meanwhile is refused.
func TestStoreLostWhileInUse(t *testing.T) {
	for _, lost := range []string{"", "objects", "objects/pack"} {
		for _, moved := range []string{"not", "on", "back"} {
			t.Run(lost+" moved "+moved, func(t *testing.T) {
				c := newClone(t)
				cfg := Config{URL: serve(t, c).url(), Dir: filepath.Join(t.TempDir(), "git")}
				c.commit("a", "1")
				c.commit("a", "2")
				c.push()
				s := follow(t, cfg)
				fetch(t, s)
				if err := os.RemoveAll(filepath.Join(cfg.Dir, lost)); err != nil {
					t.Fatal(err)
				}
				switch moved {
				case "on":
					c.commit("a", "3")
				case "back":
					git(t, c.dir, "reset", "-q", "--hard", "HEAD~1")
				}
				want := c.push()
				if moved == "back" {
					for _, when := range []string{"at first", "again", "after a restart"} {
						if when == "after a restart" {
							s.Close()
							s = follow(t, cfg)
						}
						if got, err := s.Fetch(t.Context()); !errors.Is(err, ErrRewound) {
							t.Errorf("%s: Fetch = %q, %v, want ErrRewound", when, got, err)
						}
					}
					return
				}
				if got := fetch(t, s); got != want {
					t.Errorf("Fetch = %s, want %s", got, want)
				}
				if _, err := readAll(s, want); err != nil {
					t.Error(err)
				}
				s.Close()
				if _, err := readAll(follow(t, cfg), want); err != nil {
					t.Error("after a restart:", err)
				}
			})
		}
	}
}

// A write that the disk refuses changes nothing.
func TestStoreFull(t *testing.T) {
	c := newClone(t)
	cfg := Config{URL: serve(t, c).url(), Dir: t.TempDir()}
	good := c.commit("a", "1")
	c.push()
	s := follow(t, cfg)
	fetch(t, s)
	next := c.commit("a", "2")
	c.push()
	pack := filepath.Join(cfg.Dir, "objects", "pack")
	if err := errors.Join(os.Remove(pack), os.WriteFile(pack, nil, 0o600)); err != nil { // root may write to any folder
		t.Fatal(err)
	}
	if got, err := s.Fetch(t.Context()); err == nil {
		t.Fatalf("Fetch = %s, want an error", got)
	}
	files(t, s, good)
	if err := errors.Join(os.Remove(pack), os.Mkdir(pack, 0o755)); err != nil {
		t.Fatal(err)
	}
	if got := fetch(t, s); got != next {
		t.Errorf("Fetch = %s, want %s", got, next)
	}
}

// When only a part of a small push could be written, its commit is not there
// to pretend that the rest is.
func TestStoreFullInTheMiddle(t *testing.T) {
	c := newClone(t)
	cfg := Config{URL: serve(t, c).url(), Dir: t.TempDir()}
	c.commit("a", "1")
	c.push()
	s := follow(t, cfg)
	fetch(t, s)
	next := c.commit("a", "2")
	c.push()
	blob := git(t, c.dir, "rev-parse", "HEAD:a")
	inTheWay := write(t, filepath.Join(cfg.Dir, "objects", blob[:2]), "")
	for range 20 { // objects are written in any order
		if got, err := s.Fetch(t.Context()); err == nil {
			t.Fatalf("Fetch = %s, want an error", got)
		}
		if _, err := os.Stat(filepath.Join(cfg.Dir, "objects", string(next[:2]), string(next[2:]))); err == nil {
			t.Fatal("the commit is there without its file")
		}
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "2"}, files(t, s, fetch(t, s))); diff != "" {
		t.Error(diff)
	}
}

func TestStoreRefusesWhatIsNotIts(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	c.push()
	note := t.TempDir()
	write(t, filepath.Join(note, "note"), "mine")
	for name, dir := range map[string]string{"a folder": note, "a work tree": c.dir, "a repository": c.origin} {
		before := listing(t, dir)
		_, err := Open(Config{URL: c.origin, Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "something else than an object store") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
			t.Errorf("%s was changed: %s", name, diff)
		}
	}
	torn := t.TempDir()
	follow(t, Config{URL: c.origin, Dir: torn}).Close()
	write(t, filepath.Join(torn, "packed-refs"), "0123\n")
	_, err := Open(Config{URL: c.origin, Dir: torn})
	checkMessage(t, err, `packed-refs:1: malformed: "0123"$`)
}

func listing(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Two branches share a store, and each remembers where it was.
func TestStoreOfTwoBranches(t *testing.T) {
	c := newClone(t)
	srv := serve(t, c)
	dir := t.TempDir()
	first := c.commit("a", "1")
	second := c.commit("a", "2")
	c.push()
	git(t, c.origin, "branch", "release", string(first))
	want := map[string]config.Commit{"main": second, "release": first}
	for branch, want := range want {
		s := follow(t, Config{URL: srv.url(), Dir: dir, Branch: branch})
		if got := fetch(t, s); got != want {
			t.Errorf("%s: Fetch = %s, want %s", branch, got, want)
		}
		s.Close()
	}
	git(t, c.origin, "update-ref", "refs/heads/main", string(first))
	if _, err := follow(t, Config{URL: srv.url(), Dir: dir, Branch: "main"}).Fetch(t.Context()); !errors.Is(err, ErrRewound) {
		t.Errorf("main moved back to where release is: %v, want ErrRewound", err)
	}
}

// TestTheStoreIsPrivate: whoever else is on the machine does not read a private repository, also
// one that an earlier version left open.
func TestTheStoreIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "git")
	for range 2 {
		if err := makeStore(dir); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{filepath.Dir(dir), dir} {
			if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s: %v, %v", d, info.Mode(), err)
			}
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
