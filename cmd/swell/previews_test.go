// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	gosync "sync"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/render/report/reporttest"
	"github.com/swell-sh/swell/sync/forge/giteatest"
)

// reviewed is a repository with the example on a real Gitea, a work tree of it, and a daemon
// that previews its pull requests. Ann owns it, bot is the account of the daemon, eve has a
// fork.
type reviewed struct {
	testing.TB
	gitea         *giteatest.Server
	ann, bot, eve giteatest.User
	project       string
	dir           string        // the work tree
	config        string        // the daemon's
	web           string        // where it listens
	patience      time.Duration // of eventually
	process       *os.Process   // that of the daemon, once it runs
}

const hookSecret = "wave after wave"

// newReviewed starts no daemon yet. access is what its configuration says of clusters.
func newReviewed(t *testing.T, access string) *reviewed {
	t.Helper()
	return newReviewedOf(t, access, func(r *reviewed) {
		if err := os.CopyFS(r.dir, os.DirFS("../../testdata/monorepo")); err != nil {
			t.Fatal(err)
		}
		r.git("init", "-q", "-b", "main")
		r.commit("The example")
	})
}

// newReviewedOf is the same with another repository, whose branch main fill makes.
func newReviewedOf(t testing.TB, access string, fill func(*reviewed)) *reviewed {
	t.Helper()
	r := &reviewed{TB: t, gitea: sharedForge.Server(t), dir: t.TempDir(), patience: 2 * time.Minute}
	r.ann, r.bot, r.eve = r.gitea.User(t, "ann"), r.gitea.User(t, "bot", giteatest.BotScopes...), r.gitea.User(t, "eve")
	r.project = r.gitea.Repository(t, r.ann, "fleet")
	r.gitea.Do(t, r.ann, "PUT", "repos/"+r.project+"/collaborators/"+r.bot.Name, map[string]string{"permission": "write"}, nil)
	fill(r)
	r.git("push", "-q", r.gitea.CloneURL(r.ann, r.project), "main")
	r.gitea.Do(t, r.eve, "POST", "repos/"+r.project+"/forks", map[string]string{}, nil)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	r.web = "http://" + address
	home := t.TempDir()
	r.config = filepath.Join(home, "daemon.yaml")
	text := fmt.Sprintf(`apiVersion: swell.sh/v1
kind: Daemon
metadata: {name: test}
spec:
  repository: {url: %q, branch: main, poll: 1h, username: %s, tokenFile: token}
  api: {socket: %s/s}
  web: {listen: %q, url: %q, hookSecretFile: secret}
  previews:
    forge: {type: gitea, tokenFile: token}
    poll: 1h
%s`, r.gitea.URL+"/"+r.project+".git", r.bot.Name, socketDir(t), address, r.web, access)
	if err := errors.Join(os.WriteFile(r.config, []byte(text), 0o600), os.WriteFile(filepath.Join(home, "token"), []byte(r.bot.Token+"\n"), 0o600),
		os.WriteFile(filepath.Join(home, "secret"), []byte(hookSecret+"\n"), 0o600), os.MkdirAll(filepath.Join(home, "clusters"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r.gitea.Do(t, r.ann, "POST", "repos/"+r.project+"/hooks", map[string]any{"type": "gitea", "active": true, "events": []string{"push", "pull_request", "pull_request_sync"},
		"config": map[string]string{"url": r.web + "/hook", "content_type": "json", "secret": hookSecret}}, nil)
	return r
}

// socketDir is a folder whose path is short enough for a socket.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (r *reviewed) git(args ...string) string {
	r.Helper()
	return gitIn(r.TB, r.dir, args...)
}

func (r *reviewed) commit(subject string) string {
	r.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", subject)
	return r.git("rev-parse", "HEAD")
}

// edit replaces text in a file.
func (r *reviewed) edit(name, old, is string) {
	r.Helper()
	file := filepath.Join(r.dir, name)
	content, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(content), old) {
		r.Fatalf("%s: no %q in it: %v", name, old, err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(content), old, is)), 0o644); err != nil {
		r.Fatal(err)
	}
}

// branch begins a branch at main.
func (r *reviewed) branch(name string) {
	r.Helper()
	r.git("checkout", "-q", "-B", name, "main")
}

// push pushes a branch of ann, and returns its commit.
func (r *reviewed) push(name string) string {
	r.Helper()
	commit := r.commit("Change of " + name)
	r.git("push", "-q", "-f", r.gitea.CloneURL(r.ann, r.project), "HEAD:"+name)
	return commit
}

// propose pushes a branch of ann and opens a pull request for it.
func (r *reviewed) propose(name, title string) (number int, head string) {
	r.Helper()
	head = r.push(name)
	return r.gitea.Pull(r.TB, r.ann, r.project, name, title), head
}

// run runs the daemon until the test ends, or stop is called.
func (r *reviewed) run() (stop func()) {
	r.Helper()
	cmd := program(r.Context(), "run", "-c", r.config)
	log := &safeBuffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.process = cmd.Process
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait()
	}()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // or it has ended
		<-over
	}
	r.Cleanup(func() {
		stop()
		if r.Failed() {
			r.Logf("the daemon said:\n%s", log.String())
		}
	})
	return stop
}

// eventually waits until something is so. what is said when it never is.
func (r *reviewed) eventually(what string, so func() bool) {
	r.Helper()
	// Gitea starts two programs for a request about a repository: what takes its time is asked for more rarely.
	pause := 100 * time.Millisecond
	for limit := time.Now().Add(r.patience); ; time.Sleep(pause) {
		if so() {
			return
		}
		pause = min(2*pause, time.Second)
		if time.Now().After(limit) {
			r.Fatalf("never: %s", what)
		}
	}
}

// preview waits for the status of a commit to be final, and returns it with our comments on
// the pull request.
func (r *reviewed) preview(number int, commit string) (status giteatest.Status, comments []string) {
	r.Helper()
	r.eventually("a status of "+commit, func() bool {
		status = r.gitea.Statuses(r.TB, r.project, commit)["swell/shop"]
		return status.Status == "success" || status.Status == "failure"
	})
	for _, c := range r.gitea.Comments(r.TB, r.project, number) {
		if c.User.Login == r.bot.Name {
			comments = append(comments, c.Body)
		}
	}
	return status, comments
}

// show writes our comments on a pull request, and the page behind the link where there is one,
// into the folder SWELL_EXAMPLES, where it is set.
func (r *reviewed) show(name string, number int, link string) {
	r.Helper()
	dir := os.Getenv("SWELL_EXAMPLES")
	if dir == "" {
		return
	}
	text := ""
	for _, c := range r.gitea.Comments(r.TB, r.project, number) {
		if c.User.Login == r.bot.Name {
			text += c.Body + "\n"
		}
	}
	err := os.WriteFile(filepath.Join(dir, name+".md"), []byte(text), 0o644)
	if link != "" {
		_, _, page := fetchPage(r.TB, link)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name+".html"), []byte(page), 0o644))
	}
	if err != nil {
		r.Fatal(err)
	}
}

// has fails the test where a text lacks something.
func (r *reviewed) has(text string, wanted ...string) {
	r.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			r.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func fetchPage(t testing.TB, url string) (status int, header http.Header, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(content)
}

// Pull requests on a real Gitea get a comment, a status and a page, by webhooks alone.
func TestPreviews(t *testing.T) {
	r := newReviewed(t, "  kubeconfigDir: clusters\n")
	r.run()
	r.branch("good")
	r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.5.0")
	number, head := r.propose("good", "A good change")
	status, comments := r.preview(number, head)
	if status.Status != "success" || len(comments) != 1 {
		t.Fatalf("%+v, %d comments", status, len(comments))
	}
	r.has(comments[0], "cart:1.4.2", "cart:1.5.0", "services/shop/cart", "How it is released", "wave canary", "[All of it](<"+status.TargetURL+">)")
	r.show("good", number, status.TargetURL)
	code, header, page := fetchPage(t, status.TargetURL)
	if code != http.StatusOK || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page: %d, %v", code, header)
	}
	r.has(page, "cart:1.5.0", "wave canary", fmt.Sprintf("<title>Pull request %d: swell</title>", number), fmt.Sprintf("/%s/pulls/%d\">Pull request %d</a>", r.project, number, number))
	if code, _, _ := fetchPage(t, status.TargetURL[:len(status.TargetURL)-1]+"g"); code != http.StatusNotFound {
		t.Errorf("another link: %d", code)
	}

	t.Run("a problem", func(t *testing.T) {
		r := r.on(t)
		r.git("checkout", "-q", "good")
		r.edit("services/shop/cart/runtime.yaml", "replicas:", "replicsa:")
		head := r.push("good")
		status, comments := r.preview(number, head)
		if status.Status != "failure" || len(comments) != 1 {
			t.Errorf("%+v, %d comments", status, len(comments))
		}
		r.has(comments[0], "services/shop/cart/runtime.yaml:6:3", "replicsa", "did you mean")
		r.show("problem", number, status.TargetURL)
	})

	t.Run("a fork", func(t *testing.T) {
		r := r.on(t)
		r.branch("fork")
		r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:6.6.6")
		head := r.commit("A change of Eve")
		r.git("push", "-q", r.gitea.CloneURL(r.eve, r.eve.Name+"/fleet"), "HEAD:fork")
		number := r.gitea.Pull(t, r.eve, r.project, r.eve.Name+":fork", "@"+r.ann.Name+" look")
		status, comments := r.preview(number, head)
		if status.Status != "success" || len(comments) != 1 {
			t.Errorf("%+v, %d comments", status, len(comments))
		}
		r.has(comments[0], "cart:6.6.6", "another repository")
		r.show("fork", number, status.TargetURL)
	})

	t.Run("a kind", func(t *testing.T) {
		r := r.on(t)
		r.branch("kind")
		r.edit("kinds/runtime/kind.yaml", "replicas: \"${has", "revisionHistoryLimit: 4\n        replicas: \"${has")
		number, head := r.propose("kind", "A kind")
		status, comments := r.preview(number, head)
		if status.Status != "success" || len(comments) != 1 {
			t.Errorf("%+v, %d comments", status, len(comments))
		}
		r.has(comments[0], "like it", "revisionHistoryLimit")
	})

	t.Run("what a fork may try", func(t *testing.T) {
		r := r.on(t)
		fork := func(name string) (number int, head string) {
			head = r.commit("A change of Eve")
			r.git("push", "-q", "-f", r.gitea.CloneURL(r.eve, r.eve.Name+"/fleet"), "HEAD:"+name)
			return r.gitea.Pull(t, r.eve, r.project, r.eve.Name+":"+name, name), head
		}
		r.branch("loop")
		r.edit("kinds/runtime/kind.yaml", "- {name: replicas, value:", "- {name: loop, value: \"lists.range(100000).map(x, lists.range(100000)).size()\"}\n  - {name: replicas, value:")
		loops, looping := fork("loop")

		r.branch("large")
		if err := os.WriteFile(filepath.Join(r.dir, "services", "shop", "cart", "cart.toml"), bytes.Repeat([]byte("# 0123456789012345678901234567890123456789012345\n"), 1<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		larges, large := fork("large")

		r.branch("names") // a comment is no place for what authors write
		r.edit("services/shop/cart/cart.toml", "[cart]", "[cart]\n# </code></pre></details>```\n# @"+r.ann.Name+" ![](https://evil.example.com/x.png) <img src=x onerror=alert(1)>")
		names, named := fork("names")

		// None of it holds up one of ours.
		r.branch("ours")
		r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.7.0")
		if status, _ := r.preview(r.propose("ours", "Ours")); status.Status != "success" {
			t.Errorf("%+v", status)
		}
		for what, one := range map[string]struct {
			number int
			head   string
			text   string
		}{"a loop": {loops, looping, "problem"}, "50 MiB": {larges, large, "problem"}} {
			status, comments := r.preview(one.number, one.head)
			if status.Status != "failure" || !strings.Contains(status.Description, one.text) || len(comments) != 1 {
				t.Errorf("%s: %+v, %d comments", what, status, len(comments))
			}
			t.Logf("%s: %s", what, comments[0][:min(len(comments[0]), 800)])
		}
		status, comments := r.preview(names, named)
		if status.Status != "success" || len(comments) != 1 {
			t.Fatalf("%+v, %d comments", status, len(comments))
		}
		_, comment, _ := strings.Cut(comments[0], "\n") // without the marker, which is a comment of HTML
		if objection := reporttest.Objection(comment, func(text string) bool { return strings.Contains(text, "evil") || strings.Contains(text, "onerror") }); objection != "" {
			t.Errorf("%s\n%s", objection, comment)
		}
		if _, _, page := fetchPage(t, status.TargetURL); strings.Contains(page, "<img") || strings.Contains(page, "</code></pre>") {
			t.Error("the page has an author's HTML")
		}
	})

	t.Run("no change", func(t *testing.T) {
		r := r.on(t)
		r.branch("nothing")
		if err := os.WriteFile(filepath.Join(r.dir, "README.md"), []byte("hello\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		number, head := r.propose("nothing", "Words")
		status, comments := r.preview(number, head)
		if status.Status != "success" || status.Description != "no changes" || len(comments) != 0 {
			t.Errorf("%+v, %d comments", status, len(comments))
		}
	})

	t.Run("the token is revoked", func(t *testing.T) {
		r := r.on(t)
		status := func() string {
			out, _ := verb(t.Context(), "", "status", "-c", r.config)
			return out
		}
		token := filepath.Join(filepath.Dir(r.config), "token")
		if err := os.WriteFile(token, []byte("0123456789012345678901234567890123456789\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.branch("revoked")
		r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.8.0")
		number, head := r.propose("revoked", "A change while nobody may write")
		r.eventually("a condition", func() bool {
			text := status()
			return strings.Contains(text, "\nforge: previews: ") && strings.Contains(text, "401 Unauthorized")
		})
		t.Log(status())
		if err := os.WriteFile(token, []byte(r.bot.Token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if status, comments := r.preview(number, head); status.Status != "success" || len(comments) != 1 {
			t.Errorf("%+v, %d comments", status, len(comments))
		}
		r.eventually("no condition any more", func() bool { return !strings.Contains(status(), "forge: ") })
	})

	t.Run("rules", func(t *testing.T) {
		r := r.on(t)
		r.branch("rules")
		r.edit("fleet/rollout.yaml", "soak: 10m", "soak: 0s")
		r.edit("fleet/health.yaml", "healthy: ", "healthy: true || ")
		status, comments := r.preview(r.propose("rules", "No soak"))
		if status.Status != "success" || len(comments) != 1 {
			t.Fatalf("%+v, %d comments", status, len(comments))
		}
		r.has(comments[0], "It edits rules", "Rollout default (looser): waves[canary].soak: 10m -> 0s; it is about ", "HealthRules")
	})

	t.Run("the base has problems", func(t *testing.T) {
		r := r.on(t)
		r.git("checkout", "-q", "main")
		r.edit("services/search/api/runtime.yaml", "spec:\n", "spec:\n  replicsa: 1\n")
		r.push("main")
		r.branch("words")
		if err := os.WriteFile(filepath.Join(r.dir, "NOTES.md"), []byte("hello\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		words := r.push("words")
		r.branch("mend")
		r.edit("services/search/api/runtime.yaml", "  replicsa: 1\n", "")
		mend := r.push("mend")
		if status, comments := r.preview(r.gitea.Pull(t, r.ann, r.project, "words", "Words"), words); status.Status != "success" || len(comments) != 0 {
			t.Errorf("%+v: it is not to blame; comments %q", status, comments)
		}
		if status, _ := r.preview(r.gitea.Pull(t, r.ann, r.project, "mend", "It works again"), mend); status.Status != "success" || !strings.Contains(status.Description, "1 unit mended") {
			t.Errorf("%+v", status)
		}
		// The same for documents of the fleet, which hold all.
		r.git("checkout", "-q", "main")
		r.edit("services/search/api/runtime.yaml", "  replicsa: 1\n", "")
		r.edit("fleet/rollout.yaml", "onFailure: rollback", "onFailure: panic")
		r.push("main")
		r.branch("fleet")
		r.edit("fleet/rollout.yaml", "onFailure: panic", "onFailure: hold")
		if status, comments := r.preview(r.propose("fleet", "It works again")); status.Status != "success" || len(comments) != 1 || !strings.Contains(status.Description, "mends the fleet's documents") {
			t.Errorf("%+v, %q", status, comments)
		}
		r.git("checkout", "-q", "main")
		r.edit("fleet/rollout.yaml", "onFailure: panic", "onFailure: rollback")
		r.push("main")
	})

	t.Run("the folder of previews is deleted", func(t *testing.T) {
		r := r.on(t)
		r.eventually("no folder", func() bool { // something may be written at the same time
			return os.RemoveAll(filepath.Join(filepath.Dir(r.config), "state", "previews")) == nil
		})
		r.branch("anew")
		r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.9.0")
		status, comments := r.preview(r.propose("anew", "Anew"))
		if status.Status != "success" || len(comments) != 1 {
			t.Errorf("%+v, %d comments", status, len(comments))
		}
		if code, _, _ := fetchPage(t, status.TargetURL); code != http.StatusOK {
			t.Errorf("the page: %d", code)
		}
	})

	t.Run("the base moves", func(t *testing.T) {
		r := r.on(t)
		r.branch("other")
		r.edit("services/shop/cart/runtime.yaml", "1Gi", "2Gi")
		number, head := r.propose("other", "Memory")
		_, before := r.preview(number, head)
		r.git("checkout", "-q", "main")
		r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.4.3")
		r.push("main")
		// The same file changed on both sides, which is said.
		r.eventually("a comment on the new base", func() bool {
			_, now := r.preview(number, head)
			return len(now) == 1 && now[0] != before[0] && strings.Contains(now[0], "Changed in the base, too")
		})
	})

	t.Run("the base is force-pushed", func(t *testing.T) {
		r := r.on(t)
		r.branch("late")
		r.edit("services/shop/cart/runtime.yaml", "1Gi", "3Gi")
		number, head := r.propose("late", "More memory")
		r.preview(number, head)
		move := func(to string) {
			t.Helper()
			r.git("push", "-q", "-f", r.gitea.CloneURL(r.ann, r.project), to+":refs/heads/main")
		}
		says := func(want bool) {
			t.Helper()
			r.eventually(fmt.Sprintf("a comment that says that the branch was force-pushed: %t", want), func() bool {
				_, now := r.preview(number, head)
				return len(now) == 1 && strings.Contains(now[0], "The branch was force-pushed") == want
			})
		}
		move("main^")
		says(true)
		r.show("force-pushed", number, "")
		move("main")
		says(false)
	})
}

// Two daemons on one repository, as one that was moved and whose old one still runs: each pull
// request has one comment, and a status that is final.
func TestTwoDaemons(t *testing.T) {
	r := newReviewed(t, "  kubeconfigDir: clusters\n")
	second := *r
	home := t.TempDir()
	if err := os.CopyFS(home, os.DirFS(filepath.Dir(r.config))); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`socket: \S+/s}`).ReplaceAllString(string(content), "socket: "+socketDir(t)+"/s}")
	text = strings.Replace(text, fmt.Sprintf("listen: %q", strings.TrimPrefix(r.web, "http://")), `listen: "127.0.0.1:0"`, 1)
	text = strings.Replace(text, "    poll: 1h\n", "    poll: 1s\n", 1) // nobody tells it
	second.config = filepath.Join(home, "daemon.yaml")
	if err := os.WriteFile(second.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.run()
	second.run()
	heads, numbers := map[string]string{}, map[string]int{}
	for round := range 4 {
		for _, name := range []string{"one", "two", "three"} {
			if round == 0 {
				r.branch(name)
			} else {
				r.git("checkout", "-q", name)
			}
			r.edit("services/shop/cart/runtime.yaml", fmt.Sprintf("cart:1.4.%d", 2+round), fmt.Sprintf("cart:1.4.%d", 3+round))
			heads[name] = r.push(name)
			if round == 0 {
				numbers[name] = r.gitea.Pull(t, r.ann, r.project, name, "A change")
			}
		}
		for name, head := range heads {
			status, _ := r.preview(numbers[name], head)
			r.eventually("one comment", func() bool {
				_, comments := r.preview(numbers[name], head)
				return len(comments) == 1 && strings.Contains(comments[0], fmt.Sprintf("cart:1.4.%d", 3+round))
			})
			if status.Status != "success" {
				t.Errorf("%+v", status)
			}
		}
	}
	time.Sleep(2 * time.Second) // polls of the second one
	for name, number := range numbers {
		if _, comments := r.preview(number, heads[name]); len(comments) != 1 {
			t.Errorf("%d comments", len(comments))
		}
	}
}

// What is large or dangerous, in a fleet of 304 targets: a change of a kind, a deletion above
// the guard, and a field that API servers let nobody change.
func TestLargePreviews(t *testing.T) {
	r := newReviewedOf(t, "  kubeconfigDir: clusters\n", func(r *reviewed) {
		if err := os.CopyFS(r.dir, os.DirFS("../../testdata/monorepo")); err != nil {
			t.Fatal(err)
		}
		var clusters strings.Builder
		for i := range 60 {
			fmt.Fprintf(&clusters, "---\napiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: vla-%d, labels: {region: vla, tier: production}}\nspec:\n  kubernetes: \"1.36\"\n  tenants: [\"*\"]\n  cells:\n", i+2)
			for cell := range 5 {
				fmt.Fprintf(&clusters, "  - {name: rz%02d%c, variables: {network: _VLA_NETS_}}\n", i, 'a'+cell)
			}
		}
		if err := os.WriteFile(filepath.Join(r.dir, "fleet", "many.yaml"), []byte(clusters.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		r.git("init", "-q", "-b", "main")
		r.commit("A large fleet")
	})
	r.run()
	for _, test := range []struct {
		name   string
		edit   func()
		status string
		says   []string
	}{
		{"kind", func() {
			r.edit("kinds/runtime/kind.yaml", "replicas: \"${has", "revisionHistoryLimit: 4\n        replicas: \"${has")
		}, "success", []string{"### swell: ", "8 units like it: ", "revisionHistoryLimit", "on 304 targets", "How it is released"}},
		{"deletion", func() {
			if err := os.RemoveAll(filepath.Join(r.dir, "services", "shop", "cart")); err != nil {
				t.Fatal(err)
			}
		}, "success", []string{"1216 deleted after approval", "**What goes**", "1216 deletions wait for an approval: swell approve lists them"}},
		{"immutable", func() {
			r.edit("services/shop/cart/runtime.yaml", "      update:\n", "      update:\n      - {path: spec.selector.matchLabels, value: {part: web}}\n      - {path: spec.template.metadata.labels, value: {part: web}}\n")
		}, "failure", []string{"refused", "**What API servers refuse**", "spec.selector.matchLabels", "cannot be changed", "swell.sh/replace: allowed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := r.on(t)
			r.branch(test.name)
			test.edit()
			number, head := r.propose(test.name, "A change: "+test.name)
			status, comments := r.preview(number, head)
			if status.Status != test.status || len(comments) != 1 || len(comments[0]) > 65_536 {
				t.Fatalf("%+v, %d comments", status, len(comments))
			}
			r.has(comments[0], test.says...)
			r.show(test.name, number, status.TargetURL)
		})
	}
}

// swell diff --comment posts from a job what the daemon would, as the account of the job.
func TestComment(t *testing.T) {
	r := newReviewed(t, "  kubeconfigDir: clusters\n")
	r.branch("good")
	r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:1.5.0")
	number, head := r.propose("good", "A good change")
	event := filepath.Join(t.TempDir(), "event.json")
	job := func(head string, number int, token string, args ...string) (code int, stderr string) {
		t.Helper()
		text := fmt.Sprintf(`{"number": %d, "pull_request": {"number": %d, "head": {"sha": %q}}}`, number, number, head)
		if number == 0 { // as workflow_run says it
			text = fmt.Sprintf(`{"workflow_run": {"head_sha": %q}}`, head)
		}
		if err := os.WriteFile(event, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := program(t.Context(), append([]string{"diff", "--comment", "--cache", filepath.Join(t.TempDir(), "cache")}, args...)...)
		cmd.Dir = r.dir
		cmd.Env = append(cmd.Env, "GITEA_ACTIONS=true", "GITHUB_ACTIONS=true", "GITHUB_SERVER_URL="+r.gitea.URL, "GITHUB_API_URL="+r.gitea.URL+"/api/v1",
			"GITHUB_REPOSITORY="+r.project, "GITHUB_RUN_ID=12", "GITHUB_EVENT_PATH="+event, "GITEA_TOKEN="+token, "GITHUB_STEP_SUMMARY=", "SWELL_FORGE_TOKEN=", "GITLAB_TOKEN=")
		var out bytes.Buffer
		cmd.Stderr = &out
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), out.String()
	}
	comments := func() (bodies []string) {
		for _, c := range r.gitea.Comments(t, r.project, number) {
			bodies = append(bodies, c.User.Login+": "+c.Body)
		}
		return bodies
	}
	for range 2 { // the second one finds its comment, and has nothing to say
		if code, stderr := job(head, number, r.bot.Token, "main"); code != 0 || !strings.Contains(stderr, "posted on pull request") {
			t.Fatalf("exit code %d\n%s", code, stderr)
		}
	}
	if got := comments(); len(got) != 1 || !strings.HasPrefix(got[0], r.bot.Name+": <!-- swell: preview of shop: ") {
		t.Fatalf("comments %q", got)
	}
	r.has(comments()[0], "cart:1.5.0", "[All of it](<"+r.gitea.URL+"/"+r.project+"/actions/runs/12>)")
	if status := r.gitea.Statuses(t, r.project, head)["swell/shop"]; status.Status != "success" {
		t.Errorf("%+v", status)
	}
	// The second step for a fork knows the head alone.
	if code, stderr := job(head, 0, r.bot.Token, "main", head); code != 0 || !strings.Contains(stderr, fmt.Sprintf("posted on pull request %d", number)) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stderr := job(strings.Repeat("a", 40), 0, r.bot.Token, "main", head); code != 0 || !strings.Contains(stderr, "no open pull request has commit aaaaaaaa") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	// Another branch than the pull request's says nothing about it.
	if code, stderr := job(head, number, r.bot.Token, "HEAD~1"); code != 0 || !strings.Contains(stderr, "is for the branch main, and it was compared with HEAD~1") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	// An older job ends after a newer one.
	if code, stderr := job(strings.Repeat("a", 40), number, r.bot.Token, "main"); code != 0 || !strings.Contains(stderr, "has moved on to "+head[:8]) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stderr := job(head, number, "0123456789012345678901234567890123456789", "main"); code != 2 || !strings.Contains(stderr, "swell: hint: set GITEA_TOKEN") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stderr := job(head, number, "", "main"); code != 2 || !strings.Contains(stderr, "no token") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	// What a fork wants is data, as it is for the daemon.
	r.branch("fork")
	r.edit("services/shop/cart/runtime.yaml", "cart:1.4.2", "cart:6.6.6")
	forked := r.commit("A change of Eve")
	r.git("push", "-q", r.gitea.CloneURL(r.eve, r.eve.Name+"/fleet"), "HEAD:fork")
	fork := r.gitea.Pull(t, r.eve, r.project, r.eve.Name+":fork", "From a fork")
	if code, stderr := job(forked, 0, r.bot.Token, "main", forked); code != 0 || !strings.Contains(stderr, fmt.Sprintf("posted on pull request %d", fork)) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r.has(r.gitea.Comments(t, r.project, fork)[0].Body, "cart:6.6.6", "It comes from another repository")
	r.git("checkout", "-q", "good")
	// A problem is a failure of the job.
	r.edit("services/shop/cart/runtime.yaml", "replicas:", "replicsa:")
	head = r.push("good")
	if code, stderr := job(head, number, r.bot.Token, "main"); code != 2 || !strings.Contains(stderr, "posted on pull request") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if got := comments(); len(got) != 1 || !strings.Contains(got[0], "replicsa") {
		t.Errorf("comments %q", got)
	}
	// A clone without its history says what to set.
	shallow := t.TempDir()
	gitIn(t, shallow, "clone", "-q", "--depth", "1", "--no-single-branch", r.gitea.CloneURL(r.ann, r.project), ".")
	gitIn(t, shallow, "checkout", "-q", "good")
	if out, _ := verb(t.Context(), shallow, "diff", "origin/main", "--cache", "none"); !strings.Contains(out, "fetch-depth: 0") {
		t.Errorf("a shallow clone: %s", out)
	}
	// Where the fleet's documents have problems, who mends them gets a status.
	r.git("checkout", "-q", "main")
	bad := filepath.Join(r.dir, "fleet", "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: bad}\nspec: {nope: 1}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.push("main")
	r.branch("mended")
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	mended, head := r.propose("mended", "It mends the fleet")
	if code, stderr := job(head, mended, r.bot.Token, "main"); code != 0 || !strings.Contains(stderr, "mends the fleet's documents") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if status := r.gitea.Statuses(t, r.project, head)["swell/shop"]; status.Status != "success" || !strings.HasPrefix(status.Description, "mends the fleet's documents") {
		t.Errorf("%+v", status)
	}
}

// on is the same in another test.
func (r *reviewed) on(t *testing.T) *reviewed {
	same := *r
	same.TB = t
	return &same
}

// gitIn runs git in a folder, away from the configuration of whoever runs the tests.
func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "gc.auto=0", "-c", "maintenance.auto=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// safeBuffer may be written while it is read.
type safeBuffer struct {
	mu   gosync.Mutex
	text bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
