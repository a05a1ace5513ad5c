// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"time"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// deepPart is the part of a cluster's deep sweep that is due in a pass.
type deepPart struct {
	due   bool
	items []apply.DeepItem
	last  store.Object // the next part begins after it; the zero Object is the beginning

	done  bool // it was looked at, or there is nothing to look at
	found apply.Swept
	err   error
}

func (p *deepPart) entries() []store.Entry {
	entries := make([]store.Entry, len(p.items))
	for i := range p.items {
		entries[i] = p.items[i].Entry
	}
	return entries
}

// deepDue is the part that is due by now, if one is. Secrets are left out: a
// look in full would be one at their values. So is what is not known to be
// applied as a whole.
func (d *Daemon) deepDue(name string, now time.Time) (part deepPart) {
	n := d.sweeps.timetable.TakeDeep(name, now)
	if n == 0 {
		return deepPart{}
	}
	after, err := d.Store.DeepAfter(name)
	if err != nil {
		return deepPart{due: true, err: err}
	}
	entries, err := d.Store.InventoryAfter(name, after, n)
	if err != nil {
		return deepPart{due: true, err: err}
	}
	part.due = after != store.Object{} || len(entries) > 0
	if len(entries) == n {
		part.last = entries[n-1].Of()
	}
	part.items = d.deepItems(entries)
	return part
}

func (d *Daemon) deepItems(entries []store.Entry) (items []apply.DeepItem) {
	objects := map[object.UnitTarget]map[object.ID]*object.Object{}
	for _, e := range entries {
		if !apply.Judged(e) || e.ID.IsSecret() || d.off(e) {
			continue
		}
		at := e.Place()
		if objects[at] == nil {
			objects[at] = d.appliedObjects(at)
		}
		if o := objects[at][e.ID]; o != nil && o.Digest == e.Digest {
			items = append(items, apply.DeepItem{Entry: e, Object: o})
		}
	}
	return items
}

// appliedObjects are those of the bundle that was last applied; none when it
// cannot be had.
func (d *Daemon) appliedObjects(at object.UnitTarget) map[object.ID]*object.Object {
	objects := map[object.ID]*object.Object{}
	unit := d.state.Units[at.Unit]
	if unit == nil || unit.Targets[at.Target] == nil || unit.Targets[at.Target].Applied == "" {
		return objects
	}
	digest := unit.Targets[at.Target].Applied
	bundle, err := d.monorepo.bundle(unit.ActionFor(at.Target, digest))
	if err != nil || bundle == nil {
		return objects
	}
	for _, o := range bundle.Objects {
		objects[o.ID] = o
	}
	return objects
}
