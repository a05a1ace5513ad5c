// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/rapidtest"
)

// porcelain is what git blame says, one line for each of the file: the commit,
// the file and the line in it.
func porcelain(t testing.TB, dir, file string, args ...string) []string {
	t.Helper()
	var lines []string
	var name string
	var head []string
	for line := range strings.Lines(git(t, dir, append(append([]string{"blame", "--line-porcelain"}, args...), "--", file)...) + "\n") {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "\t"):
			lines = append(lines, fmt.Sprintf("%s %s:%s", head[0], name, head[1]))
			head = nil
		case head == nil:
			head = fields
		case fields[0] == "filename":
			name = fields[1]
		}
	}
	return lines
}

func blameText(t testing.TB, s *Source, commit config.Commit, file string, content []byte) []string {
	t.Helper()
	b, err := s.Blame(t.Context(), commit, file, content)
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(b.Lines))
	for i, l := range b.Lines {
		if l.Commit == "" {
			l.Commit = config.Commit(strings.Repeat("0", 40))
		}
		lines[i] = fmt.Sprintf("%s %s:%d", l.Commit, l.File, l.Number)
	}
	return lines
}

func openLocal(t testing.TB, dir string) *Source {
	t.Helper()
	s, err := OpenLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// randomHistory is a history of one file that is drawn commit by commit, in the language of
// git fast-import: one process makes all of it.
type randomHistory struct {
	*rapid.T
	stream  strings.Builder
	commits int
	lines   int // made so far: each is another one
}

// commit adds a commit on top of others, and returns its mark. An empty content leaves the
// file as it is.
func (h *randomHistory) commit(content string, parents ...int) int {
	h.commits++
	fmt.Fprintf(&h.stream, "commit refs/heads/main\nmark :%d\nauthor Ann <ann@example.com> 1700000000 +0200\ncommitter Con <con@example.com> 1700000100 +0000\ndata 5\nwrite\n", h.commits)
	for i, parent := range parents {
		fmt.Fprintf(&h.stream, "%s :%d\n", []string{"from", "merge"}[i], parent)
	}
	file := "a/file.yaml"
	if content == "" {
		file, content = "other", fmt.Sprintln(h.commits)
	}
	fmt.Fprintf(&h.stream, "M 100644 inline %s\ndata %d\n%s\n", file, len(content), content)
	return h.commits
}

func (h *randomHistory) fresh(n int) (lines []string) {
	for range n {
		h.lines++
		lines = append(lines, fmt.Sprintf("line %d\n", h.lines))
	}
	return lines
}

// edit is a change of a file: it replaces some lines that begin between from and from+span.
// What is drawn is done to every content that it is given.
func (h *randomHistory) edit(from, span int) func(content string) string {
	type replacement struct {
		at, gone int
		fresh    []string
	}
	replacements := make([]replacement, rapid.IntRange(1, 4).Draw(h.T, "edits"))
	for i := range replacements {
		at := from
		if span > 0 {
			at += rapid.IntRange(0, span).Draw(h.T, "at")
		}
		replacements[i] = replacement{at, rapid.IntRange(0, 2).Draw(h.T, "gone"), h.fresh(rapid.IntRange(0, 3).Draw(h.T, "new"))}
	}
	return func(content string) string {
		lines := strings.SplitAfter(content, "\n")
		lines = lines[:len(lines)-1]
		for _, r := range replacements {
			at := min(r.at, len(lines))
			lines = slices.Replace(lines, at, at+min(r.gone, len(lines)-at), r.fresh...)
		}
		return strings.Join(lines, "")
	}
}

// draw draws some commits, with branches and merges, and returns the last content.
func (h *randomHistory) draw() string {
	content := strings.Join(h.fresh(40), "")
	head := h.commit(content)
	for range rapid.IntRange(1, 6).Draw(h.T, "steps") {
		switch rapid.IntRange(0, 3).Draw(h.T, "what") {
		case 0, 1:
			content = h.edit(0, 60)(content)
			head = h.commit(content, head)
		case 2:
			head = h.commit("", head)
		case 3:
			// The branches change the file far from each other, so that the merge has both.
			begin := h.edit(0, 2)
			branch := h.commit(begin(content), head)
			if lines := strings.Count(content, "\n"); lines > 12 {
				content = h.edit(lines-2, 0)(content)
				head = h.commit(content, head)
			}
			content = begin(content)
			head = h.commit(content, head, branch)
		}
	}
	return content
}

// TestBlameLikeGit holds random histories, with branches and merges, against
// the git binary. No two lines are equal, as for equal ones there is more than
// one right answer.
func TestBlameLikeGit(t *testing.T) {
	rapidtest.Check(t, 20, 2*time.Second, func(rt *rapid.T) {
		c := newClone(t)
		h := randomHistory{T: rt}
		content := h.draw()
		gitWith(t, c.dir, h.stream.String(), "fast-import", "--quiet")
		s := openLocal(t, c.dir)
		if diff := cmp.Diff(porcelain(t, c.dir, "a/file.yaml", "HEAD"), blameText(t, s, c.head(), "a/file.yaml", nil)); diff != "" {
			rt.Errorf("(-git +swell):\n%s", diff)
		}
		last, err := s.Blame(t.Context(), c.head(), "a/file.yaml", nil)
		if err != nil {
			rt.Fatal(err)
		}
		if want := git(t, c.dir, "log", "-1", "--format=%H", "--", "a/file.yaml"); string(last.Last.Commit) != want {
			rt.Errorf("last changed in %s, git says %s", last.Last.Commit, want)
		}
		now := h.edit(0, 60)(content)
		if err := os.Mkdir(filepath.Join(c.dir, "a"), 0o755); err != nil {
			rt.Fatal(err)
		}
		write(t, filepath.Join(c.dir, "a/file.yaml"), now)
		if diff := cmp.Diff(porcelain(t, c.dir, "a/file.yaml"), blameText(t, s, c.head(), "a/file.yaml", []byte(now))); diff != "" {
			rt.Errorf("with changes that are not committed (-git +swell):\n%s", diff)
		}
	})
}

func TestBlameMoved(t *testing.T) {
	c := newClone(t)
	first := c.commit("old/a.yaml", "one\ntwo\nthree\n")
	c.commit("old/a.yaml", "", "new/b.yaml", "one\ntwo\nthree\n")
	third := c.commit("new/b.yaml", "one\nTWO\nthree\n")
	s := openLocal(t, c.dir)
	want := []string{string(first) + " old/a.yaml:1", string(third) + " new/b.yaml:2", string(first) + " old/a.yaml:3"}
	if diff := cmp.Diff(want, blameText(t, s, c.head(), "new/b.yaml", nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(porcelain(t, c.dir, "new/b.yaml"), want); diff != "" {
		t.Errorf("git says (-git +want):\n%s", diff)
	}
}

// TestBlameMovedBesideOddName: an odd name anywhere in a commit leaves where a
// file came from unknown, and is no reason to show nothing.
func TestBlameMovedBesideOddName(t *testing.T) {
	c := newClone(t)
	c.commit("old/a.yaml", "one\n")
	second := c.commit("old/a.yaml", "", "new/b.yaml", "one\n", "else/a\xe9", "x")
	want := []string{string(second) + " new/b.yaml:1"}
	if diff := cmp.Diff(want, blameText(t, openLocal(t, c.dir), c.head(), "new/b.yaml", nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBlameShallow: the history that is there does not say who brought the
// lines that are older.
func TestBlameShallow(t *testing.T) {
	c := newClone(t)
	c.commit("a", "one\n")
	second := c.commit("a", "one\ntwo\n")
	third := c.commit("a", "one\ntwo\nthree\n")
	c.push()
	shallow := filepath.Join(t.TempDir(), "shallow")
	git(t, c.dir, "clone", "-q", "--depth=2", "file://"+c.origin, shallow, "-b", "main")
	b, err := openLocal(t, shallow).Blame(t.Context(), third, "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{{Commit: second, File: "a", Number: 1, Oldest: true}, {Commit: second, File: "a", Number: 2, Oldest: true}, {Commit: third, File: "a", Number: 3}}
	if diff := cmp.Diff(want, b.Lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBlameLong: a history that is too long is left where it is, and that is
// said.
func TestBlameLong(t *testing.T) {
	c := newClone(t)
	var commits []config.Commit
	content := ""
	for i := range 6 {
		content += fmt.Sprintf("line %d\n", i)
		commits = append(commits, c.commit("a", content))
	}
	b := blame{source: openLocal(t, c.dir), suspects: map[suspectKey]*suspect{}, most: 3}
	if err := b.run(t.Context(), commits[5], "a", nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range b.result.Lines {
		got = append(got, fmt.Sprintf("%d %t", slices.Index(commits, l.Commit), l.Oldest))
	}
	if diff := cmp.Diff([]string{"2 true", "2 true", "2 true", "3 false", "4 false", "5 false"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBlameOdd(t *testing.T) {
	c := newClone(t)
	commit := c.commit("empty", "x", "a", "one\ntwo") // no end of line
	c.commit("a", "one\ntwo\n")
	write(t, filepath.Join(c.dir, "empty"), "")
	git(t, c.dir, "commit", "-q", "-a", "-m", "empty")
	s := openLocal(t, c.dir)
	if got := blameText(t, s, c.head(), "empty", nil); len(got) > 0 {
		t.Errorf("an empty file has lines: %v", got)
	}
	if diff := cmp.Diff(porcelain(t, c.dir, "a"), blameText(t, s, c.head(), "a", nil)); diff != "" {
		t.Errorf("(-git +swell):\n%s", diff)
	}
	if got := blameText(t, s, c.head(), "new", []byte("x\n")); got[0] != strings.Repeat("0", 40)+" new:1" {
		t.Errorf("a file that is in no commit: %v", got)
	}
	for _, file := range []string{"nothing", "a/b", "../a"} {
		if _, err := s.Blame(t.Context(), commit, file, nil); err == nil || !strings.Contains(err.Error(), "blame "+file+" at ") {
			t.Errorf("%s: got %v, want an error", file, err)
		}
	}
}

// TestMatches: what matches is equal, in order, and as much as there can be.
func TestMatches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text := func() []string {
			lines := make([]string, random.IntN(12))
			for i := range lines {
				lines[i] = strconv.Itoa(random.IntN(4))
			}
			return lines
		}
		a, b := text(), text()
		last, count := -1, 0
		for i, j := range matches(a, b) {
			if j < 0 {
				continue
			}
			if j <= last || a[j] != b[i] {
				t.Fatalf("%v %v: %v", a, b, matches(a, b))
			}
			last, count = j, count+1
		}
		if want := common(a, b); count != want {
			t.Fatalf("%v %v: %d lines match, want %d", a, b, count, want)
		}
	}
}

// common is the length of the longest common subsequence, by the book.
func common(a, b []string) int {
	table := make([][]int, len(a)+1)
	table[0] = make([]int, len(b)+1)
	for i := range a {
		table[i+1] = make([]int, len(b)+1)
		for j := range b {
			table[i+1][j+1] = max(table[i][j+1], table[i+1][j])
			if a[i] == b[j] {
				table[i+1][j+1] = table[i][j] + 1
			}
		}
	}
	return table[len(a)][len(b)]
}
