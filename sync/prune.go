// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// deletes says whether the job may come to delete something.
func (j *job) deletes() bool { return j.Kind == rollout.Remove || j.Kind == rollout.Check && j.Prune }

// owners is what is known of owners now.
func (d *Daemon) owners() *ownership.View {
	return &ownership.View{Snapshot: d.snapshot, Refused: d.wanted.Refused() != "", Broken: d.broken, State: d.state, Store: d.Store,
		Wants: d.Compiler.Wants, Bundle: d.bundle, Rebuilding: d.rebuilding}
}

// selectPrunable sorts out what of the job's inventory its unit does not want any more.
func (d *Daemon) selectPrunable(j *job) {
	l := d.owners().Leftovers(j.place(), j.bundle, j.inventory)
	j.prunable, j.kept, j.moved, j.left = l.Prunable, l.Kept, l.Moved, l.Left
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

// transferOwnership makes the units that wanted the objects which the job's unit gave up
// send them once more, where the last that was written there is not theirs. anew
// are their entries of objects that were made anew since they knew of them: should
// they come to delete one, it is to be the one that is there.
func (d *Daemon) transferOwnership(j *job, now time.Time) (transitions []rollout.Transition, anew []store.Entry, err error) {
	for _, h := range j.released {
		inventory, err := d.Store.Inventory(h.To.Unit, h.To.Target)
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
			Action: rollout.Action{Kind: rollout.Sweep, Unit: h.To.Unit, Target: h.To.Target},
			Result: rollout.Drifted,
			Reason: fmt.Sprintf("%s: was written by unit %s, which gave it up", h.ID, j.Unit),
		}, now)...)
	}
	return transitions, anew, nil
}

// sends are the objects of the bundle that the job is about: without those that it
// leaves to other units.
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
		lines = append(lines, fmt.Sprintf("%s moved to %s", h.ID, ownership.PlaceText(j.Unit, h.To)))
	}
	return firstOf(lines)
}
