// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Job is one action of a plan on its way, and what becomes of it. Until it has ended,
// only the executor changes it.
type Job struct {
	rollout.Action
	Cluster   string
	Bundle    *object.Bundle // nil for Remove
	Inventory map[object.ID]store.Entry
	Work      apply.Work     // of an Apply and a Check
	Tenant    rollout.Tenant // whose bundle it is
	Account   string         // that it is done as; empty: swell's own
	Writers   []string       // the accounts that may have written what is there
	// Event is what the bundle is to the unit on the target, of an Apply and a Check: hooks
	// for another event are left out. Look says that an Apply holds it against the cluster
	// first.
	Event object.Event
	Look  bool
	// Foreign are the objects of the bundle that are another unit's by now, with
	// its entries: see [ownership.View.Foreign].
	Foreign []ownership.Transfer
	// Prunable, Kept, Moved and Left are what the inventory holds and the unit does
	// not want any more, see [ownership.Leftovers]. Held may not be deleted before
	// somebody approves it; Waits says what it waits for.
	Prunable, Held, Kept []store.Entry
	Moved                []ownership.Transfer
	Left                 []string
	Waits                string
	// Ends is the work that the bundle ends without approval. Such a target does not
	// become healthy.
	Ends string

	// What became of it:

	// Outcome has no Result until something is known: the job was cut short.
	Outcome   rollout.Outcome
	Objects   map[apply.Action]int // how many, by what was done to them
	Confirmed []store.Entry        // as the server answered
	Forgotten []store.Entry        // gone, or not ours any more
	Deleted   []store.Entry        // those of them that swell deleted
	Orphaned  []string             // those of them that stay in the cluster, with the reason
	Released  []ownership.Transfer // of Moved, once it was done
	Changed   []store.Entry        // that were approved, and are not what they were
	Drifts    []drift.Finding      // that a check came upon
	Lost      bool                 // the cluster did not answer

	// What the caller that collects the job makes of these results:

	Unreplaced int           // how many of Deleted no new object of their sort replaces
	Drifted    []store.Entry // those of Drifts that are to be corrected

	notes []note
}

// Place is the unit and the target of the job.
func (j *Job) Place() object.UnitTarget { return object.UnitTarget{Unit: j.Unit, Target: j.Target} }

// Ended gives the job its outcome.
func (j *Job) Ended(result rollout.Result, reason string) {
	j.Outcome = rollout.Outcome{Action: j.Action, Result: result, Reason: reason}
}

// Deletes says whether the job may come to delete something.
func (j *Job) Deletes() bool { return j.Kind == rollout.Remove || j.Kind == rollout.Check && j.Prune }

// Applies says whether the job sends objects.
func (j *Job) Applies() bool { return j.Kind == rollout.Apply || j.Kind == rollout.Prove }

// Changes says that the job may change something in the cluster.
func (j *Job) Changes() bool { return j.Applies() || j.Deletes() }

// WritesAhead lists the objects that the job may write: those that are new to the
// inventory, and those whose content is not what it says as soon as the job begins. A hook
// that runs for each bundle is one of these also where its text is the same.
func (j *Job) WritesAhead() (intended, suspect []store.Entry) {
	if !j.Applies() || j.Bundle == nil || j.Outcome.Result != "" {
		return nil, nil
	}
	for _, o := range j.Sends() {
		known, ok := j.Inventory[o.ID]
		if !ok {
			intended = append(intended, store.Entry{Unit: j.Unit, Target: j.Target, ID: o.ID, Version: o.Version})
			continue
		}
		if known.Digest != o.Digest || o.IsRun() && known.Ran != o.RunOf(j.Bundle.Digest) {
			suspect = append(suspect, known)
		}
	}
	return intended, suspect
}

// StillHeld is Held without what turned out to be gone, or not ours any more.
func (j *Job) StillHeld() []store.Entry {
	gone := map[object.ID]bool{}
	for _, e := range j.Forgotten {
		gone[e.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(j.Held), func(e store.Entry) bool { return gone[e.ID] })
}

// LeavesOut lists the objects that the unit has and that the bundle does not want, and its
// hooks that did not run to their end and are not to run now. Nobody notices what becomes of
// their content: if a later bundle wants one again, it has to be sent.
func (j *Job) LeavesOut() (entries []store.Entry) {
	if j.Kind != rollout.Apply || j.Bundle == nil || j.Outcome.Result != "" {
		return nil
	}
	wanted := ownership.ObjectsOf(j.Bundle)
	for _, o := range j.Bundle.Objects {
		if o.Skips(j.Event) && j.Inventory[o.ID].Ran == "" {
			delete(wanted, o.ID)
		}
	}
	for id, known := range j.Inventory {
		if !wanted[id] && known.Digest != "" {
			entries = append(entries, known)
		}
	}
	return entries
}

// Sends are the objects of the bundle that the job is about: without those that it
// leaves to other units, and without hooks for another event. The Jobs of gates are only in a
// Prove, which has its one.
func (j *Job) Sends() []*object.Object {
	left := map[object.ID]bool{}
	for _, h := range j.Foreign {
		left[h.ID] = true
	}
	other := func(o *object.Object) bool {
		gate := o.Hook() == object.HookGate
		return left[o.ID] || o.Skips(j.Event) || gate != (j.Kind == rollout.Prove) || gate && o.ID.Name != j.Job
	}
	if !slices.ContainsFunc(j.Bundle.Objects, other) {
		return j.Bundle.Objects
	}
	return slices.DeleteFunc(slices.Clone(j.Bundle.Objects), other)
}

// Claims are the entries by which the job's unit gets back what it leaves out.
func (j *Job) Claims() []store.Entry {
	if j.Kind != rollout.Apply || j.Outcome.Result != "" {
		return nil
	}
	var entries []store.Entry
	for _, h := range j.Foreign {
		e := h.Entry
		e.Unit, e.Target, e.Digest, e.Ran, e.Found = j.Unit, j.Target, "", "", false
		entries = append(entries, e)
	}
	return entries
}

// movedText says what the job leaves out; empty when that is nothing.
func (j *Job) movedText() string {
	var lines []string
	for _, h := range j.Foreign {
		lines = append(lines, fmt.Sprintf("%s moved to %s", h.ID, ownership.PlaceText(j.Unit, h.To)))
	}
	return document.SomeTexts(lines, 1)
}

// LeftBehind counts by sort what the job's unit has and does not want, after the
// job has deleted what it may.
func (j *Job) LeftBehind() map[string]int {
	gone := ownership.ObjectsOf(j.Bundle)
	for _, e := range j.Forgotten {
		gone[e.ID] = true
	}
	left := map[string]int{}
	for id := range j.Inventory {
		if !gone[id] {
			left[string(approval.SortOf(id))]++
		}
	}
	return left
}

// SpareHooks has Jobs stay while something is held: one may be a hook that is to
// run before what is deleted with it.
func (j *Job) SpareHooks() {
	j.Prunable = slices.DeleteFunc(j.Prunable, func(e store.Entry) bool {
		if e.ID.IsJob() {
			j.Left = append(j.Left, fmt.Sprintf("%s stays with what waits for approval: it may be a hook of that", e.ID))
		}
		return e.ID.IsJob()
	})
}
