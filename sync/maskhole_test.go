// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestMaskHoldsWhateverIsPlanned: no job that writes begins at a masked place, and a check
// deletes nothing there, although the planner wants it.
func TestMaskHoldsWhateverIsPlanned(t *testing.T) {
	now := time.Now()
	d := &Daemon{Options: Options{Now: func() time.Time { return now }}, state: &rollout.State{}}
	d.monorepo.wanted = &rollout.Wanted{Held: "nothing was fetched yet", Standing: order.Standing{
		{Verb: order.Mask, Scope: order.Scope{Unit: "shop", Target: "dev"}, By: "ann", Reason: "by hand"},
		{Verb: order.Mask, Scope: order.Scope{Target: "old"}, By: "ann", Until: now},
		{Verb: order.Pause, By: "ann"},
	}}
	for _, c := range []struct {
		unit   config.UnitPath
		target config.TargetName
		masked bool
	}{{"shop/cart", "dev/a", true}, {"shop/cart", "dev", true}, {"search", "dev/a", false}, {"shop/cart", "prod/a", false}, {"shop/cart", "old/a", false}} {
		for _, kind := range []rollout.Kind{rollout.Apply, rollout.Remove, rollout.Prove, rollout.Check} {
			a := rollout.Action{Kind: kind, Unit: c.unit, Target: c.target, Prune: true}
			if begins := d.mayBegin(a); begins == (c.masked && kind != rollout.Check) {
				t.Errorf("%s of %s on %s begins: %t", kind, c.unit, c.target, begins)
			}
			if kind != rollout.Check {
				continue
			}
			e := store.Entry{Unit: c.unit, Target: c.target, ID: object.ID{Kind: "ConfigMap", Name: "x"}, UID: "u"}
			j := &executor.Job{Action: a, Prunable: []store.Entry{e}, Kept: []store.Entry{e}, Held: []store.Entry{e}}
			d.spareMasked(j)
			if deletes := len(j.Prunable)+len(j.Kept)+len(j.Held) > 0; deletes == c.masked {
				t.Errorf("a check of %s on %s may delete: %t", c.unit, c.target, deletes)
			} else if c.masked && (len(j.Left) != 1 || j.Left[0] != "nothing is deleted here: masked by ann: by hand") {
				t.Errorf("it says %q", j.Left)
			}
		}
	}
}
