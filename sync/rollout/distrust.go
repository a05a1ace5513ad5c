// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"slices"
	"time"
)

// Distrust forgets the targets of a cluster that is newer than the state. Every unit
// with a target there stops its rollout, because good bundles of the state's time must
// not come back, and the commit's release begins anew at the first wave. The quarantine
// stays. why says how the state was found to be older.
func (s *State) Distrust(cluster, why string, now time.Time) (transitions []Transition) {
	for _, path := range slices.Sorted(maps.Keys(s.Units)) {
		u := s.Units[path]
		if !u.isIn(cluster) {
			continue
		}
		for name := range u.Targets {
			if name.Cluster() == cluster {
				u.drop(name)
			}
		}
		u.Rollout.Release = "" // the newest commit is released anew
		transitions = append(transitions, s.stop(u, why, now)...)
		u.keepCommits()
		s.touch(path)
	}
	return transitions
}

// Suspect stops the same rollouts, in all clusters, while nothing more can be done because it
// is not known yet what Git wants: what the state had begun may be older than what runs.
func (s *State) Suspect(cluster, why string, now time.Time) (transitions []Transition) {
	for _, path := range slices.Sorted(maps.Keys(s.Units)) {
		u := s.Units[path]
		if r := u.Rollout; u.isIn(cluster) && (r.Status == Progressing || r.Status == RollingBack) {
			transitions = append(transitions, s.stop(u, why, now)...)
			s.touch(path)
		}
	}
	return transitions
}

// isIn says whether the unit has a target in a cluster.
func (u *Unit) isIn(cluster string) bool {
	for name := range u.Targets {
		if name.Cluster() == cluster {
			return true
		}
	}
	return false
}

// stop holds a unit's rollout for good.
func (s *State) stop(u *Unit, why string, now time.Time) []Transition {
	r := u.Rollout
	r.Removing, r.Stalled, r.Failure = false, false, why
	if r.Status == Held {
		return nil
	}
	r.Status, r.FinishedAt = Held, instant(now)
	return []Transition{u.transition(instant(now), "", string(Held), why)}
}
