// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// local opens the work tree of a clone.
func local(t testing.TB, c *clone) *Source {
	t.Helper()
	s, err := OpenLocal(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func treeOf(t testing.TB, s *Source, commit config.Commit) config.Tree {
	t.Helper()
	tree, err := s.Tree(commit)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTreeIsFS(t *testing.T) {
	c := newClone(t)
	if err := os.Symlink("a.yaml", filepath.Join(c.dir, "link")); err != nil {
		t.Fatal(err)
	}
	// "foo" the folder sorts after "foo.yaml" for Git, and before it for Go.
	names := []string{"a.yaml", "foo.yaml", "foo-bar/x", "foo/bar", "empty", "deep/er/and/deeper/file", "with space", "ünï.yaml", "[glob]*"}
	for _, name := range names {
		c.commit(name, "content of "+name)
	}
	git(t, c.dir, "rm", "-q", "--cached", "empty")
	empty := gitWith(t, c.dir, "", "hash-object", "-w", "--stdin")
	git(t, c.dir, "update-index", "--add", "--cacheinfo", "100644,"+empty+",empty")
	git(t, c.dir, "commit", "-q", "-m", "an empty file")
	commit := c.head()
	for _, packed := range []bool{false, true} {
		if packed {
			git(t, c.dir, "repack", "-adq")
		}
		if err := fstest.TestFS(treeOf(t, local(t, c), commit), append(names, "link")...); err != nil {
			t.Errorf("packed %v: %v", packed, err)
		}
	}
}

// special is a commit with one of everything.
func special(t *testing.T) (*clone, config.Commit) {
	t.Helper()
	c := newClone(t)
	c.commit("dir/file", "content", "dir/sub/file", "other", "script", "#!")
	if err := os.Symlink("dir", filepath.Join(c.dir, "link")); err != nil {
		t.Fatal(err)
	}
	git(t, c.dir, "update-index", "--chmod=+x", "script")
	git(t, c.dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("12", 20)+",module")
	git(t, c.dir, "add", "link")
	git(t, c.dir, "commit", "-q", "-m", "special")
	return c, c.head()
}

func TestTreeEntries(t *testing.T) {
	c, commit := special(t)
	tree := treeOf(t, local(t, c), commit)
	entries, err := tree.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		stat, err := fs.Stat(tree, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != stat.Mode() || info.Size() != stat.Size() {
			t.Errorf("%s: ReadDir says %v, %d bytes, Stat says %v, %d bytes", e.Name(), info.Mode(), info.Size(), stat.Mode(), stat.Size())
		}
		if e.Type() != info.Mode().Type() {
			t.Errorf("%s: Type %v, Mode %v", e.Name(), e.Type(), info.Mode())
		}
		got = append(got, fmt.Sprintf("%v %d %s", info.Mode(), info.Size(), e.Name()))
	}
	want := []string{"dr-xr-xr-x 0 dir", "Lr--r--r-- 3 link", "?r--r--r-- 0 module", "-r-xr-xr-x 2 script"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTreeErrors(t *testing.T) {
	c, commit := special(t)
	tree := treeOf(t, local(t, c), commit)
	readDir := func(name string) error { _, err := tree.ReadDir(name); return err }
	readFile := func(name string) error { _, err := tree.ReadFile(name); return err }
	hash := func(name string) error { _, err := tree.Hash(name); return err }
	open := func(name string) error {
		f, err := tree.Open(name)
		if err == nil {
			_, err = f.Read(make([]byte, 1))
		}
		return err
	}
	for _, test := range []struct {
		do   func(string) error
		name string
		want string
		is   error
	}{
		{readFile, "none", "read none: file does not exist", fs.ErrNotExist},
		{readFile, "dir/none", "read dir/none: file does not exist", fs.ErrNotExist},
		{readFile, "none/none", "read none/none: file does not exist", fs.ErrNotExist},
		{readFile, "dir/file/none", "read dir/file/none: file does not exist", fs.ErrNotExist},
		{readFile, "dir", "read dir: is a folder", nil},
		{readFile, ".", "read .: is a folder", nil},
		{readFile, "link", "read link: is a symbolic link", nil},
		{readFile, "link/file", "read link: is a symbolic link", nil},
		{readFile, "module", "read module: is a submodule", nil},
		{readFile, "module/file", "read module: is a submodule", nil},
		{readFile, "", "read : invalid argument", fs.ErrInvalid},
		{readFile, "/dir/file", "read /dir/file: invalid argument", fs.ErrInvalid},
		{readFile, "dir/../dir/file", "read dir/../dir/file: invalid argument", fs.ErrInvalid},
		{readFile, "dir/", "read dir/: invalid argument", fs.ErrInvalid},
		{readDir, "none", "readdir none: file does not exist", fs.ErrNotExist},
		{readDir, "script", "readdir script: is a file, not a folder", nil},
		{readDir, "link", "readdir link: is a symbolic link, not a folder", nil},
		{readDir, "module", "readdir module: is a submodule, not a folder", nil},
		{hash, "none", "hash none: file does not exist", fs.ErrNotExist},
		{hash, "link", "hash link: is a symbolic link", nil},
		{hash, "module", "hash module: is a submodule", nil},
		{open, "none", "open none: file does not exist", fs.ErrNotExist},
		{open, "dir", "read dir: is a folder", nil},
		{open, "link", "read link: is a symbolic link", nil},
		{open, "module", "read module: is a submodule", nil},
	} {
		err := test.do(test.name)
		if err == nil || err.Error() != test.want {
			t.Errorf("error %q, want %q", err, test.want)
		}
		if test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%q is not %q", err, test.is)
		}
	}
}

func TestTreeHash(t *testing.T) {
	c := newClone(t)
	first := c.commit("a/x", "1", "b/x", "1", "b/y", "2")
	second := c.commit("a/x", "2")
	s := local(t, c)
	for commit, files := range map[config.Commit][]string{first: {".", "a", "a/x", "b"}, second: {".", "a", "a/x", "b/y"}} {
		for _, name := range files {
			got, err := treeOf(t, s, commit).Hash(name)
			if err != nil {
				t.Fatal(err)
			}
			if want := git(t, c.dir, "rev-parse", string(commit)+":"+strings.TrimPrefix(name, ".")); got != want {
				t.Errorf("Hash(%s) of %s = %s, want %s", name, commit, got, want)
			}
		}
	}
}

// A tree that git would refuse to check out is refused with the folder it is
// in; its other folders can be read.
func TestTreeRefuses(t *testing.T) {
	blob := func(name string) string { return "100644 " + name }
	for what, test := range map[string]struct {
		entries []string
		want    string
	}{
		"empty name":      {[]string{blob("")}, `an entry without a name`},
		"dot":             {[]string{blob(".")}, `entry ".": not allowed as a name`},
		"dot dot":         {[]string{blob("..")}, `entry "..": not allowed as a name`},
		"git":             {[]string{"40000 .git"}, `entry ".git": not allowed as a name`},
		"git, other case": {[]string{blob(".GiT")}, `entry ".GiT": not allowed as a name`},
		"slash":           {[]string{blob("a/b")}, `entry "a/b": not allowed as a name`},
		"climbs out":      {[]string{blob("../../etc/passwd")}, `entry "../../etc/passwd": not allowed as a name`},
		"twice":           {[]string{blob("a"), blob("a")}, `entry "a": listed twice`},
		"file and folder": {[]string{blob("a"), blob("a.b"), "40000 a"}, `entry "a": listed twice`},
		"mode":            {[]string{"100844 a"}, `entry "a": malformed mode "100844"`},
		"no mode":         {[]string{" a"}, `entry "a": mode "": want a file, a folder, a link or a submodule`},
		"device":          {[]string{"20644 a"}, `entry "a": mode "20644": want a file, a folder, a link or a submodule`},
		"huge mode":       {[]string{"7777777777777777777777100644 a"}, `entry "a": malformed mode "7777777777777777777777100644"`},
	} {
		t.Run(what, func(t *testing.T) {
			c := newClone(t)
			c.commit("good/file", "x")
			hash := git(t, c.dir, "rev-parse", "HEAD:good/file")
			var raw string
			for _, entry := range test.entries {
				mode, name, _ := strings.Cut(entry, " ")
				raw += treeObject(mode, name, hash)
			}
			bad := gitWith(t, c.dir, raw, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
			root := treeObject("40000", "bad", bad) + treeObject("40000", "good", git(t, c.dir, "rev-parse", "HEAD:good"))
			tree := gitWith(t, c.dir, root, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
			commit := config.Commit(git(t, c.dir, "commit-tree", "-m", "bad", tree))

			s := local(t, c)
			got := treeOf(t, s, commit)
			if _, err := got.ReadFile("good/file"); err != nil {
				t.Error(err)
			}
			if _, err := got.ReadDir("bad"); err == nil || err.Error() != "readdir bad: "+test.want {
				t.Errorf("ReadDir: %v, want %s", err, test.want)
			}
			if _, err := got.ReadFile("bad/a"); err == nil || err.Error() != "read bad: "+test.want {
				t.Errorf("ReadFile: %v, want %s", err, test.want)
			}
			if _, err := s.Changed("", commit); err == nil || !strings.HasSuffix(err.Error(), "readdir bad: "+test.want) {
				t.Errorf("Changed: %v, want %s", err, test.want)
			}
		})
	}
}

// A folder with an odd name says so to who lists it; the files beside it can be
// read, and those below, so that it holds one unit and not the whole commit.
func TestTreeOddNames(t *testing.T) {
	for what, test := range map[string]struct {
		name   string
		listed bool
		want   string
	}{
		"not UTF-8":     {"a\xff", false, `entry "a\xff": name is not UTF-8`},
		"new line":      {"a\nb", true, `entry "a\nb": control character in name`},
		"escape":        {"a\x1b[2J", true, `entry "a\x1b[2J": control character in name`},
		"right to left": {"a\u202eb", true, `entry "a\u202eb": control character in name`},
		"long":          {strings.Repeat("n", 256), false, `entry "nnnnnnnnnnnnnnnn"...: name of 256 bytes; at most 255 are allowed`},
	} {
		t.Run(what, func(t *testing.T) {
			c := newClone(t)
			c.commit("f", "x", "d/f", "x")
			file, dir := git(t, c.dir, "rev-parse", "HEAD:f"), git(t, c.dir, "rev-parse", "HEAD:d")
			raw := treeObject("100644", test.name, file) + treeObject("40000", "below", dir) + treeObject("100644", "f", file)
			odd := gitWith(t, c.dir, raw, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
			root := gitWith(t, c.dir, treeObject("40000", "odd", odd), "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
			commit := config.Commit(git(t, c.dir, "commit-tree", "-m", "odd", root))
			s := local(t, c)
			tree := treeOf(t, s, commit)
			entries, err := tree.ReadDir("odd")
			if found, ok := errors.AsType[document.OddName](err); !ok || found.Listed != test.listed || err.Error() != "readdir odd: "+test.want {
				t.Errorf("ReadDir: %v, want %s", err, test.want)
			}
			want := []string{"below", "f"}
			if test.listed {
				want = []string{test.name, "below", "f"}
			}
			var got []string
			for _, e := range entries {
				got = append(got, e.Name())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
			for _, name := range []string{"odd/f", "odd/below/f"} {
				if content, err := tree.ReadFile(name); err != nil || string(content) != "x" {
					t.Errorf("%s: %q, %v", name, content, err)
				}
			}
			if _, err := s.Changed("", commit); err == nil || !strings.HasSuffix(err.Error(), "readdir odd: "+test.want) {
				t.Errorf("Changed: %v, want %s", err, test.want)
			}
		})
	}
}

// Units with an odd name in a commit are held, each alone; the fleet's folder
// and that of a kind are not read past one.
func TestOddNamesInUnits(t *testing.T) {
	c := newClone(t)
	const unit = "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n"
	commit := c.commitByGit( // go-git refuses some of these
		"swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: x}\nspec: {}\n",
		"fleet/a.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: a}\nspec: {}\n",
		"services/shop/x/a.yaml", unit, "services/shop/x/a\xe9.yaml", unit, "services/shop/x/below/a.yaml", unit, "services/shop/y/a.yaml", unit,
		"services/shop/new\nline/a.yaml", unit)
	s := local(t, c)
	r := config.Load(treeOf(t, s, commit), nil)
	held := map[config.UnitPath]string{}
	for unit := range r.Units() {
		held[unit.Path] = append(slices.Clone(unit.Defaults.Problems), unit.Problems...).String()
	}
	want := map[config.UnitPath]string{
		"services/shop/x":         `services/shop/x: entry "a\xe9.yaml": name is not UTF-8`,
		"services/shop/x/below":   "",
		"services/shop/y":         "",
		"services/shop/new\nline": `services/shop/new\nline: "new\nline": a name with characters that do not show`,
	}
	if diff := cmp.Diff(want, held); diff != "" || len(r.Problems) > 0 {
		t.Errorf("%v (-want +got):\n%s", r.Problems, diff)
	}
	r = config.Load(treeOf(t, s, c.commitByGit("fleet/b\xe9.yaml", "x")), nil)
	if got, want := r.Problems.String(), `fleet: entry "b\xe9.yaml": name is not UTF-8`; got != want {
		t.Errorf("in the fleet: %s, want %s", got, want)
	}
}

func TestTreeMalformed(t *testing.T) {
	for _, content := range []string{"x", "100644", "100644 ", "100644 a", "100644 a\x00", "100644 a\x00short", "\x00", " "} {
		if f, err := decodeFolder(content); err == nil || err.Error() != "malformed tree object" {
			t.Errorf("%q: %v, %v", content, f, err)
		}
	}
}

func FuzzDecodeFolder(f *testing.F) {
	hash := strings.Repeat("12", 20)
	f.Add(treeObject("100644", "a", hash) + treeObject("40000", "b", hash))
	f.Add(treeObject("120000", "..", hash))
	f.Add("100644 a\x00short")
	f.Fuzz(func(t *testing.T, content string) {
		got, err := decodeFolder(content)
		if err != nil {
			return
		}
		for i, e := range got.entries {
			if !fs.ValidPath(e.name) || strings.Contains(e.name, "/") || e.name == "." {
				t.Errorf("entry %q", e.name)
			}
			if i > 0 && got.entries[i-1].name >= e.name {
				t.Errorf("%q before %q", got.entries[i-1].name, e.name)
			}
			if got.find(e.name) == nil {
				t.Errorf("%q is not found", e.name)
			}
		}
	})
}

// The size of a file is known, and its limit is applied, before it is read: as
// a loose object, in a pack, and as a delta there.
func TestTreeLargeFile(t *testing.T) {
	c := newClone(t)
	text := incompressible(config.MaxFileSize)
	commit := c.commit("fits", text[:config.MaxFileSize], "large", text[:config.MaxFileSize-1]+"22")
	for _, how := range []string{"loose", "packed"} {
		if how == "packed" {
			git(t, c.dir, "-c", "core.bigFileThreshold=1g", "-c", "core.compression=0", "repack", "-adfq")
		}
		s := local(t, c)
		tree := treeOf(t, s, commit)
		for name, want := range map[string]int64{"fits": config.MaxFileSize, "large": config.MaxFileSize + 1} {
			if info, err := fs.Stat(tree, name); err != nil || info.Size() != want {
				t.Errorf("%s: Stat(%s) = %v, %v, want %d bytes", how, name, info, err, want)
			}
		}
		if _, err := tree.ReadFile("large"); err == nil || err.Error() != "read large: 8388609 bytes; at most 8 MiB are read" {
			t.Errorf("%s: %v", how, err)
		}
		if _, ok := s.objects.cache.Get(plumbing.NewHash(git(t, c.dir, "rev-parse", "HEAD:large"))); ok {
			t.Errorf("%s: the large file was inflated", how)
		}
		if content, err := tree.ReadFile("fits"); err != nil || len(content) != config.MaxFileSize {
			t.Errorf("%s: %d bytes, %v", how, len(content), err)
		}
	}
	if !strings.Contains(git(t, c.dir, "verify-pack", "-v", one(t, c.dir, ".git/objects/pack/*.idx")), " 1 ") {
		t.Error("no delta: the test tests less than it should")
	}
}

// What ReadFile returns belongs to the caller.
func TestTreeContentIsACopy(t *testing.T) {
	c := newClone(t)
	tree := treeOf(t, local(t, c), c.commit("a", "content"))
	content, err := tree.ReadFile("a")
	if err != nil {
		t.Fatal(err)
	}
	clear(content)
	if content, err := tree.ReadFile("a"); string(content) != "content" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
}

// Trees are read from many sides while the branch moves on and its store is
// cloned anew. Run with -race.
func TestTreeConcurrently(t *testing.T) {
	c := newClone(t)
	want := map[string]string{}
	list := manyFiles()
	for i := 0; i < len(list); i += 2 {
		want[list[i]] = list[i+1]
	}
	commit := c.commit(list...)
	c.push()
	s := follow(t, Config{URL: serve(t, c).url(), Dir: t.TempDir()})
	fetch(t, s)
	ctx := t.Context()
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			for range 20 {
				got, err := readAll(s, commit)
				if err != nil {
					return err
				}
				if diff := cmp.Diff(want, got); diff != "" {
					return errors.New(diff)
				}
				if _, err := s.Info(commit); err != nil {
					return err
				}
				if _, err := s.Changed("", commit); err != nil {
					return err
				}
				if _, err := s.Resolve(string(commit[:12])); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for i := range 6 {
		c.commit("moving", fmt.Sprint(i))
		c.push()
		if i%3 == 2 {
			s.damaged.Store(s.objects.generation.Load())
		}
		if _, err := s.Fetch(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTreeAfterClose(t *testing.T) {
	c := newClone(t)
	commit := c.commit("a", "1")
	s := local(t, c)
	tree := treeOf(t, s, commit)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.ReadFile("a"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v, want %v", err, fs.ErrClosed)
	}
	if _, err := s.Tree(commit); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v, want %v", err, fs.ErrClosed)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestTreeOfWhatIsNoCommit(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	s := local(t, c)
	blob := git(t, c.dir, "rev-parse", "HEAD:a")
	for commit, want := range map[string]string{
		"":                       `commit "": want 40 hexadecimal digits`,
		"HEAD":                   `commit "HEAD": want 40 hexadecimal digits`,
		"0123456":                `commit "0123456": want 40 hexadecimal digits`,
		strings.Repeat("z", 40):  `want 40 hexadecimal digits`,
		strings.Repeat("12", 20): `commit 12121212: ` + config.ErrNoCommit.Error(),
		blob:                     `object ` + blob + `: is a blob, not a commit`,
	} {
		if _, err := s.Tree(config.Commit(commit)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Tree(%q): %v, want %s", commit, err, want)
		} else if errors.Is(err, config.ErrNoCommit) != (commit == strings.Repeat("12", 20)) {
			t.Errorf("Tree(%q): %v", commit, err)
		}
	}
}
