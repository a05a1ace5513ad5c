// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestACanaryThatLostItsLabel: a bad image comes with a letter in a label that takes the last target out of the
// wave of the canary. A target stands in for it, and no other gets the image.
func TestACanaryThatLostItsLabel(t *testing.T) { simulated(t, testACanaryThatLostItsLabel) }

func testACanaryThatLostItsLabel(t *testing.T, w *world) {
	w.release()
	before := w.unit("app").Targets["dev-2/c"].Applied
	w.write("fleet/fleet.yaml", strings.Replace(fleetYAML, "labels: {ring: canary}}", "labels: {ring: canray}}", 1))
	w.app("app", "broken", "one")
	w.commit()
	w.until("the canary", func() bool { return strings.Contains(w.unit("app").Targets["dev-1/a"].Reason, "app:broken") })
	if got := w.troubles(); !strings.Contains(got, `wave "canary", in which the first target of each unit stands in: `) {
		t.Errorf("conditions: %s", got)
	}
	w.until("the end of it", func() bool { return w.unit("app").Rollout.Status == rollout.RolledBack })
	if failure := w.unit("app").Rollout.Failure; !strings.HasPrefix(failure, "wave canary: ") {
		t.Errorf("it failed by %q", failure)
	}
	if applied := w.unit("app").Targets["dev-2/c"].Applied; applied != before {
		t.Errorf("dev-2/c has %s, before %s", applied.Short(), before.Short())
	}
}
