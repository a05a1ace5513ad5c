// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/faults"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestTroubleEndsWithItsCause: what is said of a cluster that did not answer, and of
// drift that could not be looked for, is over soon after it is back, however rare
// the sweeps are; and what was put off there is gone on with at once.
func TestTroubleEndsWithItsCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proxy := w.behind("dev-2", w.config("dev-2"))
	rarely, err := cron.ParseStandard("0 0 1 * *")
	w.must(err)
	w.drift = config.Drift{Schedule: rarely, Location: time.UTC}
	w.stop()
	w.start()
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	proxy.Set(faults.Refuse)
	troubles := func() string {
		all, err := w.store.Conditions()
		w.must(err)
		var texts []string
		for _, trouble := range all {
			texts = append(texts, trouble.About+": "+trouble.Text)
		}
		return strings.Join(texts, "\n")
	}
	w.now = time.Date(w.now.Year(), w.now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	w.until("the sweep that failed", func() bool { return strings.Contains(troubles(), "cluster dev-2") })
	w.until("the release that waits", func() bool { return w.unit("app").Targets["dev-2/c"].Trouble == rollout.TroubleUnreachable })
	w.until("the other target of the wave", func() bool {
		other := w.unit("app").Targets["dev-1/b"]
		return other.Applied == other.Wanted && other.Health == rollout.HealthGood
	})
	for range 20 {
		w.now = w.now.Add(4 * time.Minute)
		w.pass()
	}
	if !strings.Contains(troubles(), "cluster dev-2") {
		t.Fatalf("troubles: %s", troubles())
	}
	proxy.Set(faults.Pass)
	back := w.now
	w.until("the end of it", func() bool { return troubles() == "" && w.tag("dev-2/c", "app") == "2" })
	if took := w.now.Sub(back); took > 2*time.Minute+30*time.Second {
		t.Errorf("it took %s of the daemon's time", took)
	}
}
