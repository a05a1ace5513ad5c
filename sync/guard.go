// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// guarded is what the daemon knows of deletions that take approval. All of it
// but pending and stale is also in the store.
type guarded struct {
	plans     []store.Plan
	approvals []store.Approval
	approved  map[store.Deletion]bool     // without Why
	deleted   map[store.Place]store.Tally // see package store
	waiting   map[config.UnitPath]bool    // units with plans
	heard     int64                       // [store.Store.Changes] when approvals were read

	// pending is what units have to delete for the snapshot, as far as it was
	// looked at: see [Daemon.pending].
	pending map[render.Placed]doom
	// stale says that plans may not be what waits any more.
	stale bool
}

// doom is what a unit has on a target, and which of it is to go.
type doom struct {
	have   int
	doomed []store.Entry
}

func (d *Daemon) loadGuarded() (err error) {
	g := &d.guarded
	g.heard, g.stale, g.waiting = -1, true, map[config.UnitPath]bool{}
	if g.plans, err = d.Store.Plans(); err != nil {
		return err
	}
	if g.deleted, err = d.Store.Deleted(); err != nil {
		return err
	}
	for path, unit := range d.state.Units {
		if unit.Waiting != "" {
			g.waiting[path] = true
		}
	}
	return nil
}

// hear takes in what was approved since the last time, and makes it due.
func (d *Daemon) hear(r *Record) {
	g := &d.guarded
	changes, err := d.Store.Changes()
	if r.Err != nil || err == nil && changes == g.heard {
		return
	}
	known := g.approved
	if err == nil {
		g.approvals, err = d.Store.Approvals()
	}
	if err != nil {
		r.Err = err
		return
	}
	g.heard, g.stale = changes, true
	g.index()
	units := map[config.UnitPath]bool{}
	for deletion := range g.approved {
		if !known[deletion] {
			units[deletion.Unit] = true
		}
	}
	for path := range units {
		d.state.Nudge(path)
	}
}

// heard says whether somebody approved something since the last pass.
func (d *Daemon) heard() bool {
	changes, err := d.Store.Changes()
	return err != nil || changes != d.guarded.heard // the pass reports the error
}

func (g *guarded) index() {
	g.approved = map[store.Deletion]bool{}
	for _, a := range g.approvals {
		for _, deletion := range a.Deletions {
			deletion.Why = ""
			g.approved[deletion] = true
		}
	}
}

// deletionOf is an entry as approvals know it.
func deletionOf(e store.Entry) store.Deletion {
	return store.Deletion{Target: e.Target, Unit: e.Unit, ObjectID: e.ID, UID: e.UID}
}

// guard decides which deletions the jobs may make, and returns those that are to
// be carried out: none, when the state could not be read or written. It judges
// all that the commit comes to delete, in every wave, and not what this pass
// would: what is too much does not go through in small pieces. What is held is
// stored as plans.
func (d *Daemon) guard(ctx context.Context, r *Record, jobs []*job) []*job {
	if r.Err == nil && ctx.Err() == nil {
		d.judgeDeletions(ctx, r, jobs)
	}
	if r.Err != nil || ctx.Err() != nil {
		d.beside.drop(jobs)
		return nil
	}
	for _, j := range jobs {
		d.beside.claimDoomed(j)
		if unit := d.state.Units[j.Unit]; len(j.held) > 0 && unit != nil {
			j.waits = unit.Waiting
		}
	}
	return jobs
}

func (d *Daemon) judgeDeletions(ctx context.Context, r *Record, jobs []*job) {
	deleting := false
	for _, j := range jobs {
		if j.outcome.Result == "" && j.deletes() {
			d.doom(j)
			deleting = deleting || len(j.doomed) > 0
		}
	}
	g := &d.guarded
	if d.wanted.Refused() != "" || !deleting && (!g.stale || len(g.plans)+len(g.approvals)+len(g.waiting) == 0) {
		return // nothing is doomed while the commit is not to be believed
	}
	pending, err := d.pending(jobs)
	if err != nil {
		r.Err = err
		return
	}
	held, fleet, err := d.judge(pending)
	if err != nil {
		r.Err = err
		return
	}
	for _, j := range jobs {
		if j.doomed, j.held = split(j.doomed, held); len(j.held) > 0 {
			j.sparesHooks()
		}
	}
	g.stale = false
	r.Err = d.hold(ctx, r, pending, held, fleet)
}

// sparesHooks has Jobs stay while something is held: one may be a hook that is to
// run before what is deleted with it.
func (j *job) sparesHooks() {
	j.doomed = slices.DeleteFunc(j.doomed, func(e store.Entry) bool {
		if e.ID.IsJob() {
			j.left = append(j.left, fmt.Sprintf("%s stays with what waits for approval: it may be a hook of that", e.ID))
		}
		return e.ID.IsJob()
	})
}

// split parts the entries that may be deleted from those that are held.
func split(entries []store.Entry, held map[store.Deletion]string) (free, kept []store.Entry) {
	for _, e := range entries {
		if held[deletionOf(e)] == "" {
			free = append(free, e)
		} else {
			kept = append(kept, e)
		}
	}
	return free, kept
}

// fewPlaces is how many units on targets are looked up one by one; more of them
// are cheaper to find in one walk through the inventory.
const fewPlaces = 500

// pending finds what the commit comes to delete, by unit and target: what the
// inventory holds there and no bundle of the commit wants in that cluster. It
// looks at units that have something to delete or to apply, once for each
// commit, and again when something of theirs was written. What jobs are about to
// delete besides, after a rollback, is in it too.
func (d *Daemon) pending(jobs []*job) (map[render.Placed]doom, error) {
	known := d.guarded.pending
	if known == nil {
		known = map[render.Placed]doom{}
	}
	pending, missing := map[render.Placed]doom{}, map[render.Placed]bool{}
	for path, unit := range d.state.Units {
		if unit.Settled() {
			continue
		}
		for name := range unit.Targets {
			at := render.Placed{Unit: path, Target: name}
			if !unit.Deletes(name, d.wanted) || d.rebuilding(name.Cluster()) {
				continue
			}
			if d.brokenNear(path) != "" {
				break
			}
			if found, ok := known[at]; ok {
				pending[at] = found
			} else {
				missing[at] = true
			}
		}
	}
	if err := d.count(missing, pending); err != nil {
		return nil, err
	}
	d.guarded.pending = pending
	with := maps.Clone(pending)
	for _, j := range jobs {
		if len(j.doomed) == 0 {
			continue
		}
		at := j.place()
		p := with[at]
		counted := make(map[render.ObjectID]bool, len(p.doomed))
		for _, e := range p.doomed {
			counted[e.ID] = true
		}
		p.have, p.doomed = max(p.have, len(j.inventory)), slices.Clip(p.doomed)
		for _, e := range j.doomed {
			if !counted[e.ID] {
				p.doomed = append(p.doomed, e)
			}
		}
		with[at] = p
	}
	return with, nil
}

// count looks at the inventory of the places.
func (d *Daemon) count(places map[render.Placed]bool, into map[render.Placed]doom) error {
	see := func(e store.Entry) {
		at := e.Place()
		if !places[at] {
			return
		}
		p := into[at]
		p.have++
		if !e.Keep && !apply.IsSystem(e.ID) && len(d.Compiler.MayWant(e.Target.Cluster(), e.ID)) == 0 {
			p.doomed = append(p.doomed, e)
		}
		into[at] = p
	}
	for at := range places {
		into[at] = doom{}
	}
	if len(places) > fewPlaces {
		return d.Store.Census(see)
	}
	for at := range places {
		inventory, err := d.Store.Inventory(at.Unit, at.Target)
		if err != nil {
			return err
		}
		for _, e := range inventory {
			see(e)
		}
	}
	return nil
}

// judge says why deletions are held, of those that are not approved; fleet is
// set when it is because the commit deletes too much in all.
func (d *Daemon) judge(pending map[render.Placed]doom) (held map[store.Deletion]string, fleet bool, err error) {
	held = map[store.Deletion]string{}
	all := d.done(store.Place{}, d.snapshot.Commit)
	units := map[config.UnitPath]string{}
	for _, at := range slices.SortedFunc(maps.Keys(pending), comparePlaced) {
		p := pending[at]
		all += len(p.doomed)
		var commit config.Commit
		if unit := d.state.Units[at.Unit]; unit != nil {
			commit = unit.Rollout.Commit
		}
		done := d.done(at, commit)
		if len(p.doomed) > 0 && units[at.Unit] == "" && d.limits.Unit.Exceeded(len(p.doomed)+done, p.have+done) {
			units[at.Unit] = fmt.Sprintf("the unit deletes more than %s and %d %% of what it has on target %s",
				diff.Count(d.limits.Unit.Objects, "object"), d.limits.Unit.Percent, at.Target)
		}
		weigh(p.doomed, held)
	}
	if all > d.limits.Fleet.Objects { // else no share matters, and counting is a walk through the inventory
		there, err := d.Store.Count()
		if err != nil {
			return nil, false, err
		}
		fleet = d.limits.Fleet.Exceeded(all, there+d.done(store.Place{}, d.snapshot.Commit))
	}
	for _, p := range pending {
		for _, e := range p.doomed {
			deletion := deletionOf(e)
			switch {
			case d.guarded.approved[deletion]:
				delete(held, deletion)
			case held[deletion] != "": // for a reason that is nearer
			case units[e.Unit] != "":
				held[deletion] = units[e.Unit]
			case fleet:
				held[deletion] = fmt.Sprintf("the commit deletes more than %s and %d %% of what the fleet has",
					diff.Count(d.limits.Fleet.Objects, "object"), d.limits.Fleet.Percent)
			}
		}
	}
	return held, fleet, nil
}

// weigh holds what takes approval however little it is, of one unit on one
// target.
func weigh(doomed []store.Entry, held map[store.Deletion]string) {
	var anchor *render.ObjectID
	for i := range doomed {
		e := &doomed[i]
		switch weight := apply.WeightOf(e.ID); {
		case weight != apply.Light:
			held[deletionOf(*e)] = fmt.Sprintf("a %s is deleted by approval only", e.ID.Kind)
			if weight == apply.Anchor && (anchor == nil || e.ID.Compare(*anchor) < 0) {
				anchor = &e.ID
			}
		case e.Found:
			held[deletionOf(*e)] = "it was found when the inventory was rebuilt, and nobody applied it since"
		}
	}
	if anchor == nil {
		return
	}
	for _, e := range doomed {
		if deletion := deletionOf(e); held[deletion] == "" {
			held[deletion] = fmt.Sprintf("%s, which may need it, is deleted by approval only", *anchor)
		}
	}
}

func comparePlaced(a, b render.Placed) int {
	return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Target, b.Target))
}

// done is how many objects were deleted at a place since a commit.
func (d *Daemon) done(at store.Place, since config.Commit) int {
	if t := d.guarded.deleted[at]; t.Commit == since {
		return t.Objects
	}
	return 0
}

// rebuilding says whether deletes are off in a cluster.
func (d *Daemon) rebuilding(cluster string) bool {
	return d.surveys[cluster].Survey == store.Rebuilding
}
