// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"
)

// Distrust forgets the targets of a cluster that is newer than the state. Every unit
// with a target there stops its rollout, because good bundles of the state's time must
// not come back, and the commit's release begins anew at the first wave. The quarantine
// stays. why says how the state was found to be older.
func (s *State) Distrust(cluster, why string, now time.Time) []Transition {
	var transitions []Transition
	for path, u := range s.Units {
		there := false
		for name := range u.Targets {
			if name.Cluster() == cluster {
				u.drop(name)
				there = true
			}
		}
		if !there {
			continue
		}
		r := u.Rollout
		r.Release, r.Removing, r.Stalled, r.Failure = "", false, false, why
		if r.Status != Held {
			r.Status, r.FinishedAt = Held, instant(now)
			transitions = append(transitions, u.transition(instant(now), "", string(Held), why))
		}
		u.keepCommits()
		s.touch(path)
	}
	return transitions
}
