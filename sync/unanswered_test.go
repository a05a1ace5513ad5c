// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestAKindIsLookedAtAgain: a watch told of a drift, and then the server answered neither for the object nor
// for its kind. Nobody waits for the schedule, which may be a day away.
func TestAKindIsLookedAtAgain(t *testing.T) { simulated(t, testAKindIsLookedAtAgain) }

func testAKindIsLookedAtAgain(t *testing.T, w *world) {
	w.watching()
	var sick atomic.Bool
	asked := 0
	w.intercept("dev-1", func(rw http.ResponseWriter, r *http.Request) bool {
		if !sick.Load() || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/configmaps") || r.URL.Query().Has("watch") {
			return false
		}
		asked++
		status(http.StatusInternalServerError, "InternalError", "etcd of the kind is ill")(rw)
		return true
	})
	sick.Store(true)
	w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit")
	for range 10 {
		time.Sleep(30 * time.Second)
		w.now = w.now.Add(30 * time.Second)
		w.pass()
	}
	sick.Store(false)
	if got := w.image("dev-1/b", "one"); asked < 2 || got == "registry.example.com/app:1" {
		t.Fatalf("asked for %d times, there is %q; want no correction while nothing answers", asked, got)
	}
	for range 25 {
		time.Sleep(30 * time.Second)
		w.now = w.now.Add(30 * time.Second)
		w.pass()
	}
	if got := w.image("dev-1/b", "one"); got != "registry.example.com/app:1" {
		t.Errorf("after twelve minutes with answers there is %q", got)
	}
}
