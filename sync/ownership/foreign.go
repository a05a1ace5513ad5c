// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// A unit may write a bundle of an earlier commit: it is put back, or has a problem
// or waits for its wave and is corrected. Objects of that bundle may be another
// unit's by then. They are left out: they are not written, read or deleted. The unit
// keeps an entry without a digest for each, so it gets the object back when the other
// unit drops it.

// standing is the relation of another unit to an object that a unit is about to write.
type standing struct {
	// wants: the newest commit's bundle of it has the object.
	wants bool
	// holds: it applied the object, and a bundle that is in force has it.
	holds bool
	// last: nobody wrote the object since.
	last bool
}

// ownedByOther says whether a unit leaves an object to another one; wants is whether
// the newest commit wants it of the unit itself. A unit that the newest commit does not
// give the object does not get it by an earlier bundle. Where the commit says nothing,
// or wants it of both, it belongs to the unit that wrote it last.
func ownedByOther(wants bool, other standing) bool {
	switch {
	case !other.holds:
		return false
	case wants != other.wants:
		return other.wants
	}
	return other.last
}

// Foreign finds the objects of a bundle that are another unit's by now, with the
// entries of that one. a is the action that is to write the bundle, and inventory
// what its unit has on the target.
func (v *View) Foreign(a rollout.Action, bundle *object.Bundle, inventory map[object.ID]store.Entry) (foreign []Transfer, err error) {
	if v.isNewest(a) {
		return nil, nil
	}
	self, cluster := object.UnitTarget{Unit: a.Unit, Target: a.Target}, a.Target.Cluster()
	for _, o := range bundle.Objects {
		if inventory[o.ID].Digest != "" {
			continue // nobody wrote it since
		}
		holders, err := v.Store.Holders(cluster, o.ID)
		if err != nil {
			return nil, err
		}
		wants := v.Wants(cluster, o.ID)
		for _, e := range holders {
			by := e.Place()
			if by == self {
				continue
			}
			holds, err := v.holds(e)
			if err != nil {
				return nil, err
			}
			if ownedByOther(slices.Contains(wants, self), standing{wants: slices.Contains(wants, by), holds: holds, last: e.Digest != ""}) {
				foreign = append(foreign, Transfer{e, by})
				break
			}
		}
	}
	return foreign, nil
}

// isNewest says whether an action is about the bundle that the newest commit wants.
func (v *View) isNewest(a rollout.Action) bool {
	if v.Snapshot == nil || v.Refused {
		return false
	}
	unit := v.Snapshot.Units.Get(a.Unit)
	if unit == nil {
		return false
	}
	on := unit.On(a.Target)
	return on != nil && on.Digest == a.Digest
}
