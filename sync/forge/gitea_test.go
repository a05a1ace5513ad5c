// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/forge/giteatest"
)

// git runs git in a folder, away from the configuration of whoever runs the tests.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes files and commits them.
func commit(t testing.TB, dir string, files ...string) config.Commit {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "change")
	return config.Commit(git(t, dir, "rev-parse", "HEAD"))
}

// sharedGitea is a real Gitea for the tests of this package.
var sharedGitea = &giteatest.Shared{}

func TestMain(m *testing.M) { os.Exit(devtest.Main(m, sharedGitea)) }

// newPull is a server with a repository and a pull request of a branch.
func newPull(t *testing.T) (s *giteatest.Server, owner giteatest.User, project, dir string, number int, head config.Commit) {
	t.Helper()
	s = sharedGitea.Server(t)
	owner = s.User(t, "ann")
	project = s.Repository(t, owner, "fleet")
	dir = t.TempDir()
	git(t, dir, "init", "-q")
	commit(t, dir, "a.yaml", "a: 1\n")
	git(t, dir, "push", "-q", s.CloneURL(owner, project), "HEAD:main")
	git(t, dir, "checkout", "-q", "-b", "change")
	head = commit(t, dir, "a.yaml", "a: 2\n")
	git(t, dir, "push", "-q", s.CloneURL(owner, project), "change")
	return s, owner, project, dir, s.Pull(t, owner, project, "change", "A change"), head
}

func newForge(t *testing.T, s *giteatest.Server, as giteatest.User, project string) Forge {
	t.Helper()
	on, err := New(Config{Type: Gitea, URL: s.URL, Project: project, Token: func() (string, error) { return as.Token, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return on
}

func TestGitea(t *testing.T) {
	s, owner, project, dir, number, head := newPull(t)
	bot := s.User(t, "bot", giteatest.BotScopes...)
	s.Do(t, owner, "PUT", "repos/"+project+"/collaborators/"+bot.Name, map[string]string{"permission": "write"}, nil)
	on := newForge(t, s, bot, project)

	t.Run("reads pull requests", func(t *testing.T) {
		open, err := on.Open(t.Context(), "main")
		if err != nil || len(open) != 1 {
			t.Fatalf("Open = %v, %v; want one", open, err)
		}
		got, err := on.Get(t.Context(), number)
		if err != nil || got != open[0] {
			t.Errorf("Get = %+v, %v; want %+v", got, err, open[0])
		}
		if got.Head != head || got.Base != "main" || got.Fork || !got.Open || got.Ref != "refs/heads/change" {
			t.Errorf("%+v", got)
		}
		if at := git(t, dir, "ls-remote", s.CloneURL(owner, project), got.Ref); !strings.HasPrefix(at, string(head)) {
			t.Errorf("%s is at %s, want %s", got.Ref, at, head)
		}
		if none, err := on.Open(t.Context(), "other"); err != nil || len(none) > 0 {
			t.Errorf("Open of another branch = %v, %v", none, err)
		}
		if _, err := on.Get(t.Context(), 4711); !IsNotFound(err) {
			t.Errorf("Get of none: %v", err)
		}
	})

	t.Run("keeps one comment", func(t *testing.T) {
		write := func(c Comment) int64 {
			t.Helper()
			c.Subject = "preview of shop"
			id, err := on.Comment(t.Context(), number, c)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		if id := write(Comment{Text: "nothing", OnlyAgain: true}); id != 0 {
			t.Errorf("made comment %d, want none", id)
		}
		// Somebody else may write the marker, but the comment is not ours.
		s.Do(t, owner, "POST", fmt.Sprintf("repos/%s/issues/%d/comments", project, number), map[string]string{"body": "<!-- swell: preview of shop: 1 -->\nall is well"}, nil)
		id := write(Comment{Text: "one"})
		if again := write(Comment{Text: "two", ID: id}); again != id {
			t.Errorf("comment %d, want %d", again, id)
		}
		if again := write(Comment{Text: "three"}); again != id {
			t.Errorf("without its ID: comment %d, want %d", again, id)
		}
		body := func() string {
			for _, c := range s.Comments(t, project, number) {
				if c.ID == id {
					return c.Body
				}
			}
			return ""
		}
		wrote := body()
		edited := map[string]string{"body": strings.Replace(wrote, "three", "all is well", 1)}
		s.Do(t, bot, "PATCH", fmt.Sprintf("repos/%s/issues/comments/%d", project, id), edited, nil)
		if write(Comment{Text: "three", ID: id}); body() != wrote {
			t.Errorf("after it was edited it is %q, want %q", body(), wrote)
		}
		course := Comment{Subject: "release of shop", Below: "preview of shop", Text: "canary: passed\n"}
		again, err := on.Comment(t.Context(), number, course)
		if err != nil || again != id || !strings.HasPrefix(body(), wrote) ||
			!strings.HasSuffix(strings.TrimSpace(body()), "-->\ncanary: passed") {
			t.Errorf("below it: %d, %v: %q", again, err, body())
		}
		if _, err := on.Comment(t.Context(), number, Comment{Subject: "preview of shop.eu", Text: "another"}); err != nil {
			t.Fatal(err)
		}
		s.Do(t, owner, "DELETE", fmt.Sprintf("repos/%s/issues/comments/%d", project, id), nil, nil)
		if again := write(Comment{Text: "four", ID: id}); again == id {
			t.Error("a comment that is gone was edited")
		}
		var ours []string
		for _, c := range s.Comments(t, project, number) {
			if c.User.Login == bot.Name {
				_, text, _ := strings.Cut(c.Body, "-->\n")
				ours = append(ours, text)
			}
		}
		if got := strings.Join(ours, ", "); got != "another, four" {
			t.Errorf("comments %q", got)
		}
	})

	t.Run("two at the same time leave one", func(t *testing.T) {
		var both errgroup.Group
		for range 4 {
			both.Go(func() error {
				_, err := newForge(t, s, bot, project).Comment(t.Context(), number, Comment{Subject: "race", Text: "text"})
				return err
			})
		}
		if err := both.Wait(); err != nil {
			t.Fatal(err)
		}
		if _, err := on.Comment(t.Context(), number, Comment{Subject: "race", Text: "text"}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range s.Comments(t, project, number) {
			if strings.HasPrefix(c.Body, "<!-- swell: race: ") {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d comments, want 1", n)
		}
	})

	t.Run("sets statuses", func(t *testing.T) {
		for _, state := range []State{Pending, Failure, Success} {
			status := Status{Commit: head, Name: "swell/shop", State: state, Text: strings.Repeat("ä", 200) + string(state), URL: "https://swell.example.com/p"}
			if err := on.SetStatus(t.Context(), status); err != nil {
				t.Fatal(err)
			}
			got := s.Statuses(t, project, string(head))["swell/shop"]
			if got.Status != string(state) || got.Description != strings.Repeat("ä", 137)+"..." || got.TargetURL != status.URL {
				t.Errorf("%+v", got)
			}
		}
		if err := on.Report(t.Context(), Report{}); err != ErrNoReports {
			t.Error(err)
		}
	})

	t.Run("tells who may not", func(t *testing.T) {
		revoked := newForge(t, s, giteatest.User{Token: "0123456789012345678901234567890123456789"}, project)
		if _, err := revoked.Comment(t.Context(), number, Comment{Subject: "x", Text: "y"}); !IsDenied(err) {
			t.Errorf("comment with no token: %v", err)
		}
	})

	t.Run("takes a change that was pushed without a branch for a fork's", func(t *testing.T) {
		max := s.User(t, "max") // he may only read
		git(t, dir, "checkout", "-q", "-b", "topic", "main")
		head := commit(t, dir, "c.yaml", "c: 1\n")
		git(t, dir, "push", "-q", s.CloneURL(max, project), "HEAD:refs/for/main/topic")
		open, err := on.Open(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(open, func(p Pull) bool { return p.Head == head })
		if at < 0 || !open[at].Fork {
			t.Errorf("open %+v", open)
		}
	})

	t.Run("knows forks and merges", func(t *testing.T) {
		eve := s.User(t, "eve")
		s.Do(t, eve, "POST", "repos/"+project+"/forks", map[string]string{}, nil)
		git(t, dir, "checkout", "-q", "-b", "fork", "main")
		forked := commit(t, dir, "b.yaml", "b: 1\n")
		git(t, dir, "push", "-q", s.CloneURL(eve, eve.Name+"/fleet"), "fork")
		n := s.Pull(t, eve, project, eve.Name+":fork", "From a fork")
		got, err := on.Get(t.Context(), n)
		if err != nil || !got.Fork || got.Head != forked {
			t.Fatalf("Get = %+v, %v", got, err)
		}
		if none, err := on.Merged(t.Context(), forked); err != nil || none.Number != 0 {
			t.Errorf("Merged before it is = %+v, %v", none, err)
		}
		var status error
		for range 50 { // Gitea finds out later whether it can be merged
			if status = s.Try(t.Context(), owner, "POST", fmt.Sprintf("repos/%s/pulls/%d/merge", project, n), map[string]string{"Do": "merge"}, nil); status == nil {
				break
			}
		}
		if status != nil {
			t.Fatal(status)
		}
		tip := config.Commit(strings.Fields(git(t, dir, "ls-remote", s.CloneURL(owner, project), "refs/heads/main"))[0])
		merged, err := on.Merged(t.Context(), tip)
		if err != nil || merged.Number != n || merged.Open || merged.Merge != tip {
			t.Errorf("Merged = %+v, %v; want %d", merged, err, n)
		}
	})
}
