// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// deletes says whether the job may come to delete something.
func (j *job) deletes() bool { return j.Kind == rollout.Remove || j.Kind == rollout.Check && j.Prune }

// selectPrunable sorts out what of the job's inventory its unit does not want any more:
// what is to go, what another unit has, and what stays, with the reason.
func (d *Daemon) selectPrunable(j *job) {
	wanted, inForce := idsOf(j.bundle), objectsInForce{}
	for _, id := range slices.SortedFunc(maps.Keys(j.inventory), render.CompareApplyOrder) {
		if wanted[id] {
			continue
		}
		entry := j.inventory[id]
		switch owner, why := d.retainReason(j, id, inForce); {
		case owner != nil && d.has(*owner, id):
			j.moved = append(j.moved, transfer{entry, *owner})
		case owner != nil:
			j.left = append(j.left, fmt.Sprintf("%s stays until %s has it", id, placeText(j.Unit, *owner)))
		case why != "":
			j.left = append(j.left, fmt.Sprintf("%s stays: %s", id, why))
		case entry.Keep:
			j.kept = append(j.kept, entry)
		default:
			j.prunable = append(j.prunable, entry)
		}
	}
}

// checksAtOnce is how many held deletions a job looks at: somebody may have
// deleted the object meanwhile, or said that it stays.
const checksAtOnce = 100

// prune deletes what the job may delete, and looks at what it may not. left
// says, in one line, what is left of both and why; empty when nothing is.
func (d *Daemon) prune(ctx context.Context, conn *apply.Cluster, j *job) (results []apply.Result, left string) {
	results, lines := d.delete(ctx, conn, j)
	watched := j.held[:min(len(j.held), checksAtOnce)]
	looked := j.asWriters(conn, slices.Concat(j.kept, watched), func(c *apply.Cluster, entries []store.Entry) []apply.Result { return c.CheckPrune(ctx, entries) })
	waiting := len(j.held)
	for _, res := range looked[len(j.kept):] {
		if res.Forget {
			waiting--
		}
	}
	lines = append(lines, j.left...)
	if waiting > 0 && j.waits != "" {
		lines = slices.Insert(lines, 0, j.waits)
	}
	results = append(results, looked...)
	j.noteResults(results)
	for _, h := range j.moved {
		j.forgotten = append(j.forgotten, h.Entry)
	}
	j.released = j.moved
	for _, res := range results {
		switch {
		case res.Err != nil:
			lines = append(lines, res.Err.Error())
		case res.Changed:
			j.changed = append(j.changed, res.Entry)
			lines = append(lines, fmt.Sprintf("%s: %s", res.ID, res.Reason))
		case !res.Forget && res.Reason != "":
			lines = append(lines, fmt.Sprintf("%s: %s", res.ID, res.Reason))
		}
	}
	return results, firstOf(lines)
}

// firstOf is the first line, and how many more there are.
func firstOf(lines []string) string { return someOf(lines, 1) }

// someOf are the first lines in one, and how many more there are.
func someOf(lines []string, most int) string {
	if len(lines) <= most {
		return strings.Join(lines, "; ")
	}
	return fmt.Sprintf("%s (and %d more)", strings.Join(lines[:most], "; "), len(lines)-most)
}

// retainReason says why an object must not be deleted although the job's bundle does
// not hold it: the other bundle that wants it, or has it, or a reason; neither
// when it may be deleted. Not to know is a reason: an object may be on its way to
// a unit that has a problem at the moment.
func (d *Daemon) retainReason(j *job, id render.ObjectID, inForce objectsInForce) (owner *render.Placed, why string) {
	if d.snapshot == nil || d.wanted.Refused() != "" {
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
	// Of the commit nobody else wants it. But a unit that was put back, or whose
	// wave has not come, may have it in its bundle.
	switch owner, err := d.currentOwner(j, id, inForce); {
	case err != nil:
		return nil, fmt.Sprintf("it is not known who has it: %s", err)
	case owner != nil:
		return owner, ""
	case why != "":
		return nil, why
	}
	if broken := blockingUnit(d.snapshot, d.broken, j.Unit); broken != "" {
		return nil, mayBelong(broken)
	}
	if d.rebuilding(j.cluster) {
		return nil, rebuildingText
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

// transferOwnership makes the units that wanted the objects which the job's unit gave up
// send them once more, where the last that was written there is not theirs. anew
// are their entries of objects that were made anew since they knew of them: should
// they come to delete one, it is to be the one that is there.
func (d *Daemon) transferOwnership(j *job, now time.Time) (transitions []rollout.Transition, anew []store.Entry, err error) {
	for _, h := range j.released {
		inventory, err := d.Store.Inventory(h.to.Unit, h.to.Target)
		if err != nil {
			return nil, nil, err
		}
		if entry, ok := inventory[h.ID]; !ok || entry.Digest != "" || entry.UID == "" {
			continue // not written there yet, or written last
		} else if h.Digest != "" && h.UID != entry.UID {
			entry.UID = h.UID
			anew = append(anew, entry)
		}
		transitions = append(transitions, d.state.Record(rollout.Outcome{
			Action: rollout.Action{Kind: rollout.Sweep, Unit: h.to.Unit, Target: h.to.Target},
			Result: rollout.Drifted,
			Reason: fmt.Sprintf("%s: was written by unit %s, which gave it up", h.ID, j.Unit),
		}, now)...)
	}
	return transitions, anew, nil
}

// blockingUnit names a unit with a problem that an object of the given unit may
// have moved to: one of the same tenant, or any when the tenant of either is
// not known.
func blockingUnit(s *render.Snapshot, broken []*render.Unit, path config.UnitPath) config.UnitPath {
	unit := s.Units.Get(path)
	for _, other := range broken {
		if unit == nil || unit.Tenant == "" || other.Tenant == "" || other.Tenant == unit.Tenant {
			return other.Path
		}
	}
	return ""
}

// mayBelong says why an object stays that a unit with a problem may want.
func mayBelong(broken config.UnitPath) string {
	return fmt.Sprintf("it may belong to %s, which has a problem", broken)
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
