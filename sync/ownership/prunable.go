// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Leftovers are the objects that a unit has on a target and does not want any more.
type Leftovers struct {
	Prunable []store.Entry // may be deleted
	Kept     []store.Entry // are marked to be kept
	Moved    []Transfer    // are another unit's now
	Left     []string      // why others stay, in a line each
}

// Leftovers sorts out what a place has besides its bundle, which is nil for one that
// is to have nothing.
func (v *View) Leftovers(at object.UnitTarget, bundle *object.Bundle, inventory map[object.ID]store.Entry) (l Leftovers) {
	wanted := ObjectsOf(bundle)
	for _, id := range slices.SortedFunc(maps.Keys(inventory), object.CompareApplyOrder) {
		if wanted[id] {
			continue
		}
		entry := inventory[id]
		switch owner, why := v.RetainReason(at, id); {
		case owner != nil && v.Has(*owner, id):
			l.Moved = append(l.Moved, Transfer{entry, *owner})
		case owner != nil:
			l.Left = append(l.Left, fmt.Sprintf("%s stays until %s has it", id, PlaceText(at.Unit, *owner)))
		case why != "":
			l.Left = append(l.Left, fmt.Sprintf("%s stays: %s", id, why))
		case Orphaned(v.Snapshot, at.Unit, entry):
			entry.Keep = true
			l.Kept = append(l.Kept, entry)
		default:
			l.Prunable = append(l.Prunable, entry)
		}
	}
	return l
}

// Orphaned says whether an object of a unit that nobody wants any more stays in the
// cluster: it is marked to be kept, or the unit's Defaults say so.
func Orphaned(s *render.Snapshot, unit config.UnitPath, e store.Entry) bool {
	return e.Keep || s.Repository.Orphans(unit)
}

// RetainReason says why an object must not be deleted although the bundle of a place
// does not hold it: the other bundle that wants it, or has it, or a reason; neither
// when it may be deleted. Not to know is a reason: an object may be on its way to a
// unit that has a problem at the moment.
func (v *View) RetainReason(at object.UnitTarget, id object.ID) (owner *object.UnitTarget, why string) {
	if v.Snapshot == nil || v.Refused {
		return nil, "it is not known what the commit wants"
	}
	for _, by := range v.Wants(at.Target.Cluster(), id) {
		if by != at && v.leavesOut(by, id) {
			continue
		}
		if by != at {
			return &by, ""
		}
		// The unit is being put back, but its newest commit wants the object,
		// which may be older than that commit: it can have come from elsewhere.
		why = "the newest commit wants it"
	}
	// Of the commit nobody else wants it. But a unit that was put back, or whose
	// wave has not come, may have it in its bundle.
	switch owner, err := v.currentOwner(at, id); {
	case err != nil:
		return nil, fmt.Sprintf("it is not known who has it: %s", err)
	case owner != nil:
		return owner, ""
	case why != "":
		return nil, why
	}
	if broken := Blocking(v.Snapshot, v.Broken, at.Unit); broken != "" {
		return nil, MayBelong(broken)
	}
	if v.Rebuilding(at.Target.Cluster()) {
		return nil, RebuildingText
	}
	return nil, ""
}

// leavesOut says that a place has the newest bundle whole, and one of its Jobs is not there: of a
// gate that the place's wave does not have, or of an event that is over. Nobody would ever have
// that Job.
func (v *View) leavesOut(unitTarget object.UnitTarget, id object.ID) bool {
	unit, released := v.Snapshot.Units.Get(unitTarget.Unit), v.State.Units[unitTarget.Unit]
	if !id.IsJob() || unit == nil || released == nil || released.Targets[unitTarget.Target] == nil {
		return false
	}
	newest, t := unit.On(unitTarget.Target), released.Targets[unitTarget.Target]
	isWhole := newest != nil && t.Wanted == newest.Digest && t.Applied == newest.Digest && !t.Dirty && t.Trouble == ""
	return isWhole && !v.Has(unitTarget, id)
}

// currentOwner is another bundle that is in force in the cluster of a place and has an
// object; nil when there is none.
func (v *View) currentOwner(at object.UnitTarget, id object.ID) (*object.UnitTarget, error) {
	holders, err := v.Store.Holders(at.Target.Cluster(), id)
	if err != nil {
		return nil, err
	}
	for _, e := range holders {
		by := e.Place()
		if by == at {
			continue
		}
		if holds, err := v.holds(e); err != nil || holds {
			return &by, err
		}
	}
	return nil, nil
}
