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
	Stopped     Standing = "stopped"      // too many units failed on its commit: nothing more of it is released
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
	Stopped, Blocked, Drifted, Empty, Approval, Unreachable, Unavailable, Masked, Leftovers, Waiting, Leaving,
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
	Since time.Time `json:"since,omitzero"`
	// FailsAt is when the target fails its wave, if nothing changes.
	FailsAt time.Time `json:"failsAt,omitzero"`
	Reason  string    `json:"reason,omitempty"`
}

// QuarantinedBundle is a bundle that failed, or was taken back by hand.
type QuarantinedBundle struct {
	Bundle object.Digest     `json:"bundle"`
	Commit config.Commit     `json:"commit"`
	Target config.TargetName `json:"target"`
	Why    string            `json:"why"`
	At     time.Time         `json:"at"`
}

// Known holds the facts that a status takes beside the state of units. The zero value has none.
type Known struct {
	Drifts []store.Drift
	// Look reads the fleet's bounds; nil: a unit that the budget of failed units stops is shown
	// as any other that waits.
	Look *rollout.Look
	// Unreached says of the clusters that swell cannot look at why: all facts of them are old.
	Unreached map[string]string
}

// Of returns the status of a unit.
func Of(u *rollout.Unit, known Known) Unit {
	is := Unit{Path: u.Path, Commit: u.Rollout.Commit, Commits: []config.Commit{}, Targets: []Target{}, Drift: driftOf(u, known.Drifts), Rollout: Rollout{ID: u.Rollout.ID,
		Name: u.Rollout.Spec.Name, Commit: u.Rollout.Commit, Status: u.Rollout.Status, StartedAt: u.Rollout.StartedAt, FinishedAt: u.Rollout.FinishedAt}}
	if u.Rollout.Status == rollout.Progressing && u.Rollout.Wave < len(u.Rollout.Spec.Waves) {
		is.Wave = u.Rollout.Spec.Waves[u.Rollout.Wave].Name
	}
	stopped := known.Look.Stopped(u)
	is.Status = ofRollout(u, stopped)
	count := map[config.Commit]int{}
	for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
		t := targetOf(u, name, is.Drift)
		t.markStale(known.Unreached)
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
	for _, digest := range u.InQuarantine() {
		q := u.Quarantine[digest]
		is.Quarantine = append(is.Quarantine, QuarantinedBundle{digest, q.Commit, q.Target, q.Why(), q.At})
	}
	is.Reason = is.reason(u, stopped)
	return is
}

// ofRollout is the standing of the unit as a whole; stopped is [rollout.Look.Stopped].
func ofRollout(u *rollout.Unit, stopped string) Standing {
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
	if stopped != "" {
		is = worse(is, Stopped)
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
		AppliedAt: t.AppliedAt, Since: t.Since, FailsAt: u.FailsAt(name), Reason: cmp.Or(t.Masked, t.Reason, DriftText(drift, name))}
	if t.Wave >= 0 && t.Wave < len(u.Rollout.Spec.Waves) {
		is.Wave = u.Rollout.Spec.Waves[t.Wave].Name
	}
	is.Status = targetStanding(u, t, name, drift)
	if is.Status == Leftovers && !strings.Contains(is.Reason, t.Left) { // a dip is no reason for it
		is.Reason = strings.TrimSuffix(t.Left+"; "+is.Reason, "; ")
	}
	return is
}

// markStale calls no target healthy whose cluster cannot be looked at.
func (t *Target) markStale(unreached map[string]string) {
	cluster := t.Target.Cluster()
	if why, ok := unreached[cluster]; ok && t.Status == Healthy {
		t.Status, t.Reason = Unreachable, fmt.Sprintf("cluster %s: %s", cluster, why)
	}
}

func targetStanding(u *rollout.Unit, t *rollout.Target, name config.TargetName, drift []Drift) Standing {
	on := func(d Drift) bool { return d.Target == name }
	switch {
	case t.Masked != "" && (t.Applied != t.Wanted || t.Dirty || t.Leftovers || t.Health != rollout.HealthGood):
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
	case u.Dips(name) && t.Left == "":
		return Healthy
	case u.Dips(name):
		return Leftovers
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
func (s *Unit) reason(u *rollout.Unit, stopped string) string {
	var parts []string
	for _, part := range []string{u.Blocked, u.Rollout.Reason, stopped, u.Waiting, DriftText(s.Drift, "")} {
		if part != "" && !slices.ContainsFunc(parts, func(known string) bool { return strings.Contains(known, part) }) {
			parts = append(parts, part)
		}
	}
	isCause := func(t Target) bool { return ofTarget(t.Status) == s.Status && t.Reason != "" }
	if i := slices.IndexFunc(s.Targets, isCause); i >= 0 && (len(parts) == 0 || s.Status == Leftovers) { // no soak is the reason for these
		parts = slices.Insert(parts, 0, fmt.Sprintf("target %s: %s", s.Targets[i].Target, s.Targets[i].Reason))
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
