// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestBrake: an order is given while a pass is at work on something long. A mask ends the jobs that
// write at its places. A pause and a freeze end those that have not begun there, and no others.
func TestBrake(t *testing.T) {
	both := map[config.UnitPath]bool{"shop": true, "pay": true}
	shop := map[config.UnitPath]bool{"shop": true}
	for _, c := range []struct {
		o        order.Order
		inFlight map[config.UnitPath]bool // units whose jobs that are under way end
		waiting  map[config.UnitPath]bool // units whose jobs that wait never begin
	}{
		{order.Order{Verb: order.Mask}, both, both},
		{order.Order{Verb: order.Mask, Scope: order.Scope{Unit: "shop"}}, shop, shop},
		{order.Order{Verb: order.Mask, Scope: order.Scope{Tenant: "shop"}}, shop, shop},
		{order.Order{Verb: order.Mask, Scope: order.Scope{Wave: "canary"}}, both, both},
		{order.Order{Verb: order.Mask, Scope: order.Scope{Wave: "rest"}}, nil, nil},
		{order.Order{Verb: order.Mask, Scope: order.Scope{Target: "dev"}}, both, both},
		{order.Order{Verb: order.Mask, Scope: order.Scope{Target: "prod"}}, nil, nil},
		{order.Order{Verb: order.Pause, Scope: order.Scope{Unit: "shop"}}, nil, shop},
		{order.Order{Verb: order.Freeze}, nil, both},
		{order.Order{Verb: order.Unmask}, nil, nil},
		{order.Order{Verb: order.Retry}, nil, nil},
	} {
		t.Run(fmt.Sprintf("%s of %s", c.o.Verb, c.o.Scope.Text()), func(t *testing.T) {
			d := manyUnits(t, 1)
			synctest.Test(t, func(t *testing.T) { testBrake(t, d, c.o, c.inFlight, c.waiting) })
		})
	}
}

func testBrake(t *testing.T, d *Daemon, o order.Order, inFlight, waiting map[config.UnitPath]bool) {
	d.arrived = make(chan struct{}, 1)
	d.executor, d.orders.given = executor.New(d.arrived), make(chan struct{}, 1)
	var mu gosync.Mutex
	isCut, finish := map[*executor.Job]bool{}, make(chan struct{}) // of the jobs that began
	do := func(ctx context.Context, j *executor.Job) {
		cut := false
		select {
		case <-ctx.Done():
			cut = true
		case <-finish:
		}
		mu.Lock()
		defer mu.Unlock()
		isCut[j] = cut
	}
	var jobs []*executor.Job
	for i := range executor.UnitsAtOnce + 2 {
		unit, target := []config.UnitPath{"shop", "pay"}[i%2], config.TargetName(fmt.Sprintf("dev/%d", i))
		a := rollout.Action{Kind: rollout.Apply, Unit: unit, Target: target, Wave: "canary"}
		jobs = append(jobs, &executor.Job{Action: a, Cluster: "dev", Tenant: rollout.Tenant{Name: string(a.Unit)}})
	}
	look := &executor.Job{Action: rollout.Action{Kind: rollout.Check, Unit: "shop", Target: "dev/0"}, Cluster: "look"}
	d.executor.Start(t.Context(), "dev", jobs, do)
	d.executor.Start(t.Context(), "look", []*executor.Job{look}, do)
	release := d.brake()
	defer release()
	synctest.Wait()

	o.By, o.At, o.Reason = "ann", time.Now(), "by hand"
	if err := d.Store.Update(t.Context(), func(tx *store.Tx) error { _, err := tx.Give(o, ""); return err }); err != nil {
		t.Fatal(err)
	}
	d.Wake()
	synctest.Wait()
	close(finish)
	d.executor.Drain()
	for i, j := range jobs {
		cut, began := isCut[j]
		if i < executor.UnitsAtOnce && (!began || cut != inFlight[j.Unit]) {
			t.Errorf("job %d of %s, under way: cut short %t, want %t", i, j.Unit, cut, inFlight[j.Unit])
		}
		if i >= executor.UnitsAtOnce && (cut || began == waiting[j.Unit]) {
			t.Errorf("job %d of %s, waiting: began %t, want %t", i, j.Unit, began, !waiting[j.Unit])
		}
	}
	if isCut[look] {
		t.Error("a look at health was cut short")
	}
}
