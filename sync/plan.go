// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/store"
)

// savePlans stores the plans, where anything changed.
func (p *pass) savePlans(v approval.Verdict) error {
	ledger := p.guarded.ledger
	plans := ledger.PlansOf(v, p.r.At)
	same := ledger.Has(plans)
	p.setPending(plans)
	p.setWithheld(v, plans)
	for digest, left := range p.expire() {
		if err := p.tx.KeepApproval(digest, left); err != nil {
			return err
		}
	}
	if same {
		return nil
	}
	ledger.Put(plans)
	return p.tx.PutPlans(plans)
}

// setWithheld says to the next Decide which releases do not begin, and by which
// plan they would, and which begin with approval.
func (d *Daemon) setWithheld(v approval.Verdict, plans []store.Plan) {
	d.monorepo.wanted.Withheld, d.monorepo.wanted.Approved = withheldBy(v, plans, d.monorepo.snapshot.Commit), map[config.UnitPath]bool{}
	for path := range v.Ends {
		d.monorepo.wanted.Approved[path] = d.monorepo.wanted.Withheld[path] == ""
	}
}

// withheldBy says of units why nothing of their release is written, and by which plan it
// would be.
func withheldBy(v approval.Verdict, plans []store.Plan, commit config.Commit) map[config.UnitPath]string {
	withheld := map[config.UnitPath]string{}
	for path, text := range approval.Waits(plans) {
		if why := v.Withheld[path]; why != "" {
			withheld[path] = fmt.Sprintf("%s; before that, nothing of commit %s is released: %s", text, commit.Short(), why)
		}
	}
	return withheld
}

// setPending tells the units which plan their deletions are in.
func (p *pass) setPending(plans []store.Plan) {
	texts := approval.Waits(plans)
	g := &p.guarded
	paths := maps.Clone(g.waiting)
	for path := range texts {
		paths[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if u := p.state.Units[path]; u != nil && u.Waiting != texts[path] {
			p.state.Nudge(path) // what its targets say of the plan is to change with it
		}
		p.r.Transitions = append(p.r.Transitions, p.state.Await(path, texts[path], p.r.At)...)
		if g.waiting[path] = texts[path] != ""; !g.waiting[path] {
			delete(g.waiting, path)
		}
	}
}

// expire ends approvals of what is not to be deleted any more. While it is not known
// whether something is, its approval stays.
func (d *Daemon) expire() map[object.Digest][]store.Deletion {
	g := &d.guarded
	if g.ledger.IsEmpty() {
		return nil
	}
	still := map[approval.Deletion]bool{}
	for at, l := range g.with {
		for _, o := range l.Gone {
			still[approval.Deletion{UnitTarget: at, ID: o.ID, UID: o.UID, Forget: l.Departed}] = true
		}
	}
	return g.ledger.Expire(func(deletion approval.Deletion) bool {
		if deletion.Forget {
			return !still[deletion]
		}
		unknown := !d.monorepo.wanted.Known(deletion.Unit) || ownership.Blocking(d.monorepo.snapshot, d.monorepo.broken, deletion.Unit) != "" || d.rebuilding(deletion.Target.Cluster())
		wanted := len(d.monorepo.mayWant(deletion.Target.Cluster(), deletion.ID)) > 0
		return !still[deletion] && (wanted || !unknown)
	})
}

// recordDeletions takes in what the jobs deleted, and stores what follows of it.
func (p *pass) recordDeletions(jobs []*executor.Job) error {
	g := &p.guarded
	var changed []store.Entry
	counted := map[object.UnitTarget]bool{}
	for _, j := range jobs {
		if len(j.Confirmed)+len(j.Forgotten) > 0 {
			delete(g.pending, j.Place())
			g.stale = true
		}
		if j.Deletes() && j.Outcome.Result != "" {
			g.noteExtras(j, j.StillHeld()) // all else is gone, or was left alone
		}
		changed = append(changed, j.Changed...)
		if j.Unreplaced == 0 {
			continue
		}
		at := j.Place()
		g.ledger.Count(at, releasedBy(p.state, j.Unit), j.Unreplaced)
		unapproved := slices.DeleteFunc(slices.Clone(j.Deleted), func(e store.Entry) bool { return g.ledger.Approved()[approval.Of(e)] })
		g.ledger.Count(object.UnitTarget{}, p.monorepo.snapshot.Commit, min(j.Unreplaced, len(unapproved)))
		counted[at], counted[object.UnitTarget{}] = true, true
	}
	if len(counted) > 0 {
		gone := func(path config.UnitPath) bool { return p.state.Units[path] == nil }
		if err := g.ledger.PutTallies(p.tx, counted, p.monorepo.snapshot.Commit, gone); err != nil {
			return err
		}
	}
	if len(changed) > 0 {
		g.stale = true
	}
	for digest, left := range g.ledger.Revoke(changed) {
		if err := p.tx.KeepApproval(digest, left); err != nil {
			return err
		}
	}
	return nil
}
