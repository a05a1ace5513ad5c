// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
)

// Record is what one pass did, and why.
type Record struct {
	At   time.Time
	Took time.Duration
	// Commit is the newest one, also where nothing is taken from it; empty before the first.
	Commit    config.Commit
	Monorepo  string // its name; empty before the first good commit
	NewCommit bool
	// Since is the commit that was taken before a new one, also by an earlier process; empty: none.
	Since    config.Commit
	Fetched  bool // the branch was looked at
	Rendered int  // units that were rendered
	// Problems of a new commit.
	Problems document.Problems
	// Refused says why nothing is taken from a new commit; empty: it is.
	Refused string
	// Broken counts the units of a new commit that have problems, and had none in the commit
	// before. Of the first commit of a process it is 0.
	Broken int
	// Notes on the fleet of a new commit: facts that are stale, or of another version.
	Notes document.Problems
	// Errors of Git and of clusters, in one line each.
	Errors []error
	// Actions with what became of each.
	Actions []rollout.Outcome
	// Objects by what was done to them.
	Objects map[apply.Action]int
	// Drifts that were found, corrected or not.
	Drifts []drift.Finding
	// Swept names the clusters that were swept.
	Swept       []string
	Transitions []rollout.Transition
	// Next is when there is something to do again, if nothing is told before;
	// zero is never.
	Next time.Time
	// Err is set when the store could not be written. Nothing was done after.
	Err error
	// tried is what was tried again in this pass: how it went before does not count any more.
	tried []string
}

// lasting is an error of something that is tried until it goes well, and about names that thing.
type lasting struct {
	about string
	error
}

func (l lasting) Unwrap() error { return l.error }

func (r *Record) fail(err error) { r.Errors = append(r.Errors, err) }

// went notes how something went that is tried again until it goes well.
func (r *Record) went(about string, err error) {
	r.tried = append(r.tried, about)
	if err != nil {
		r.fail(lasting{about, err})
	}
}

func (r *Record) count(j *executor.Job) {
	for action, n := range j.Objects {
		if r.Objects == nil {
			r.Objects = map[apply.Action]int{}
		}
		r.Objects[action] += n
	}
}

// add takes in the record of a later pass. Of what was tried again there, only the last
// try counts.
func (r *Record) add(next Record) {
	if r.At.IsZero() {
		r.At = next.At
	}
	r.Took = next.At.Add(next.Took).Sub(r.At)
	r.Commit, r.Monorepo, r.Next, r.Err = next.Commit, next.Monorepo, next.Next, next.Err
	if next.NewCommit {
		r.Since, r.Refused, r.Broken = next.Since, next.Refused, next.Broken
	}
	r.NewCommit = r.NewCommit || next.NewCommit
	r.Fetched = r.Fetched || next.Fetched
	r.Rendered += next.Rendered
	r.Problems = append(r.Problems, next.Problems...)
	r.Notes = append(r.Notes, next.Notes...)
	r.Errors = append(slices.DeleteFunc(r.Errors, next.triedAgain), next.Errors...)
	r.Actions = append(r.Actions, next.Actions...)
	r.Drifts = append(r.Drifts, next.Drifts...)
	r.Swept = append(r.Swept, next.Swept...)
	r.Transitions = append(r.Transitions, next.Transitions...)
	for action, n := range next.Objects {
		if r.Objects == nil {
			r.Objects = map[apply.Action]int{}
		}
		r.Objects[action] += n
	}
}

// triedAgain says whether an earlier error is of something that this pass tried again.
func (r *Record) triedAgain(err error) bool {
	var l lasting
	return errors.As(err, &l) && slices.Contains(r.tried, l.about)
}

// alarming are the kinds of transitions that somebody may want to look at.
var alarming = map[string]bool{"failed": true, "unhealthy": true, "degraded": true, "not deleted": true,
	"unreachable": true, "drifted": true, "rolling back": true,
	"rolled back": true, "held": true, "blocked": true, "waiting": true, "rebuilding": true, "older": true, "unknown": true, "reported": true, "fight": true, "overwritten": true, "warning": true}

// log writes a line for each thing that changed, and one for the pass where it
// did something. A pass that only looked has a line for who debugs.
func (r *Record) log(log *slog.Logger) {
	for _, p := range r.Problems {
		log.Warn("problem", "commit", r.Commit.Short(), "unit", p.Unit, "code", p.Code, "at", p.Position.String(), "err", p.Text())
	}
	for _, n := range r.Notes {
		log.Info("note", "commit", r.Commit.Short(), "at", n.Position.String(), "text", n.Text())
	}
	for _, err := range r.Errors {
		log.Error("pass", "commit", r.Commit.Short(), "err", err)
	}
	for _, t := range r.Transitions {
		level := slog.LevelInfo
		if alarming[t.Kind] {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, t.Kind, "commit", t.Commit.Short(), "unit", t.Unit, "target", t.Target, "wave", t.Wave, "text", t.Text)
	}
	if r.Err != nil && !errors.Is(r.Err, context.Canceled) {
		log.Error("state", "err", r.Err)
	}
	level := slog.LevelInfo
	switch {
	case r.NewCommit || len(r.Actions) > 0 || len(r.Swept) > 0:
	case r.Fetched:
		level = slog.LevelDebug // it looked, and found nothing to do
	default:
		return
	}
	log.Log(context.Background(), level, "pass", "commit", r.Commit.Short(), "new", r.NewCommit, "rendered", r.Rendered, "actions", len(r.Actions),
		"created", r.Objects[apply.Created], "configured", r.Objects[apply.Configured], "deleted", r.Objects[apply.Deleted],
		"swept", len(r.Swept), "drifts", len(r.Drifts), "took", r.Took.Round(time.Millisecond))
}
