// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// hold makes plans of what is held and stores them, where anything changed: one
// for each unit, so that one team's deletions do not stand in another's way, or
// a single one when the commit deletes too much in all.
func (d *Daemon) hold(ctx context.Context, r *Record, pending map[render.Placed]doom, held map[store.Deletion]string, fleet bool) error {
	byUnit := map[config.UnitPath][]store.Deletion{}
	for _, deletion := range slices.Collect(maps.Keys(held)) {
		of := deletion.Unit
		if fleet {
			of = ""
		}
		why := held[deletion]
		deletion.Why = why
		byUnit[of] = append(byUnit[of], deletion)
	}
	g := &d.guarded
	before := map[render.Digest]store.Plan{}
	for _, p := range g.plans {
		before[p.Digest] = p
	}
	var plans []store.Plan
	same := len(byUnit) == len(g.plans)
	for _, unit := range slices.Sorted(maps.Keys(byUnit)) {
		plan := store.NewPlan(unit, r.At, byUnit[unit])
		if known, ok := before[plan.Digest]; ok && known.Unit == unit {
			plan.At = known.At
			same = same && slices.Equal(known.Deletions, plan.Deletions)
		} else {
			same = false
		}
		plans = append(plans, plan)
	}
	r.Transitions = append(r.Transitions, d.await(r, plans)...)
	lapsed := d.lapse(pending)
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

// await tells the units which plan their deletions are in.
func (d *Daemon) await(r *Record, plans []store.Plan) (transitions []rollout.Transition) {
	waits := map[config.UnitPath]string{}
	for _, p := range plans {
		counts := map[config.UnitPath]int{}
		for _, deletion := range p.Deletions {
			counts[deletion.Unit]++
		}
		for unit, n := range counts {
			waits[unit] = waitText(n, p)
		}
	}
	g := &d.guarded
	paths := maps.Clone(g.waiting)
	for path := range waits {
		paths[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		transitions = append(transitions, d.state.Await(path, waits[path], r.At)...)
		if g.waiting[path] = waits[path] != ""; !g.waiting[path] {
			delete(g.waiting, path)
		}
	}
	return transitions
}

// waitText is what a unit says while n deletions of its own are in a plan.
func waitText(n int, p store.Plan) string {
	verb := "wait"
	if n == 1 {
		verb = "waits"
	}
	text := fmt.Sprintf("%s %s for approval: swell approve %s", diff.Count(n, "deletion"), verb, p.Digest.Short())
	if p.Unit == "" {
		text += fmt.Sprintf(" (%s of the whole fleet)", diff.Count(len(p.Deletions), "deletion"))
	}
	return text
}

// lapse ends approvals of what is not to be deleted any more, so that they do
// not count should it be, one day: it returns what is left of those that change.
// While it is not known whether they are, approvals stay.
func (d *Daemon) lapse(pending map[render.Placed]doom) map[render.Digest][]store.Deletion {
	g := &d.guarded
	if len(g.approvals) == 0 {
		return nil
	}
	still := map[store.Deletion]bool{}
	for _, p := range pending {
		for _, e := range p.doomed {
			still[deletionOf(e)] = true
		}
	}
	lapsed := map[render.Digest][]store.Deletion{}
	for i := range g.approvals {
		a := &g.approvals[i]
		left := slices.DeleteFunc(slices.Clone(a.Deletions), func(deletion store.Deletion) bool {
			deletion.Why = ""
			unknown := !d.wanted.Known(deletion.Unit) || d.brokenNear(deletion.Unit) != "" || d.rebuilding(deletion.Target.Cluster())
			wanted := len(d.Compiler.MayWant(deletion.Target.Cluster(), deletion.ObjectID)) > 0
			return !still[deletion] && (wanted || !unknown)
		})
		if len(left) < len(a.Deletions) {
			a.Deletions, lapsed[a.Digest] = left, left
		}
	}
	g.approvals = slices.DeleteFunc(g.approvals, func(a store.Approval) bool { return len(a.Deletions) == 0 })
	g.index()
	return lapsed
}

// withdraw takes approvals back: the object is not the one any more that was
// approved. It returns what is left of the approvals that change.
func (g *guarded) withdraw(entries []store.Entry) map[render.Digest][]store.Deletion {
	changed := map[render.Digest][]store.Deletion{}
	for i := range g.approvals {
		a := &g.approvals[i]
		left := slices.DeleteFunc(slices.Clone(a.Deletions), func(deletion store.Deletion) bool {
			return slices.ContainsFunc(entries, func(e store.Entry) bool { return deletion.Same(deletionOf(e)) })
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
func (d *Daemon) recordGuarded(tx *store.Tx, jobs []*job) error {
	g := &d.guarded
	var changed []store.Entry
	counted := map[store.Place]bool{}
	for _, j := range jobs {
		if len(j.confirmed)+len(j.forgotten) > 0 {
			delete(g.pending, j.place())
			g.stale = true
		}
		changed = append(changed, j.changed...)
		if len(j.deleted) == 0 {
			continue
		}
		var commit config.Commit
		if unit := d.state.Units[j.Unit]; unit != nil {
			commit = unit.Rollout.Commit
		}
		at := store.Place{Unit: j.Unit, Target: j.Target}
		g.add(at, commit, len(j.deleted))
		g.add(store.Place{}, d.snapshot.Commit, len(j.deleted))
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
	for digest, left := range g.withdraw(changed) {
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
