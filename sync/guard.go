// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/store"
)

// guarded is what the daemon knows of deletions that take approval. All of it but the
// ledger is made again by the next process.
type guarded struct {
	limits  config.Guard
	ledger  *approval.Ledger
	waiting map[config.UnitPath]bool // units with plans

	// pending is what units have to delete for the snapshot, as far as it was
	// looked at: see [Daemon.pending].
	pending map[object.UnitTarget]approval.Loss
	// extras are what jobs are about to delete that the commit does not come to.
	extras map[object.UnitTarget]extraLoss
	// with is both.
	with map[object.UnitTarget]approval.Loss
	// judged are the units whose release was judged before it began, for the
	// snapshot.
	judged map[config.UnitPath]bool
	// departed is what would be forgotten with clusters that left the fleet.
	departed map[object.UnitTarget]approval.Loss
	// forgetLater says that jobs are under way in a departed cluster.
	forgetLater bool
	// stale says that plans may not be what waits any more.
	stale bool
}

func (d *Daemon) loadGuarded() (err error) {
	g := &d.guarded
	g.newCommit()
	g.waiting = map[config.UnitPath]bool{}
	for path, unit := range d.state.Units {
		if unit.Waiting != "" {
			g.waiting[path] = true
		}
	}
	g.ledger, err = approval.Open(d.Store)
	return err
}

// loadApprovals takes in what was approved or rejected since the last time, and makes it due.
func (p *pass) loadApprovals() error {
	units, read, err := p.guarded.ledger.Load(p.tx)
	if err != nil {
		return err
	}
	p.guarded.stale = p.guarded.stale || read
	for _, path := range units {
		p.state.Nudge(path)
	}
	return nil
}

// newCommit forgets what was known of the commit before.
func (g *guarded) newCommit() {
	g.pending, g.with, g.judged, g.stale = nil, nil, map[config.UnitPath]bool{}, true
	g.extras = map[object.UnitTarget]extraLoss{}
}

// guard decides which deletions the jobs may make. It judges all that the commit comes
// to delete, in every wave, and not what this pass would: what is too much does not go
// through in small pieces. What is held is stored as plans.
func (p *pass) guard() error {
	if err := p.judgeDeletions(); err != nil {
		return err
	}
	for _, j := range p.jobs {
		p.spareMasked(j)
		p.executor.LockPrunable(j)
		if unit := p.state.Units[j.Unit]; len(j.Held) > 0 && unit != nil {
			j.Waits = unit.Waiting
		}
	}
	return nil
}

// withhold judges the releases that the next Decide would begin: of those that
// delete what is to be approved before anything is written, none begins. A release
// that was not judged does not begin either.
func (p *pass) withhold() error {
	g := &p.guarded
	if p.monorepo.wanted.Refused() != "" {
		return nil
	}
	starts := p.state.Starts(p.monorepo.wanted)
	// What has begun is judged again when it begins again, after a retry for one.
	maps.DeleteFunc(g.judged, func(path config.UnitPath, _ bool) bool {
		_, starts := slices.BinarySearch(starts, path)
		return !starts
	})
	if !slices.ContainsFunc(starts, func(path config.UnitPath) bool { return !g.judged[path] }) && (!g.stale || len(p.monorepo.wanted.Withheld) == 0) {
		return nil
	}
	verdict, err := p.judge(p.pending)
	if err != nil {
		return err
	}
	for _, path := range starts {
		g.judged[path] = true
	}
	p.setWithheld(verdict, g.ledger.PlansOf(verdict, p.r.At))
	return nil
}

func (p *pass) judgeDeletions() error {
	deleting := false
	for _, j := range p.jobs {
		if j.Deletes() {
			p.selectPrunable(j)
			deleting = deleting || len(j.Prunable) > 0
		}
	}
	g := &p.guarded
	if p.monorepo.wanted.Refused() != "" || !deleting && (!g.stale || g.isIdle() && len(p.monorepo.wanted.Withheld) == 0) {
		return nil // nothing is selected while the commit is not to be believed
	}
	verdict, err := p.judge(p.pendingWithJobs)
	if err != nil {
		return err
	}
	for _, j := range p.jobs {
		if j.Prunable, j.Held = split(j.Prunable, verdict.Held); len(j.Held) > 0 {
			j.SpareHooks()
		}
	}
	g.stale = false
	return p.savePlans(verdict)
}

// isIdle says that nothing waits for approval.
func (g *guarded) isIdle() bool { return g.ledger.IsEmpty() && len(g.waiting)+len(g.departed) == 0 }

// judge says which deletions wait for approval, of those that find finds.
func (p *pass) judge(find func() (map[object.UnitTarget]approval.Loss, error)) (approval.Verdict, error) {
	losses, err := find()
	if err != nil {
		return approval.Verdict{}, err
	}
	return p.prospect().judge(p.guarded.limits, p.guarded.ledger, losses)
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
