// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"time"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// The health of what was released is followed by what sweeps and watches for drift see
// anyway: the metadata of an object that changed. Only then its health is looked at. An
// object of which nothing changes costs nothing.

// marks are the resourceVersions of objects when their health was last known to be looked
// at, by cluster: of those whose health may change by itself.
type marks map[string]map[object.ID]string

// clockMargin is by how much the clocks of a server and of this machine may differ before
// a look is missed or made without need, after a restart.
const clockMargin = time.Minute

// changed takes in an object as a sweep saw it, and says whether something may have
// happened to it since its health was last looked at.
func (m marks) changed(cluster string, id object.ID, seen apply.Mark, looked time.Time) bool {
	versions := m[cluster]
	if versions == nil {
		versions = map[object.ID]string{}
		m[cluster] = versions
	}
	before, known := versions[id]
	versions[id] = seen.Version
	if known { // whatever the clocks say, also when the look came after the change
		return before != seen.Version
	}
	return !seen.Written.Before(looked.Add(-clockMargin))
}

// keep forgets the marks of objects that are not among the entries.
func (m marks) keep(cluster string, entries []store.Entry) {
	kept := make(map[object.ID]string, len(m[cluster]))
	for i := range entries {
		if version, known := m[cluster][entries[i].ID]; known {
			kept[entries[i].ID] = version
		}
	}
	m[cluster] = kept
}

// mayAil says whether the health of an object may change without a write of ours. A Job
// that ran is over.
func mayAil(id object.ID, rules render.HealthRules) bool { return !id.IsJob() && apply.Asks(id, rules) }

// doubtSwept has the health of places looked at where a sweep saw that objects changed.
func (p *pass) doubtSwept(cluster string, entries []store.Entry, found apply.Swept) {
	for i := range entries {
		e := &entries[i]
		if i >= len(found.Marks) || !found.Looked[i] || found.Marks[i].Version == "" || !mayAil(e.ID, p.monorepo.healthRules) {
			continue
		}
		u := p.state.Units[e.Unit]
		if u == nil || u.Targets[e.Target] == nil {
			continue
		}
		if p.sweeps.marks.changed(cluster, e.ID, found.Marks[i], u.Targets[e.Target].CheckedAt) {
			p.state.Doubt(e.Place())
		}
	}
}

// doubtStirred has the health of places looked at where watches saw that something
// happened.
func (p *pass) doubtStirred() error {
	for cluster, objects := range p.informer.DrainStirred() {
		for id := range objects {
			holders, err := p.tx.Holders(cluster, id)
			if err != nil {
				return err
			}
			for i := range holders {
				if apply.Judged(holders[i]) {
					p.state.Doubt(holders[i].Place())
				}
			}
		}
	}
	return nil
}
