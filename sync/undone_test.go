// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestSomebodyTakesACanaryBack: the canary soaked on the image that somebody had put back by
// hand, where drift is only reported; the wave was passed, and the rest had the new one.
func TestSomebodyTakesACanaryBack(t *testing.T) {
	const image = `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:1"}]`
	for name, c := range map[string]struct {
		disturb func(w *world)
		reason  string
	}{
		"image": {func(w *world) { w.edit("dev-1/a", deployments, "app", image, "kubectl-edit") }, `.spec.template.spec.containers[name="main"].image: `},
		"config": {func(w *world) {
			w.edit("dev-1/a", configMaps, "one", `{"data":{"image":"registry.example.com/app:1"}}`, "kubectl-edit")
		}, ".data.image: "},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.policy("app", `{drift: [{mode: report}]}`)
				w.commit()
				w.sweeping(config.Drift{})
				w.release()
				w.app("app", "2", "one")
				w.commit()
				w.until("the canary", w.canary("app", 2))
				c.disturb(w)
				w.until("the look", func() bool {
					w.now = w.now.Add(time.Second)
					return w.unit("app").Targets["dev-1/a"].Health != rollout.HealthGood
				})
				at := w.unit("app").Targets["dev-1/a"]
				if !strings.Contains(at.Reason, "changed since it was applied: ") || !strings.Contains(at.Reason, c.reason) || !strings.Contains(at.Reason, "kubectl-edit") {
					t.Errorf("the reason is %q", at.Reason)
				}
				w.now = w.now.Add(10 * time.Minute)
				w.until("the way back", func() bool { return w.unit("app").Rollout.Status == rollout.RolledBack })
				w.want("images", w.tags("app"), "1 1 1")
			})
		})
	}
}

// TestACanaryTakenBackIsPromoted: an operator lets the release go on over it.
func TestACanaryTakenBackIsPromoted(t *testing.T) { simulated(t, testACanaryTakenBackIsPromoted) }

func testACanaryTakenBackIsPromoted(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.edit("dev-1/a", deployments, "app", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:1"}]`, "kubectl-edit")
	w.until("the look", func() bool {
		w.now = w.now.Add(time.Second)
		return w.unit("app").Targets["dev-1/a"].Health != rollout.HealthGood
	})
	w.give(order.Order{Verb: order.Promote, Scope: order.Scope{Unit: "services/app"}, Reason: "we know"})
	w.until("the end", w.is("app", 2, rollout.Done))
	w.want("images", w.tags("app"), "1 2 2")
	w.want("status", string(w.standing("app")), "drifted")
}
