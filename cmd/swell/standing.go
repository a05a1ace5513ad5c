// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// A standing is one word for how a unit, or a unit on a target, is. Of several
// that are true it is the worst.
type standing string

const (
	standingHeld        standing = "held"         // a wave failed, and nothing goes on by itself
	standingRollingBack standing = "rolling back" // a wave failed, and the earlier bundles are being put back
	standingRolledBack  standing = "rolled back"  // they are back: the newest commit is not what runs
	standingFailed      standing = "failed"       // a target was refused, or is not healthy
	standingFight       standing = "fight"        // somebody else keeps changing an object back
	standingQuarantined standing = "quarantined"  // the newest commit brings a bundle that failed before
	standingBlocked     standing = "blocked"      // the newest commit is not released
	standingDrifted     standing = "drifted"      // live objects differ from what was applied
	standingEmpty       standing = "empty"        // it renders to nothing where it has objects, which stay
	standingApproval    standing = "approval"     // deletions wait for approval
	standingUnreachable standing = "unreachable"  // of a target nothing is known at the moment
	standingUnavailable standing = "unavailable"  // a target is in trouble that is not the unit's
	standingWaiting     standing = "waiting"      // a target could not take it yet
	standingLeaving     standing = "leaving"      // the unit is being removed from the target
	standingPending     standing = "pending"      // the target's turn has not come
	standingProgressing standing = "progressing"  // on its way
	standingHealthy     standing = "healthy"      // of a target: applied and healthy
	standingDone        standing = "done"         // of a unit: everything is as the newest commit wants it
)

// byBadness are all standings, the worst first.
var byBadness = []standing{standingHeld, standingRollingBack, standingRolledBack, standingFailed, standingFight, standingQuarantined,
	standingBlocked, standingDrifted, standingEmpty, standingApproval, standingUnreachable, standingUnavailable, standingWaiting, standingLeaving,
	standingPending, standingProgressing, standingHealthy, standingDone}

// worse is the worse of two standings.
func worse(a, b standing) standing {
	if slices.Index(byBadness, a) <= slices.Index(byBadness, b) {
		return a
	}
	return b
}

// unitStatus is a unit as people and programs are told of it.
type unitStatus struct {
	Path   config.UnitPath `json:"path"`
	Status standing        `json:"status"`
	// Commit is that of the last rollout. Commits are those that the targets
	// hold, the most common first.
	Commit  config.Commit   `json:"commit"`
	Commits []config.Commit `json:"commits"`
	Wave    string          `json:"wave,omitempty"` // under way
	// Ready counts the targets that are healthy, as wanted and not drifted.
	Ready      int                 `json:"ready"`
	Reason     string              `json:"reason,omitempty"`
	Rollout    rolloutStatus       `json:"rollout"`
	Targets    []targetStatus      `json:"targets"` // sorted by name
	Quarantine []quarantinedStatus `json:"quarantine,omitempty"`
	Drift      []objectDrift       `json:"drift,omitempty"`
}

// rolloutStatus is the last rollout of a unit.
type rolloutStatus struct {
	ID         int            `json:"id"`
	Name       string         `json:"name,omitempty"`
	Commit     config.Commit  `json:"commit"`
	Status     rollout.Status `json:"status"`
	StartedAt  time.Time      `json:"startedAt,omitzero"`
	FinishedAt time.Time      `json:"finishedAt,omitzero"`
}

// targetStatus is a unit on one target.
type targetStatus struct {
	Target config.TargetName `json:"target"`
	Status standing          `json:"status"`
	Wave   string            `json:"wave,omitempty"`
	// Commit is that of the bundle that was applied.
	Commit    config.Commit  `json:"commit,omitempty"`
	Health    rollout.Health `json:"health,omitempty"`
	Applied   render.Digest  `json:"applied,omitempty"`
	Wanted    render.Digest  `json:"wanted,omitempty"`
	AppliedAt time.Time      `json:"appliedAt,omitzero"`
	Reason    string         `json:"reason,omitempty"`
}

// quarantinedStatus is a bundle that failed.
type quarantinedStatus struct {
	Bundle render.Digest     `json:"bundle"`
	Commit config.Commit     `json:"commit"`
	Target config.TargetName `json:"target"`
	Reason string            `json:"reason"`
	At     time.Time         `json:"at"`
}

// statusOf tells how a unit is, given all drift that is known.
func statusOf(u *rollout.Unit, drifts []store.Drift) unitStatus {
	is := unitStatus{Path: u.Path, Commit: u.Rollout.Commit, Commits: []config.Commit{}, Targets: []targetStatus{}, Drift: driftOf(u, drifts), Rollout: rolloutStatus{ID: u.Rollout.ID,
		Name: u.Rollout.Spec.Name, Commit: u.Rollout.Commit, Status: u.Rollout.Status, StartedAt: u.Rollout.StartedAt, FinishedAt: u.Rollout.FinishedAt}}
	if u.Rollout.Status == rollout.Progressing && u.Rollout.Wave < len(u.Rollout.Spec.Waves) {
		is.Wave = u.Rollout.Spec.Waves[u.Rollout.Wave].Name
	}
	is.Status = ofRollout(u)
	count := map[config.Commit]int{}
	for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
		t := targetOf(u, name, is.Drift)
		is.Targets = append(is.Targets, t)
		if is.Status = worse(is.Status, ofTarget(t.Status)); t.Status == standingHealthy {
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
		is.Quarantine = append(is.Quarantine, quarantinedStatus{digest, q.Commit, q.Target, q.Reason, q.At})
	}
	is.Reason = is.reason(u)
	return is
}

// ofRollout is the standing of the unit as a whole.
func ofRollout(u *rollout.Unit) standing {
	is := standingDone
	switch u.Rollout.Status {
	case rollout.Progressing:
		is = standingProgressing
	case rollout.RollingBack:
		is = standingRollingBack
	case rollout.RolledBack:
		is = standingRolledBack
	case rollout.Held:
		is = standingHeld
	}
	switch {
	case u.BlockedBy == rollout.ObstacleQuarantine:
		is = worse(is, standingQuarantined)
	case u.BlockedBy == rollout.ObstacleEmpty:
		is = worse(is, standingEmpty)
	case u.Blocked != "":
		is = worse(is, standingBlocked)
	}
	if u.Waiting != "" {
		is = worse(is, standingApproval)
	}
	return is
}

// ofTarget is what the standing of a target makes of its unit.
func ofTarget(is standing) standing {
	switch is {
	case standingHealthy:
		return standingDone
	case standingPending, standingLeaving:
		return standingProgressing
	}
	return is
}

func targetOf(u *rollout.Unit, name config.TargetName, drift []objectDrift) targetStatus {
	t := u.Targets[name]
	is := targetStatus{Target: name, Commit: u.Commits[t.Applied], Health: t.Health, Applied: t.Applied, Wanted: t.Wanted,
		AppliedAt: t.AppliedAt, Reason: cmp.Or(t.Reason, driftText(drift, name))}
	if t.Wave >= 0 && t.Wave < len(u.Rollout.Spec.Waves) {
		is.Wave = u.Rollout.Spec.Waves[t.Wave].Name
	}
	is.Status = targetStanding(u, t, name, drift)
	return is
}

func targetStanding(u *rollout.Unit, t *rollout.Target, name config.TargetName, drift []objectDrift) standing {
	on := func(d objectDrift) bool { return d.Target == name }
	switch {
	case t.Trouble == rollout.TroubleFailed || t.Health == rollout.HealthFailed:
		return standingFailed
	case t.Trouble == rollout.TroubleUnreachable:
		return standingUnreachable
	case t.Trouble == rollout.TroubleUnavailable:
		return standingUnavailable
	case t.Trouble != rollout.NoTrouble:
		return standingWaiting
	case slices.ContainsFunc(drift, func(d objectDrift) bool { return on(d) && d.Mode == "fight" }):
		return standingFight
	case t.Drifted || slices.ContainsFunc(drift, on):
		return standingDrifted
	case t.Wanted == "" && t.Applied != "":
		return standingLeaving
	case t.Wave < 0:
		return standingEmpty // or no wave picks it, which is why the unit is blocked
	case t.Dirty || t.Applied == t.Wanted && t.Health != rollout.HealthGood:
		return standingProgressing
	case t.Applied != t.Wanted:
		return standingPending
	}
	return standingHealthy
}

// reason is why the unit is not where the newest commit wants it.
func (s *unitStatus) reason(u *rollout.Unit) string {
	var parts []string
	for _, part := range []string{u.Blocked, u.Rollout.Reason, u.Waiting, driftText(s.Drift, "")} {
		if part != "" && !slices.ContainsFunc(parts, func(known string) bool { return strings.Contains(known, part) }) {
			parts = append(parts, part)
		}
	}
	if i := slices.IndexFunc(s.Targets, func(t targetStatus) bool { return ofTarget(t.Status) == s.Status && t.Reason != "" }); len(parts) == 0 && i >= 0 {
		parts = []string{fmt.Sprintf("target %s: %s", s.Targets[i].Target, s.Targets[i].Reason)}
	}
	if len(parts) == 0 && s.Status == standingEmpty {
		parts = []string{"it renders to nothing on a target where it has objects: they stay; remove it from the placement to remove them"}
	}
	return strings.Join(parts, "; ")
}

func (s *unitStatus) progress() string { return fmt.Sprintf("%d/%d", s.Ready, len(s.Targets)) }

// held are the commits that the targets hold, in short.
func (s *unitStatus) held() string {
	if len(s.Commits) == 0 {
		return "-"
	}
	text := s.Commits[0].Short()
	if more := len(s.Commits) - 1; more > 0 {
		text += fmt.Sprintf(" +%d", more)
	}
	return text
}
