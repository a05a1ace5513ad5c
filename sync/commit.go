// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/ownership"
)

// ofGit is what errors are about that are over once a commit was fetched and read.
const ofGit = "Git"

// fetch looks at the branch when it is time to, and renders a new commit. Where that
// fails, what is known of the last good commit stays in force. named says that the
// commit is the first good one.
func (d *Daemon) fetch(ctx context.Context, r *Record) (named bool) {
	answer, ok := d.branch.newest(ctx, r.At)
	if !ok {
		return false
	}
	r.Fetched = answer.over
	if answer.err != nil {
		if ctx.Err() == nil {
			r.went(ofGit, answer.err)
			d.branch.failure = answer.err.Error()
		}
		return d.takeStored(r)
	}
	d.branch.failure = ""
	r.went(ofGit, nil)
	commit := answer.commit
	if s := d.monorepo.snapshot; s != nil && s.Commit == commit {
		d.monorepo.unconfirmed = false
		if !s.Retry {
			return false
		}
	}
	tree, err := d.monorepo.tree(commit)
	if err != nil {
		d.branch.failure = err.Error()
		r.went(ofGit, err)
		return d.takeStored(r)
	}
	d.monorepo.unconfirmed = false
	return d.takeCommit(commit, tree, r)
}

// takeStored takes the commit that the state knows as the last one, while Git does not answer
// after a start: as before it, that stays in force, or keeps releases back.
func (d *Daemon) takeStored(r *Record) (named bool) {
	commit := cmp.Or(d.orders.stored.Refused, d.orders.stored.Commit)
	if d.monorepo.snapshot != nil || commit == "" {
		return false
	}
	tree, err := d.monorepo.tree(commit)
	if err != nil {
		r.fail(err)
		return false
	}
	d.monorepo.unconfirmed = true
	return d.takeCommit(commit, tree, r)
}

// takeCommit renders a commit, and has it be the one that is wanted.
func (d *Daemon) takeCommit(commit config.Commit, tree config.Tree, r *Record) (named bool) {
	if d.monorepo.snapshot == nil {
		d.monorepo.start(d.orders.stored, commit, tree)
	}
	r.Broken = d.setCommit(commit, tree)
	s := d.monorepo.snapshot
	r.Since = d.monorepo.base
	r.Refused = d.monorepo.wanted.Refused()
	if r.Refused != "" && !s.Held {
		r.fail(errors.New(ofCommit(commit, r.Refused)))
	}
	r.Rendered, r.Problems = s.Rendered, s.Problems
	r.Notes = append(slices.Clone(s.Notes), s.Repository.StaleFacts(d.Now())...)
	r.NewCommit = true
	return d.takeName()
}

// pathsOf are the paths of units; never nil.
func pathsOf(units []*render.Unit) map[config.UnitPath]bool {
	paths := make(map[config.UnitPath]bool, len(units))
	for _, unit := range units {
		paths[unit.Path] = true
	}
	return paths
}

// setCommit makes a commit the one that is wanted. Jobs that go on in the background
// and are about to delete what it wants end here. It returns how many units have problems
// that the commit before did not have; 0 where there was none, or the new one is held.
func (d *Daemon) setCommit(commit config.Commit, tree config.Tree) (broken int) {
	before, brokenBefore := d.monorepo.snapshot, d.monorepo.broken
	if before != nil && before.Commit != commit { // and not the same once more
		d.monorepo.wasBroken = pathsOf(brokenBefore)
	}
	d.monorepo.take(commit, tree, d.state)
	snapshot := d.monorepo.snapshot
	if len(brokenBefore) > 0 {
		d.nudgeBeside(before, brokenBefore)
	}
	d.guarded.newCommit()
	if !snapshot.Held {
		d.sweeps.modes = drift.ReadModes(driftModes(snapshot), d.sweeps.modes)
	}
	d.sweepWhereJudged(before, snapshot)
	d.policies.Store(&policies{d.monorepo.snapshot, d.sweeps.modes})
	owners := d.owners(d.Store)
	d.executor.CancelStale(func(j *executor.Job, id object.ID) bool {
		owner, why := owners.RetainReason(j.Place(), id)
		return owner != nil || why != ""
	})
	if d.monorepo.wasBroken == nil || snapshot.Held {
		return 0
	}
	for _, unit := range d.monorepo.broken {
		if !d.monorepo.wasBroken[unit.Path] {
			broken++
		}
	}
	return broken
}

// nudgeBeside makes due what units have to delete that stayed for the sake of a unit
// with a problem, in the snapshot before: it may go now, or waits for something else.
func (d *Daemon) nudgeBeside(before *render.Snapshot, broken []*render.Unit) {
	for path := range d.state.Units {
		if ownership.Blocking(before, broken, path) != ownership.Blocking(d.monorepo.snapshot, d.monorepo.broken, path) {
			d.state.Nudge(path)
		}
	}
}

// takeName takes the name of the monorepo from the first commit whose fleet has no
// problem. It stays for good.
func (d *Daemon) takeName() bool {
	if d.monorepo.name != "" || d.monorepo.snapshot.Held {
		return false
	}
	d.monorepo.name = d.monorepo.snapshot.Repository.Name
	d.fleet.BelongTo(d.monorepo.name)
	return true
}

// saveFleet stores what of the fleet has to be known before the next good commit.
func (p *pass) saveFleet() error {
	if p.in.named {
		if err := p.tx.SetRepository(p.monorepo.name); err != nil {
			return err
		}
	}
	if p.monorepo.name == "" || reflect.DeepEqual(p.monorepo.bounds, p.monorepo.stored) {
		return nil
	}
	bounds, err := json.Marshal(p.monorepo.bounds)
	if err != nil {
		return err
	}
	p.monorepo.stored = p.monorepo.bounds
	return p.tx.SetBounds(bounds)
}

// loadBounds reads what the last good fleet keeps releases from.
func (m *monorepo) loadBounds(s Store) error {
	bounds, err := s.Bounds()
	if err != nil || bounds == nil {
		return err
	}
	if err := json.Unmarshal(bounds, &m.bounds); err != nil {
		return fmt.Errorf("read state: bounds of the fleet: %w", err)
	}
	m.stored, m.wanted.Bounds = m.bounds, m.bounds
	return nil
}
