// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package status describes units and their targets, for people and programs: one
// word, the worst that is true, and the reason.
package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// A Standing is one word for how a unit, or a unit on a target, is. Of several
// that are true it is the worst.
type Standing string

const (
	Held        Standing = "held"         // a wave failed, and nothing goes on by itself
	RollingBack Standing = "rolling back" // a wave failed, and the earlier bundles are being put back
	RolledBack  Standing = "rolled back"  // they are back: the newest commit is not what runs
	Failed      Standing = "failed"       // a target was refused, or is not healthy
	Degraded    Standing = "degraded"     // a target that was released is ill, and has been for longer than its wave's timeout
	Fight       Standing = "fight"        // somebody else keeps changing an object back
	Quarantined Standing = "quarantined"  // the newest commit brings a bundle that failed before
	Blocked     Standing = "blocked"      // the newest commit is not released
	Drifted     Standing = "drifted"      // live objects differ from what was applied
	Empty       Standing = "empty"        // it renders to nothing where it has objects, which stay
	Approval    Standing = "approval"     // deletions wait for approval
	Unreachable Standing = "unreachable"  // of a target nothing is known at the moment
	Unavailable Standing = "unavailable"  // a target is in trouble that is not the unit's
	Masked      Standing = "masked"       // a target misses it, and nothing may be written there
	Leftovers   Standing = "leftovers"    // what a commit dropped is still there
	Waiting     Standing = "waiting"      // a target could not take it yet
	Leaving     Standing = "leaving"      // the unit is being removed from the target
	Pending     Standing = "pending"      // the target's turn has not come
	Progressing Standing = "progressing"  // on its way
	Healthy     Standing = "healthy"      // of a target: applied and healthy
	Done        Standing = "done"         // of a unit: everything is as the newest commit wants it
)

// byBadness are all standings, the worst first.
var byBadness = []Standing{Held, RollingBack, RolledBack, Failed, Degraded, Fight, Quarantined,
	Blocked, Drifted, Empty, Approval, Unreachable, Unavailable, Masked, Leftovers, Waiting, Leaving,
	Pending, Progressing, Healthy, Done}

// worse is the worse of two standings.
func worse(a, b Standing) Standing {
	if slices.Index(byBadness, a) <= slices.Index(byBadness, b) {
		return a
	}
	return b
}

// Unit is a unit as verbs show it to people and programs.
type Unit struct {
	Path   config.UnitPath `json:"path"`
	Status Standing        `json:"status"`
	// Commit is that of the last rollout. Commits are those that the targets
	// hold, the most common first.
	Commit  config.Commit   `json:"commit"`
	Commits []config.Commit `json:"commits"`
	Wave    string          `json:"wave,omitempty"` // under way
	// Ready counts the targets that are healthy, as wanted and not drifted.
	Ready      int                 `json:"ready"`
	Reason     string              `json:"reason,omitempty"`
	Rollout    Rollout             `json:"rollout"`
	Targets    []Target            `json:"targets"` // sorted by name
	Quarantine []QuarantinedBundle `json:"quarantine,omitempty"`
	Drift      []Drift             `json:"drift,omitempty"`
}

// Rollout is the last rollout of a unit.
type Rollout struct {
	ID         int            `json:"id"`
	Name       string         `json:"name,omitempty"`
	Commit     config.Commit  `json:"commit"`
	Status     rollout.Status `json:"status"`
	StartedAt  time.Time      `json:"startedAt,omitzero"`
	FinishedAt time.Time      `json:"finishedAt,omitzero"`
}

// Target is a unit on one target.
type Target struct {
	Target config.TargetName `json:"target"`
	Status Standing          `json:"status"`
	Wave   string            `json:"wave,omitempty"`
	// Commit is that of the bundle that was applied.
	Commit    config.Commit  `json:"commit,omitempty"`
	Health    rollout.Health `json:"health,omitempty"`
	Applied   object.Digest  `json:"applied,omitempty"`
	Wanted    object.Digest  `json:"wanted,omitempty"`
	AppliedAt time.Time      `json:"appliedAt,omitzero"`
	// Since is when Health became what it is.
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// QuarantinedBundle is a bundle that failed, or was taken back by hand.
type QuarantinedBundle struct {
	Bundle object.Digest     `json:"bundle"`
	Commit config.Commit     `json:"commit"`
	Target config.TargetName `json:"target"`
	Why    string            `json:"why"`
	At     time.Time         `json:"at"`
}

// Of is the status of a unit, given all known drift.
func Of(u *rollout.Unit, drifts []store.Drift) Unit {
	is := Unit{Path: u.Path, Commit: u.Rollout.Commit, Commits: []config.Commit{}, Targets: []Target{}, Drift: driftOf(u, drifts), Rollout: Rollout{ID: u.Rollout.ID,
		Name: u.Rollout.Spec.Name, Commit: u.Rollout.Commit, Status: u.Rollout.Status, StartedAt: u.Rollout.StartedAt, FinishedAt: u.Rollout.FinishedAt}}
	if u.Rollout.Status == rollout.Progressing && u.Rollout.Wave < len(u.Rollout.Spec.Waves) {
		is.Wave = u.Rollout.Spec.Waves[u.Rollout.Wave].Name
	}
	is.Status = ofRollout(u)
	count := map[config.Commit]int{}
	for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
		t := targetOf(u, name, is.Drift)
		is.Targets = append(is.Targets, t)
		if is.Status = worse(is.Status, ofTarget(t.Status)); t.Status == Healthy {
			is.Ready++
		}
		if t.Commit != "" {
			count[t.Commit]++
		}
	}
	is.Commits = append(is.Commits, slices.SortedFunc(maps.Keys(count), func(a, b config.Commit) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})...)
	for _, digest := range slices.Sorted(maps.Keys(u.Quarantine)) {
		q := u.Quarantine[digest]
		is.Quarantine = append(is.Quarantine, QuarantinedBundle{digest, q.Commit, q.Target, q.Why(), q.At})
	}
	is.Reason = is.reason(u)
	return is
}

// ofRollout is the standing of the unit as a whole.
func ofRollout(u *rollout.Unit) Standing {
	is := Done
	switch u.Rollout.Status {
	case rollout.Progressing:
		is = Progressing
	case rollout.RollingBack:
		is = RollingBack
	case rollout.RolledBack:
		is = RolledBack
	case rollout.Held:
		is = Held
	}
	switch {
	case u.BlockedBy == rollout.ObstacleQuarantine:
		is = worse(is, Quarantined)
	case u.BlockedBy == rollout.ObstacleEmpty:
		is = worse(is, Empty)
	case u.Blocked != "":
		is = worse(is, Blocked)
	}
	if u.Waiting != "" {
		is = worse(is, Approval)
	}
	return is
}

// ofTarget is what the standing of a target makes of its unit.
func ofTarget(is Standing) Standing {
	switch is {
	case Healthy:
		return Done
	case Pending, Leaving:
		return Progressing
	}
	return is
}

func targetOf(u *rollout.Unit, name config.TargetName, drift []Drift) Target {
	t := u.Targets[name]
	is := Target{Target: name, Commit: u.Commits[t.Applied], Health: t.Health, Applied: t.Applied, Wanted: t.Wanted,
		AppliedAt: t.AppliedAt, Since: t.Since, Reason: cmp.Or(t.Masked, t.Reason, DriftText(drift, name))}
	if t.Wave >= 0 && t.Wave < len(u.Rollout.Spec.Waves) {
		is.Wave = u.Rollout.Spec.Waves[t.Wave].Name
	}
	is.Status = targetStanding(u, t, name, drift)
	return is
}

func targetStanding(u *rollout.Unit, t *rollout.Target, name config.TargetName, drift []Drift) Standing {
	on := func(d Drift) bool { return d.Target == name }
	switch {
	case t.Masked != "" && (t.Applied != t.Wanted || t.Dirty || t.Health != rollout.HealthGood):
		return Masked
	case u.Ails(name):
		return Degraded
	case t.Trouble == rollout.TroubleFailed || t.Health == rollout.HealthFailed:
		return Failed
	case t.Trouble == rollout.TroubleUnreachable:
		return Unreachable
	case t.Trouble == rollout.TroubleUnavailable:
		return Unavailable
	case t.Trouble != rollout.NoTrouble:
		return Waiting
	case slices.ContainsFunc(drift, func(d Drift) bool { return on(d) && d.Mode == "fight" }):
		return Fight
	case t.Drifted || slices.ContainsFunc(drift, on):
		return Drifted
	case t.Wanted == "" && t.Applied != "":
		return Leaving
	case t.Wave < 0:
		return Empty // or no wave picks it, which is why the unit is blocked
	case u.Dips(name):
		return Healthy
	case t.Dirty || t.Applied == t.Wanted && t.Health != rollout.HealthGood:
		return Progressing
	case t.Applied != t.Wanted:
		return Pending
	case t.Left != "":
		return Leftovers
	}
	return Healthy
}

// reason is why the unit is not where the newest commit wants it.
func (s *Unit) reason(u *rollout.Unit) string {
	var parts []string
	for _, part := range []string{u.Blocked, u.Rollout.Reason, u.Waiting, DriftText(s.Drift, "")} {
		if part != "" && !slices.ContainsFunc(parts, func(known string) bool { return strings.Contains(known, part) }) {
			parts = append(parts, part)
		}
	}
	if i := slices.IndexFunc(s.Targets, func(t Target) bool { return ofTarget(t.Status) == s.Status && t.Reason != "" }); len(parts) == 0 && i >= 0 {
		parts = []string{fmt.Sprintf("target %s: %s", s.Targets[i].Target, s.Targets[i].Reason)}
	}
	if len(parts) == 0 && s.Status == Empty {
		parts = []string{"it renders to nothing on a target where it has objects: they stay; remove it from the placement to remove them"}
	}
	return strings.Join(parts, "; ")
}

// Progress is how many of the targets are as wanted, like 2/3.
func (s *Unit) Progress() string { return fmt.Sprintf("%d/%d", s.Ready, len(s.Targets)) }

// CommitText are the commits that the targets hold, in short.
func (s *Unit) CommitText() string {
	if len(s.Commits) == 0 {
		return "-"
	}
	text := s.Commits[0].Short()
	if more := len(s.Commits) - 1; more > 0 {
		text += fmt.Sprintf(" +%d", more)
	}
	return text
}
