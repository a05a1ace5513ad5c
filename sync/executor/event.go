// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Entries are what a unit has on a target.
type Entries = map[object.ID]store.Entry

// EventOf returns the event that a bundle is to the unit on a target by the state and the
// unit's inventory there: what was found after the state was lost was there before. It is to
// be held against the cluster, see [LookFirst], where the bundle's hooks differ by it and
// swell is not known to have written one of its [Landmarks], or another workload of the unit.
func EventOf(state *rollout.State, unitTarget object.UnitTarget, b *object.Bundle, inventory Entries) (event object.Event, look bool) {
	event, isProven := state.EventOf(unitTarget, b.Digest)
	if Recovered(inventory) {
		return object.Upgrade, false
	}
	if isProven || !b.DiffersByEvent() {
		return event, false
	}
	marks := Landmarks(b)
	isWritten := func(o *object.Object) bool { return inventory[o.ID].UID != "" }
	look = len(marks) > 0 && !slices.ContainsFunc(marks, isWritten)
	for id, e := range inventory {
		look = look && (e.UID == "" || id.IsJob() || !approval.IsWorkload(id)) // a Job may be a hook
	}
	return event, look
}

// Recovered says whether objects were found after the state was lost.
func Recovered(inventory Entries) bool {
	for _, e := range inventory {
		if e.Found {
			return true
		}
	}
	return false
}

// LookFirst returns the event that the bundle is by the objects in the cluster, and why.
// event is the one that the state knows.
func LookFirst(ctx context.Context, conn *apply.Cluster, b *object.Bundle, inventory Entries, event object.Event) (
	actual object.Event, why string, err error,
) {
	intended := map[object.ID]bool{}
	for id := range inventory {
		intended[id] = event == object.Install
	}
	found, err := conn.Existing(ctx, Landmarks(b), intended)
	if err != nil {
		return event, "", err
	}
	if found == "" {
		return object.Install, "no object of the unit is there", nil
	}
	return object.Upgrade, found, nil
}

// Landmarks are the objects of a bundle that say whether its unit is on the target: its
// workloads, or, where it has none, all that are no hooks, Namespaces or definitions.
func Landmarks(b *object.Bundle) []*object.Object {
	others := slices.DeleteFunc(slices.Clone(b.Objects), func(o *object.Object) bool { return o.Hook() != "" || o.ID.IsFoundation() })
	workloads := slices.DeleteFunc(slices.Clone(others), func(o *object.Object) bool { return !approval.IsWorkload(o.ID) })
	if len(workloads) > 0 {
		return workloads
	}
	return others
}

// checkEvent looks whether the bundle is the event that the state knows. When it is not,
// the job ends: the event has to be stored before anything is written.
func (j *Job) checkEvent(ctx context.Context, conn *apply.Cluster) (goOn bool) {
	if !j.Look {
		return true
	}
	event, why, err := LookFirst(ctx, conn.As(j.Account), j.Bundle, j.Inventory, j.Event)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		j.Lost = lost(err)
		j.Ended(j.classify(err), textOf(err))
	case event != j.Event:
		j.Ended(rollout.Waiting, fmt.Sprintf("its hooks are those of an %s: %s", event, why))
		j.Outcome.Step, j.Outcome.Event = "hooks", event
	default:
		return true
	}
	return false
}

// skippedText names the hooks of the bundle that do not run; empty when all do.
func (j *Job) skippedText() string {
	var lines []string
	for _, o := range j.Bundle.Objects {
		if o.Skips(j.Event) {
			lines = append(lines, fmt.Sprintf("%s does not run: %s", o.ID, SkippedText(j.Event)))
		}
	}
	return document.SomeTexts(lines, 1)
}

// SkippedText says why a hook does not run for an event.
func SkippedText(event object.Event) string {
	if event == object.Install {
		return "it is a hook of upgrades, and this is an install"
	}
	return "it is a hook of installs, and this is an upgrade"
}
