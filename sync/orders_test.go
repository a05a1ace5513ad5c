// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestRetryOrders: what was turned back is tried again without a commit, once for
// each order, also when the daemon was not running; the history says who and why.
func TestRetryOrders(t *testing.T) { simulated(t, testRetryOrders) }

// beside writes to the state as the daemon's API does, or as an operator's own process
// while there is no daemon.
func (w *world) beside(do func(tx *store.Tx) error) {
	w.Helper()
	if w.daemon == nil {
		w.must(store.Alone(w.Context(), filepath.Join(w.dir, "state"), do))
		return
	}
	b := w.store.Beside()
	w.must(errors.Join(b.Update(w.Context(), do), b.Close()))
}

// give gives an order of ann's.
func (w *world) give(o order.Order) {
	w.Helper()
	o.At, o.By = w.now, "ann"
	w.beside(func(tx *store.Tx) error {
		_, err := tx.Give(o, "")
		return err
	})
}

func testRetryOrders(t *testing.T, w *world) {
	w.release()
	w.app("app", "broken", "one")
	w.commit()
	w.until("the way back", w.is("app", 2, rollout.RolledBack))
	order := func(reason string) {
		t.Helper()
		w.give(order.Order{Verb: order.Retry, Scope: order.Scope{Unit: "services/app"}, Reason: reason})
	}
	order("first")
	w.until("the next attempt", w.is("app", 3, rollout.Progressing))
	w.until("the way back", w.is("app", 3, rollout.RolledBack))
	w.stop()
	order("second")
	w.start()
	w.until("the next attempt", w.is("app", 4, rollout.Progressing))
	w.until("the way back", w.is("app", 4, rollout.RolledBack))
	w.stop()
	w.start()
	for range 10 {
		w.pass()
	}
	if !w.is("app", 4, rollout.RolledBack)() {
		t.Error(w.describe())
	}
	orders, err := w.store.Orders()
	if err != nil || len(orders) > 0 {
		t.Errorf("left: %+v, %v", orders, err)
	}
	var said []string
	events, err := w.store.History("services/app", 1000)
	w.must(err)
	for _, e := range events {
		if e.Kind == "retry" {
			said = append(said, e.Text)
		}
	}
	if len(said) != 2 || said[0] != "by ann: second; tried again" || said[1] != "by ann: first; tried again" {
		t.Errorf("history: %q", said)
	}
}

// TestOrderThatIsOver: an order whose time was over before the daemon took it up is dropped, and
// the history says so once.
func TestOrderThatIsOver(t *testing.T) { simulated(t, testOrderThatIsOver) }

func testOrderThatIsOver(t *testing.T, w *world) {
	w.release()
	w.give(order.Order{Verb: order.Pause, Scope: order.Scope{Unit: "services/app"}, Until: w.now.Add(-time.Minute)})
	w.pass()
	w.give(order.Order{Verb: order.Retry, Scope: order.Scope{Unit: "services/app"}})
	w.pass()
	if orders, err := w.store.Orders(); err != nil || len(orders) > 0 {
		t.Errorf("left: %+v, %v", orders, err)
	}
	if lines := w.events("app", "pause"); len(lines) != 1 || !strings.Contains(lines[0], "not carried out: until ") {
		t.Errorf("history: %q", lines)
	}
}

// TestOrdersByAnotherClock: where the clock is set between the beginning of a pass and an order that it takes,
// the order is in force for as long as it was given for. Of one that was given while there was no daemon,
// the time counts.
func TestOrdersByAnotherClock(t *testing.T) { simulated(t, testOrdersByAnotherClock) }

func testOrdersByAnotherClock(t *testing.T, w *world) {
	w.release()
	given := func(by string, when time.Time) {
		o := order.Order{At: when, By: by, Verb: order.Pause, Scope: order.Scope{Unit: "services/app"}}
		o.EndAfter(5 * time.Minute)
		w.beside(func(tx *store.Tx) error {
			_, err := tx.Give(o, "")
			return err
		})
	}
	ends := func() map[string]time.Duration {
		found := map[string]time.Duration{}
		standing, err := w.store.Standing()
		w.must(err)
		for _, o := range standing {
			found[o.By] = o.Until.Sub(w.now).Round(time.Minute)
		}
		return found
	}
	given("back", w.now.Add(-time.Hour))
	given("forward", w.now.Add(time.Hour))
	given("same", w.now)
	w.pass()
	want := map[string]time.Duration{"back": 5 * time.Minute, "forward": 5 * time.Minute, "same": 5 * time.Minute}
	wantNow := func(when string) {
		t.Helper()
		if diff := cmp.Diff(want, ends()); diff != "" {
			t.Errorf("in force %s (-want +got):\n%s", when, diff)
		}
	}
	wantNow("at once")
	w.stop()
	given("down", w.now.Add(-time.Hour))
	given("down lately", w.now.Add(-2*time.Minute))
	w.start()
	w.pass()
	want["down lately"] = 3 * time.Minute
	wantNow("after a restart")
	w.stop()
	w.now = w.now.Add(-time.Hour)
	given("down, and set back", w.now.Add(time.Hour))
	w.start()
	w.pass()
	want["down, and set back"] = 5 * time.Minute
	wantNow("after a restart by another clock")
}
