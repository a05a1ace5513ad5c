// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha1"
	"fmt"
	"strings"
	"testing"

	"github.com/swell-sh/swell/config"
)

func TestResolve(t *testing.T) {
	c := newClone(t)
	first := c.commit("a", "1")
	git(t, c.dir, "tag", "v1.0")
	c.commit("a", "2")
	git(t, c.dir, "tag", "-a", "-m", "annotated", "v1.1")
	git(t, c.dir, "tag", "-a", "-m", "of a tag", "v1.1.again", "v1.1")
	c.push()
	git(t, c.dir, "fetch", "-q", "origin")
	git(t, c.dir, "remote", "set-head", "origin", "main")
	git(t, c.dir, "checkout", "-q", "-b", "feature/x", "HEAD~1")
	side := c.commit("b", "1")
	git(t, c.dir, "checkout", "-q", "main")
	git(t, c.dir, "merge", "-q", "-m", "merge", "feature/x")
	c.commit("a", "3")
	git(t, c.dir, "branch", "cafe", string(first)) // a name that could be a hash
	git(t, c.dir, "branch", string(side[:7]), string(first))
	git(t, c.dir, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
	git(t, c.dir, "tag", "main", "v1.0") // a tag and a branch of one name: the tag wins
	blob := git(t, c.dir, "rev-parse", "HEAD:a")
	git(t, c.dir, "tag", "blob", blob)

	check := func(when string) {
		t.Helper()
		s := local(t, c)
		for _, rev := range []string{
			"HEAD", "@", "HEAD~", "HEAD~1", "HEAD~2", "HEAD^", "HEAD~1^2", "HEAD^^", "HEAD~~", "HEAD~1^2~1", "HEAD^0", "HEAD~0",
			"HEAD^{commit}", "HEAD^{}", "@~1", "HEAD~2^{commit}~1",
			"heads/main", "refs/heads/main", "main", "feature/x", "feature/x~1", "alias",
			"v1.0", "v1.1", "v1.1^{}", "v1.1~1", "v1.1.again", "tags/v1.1", "refs/tags/v1.1",
			"origin/main", "origin", "origin/main~1", "remotes/origin/main", "refs/remotes/origin/HEAD",
			"cafe", string(side[:7]), string(first), string(first[:12]), string(first[:8]) + "^{commit}", strings.ToUpper(string(first[:9])),
			git(t, c.dir, "rev-parse", "v1.1"), git(t, c.dir, "rev-parse", "v1.1")[:10],
		} {
			want := git(t, c.dir, "rev-parse", "-q", "--verify", rev+"^{commit}")
			if got, err := s.Resolve(rev); err != nil || string(got) != want {
				t.Errorf("%s: Resolve(%q) = %s, %v, want %s", when, rev, got, err, want)
			}
		}
		for rev, want := range map[string]string{
			"":                          `revision "": want a branch, a tag or a hash`,
			"none":                      `revision "none": no such branch, tag or commit`,
			"none~1":                    `revision "none~1": no such branch, tag or commit`,
			"abc":                       `no such branch, tag or commit`,
			"0000000":                   `no such branch, tag or commit`,
			strings.Repeat("0", 40):     `not in the repository`,
			blob:                        blob + ` is a blob, not a commit`,
			blob[:10]:                   `no such branch, tag or commit`,
			"blob":                      blob + ` is a blob, not a commit`,
			"HEAD~9":                    `commit ` + first.Short() + ` is the first of its history`,
			"HEAD^2":                    `has 1 parents; there is no number 2`,
			"HEAD^{tree}":               `^{tree} is not known; want ^{commit}`,
			"HEAD^{/merge}":             `^{/merge} is not known; want ^{commit}`,
			"HEAD^!":                    `"!" is not known; want ~N, ^N or ^{commit}`,
			"HEAD~99999999999999999999": `not a number of commits`,
			"main..feature/x":           `want a branch, a tag or a hash`,
			"main@{1}":                  `want a branch, a tag or a hash`,
			":/merge":                   `want a branch, a tag or a hash`,
			"HEAD:a":                    `want a branch, a tag or a hash`,
			"../config":                 `want a branch, a tag or a hash`,
			"config":                    `no such branch, tag or commit`,
			"a\nb":                      `revision "a\nb": no such branch, tag or commit`,
		} {
			if got, err := s.Resolve(rev); err == nil || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%s: Resolve(%q) = %s, %v, want %s", when, rev, got, err, want)
			}
		}
	}
	check("loose")
	git(t, c.dir, "pack-refs", "--all")
	git(t, c.dir, "repack", "-adq")
	check("packed")
}

func TestResolveAmbiguous(t *testing.T) {
	c := newClone(t)
	// Of 40 commits two begin with the same two digits, and of more with four.
	seen := map[string]config.Commit{}
	c.commit("a", "1")
	tree := git(t, c.dir, "rev-parse", "HEAD^{tree}")
	text := map[config.Commit]string{}
	for i := 0; ; i++ {
		content := fmt.Sprintf("tree %s\nauthor A <a@example.com> 1700000000 +0000\ncommitter A <a@example.com> %d +0000\n\nx\n", tree, 1700000000+i)
		commit := config.Commit(fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "commit %d\x00%s", len(content), content))))
		text[commit] = content
		other, ok := seen[string(commit[:4])]
		if !ok {
			seen[string(commit[:4])] = commit
			continue
		}
		for _, one := range []config.Commit{other, commit} {
			if got := gitWith(t, c.dir, text[one], "hash-object", "-t", "commit", "-w", "--stdin"); got != string(one) {
				t.Fatalf("git calls it %s, want %s", got, one)
			}
		}
		_, err := local(t, c).Resolve(string(commit[:4]))
		if err == nil || !strings.Contains(err.Error(), "ambiguous: 2 commits begin with it") || !strings.Contains(err.Error(), string(other)) {
			t.Errorf("%v, want both %s and %s", err, commit, other)
		}
		return
	}
}

// The store of a remote repository knows the branches that were followed.
func TestResolveInStore(t *testing.T) {
	c := newClone(t)
	first := c.commit("a", "1")
	second := c.commit("a", "2")
	c.push()
	s := follow(t, Config{URL: serve(t, c).url(), Dir: t.TempDir()})
	if _, err := s.Resolve("HEAD"); err == nil {
		t.Error("HEAD before the first fetch: no error")
	}
	fetch(t, s)
	for rev, want := range map[string]config.Commit{"HEAD": second, "main": second, "main~1": first, string(first[:10]): first} {
		if got, err := s.Resolve(rev); err != nil || got != want {
			t.Errorf("Resolve(%q) = %s, %v, want %s", rev, got, err, want)
		}
	}
}

func TestResolveShallow(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	head := c.commit("a", "2")
	c.push()
	shallow := &clone{t, t.TempDir(), ""}
	git(t, shallow.dir, "clone", "-q", "--depth=1", "file://"+c.origin, ".")
	s := local(t, shallow)
	if got, err := s.Resolve("HEAD"); err != nil || got != head {
		t.Errorf("Resolve = %s, %v, want %s", got, err, head)
	}
	_, err := s.Resolve("HEAD~1")
	checkMessage(t, err, `the history ends at `+head.Short()+`: the clone is shallow$`)
}
