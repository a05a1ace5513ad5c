// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"maps"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// pending finds what the commit comes to delete, by unit and target: once for each
// commit, and again where something was written.
func (p *pass) pending() (map[object.UnitTarget]approval.Loss, error) {
	pending, err := p.prospect().losses(p.guarded.pending)
	if err != nil {
		return nil, err
	}
	p.guarded.pending = pending
	if len(p.guarded.departed) == 0 {
		return pending, nil
	}
	all := maps.Clone(pending)
	maps.Copy(all, p.guarded.departed)
	return all, nil
}

// pendingWithJobs is pending, and what jobs are about to delete besides, after a rollback:
// those of this pass and earlier ones that were held. A plan that named only what the jobs of
// one pass are about to delete would be another one in each pass.
func (p *pass) pendingWithJobs() (map[object.UnitTarget]approval.Loss, error) {
	pending, err := p.pending()
	if err != nil {
		return nil, err
	}
	g := &p.guarded
	for _, j := range p.jobs {
		if j.Deletes() {
			g.noteExtras(j, j.Prunable)
		}
	}
	with := maps.Clone(pending)
	for unitTarget, extra := range g.extras {
		unit := p.state.Units[unitTarget.Unit]
		if unit == nil || unit.Targets[unitTarget.Target] == nil || unit.Targets[unitTarget.Target].Wanted != extra.wanted {
			delete(g.extras, unitTarget)
			continue
		}
		with[unitTarget] = p.add(extra.Loss, with[unitTarget])
	}
	g.with = with
	return with, nil
}

// extraLoss is what a job is about to delete, or waits to.
type extraLoss struct {
	approval.Loss
	wanted object.Digest // by the target at that time
}

// noteExtras remembers what a job deletes until another job looks at the place.
func (g *guarded) noteExtras(j *executor.Job, gone []store.Entry) {
	if len(gone) == 0 {
		delete(g.extras, j.Place())
		return
	}
	l := approval.Loss{UnitTarget: j.Place(), Have: len(j.Inventory), Remains: approval.Remaining(j.Bundle)}
	for _, e := range gone {
		l.Gone = append(l.Gone, objectOf(e))
	}
	g.extras[j.Place()] = extraLoss{l, j.Digest}
}

// prospect is the daemon's, for its newest commit.
func (p *pass) prospect() *prospect {
	return &prospect{snapshot: p.monorepo.snapshot, wanted: p.monorepo.wanted, state: p.state, compiler: p.monorepo.compiler, broken: p.monorepo.broken, has: stored{p.tx.Reader}, rebuilding: p.rebuilding}
}

// add adds to the loss of a target what jobs delete besides.
func (p *pass) add(extra, l approval.Loss) approval.Loss {
	counted := make(map[object.ID]bool, len(l.Gone))
	for _, o := range l.Gone {
		counted[o.ID] = true
	}
	if len(l.Gone) == 0 {
		after := p.prospect()
		l.UnitTarget, l.Stays, l.Remains = extra.UnitTarget, after.stays(extra.Unit), extra.Remains
		l.Made = after.made(extra.UnitTarget)
	}
	l.Later = false
	l.Have, l.Gone = max(l.Have, extra.Have), l.Gone[:len(l.Gone):len(l.Gone)]
	for _, o := range extra.Gone {
		if !counted[o.ID] {
			l.Gone = append(l.Gone, o)
		}
	}
	return l
}

// noteMade takes in what a job is about to make that was not there before. What
// another unit has in the cluster is taken over, not made.
func (p *pass) noteMade(j *executor.Job, intended []store.Entry) error {
	if len(intended) == 0 {
		return nil
	}
	delete(p.guarded.pending, j.Place())
	ids := make([]object.ID, len(intended))
	for i, e := range intended {
		ids[i] = e.ID
	}
	moved, err := p.tx.Elsewhere(j.Place(), ids)
	if err != nil {
		return err
	}
	sorts := map[string]int{}
	for _, id := range ids {
		if !moved[id] {
			sorts[string(approval.SortOf(id))]++
		}
	}
	p.state.Makes(j.Unit, j.Target, sorts)
	return nil
}

// noteLost takes in what a job deleted, how many of it nothing replaced, and what
// is left to delete.
func (d *Daemon) noteLost(j *executor.Job) {
	sorts := make([]string, len(j.Deleted))
	for i, e := range j.Deleted {
		sorts[i] = string(approval.SortOf(e.ID))
	}
	j.Unreplaced = d.state.Loses(j.Unit, j.Target, sorts)
	if j.Prune && j.Outcome.Result == rollout.Healthy {
		d.state.CapMade(j.Unit, j.Target, j.LeftBehind())
	}
}

// ends says which work the good bundle of a place has and the job's does not,
// without approval: whatever became of the objects, such a target is not healthy.
// What the commit wants of another unit goes on, and what is marked to be kept stays.
// While the cluster is rebuilt nothing is deleted there, and no plan asks for it: nothing
// ends. The error is that it is not known, which is no fault of the bundle.
func (d *Daemon) ends(j *executor.Job) (string, error) {
	unit := d.state.Units[j.Unit]
	if unit == nil || unit.Targets[j.Target] == nil || unit.Rollout.Approved || d.monorepo.snapshot == nil || d.monorepo.snapshot.Units.Get(j.Unit) == nil || d.rebuilding(j.Cluster) {
		return "", nil
	}
	t, l := unit.Targets[j.Target], approval.Loss{UnitTarget: j.Place(), Stays: true, Remains: approval.Remaining(j.Bundle)}
	if !t.Touched || t.Good == "" || t.Good == j.Digest || t.Runs == "" || approval.WorkOf(l.Remains).Covers(approval.Work(t.Runs)) {
		return "", nil
	}
	good, err := d.monorepo.bundle(unit.ActionFor(j.Target, t.Good))
	if err != nil {
		return "", fmt.Errorf("it is not known which workloads end: %w", err)
	}
	for _, o := range good.Objects {
		if o.Hook() == "" && o.Annotation(config.AnnotationPrune) != config.PruneDisabled && len(d.monorepo.mayWant(j.Cluster, o.ID)) == 0 {
			l.Gone = append(l.Gone, approval.Object{ID: o.ID})
		}
	}
	return l.Ends(), nil
}
