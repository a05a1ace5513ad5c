// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestARenamedUnitIsPutBack: the folder of a unit gets another name in the commit that breaks
// it. The canary goes back to what the unit had under its old name; the next good commit goes
// its usual way, and the old unit ends.
func TestARenamedUnitIsPutBack(t *testing.T) {
	simulated(t, func(t *testing.T, w *world) {
		w.app("app", "1", "one", "two")
		w.commit()
		w.release()
		w.soaked("app", 1)
		w.rest()
		before := w.allUIDs()
		w.rename("services/app", "services/basket")
		w.replace("services/basket/app.yaml", "app:1", "app:broken")
		w.replace("services/basket/app.yaml", "one, two", "one")
		w.commit()
		w.until("the rollback", w.is("basket", 2, rollout.RolledBack))
		if got := w.tag("dev-1/a", "app"); got != "1" {
			t.Errorf("the canary runs %s, want 1", got)
		}
		owner := func() string { return w.get("dev-1/a", deployments, "app").GetAnnotations()["swell.sh/unit"] }
		w.want("the canary's unit", owner(), "services/basket")
		if text := w.history("services/basket", "dev-1/a"); !strings.Contains(text, "it was unit services/app there") {
			t.Errorf("the history says\n%s", text)
		}
		w.idle(2 * time.Hour)
		w.same(before) // also what the commit drops: it failed
		w.stop()
		w.start()
		w.replace("services/basket/app.yaml", "app:broken", "app:2")
		w.commit()
		w.soaked("basket", 3)
		w.until("the end of the old unit", func() bool { return w.daemon.State().Units["services/app"] == nil })
		w.want("tags", w.tags("app"), "2 2 2")
		if left := w.there("two"); left > 0 {
			t.Errorf("%d objects are left that the good commit drops", left)
		}
		w.want("the canary's unit", owner(), "services/basket")
	})
}

// TestARenamedUnitWithAJobOfAGate: in the commit that renames a unit, its hook becomes the Job of a
// gate, which runs in the first wave alone. Elsewhere the new unit never has the Job, and the old
// one ends all the same.
func TestARenamedUnitWithAJobOfAGate(t *testing.T) {
	simulated(t, func(t *testing.T, w *world) {
		hook := func(runs string) {
			job := strings.Replace(fmt.Sprintf(smoke, 60, "1"), "swell.sh/hook: gate", "swell.sh/hook: "+runs, 1)
			w.write("kinds/app/kind.yaml", appKind+job)
		}
		w.waves("  - {name: canary, match: {labels: {ring: canary}}, soak: 10m, timeout: 1m, gates: [{job: {name: smoke}}]}\n" +
			"  - {name: rest, timeout: 1m}\n")
		w.app("app", "1", "one")
		hook("after")
		w.commit()
		w.release()
		w.soaked("app", 1)
		w.rest()
		if w.get("dev-1/b", jobs, "smoke") == nil {
			t.Fatal("the hook did not run")
		}
		w.rename("services/app", "services/basket")
		hook("gate")
		w.commit()
		w.until("the end of the old unit", func() bool { return w.daemon.State().Units["services/app"] == nil })
		if w.get("dev-1/a", jobs, "smoke") == nil || w.get("dev-1/b", jobs, "smoke") != nil {
			t.Error("the Job of the canary's gate is gone, or the old unit's is left elsewhere")
		}
	})
}
