// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// plansOf makes plans of what is held: one for each unit, so that one team's
// deletions do not stand in another's way, or a single one when it is held because
// of what the commit deletes in all. Those that were there before keep their time, and
// who rejected them.
func plansOf(v approval.Verdict, before []store.Plan, now time.Time) []store.Plan {
	byUnit := map[config.UnitPath][]store.Deletion{}
	for deletion, why := range v.Held {
		of := deletion.Unit
		if v.Together[of] {
			of = ""
		}
		byUnit[of] = append(byUnit[of], store.Deletion{Target: deletion.Target, Unit: deletion.Unit, ObjectID: deletion.ObjectID, UID: deletion.UID, Why: why})
	}
	known := map[render.Digest]store.Plan{}
	for _, p := range before {
		known[p.Digest] = p
	}
	var plans []store.Plan
	for _, unit := range slices.Sorted(maps.Keys(byUnit)) {
		plan := store.NewPlan(unit, now, byUnit[unit])
		if was, ok := known[plan.Digest]; ok {
			plan.At, plan.Rejected = was.At, was.Rejected
		}
		plans = append(plans, plan)
	}
	return plans
}

// savePlans stores the plans, where anything changed.
func (d *Daemon) savePlans(ctx context.Context, r *Record, v approval.Verdict) error {
	g := &d.guarded
	plans := plansOf(v, g.plans, r.At)
	same := slices.EqualFunc(plans, g.plans, func(a, b store.Plan) bool {
		return a.Digest == b.Digest && a.Unit == b.Unit && slices.Equal(a.Deletions, b.Deletions)
	})
	r.Transitions = append(r.Transitions, d.setPending(r, plans)...)
	d.setWithheld(v, plans)
	lapsed := d.expire()
	changed, dropped := d.state.Changed()
	if same && len(lapsed)+len(changed)+len(dropped) == 0 {
		return nil
	}
	err := d.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.PutPlans(plans); err != nil {
			return err
		}
		for digest, left := range lapsed {
			if err := tx.KeepApproval(digest, left); err != nil {
				return err
			}
		}
		return d.putState(tx)
	})
	if err == nil {
		g.plans = plans
		d.state.Stored()
	}
	return err
}

// setWithheld says to the next Decide which releases do not begin, and by which
// plan they would, and which begin with approval.
func (d *Daemon) setWithheld(v approval.Verdict, plans []store.Plan) {
	d.wanted.Withheld, d.wanted.Approved = map[config.UnitPath]string{}, map[config.UnitPath]bool{}
	for path, text := range waits(plans) {
		if why := v.Withheld[path]; why != "" {
			d.wanted.Withheld[path] = fmt.Sprintf("%s; before that, nothing of commit %s is released: %s", text, d.snapshot.Commit.Short(), why)
		}
	}
	for path := range v.Ends {
		d.wanted.Approved[path] = d.wanted.Withheld[path] == ""
	}
}

// waits says of each unit that has deletions in a plan what it waits for.
func waits(plans []store.Plan) map[config.UnitPath]string {
	texts := map[config.UnitPath]string{}
	for _, p := range plans {
		counts := map[config.UnitPath]int{}
		for _, deletion := range p.Deletions {
			counts[deletion.Unit]++
		}
		for unit, n := range counts {
			texts[unit] = waitText(n, p)
		}
	}
	return texts
}

// setPending tells the units which plan their deletions are in.
func (d *Daemon) setPending(r *Record, plans []store.Plan) (transitions []rollout.Transition) {
	texts := waits(plans)
	g := &d.guarded
	paths := maps.Clone(g.waiting)
	for path := range texts {
		paths[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if u := d.state.Units[path]; u != nil && u.Waiting != texts[path] {
			d.state.Nudge(path) // what its targets say of the plan is to change with it
		}
		transitions = append(transitions, d.state.Await(path, texts[path], r.At)...)
		if g.waiting[path] = texts[path] != ""; !g.waiting[path] {
			delete(g.waiting, path)
		}
	}
	return transitions
}

// waitText is what a unit says while n deletions of its own are in a plan.
func waitText(n int, p store.Plan) string {
	text := fmt.Sprintf("%s pending: %s", diff.Count(n, "deletion"), p.Ask())
	if p.Unit == "" {
		text += fmt.Sprintf(" (%s of the whole fleet)", diff.Count(len(p.Deletions), "deletion"))
	}
	return text
}

// expire ends approvals of what is not to be deleted any more, so that they do
// not count should it be, one day: it returns what is left of those that change.
// While it is not known whether they are, approvals stay.
func (d *Daemon) expire() map[render.Digest][]store.Deletion {
	g := &d.guarded
	if len(g.approvals) == 0 {
		return nil
	}
	still := map[approval.Deletion]bool{}
	for at, l := range g.with {
		for _, o := range l.Gone {
			still[approval.Deletion{Placed: at, ObjectID: o.ObjectID, UID: o.UID}] = true
		}
	}
	lapsed := map[render.Digest][]store.Deletion{}
	for i := range g.approvals {
		a := &g.approvals[i]
		left := slices.DeleteFunc(slices.Clone(a.Deletions), func(deletion store.Deletion) bool {
			unknown := !d.wanted.Known(deletion.Unit) || ownership.Blocking(d.snapshot, d.broken, deletion.Unit) != "" || d.rebuilding(deletion.Target.Cluster())
			wanted := len(d.Compiler.MayWant(deletion.Target.Cluster(), deletion.ObjectID)) > 0
			return !still[judged(deletion)] && (wanted || !unknown)
		})
		if len(left) < len(a.Deletions) {
			a.Deletions, lapsed[a.Digest] = left, left
		}
	}
	g.approvals = slices.DeleteFunc(g.approvals, func(a store.Approval) bool { return len(a.Deletions) == 0 })
	g.index()
	return lapsed
}

// revoke takes approvals back: the object is not the one any more that was
// approved. It returns what is left of the approvals that change.
func (g *guarded) revoke(entries []store.Entry) map[render.Digest][]store.Deletion {
	changed := map[render.Digest][]store.Deletion{}
	for i := range g.approvals {
		a := &g.approvals[i]
		left := slices.DeleteFunc(slices.Clone(a.Deletions), func(deletion store.Deletion) bool {
			return slices.ContainsFunc(entries, func(e store.Entry) bool { return judged(deletion) == deletionOf(e) })
		})
		if len(left) < len(a.Deletions) {
			a.Deletions, changed[a.Digest] = left, left
		}
	}
	if len(changed) > 0 {
		g.index()
	}
	return changed
}

// recordGuarded takes in what the jobs deleted, and stores what follows of it.
func (d *Daemon) recordGuarded(tx *store.Tx, jobs []*executor.Job) error {
	g := &d.guarded
	var changed []store.Entry
	counted := map[store.Place]bool{}
	for _, j := range jobs {
		if len(j.Confirmed)+len(j.Forgotten) > 0 {
			delete(g.pending, j.Place())
			g.stale = true
		}
		changed = append(changed, j.Changed...)
		if j.Unreplaced == 0 {
			continue
		}
		at := j.Place()
		g.add(at, d.releasedBy(j.Unit), j.Unreplaced)
		unapproved := slices.DeleteFunc(slices.Clone(j.Deleted), func(e store.Entry) bool { return g.approved[deletionOf(e)] })
		g.add(store.Place{}, d.snapshot.Commit, min(j.Unreplaced, len(unapproved)))
		counted[at], counted[store.Place{}] = true, true
	}
	if len(counted) > 0 {
		if err := d.dropTallies(tx); err != nil {
			return err
		}
	}
	for at := range counted {
		if err := tx.PutDeleted(at, g.deleted[at]); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		g.stale = true
	}
	for digest, left := range g.revoke(changed) {
		if err := tx.KeepApproval(digest, left); err != nil {
			return err
		}
	}
	return nil
}

func (g *guarded) add(at store.Place, commit config.Commit, objects int) {
	t := g.deleted[at]
	if t.Commit != commit {
		t = store.Tally{Commit: commit}
	}
	t.Objects += objects
	g.deleted[at] = t
}

// dropTallies forgets what was deleted of units that are gone, since an earlier
// commit.
func (d *Daemon) dropTallies(tx *store.Tx) error {
	for at, t := range d.guarded.deleted {
		if d.state.Units[at.Unit] == nil && at != (store.Place{}) && t.Commit != d.snapshot.Commit {
			delete(d.guarded.deleted, at)
			if err := tx.PutDeleted(at, store.Tally{}); err != nil {
				return err
			}
		}
	}
	return nil
}
