// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	gocmpopts "github.com/google/go-cmp/cmp/cmpopts"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// manyUnits is a daemon with n units that are done on one target, with four
// objects each.
func manyUnits(t testing.TB, n int) *Daemon {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	d := &Daemon{clock: still(time.Now()),
		sweeps: sweeps{ledger: &drift.Ledger{}}, Options: Options{Store: s}, guarded: guarded{limits: config.DefaultGuard},
		state: &rollout.State{Units: map[config.UnitPath]*rollout.Unit{}}, monorepo: monorepo{compiler: &render.Compiler{}, snapshot: &render.Snapshot{Commit: "c", Repository: &config.Repository{Tree: config.Files(fstest.MapFS{})}}, wanted: &rollout.Wanted{Units: map[config.UnitPath]*rollout.WantedUnit{}}}}
	spec := &config.Rollout{Waves: []config.Wave{{Name: "all"}}}
	var entries []store.Entry
	for i := range n {
		path, target := config.UnitPath(fmt.Sprintf("unit-%06d", i)), config.TargetName("dev/a")
		d.state.Units[path] = &rollout.Unit{Path: path, Rollout: &rollout.Rollout{Status: rollout.Done, Spec: *spec},
			Targets: map[config.TargetName]*rollout.Target{target: {Wanted: "d", Applied: "d", Good: "d", Health: rollout.HealthGood}}}
		d.monorepo.wanted.Units[path] = &rollout.WantedUnit{Rollout: spec, Targets: map[config.TargetName]rollout.WantedTarget{target: {Digest: "d"}}}
		d.state.Units[path].Rollout.Release = d.monorepo.wanted.Units[path].Release()
		for k := range 4 {
			id := object.ID{Kind: "ConfigMap", Namespace: "ns", Name: fmt.Sprintf("%s-%d", path, k)}
			entries = append(entries, store.Entry{Unit: path, Target: target, ID: id, Version: "v1", UID: "u", Keep: k == 3})
		}
	}
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Confirm(entries) }); err != nil {
		t.Fatal(err)
	}
	if err := d.loadGuarded(); err != nil {
		t.Fatal(err)
	}
	return d
}

// leave takes units out of the commit.
func (d *Daemon) leave(n int) {
	for _, path := range slices.Sorted(maps.Keys(d.state.Units))[:n] {
		delete(d.monorepo.wanted.Units, path)
	}
	d.state.Decide(d.monorepo.wanted, time.Now())
	d.guarded.pending = nil
}

// TestPendingOfManyUnits: one walk through the inventory finds what looking at
// each unit does.
func TestPendingOfManyUnits(t *testing.T) {
	t.Parallel()
	d := manyUnits(t, fewPlaces+200)
	d.leave(fewPlaces + 100)
	var together map[object.UnitTarget]approval.Loss
	apart := map[object.UnitTarget]approval.Loss{}
	p := &pass{Daemon: d, r: &Record{}}
	err := p.store(t.Context(), []func() error{func() (err error) {
		together, err = p.pending()
		for at := range together {
			err = errors.Join(err, p.prospect().count(map[object.UnitTarget]bool{at: true}, apart))
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(together) != fewPlaces+100 {
		t.Fatalf("%d places", len(together))
	}
	for _, found := range []map[object.UnitTarget]approval.Loss{together, apart} {
		for at, p := range found {
			if p.Have != 4 || len(p.Gone) != 3 || p.Stays { // one is marked to be kept
				t.Errorf("%v: %d of %d, stays: %t", at, len(p.Gone), p.Have, p.Stays)
			}
			slices.SortFunc(p.Gone, func(a, b approval.Object) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	if diff := gocmp.Diff(apart, together, gocmpopts.IgnoreFields(approval.Loss{}, "Made")); diff != "" {
		t.Error(diff)
	}
}

// TestRetiredTargetIsCountedAnew: what a retired target comes to lose was taken from what
// had been found before the order, which is nothing. A job counted its own deletions
// besides, so that two plans took turns, and one pass followed the other at once.
func TestRetiredTargetIsCountedAnew(t *testing.T) {
	t.Parallel()
	d := manyUnits(t, 1)
	at := object.UnitTarget{Unit: "unit-000000", Target: "dev/a"}
	d.guarded.pending = map[object.UnitTarget]approval.Loss{at: {UnitTarget: at, Stays: true, Have: 4}} // all that it has is wanted
	p := &pass{Daemon: d, r: &Record{At: time.Now()}}
	err := p.store(t.Context(), []func() error{func() error {
		if _, err := p.tx.Give(order.Order{At: time.Now(), By: "ann", Verb: order.Retire, Scope: order.Scope{Target: at.Target}}, ""); err != nil {
			return err
		}
		d.orders.read = -1
		err := p.readOrders()
		p.putInForce()
		return err
	}, p.decide, func() error {
		losses, err := p.pending()
		if is := losses[at]; len(is.Gone) != 3 {
			t.Errorf("%d objects are to be deleted of %d, want 3 of 4", len(is.Gone), is.Have)
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlanOfJobsThatTakeTurns: after a rollback, jobs on two targets are about to delete what
// the commit wants. Each of them alone in its pass, they are in one plan: it would be another
// one in each pass, no approval would last, and one pass followed the other at once.
func TestPlanOfJobsThatTakeTurns(t *testing.T) {
	t.Parallel()
	d := manyUnits(t, 2)
	job := func(n int) *executor.Job {
		unit := config.UnitPath(fmt.Sprintf("unit-%06d", n))
		return &executor.Job{
			Action:   rollout.Action{Kind: rollout.Check, Prune: true, Unit: unit, Target: "dev/a", Digest: "d"},
			Prunable: []store.Entry{{Unit: unit, Target: "dev/a", ID: object.ID{Kind: "Deployment", Name: string(unit)}, UID: "u"}},
		}
	}
	first, second := job(0), job(1)
	p := &pass{Daemon: d, r: &Record{At: time.Now()}}
	want := func(jobs []*executor.Job, units ...config.UnitPath) func() error {
		return func() error {
			p.jobs = jobs
			losses, err := p.pendingWithJobs()
			var got []config.UnitPath
			for unitTarget, l := range losses {
				if len(l.Gone) > 0 {
					got = append(got, unitTarget.Unit)
				}
			}
			if slices.Sort(got); !slices.Equal(got, units) {
				t.Errorf("it is to delete of %q, want %q", got, units)
			}
			return err
		}
	}
	ends := func(j *executor.Job, held ...store.Entry) func() error {
		return func() error {
			j.Held, j.Outcome.Result = held, rollout.Healthy
			return p.recordDeletions([]*executor.Job{j})
		}
	}
	none := job(1)
	none.Prunable = nil // somebody deleted it by hand
	err := p.store(t.Context(), []func() error{
		want([]*executor.Job{first}, first.Unit),
		want([]*executor.Job{second}, first.Unit, second.Unit),
		ends(first, first.Prunable...), want(nil, first.Unit, second.Unit),
		ends(first), want(nil, second.Unit), // it was approved
		want([]*executor.Job{none}),
		want([]*executor.Job{second}, second.Unit),
		func() error {
			second.Forgotten = second.Prunable // it was gone when the job looked at it
			return ends(second, second.Prunable...)()
		}, want(nil),
		want([]*executor.Job{second}, second.Unit),
		func() error {
			d.state.Units[second.Unit].Targets[second.Target].Wanted = "e" // it is released again
			return nil
		}, want(nil),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestApprovalToForgetOutlivesAJob: while a job is under way in a cluster that left the fleet, the
// approval to forget what it has waits for it. It ends when the cluster is not to be forgotten any more.
func TestApprovalToForgetOutlivesAJob(t *testing.T) {
	t.Parallel()
	d := manyUnits(t, 1)
	gone := store.Deletion{Unit: "unit-000000", Target: "dev/a", ID: object.ID{Kind: "ConfigMap", Name: "x"}, UID: "u", Forget: true}
	plan := store.NewPlan("", time.Now(), []store.Deletion{gone})
	p := &pass{Daemon: d, r: &Record{At: time.Now()}}
	err := p.store(t.Context(), []func() error{
		func() error { return p.tx.PutPlans([]store.Plan{plan}) },
		func() error { return p.tx.Approve(plan.Digest, "ann", time.Now()) },
		p.loadApprovals,
		func() error {
			p.noteDeparted([]store.Entry{{Unit: gone.Unit, Target: gone.Target, ID: gone.ID, UID: gone.UID}})
			d.guarded.with = d.guarded.departed
			if ended := d.expire(); len(ended) > 0 {
				t.Errorf("ended although it is still to be forgotten: %v", ended)
			}
			p.dropDeparted("dev")
			if ended := d.expire(); len(ended) != 1 {
				t.Errorf("%d approvals ended when the cluster came back, want 1", len(ended))
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestApprovedDeletionsAreNotCountedForTheFleet: what somebody approved takes nothing of the number that a
// commit may delete without approval.
func TestApprovedDeletionsAreNotCountedForTheFleet(t *testing.T) {
	t.Parallel()
	d := manyUnits(t, 1)
	unitTarget := object.UnitTarget{Unit: "unit-000000", Target: "dev/a"}
	entry := func(name string) store.Entry {
		return store.Entry{Unit: unitTarget.Unit, Target: unitTarget.Target, ID: object.ID{Kind: "ConfigMap", Name: name}, UID: "u"}
	}
	first, second := entry("first"), entry("second")
	approved := store.Deletion{Unit: first.Unit, Target: first.Target, ID: first.ID, UID: first.UID}
	plan := store.NewPlan(first.Unit, time.Now(), []store.Deletion{approved})
	p := &pass{Daemon: d, r: &Record{At: time.Now()}}
	err := p.store(t.Context(), []func() error{
		func() error { return p.tx.PutPlans([]store.Plan{plan}) },
		func() error { return p.tx.Approve(plan.Digest, "ann", time.Now()) },
		p.loadApprovals,
		func() error {
			check := rollout.Action{Kind: rollout.Check, Unit: unitTarget.Unit, Target: unitTarget.Target}
			return p.recordDeletions([]*executor.Job{{Action: check, Deleted: []store.Entry{first, second}, Unreplaced: 2}})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := d.guarded.ledger.Done(object.UnitTarget{}, "c"); n != 1 {
		t.Errorf("%d deletions count for the fleet, want 1", n)
	}
	if n := d.guarded.ledger.Done(unitTarget, ""); n != 2 {
		t.Errorf("%d deletions count for the unit on the target, want 2", n)
	}
}

// BenchmarkJudge is what a pass with one deletion pays at 100,000 units and
// 400,000 objects.
func BenchmarkJudge(b *testing.B) {
	d := manyUnits(b, 100_000)
	d.leave(1)
	p := &pass{Daemon: d, r: &Record{}}
	err := p.store(b.Context(), []func() error{func() error {
		for b.Loop() {
			d.guarded.pending = nil
			if v, err := p.judge(p.pendingWithJobs); err != nil || len(v.Held) > 0 || len(d.guarded.pending) != 1 {
				return fmt.Errorf("%v, %w, %d pending", v, err, len(d.guarded.pending))
			}
		}
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
}
