// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package ownership says which unit an object belongs to while units are released,
// put back, renamed and removed: the objects that a unit leaves to another one, and
// those that it may delete.
//
// It writes nothing and asks no cluster.
package ownership

import (
	"errors"
	"fmt"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// View is what is known of units and their objects at one moment. It remembers what
// it was asked, so it is made anew for each use.
type View struct {
	Snapshot *render.Snapshot // of the newest commit; nil before the first
	Refused  bool             // the newest commit is not to be believed
	Broken   []*render.Unit   // of the snapshot, see [Broken]
	State    *rollout.State
	Store    Inventory
	// Wants are the bundles of the newest commit in a cluster that have an object.
	Wants func(cluster string, id object.ID) []object.UnitTarget
	// Bundle is the one that an action is about.
	Bundle func(rollout.Action) (*object.Bundle, error)
	// Rebuilding says of a cluster that its inventory is not known yet.
	Rebuilding func(cluster string) bool

	bundles map[object.Digest]map[object.ID]bool // what Bundle gave
}

// Inventory is what units have, or may have, in clusters.
type Inventory interface {
	Inventory(unit config.UnitPath, target config.TargetName) (map[object.ID]store.Entry, error)
	// Holders are the entries of all units for one object of a cluster.
	Holders(cluster string, id object.ID) ([]store.Entry, error)
}

// Transfer is an object of one unit, and the other bundle that it goes to.
type Transfer struct {
	store.Entry
	To object.UnitTarget
}

// RebuildingText says why an object stays in a cluster whose inventory is not known.
const RebuildingText = "the inventory of its cluster is being rebuilt"

// Has says whether a unit was applied with an object on a target. Until then somebody
// else must keep knowing the object, or it would be nobody's if the bundle never
// comes.
func (v *View) Has(at object.UnitTarget, id object.ID) bool {
	inventory, err := v.Store.Inventory(at.Unit, at.Target)
	return err == nil && inventory[id].UID != ""
}

// IsApplied says whether an object is of the bundle that its unit has on the target
// or is to have; also when that is not known.
func (v *View) IsApplied(e store.Entry) bool {
	unit := v.State.Units[e.Unit]
	if unit == nil || unit.Targets[e.Target] == nil {
		return true
	}
	t := unit.Targets[e.Target]
	for _, digest := range []object.Digest{t.Wanted, t.Applied} {
		if digest == "" {
			continue
		}
		if holds, err := v.inBundle(e, digest); err != nil || holds {
			return true
		}
	}
	return false
}

// holds says whether the unit of an entry applied the object, and has it in a bundle
// that is in force. err is set when one of those is not known, and none of the others
// has the object.
func (v *View) holds(e store.Entry) (yes bool, err error) {
	unit := v.State.Units[e.Unit]
	if e.UID == "" || unit == nil {
		return false, nil
	}
	for _, digest := range unit.InForce(e.Target) {
		has, unknown := v.inBundle(e, digest)
		if has {
			return true, nil
		}
		err = errors.Join(err, unknown)
	}
	return false, err
}

// inBundle says whether a bundle of an entry's unit on its target has the object.
func (v *View) inBundle(e store.Entry, digest object.Digest) (bool, error) {
	if v.bundles[digest] == nil {
		bundle, err := v.Bundle(v.State.Units[e.Unit].ActionFor(e.Target, digest))
		if err != nil {
			return false, fmt.Errorf("what unit %s has on %s: %w", e.Unit, e.Target, err)
		}
		if v.bundles == nil {
			v.bundles = map[object.Digest]map[object.ID]bool{}
		}
		v.bundles[digest] = ObjectsOf(bundle)
	}
	return v.bundles[digest][e.ID], nil
}

// ObjectsOf are the objects of a bundle, which may be nil.
func ObjectsOf(b *object.Bundle) map[object.ID]bool {
	ids := map[object.ID]bool{}
	if b != nil {
		for _, o := range b.Objects {
			ids[o.ID] = true
		}
	}
	return ids
}

// PlaceText names a place as seen from a unit.
func PlaceText(from config.UnitPath, at object.UnitTarget) string {
	if at.Unit == from {
		return "target " + string(at.Target)
	}
	return "unit " + string(at.Unit)
}
