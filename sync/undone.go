// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// changing are the objects that a release which has yet to prove itself changed where a job
// looks at its health, each as it was before. It is asked for only where drift is left as it
// is: everywhere else any drift keeps a target from being done.
func (p *pass) changing(j *executor.Job) map[object.ID]*object.Object {
	earlier, proves := p.state.Proves(j.Place())
	if !proves || len(j.Work.Tolerated) == 0 {
		return nil
	}
	before := map[object.ID]*object.Object{}
	if earlier.Digest != "" {
		bundle, err := p.monorepo.bundle(earlier)
		if err != nil || bundle == nil {
			return nil // nobody knows what is new: drift is tolerated as it was before
		}
		for _, o := range bundle.Objects {
			before[o.ID] = o
		}
	}
	changing := map[object.ID]*object.Object{}
	for _, o := range j.Bundle.Objects {
		if was := before[o.ID]; j.Work.Tolerated[o.ID] && (was == nil || was.Digest != o.Digest) {
			changing[o.ID] = was
		}
	}
	return changing
}

// waitsForRelease says whether somebody changed a field that the newest commit changes too,
// at a place which the release has not come to: what the commit wants is no drift, and
// correcting it would go backwards. Its wave brings it. A bundle in quarantine is no wish.
func (d *Daemon) waitsForRelease(found drift.Finding) bool {
	was, wanted, moves := d.movesOn(found.Entry.Of())
	if !moves || found.Missing && len(found.Changes) == 0 && was != nil && wanted != nil { // both want that it is there
		return false
	}
	return was == nil || wanted == nil || found.Entry.ID.IsSecret() || found.Lost == nil || !apply.Agree(was, wanted, found.Lost)
}

// movesOn says whether the newest commit changes an object at a place that its release has
// not come to: how it was applied, and how it is wanted, nil where it is not.
func (d *Daemon) movesOn(of store.Object) (was, wanted *object.Object, moves bool) {
	u, w := d.state.Units[of.Unit], d.monorepo.wanted.Units[of.Unit]
	if u == nil || w == nil || u.Targets[of.Target] == nil || d.monorepo.snapshot == nil || !d.monorepo.wanted.Known(of.Unit) {
		return nil, nil, false
	}
	t, digest := u.Targets[of.Target], w.Targets[of.Target].Digest
	if digest == "" || digest == t.Applied || t.Applied == "" || u.HasFailed(w) {
		return nil, nil, false
	}
	newest, err := d.monorepo.snapshot.Bundle(of.Unit, of.Target)
	if err != nil || newest == nil || newest.Digest != digest {
		return nil, nil, false
	}
	wanted = find(newest, of.ID)
	applied, err := d.monorepo.bundle(rollout.Action{Unit: of.Unit, Target: of.Target, Digest: t.Applied, Commit: u.Commits[t.Applied]})
	if err == nil && applied != nil { // else nobody knows what it was
		was = find(applied, of.ID)
	}
	return was, wanted, was == nil || wanted == nil || was.Digest != wanted.Digest
}

// find is the object of a bundle; nil when it is not in it.
func find(b *object.Bundle, id object.ID) *object.Object {
	if i := slices.IndexFunc(b.Objects, func(o *object.Object) bool { return o.ID == id }); i >= 0 {
		return b.Objects[i]
	}
	return nil
}
