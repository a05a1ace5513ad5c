// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Once is one pass. What went wrong with single units, targets or clusters, or
// with Git, is in the record; its Err is set only when the store could not be
// written. What takes longer than the patience goes on in the background, see
// [Executor], and is in the record of a later one; whoever makes no more passes
// calls [Daemon.Finish]. A pass whose ctx ends stops where it is; what is known by then is
// recorded, and the store says what is not.
func (d *Daemon) Once(ctx context.Context) Record {
	r := Record{At: d.Now()}
	var plan rollout.Plan
	if r.Err = d.observe(ctx, &r); r.Err == nil {
		plan = d.decide(&r)
		r.Err = d.act(ctx, &r, plan)
	}
	d.report(&r, plan)
	return r
}

// observe takes in all that happened since the last pass: jobs that ended, commits,
// what clusters hold, what operators said. Like every step of a pass it ends at
// the first error of the store.
func (d *Daemon) observe(ctx context.Context, r *Record) error {
	if err := d.Store.Intact(); err != nil {
		return err
	}
	if d.hurried.Swap(false) {
		d.hurry()
	}
	d.findClusters(r)
	if err := d.record(ctx, r, d.executor.Collect()); err != nil {
		return err
	}
	if err := d.fetch(ctx, r); err != nil {
		return err
	}
	d.fleet.KeepLeases(ctx, d.surveyedClusters())
	if err := d.rebuild(ctx, r); err != nil {
		return err
	}
	if err := d.sweep(ctx, r); err != nil {
		return err
	}
	if err := d.loadApprovals(); err != nil {
		return err
	}
	if err := d.takeOrders(ctx, r); err != nil {
		return err
	}
	d.drainEvents()
	return d.withhold(r)
}

// act begins what the plan says, and records what is done of it.
func (d *Daemon) act(ctx context.Context, r *Record, plan rollout.Plan) error {
	jobs, err := d.writeAhead(ctx, r, plan)
	if err != nil {
		return err
	}
	if jobs, err = d.guard(ctx, r, jobs); err != nil {
		return err
	}
	d.syncWatches(ctx, r, plan.Open)
	d.watches.writing.Store(d.executor.Clusters())
	if err := d.record(ctx, r, d.carryOut(ctx, jobs)); err != nil {
		return err
	}
	d.watches.writing.Store(d.executor.Clusters())
	d.reportStaleKubeconfigs(r)
	return d.saveConditions(ctx, r)
}

// fetch looks at the branch when it is time to, and renders a new commit.
// Where that fails, what is known of the last good commit stays in force.
func (d *Daemon) fetch(ctx context.Context, r *Record) error {
	answer, ok := d.branch.newest(ctx, r.At)
	if !ok {
		return nil
	}
	r.Fetched = answer.over
	if answer.err != nil {
		if ctx.Err() == nil {
			r.fail(answer.err)
			d.branch.failure = answer.err.Error()
		}
		return nil
	}
	d.branch.failure = ""
	commit := answer.commit
	if d.snapshot != nil && d.snapshot.Commit == commit && !d.snapshot.Retry {
		return nil
	}
	tree, err := d.Source.Tree(commit)
	if err != nil {
		d.branch.failure = err.Error()
		r.fail(err)
		return nil
	}
	d.setCommit(commit, config.Sub(tree, d.Path))
	if err := d.nameRepository(ctx); err != nil {
		return err
	}
	if !d.snapshot.Held && d.wanted.Refused() != "" {
		r.fail(errors.New(ofCommit(commit, d.wanted.Refused())))
	}
	r.Rendered = d.snapshot.Rendered
	r.Problems = d.snapshot.Problems
	r.NewCommit = true
	return nil
}

// setCommit makes a commit the one that is wanted. Jobs that go on in the background
// and are about to delete what it wants end here.
func (d *Daemon) setCommit(commit config.Commit, tree config.Tree) {
	before, brokenBefore := d.snapshot, d.broken
	d.snapshot = d.Compiler.Snapshot(commit, tree)
	d.watches.snapshot.Store(d.snapshot)
	d.broken = ownership.Broken(d.snapshot)
	if len(brokenBefore) > 0 {
		d.nudgeBeside(before, brokenBefore)
	}
	d.wanted = d.want()
	d.guarded.newCommit()
	known := drift.ReadModes(d.snapshot, d.modes)
	d.modes = known
	d.watches.modes.Store(&known)
	owners := d.owners()
	d.executor.CancelStale(func(j *executor.Job, id render.ObjectID) bool {
		owner, why := owners.RetainReason(j.Place(), id)
		return owner != nil || why != ""
	})
}

// nudgeBeside makes due what units have to delete that stayed for the sake of a unit
// with a problem, in the snapshot before: it may go now, or waits for something else.
func (d *Daemon) nudgeBeside(before *render.Snapshot, broken []*render.Unit) {
	for path := range d.state.Units {
		if ownership.Blocking(before, broken, path) != ownership.Blocking(d.snapshot, d.broken, path) {
			d.state.Nudge(path)
		}
	}
}

// nameRepository notes the name of the monorepo for good, from the first commit
// whose fleet has no problem.
func (d *Daemon) nameRepository(ctx context.Context) error {
	if d.repository != "" || d.snapshot.Held {
		return nil
	}
	name := d.snapshot.Repository.Name
	if err := d.Store.Update(ctx, func(tx *store.Tx) error { return tx.SetRepository(name) }); err != nil {
		return err
	}
	d.repository = name
	d.fleet.BelongTo(name)
	return nil
}

// decide plans what is to be done now.
func (d *Daemon) decide(r *Record) rollout.Plan {
	plan := d.state.Decide(d.wanted, r.At)
	r.Transitions = append(r.Transitions, plan.Transitions...)
	return plan
}

// record takes in what became of the jobs and stores it.
func (d *Daemon) record(ctx context.Context, r *Record, jobs []*executor.Job) error {
	now := d.Now()
	var anew []store.Entry
	for _, j := range jobs {
		d.requeue(j.Place())
		d.noteLost(j)
		transitions, others, err := d.transferOwnership(j, now)
		if err != nil {
			return err
		}
		anew = append(anew, others...)
		r.Transitions = append(r.Transitions, transitions...)
		if j.Outcome.Result == "" { // interrupted: nothing is known but what was done to single objects
			r.Transitions = append(r.Transitions, j.Transitions(now)...)
			continue
		}
		r.Actions = append(r.Actions, j.Outcome)
		r.count(j)
		r.Transitions = append(r.Transitions, d.state.Record(j.Outcome, now)...)
		if slices.ContainsFunc(j.Held, func(e store.Entry) bool { return d.guarded.ledger.Approved()[approval.Of(e)] }) {
			d.state.Nudge(j.Unit) // it was approved meanwhile
		}
		d.clearDrift(r, j)
		d.requestSweep(j.Confirmed)
		j.Drifted = d.noteDrifts(r, j.Drifts, true, now)
		r.Transitions = append(r.Transitions, j.Transitions(now)...)
	}
	if len(jobs) == 0 && len(r.Transitions) == r.stored {
		return nil
	}
	// What was done must be known also when ctx has ended meanwhile.
	ctx = context.WithoutCancel(ctx)
	err := d.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Confirm(anew); err != nil {
			return err
		}
		for _, j := range jobs {
			if err := errors.Join(tx.Confirm(j.Confirmed), tx.Forget(j.Forgotten), tx.MarkDirty(j.Drifted)); err != nil {
				return err
			}
		}
		return errors.Join(d.recordGuarded(tx, jobs), d.putState(tx), d.ledger.Put(tx), d.putHistory(tx, r))
	})
	if err != nil {
		return err
	}
	d.state.Stored()
	d.ledger.Stored()
	r.stored = len(r.Transitions)
	d.suppress(now)
	return nil
}

// putState stores the units that changed.
func (d *Daemon) putState(tx *store.Tx) error {
	changed, dropped := d.state.Changed()
	for _, unit := range changed {
		row, err := json.Marshal(unit)
		if err != nil {
			return err
		}
		if err := tx.PutUnit(unit.Path, row); err != nil {
			return err
		}
	}
	for _, path := range dropped {
		if err := tx.DeleteUnit(path); err != nil {
			return err
		}
	}
	return nil
}

// putHistory stores what changed in this pass.
func (d *Daemon) putHistory(tx *store.Tx, r *Record) error {
	events := make([]store.Event, len(r.Transitions)-r.stored)
	for i, t := range r.Transitions[r.stored:] {
		events[i] = store.Event(t)
	}
	return tx.AddHistory(events)
}

// report logs the pass and says when the next one is due.
func (d *Daemon) report(r *Record, plan rollout.Plan) {
	r.Next = earliest(d.branch.due(), earliest(d.nextSurvey(), earliest(d.nextSweep(), plan.Wake)))
	if len(r.Actions) > 0 {
		r.Next = d.Now() // what was recorded may allow the next step
	}
	if d.snapshot != nil {
		r.Commit = d.snapshot.Commit
	}
	r.Took = d.Now().Sub(r.At)
	r.log(d.Log)
	d.checkCache()
	if d.Observe != nil {
		d.Observe(*r, d.state)
	}
}

// checkCache says once when the compiler's cache has stopped to store: nothing
// is wrong with what is rendered, but after a restart all is rendered again.
func (d *Daemon) checkCache() {
	c := d.Compiler.Cache
	if d.cacheOff || c == nil {
		return
	}
	if err := c.Err(); err != nil {
		d.cacheOff = true
		d.Log.Warn("cache: nothing more is stored until the daemon starts again", "err", err)
	}
}

// earliest is the earlier of two times of which the zero one means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Finish waits until no job goes on any more, and records what became of them.
// It is to be called when the last pass is over, whether or not its ctx ended.
func (d *Daemon) Finish(ctx context.Context) error {
	d.executor.Drain()
	for _, l := range d.sweeps.underWay {
		<-l.over
	}
	var r Record
	err := d.record(ctx, &r, d.executor.Collect())
	d.fleet.Release(ctx)
	return err
}
