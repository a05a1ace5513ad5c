// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Retriable is something that [State.Retry] would start again: a unit, or one of
// its targets.
type Retriable struct {
	Unit   config.UnitPath   `json:"unit"`
	Target config.TargetName `json:"target,omitempty"` // empty: the unit as a whole
	State  string            `json:"state"`            // "held", "rolled back", "quarantined", or a [Trouble]
	Reason string            `json:"reason,omitempty"` // one line
}

// Retriable is what of the unit could be retried, the unit first, then its targets
// by name.
func (u *Unit) Retriable() []Retriable {
	var all []Retriable
	switch {
	case u.failed():
		all = append(all, Retriable{Unit: u.Path, State: string(u.Rollout.Status), Reason: u.Rollout.Failure})
	case u.BlockedBy == ObstacleQuarantine:
		all = append(all, Retriable{Unit: u.Path, State: "quarantined", Reason: u.Blocked})
	}
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if t.Trouble != NoTrouble {
			all = append(all, Retriable{Unit: u.Path, Target: name, State: string(t.Trouble), Reason: t.Reason})
		}
	}
	return all
}

// failed says that the rollout came to a bad end, or is on its way there.
func (u *Unit) failed() bool {
	return u.Rollout.Status == Held || u.Rollout.Status == RolledBack || u.Rollout.Status == RollingBack
}

// failedFor says that the rollout failed of an object that it could not adopt, and that the
// commit lets it adopt more.
func (u *Unit) failedFor(w *WantedUnit) bool {
	return u.failed() && strings.Contains(u.Rollout.Failure, config.HowToTake) && !strings.HasPrefix(u.Rollout.Failure, byHand) && w.Adopt.Permits(u.Rollout.Adopt)
}

// Retry tries failed and waiting releases again, of the unit with that path and of
// those below it. Their quarantine is cleared, a rollout that was held or rolled back
// begins anew at its first wave, and postponed work is due at once. Where at names a
// target or a cluster, only units that are there are retried; of units that did not
// fail, only their work there. Both empty is everything. The transitions are of kind
// "retry".
func (s *State) Retry(below config.UnitPath, at config.TargetName, text string, now time.Time) []Transition {
	var all []Transition
	for path, u := range s.Units {
		if !config.Within(string(path), string(below)) {
			continue
		}
		if !u.retry(at, instant(now)) {
			continue
		}
		s.touch(path)
		all = append(all, u.transition(instant(now), "", "retry", text))
	}
	return all
}

// waitsForRetry says that the unit failed, or that an attempt of it waits on a target; empty is
// any.
func (u *Unit) waitsForRetry(target config.TargetName) bool {
	if u.failed() {
		return true
	}
	for name, t := range u.Targets {
		if (target == "" || name == target || name.Cluster() == string(target)) && (t.Trouble != NoTrouble || t.Attempts > 0) {
			return true
		}
	}
	return false
}

// retry reports whether there was something to retry.
func (u *Unit) retry(at config.TargetName, now time.Time) bool {
	here, due := false, false
	for name, t := range u.Targets {
		if at != "" && name != at && name.Cluster() != string(at) {
			continue
		}
		here = true
		if t.Trouble != NoTrouble || t.Attempts > 0 {
			t.Attempts, t.RetryAt, t.CheckedAt, due = 0, time.Time{}, time.Time{}, true
		}
	}
	quarantined := len(u.Quarantine) > 0
	if !here && at != "" || !due && !u.failed() && !quarantined {
		return false
	}
	u.Quarantine = nil
	if u.failed() {
		u.Rollout.Release = object.Digest("") // no release is like it, so the next Decide starts one
	}
	return true
}

// Resume makes work due at once that was postponed in a cluster because it was
// unreachable or unavailable.
func (s *State) Resume(cluster string) {
	for path, u := range s.Units {
		for name, t := range u.Targets {
			if name.Cluster() == cluster && (t.Trouble == TroubleUnreachable || t.Trouble == TroubleUnavailable) {
				t.Attempts, t.RetryAt = 0, time.Time{}
				s.touch(path)
			}
		}
	}
}

// retryText names the verb that starts a rollout again. It stays the same while one goes on.
func (u *Unit) retryText() string { return order.Command("retry", u.Path) + " tries it again" }

// again names the verb that starts a rollout again, and the one that takes it back where
// it stands.
func (u *Unit) again() string {
	text := u.retryText()
	if u.Rollout.Status == Held && u.CanGoBack() {
		text += ", " + order.Command("rollback", u.Path) + " puts back what ran before"
	}
	return text
}
