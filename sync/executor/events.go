// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"slices"
	"time"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// note is something about objects that went well all the same. The kinds:
//
//	adopted  an object of somebody else is the unit's from now on
//	overwritten  fields of others were overwritten
//	left     fields were left to others
//	warning  an object is not quite as it was sent
//	moved    objects of the bundle are left out, for they are another unit's
//	skipped  hooks of the bundle do not run, for it is no event of theirs
//	deleted  objects are gone, or a pod that a StatefulSet waited for
//	orphaned an object stays, and no unit has it any more
//
// They stand in the history as transitions; a text names the first object and
// how many more there are. Of what is orphaned nothing else is kept: each has a
// transition of its own.
type note struct{ kind, text string }

func notesOf(results []apply.Result) []note {
	lines := map[string][]string{}
	for _, r := range results {
		add := func(kind, text string) { lines[kind] = append(lines[kind], r.ID.String()+": "+text) }
		if r.Adopted != "" {
			add("adopted", "was made by "+r.Adopted)
		}
		for _, c := range r.Taken {
			add("overwritten", c.String())
		}
		for _, c := range r.Left {
			add("left", c.String())
		}
		for _, text := range r.Warnings {
			add("warning", text)
		}
		if r.Freed != "" {
			add("deleted", r.Freed)
		}
	}
	var notes []note
	for _, kind := range []string{"adopted", "overwritten", "left", "warning", "deleted"} {
		if text := document.SomeTexts(lines[kind], 1); text != "" {
			notes = append(notes, note{kind, text})
		}
	}
	return notes
}

// Transitions are the job's notes for the history.
func (j *Job) Transitions(now time.Time) []rollout.Transition {
	var transitions []rollout.Transition
	notes := j.notes
	if text := document.SomeTexts(textsOf(j.Deleted), 1); text != "" {
		notes = append(slices.Clone(notes), note{"deleted", text})
	}
	for _, text := range j.Orphaned {
		notes = append(slices.Clip(notes), note{"orphaned", text})
	}
	for _, n := range notes {
		transitions = append(transitions, rollout.Transition{Time: now, Commit: j.Commit, Unit: j.Unit, Target: j.Target, Wave: j.Wave, Kind: n.kind, Text: n.text})
	}
	return transitions
}

func textsOf(entries []store.Entry) []string {
	texts := make([]string, len(entries))
	for i, e := range entries {
		texts[i] = e.ID.String()
	}
	return texts
}
