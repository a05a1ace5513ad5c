// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// fewPlaces is how many units on targets are looked up one by one; more of them
// are cheaper to find in one walk through the inventory.
const fewPlaces = 500

// inventory is what units have on targets: that of the store, or what a commit
// brought, for a preview.
type inventory interface {
	Inventory(config.UnitPath, config.TargetName) (map[object.ID]store.Entry, error)
	// each hands over what there is at the places, and may hand over more.
	each(places map[object.UnitTarget]bool, see func(store.Entry)) error
	Count() (int, error)
	// Elsewhere are those of the objects that the cluster has of another unit, or of
	// the same one on another target.
	Elsewhere(at object.UnitTarget, ids []object.ID) (map[object.ID]bool, error)
}

// stored is the inventory of the store.
type stored struct{ store.Reader }

func (s stored) each(places map[object.UnitTarget]bool, see func(store.Entry)) error {
	if len(places) > fewPlaces {
		return s.Census(see)
	}
	for at := range places {
		entries, err := s.Inventory(at.Unit, at.Target)
		if err != nil {
			return err
		}
		for _, e := range entries {
			see(e)
		}
	}
	return nil
}

// prospect is what tells what a commit comes to delete. The daemon and
// [Preview] ask it about different inventories, and get the same answers.
type prospect struct {
	snapshot   *render.Snapshot
	wanted     *rollout.Wanted
	state      *rollout.State
	compiler   *render.Compiler // that made the snapshot
	broken     []*render.Unit   // of the snapshot
	has        inventory
	rebuilding func(cluster string) bool // nothing is deleted there
}

// losses finds what the commit comes to delete, by unit and target: what the
// inventory holds there and no bundle of the commit wants in that cluster. It
// looks at units that have something to delete or to apply, also at those whose
// release has not begun; known are places that it looked at before.
func (p *prospect) losses(known map[object.UnitTarget]approval.Loss) (map[object.UnitTarget]approval.Loss, error) {
	losses, missing := map[object.UnitTarget]approval.Loss{}, map[object.UnitTarget]bool{}
	later := map[config.UnitPath]bool{}
	for path, unit := range p.state.Units {
		if unit.Settled(p.wanted) {
			continue
		}
		for name := range unit.Targets {
			unitTarget := object.UnitTarget{Unit: path, Target: name}
			if !unit.Deletes(name, p.wanted) || p.rebuilding(name.Cluster()) {
				continue
			}
			if _, known := later[path]; !known {
				later[path] = ownership.Blocking(p.snapshot, p.broken, path) != ""
			}
			if later[path] && (unit.Begun(p.wanted) || !p.stays(path)) {
				break // nothing is deleted; but a release is judged before it begins
			}
			if found, ok := known[unitTarget]; ok {
				losses[unitTarget] = found
			} else {
				missing[unitTarget] = true
			}
		}
	}
	if err := p.count(missing, losses); err != nil {
		return nil, err
	}
	for unitTarget := range missing {
		if err := p.complete(unitTarget, losses); err != nil {
			return nil, err
		}
	}
	for unitTarget, l := range losses {
		l.Later = later[unitTarget.Unit]
		losses[unitTarget] = l
	}
	return losses, nil
}

func objectOf(e store.Entry) approval.Object {
	return approval.Object{ID: e.ID, UID: e.UID, Found: e.Found, Hook: isHook(e)}
}

// isHook says whether an entry is of a Job that ran as a hook, or waits to: our own
// managed fields have the annotation.
func isHook(e store.Entry) bool {
	return e.Ran != "" || e.ID.IsJob() && strings.Contains(e.Fields, `"f:`+config.AnnotationHook+`"`)
}

// stays says whether the unit is in the commit.
func (p *prospect) stays(path config.UnitPath) bool { return p.snapshot.Units.Get(path) != nil }

// made is what was new at a place since it had no leftovers.
func (p *prospect) made(at object.UnitTarget) map[approval.Sort]int {
	made := map[approval.Sort]int{}
	if unit := p.state.Units[at.Unit]; unit != nil && unit.Targets[at.Target] != nil {
		for sort, n := range unit.Targets[at.Target].Made {
			made[approval.Sort(sort)] = n
		}
	}
	return made
}

// goes says whether an object that its unit does not want any more is deleted, as
// far as Git says.
func (p *prospect) goes(e store.Entry) bool {
	return !e.ID.IsSystem() && len(p.wanted.Present(p.compiler.MayWant(e.Target.Cluster(), e.ID))) == 0 && !ownership.Orphaned(p.snapshot, e.Unit, e)
}

// count looks at the inventory of the places.
func (p *prospect) count(places map[object.UnitTarget]bool, into map[object.UnitTarget]approval.Loss) error {
	see := func(e store.Entry) {
		at := e.Place()
		if !places[at] {
			return
		}
		l := into[at]
		l.Have++
		if p.goes(e) {
			l.Gone = append(l.Gone, objectOf(e))
		}
		into[at] = l
	}
	for at := range places {
		into[at] = approval.Loss{UnitTarget: at, Stays: p.stays(at.Unit)}
	}
	return p.has.each(places, see)
}

// complete adds to what goes at a place what remains there, and what is new. A
// bundle that cannot be had is taken for empty: then nothing is replaced.
func (p *prospect) complete(at object.UnitTarget, losses map[object.UnitTarget]approval.Loss) error {
	l := losses[at]
	if len(l.Gone) == 0 {
		return nil
	}
	l.Made = p.made(at)
	for _, n := range l.Made {
		l.Have -= n // the share is of what there was
	}
	if bundle, err := p.snapshot.Bundle(at.Unit, at.Target); err == nil && bundle != nil && !p.wanted.IsRetired(at.Target) {
		inventory, err := p.has.Inventory(at.Unit, at.Target)
		if err != nil {
			return err
		}
		l.Remains = approval.Remaining(bundle)
		var fresh []object.ID
		for _, o := range bundle.Objects {
			if _, there := inventory[o.ID]; !there {
				fresh = append(fresh, o.ID)
			}
		}
		moved, err := p.has.Elsewhere(at, fresh)
		if err != nil {
			return err
		}
		for _, id := range fresh {
			if !moved[id] { // what moves in replaces nothing
				l.Made[approval.SortOf(id)]++
			}
		}
	}
	losses[at] = l
	return nil
}

// judge says which deletions wait for approval, by the bounds, and by what was approved
// and deleted before.
func (p *prospect) judge(limits config.Guard, ledger *approval.Ledger, losses map[object.UnitTarget]approval.Loss) (approval.Verdict, error) {
	commit, deletes := p.snapshot.Commit, false
	in := approval.Input{Limits: limits, Approved: ledger.Approved(), Lost: ledger.Done(object.UnitTarget{}, commit), LostBy: map[config.UnitPath]bool{}}
	for _, path := range ledger.LostBy(commit) {
		if p.stays(path) {
			in.LostBy[path] = true
		}
	}
	for at, l := range losses {
		l.Done = ledger.Done(at, releasedBy(p.state, at.Unit))
		losses[at] = l
		in.Losses = append(in.Losses, l)
		deletes = deletes || len(l.Gone) > 0
	}
	if deletes {
		var err error
		if in.Fleet, err = p.has.Count(); err != nil {
			return approval.Verdict{}, err
		}
	}
	return approval.Judge(in), nil
}

// releasedBy is the commit that the unit's release began with.
func releasedBy(state *rollout.State, path config.UnitPath) (commit config.Commit) {
	if unit := state.Units[path]; unit != nil {
		commit = unit.Rollout.Commit
	}
	return commit
}
