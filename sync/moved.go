// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// A unit may write a bundle of an earlier commit: it is put back, or has a problem
// or waits for its wave and is corrected. Objects of that bundle may be another
// unit's by then. They are left out: neither written nor looked at, nor deleted.
// The unit keeps an entry without a digest for each, so that it gets the object
// back when the other one gives it up.

// standing is how another unit stands to an object that a unit is about to write.
type standing struct {
	// wants: the newest commit's bundle of it has the object.
	wants bool
	// holds: it applied the object, and a bundle that is in force has it.
	holds bool
	// last: nobody wrote the object since.
	last bool
}

// ownedByOther says whether a unit leaves an object to another one; wants is whether
// the newest commit wants it of the unit itself. Who was not given the object yet
// does not get it so. Where the commit says nothing, or wants it of both, it is
// whose it was last.
func ownedByOther(wants bool, other standing) bool {
	switch {
	case !other.holds:
		return false
	case wants != other.wants:
		return other.wants
	}
	return other.last
}

// excludeForeign finds the objects of the job's bundle that are another unit's by now.
func (d *Daemon) excludeForeign(j *job) error {
	if d.isNewest(j.Action) {
		return nil
	}
	self, inForce := j.place(), objectsInForce{}
	for _, o := range j.bundle.Objects {
		if j.inventory[o.ID].Digest != "" {
			continue // nobody wrote it since
		}
		holders, err := d.Store.Holders(j.cluster, o.ID)
		if err != nil {
			return err
		}
		wants := d.Compiler.Wants(j.cluster, o.ID)
		for _, e := range holders {
			by := e.Place()
			if by == self {
				continue
			}
			holds, err := d.holds(e, inForce)
			if err != nil {
				return err
			}
			if ownedByOther(slices.Contains(wants, self), standing{wants: slices.Contains(wants, by), holds: holds, last: e.Digest != ""}) {
				j.foreign = append(j.foreign, transfer{e, by})
				break
			}
		}
	}
	return nil
}

// isNewest says whether an action is about the bundle that the newest commit wants.
func (d *Daemon) isNewest(a rollout.Action) bool {
	if d.snapshot == nil || d.wanted.Refused() != "" {
		return false
	}
	unit := d.snapshot.Units.Get(a.Unit)
	if unit == nil {
		return false
	}
	on := unit.On(a.Target)
	return on != nil && on.Digest == a.Digest
}

// objectsInForce are the objects of bundles that are in force, as far as they were
// asked for.
type objectsInForce map[render.Digest]map[render.ObjectID]bool

// holds says whether the unit of an entry applied the object, and has it in a
// bundle that is in force. err is set when one of those is not known, and none of
// the others has the object.
func (d *Daemon) holds(e store.Entry, inForce objectsInForce) (yes bool, err error) {
	unit := d.state.Units[e.Unit]
	if e.UID == "" || unit == nil {
		return false, nil
	}
	for _, digest := range unit.InForce(e.Target) {
		has, unknown := d.inBundle(e, digest, inForce)
		if has {
			return true, nil
		}
		err = errors.Join(err, unknown)
	}
	return false, err
}

// inBundle says whether a bundle of an entry's unit on its target has the object.
func (d *Daemon) inBundle(e store.Entry, digest render.Digest, known objectsInForce) (bool, error) {
	if known[digest] == nil {
		bundle, err := d.bundle(rollout.Action{Unit: e.Unit, Target: e.Target, Digest: digest, Commit: d.state.Units[e.Unit].Commits[digest]})
		if err != nil {
			return false, fmt.Errorf("what unit %s has on %s: %w", e.Unit, e.Target, err)
		}
		known[digest] = idsOf(bundle)
	}
	return known[digest][e.ID], nil
}

// idsOf are the objects of a bundle, which may be nil.
func idsOf(b *render.Bundle) map[render.ObjectID]bool {
	ids := map[render.ObjectID]bool{}
	if b != nil {
		for _, o := range b.Objects {
			ids[o.ID] = true
		}
	}
	return ids
}

// currentOwner is another bundle that is in force in the job's cluster and has an object;
// nil when there is none.
func (d *Daemon) currentOwner(j *job, id render.ObjectID, inForce objectsInForce) (*render.Placed, error) {
	holders, err := d.Store.Holders(j.cluster, id)
	if err != nil {
		return nil, err
	}
	for _, e := range holders {
		by := e.Place()
		if by == j.place() {
			continue
		}
		if holds, err := d.holds(e, inForce); err != nil || holds {
			return &by, err
		}
	}
	return nil, nil
}

// sends are the objects of the bundle that the job is about: without those that
// it leaves to other units.
func (j *job) sends() []*render.Object {
	if len(j.foreign) == 0 {
		return j.bundle.Objects
	}
	left := map[render.ObjectID]bool{}
	for _, h := range j.foreign {
		left[h.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(j.bundle.Objects), func(o *render.Object) bool { return left[o.ID] })
}

// claims are the entries by which the job's unit gets back what it leaves out.
func (j *job) claims() []store.Entry {
	if j.Kind != rollout.Apply || j.outcome.Result != "" {
		return nil
	}
	var entries []store.Entry
	for _, h := range j.foreign {
		e := h.Entry
		e.Unit, e.Target, e.Digest, e.Ran, e.Found = j.Unit, j.Target, "", "", false
		entries = append(entries, e)
	}
	return entries
}

// movedText says what the job leaves out; empty when that is nothing.
func (j *job) movedText() string {
	var lines []string
	for _, h := range j.foreign {
		lines = append(lines, fmt.Sprintf("%s moved to %s", h.ID, placeText(j.Unit, h.to)))
	}
	return firstOf(lines)
}

// placeText names a place as seen from a unit.
func placeText(from config.UnitPath, at render.Placed) string {
	if at.Unit == from {
		return "target " + string(at.Target)
	}
	return "unit " + string(at.Unit)
}
