// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/rollout"
)

// fakeForge takes statuses and comments, and fails when it is told to.
type fakeForge struct {
	forge.Forge
	mu      sync.Mutex
	said    []string
	merges  map[config.Commit]int
	err     error
	refuse  func(forge.Status) error // nil: none
	locked  map[int]bool             // pull requests on which nothing can be written
	unknown map[config.Commit]bool   // commits that it does not have
	// reviewed are pull requests with a preview, under which something can stand.
	reviewed map[int]bool
}

func (f *fakeForge) SetStatus(_ context.Context, s forge.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	if f.refuse != nil {
		if err := f.refuse(s); err != nil {
			return err
		}
	}
	f.said = append(f.said, fmt.Sprintf("%s %s %s: %s", s.Commit[:2], strings.TrimPrefix(s.Name, "swell/shop: "), s.State, s.Text))
	return nil
}

func (f *fakeForge) Merged(_ context.Context, commit config.Commit) (forge.Pull, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unknown[commit] {
		return forge.Pull{}, &forge.Error{Status: http.StatusUnprocessableEntity, Text: "No commit found for SHA"}
	}
	return forge.Pull{Number: f.merges[commit]}, f.err
}

func (f *fakeForge) Comment(_ context.Context, number int, c forge.Comment) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return 0, f.err
	}
	if f.locked[number] {
		return 0, &forge.Error{Status: http.StatusForbidden, Text: "locked"}
	}
	kind := "comment"
	if c.Below != "" {
		if kind = "below"; !f.reviewed[number] {
			return 0, nil
		}
	}
	f.said = append(f.said, fmt.Sprintf("%s %d: %s", kind, number, strings.Join(strings.Fields(c.Text), " ")))
	return int64(number), nil
}

func (f *fakeForge) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// world plays rollouts with the planner itself.
type world struct {
	*testing.T
	forge   *fakeForge
	dir     string
	project string
	a       *Announcer
	stop    func()
	state   *rollout.State
	want    *rollout.Wanted
	newest  config.Commit                // that was observed
	taken   config.Commit                // the last one, which outlives a process
	ill     map[config.TargetName]string // why what is applied there is refused
	slow    bool                         // removals take their time
}

func commitOf(name string) config.Commit { return config.Commit(strings.Repeat(name, 20)) }

func play(t *testing.T, test func(*world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, dir: dir, forge: &fakeForge{merges: map[config.Commit]int{}}, state: &rollout.State{}, ill: map[config.TargetName]string{},
			want: &rollout.Wanted{Units: map[config.UnitPath]*rollout.WantedUnit{}}}
		w.start()
		test(w)
		w.stop()
	})
}

func (w *world) start() {
	w.Helper()
	a, err := Open(Options{Forge: w.forge, Project: w.project, Dir: w.dir, Log: slog.New(slog.DiscardHandler),
		Between: func(from, to config.Commit) ([]config.Commit, error) { return []config.Commit{to, commitOf("ee")}, nil }})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		a.Run(ctx)
	}()
	w.newest = "" // the first commit of a process is new to it
	w.a, w.stop = a, func() {
		cancel()
		<-over
	}
}

// commit has a unit want other bundles.
func (w *world) commit(name string, units ...config.UnitPath) {
	w.want.Commit = commitOf(name)
	for _, path := range units {
		unit := &rollout.WantedUnit{Rollout: &config.Rollout{Name: "default", OnFailure: config.Rollback, Waves: []config.Wave{
			{Name: "canary", Targets: []config.TargetName{"a"}, Soak: 10 * time.Minute}, {Name: "empty", Targets: []config.TargetName{"z"}}, {Name: "rest"},
		}}, Targets: map[config.TargetName]rollout.WantedTarget{}}
		for _, target := range []config.TargetName{"a", "b"} {
			unit.Targets[target] = rollout.WantedTarget{Digest: object.Digest(name + string(path) + string(target)), Objects: 1}
		}
		w.want.Units[path] = unit
	}
}

// pass makes passes until nothing is left to do now.
func (w *world) pass() {
	now := time.Now()
	for range 100 {
		plan := w.state.Decide(w.want, now)
		for _, a := range plan.Actions {
			o := rollout.Outcome{Action: a, Result: map[rollout.Kind]rollout.Result{rollout.Apply: rollout.Applied, rollout.Check: rollout.Healthy, rollout.Remove: rollout.Removed}[a.Kind]}
			if w.slow && a.Kind == rollout.Remove {
				o.Result, o.Reason = rollout.Deferred, "objects are terminating"
			}
			if why := w.ill[a.Target]; why != "" {
				o.Result, o.Reason = rollout.Refused, why
			}
			w.state.Record(o, now)
		}
		if len(plan.Actions) == 0 {
			break
		}
	}
	w.a.Observe(w.state, Pass{Monorepo: "shop", Commit: w.want.Commit, New: w.want.Commit != w.newest, Since: w.taken, Happened: true})
	w.newest, w.taken = w.want.Commit, w.want.Commit
	synctest.Wait()
}

// through makes passes until what is healthy is through all waves.
func (w *world) through() {
	w.pass()
	time.Sleep(11 * time.Minute)
	w.pass()
}

// failing has the commit bb fail on a target, after aa was released.
func (w *world) failing(units ...config.UnitPath) {
	w.commit("aa", units...)
	w.through()
	w.commit("bb", "cart")
	w.ill["a"] = "it does not start"
	w.pass()
	w.pass()
}

func (w *world) says(what string, want ...string) {
	w.Helper()
	synctest.Wait()
	w.forge.mu.Lock()
	got := w.forge.said
	w.forge.said = nil
	w.forge.mu.Unlock()
	if !slices.Equal(got, want) {
		w.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// A release by waves, one that fails, what was told before a restart, and one that is
// overtaken.
func TestAnnounce(t *testing.T) {
	play(t, func(w *world) {
		w.commit("aa", "cart", "web")
		w.pass()
		w.says("the canary soaks",
			"aa the commit success: taken",
			"aa canary pending: 0 of 2 units passed: soaks until Jan 1 00:10 UTC",
			"aa rest pending: its turn has not come")
		time.Sleep(time.Minute)
		w.pass()
		w.says("nothing happened")
		w.stop()
		w.start()
		w.pass()
		w.says("it was told before")
		time.Sleep(10 * time.Minute)
		w.pass()
		w.says("it is through", "aa canary success: passed: 2 units", "aa rest success: passed: 2 units")

		w.ill["a"] = "Deployment/cart: no such image"
		w.forge.merges[commitOf("bb")], w.forge.merges[commitOf("ee")] = 7, 9
		w.commit("bb", "cart")
		w.forge.set(&forge.LimitError{Until: time.Now().Add(time.Hour)})
		w.pass()
		delete(w.ill, "a")
		w.says("the forge takes nothing")
		time.Sleep(time.Minute)
		w.pass() // it is rolled back
		time.Sleep(30 * time.Minute)
		w.forge.set(nil)
		w.says("before its limit is over")
		time.Sleep(31 * time.Minute)
		reason := "a: Deployment/cart: no such image"
		comment := "### swell: :x: the release of bbbbbbbb failed for 1 unit ```text cart: rolled back in wave canary: " + reason + " ``` What to do: merge a change that mends it, which is released by itself; or, when the cause is gone, try the same again: ```text swell describe cart swell retry cart ```"
		w.says("afterwards", "bb the commit success: taken", "bb canary failure: rolled back: "+reason, "bb rest failure: not reached", "comment 7: "+comment, "comment 9: "+comment)

		w.commit("cc", "cart")
		w.pass()
		w.says("the next one",
			"cc the commit success: taken",
			"cc canary pending: soaks until "+time.Now().Add(10*time.Minute).UTC().Format("Jan 2 15:04 MST"),
			"cc rest pending: its turn has not come",
			"comment 7: ### swell: the release of bbbbbbbb failed, and newer commits took its place",
			"comment 9: ### swell: the release of bbbbbbbb failed, and newer commits took its place")
		w.commit("dd", "cart")
		w.pass()
		w.says("one more overtakes it",
			"dd the commit success: taken",
			"dd canary pending: soaks until "+time.Now().Add(10*time.Minute).UTC().Format("Jan 2 15:04 MST"),
			"dd rest pending: its turn has not come",
			"cc canary success: superseded by dddddddd",
			"cc rest success: superseded by dddddddd")
	})
}

// The course of the release stands below the reviewed text, wave by wave: not for each unit and soak,
// and it is written a bounded number of times.
func TestCourse(t *testing.T) {
	play(t, func(w *world) {
		w.forge.merges[commitOf("aa")], w.forge.reviewed = 7, map[int]bool{7: true}
		below := func(step string, want ...string) {
			t.Helper()
			got := w.hears("below")
			for i := range want {
				want[i] = "below 7: --- **After the merge**, with commit aaaaaaaa ```text the commit: taken " + want[i] + " ```"
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", step, got, want)
			}
		}
		w.commit("aa", "cart", "web")
		w.want.Units["web"].Rollout.Waves[0].Soak = 15 * time.Minute
		w.pass()
		below("it begins", "canary: under way rest: its turn has not come")
		for range 9 {
			time.Sleep(time.Minute)
			w.pass()
			w.stop()
			w.start()
		}
		below("nothing new while it soaks")
		time.Sleep(2 * time.Minute)
		w.pass()
		below("one unit is in the next wave", "canary: under way rest: under way")
		time.Sleep(10 * time.Minute)
		w.pass()
		below("it is over", "canary: passed: 2 units rest: passed: 2 units")

		w.forge.merges[commitOf("bb")] = 7
		w.commit("bb", "cart")
		w.pass()
		for i := range 100 { // it fails and goes on again and again
			w.state.Units["cart"].Rollout.Status = []rollout.Status{rollout.Held, rollout.Progressing}[i%2]
			w.a.Observe(w.state, Pass{Monorepo: "shop", Commit: w.want.Commit, Happened: true})
			time.Sleep(2 * time.Minute)
		}
		if n := len(w.hears("below")); n < maxEdits || n > maxEdits+1 {
			t.Errorf("%d edits", n)
		}
	})
}

// A removed unit passes no wave: what the status says of it is that it is being removed, and then that
// it is.
func TestRemovedUnit(t *testing.T) {
	play(t, func(w *world) {
		w.commit("aa", "cart", "web")
		w.through()
		w.says("both", "aa the commit success: taken",
			"aa canary pending: 0 of 2 units passed: soaks until Jan 1 00:10 UTC", "aa rest pending: its turn has not come",
			"aa canary success: passed: 2 units", "aa rest success: passed: 2 units")
		w.commit("bb")
		delete(w.want.Units, "cart")
		w.slow = true
		w.pass()
		const removes = "pending: removes what is not wanted any more"
		w.says("it is being removed", "bb the commit success: taken", "bb canary "+removes, "bb rest "+removes)
		w.slow = false
		for range 2 {
			time.Sleep(6 * time.Minute)
			w.pass()
		}
		time.Sleep(6 * time.Minute) // since the removal
		w.pass()
		w.says("it is removed", "bb canary success: removed", "bb rest success: removed")
	})
}

// A failure is told on the pull requests that were merged while the daemon was down, too.
func TestFailureOfAnEarlierMerge(t *testing.T) {
	play(t, func(w *world) {
		w.commit("aa", "cart")
		w.through()
		w.stop() // then ee is merged, and bb after it
		w.start()
		w.forge.merges[commitOf("bb")], w.forge.merges[commitOf("ee")] = 7, 9
		w.ill["a"] = "no such image"
		w.commit("bb", "cart")
		w.pass()
		w.pass()
		findings := strings.Join(w.hears("comment"), "\n")
		for _, pull := range []string{"comment 7", "comment 9"} {
			if !strings.Contains(findings, pull+": ### swell: :x: the release of bbbbbbbb failed") {
				t.Errorf("%s: %q", pull, findings)
			}
		}
	})
}

// What the forge refuses is tried again, and then the newest is told.
func TestAnnounceFails(t *testing.T) {
	play(t, func(w *world) {
		w.forge.set(errors.New("connection refused"))
		w.commit("aa", "cart")
		w.through()
		w.says("nothing")
		if got := w.a.Trouble(); got != "tell of commit aaaaaaaa: connection refused" {
			t.Errorf("trouble %q", got)
		}
		w.forge.set(nil)
		time.Sleep(11 * time.Minute)
		w.says("the newest", "aa the commit success: taken", "aa canary success: passed: 1 unit", "aa rest success: passed: 1 unit")
	})
}

// What the forge refuses of one commit keeps nothing from being told of others; what it will
// never take is not tried again.
func TestAnnounceRefusals(t *testing.T) {
	play(t, func(w *world) {
		tried := &atomic.Int64{}
		refuse := func(why *forge.Error) {
			w.forge.mu.Lock()
			defer w.forge.mu.Unlock()
			w.forge.refuse = func(s forge.Status) error {
				if s.Commit != commitOf("bb") {
					return nil
				}
				tried.Add(1)
				return why
			}
		}
		refuse(&forge.Error{Status: http.StatusForbidden, Text: "not yours"})
		w.commit("bb", "cart")
		w.pass()
		w.commit("cc", "web")
		w.pass()
		w.says("the other one", "cc the commit success: taken", "cc canary pending: soaks until Jan 1 00:10 UTC", "cc rest pending: its turn has not come")
		if got := w.a.Trouble(); got != "tell of commit bbbbbbbb: 403 Forbidden: not yours" {
			t.Errorf("trouble %q", got)
		}
		time.Sleep(time.Minute)
		if n := tried.Load(); n < 2 || n > 6 {
			t.Errorf("tried %d times in a minute", n)
		}
		refuse(&forge.Error{Status: http.StatusUnprocessableEntity, Text: "No commit found for SHA"})
		w.forge.mu.Lock()
		w.forge.unknown = map[config.Commit]bool{commitOf("bb"): true}
		w.forge.mu.Unlock()
		time.Sleep(20 * time.Minute)
		tried.Store(0)
		if time.Sleep(24 * time.Hour); tried.Load() != 0 || w.a.Trouble() != "" {
			t.Errorf("tried %d times more, trouble %q", tried.Load(), w.a.Trouble())
		}
	})
}

// While many units pass one after the other, their number is told once a minute.
func TestAnnounceCounts(t *testing.T) {
	play(t, func(w *world) {
		var units []config.UnitPath
		for i := range 50 {
			units = append(units, config.UnitPath(fmt.Sprintf("u%02d", i)))
		}
		w.commit("aa", units...)
		for _, unit := range units { // each soaks by itself
			w.want.Units[unit].Rollout.Waves[0].Soak = 0
		}
		w.pass()
		w.says("all at once", "aa the commit success: taken", "aa canary success: passed: 50 units", "aa rest success: passed: 50 units")
		for i, unit := range units {
			w.commit("bb", unit)
			w.want.Units[unit].Rollout.Waves[0].Soak = time.Duration(10*i) * time.Second
		}
		w.pass()
		synctest.Wait()
		w.forge.mu.Lock()
		w.forge.said = nil
		w.forge.mu.Unlock()
		for range 500 {
			time.Sleep(time.Second)
			w.pass()
		}
		synctest.Wait()
		w.forge.mu.Lock()
		said := slices.DeleteFunc(w.forge.said, func(line string) bool { return !strings.HasPrefix(line, "bb canary") })
		w.forge.mu.Unlock()
		if n := len(said); n < 5 || n > 12 || said[n-1] != "bb canary success: passed: 50 units" {
			t.Errorf("%d statuses in 500 s:\n%s", n, strings.Join(said, "\n"))
		}
	})
}

// What was told of a commit that is over is not kept in memory, and is not told again.
func TestAnnounceForgets(t *testing.T) {
	play(t, func(w *world) {
		for i := range 20 {
			w.commit(fmt.Sprintf("%02d", 10+i), "cart")
			w.through()
		}
		synctest.Wait()
		if told, known := len(w.a.told), len(w.a.known); told > 2 || known > 2 {
			t.Errorf("%d commits in memory, %d known", told, known)
		}
		w.forge.mu.Lock()
		w.forge.said = nil
		w.forge.mu.Unlock()
		for range 5 {
			w.pass()
		}
		w.says("nothing")
	})
}

// A commit that nothing is taken from, or that breaks units, or that releases nothing, has a
// status, which outlives a restart.
func TestAnnounceCommits(t *testing.T) {
	play(t, func(w *world) {
		observe := func(name string, pass Pass) {
			pass.Monorepo, pass.Commit, pass.New, pass.Happened = "shop", commitOf(name), true, true
			w.a.Observe(w.state, pass)
		}
		observe("aa", Pass{})
		w.says("it releases nothing", "aa the commit success: taken")
		observe("bb", Pass{Refused: "commit bbbbbbbb: fleet.yaml:3:1: no such field"})
		w.says("it is refused", "bb the commit failure: nothing is taken from it: fleet.yaml:3:1: no such field")
		observe("cc", Pass{Broken: 2})
		w.says("it breaks units", "cc the commit failure: taken, but for 2 units with new problems")
		w.stop()
		w.start()
		observe("cc", Pass{}) // what it broke is not known any more
		w.says("after a restart")
		observe("cc", Pass{}) // Checkers answered meanwhile
		w.says("it is judged once more", "cc the commit success: taken")
		observe("dd", Pass{})
		w.says("the next one", "dd the commit success: taken")
	})
}

// Where a look takes long, passes go without, and the last thing that happened is told all the
// same.
func TestAnnounceBound(t *testing.T) {
	play(t, func(w *world) {
		w.stop() // nobody else takes the words
		now, woken := time.Now(), &atomic.Int64{}
		w.a.Now = func() time.Time { now = now.Add(100 * time.Millisecond); return now } // a look takes 100 ms
		w.a.Wake = func() { woken.Add(1) }
		looks := func() int {
			select {
			case <-w.a.wake:
				return 1
			default:
				return 0
			}
		}
		w.a.Observe(w.state, Pass{Monorepo: "shop", Commit: commitOf("aa"), New: true, Happened: true})
		n := looks()
		for range 10 {
			w.a.Observe(w.state, Pass{Monorepo: "shop", Commit: commitOf("aa"), Happened: true})
		}
		if n += looks(); n != 1 || woken.Load() != 0 {
			t.Errorf("%d looks in 12 passes, woken %d times", n, woken.Load())
		}
		time.Sleep(2 * time.Second)
		now = now.Add(2 * time.Second)
		w.a.Observe(w.state, Pass{Monorepo: "shop", Commit: commitOf("aa")})
		if n = looks(); n != 1 || woken.Load() != 1 {
			t.Errorf("%d looks afterwards, woken %d times", n, woken.Load())
		}
		w.start()
	})
}

// hears takes what was told since the last time, of a commit.
func (w *world) hears(commit string) (said []string) {
	synctest.Wait()
	w.forge.mu.Lock()
	defer w.forge.mu.Unlock()
	for _, line := range w.forge.said {
		if strings.HasPrefix(line, commit) {
			said = append(said, line)
		}
	}
	w.forge.said = nil
	return said
}

// That a newer commit took the place of one whose release failed is told on its pull request,
// also where others came between, and after a restart.
func TestAnnounceMended(t *testing.T) {
	for _, restart := range []bool{false, true} {
		play(t, func(w *world) {
			w.forge.merges[commitOf("bb")] = 7
			w.failing("cart", "web")
			if said := w.hears("comment 7"); len(said) != 1 || !strings.Contains(said[0], "failed for 1 unit") {
				t.Errorf("%q", said)
			}
			delete(w.ill, "a")
			w.commit("cc", "web") // it has nothing to do with that
			w.through()
			if restart {
				w.stop()
				w.start()
				w.pass()
			}
			w.hears("")
			w.commit("dd", "cart")
			w.through()
			if said := w.hears("comment 7"); len(said) != 1 || !strings.Contains(said[0], "newer commits took its place") {
				t.Errorf("restarted %t: %q", restart, said)
			}
			time.Sleep(11 * time.Minute)
			w.pass()
			if n := len(w.a.told); n > 1 {
				t.Errorf("%d commits in memory", n)
			}
		})
	}
}

// Where the forge shows the commit to nobody for some hours, all is told afterwards.
func TestAnnounceHidden(t *testing.T) {
	play(t, func(w *world) {
		w.forge.set(&forge.Error{Status: http.StatusNotFound})
		w.commit("aa", "cart")
		w.pass()
		time.Sleep(5 * time.Hour)
		w.pass()
		if got := w.a.Trouble(); got == "" {
			t.Error("no trouble")
		}
		w.forge.set(nil)
		time.Sleep(11 * time.Minute)
		w.says("all", "aa the commit success: taken", "aa canary success: passed: 1 unit", "aa rest success: passed: 1 unit")
	})
}

// While many units fail one after the other, that is told once a minute.
func TestAnnounceFailures(t *testing.T) {
	play(t, func(w *world) {
		w.forge.merges[commitOf("bb")] = 7
		var units []config.UnitPath
		for i := range 50 {
			units = append(units, config.UnitPath(fmt.Sprintf("u%02d", i)))
		}
		w.commit("aa", units...)
		w.through()
		w.hears("")
		w.ill["a"] = "it does not start"
		var comments, statuses int
		for _, unit := range units {
			w.commit("bb", unit)
			w.pass()
			time.Sleep(10 * time.Second)
			for _, line := range w.hears("") {
				if strings.HasPrefix(line, "comment 7") {
					comments++
				} else {
					statuses++
				}
			}
		}
		if comments < 5 || comments > 10 || statuses > 30 {
			t.Errorf("%d comments and %d statuses in 500 s", comments, statuses)
		}
		time.Sleep(2 * time.Minute)
		if said := w.hears("comment 7"); len(said) != 1 || !strings.Contains(said[0], "failed for 50 units") {
			t.Errorf("in the end %q", said)
		}
	})
}

// What was told on another forge is told once more on this one.
func TestAnnounceElsewhere(t *testing.T) {
	play(t, func(w *world) {
		w.commit("aa", "cart")
		w.pass()
		w.hears("")
		w.stop()
		w.project = "gitea https://elsewhere.example.com/shop/fleet"
		w.start()
		w.pass()
		w.says("once more", "aa the commit success: taken", "aa canary pending: soaks until Jan 1 00:10 UTC", "aa rest pending: its turn has not come")
	})
}

// While the forge is closed, something that is due before keeps nobody busy.
func TestAnnounceClosed(t *testing.T) {
	play(t, func(w *world) {
		tried, limited := &atomic.Int64{}, &atomic.Bool{}
		w.forge.refuse = func(s forge.Status) error {
			tried.Add(1)
			if s.Commit == commitOf("aa") && limited.Load() {
				return &forge.LimitError{Until: time.Now().Add(time.Hour)}
			}
			return &forge.Error{Status: http.StatusForbidden} // it is tried again after a pause
		}
		w.commit("aa", "cart")
		w.pass()
		w.commit("bb", "web")
		w.pass()
		limited.Store(true)
		time.Sleep(10 * time.Minute)
		tried.Store(0)
		time.Sleep(50 * time.Minute)
		if n := tried.Load(); n != 0 {
			t.Errorf("asked %d times", n)
		}
		time.Sleep(time.Hour)
		if tried.Load() == 0 {
			t.Error("not asked again")
		}
	})
}

// A pull request that is locked keeps nobody else from being told, and is let alone in the end.
func TestAnnounceLocked(t *testing.T) {
	play(t, func(w *world) {
		w.forge.merges[commitOf("bb")], w.forge.merges[commitOf("ee")] = 7, 8
		w.forge.locked = map[int]bool{7: true}
		w.failing("cart")
		if said := w.hears("comment"); len(said) != 1 || !strings.HasPrefix(said[0], "comment 8: ") {
			t.Errorf("%q", said)
		}
		if got := w.a.Trouble(); !strings.Contains(got, "locked") {
			t.Errorf("trouble %q", got)
		}
		time.Sleep(24 * time.Hour)
		w.pass()
		if got := w.a.Trouble(); got != "" {
			t.Errorf("trouble %q", got)
		}
		if said := w.hears("comment"); len(said) != 0 {
			t.Errorf("%q", said)
		}
	})
}

// A commit that is rendered again after a restart keeps its verdict.
func TestAnnounceOnceMore(t *testing.T) {
	play(t, func(w *world) {
		observe := func(broken int) {
			w.a.Observe(w.state, Pass{Monorepo: "shop", Commit: commitOf("aa"), New: true, Broken: broken, Problems: true, Happened: true})
		}
		observe(2)
		w.says("at first", "aa the commit failure: taken, but for 2 units with new problems")
		w.stop()
		w.start()
		for range 3 {
			observe(0) // nobody knows any more
			time.Sleep(time.Minute)
		}
		w.says("nothing")
	})
}
