// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

var errDisk = errors.New("the disk takes nothing more")

// failing is a real store that writes nothing any more after some transactions.
type failing struct {
	*store.Store
	left   int
	failed func() // is told of the first one that fails
}

func (f *failing) Update(ctx context.Context, do func(*store.Tx) error) error {
	f.left--
	if f.left == -1 {
		f.failed()
	}
	if f.left < 0 {
		return errDisk
	}
	return f.Store.Update(ctx, do)
}

// writesOf are the requests that changed anything, but for Leases.
func writesOf(events []audited) (all []string) {
	for _, e := range events {
		if e.over() && !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && e.ObjectRef.Resource != "leases" && e.ResponseStatus.Code < http.StatusBadRequest {
			all = append(all, e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Name)
		}
	}
	return all
}

// TestFailingStore lets each transaction be the first one that fails, of days on
// which everything happens: drift, a new version, a removed object, a unit
// with a problem, an order, and a state that was lost. Nothing is written to a cluster
// after it, the pass says why, and the next daemon finishes what this one began.
// SWELL_FAILURES=all takes them all, else it is every third one.
func TestFailingStore(t *testing.T) {
	t.Parallel()
	for what, day := range map[string]func(w *world, tag int){"events": eventfulDay, "a lost state": dayOfLoss} {
		t.Run(what, func(t *testing.T) {
			w := newWorldOn(t, realClusters(t))
			w.write("fleet/fleet.yaml", strings.ReplaceAll(fleetYAML, "soak: 10m, ", ""))
			w.commit()
			w.start()
			w.sweeping(config.Drift{})
			w.rest()
			first, step := rand.IntN(3), 3
			if os.Getenv("SWELL_FAILURES") == "all" {
				first, step = 0, 1
			}
			failures := 0
			for n := first; ; n += step {
				day(w, n+2)
				if !w.failsAfter(n) {
					break
				}
				failures++
				w.stop()
				w.failure = nil
				w.start()
				w.rest()
				if want := strings.TrimSpace(strings.Repeat(fmt.Sprint(n+2, " "), 3)); w.tags("app") != want || !w.settledAll() {
					t.Fatalf("after %d transactions: %s, want %s\n%s", n, w.tags("app"), want, w.describe())
				}
			}
			t.Logf("%d transactions of a day failed, every %d from %d on", failures, step, first)
			if failures*step < 6 {
				t.Errorf("only %d transactions in a day in which everything happens", failures*step)
			}
		})
	}
}

// eventfulDay has things wait for the daemon of which each takes a transaction of
// another step.
func eventfulDay(w *world, tag int) {
	w.edit("dev-1/a", configMaps, "one", `{"data":{"image":"drifted"}}`, "somebody")
	w.app("app", fmt.Sprint(tag), "one", fmt.Sprintf("of-%d", tag)) // and not that of yesterday
	w.write("services/broken/app.yaml", fmt.Sprintf("apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: b}\nspec: {imag%d: x}\n", tag))
	w.write("services/broken/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: broken}\nspec: {tenant: another}\n")
	w.commit()
	w.give(order.Order{Verb: order.Retry, Scope: order.Scope{Unit: "services/app"}})
	w.now = w.now.Add(10 * time.Minute)
}

// dayOfLoss is one after which the state is gone.
func dayOfLoss(w *world, tag int) {
	w.app("app", fmt.Sprint(tag), "one")
	w.commit()
	w.lose()
	w.fresh = true
}

// failsAfter makes passes on a store that takes n transactions more, until one of
// them fails; false says that none did before all was done.
func (w *world) failsAfter(n int) bool {
	w.Helper()
	if w.daemon != nil {
		w.stop()
	}
	failed := false
	w.failure = &failing{left: n, failed: func() {
		failed = true
		w.audit()
	}}
	w.start()
	deadline := time.Now().Add(w.longest())
	for calm := 0; calm < 5; calm++ {
		if time.Now().After(deadline) {
			w.Fatalf("no rest within %s\n%s", w.longest(), w.describe())
		}
		r := w.daemon.Once(w.Context())
		if failed {
			if !errors.Is(r.Err, errDisk) {
				w.Errorf("transaction %d failed, and the pass says %v", n, r.Err)
			}
			if after := writesOf(w.audit()); len(after) > 0 {
				w.Errorf("transaction %d failed, and after it came %v", n, after)
			}
			return true
		}
		w.must(r.Err)
		if len(r.Actions) > 0 || !w.resting() || w.stepping() {
			calm = 0
		}
		w.now = w.now.Add(time.Second)
		pause(w.TB)
	}
	return false
}
