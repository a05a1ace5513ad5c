// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// twoHolders are the entries of two units for one object, which "here" wrote last
// and "there" wants.
func twoHolders(t *testing.T, s *store.Store) (here, there store.Entry) {
	t.Helper()
	id := object.ID{Kind: "ConfigMap", Namespace: "ns", Name: "x"}
	here = store.Entry{Unit: "here", Target: "dev/a", ID: id, Version: "v1", UID: "u", Digest: "of here"}
	there = store.Entry{Unit: "there", Target: "dev/a", ID: id, Version: "v1", UID: "u"}
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Confirm([]store.Entry{here, there}) }); err != nil {
		t.Fatal(err)
	}
	return here, there
}

// TestAnObjectIsGivenUpByAJobThatIsCutShort: whoever wants it sends it all the
// same, for nobody else will.
func TestAnObjectIsGivenUpByAJobThatIsCutShort(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	here, there := twoHolders(t, s)
	d.state.Units = map[config.UnitPath]*rollout.Unit{}
	for _, e := range []store.Entry{here, there} {
		d.state.Units[e.Unit] = &rollout.Unit{Path: e.Unit, Rollout: &rollout.Rollout{Status: rollout.Done},
			Targets: map[config.TargetName]*rollout.Target{e.Target: {Wanted: "d", Applied: "d", Good: "d", Health: rollout.HealthGood}}}
	}
	conn, err := apply.Connect(&rest.Config{Host: "https://127.0.0.1:1"}, "shop", apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := &executor.Job{Action: rollout.Action{Kind: rollout.Remove, Unit: here.Unit, Target: here.Target}, Cluster: "dev",
		Moved: []ownership.Transfer{{Entry: here, To: there.Place()}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	j.Do(ctx, conn, s.ClusterInventory)
	d.recordThese(t, j)
	inventory, err := s.Inventory(here.Unit, here.Target)
	if err != nil {
		t.Fatal(err)
	}
	if given := len(inventory) == 0; given != d.state.Units[there.Unit].Targets[there.Target].Drifted {
		t.Errorf("given up is %t, and the one that wants the object sends it: %t", given, !given)
	}
}

// TestAnObjectIsNotGivenUpToAJobThatLeavesItOut: the one that is to have the object
// is at work without it. What it is told meanwhile would be over with the job.
func TestAnObjectIsNotGivenUpToAJobThatLeavesItOut(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	here, there := twoHolders(t, s)
	writes := &executor.Job{Action: rollout.Action{Kind: rollout.Apply, Unit: there.Unit, Target: there.Target}, Cluster: "dev",
		Bundle: &object.Bundle{Objects: []*object.Object{{ID: there.ID}}}, Foreign: []ownership.Transfer{{Entry: here, To: here.Place()}}}
	if !d.executor.TryLock(writes) {
		t.Fatal("not taken")
	}
	gives := &executor.Job{Action: rollout.Action{Kind: rollout.Check, Unit: here.Unit, Target: here.Target}, Cluster: "dev", Moved: []ownership.Transfer{{Entry: here, To: there.Place()}}}
	d.executor.LockPrunable(gives)
	if len(gives.Moved) > 0 || len(gives.Left) != 1 {
		t.Errorf("gives up %v, leaves %q", gives.Moved, gives.Left)
	}
	d.executor.Drop([]*executor.Job{writes})
	gives.Moved, gives.Left = []ownership.Transfer{{Entry: here, To: there.Place()}}, nil
	d.executor.LockPrunable(gives)
	if len(gives.Moved) != 1 || len(gives.Left) > 0 {
		t.Errorf("when it is over: gives up %v, leaves %q", gives.Moved, gives.Left)
	}
}

// TestWhatIsLetGoOfIsTheJobs for as long as that takes: nobody else writes it.
func TestWhatIsLetGoOfIsTheJobs(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	here, there := twoHolders(t, s)
	lets := &executor.Job{Action: rollout.Action{Kind: rollout.Check, Unit: here.Unit, Target: here.Target}, Cluster: "dev", Kept: []store.Entry{here}}
	writes := &executor.Job{Action: rollout.Action{Kind: rollout.Apply, Unit: there.Unit, Target: there.Target}, Cluster: "dev",
		Bundle: &object.Bundle{Objects: []*object.Object{{ID: there.ID}}}}
	if !d.executor.TryLock(lets) {
		t.Fatal("not taken")
	}
	d.executor.LockPrunable(lets)
	if d.executor.TryLock(writes) {
		t.Error("another job took it")
	}
	d.executor.Drop([]*executor.Job{lets})
	if !d.executor.TryLock(writes) {
		t.Error("nobody can take it any more")
	}
	lets.Left = nil
	if d.executor.LockPrunable(lets); len(lets.Kept) > 0 || len(lets.Left) != 1 {
		t.Errorf("while it is written: lets go of %v, leaves %q", lets.Kept, lets.Left)
	}
}

// TestAnObjectIsHandedOverWithItsUID: it was made anew since the other unit knew of
// it. Should that one not want it any more either, it deletes it.
func TestAnObjectIsHandedOverWithItsUID(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	here, there := twoHolders(t, s)
	here.UID, here.Fingerprint = "made anew", "f"
	j := &executor.Job{Action: rollout.Action{Kind: rollout.Check, Unit: here.Unit, Target: here.Target}, Cluster: "dev",
		Forgotten: []store.Entry{here}, Released: []ownership.Transfer{{Entry: here, To: there.Place()}}}
	d.recordThese(t, j)
	holders, err := s.Holders("dev", here.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := there
	want.UID = here.UID
	if diff := cmp.Diff([]store.Entry{want}, holders); diff != "" {
		t.Error(diff)
	}
}

// TestAJobThatIsCutShortTellsWhatItLetGoOf: nothing else is kept of it.
func TestAJobThatIsCutShortTellsWhatItLetGoOf(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	here, _ := twoHolders(t, s)
	j := &executor.Job{Action: rollout.Action{Kind: rollout.Check, Unit: here.Unit, Target: here.Target}, Cluster: "dev"}
	j.Note([]apply.Result{{ID: here.ID, Entry: here, Action: apply.Skipped, Reason: "kept", Forget: true}})
	d.recordThese(t, j)
	events, err := s.History(here.Unit, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Kind != "orphaned" || events[0].Text != here.ID.String()+": kept" {
		t.Errorf("the history says %v", events)
	}
}

// TestWritingDisplacesOthers: whatever is known of an object that is about to be
// written, what another unit wrote there last is not so any more.
func TestWritingDisplacesOthers(t *testing.T) {
	for name, known := range map[string]object.Digest{"changed": "of before", "suspected": ""} {
		t.Run(name, func(t *testing.T) {
			s := emptyState(t)
			last, writes := twoHolders(t, s)
			writes.Digest = known
			o := &object.Object{ID: writes.ID, Version: "v1", Digest: "new"}
			j := &executor.Job{Action: rollout.Action{Kind: rollout.Apply, Unit: writes.Unit, Target: writes.Target}, Cluster: "dev",
				Bundle: &object.Bundle{Objects: []*object.Object{o}}, Inventory: map[object.ID]store.Entry{writes.ID: writes}}
			intended, suspect := j.WritesAhead()
			err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.MarkOthersDirty(j.Cluster, slices.Concat(intended, suspect)) })
			if err != nil {
				t.Fatal(err)
			}
			inventory, err := s.Inventory(last.Unit, last.Target)
			if err != nil {
				t.Fatal(err)
			}
			if digest := inventory[last.ID].Digest; digest != "" {
				t.Errorf("the other unit takes the object for its own, %q", digest)
			}
		})
	}
}

// TestAJobThatIsOverWritesNothingAhead: when it could not be found out what the job
// may write, nobody else's word of an object is taken back.
func TestAJobThatIsOverWritesNothingAhead(t *testing.T) {
	o := &object.Object{ID: object.ID{Kind: "ConfigMap", Namespace: "ns", Name: "x"}, Version: "v1", Digest: "new"}
	j := &executor.Job{Action: rollout.Action{Kind: rollout.Apply}, Bundle: &object.Bundle{Objects: []*object.Object{o}}, Foreign: []ownership.Transfer{{Entry: store.Entry{UID: "u"}}}}
	j.Ended(rollout.Deferred, "commit abc: not found")
	if intended, suspect := j.WritesAhead(); len(intended)+len(suspect)+len(j.Claims()) > 0 {
		t.Errorf("writes ahead %v, %v, %v", intended, suspect, j.Claims())
	}
}

// TestALookDoesNotForgetWhoWroteLast: while a job looks at an object that it must
// not delete, another unit writes it.
func TestALookDoesNotForgetWhoWroteLast(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	looked, writes := twoHolders(t, s)
	j := &executor.Job{Action: rollout.Action{Kind: rollout.Check, Unit: looked.Unit, Target: looked.Target, Prune: true}, Cluster: "dev",
		Inventory: map[object.ID]store.Entry{looked.ID: looked}}
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.MarkOthersDirty("dev", []store.Entry{writes}) }); err != nil {
		t.Fatal(err)
	}
	j.Note([]apply.Result{{ID: looked.ID, Action: apply.Skipped, Entry: looked}})
	j.Ended(rollout.Healthy, "")
	d.recordThese(t, j)
	inventory, err := s.Inventory(looked.Unit, looked.Target)
	if err != nil {
		t.Fatal(err)
	}
	if digest := inventory[looked.ID].Digest; digest != "" {
		t.Errorf("the unit takes the object for its own again, %q", digest)
	}
}

// TestAnApprovalDuringALook: what is approved while a job looks at it is deleted
// when that is over, and not minutes later.
func TestAnApprovalDuringALook(t *testing.T) {
	dir := t.TempDir()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := stateless(t, s)
	now := time.Now()
	held := store.Entry{Unit: "unit", Target: "dev/a", ID: object.ID{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "x"}, Version: "v1", UID: "u"}
	spec := config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all"}}}
	target := &rollout.Target{Wanted: "d", Applied: "d", Good: "d", Health: rollout.HealthGood, Leftovers: true, Since: now.Add(-time.Hour), CheckedAt: now.Add(-time.Minute)}
	d.state.Units = map[config.UnitPath]*rollout.Unit{held.Unit: {Path: held.Unit, Targets: map[config.TargetName]*rollout.Target{held.Target: target},
		Rollout: &rollout.Rollout{Status: rollout.Done, Spec: spec}}}
	wanted := &rollout.WantedUnit{Rollout: &spec, Targets: map[config.TargetName]rollout.WantedTarget{held.Target: {Digest: "d"}}}
	d.state.Units[held.Unit].Rollout.Release = wanted.Release()
	d.monorepo.wanted = &rollout.Wanted{Units: map[config.UnitPath]*rollout.WantedUnit{held.Unit: wanted}}

	look := rollout.Action{Kind: rollout.Check, Unit: held.Unit, Target: held.Target, Digest: "d", Prune: true}
	j := &executor.Job{Action: look, Cluster: "dev", Inventory: map[object.ID]store.Entry{held.ID: held}, Held: []store.Entry{held}}
	plan := store.NewPlan(held.Unit, now, []store.Deletion{{Target: held.Target, Unit: held.Unit, ID: held.ID, UID: held.UID}})
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutPlans([]store.Plan{plan}) }); err != nil {
		t.Fatal(err)
	}
	beside := s.Beside()
	defer beside.Close()
	if err := beside.Update(t.Context(), func(tx *store.Tx) error { return tx.Approve(plan.Digest, "ann", now) }); err != nil { // while the job is under way
		t.Fatal(err)
	}
	d.step(t, &Record{At: now}, observation{}, func(p *pass) []func() error { return []func() error{p.loadApprovals} })
	j.Ended(rollout.Healthy, "")
	j.Outcome.Reason = "waits for approval"
	d.recordThese(t, j)
	if plan := d.state.Decide(d.monorepo.wanted, time.Now()); len(plan.Actions) != 1 || !plan.Actions[0].Prune {
		t.Errorf("planned %v, wakes in %s", plan.Actions, time.Until(plan.Wake))
	}
}
