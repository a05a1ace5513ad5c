// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// arrived is a world in which the first commit has arrived.
func arrived(t *testing.T, dir string, change func(*shape)) *world {
	t.Helper()
	w := newWorld(1, dir, newStats())
	change(&w.shape)
	w.git = newGit(w)
	w.judge.offer(w.git.head)
	for i := 0; w.left() != ""; i++ {
		if w.calmly(nil); i > patienceSteps || w.judge.objection != nil {
			t.Fatalf("the first commit does not arrive: %s, %v", w.left(), w.judge.objection)
		}
	}
	return w
}

// goOnFor lets time pass, with something that happens each time that a while is over.
func (w *world) goOnFor(t *testing.T, d, while time.Duration, happens func(n int)) {
	t.Helper()
	began := w.judge.elapsed
	for n := 0; w.judge.elapsed-began < d && w.judge.objection == nil; {
		if w.judge.elapsed-began >= time.Duration(n)*while {
			happens(n)
			n++
		}
		w.calmly(map[string]time.Duration{})
		w.history = nil // hundreds of thousands of lines
	}
	if w.judge.objection != nil {
		t.Fatal(w.judge.objection)
	}
}

// rows are how many moments the history of the state has.
func (w *world) rows(t *testing.T) int {
	t.Helper()
	events, err := w.process.store.History("", 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}

func played(t *testing.T, play func(t *testing.T, dir string)) {
	dir := folder(t.TempDir())
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) { play(t, dir) })
}

// TestClockThatStepsEachMinute: with a clock that is set each minute for an hour, by up to ten
// minutes forward or back, Git is looked at, waves soak as long as they should, and a release
// arrives; the judge looks at that. Each step is said once.
func TestClockThatStepsEachMinute(t *testing.T) {
	played(t, func(t *testing.T, dir string) {
		w := arrived(t, dir, func(s *shape) { s.budget, s.waves[0].soak = budget{}, 5*time.Minute })
		defer w.shutDown()
		rows := w.rows(t)
		w.goOnFor(t, time.Hour, time.Minute, func(n int) {
			d := []time.Duration{-10, 3, 7, -1, 10, -9}[n%6] * time.Minute
			w.skew += d
			w.judge.clockIsSet(d)
			if n == 10 {
				w.cleanCommit()
			}
		})
		if left := w.left(); left != "" {
			t.Errorf("after an hour: %s", left)
		}
		if rows = w.rows(t) - rows; rows > 60+50 {
			t.Errorf("%d moments in the history, want one for each of 60 steps, and those of a release", rows)
		}
		t.Logf("%d moments in the history", rows)
	})
}

// TestAWeekWithAClusterAway: over a week with a commit every six hours and a cluster that is away
// for a day, the daemon does not grow, seldom asks that cluster, and in the end all has arrived.
// SWELL_WEEK=168h is the whole week; the short form has eight hours, of which the cluster is away
// for one.
func TestAWeekWithAClusterAway(t *testing.T) {
	week, commits := 8*time.Hour, 0
	if text := os.Getenv("SWELL_WEEK"); text != "" {
		var err error
		if week, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	every, away, gone := max(time.Hour, week/28), week/7, week/2
	played(t, func(t *testing.T, dir string) {
		w := arrived(t, dir, func(s *shape) { s.budget = budget{} })
		defer w.shutDown()
		c, rows, heap, asked, before := w.clusters["two"], w.rows(t), heapSize(), 0, w.gate.asked["one"]
		w.goOnFor(t, week, every, func(n int) {
			since := time.Duration(n) * every
			commits++
			if w.cleanCommit(); c.away == "" && since >= gone && since < gone+away {
				c.away, asked = "refuses", w.gate.asked["two"]
				w.gate.cut("two")
			} else if c.away != "" && since >= gone+away {
				c.away, asked = "", w.gate.asked["two"]-asked
			}
		})
		w.goOnFor(t, time.Hour, time.Hour, func(int) {})
		if left := w.left(); left != "" {
			t.Errorf("in the end: %s", left)
		}
		rows, heap = w.rows(t)-rows, heapSize()-heap
		perMinute := float64(asked) / away.Minutes()
		t.Logf("%s, away %s: %d moments in the history, heap %+.1f MB, %.1f requests a minute to what is away, %.1f to another one",
			week, away, rows, float64(heap)/(1<<20), perMinute, float64(w.gate.asked["one"]-before)/week.Minutes())
		switch {
		case rows > 60*commits:
			t.Errorf("%d moments in the history of %d commits", rows, commits)
		case heap > 64<<20:
			t.Errorf("the heap grew by %d bytes", heap)
		case perMinute > 40: // every five seconds whether it is back, and what a release asks
			t.Errorf("%.1f requests a minute to a cluster that is away", perMinute)
		}
	})
}

func heapSize() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
