// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
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
			return nil // nobody knows the changes: drift is tolerated as it was before
		}
		for _, o := range bundle.Objects {
			before[o.ID] = o
		}
	}
	changing := map[object.ID]*object.Object{}
	for _, o := range j.Bundle.Objects {
		if earlier := before[o.ID]; j.Work.Tolerated[o.ID] && (earlier == nil || earlier.Digest != o.Digest) {
			changing[o.ID] = earlier
		}
	}
	return changing
}

// waitsForRelease says whether somebody changed a field that the newest commit changes too,
// at a place which the release has not come to: what the commit wants is no drift, and
// correcting it would go backwards. Its wave brings it. A bundle in quarantine is no wish.
func (d *Daemon) waitsForRelease(found drift.Finding) bool {
	applied, wanted, moves := d.movesOn(found.Entry.Of())
	if !moves || found.Missing && len(found.Changes) == 0 && applied != nil && wanted != nil { // both want that it is there
		return false
	}
	return applied == nil || wanted == nil || found.Entry.ID.IsSecret() || found.Lost == nil || !apply.Agree(applied, wanted, found.Lost)
}

// movesOn says whether the newest commit changes an object at a place that its release has
// not come to: how it was applied, and how it is wanted, nil where it is not.
func (d *Daemon) movesOn(drifted store.Object) (applied, wanted *object.Object, moves bool) {
	u, w := d.state.Units[drifted.Unit], d.monorepo.wanted.Units[drifted.Unit]
	if u == nil || w == nil || u.Targets[drifted.Target] == nil || d.monorepo.snapshot == nil || !d.monorepo.wanted.Known(drifted.Unit) {
		return nil, nil, false
	}
	t, digest := u.Targets[drifted.Target], w.Targets[drifted.Target].Digest
	if digest == "" || digest == t.Applied || t.Applied == "" || u.HasFailed(w) {
		return nil, nil, false
	}
	newest, err := d.monorepo.snapshot.Bundle(drifted.Unit, drifted.Target)
	if err != nil || newest == nil || newest.Digest != digest {
		return nil, nil, false
	}
	wanted = newest.Find(drifted.ID)
	before := u.ActionFor(drifted.Target, t.Applied)
	earlier, err := d.monorepo.bundle(before)
	if err == nil && earlier != nil { // else nobody knows
		applied = earlier.Find(drifted.ID)
	}
	return applied, wanted, applied == nil || wanted == nil || applied.Digest != wanted.Digest
}
