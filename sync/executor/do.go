// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Inventory is what all units have, or may have, in a cluster.
type Inventory func(cluster string) ([]store.Entry, error)

// Do carries the job out. A job whose ctx ends stops where it is; what is known by then
// is in it.
func (j *Job) Do(ctx context.Context, conn *apply.Cluster, inventory Inventory) {
	if j.Applies() {
		if err := j.Work.TryOpen(ctx); ctx.Err() != nil {
			return
		} else if err != nil {
			j.Ended(rollout.Unavailable, err.Error())
			return
		}
	}
	switch j.Kind {
	case rollout.Apply:
		if !j.checkEvent(ctx, conn) {
			return
		}
		results := conn.As(j.Account).Apply(ctx, j.Work)
		j.Note(results)
		j.notes = notesOf(results)
		if text := j.movedText(); text != "" {
			j.notes = append(j.notes, note{"moved", text})
		}
		j.judge(ctx, results, rollout.Applied)
		if text := j.skippedText(); text != "" && j.Outcome.Result == rollout.Applied && j.Why != rollout.WhyDrift {
			j.notes = append(j.notes, note{"skipped", text})
		}
	case rollout.Prove:
		results := conn.As(j.Account).Apply(ctx, j.Work)
		j.Note(results)
		j.judge(ctx, results, rollout.Healthy)
	case rollout.Check:
		j.check(ctx, conn, inventory)
	case rollout.Compare:
		j.compare(ctx, conn)
	case rollout.Remove:
		results, left := j.prune(ctx, conn, inventory)
		j.judge(ctx, results, rollout.Removed)
		if j.Outcome.Result == rollout.Removed && left != "" {
			j.Ended(rollout.Deferred, left)
		}
	}
}

// Note records the results of objects, for the inventory.
func (j *Job) Note(results []apply.Result) {
	if j.Objects == nil {
		j.Objects = map[apply.Action]int{}
	}
	for _, res := range results {
		if res.Action != "" {
			j.Objects[res.Action]++
		}
		res.Entry.Unit, res.Entry.Target = j.Unit, j.Target
		if res.Forget {
			j.Forgotten = append(j.Forgotten, res.Entry)
			if res.Action == apply.Deleted {
				j.Deleted = append(j.Deleted, res.Entry)
			} else {
				j.Orphaned = append(j.Orphaned, fmt.Sprintf("%s: %s", res.ID, res.Reason))
			}
		} else if res.Entry.UID != "" && (j.Applies() || res.Entry != j.Inventory[res.ID]) {
			// what is only looked at may have been written by another unit meanwhile
			j.Confirmed = append(j.Confirmed, res.Entry)
		}
	}
}

// check looks at the health of what was applied, and prunes what an earlier
// bundle left once the new objects are healthy.
func (j *Job) check(ctx context.Context, conn *apply.Cluster, inventory Inventory) {
	checked, err := conn.As(j.Account).Check(ctx, j.Work)
	found := checked.Health
	if text := document.SomeTexts(checked.Freed, 1); text != "" {
		j.notes = append(j.notes, note{"deleted", text})
	}
	if ctx.Err() == nil {
		j.Drifts = j.applied(checked.Drifts)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && found.State != health.Failed: // health that cannot be read is not ill health
		j.Lost = lost(err)
		j.Ended(rollout.Unavailable, textOf(err))
		if j.classify(err) == rollout.Unreachable {
			j.Outcome.Result = rollout.Unreachable
		}
		return
	case found.State == health.Failed:
		j.Ended(rollout.Failed, found.Reason)
		return
	case found.State != health.Healthy:
		j.Ended(rollout.Unhealthy, found.Reason)
		return
	}
	if j.Ends != "" {
		j.Ended(rollout.Unhealthy, j.Ends)
		return
	}
	j.Ended(rollout.Healthy, j.movedText())
	j.Outcome.Runs = string(approval.WorkOf(approval.Remaining(j.Bundle)))
	if !j.Prune {
		return
	}
	results, left := j.prune(ctx, conn, inventory)
	if ctx.Err() == nil {
		j.Outcome.Pruned, j.Outcome.Left, j.Outcome.Reason = left == "", left, strings.Trim(left+"; "+j.Outcome.Reason, "; ")
		j.Outcome.Denied = slices.ContainsFunc(results, func(r apply.Result) bool {
			return errors.Is(r.Err, apply.ErrRefused) || errors.Is(r.Err, apply.ErrRights)
		})
	}
}

// applied are the drifts from what was applied: an object that is not there may
// never have been.
func (j *Job) applied(drifts []drift.Finding) []drift.Finding {
	for i := range drifts {
		drifts[i].Entry = j.Inventory[drifts[i].Entry.ID]
	}
	return slices.DeleteFunc(drifts, func(f drift.Finding) bool { return !apply.Judged(f.Entry) })
}

// checksAtOnce is how many held deletions a job looks at: somebody may have
// deleted the object meanwhile, or said that it stays.
const checksAtOnce = 100

// prune deletes what the job may delete, and looks at what it may not. left
// says, in one line, what is left of both and why; empty when nothing is.
func (j *Job) prune(ctx context.Context, conn *apply.Cluster, inventory Inventory) (results []apply.Result, left string) {
	results, lines := j.delete(ctx, conn, inventory)
	watched := j.Held[:min(len(j.Held), checksAtOnce)]
	looked := j.asWriters(conn, slices.Concat(j.Kept, watched), func(c *apply.Cluster, entries []store.Entry) []apply.Result { return c.CheckPrune(ctx, entries) })
	waiting := len(j.Held)
	for _, res := range looked[len(j.Kept):] {
		if res.Forget {
			waiting--
		}
	}
	var later []string
	lines = append(lines, j.Left...)
	if waiting > 0 && j.Waits != "" {
		lines = slices.Insert(lines, 0, j.Waits)
	}
	results = append(results, looked...)
	j.Note(results)
	for _, h := range j.Moved {
		j.Forgotten = append(j.Forgotten, h.Entry)
	}
	j.Released = j.Moved
	for _, res := range results {
		switch {
		case res.Err != nil: // what the others wait for comes first
			lines = slices.Insert(lines, 0, textOf(res.Err))
		case res.After:
			later = append(later, fmt.Sprintf("%s: %s", res.ID, res.Reason))
		case res.Changed:
			j.Changed = append(j.Changed, res.Entry)
			lines = append(lines, fmt.Sprintf("%s: %s", res.ID, res.Reason))
		case !res.Forget && res.Reason != "":
			lines = append(lines, fmt.Sprintf("%s: %s", res.ID, res.Reason))
		}
	}
	return results, document.SomeTexts(append(lines, later...), 1)
}
