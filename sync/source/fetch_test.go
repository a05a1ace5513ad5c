// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each way to reach a repository follows the branch through a clone, a poll
// without news, a small push, a large one, and a restart.
func TestFetch(t *testing.T) {
	for name, config := range map[string]func(*testing.T, *clone) Config{
		"http": func(t *testing.T, c *clone) Config { return Config{URL: serve(t, c).url()} },
		"ssh": func(t *testing.T, c *clone) Config {
			s := serveSSH(t)
			return Config{URL: "ssh://ann@" + s.addr + c.origin, Auth: s.auth}
		},
		"path":     func(t *testing.T, c *clone) Config { return Config{URL: c.origin} },
		"file url": func(t *testing.T, c *clone) Config { return Config{URL: "file://" + c.origin} },
		"not bare": func(t *testing.T, c *clone) Config { return Config{URL: c.dir} },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			cfg := config(t, c)
			cfg.Dir, cfg.Branch = t.TempDir(), "main"
			first := c.commit("a.yaml", "one", "dir/b.yaml", "two")
			c.push()
			s := follow(t, cfg)
			for range 2 {
				if got := fetch(t, s); got != first {
					t.Fatalf("Fetch = %s, want %s", got, first)
				}
			}
			if diff := cmp.Diff(map[string]string{"a.yaml": "one", "dir/b.yaml": "two"}, files(t, s, first)); diff != "" {
				t.Error(diff)
			}
			second := c.commit("a.yaml", "three")
			c.push()
			if got := fetch(t, s); got != second {
				t.Fatalf("Fetch = %s, want %s", got, second)
			}
			want := map[string]string{"a.yaml": "three", "dir/b.yaml": "two"}
			if diff := cmp.Diff(want, files(t, s, second)); diff != "" {
				t.Error(diff)
			}
			var many []string
			for i := range 2 * unpackObjects {
				name := "many/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
				many = append(many, name, name)
				want[name] = name
			}
			third := c.commit(many...)
			c.push()
			if got := fetch(t, s); got != third {
				t.Fatalf("Fetch = %s, want %s", got, third)
			}
			if diff := cmp.Diff(want, files(t, s, third)); diff != "" {
				t.Error(diff)
			}
			s.Close()
			s = follow(t, cfg)
			if diff := cmp.Diff(want, files(t, s, third)); diff != "" {
				t.Error("after a restart, before a fetch:", diff)
			}
			if got := fetch(t, s); got != third {
				t.Fatalf("Fetch = %s, want %s", got, third)
			}
			git(t, c.origin, "--git-dir", c.origin, "fsck", "--full", "--strict")
			if s.remote != nil {
				git(t, cfg.Dir, "--git-dir", cfg.Dir, "fsck", "--full", "--strict")
				if got := git(t, cfg.Dir, "--git-dir", cfg.Dir, "rev-parse", "HEAD"); got != string(third) {
					t.Errorf("git finds HEAD of the store at %s, want %s", got, third)
				}
			}
		})
	}
}

// A poll without news asks once and downloads nothing; a new source on an old
// store downloads what is new only.
func TestFetchAsksForNoMoreThanNeeded(t *testing.T) {
	c := newClone(t)
	srv := serve(t, c)
	cfg := Config{URL: srv.url(), Dir: t.TempDir()}
	c.commit("a", "1")
	c.push()
	s := follow(t, cfg)
	var sent []int64
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			sent = append(sent, r.ContentLength)
		}
		return false
	})
	step := func(what, want string) {
		t.Helper()
		fetch(t, s)
		if got := srv.requests(); got != want {
			t.Errorf("%s: requests %q, want %q", what, got, want)
		}
	}
	step("first", "GET POST")
	step("again", "GET")
	c.commit("a", "2")
	c.push()
	step("moved", "GET POST")
	s.Close()
	s = follow(t, cfg)
	step("after a restart", "GET")
	c.commit("a", "3")
	c.push()
	step("moved after a restart", "GET POST")
	if len(sent) != 3 || sent[0] >= sent[1] || sent[1] >= sent[2] {
		t.Errorf("requests of %d bytes; each has one commit more to tell of", sent)
	}
}

// A year of small pushes must not leave a pack for each.
func TestFetchUnpacksSmallPushes(t *testing.T) {
	c := newClone(t)
	cfg := Config{URL: serve(t, c).url(), Dir: t.TempDir()}
	s := follow(t, cfg)
	for _, content := range []string{"1", "2", "3", "4"} {
		c.commit("a", content)
		c.push()
		fetch(t, s)
	}
	left, err := filepath.Glob(filepath.Join(cfg.Dir, "objects", "pack", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("packs %v, error %v, want none", left, err)
	}
}

// Without a Branch, HEAD of the server says which one, at each fetch.
func TestFetchFollowsHead(t *testing.T) {
	for name, url := range map[string]func(*testing.T, *clone) string{
		"http": func(t *testing.T, c *clone) string { return serve(t, c).url() },
		"path": func(t *testing.T, c *clone) string { return c.origin },
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			first := c.commit("a", "1")
			c.push()
			cfg := Config{URL: url(t, c), Dir: t.TempDir()}
			s := follow(t, cfg)
			if got := fetch(t, s); got != first {
				t.Fatalf("Fetch = %s, want %s", got, first)
			}
			git(t, c.origin, "branch", "-m", "main", "trunk")
			if got := fetch(t, s); got != first {
				t.Errorf("renamed: Fetch = %s, want %s", got, first)
			}
			next := c.commit("a", "2")
			git(t, c.dir, "push", "-q", "origin", "HEAD:refs/heads/trunk")
			if got := fetch(t, s); got != next {
				t.Errorf("moved after it was renamed: Fetch = %s, want %s", got, next)
			}
			s.Close()
			git(t, c.origin, "update-ref", "refs/heads/trunk", string(first))
			if _, err := follow(t, cfg).Fetch(t.Context()); !errors.Is(err, ErrRewound) {
				t.Errorf("moved back after a restart: %v, want ErrRewound", err)
			}
		})
	}
}

func TestFetchRewound(t *testing.T) {
	// Each moves main of the origin, from a history of three commits.
	moves := map[string]func(*clone){
		"back":      func(c *clone) { git(c, c.dir, "reset", "-q", "--hard", "HEAD~2") },
		"amended":   func(c *clone) { git(c, c.dir, "commit", "-q", "--amend", "-m", "better") },
		"unrelated": func(c *clone) { git(c, c.dir, "checkout", "-q", "--orphan", "other"); c.commit("a", "other") },
		"side":      func(c *clone) { git(c, c.dir, "reset", "-q", "--hard", "HEAD~1"); c.commit("b", "side") },
	}
	remotes := map[string]func(*testing.T, *clone) (string, func() string){
		"http": func(t *testing.T, c *clone) (string, func() string) {
			srv := serve(t, c)
			return srv.url(), srv.requests
		},
		"path": func(t *testing.T, c *clone) (string, func() string) {
			return c.origin, func() string { return "GET" }
		},
	}
	for how, move := range moves {
		for where, url := range remotes {
			t.Run(how+" over "+where, func(t *testing.T) {
				c := newClone(t)
				c.commit("a", "1")
				c.commit("a", "2")
				good := c.commit("a", "3")
				c.push()
				at, requests := url(t, c)
				cfg := Config{URL: at, Dir: t.TempDir(), Branch: "main"}
				s := follow(t, cfg)
				fetch(t, s)
				move(c)
				moved := c.push()

				for _, when := range []string{"at first", "again"} {
					requests()
					if got, err := s.Fetch(t.Context()); !errors.Is(err, ErrRewound) {
						t.Fatalf("%s: Fetch = %q, %v, want ErrRewound", when, got, err)
					}
					if diff := cmp.Diff(map[string]string{"a": "3"}, files(t, s, good)); diff != "" {
						t.Errorf("%s: last good commit: %s", when, diff)
					}
				}
				if got := requests(); got != "GET" {
					t.Errorf("requests while held: %q, want one GET", got)
				}
				s.Close()
				s = follow(t, cfg)
				if _, err := s.Fetch(t.Context()); !errors.Is(err, ErrRewound) {
					t.Errorf("after a restart: %v, want ErrRewound", err)
				}
				s.Close()
				lost := cfg
				lost.Dir, lost.Followed = t.TempDir(), good
				for range 2 {
					if got, err := follow(t, lost).Fetch(t.Context()); !errors.Is(err, ErrRewound) {
						t.Errorf("after the loss of the folder: Fetch = %q, %v, want ErrRewound", got, err)
					}
				}
				git(t, c.dir, "branch", "-f", "elsewhere", "HEAD")
				git(t, c.dir, "push", "-q", "-f", "origin", "elsewhere")
				lost.Branch = "elsewhere"
				if got, err := follow(t, lost).Fetch(t.Context()); !errors.Is(err, ErrRewound) {
					t.Errorf("another branch: Fetch = %q, %v, want ErrRewound", got, err)
				}

				cfg.AllowRewind = true
				if got := fetch(t, follow(t, cfg)); got != moved {
					t.Errorf("allowed: Fetch = %s, want %s", got, moved)
				}
			})
		}
	}
}

// The history is walked once for a branch that is held, and not at each poll.
func TestFetchRewoundIsRemembered(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	s := follow(t, Config{URL: c.dir, Branch: "main"})
	fetch(t, s)
	git(t, c.dir, "checkout", "-q", "--orphan", "other")
	root := c.commit("a", "2")
	c.commit("a", "3")
	git(t, c.dir, "branch", "-f", "main", "other")
	for range 2 {
		if _, err := s.Fetch(t.Context()); !errors.Is(err, ErrRewound) {
			t.Errorf("%v, want ErrRewound", err)
		}
		// Another walk would miss this commit.
		os.Remove(filepath.Join(c.dir, ".git/objects", string(root[:2]), string(root[2:])))
		s.objects.cache.Clear()
	}
}

// A branch that was held is followed again once it has the good commit in its
// history: here by a merge.
func TestFetchRewoundAndBack(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	good := c.commit("a", "2")
	c.push()
	s := follow(t, Config{URL: serve(t, c).url(), Dir: t.TempDir()})
	fetch(t, s)
	git(t, c.dir, "reset", "-q", "--hard", "HEAD~1")
	c.commit("b", "1")
	c.push()
	if _, err := s.Fetch(t.Context()); !errors.Is(err, ErrRewound) {
		t.Fatalf("%v, want ErrRewound", err)
	}
	git(t, c.dir, "merge", "-q", "-m", "merge", string(good))
	if merged := c.push(); fetch(t, s) != merged {
		t.Errorf("the merge was not followed")
	}
}

func TestFetchBranchGone(t *testing.T) {
	remotes := map[string]func(*testing.T, *clone) Config{
		"http": func(t *testing.T, c *clone) Config { return Config{URL: serve(t, c).url()} },
		"ssh": func(t *testing.T, c *clone) Config {
			s := serveSSH(t)
			return Config{URL: "ssh://" + s.addr + c.origin, Auth: s.auth}
		},
		"path": func(t *testing.T, c *clone) Config { return Config{URL: c.origin} },
	}
	for where, config := range remotes {
		for _, branch := range []string{"main", ""} {
			t.Run(fmt.Sprintf("%s, branch %q", where, branch), func(t *testing.T) {
				c := newClone(t)
				cfg := config(t, c)
				cfg.Dir, cfg.Branch = t.TempDir(), branch
				s := follow(t, cfg)
				gone := func(when string) {
					t.Helper()
					if got, err := s.Fetch(t.Context()); !errors.Is(err, ErrBranchGone) {
						t.Errorf("%s: Fetch = %q, %v, want ErrBranchGone", when, got, err)
					}
				}
				gone("empty repository")
				good := c.commit("a", "1")
				c.push()
				fetch(t, s)
				git(t, c.origin, "branch", "kept", "main")
				git(t, c.origin, "update-ref", "-d", "refs/heads/main")
				gone("deleted")
				files(t, s, good)
				c.push()
				if got := fetch(t, s); got != good {
					t.Errorf("back again: Fetch = %s, want %s", got, good)
				}
			})
		}
	}
}

// Repositories that answer well and cannot be followed.
func TestFetchRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		make func(*testing.T, *clone)
		want string
	}{
		"shallow": {func(t *testing.T, c *clone) {
			write(t, filepath.Join(c.origin, "shallow"), string(c.head())+"\n")
		}, `fetch: the repository on the server is a shallow clone, which has no full history$`},
		"HEAD is a commit": {func(t *testing.T, c *clone) {
			git(t, c.origin, "update-ref", "--no-deref", "HEAD", string(c.head()))
		}, `fetch: HEAD is at a commit and not at a branch; name the branch to follow$`},
		"HEAD is no branch": {func(t *testing.T, c *clone) {
			git(t, c.origin, "update-ref", "refs/other/x", string(c.head()))
			git(t, c.origin, "symbolic-ref", "HEAD", "refs/other/x")
		}, `fetch: HEAD is at "refs/other/x", which is not a branch; name the branch to follow$`},
		"HEAD names nothing": {func(t *testing.T, c *clone) {
			git(t, c.origin, "symbolic-ref", "HEAD", "refs/heads/none")
		}, `not found`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			c.commit("a", "1")
			c.push()
			test.make(t, c)
			_, err := follow(t, Config{URL: serve(t, c).url(), Dir: t.TempDir()}).Fetch(t.Context())
			checkMessage(t, err, test.want)
		})
	}
}

// Whatever a server does, the last good commit stays, one line says what
// happened, and the next fetch works when the server does.
func TestFetchFaults(t *testing.T) {
	answer := func(status int, kind, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(status)
			io.WriteString(w, body)
			return true
		}
	}
	const refs = "application/x-git-upload-pack-advertisement"
	// onPost lets the list of refs through and breaks the download.
	onPost := func(do func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodPost && do(w, r) }
	}
	hangUp := func(w http.ResponseWriter, r *http.Request) bool { panic(http.ErrAbortHandler) }
	for name, test := range map[string]struct {
		do   func(http.ResponseWriter, *http.Request) bool
		want string // regular expression
	}{
		"401":           {answer(401, "text/plain", "who are you\nreally"), `fetch: status 401 Unauthorized, retry after "30": "who are you really"$`},
		"403":           {answer(403, "text/html", "<html>no"), `fetch: status 403 Forbidden`},
		"404":           {answer(404, "text/plain", ""), `fetch: status 404 Not Found`},
		"429":           {answer(429, "text/plain", "slow down"), `status 429 Too Many Requests, retry after "30": "slow down"$`},
		"500":           {answer(500, "text/html", strings.Repeat("<p>", 1<<20)), `status 500 Internal Server Error`},
		"204":           {answer(204, refs, ""), `status 204 No Content`},
		"page":          {answer(200, "text/html; charset=utf-8", "<html>log in"), `does not speak Git there: status 200 with content type "text/html"$`},
		"nothing":       {answer(200, refs, ""), `malformed answer: empty input$`},
		"garbage":       {answer(200, refs, "hello, I am a server"), `malformed answer: invalid pkt-len found$`},
		"hangs up":      {hangUp, `the server closed the connection: EOF$`},
		"500 on post":   {onPost(answer(500, "text/plain", "out of memory")), `status 500 Internal Server Error.*out of memory`},
		"page on post":  {onPost(answer(200, "text/html", "<html>")), `does not speak Git`},
		"cut off":       {onPost(hangUp), `the server closed the connection: EOF$`},
		"error on post": {onPost(answer(200, "application/x-git-upload-pack-result", "0015ERR access denied")), `access denied$`},
		"empty pack":    {onPost(answer(200, "application/x-git-upload-pack-result", "0008NAK\n0000")), `empty packfile`},
		"not a pack":    {onPost(answer(200, "application/x-git-upload-pack-result", "0008NAK\n0011\x01hello worlds0000")), `downloaded pack: malformed pack file signature`},
		"says an error": {onPost(answer(200, "application/x-git-upload-pack-result", "0008NAK\n000f\x03disk full\n0000")), `disk full$`},
		"redirect": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/x.git/info/refs", http.StatusFound)
			return true
		}, `connection refused`},
		"redirect to me": {func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
			return true
		}, `too many redirects`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			good := c.commit("a", "1")
			c.push()
			srv := serve(t, c)
			cfg := Config{URL: strings.Replace(srv.url(), "://", "://ann:secret%2Fword@", 1), Dir: t.TempDir()}
			s := follow(t, cfg)
			fetch(t, s)
			next := c.commit("a", "2")
			c.push()

			srv.intercept(test.do)
			got, err := s.Fetch(t.Context())
			if err == nil || errors.Is(err, ErrRewound) || errors.Is(err, ErrBranchGone) {
				t.Fatalf("Fetch = %q, %v", got, err)
			}
			checkMessage(t, err, test.want)
			busy, ok := errors.AsType[*Busy](err)
			if refused := strings.Contains(test.want, "status ") && !strings.Contains(test.want, "speak"); refused != ok {
				t.Errorf("it asks to be left alone: %t, want %t", ok, refused)
			} else if ok && busy.RetryAfter() != 30*time.Second {
				t.Errorf("it is left alone for %s, want 30s", busy.RetryAfter())
			}
			if diff := cmp.Diff(map[string]string{"a": "1"}, files(t, s, good)); diff != "" {
				t.Error("last good commit:", diff)
			}
			if left := leftovers(t, cfg.Dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			srv.intercept(nil)
			if got := fetch(t, s); got != next {
				t.Errorf("afterwards: Fetch = %s, want %s", got, next)
			}
		})
	}
}

// checkMessage wants one line that matches and has no secrets of the tests.
func checkMessage(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	text := strings.ReplaceAll(err.Error(), "(secret)", "(hidden)")
	if !regexp.MustCompile(want).MatchString(text) {
		t.Errorf("error %q, want %q", text, want)
	}
	if strings.Contains(text, "\n") || len(text) > 600 {
		t.Errorf("not one short line: %q", text)
	}
	for _, secret := range []string{"secret", "ann:", "t0ken"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q in %q", secret, text)
		}
	}
}

// leftovers are unfinished files of a store.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	var left []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(d.Name(), "tmp_") || strings.HasPrefix(d.Name(), "objects.") {
			left = append(left, path)
		}
		return err
	})
	return left
}

// A server that accepts and is then silent must not hold a fetch for longer
// than its context, nor trees at all.
func TestFetchBlackHole(t *testing.T) {
	c := newClone(t)
	good := c.commit("a", "1")
	c.push()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := silent.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				reached <- struct{}{}
				io.Copy(io.Discard, conn) // until the client goes
			})
		}
	})
	t.Cleanup(func() { silent.Close(); conns.Wait() })
	auth := serveSSH(t).auth

	for _, url := range []string{"http://" + silent.Addr().String() + "/origin.git", "ssh://" + silent.Addr().String() + "/origin.git"} {
		t.Run(url[:4], func(t *testing.T) {
			dir := t.TempDir()
			fill := follow(t, Config{URL: serve(t, c).url(), Dir: dir})
			fetch(t, fill)
			fill.Close()
			s := follow(t, Config{URL: url, Dir: dir, Auth: auth})
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			go func() {
				_, err := s.Fetch(ctx)
				done <- err
			}()
			<-reached
			if diff := cmp.Diff(map[string]string{"a": "1"}, files(t, s, good)); diff != "" {
				t.Error(diff)
			}
			// Another fetch waits for the first, and no longer than it may.
			over, stop := context.WithCancel(t.Context())
			stop()
			if _, err := s.Fetch(over); !errors.Is(err, context.Canceled) {
				t.Errorf("second fetch: %v, want canceled", err)
			}
			cancel(context.DeadlineExceeded)
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want deadline exceeded", err)
			}
		})
	}
}

// A server that stops in the middle of the pack.
func TestFetchStalls(t *testing.T) {
	c := newClone(t)
	good := c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	dir := t.TempDir()
	s := follow(t, Config{URL: srv.url(), Dir: dir})
	fetch(t, s)
	c.commit("a", "2")
	c.push()
	reached, release := make(chan struct{}), make(chan struct{})
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		io.WriteString(w, "0008NAK\n0010\x01PACK")
		w.(http.Flusher).Flush()
		close(reached)
		<-release
		return true
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Fetch(ctx)
		done <- err
	}()
	<-reached
	files(t, s, good)
	cancel()
	err := <-done
	close(release)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFetchUnreachable(t *testing.T) {
	const nobody = "127.0.0.1:1" // a port that was free a moment ago may be anybody's by now
	auth := serveSSH(t).auth
	for _, scheme := range []string{"http", "ssh"} {
		s := follow(t, Config{URL: scheme + "://" + nobody + "/x.git", Dir: t.TempDir(), Auth: auth})
		_, err := s.Fetch(t.Context())
		checkMessage(t, err, `^`+scheme+`://[^/]*/x.git: fetch: dial tcp .*: connection refused$`)
	}
}
