// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import "time"

// Shift moves all times of the state, after the clock was set: forward for a positive step.
// What soaks, is waited for or is held back takes as long as it would have taken.
func (s *State) Shift(step time.Duration) {
	for path, u := range s.Units {
		u.eachMoment(func(moment *time.Time) { *moment = moment.Add(step) })
		for _, t := range u.Targets {
			if !t.RetryAt.IsZero() {
				t.RetryAt = t.RetryAt.Add(step)
			}
		}
		s.touch(path)
	}
	for target, due := range s.notices.requeueAt {
		s.notices.requeueAt[target] = due.Add(step)
	}
}

// Latest is the latest moment that the state tells of; zero where it tells of none.
func (s *State) Latest() (latest time.Time) {
	for _, u := range s.Units {
		u.eachMoment(func(moment *time.Time) {
			if moment.After(latest) {
				latest = *moment
			}
		})
	}
	return latest
}

// eachMoment is all times at which something happened to the unit, but for zero ones.
func (u *Unit) eachMoment(do func(*time.Time)) {
	each := func(times ...*time.Time) {
		for _, moment := range times {
			if !moment.IsZero() {
				do(moment)
			}
		}
	}
	for digest, q := range u.Quarantine {
		each(&q.At)
		u.Quarantine[digest] = q
	}
	if p := u.Pending; p != nil {
		each(&p.Since, &p.Changed)
	}
	each(&u.Rollout.StartedAt, &u.Rollout.FinishedAt)
	for i := range u.Rollout.Gates {
		g := &u.Rollout.Gates[i]
		each(&g.Since, &g.AskedAt, &g.NoSince)
	}
	for _, t := range u.Targets {
		each(&t.Since, &t.CheckedAt, &t.AppliedAt, &t.TriedAt, &t.StepSince, &t.BlindSince, &t.BackSince)
	}
}
