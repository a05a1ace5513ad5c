// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/store"
)

// guarded is what the daemon knows of deletions that take approval. All of it but the
// ledger is made again by the next process.
type guarded struct {
	ledger  *approval.Ledger
	waiting map[config.UnitPath]bool // units with plans

	// pending is what units have to delete for the snapshot, as far as it was
	// looked at: see [Daemon.pending].
	pending map[render.Placed]approval.Loss
	// with is pending and what the jobs of the last pass were about to delete.
	with map[render.Placed]approval.Loss
	// judged are the units whose release was judged before it began, for the
	// snapshot.
	judged map[config.UnitPath]bool
	// stale says that plans may not be what waits any more.
	stale bool
}

func (d *Daemon) loadGuarded() (err error) {
	g := &d.guarded
	g.stale, g.waiting, g.judged = true, map[config.UnitPath]bool{}, map[config.UnitPath]bool{}
	for path, unit := range d.state.Units {
		if unit.Waiting != "" {
			g.waiting[path] = true
		}
	}
	g.ledger, err = approval.Open(d.Store)
	return err
}

// loadApprovals takes in what was approved or rejected since the last time, and makes it due.
func (d *Daemon) loadApprovals() error {
	units, read, err := d.guarded.ledger.Load(d.Store)
	if err != nil {
		return err
	}
	d.guarded.stale = d.guarded.stale || read
	for _, path := range units {
		d.state.Nudge(path)
	}
	return nil
}

// newCommit forgets what was known of the commit before.
func (g *guarded) newCommit() {
	g.pending, g.with, g.judged, g.stale = nil, nil, map[config.UnitPath]bool{}, true
}

// guard decides which deletions the jobs may make, and returns those that are to
// be carried out: none, when the state could not be read or written. It judges
// all that the commit comes to delete, in every wave, and not what this pass
// would: what is too much does not go through in small pieces. What is held is
// stored as plans.
func (d *Daemon) guard(ctx context.Context, r *Record, jobs []*executor.Job) (_ []*executor.Job, err error) {
	if ctx.Err() == nil {
		err = d.judgeDeletions(ctx, r, jobs)
	}
	if err != nil || ctx.Err() != nil {
		d.executor.Drop(jobs)
		return nil, err
	}
	for _, j := range jobs {
		d.executor.LockPrunable(j)
		if unit := d.state.Units[j.Unit]; len(j.Held) > 0 && unit != nil {
			j.Waits = unit.Waiting
		}
	}
	return jobs, nil
}

// withhold judges the releases that the next Decide would begin: of those that
// delete what is to be approved before anything is written, none begins. A release
// that was not judged does not begin either.
func (d *Daemon) withhold(r *Record) error {
	g := &d.guarded
	if d.wanted.Refused() != "" {
		return nil
	}
	starts := d.state.Starts(d.wanted)
	// What has begun is judged again when it begins again, after a retry for one.
	maps.DeleteFunc(g.judged, func(path config.UnitPath, _ bool) bool {
		_, starts := slices.BinarySearch(starts, path)
		return !starts
	})
	if !slices.ContainsFunc(starts, func(path config.UnitPath) bool { return !g.judged[path] }) && (!g.stale || len(d.wanted.Withheld) == 0) {
		return nil
	}
	verdict, err := d.judge(nil)
	if err != nil {
		return err
	}
	for _, path := range starts {
		g.judged[path] = true
	}
	d.setWithheld(verdict, g.ledger.PlansOf(verdict, r.At))
	return nil
}

func (d *Daemon) judgeDeletions(ctx context.Context, r *Record, jobs []*executor.Job) error {
	deleting := false
	for _, j := range jobs {
		if j.Outcome.Result == "" && j.Deletes() {
			d.selectPrunable(j)
			deleting = deleting || len(j.Prunable) > 0
		}
	}
	g := &d.guarded
	if d.wanted.Refused() != "" || !deleting && (!g.stale || g.ledger.IsEmpty() && len(g.waiting)+len(d.wanted.Withheld) == 0) {
		return nil // nothing is selected while the commit is not to be believed
	}
	verdict, err := d.judge(jobs)
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if j.Prunable, j.Held = split(j.Prunable, verdict.Held); len(j.Held) > 0 {
			j.SpareHooks()
		}
	}
	g.stale = false
	return d.savePlans(ctx, r, verdict)
}

// judge says which deletions wait for approval, of all that the commit comes to
// delete and of those that the jobs are about to make besides.
func (d *Daemon) judge(jobs []*executor.Job) (approval.Verdict, error) {
	losses, err := d.pending(jobs)
	if err != nil {
		return approval.Verdict{}, err
	}
	ledger, commit := d.guarded.ledger, d.snapshot.Commit
	in := approval.Input{Limits: d.limits, Approved: ledger.Approved(), Lost: ledger.Done(store.Place{}, commit), LostBy: map[config.UnitPath]bool{}}
	for _, path := range ledger.LostBy(commit) {
		if d.snapshot.Units.Get(path) != nil {
			in.LostBy[path] = true
		}
	}
	deletes := false
	for _, l := range losses {
		in.Losses = append(in.Losses, l)
		deletes = deletes || len(l.Gone) > 0
	}
	if deletes {
		if in.Fleet, err = d.Store.Count(); err != nil {
			return approval.Verdict{}, err
		}
	}
	return approval.Judge(in), nil
}

// split parts the entries that may be deleted from those that are held.
func split(entries []store.Entry, held map[approval.Deletion]string) (free, kept []store.Entry) {
	for _, e := range entries {
		if held[approval.Of(e)] == "" {
			free = append(free, e)
		} else {
			kept = append(kept, e)
		}
	}
	return free, kept
}

// rebuilding says whether deletes are off in a cluster.
func (d *Daemon) rebuilding(cluster string) bool {
	return d.surveys.known[cluster].Survey == store.Rebuilding
}
