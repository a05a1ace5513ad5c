// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// fakeForge is a forge in memory, which fails when it is told to. What the real ones do with
// comments and statuses is tested in package forge.
type fakeForge struct {
	mu       sync.Mutex
	pulls    map[int]forge.Pull
	comments map[int]string // by pull request
	digests  map[int]string // of the comments
	edited   map[int]bool   // by somebody else
	reports  []forge.Report
	app      bool // it takes check runs
	statuses map[config.Commit]forge.Status
	writes   []string
	reads    int
	fail     func(what string) error // nil: nothing fails
}

func newFakeForge() *fakeForge {
	return &fakeForge{pulls: map[int]forge.Pull{}, comments: map[int]string{}, digests: map[int]string{}, edited: map[int]bool{}, statuses: map[config.Commit]forge.Status{}}
}

func (f *fakeForge) failed(what string) error {
	if f.fail == nil {
		return nil
	}
	return f.fail(what)
}

func (f *fakeForge) Open(_ context.Context, branch string) (open []forge.Pull, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	for _, p := range f.pulls {
		if p.Open && p.Base == branch {
			open = append(open, p)
		}
	}
	slices.SortFunc(open, func(a, b forge.Pull) int { return b.Updated.Compare(a.Updated) })
	return open, f.failed("open")
}

func (f *fakeForge) Get(_ context.Context, n int) (forge.Pull, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if err := f.failed("get"); err != nil {
		return forge.Pull{}, err
	}
	p, ok := f.pulls[n]
	if !ok {
		return p, &forge.Error{Status: http.StatusNotFound}
	}
	return p, nil
}

func (f *fakeForge) Merged(context.Context, config.Commit) (forge.Pull, error) {
	return forge.Pull{}, nil
}

func (f *fakeForge) SetStatus(_ context.Context, s forge.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failed("status"); err != nil {
		return err
	}
	if s.Name != "swell/shop" {
		f.writes = append(f.writes, "another status "+s.Name)
	}
	f.statuses[s.Commit] = s
	f.writes = append(f.writes, fmt.Sprintf("status %d %s", s.Pull, s.State))
	return nil
}

func (f *fakeForge) Comment(_ context.Context, n int, c forge.Comment) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failed("comment"); err != nil {
		return 0, err
	}
	if c.Subject != "preview of shop" {
		f.writes = append(f.writes, "another comment "+c.Subject)
	}
	if c.OnlyAgain && f.comments[n] == "" {
		return 0, nil
	}
	if f.digests[n] == c.Digest && !f.edited[n] { // it says so already
		return int64(n), nil
	}
	delete(f.edited, n)
	f.comments[n], f.digests[n] = c.Text, c.Digest
	f.writes = append(f.writes, fmt.Sprintf("comment %d", n))
	return int64(n), nil
}

func (f *fakeForge) Report(_ context.Context, r forge.Report) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.app {
		return forge.ErrNoReports
	}
	if err := f.failed("report"); err != nil {
		return err
	}
	f.reports = append(f.reports, r)
	return nil
}

func (f *fakeForge) wrote() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrote := strings.Join(f.writes, ", ")
	f.writes = nil
	return wrote
}

func (f *fakeForge) comment(n int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.comments[n]
}

func (f *fakeForge) commented() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.comments)
}

func (f *fakeForge) status(commit config.Commit) forge.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.statuses[commit]
}

func (f *fakeForge) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

// change changes a pull request.
func (f *fakeForge) change(n int, how func(*forge.Pull)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	is := f.pulls[n]
	how(&is)
	f.pulls[n] = is
}

// put opens a pull request, or pushes to one.
func (f *fakeForge) put(n int, head config.Commit, fork bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulls[n] = forge.Pull{Number: n, Head: head, Base: "main", Ref: fmt.Sprintf("refs/pull/%d/head", n), Open: true, Fork: fork, Updated: time.Now()}
}

// putAll opens so many pull requests, from 1.
func (f *fakeForge) putAll(n int) {
	for i := range n {
		f.put(i+1, config.Commit(fmt.Sprintf("a%d", i)), false)
	}
}

// refuse has some of what is asked for fail.
func (f *fakeForge) refuse(err error, what ...string) {
	f.set(func(is string) error {
		if slices.Contains(what, is) {
			return err
		}
		return nil
	})
}

func (f *fakeForge) set(fail func(string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// renders is what renders in tests: it knows the heads of refs as the forge does.
type renders struct {
	forge *fakeForge
	mu    sync.Mutex
	takes time.Duration
	order []string
	does  func(Ask) (Answer, error) // nil: a good preview
	now   int
	most  int
}

// slow is how long a preview takes from now on.
func (r *renders) slow(takes time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = takes
}

func (r *renders) render(ctx context.Context, ask Ask) (Answer, error) {
	if ask.Ref == "" {
		return Answer{}, nil
	}
	var n int
	if _, err := fmt.Sscanf(ask.Ref, "refs/pull/%d/head", &n); err != nil {
		return Answer{}, err
	}
	r.mu.Lock()
	r.order = append(r.order, fmt.Sprintf("%d on %s", n, ask.Base.Commit))
	takes, does := r.takes, r.does
	r.now++
	r.most = max(r.most, r.now)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
	}()
	r.forge.mu.Lock()
	head := r.forge.pulls[n].Head
	r.forge.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	if does != nil {
		return does(ask)
	}
	text := "preview of " + string(head)
	return Answer{Head: head, Text: "1 object", Comment: text, Digest: forge.DigestOf(text + ask.Link), Page: "page"}, nil
}

func (r *renders) set(does func(Ask) (Answer, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.does = does
}

func (r *renders) ordered() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := strings.Join(r.order, ", ")
	r.order = nil
	return order
}

// world is a previewer at work, in a bubble where time is played.
type world struct {
	*testing.T
	*Previewer
	forge   *fakeForge
	renders *renders
	dir     string
	project string
	stop    func()
}

// play runs a test in a bubble.
func play(t *testing.T, test func(w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, forge: newFakeForge(), dir: dir}
		w.renders = &renders{forge: w.forge}
		w.start(0)
		test(w)
		w.stop()
	})
}

// start starts the previewer, or another one on the same folder.
func (w *world) start(poll time.Duration) {
	w.Helper()
	p, err := New(Options{Forge: w.forge, Project: w.project, Render: w.renders.render, Branch: "main", Dir: w.dir, Link: "https://swell.example.com/previews/", Poll: poll, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	w.Previewer = p
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-over
	}
	synctest.Wait() // what comes now is seen when it is woken, or at the next poll
}

func (w *world) wrote(want string) {
	w.Helper()
	synctest.Wait()
	if got := w.forge.wrote(); got != want {
		w.Errorf("wrote %q, want %q", got, want)
	}
}

// A pull request is previewed once for each head and base, and what says nothing new is not
// written.
func TestWritesOnlyWhatIsNew(t *testing.T) {
	play(t, func(w *world) {
		w.forge.put(1, "a1", false)
		time.Sleep(time.Second)
		w.wrote("") // no base yet
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		time.Sleep(time.Second)
		w.Wake(1)
		time.Sleep(time.Second)
		w.wrote("comment 1, status 1 success")
		for range 5 { // hooks that come again, polls, and a base that moves
			w.Wake(1)
			time.Sleep(time.Minute)
		}
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(time.Second)
		w.wrote("")
		if got := w.renders.ordered(); got != "1 on b1, 1 on b2" {
			t.Errorf("rendered %s", got)
		}
		w.forge.put(1, "a2", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.wrote("comment 1, status 1 success")
		// Another daemon, or this one after a restart, knows what was posted.
		w.stop()
		w.start(0)
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(time.Second)
		w.wrote("")
		// Without the folder, the comment is found again by the forge, and links to a page that
		// there is.
		w.stop()
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		w.start(0)
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(time.Second)
		w.wrote("comment 1, status 1 success")
		token := strings.TrimPrefix(w.forge.status("a2").URL, "https://swell.example.com/previews/")
		if _, err := os.Stat(w.files.pageOf(token)); err != nil {
			t.Error(err)
		}
	})
}

// A comment that somebody edited is written again at the next push, although it says nothing new.
func TestEdited(t *testing.T) {
	play(t, func(w *world) {
		w.renders.set(func(Ask) (Answer, error) {
			w.forge.mu.Lock()
			defer w.forge.mu.Unlock()
			return Answer{Head: w.forge.pulls[1].Head, Text: "1 object", Comment: "preview", Digest: "1"}, nil
		})
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		push := func(head config.Commit, want string) {
			t.Helper()
			w.forge.put(1, head, false)
			w.Wake(1)
			time.Sleep(time.Second)
			w.wrote(want)
		}
		push("a1", "comment 1, status 1 success")
		push("a2", "status 1 success")
		w.forge.mu.Lock()
		w.forge.edited[1] = true
		w.forge.mu.Unlock()
		push("a3", "comment 1, status 1 success")
	})
}

// Pushes while a preview is made: the last head wins, and nothing is posted twice.
func TestPushedToWhileRendering(t *testing.T) {
	play(t, func(w *world) {
		w.renders.takes = 3 * time.Second
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.forge.put(1, "a2", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.forge.put(1, "a3", false)
		w.Wake(1)
		time.Sleep(time.Minute)
		w.wrote("comment 1, status 1 success")
		if got := w.forge.comment(1); got != "preview of a3" {
			t.Errorf("the comment is %q", got)
		}
	})
}

// A push while what was made waits to be posted: it is not posted on the new head.
func TestPushedToBeforeItIsPosted(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.forge.refuse(errors.New("connection refused"), "comment", "status")
		w.Wake(1)
		time.Sleep(time.Minute)
		w.renders.slow(time.Hour)
		w.forge.put(1, "a2", false)
		w.forge.set(nil)
		w.Wake(1)
		time.Sleep(30 * time.Minute)
		w.wrote("status 1 pending") // it takes long
		time.Sleep(time.Hour)
		w.wrote("comment 1, status 1 success")
		if got := w.forge.comment(1); got != "preview of a2" {
			t.Errorf("the comment is %q", got)
		}
	})
}

// Git has a newer head than the forge said: what was rendered is not posted on the old one.
func TestGitKnowsMore(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.renders.set(func(Ask) (Answer, error) {
			w.forge.put(1, "a2", false)
			return Answer{Head: "a2", Comment: "preview of a2", Digest: "2"}, nil
		})
		w.Wake(1)
		time.Sleep(time.Minute)
		w.wrote("comment 1, status 1 success")
		if w.forge.status("a1").State != "" {
			t.Error("a status on the old head")
		}
	})
}

// A preview that cannot be made now is given up after a while, and is tried again. The reason
// is for the log.
func TestGivesUp(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.renders.set(func(Ask) (Answer, error) { return Answer{}, errors.New("dial 10.1.2.3: no space left on device") })
		w.Wake(1)
		time.Sleep(9 * time.Minute)
		w.wrote("") // it may pass
		time.Sleep(20 * time.Minute)
		w.wrote("comment 1, status 1 failure")
		if got := w.forge.status("a1").Text; got != "gave up: the daemon could not fetch or render it, as its log says" {
			t.Errorf("status %q", got)
		}
		if strings.Contains(w.forge.comment(1), "10.1.2.3") {
			t.Errorf("comment %q", w.forge.comment(1))
		}
		w.renders.set(nil)
		time.Sleep(11 * time.Minute)
		w.wrote("comment 1, status 1 success")
		if got := w.forge.comment(1); got != "preview of a1" {
			t.Errorf("comment %q", got)
		}
	})
}

// A change that takes all the time that there is leaves most of it to others, and comes after
// them.
func TestGivesUpForItself(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.renders.takes = 10 * time.Minute
		w.renders.set(func(Ask) (Answer, error) {
			return Answer{Failed: "rendering it was not done after 10m0s"}, nil
		})
		w.Wake(1)
		time.Sleep(24 * time.Hour)
		w.wrote("status 1 pending, comment 1, status 1 failure")
		if n := strings.Count(w.renders.ordered(), "1 on"); n < 10 || n > 14 {
			t.Errorf("rendered %d times in a day", n)
		}
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(time.Minute)
		w.forge.put(2, "c1", false)
		w.renders.set(nil)
		w.Wake(2)
		time.Sleep(30 * time.Minute)
		if got := w.renders.ordered(); !strings.HasPrefix(got, "2 on b2") {
			t.Errorf("rendered %s", got)
		}
	})
}

// With a base that nothing can be compared with, the next base is waited for.
func TestWaitsForTheBase(t *testing.T) {
	play(t, func(w *world) {
		w.renders.set(func(Ask) (Answer, error) { return Answer{Waits: true, Failed: "main has problems"}, nil })
		w.forge.putAll(20)
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.Wake(0)
		time.Sleep(6 * time.Hour)
		if n := strings.Count(w.renders.ordered(), " on b1"); n != 20 {
			t.Errorf("rendered %d times", n)
		}
		w.forge.wrote()
		w.renders.set(nil)
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(time.Minute)
		synctest.Wait()
		wrote := w.forge.wrote()
		if got := strings.Count(wrote, "success"); got != 20 {
			t.Errorf("%d previews on the next base; rendered %s; trouble %q", got, w.renders.ordered(), w.Trouble())
		}
	})
}

// While Git and the forge say different heads, neither is asked without a pause.
func TestGitIsBehind(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a2", false)
		w.renders.set(func(Ask) (Answer, error) { return Answer{Head: "a1", Comment: "old", Digest: "1"}, nil })
		w.Wake(1)
		reads := w.forge.asked()
		time.Sleep(time.Minute)
		w.wrote("")
		if n, asked := strings.Count(w.renders.ordered(), "1 on"), w.forge.asked()-reads; n > 5 || asked > 8 {
			t.Errorf("rendered %d times, read %d times", n, asked)
		}
		w.renders.set(nil)
		time.Sleep(2 * time.Minute)
		w.wrote("comment 1, status 1 success")
	})
}

// A slow preview says that it is under way.
func TestSlow(t *testing.T) {
	play(t, func(w *world) {
		w.renders.takes = 20 * time.Second
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(10 * time.Second)
		w.wrote("status 1 pending")
		time.Sleep(time.Minute)
		w.wrote("comment 1, status 1 success")
	})
}

// A head that has a status keeps it while the base moves, and one that is left has none that
// says that something is under way.
func TestSlowOnce(t *testing.T) {
	play(t, func(w *world) {
		w.renders.takes = 20 * time.Second
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(time.Minute)
		w.wrote("status 1 pending, comment 1, status 1 success")
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(time.Minute)
		w.wrote("")
		w.forge.put(1, "a2", false)
		w.Wake(1)
		time.Sleep(10 * time.Second)
		w.wrote("status 1 pending")
		w.forge.change(1, func(p *forge.Pull) { p.Base = "release" })
		w.Wake(1)
		time.Sleep(time.Minute)
		w.wrote("status 1 success, comment 1")
	})
}

// One fork's preview at a time, and it holds up none of ours.
func TestForksAreApart(t *testing.T) {
	play(t, func(w *world) {
		w.renders.takes = time.Minute
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		time.Sleep(time.Second)
		for n := range 5 {
			w.forge.put(n+1, config.Commit(fmt.Sprintf("f%d", n)), true)
			time.Sleep(time.Millisecond)
		}
		w.Wake(0)
		time.Sleep(time.Second)
		w.renders.mu.Lock()
		w.renders.takes = time.Second
		w.renders.mu.Unlock()
		w.forge.put(10, "a1", false)
		w.Wake(10)
		time.Sleep(5 * time.Second)
		if w.forge.comment(10) == "" || w.forge.commented() != 1 {
			t.Errorf("ours: %q, %d comments", w.forge.comment(10), w.forge.commented())
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if w.renders.most != 2 || w.forge.commented() != 6 {
			t.Errorf("%d at a time, %d comments", w.renders.most, w.forge.commented())
		}
		if got := w.renders.ordered(); !strings.HasPrefix(got, "5 on b1, 10 on b1, 4 on b1, 3 on b1") {
			t.Errorf("not the newest first: %s", got)
		}
	})
}

// Two hundred pull requests while the base moves every ten seconds: new heads come first,
// and the forge is asked by polling alone.
func TestBaseMovesAllTheTime(t *testing.T) {
	play(t, func(w *world) {
		w.renders.takes = 100 * time.Millisecond
		w.SetBase(Base{Commit: "b0", Monorepo: "shop"})
		for n := range 200 {
			w.forge.put(n+1, config.Commit(fmt.Sprintf("a%d", n)), false)
			time.Sleep(time.Millisecond)
		}
		w.Wake(0)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if got := strings.Count(w.forge.wrote(), "comment"); got != 200 {
			t.Fatalf("%d comments", got)
		}
		reads := w.forge.asked()
		for i := range 30 {
			w.SetBase(Base{Commit: config.Commit(fmt.Sprintf("b%d", i+1)), Monorepo: "shop"})
			time.Sleep(5 * time.Second)
			w.forge.put(7, config.Commit(fmt.Sprintf("new%d", i)), false)
			w.Wake(7)
			time.Sleep(time.Second)
			w.wrote("comment 7, status 7 success")
			time.Sleep(4 * time.Second)
		}
		// In 300 s: five polls, and thirty hooks.
		if got := w.forge.asked() - reads; got < 34 || got > 37 {
			t.Errorf("%d reads", got)
		}
	})
}

// What the forge refuses is tried again, nothing else stands still, and limits are kept.
func TestForgeFails(t *testing.T) {
	for name, err := range map[string]error{
		"a revoked token": &forge.Error{Status: http.StatusUnauthorized, Text: "Bad credentials"},
		"a server error":  &forge.Error{Status: http.StatusInternalServerError},
		"no network":      errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
				w.forge.put(1, "a1", false)
				w.forge.refuse(err, "comment", "status")
				w.Wake(1)
				time.Sleep(time.Hour)
				w.wrote("")
				if got := w.renders.ordered(); got != "1 on b1" {
					t.Errorf("rendered %s: what was made is posted later", got)
				}
				w.forge.set(func(string) error { return err })
				time.Sleep(time.Hour)
				w.forge.set(nil)
				time.Sleep(11 * time.Minute)
				w.wrote("comment 1, status 1 success")
			})
		})
	}
	t.Run("a locked conversation", func(t *testing.T) {
		play(t, func(w *world) {
			w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
			w.forge.put(1, "a1", false)
			w.forge.put(2, "a2", false)
			w.forge.refuse(&forge.Error{Status: http.StatusForbidden, Text: "locked"}, "comment")
			w.Wake(0)
			time.Sleep(time.Hour)
			synctest.Wait()
			if w.forge.status("a1").State != forge.Success || w.forge.status("a2").State != forge.Success || w.Trouble() == "" {
				t.Errorf("wrote %s, trouble %q", w.forge.wrote(), w.Trouble())
			}
		})
	})
	t.Run("a check run", func(t *testing.T) {
		play(t, func(w *world) {
			w.forge.app = true
			w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
			w.forge.put(1, "a1", false)
			once := true
			w.forge.set(func(what string) error {
				if what == "report" && once {
					once = false
					return &forge.LimitError{Until: time.Now().Add(8 * time.Second), Own: true}
				}
				return nil
			})
			w.Wake(1)
			time.Sleep(time.Hour)
			w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
			time.Sleep(time.Minute)
			w.wrote("comment 1, status 1 success")
			if len(w.forge.reports) != 1 {
				t.Errorf("%d check runs", len(w.forge.reports))
			}
		})
	})
	t.Run("a hook during a limit", func(t *testing.T) {
		play(t, func(w *world) {
			w.stop()
			w.start(time.Hour)
			w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
			w.forge.put(1, "a1", false)
			until := time.Now().Add(10 * time.Second)
			w.forge.set(func(string) error {
				if time.Now().Before(until) {
					return &forge.LimitError{Until: until}
				}
				return nil
			})
			w.Wake(1)
			time.Sleep(time.Second)
			w.Wake(1)
			time.Sleep(10 * time.Second)
			w.wrote("comment 1, status 1 success")
		})
	})
	t.Run("nothing for long", func(t *testing.T) {
		play(t, func(w *world) {
			w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
			w.forge.putAll(300)
			until := time.Now().Add(2 * time.Hour)
			w.forge.set(func(what string) error {
				if what != "open" && time.Now().Before(until) {
					return errors.New("connection refused")
				}
				return nil
			})
			w.Wake(0)
			time.Sleep(time.Hour)
			if n := strings.Count(w.renders.ordered(), " on "); n != maxReady {
				t.Errorf("%d previews wait to be posted", n)
			}
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			if got := strings.Count(w.forge.wrote(), "comment"); got != 300 {
				t.Errorf("%d comments", got)
			}
		})
	})
	t.Run("a limit", func(t *testing.T) {
		play(t, func(w *world) {
			w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
			w.forge.putAll(3)
			until, asked := time.Now().Add(20*time.Minute), 0
			w.forge.set(func(what string) error {
				if what == "comment" && time.Now().Before(until) {
					asked++
					return &forge.LimitError{Until: until}
				}
				return nil
			})
			w.Wake(0)
			time.Sleep(10 * time.Minute)
			if got := w.Trouble(); !strings.HasPrefix(got, "the forge takes no more requests before ") {
				t.Errorf("trouble %q", got)
			}
			reads := w.forge.asked()
			time.Sleep(9 * time.Minute)
			if asked != 1 || w.forge.asked() != reads {
				t.Errorf("asked %d times, read %d times before the limit was over", asked, w.forge.asked()-reads)
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if got := strings.Count(w.forge.wrote(), "comment"); got != 3 {
				t.Errorf("%d comments", got)
			}
			if got := w.Trouble(); got != "" {
				t.Errorf("trouble %q", got)
			}
		})
	})
}

// What was reviewed stays on a pull request that was merged, whenever the forge says so: before or after
// its branch moves, soon or some time later. On one that stays open it is replaced.
func TestMergedStaysAsReviewed(t *testing.T) {
	for name, test := range map[string]struct {
		before, after time.Duration // of the new base, that the forge says that it is merged; 0: it does not
		nothing       bool          // the preview says then that nothing changes
		want          string
	}{
		"before the branch moves":          {before: time.Second, nothing: true},
		"soon after":                       {after: 5 * time.Second, nothing: true},
		"with another commit, at once":     {before: time.Second},
		"never, and nothing is left of it": {nothing: true, want: "comment 1, status 1 success"},
		"never":                            {want: "comment 1, status 1 success"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.renders.set(func(ask Ask) (Answer, error) {
					if ask.Base.Commit == "b1" {
						return Answer{Head: "a1", Text: "1 object", Comment: "reviewed", Digest: "1"}, nil
					}
					return Answer{Head: "a1", Text: "something else", Comment: "something else", Digest: "2", Nothing: test.nothing}, nil
				})
				w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
				w.forge.put(1, "a1", false)
				w.Wake(1)
				time.Sleep(time.Second)
				w.wrote("comment 1, status 1 success")
				merge := func() { w.forge.change(1, func(p *forge.Pull) { p.Open, p.Merge = false, "b2" }) }
				if test.before > 0 {
					merge() // and no webhook tells of it
					time.Sleep(test.before)
				}
				w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
				if test.after > 0 {
					time.Sleep(test.after)
					merge()
				}
				time.Sleep(10 * time.Minute)
				w.wrote(test.want)
			})
		})
	}
}

// Closed ones are left alone, and come back when they are opened again.
func TestClosedAndReopened(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.wrote("comment 1, status 1 success")
		w.forge.change(1, func(p *forge.Pull) { p.Open = false })
		w.Wake(1)
		w.SetBase(Base{Commit: "b2", Monorepo: "shop"})
		time.Sleep(5 * time.Minute)
		w.wrote("")
		w.forge.put(1, "a2", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.wrote("comment 1, status 1 success")
		// Another branch's, and one that there is not.
		w.forge.change(1, func(p *forge.Pull) { p.Base = "release" })
		w.Wake(1)
		w.Wake(4711)
		w.SetBase(Base{Commit: "b3", Monorepo: "shop"})
		time.Sleep(5 * time.Minute)
		w.wrote("status 1 success, comment 1") // that there is no preview any more
	})
}

// The page is shown to who has its link.
func TestPage(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(time.Second)
		link := w.forge.status("a1").URL
		token := strings.TrimPrefix(link, "https://swell.example.com/previews/")
		mux := http.NewServeMux()
		mux.Handle("GET /previews/{token}", w.Previewer)
		ask := func(path string) *httptest.ResponseRecorder {
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequest("GET", path, nil))
			return answer
		}
		if got := ask("/previews/" + token); got.Code != http.StatusOK || got.Body.String() != "page" || !strings.Contains(got.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%d %v %s", got.Code, got.Header(), got.Body)
		}
		for _, other := range []string{"", token[1:], token[1:] + "g", strings.Repeat("0", 32), "..%2fpulls%2f1.json", "%2e%2e", strings.ToUpper(token) + "x"} {
			if got := ask("/previews/" + other); got.Code != http.StatusNotFound {
				t.Errorf("%q: %d", other, got.Code)
			}
		}
		// It goes a month after its pull request, however old it was by then.
		old := time.Now().Add(-31 * 24 * time.Hour)
		age := func() {
			for _, file := range []string{filepath.Join(w.dir, "pulls", "1.json"), filepath.Join(w.dir, "pages", token+".html")} {
				if err := os.Chtimes(file, old, old); err != nil {
					t.Fatal(err)
				}
			}
		}
		age()
		w.forge.change(1, func(p *forge.Pull) { p.Open = false })
		time.Sleep(2 * time.Minute)
		if got := ask("/previews/" + token); got.Code != http.StatusOK {
			t.Errorf("after it was closed: %d", got.Code)
		}
		age()
		time.Sleep(2 * time.Minute)
		if got := ask("/previews/" + token); got.Code != http.StatusNotFound {
			t.Errorf("after a month: %d", got.Code)
		}
	})
}

// Pull requests whose comment the forge refuses for good keep no other one from its preview.
func TestManyRefused(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.putAll(2 * maxReady)
		w.forge.refuse(&forge.Error{Status: http.StatusForbidden, Text: "locked"}, "comment")
		w.Wake(0)
		time.Sleep(time.Hour)
		w.forge.set(nil)
		w.forge.put(4711, "new", false)
		w.Wake(4711)
		time.Sleep(time.Second)
		if got := w.forge.status("new"); got.State != forge.Success {
			t.Errorf("%+v", got)
		}
		for i := range 2 * maxReady {
			if got := w.forge.status(config.Commit(fmt.Sprintf("a%d", i))); got.State != forge.Success {
				t.Errorf("pull request %d: %+v", i+1, got)
			}
		}
	})
}

// What was posted on another forge is not taken for what is here.
func TestAnotherProject(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.wrote("comment 1, status 1 success")
		first := w.forge.status("a1").URL
		w.stop()
		w.project, w.forge = "gitea https://elsewhere.example.com/shop/fleet", newFakeForge()
		w.renders.forge = w.forge
		w.forge.put(1, "a1", false)
		w.start(0)
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		time.Sleep(2 * time.Minute)
		w.wrote("comment 1, status 1 success")
		if second := w.forge.status("a1").URL; second == first {
			t.Errorf("the page is the same: %s", second)
		}
	})
}

// The last word on a pull request is written when the forge takes it, and after a restart.
func TestTellGone(t *testing.T) {
	for name, test := range map[string]struct{ down, restart bool }{"the forge is down": {true, false}, "the daemon is down": {false, true}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *world) {
				w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
				w.forge.put(1, "a1", false)
				w.forge.put(2, "a2", false)
				w.Wake(0)
				time.Sleep(time.Second)
				w.forge.wrote()
				if test.restart {
					w.stop()
				}
				if test.down {
					w.forge.refuse(&forge.Error{Status: http.StatusBadGateway}, "comment", "status")
				}
				w.forge.change(1, func(p *forge.Pull) { p.Base = "release" })
				w.forge.change(2, func(p *forge.Pull) { p.Open = false })
				if test.restart {
					w.start(0)
					time.Sleep(5 * time.Minute) // until the first commit was rendered
					w.wrote("")
					w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
				}
				time.Sleep(time.Hour)
				w.forge.set(nil)
				time.Sleep(11 * time.Minute)
				want := "status 1 success, comment 1"
				w.wrote(want)
				reads := w.forge.asked()
				time.Sleep(time.Hour)
				w.wrote("")
				if n := w.forge.asked() - reads; n > 61 {
					t.Errorf("asked %d times in an hour", n)
				}
			})
		})
	}
}

// One that is closed while it is rendered has no status that says so.
func TestClosedWhileRendering(t *testing.T) {
	play(t, func(w *world) {
		w.renders.takes = 20 * time.Second
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(2 * time.Second)
		w.forge.change(1, func(p *forge.Pull) { p.Open = false })
		w.Wake(1)
		time.Sleep(8 * time.Second)
		w.Wake(2) // of which there is none
		time.Sleep(time.Minute)
		w.wrote("")
	})
}

// A pull request that the forge does not let us read is not asked for all the time.
func TestUnreadable(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.Wake(1)
		time.Sleep(time.Second)
		w.forge.change(1, func(p *forge.Pull) { p.Base = "release" })
		w.forge.refuse(&forge.Error{Status: http.StatusUnavailableForLegalReasons}, "get")
		reads := w.forge.asked()
		time.Sleep(time.Hour)
		if n := w.forge.asked() - reads; n > 125 {
			t.Errorf("asked %d times in an hour", n)
		}
		if got := w.Trouble(); got != "" {
			t.Errorf("trouble %q", got)
		}
	})
}

// Where Git and the forge stay different, the pull request says so.
func TestGitStaysBehind(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a2", false)
		w.renders.set(func(Ask) (Answer, error) { return Answer{Head: "a1", Comment: "old", Digest: "1"}, nil })
		w.Wake(1)
		time.Sleep(time.Hour)
		w.wrote("comment 1, status 1 failure")
		if got := w.forge.status("a2").Text; got != "gave up: "+otherHead {
			t.Errorf("%q", got)
		}
		if got := w.Trouble(); !strings.HasPrefix(got, "pull request 1 has no preview: ") {
			t.Errorf("trouble %q", got)
		}
	})
}

// A verdict that is not the last word is looked at once more by itself.
func TestAgain(t *testing.T) {
	play(t, func(w *world) {
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.put(1, "a1", false)
		w.renders.set(func(Ask) (Answer, error) {
			return Answer{Head: "a1", Bad: true, Again: true, Text: "1 problem", Comment: "it took too long", Digest: "1"}, nil
		})
		w.Wake(1)
		time.Sleep(5 * time.Minute)
		w.wrote("comment 1, status 1 failure")
		w.renders.set(nil)
		time.Sleep(11 * time.Minute)
		w.wrote("comment 1, status 1 success")
		w.renders.ordered()
		time.Sleep(time.Hour)
		if got := w.renders.ordered(); got != "" {
			t.Errorf("rendered %s once more", got)
		}
	})
}

// Of more open pull requests than are previewed, the rest costs no requests.
func TestTooManyOpen(t *testing.T) {
	play(t, func(w *world) {
		w.forge.putAll(maxOpen)
		w.Wake(0)
		time.Sleep(time.Second)
		for i := range 50 { // they come first now
			w.forge.put(maxOpen+i+1, config.Commit(fmt.Sprintf("c%d", i)), false)
		}
		reads := w.forge.asked()
		time.Sleep(10*time.Minute + time.Second)
		if n := w.forge.asked() - reads; n > 11 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		synctest.Wait()
		if n := len(w.known); n != maxOpen {
			t.Errorf("%d are known", n)
		}
	})
}

// However many pull requests are gone at once, it is asked for each of them, by and by.
func TestManyGone(t *testing.T) {
	play(t, func(w *world) {
		const many = 5 * maxAsked
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.forge.putAll(many)
		w.Wake(0)
		time.Sleep(time.Minute + 30*time.Second) // between two polls
		for i := range many {
			w.forge.change(i+1, func(p *forge.Pull) { p.Open = false })
		}
		reads := w.forge.asked()
		time.Sleep(time.Minute)
		if n := w.forge.asked() - reads; n < maxAsked || n > maxAsked+10 {
			t.Errorf("asked %d times by the first poll, want some %d", n, maxAsked)
		}
		time.Sleep((many/maxAsked + 4) * time.Minute)
		if n := w.forge.asked() - reads; len(w.known) > 0 || n > many+50 {
			t.Errorf("asked %d times, %d are known", n, len(w.known))
		}
	})
}

// A preview is made once more when a unit that it is about stands in another way, or other orders are
// in force, and not for any other unit.
func TestUnitsStandInAnotherWay(t *testing.T) {
	play(t, func(w *world) {
		asked := 0
		w.renders.set(func(ask Ask) (Answer, error) {
			asked = len(ask.Now.Units)
			return Answer{Head: "a1", Comment: "preview", Digest: "1", Units: []config.UnitPath{"cart"}}, nil
		})
		w.forge.put(1, "a1", false)
		w.SetBase(Base{Commit: "b1", Monorepo: "shop"})
		w.Wake(1)
		time.Sleep(time.Second)
		units := map[config.UnitPath]rollout.UnitNow{}
		var orders order.Standing
		expect := func(step, want string) {
			t.Helper()
			w.SetFleet(rollout.Now{Units: maps.Clone(units), Standing: orders})
			time.Sleep(standEvery)
			if got := w.renders.ordered(); got != want {
				t.Errorf("%s: rendered %q, want %q", step, got, want)
			}
		}
		expect("at first", "1 on b1")
		units["web"] = rollout.UnitNow{Key: "held"}
		expect("another unit", "")
		units["cart"] = rollout.UnitNow{Key: "held"}
		expect("its unit", "1 on b1")
		if asked != 2 {
			t.Errorf("it was told of %d units", asked)
		}
		expect("nothing new", "")
		orders = order.Standing{{Seq: 1, Verb: order.Freeze}}
		expect("an order", "1 on b1")
		delete(units, "cart")
		expect("its unit is well", "1 on b1")
		for key := range 20 { // as the units of a large release do
			units["cart"] = rollout.UnitNow{Key: fmt.Sprint(key)}
			w.SetFleet(rollout.Now{Units: maps.Clone(units), Standing: orders})
			time.Sleep(time.Second)
		}
		if got := w.renders.ordered(); got != "1 on b1" {
			t.Errorf("rendered %q within %s, want it once", got, standEvery)
		}
		expect("later", "1 on b1")
		w.wrote("comment 1, status 1 success")
	})
}
