// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestMaskHoldsWhateverIsPlanned: no job that writes begins at a masked place, and a check
// deletes nothing there, although the planner wants it.
func TestMaskHoldsWhateverIsPlanned(t *testing.T) {
	now := time.Now()
	d := &Daemon{clock: still(now), state: &rollout.State{}}
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

// TestMaskOfAWholeCluster: a document masks all of a cluster when it names no more than that.
func TestMaskOfAWholeCluster(t *testing.T) {
	for _, c := range []struct {
		where config.Where
		want  bool
	}{
		{config.Where{}, true},
		{config.Where{Targets: []config.TargetName{"old", "dev"}}, true},
		{config.Where{Targets: []config.TargetName{"dev/a"}}, false},
		{config.Where{Targets: []config.TargetName{"old"}}, false},
		{config.Where{Match: config.Match{Labels: map[string][]string{"site": {"one"}}}}, false},
		{config.Where{Units: []config.UnitPath{"shop"}}, false},
		{config.Where{Tenants: []string{"shop"}}, false},
		{config.Where{Targets: []config.TargetName{"dev"}, Waves: []string{"canary"}}, false},
	} {
		d := &Daemon{}
		d.monorepo.bounds.Masks = []rollout.Mask{{Name: "outage", Where: c.where}}
		if got := d.isMasked("dev"); got != c.want {
			t.Errorf("%+v: got %t, want %t", c.where, got, c.want)
		}
	}
}

// TestMaskStopsWhatWrites: of the jobs under way at a masked place, those end that may write
// something, a deletion or a pod that is in the way too.
func TestMaskStopsWhatWrites(t *testing.T) {
	f, err := fleet.New(fleet.Options{}, "")
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{clock: still(time.Now()), state: &rollout.State{}, executor: executor.New(make(chan struct{}, 1)), fleet: f}
	d.monorepo.wanted = &rollout.Wanted{Standing: order.Standing{{Verb: order.Mask, Scope: order.Scope{Target: "dev"}, By: "ann"}}}
	e := []store.Entry{{ID: object.ID{Kind: "ConfigMap", Name: "x"}, UID: "u"}}
	stops := map[*executor.Job]bool{
		{Action: rollout.Action{Kind: rollout.Apply, Target: "dev/a"}}:                                 true,
		{Action: rollout.Action{Kind: rollout.Check, Target: "dev/a"}}:                                 false,
		{Action: rollout.Action{Kind: rollout.Check, Target: "dev/a"}, Prunable: e}:                    true,
		{Action: rollout.Action{Kind: rollout.Check, Target: "dev/a"}, Kept: e}:                        true,
		{Action: rollout.Action{Kind: rollout.Check, Target: "dev/a"}, Work: apply.Work{Frees: true}}:  true,
		{Action: rollout.Action{Kind: rollout.Apply, Target: "prod/a"}}:                                false,
		{Action: rollout.Action{Kind: rollout.Check, Target: "prod/a"}, Work: apply.Work{Frees: true}}: false,
	}
	let, went := make(chan struct{}), make(chan *executor.Job, len(stops))
	d.executor.Start(t.Context(), "dev", slices.Collect(maps.Keys(stops)), func(ctx context.Context, j *executor.Job) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			went <- j
		}
	})
	(&pass{Daemon: d, r: &Record{}}).stopMasked()
	close(let)
	d.executor.Drain()
	close(went)
	for j := range went {
		if stops[j] {
			t.Errorf("it goes on: %+v", j)
		}
		delete(stops, j)
	}
	for j, stop := range stops {
		if !stop {
			t.Errorf("it was stopped: %+v", j)
		}
	}
}
