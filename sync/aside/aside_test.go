// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package aside

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// job is work that takes some time.
func job(value string, takes, keep time.Duration, did *int) func() (string, time.Duration) {
	return func() (string, time.Duration) {
		*did++
		time.Sleep(takes)
		return value, keep
	}
}

// TestPatience: nobody waits longer than the patience, nor at all for the rest of a group that was
// late. Work that goes on meanwhile is done once, and there later.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[string, string]
		var did int
		ask := func(key, group string, patience, takes time.Duration, want string, waits time.Duration) {
			t.Helper()
			begun := time.Now()
			got, ok := w.Do(key, Group{Name: group}, patience, job(key, takes, 0, &did))
			synctest.Wait() // the work and who waits for it have the same patience
			if ok != (want != "") || got != want || time.Since(begun) != waits {
				t.Errorf("%s: got %q %t after %s, want %q after %s", key, got, ok, time.Since(begun), want, waits)
			}
		}
		const s = time.Second
		ask("quick", "a", 5*s, s, "quick", s)
		ask("slow", "b", 5*s, 60*s, "", 5*s)
		ask("slow", "b", 5*s, 60*s, "", 0)
		ask("other", "b", 5*s, 10*s, "", 0)
		ask("third", "b", 5*s, 10*s, "", 0)
		ask("quick", "a", 5*s, s, "quick", s) // the slow one is in nobody's way
		time.Sleep(60 * s)
		ask("slow", "b", 5*s, 60*s, "slow", 0)
		ask("other", "b", 5*s, 10*s, "other", 0)
		ask("third", "b", 0, 10*s, "third", 0)
		ask("patient", "b", 0, 10*s, "patient", 10*s)
		time.Sleep(2 * lateFor)
		ask("later", "b", 5*s, 2*s, "later", 2*s) // its group has its turn again
		if did != 7 {
			t.Errorf("%d jobs were done, want 7", did)
		}
	})
}

// TestKept: a result that is kept is given until its time is over.
func TestKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[string, string]
		var did int
		for range 3 {
			w.Do("a", Group{Name: "a"}, 0, job("a", time.Second, time.Hour, &did))
		}
		if did != 1 {
			t.Errorf("%d jobs were done, want 1", did)
		}
		time.Sleep(2 * time.Hour)
		if w.Do("a", Group{Name: "a"}, 0, job("a", time.Second, 0, &did)); did != 2 {
			t.Errorf("%d jobs were done after its time, want 2", did)
		}
	})
}

// TestNobodyTakes: results that nobody takes are bounded.
func TestNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[int, string]
		var did int
		w.Do(-1, Group{Name: "a"}, time.Second, job("", time.Minute, 0, &did)) // the group is late
		synctest.Wait()
		for key := range 3 * maxAsked {
			w.Do(key, Group{Name: "a"}, time.Second, job("", time.Millisecond, 0, &did))
			time.Sleep(2 * time.Minute)
		}
		if len(w.asked) > maxAsked {
			t.Errorf("%d results are kept", len(w.asked))
		}
	})
}

// TestPatientGoesAhead: who waits as long as it takes waits for no work that nobody waits for.
func TestPatientGoesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[int, string]
		var did int
		for key := range 10 {
			w.Do(key, Group{Name: "a"}, time.Second, job("", time.Hour, 0, &did))
			synctest.Wait()
		}
		begun := time.Now()
		got, ok := w.Do(-1, Group{Name: "a"}, 0, job("it", time.Minute, 0, &did))
		if got != "it" || !ok || time.Since(begun) != time.Minute {
			t.Errorf("got %q %t after %s", got, ok, time.Since(begun))
		}
		time.Sleep(24 * time.Hour)
	})
}

// TestLeft: work that nobody waits for any more is no more than there are processors, and so is what
// somebody waits for.
func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[int, string]
		var now, most atomic.Int64
		processors := runtime.GOMAXPROCS(0)
		for key := range 10 * processors {
			w.Do(key, Group{fmt.Sprint(key), "a"}, time.Second, func() (string, time.Duration) {
				most.Store(max(most.Load(), now.Add(1)))
				time.Sleep(time.Hour)
				now.Add(-1)
				return "", 0
			})
		}
		if got := most.Load(); got > int64(2*processors) {
			t.Errorf("%d at a time on %d processors", got, processors)
		}
		time.Sleep(24 * time.Hour)
	})
}

// TestManyAside: the work aside is bounded, and the rest is begun when it is asked for later.
func TestManyAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[int, string]
		var did int
		w.Do(-1, Group{Name: "a"}, time.Second, job("", time.Minute, 0, &did)) // the group is late
		synctest.Wait()
		for key := range 3 * maxAsked {
			w.Do(key, Group{Name: "a"}, time.Second, job("", 100*time.Millisecond, 0, &did))
		}
		if len(w.asked) > maxAsked {
			t.Errorf("%d are asked for", len(w.asked))
		}
		time.Sleep(lateFor / 3)
		w.Do(3*maxAsked, Group{Name: "a"}, time.Second, job("last", 2*time.Second, 0, &did))
		time.Sleep(lateFor / 3)
		if got, ok := w.Do(3*maxAsked, Group{Name: "a"}, time.Second, job("", time.Second, 0, &did)); got != "last" || !ok {
			t.Errorf("got %q %t", got, ok)
		}
	})
}

// TestManyGroups: however many groups of an owner are late, callers wait for a few of them, and another
// owner's work is done in turn, or aside before most of theirs.
func TestManyGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[string, string]
		var did int
		ask := func(owner, name string, takes time.Duration) (ok bool) {
			_, ok = w.Do(owner+name, Group{owner, name}, 5*time.Second, job(name, takes, 0, &did))
			synctest.Wait()
			return ok
		}
		begun := time.Now()
		for n := range 2 * maxWaiting {
			if ask("bad", fmt.Sprint(n), time.Minute) {
				t.Errorf("%d: in time", n)
			}
		}
		if waited := time.Since(begun); waited != mostOfOwner*5*time.Second {
			t.Errorf("callers waited %s for one owner", waited)
		}
		if len(w.asked) > maxWaiting+mostOfOwner+1 { // one is under way
			t.Errorf("%d results are kept for one owner", len(w.asked))
		}
		if !ask("good", "quick", time.Second) {
			t.Error("another owner's work is not done in turn")
		}
		for n := range mostOfOwner {
			ask("good", fmt.Sprint(n), 10*time.Second)
		}
		if ask("good", "aside", time.Second) {
			t.Error("work of an owner whose groups were late is done in turn")
		}
		time.Sleep(122 * time.Second) // one of the bad ones is under way, and one is next
		if !ask("good", "aside", time.Second) {
			t.Error("another owner's work is not done before all of the bad ones")
		}
		time.Sleep(lateWithin)
		if !ask("good", "later", time.Second) {
			t.Error("an owner's work stays aside")
		}
		time.Sleep(24 * time.Hour)
	})
}

// TestManyOwners: however many owners have groups that are late, callers wait for a few of them.
func TestManyOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[string, string]
		var did int
		begun := time.Now()
		for n := range 100 {
			owner := fmt.Sprint(n)
			w.Do(owner, Group{owner, "a"}, 5*time.Second, job(owner, time.Minute, 0, &did))
			synctest.Wait()
		}
		if waited := time.Since(begun); waited != mostOfAll*5*time.Second {
			t.Errorf("callers waited %s", waited)
		}
		time.Sleep(24 * time.Hour)
	})
}

// TestNoTurns: while others have all turns, callers for one group wait once.
func TestNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[string, string]
		var did int
		for n := range 2 * runtime.GOMAXPROCS(0) {
			go w.Do(fmt.Sprint("patient", n), Group{"b", "b"}, 0, job("", time.Hour, 0, &did))
		}
		synctest.Wait()
		begun := time.Now()
		for n := range 50 {
			w.Do(fmt.Sprint(n), Group{"a", "a"}, 5*time.Second, job("", time.Second, 0, &did))
		}
		if waited := time.Since(begun); waited != 5*time.Second {
			t.Errorf("callers waited %s", waited)
		}
		time.Sleep(24 * time.Hour)
	})
}

// TestEveryOwnerIsServed: however much others have asked for aside, an owner's work is begun.
func TestEveryOwnerIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Work[string, string]
		var did int
		for owner := range 10 {
			for n := range maxWaiting {
				w.Do(fmt.Sprint(owner, n), Group{fmt.Sprint(owner), fmt.Sprint(n)}, time.Millisecond, job("", time.Minute, 0, &did))
			}
		}
		w.Do("it", Group{"last", "a"}, time.Millisecond, job("it", time.Minute, 0, &did))
		time.Sleep(time.Hour)
		if got, ok := w.Do("it", Group{"last", "a"}, time.Millisecond, job("", time.Minute, 0, &did)); got != "it" || !ok {
			t.Errorf("got %q %t", got, ok)
		}
		time.Sleep(90 * 24 * time.Hour)
	})
}
