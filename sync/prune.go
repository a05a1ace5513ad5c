// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// neverDeleted are kinds whose deletion takes other people's objects or data
// along. swell lets go of them and leaves the deleting to a person.
var neverDeleted = map[string]bool{
	"Namespace": true, "PersistentVolume": true, "PersistentVolumeClaim": true,
	"CustomResourceDefinition.apiextensions.k8s.io": true,
}

// prune deletes the objects of the job's inventory that its unit does not want
// any more. kept says, in one line, what is left of them and why; empty when
// nothing is.
func (d *Daemon) prune(ctx context.Context, conn *apply.Cluster, j *job, wanted map[render.ObjectID]bool) (results []apply.Result, kept string) {
	var doomed []store.Entry
	var left []string
	d.wants.RLock() // no other commit comes until it is known what this job deletes
	for _, id := range slices.SortedFunc(maps.Keys(j.inventory), render.CompareApplyOrder) {
		if wanted[id] {
			continue
		}
		entry := j.inventory[id]
		switch owner, why := d.spared(j, id); {
		case owner != nil && d.has(*owner, id):
			j.forgotten = append(j.forgotten, entry)
			j.givenUp = append(j.givenUp, handover{id, *owner})
		case owner != nil:
			left = append(left, fmt.Sprintf("%s stays until unit %s has it", id, owner.Unit))
		case why == protected:
			j.forgotten = append(j.forgotten, entry)
		case why != "":
			left = append(left, fmt.Sprintf("%s stays: %s", id, why))
		default:
			doomed = append(doomed, entry)
		}
	}
	doomed, taken := d.beside.doom(j, doomed)
	d.wants.RUnlock()
	for _, entry := range taken {
		left = append(left, fmt.Sprintf("%s stays: another unit is writing it", entry.ID))
	}
	results = j.pruneAs(ctx, conn, doomed)
	j.take(results)
	for _, res := range results {
		switch {
		case res.Err != nil:
			left = append(left, res.Err.Error())
		case !res.Forget:
			left = append(left, fmt.Sprintf("%s: %s", res.ID, res.Reason))
		}
	}
	return results, firstOf(left)
}

// firstOf is the first line, and how many more there are.
func firstOf(lines []string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more)", lines[0], len(lines)-1)
}

const protected = "swell deletes nothing of this kind"

// spared says why an object must not be deleted although the job's bundle does
// not hold it: the other bundle that wants it, or a reason; neither when it may
// be deleted. Not to know is a reason: an object may be on its way to a unit
// that has a problem at the moment.
func (d *Daemon) spared(j *job, id render.ObjectID) (owner *render.Placed, why string) {
	if d.snapshot == nil || d.snapshot.Held {
		return nil, "it is not known what the commit wants"
	}
	for _, by := range d.Compiler.Wants(j.cluster, id) {
		if by.Unit != j.Unit || by.Target != j.Target {
			return &by, ""
		}
		// The unit is being put back, but its newest commit wants the object,
		// which may be older than that commit: it can have come from elsewhere.
		why = "the newest commit wants it"
	}
	if why != "" {
		return nil, why
	}
	if broken := d.brokenNear(j.Unit); broken != "" {
		return nil, fmt.Sprintf("it may belong to %s, which has a problem", broken)
	}
	kind := id.Kind
	if id.Group != "" {
		kind += "." + id.Group
	}
	if neverDeleted[kind] {
		return nil, protected
	}
	return nil, ""
}

// has says whether a bundle that wants an object was applied with it. Until
// then somebody else must keep knowing the object, or it would be nobody's if
// the bundle never comes.
func (d *Daemon) has(by render.Placed, id render.ObjectID) bool {
	inventory, err := d.Store.Inventory(by.Unit, by.Target)
	return err == nil && inventory[id].UID != ""
}

// handOver makes the units that wanted the objects which the job's unit gave up
// send them once more, where the last that was written there is not theirs.
func (d *Daemon) handOver(j *job, now time.Time) ([]rollout.Transition, error) {
	var transitions []rollout.Transition
	for _, h := range j.givenUp {
		inventory, err := d.Store.Inventory(h.to.Unit, h.to.Target)
		if err != nil {
			return nil, err
		}
		if entry, ok := inventory[h.id]; !ok || entry.Digest != "" || entry.UID == "" {
			continue // not written there yet, or written last
		}
		transitions = append(transitions, d.state.Record(rollout.Outcome{
			Action: rollout.Action{Kind: rollout.Sweep, Unit: h.to.Unit, Target: h.to.Target},
			Result: rollout.Drifted,
			Reason: fmt.Sprintf("%s: was written by unit %s, which gave it up", h.id, j.Unit),
		}, now)...)
	}
	return transitions, nil
}

// brokenNear names a unit with a problem that an object of the given unit may
// have moved to: one of the same tenant, or any when the tenant of either is
// not known.
func (d *Daemon) brokenNear(path config.UnitPath) config.UnitPath {
	unit := d.snapshot.Units.Get(path)
	for _, other := range d.broken {
		if unit == nil || unit.Tenant == "" || other.Tenant == "" || other.Tenant == unit.Tenant {
			return other.Path
		}
	}
	return ""
}

// brokenUnits are the units of a snapshot that have a problem, by path.
func brokenUnits(s *render.Snapshot) []*render.Unit {
	var broken []*render.Unit
	for _, unit := range s.Units.All() {
		if len(unit.Problems) > 0 {
			broken = append(broken, unit)
		}
	}
	slices.SortFunc(broken, func(a, b *render.Unit) int { return cmp.Compare(a.Path, b.Path) })
	return broken
}
