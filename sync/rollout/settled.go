// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/swell-sh/swell/config"
)

// Settled is the state of a fleet that has all that a commit wants, and is healthy.
// Units of which nothing may be taken are not in it.
func Settled(w *Wanted) *State {
	s := &State{Units: map[config.UnitPath]*Unit{}}
	if w.Refused() != "" {
		return s
	}
	p := &pass{state: s, want: w}
	for path, unit := range w.Units {
		if unit.frozen() != "" {
			continue
		}
		u := &Unit{Path: path, settled: true}
		p.start(u, *unit.Rollout, unit)
		u.Rollout.Status = Done
		for _, t := range u.Targets {
			t.Applied, t.Good, t.Health = t.Wanted, t.Wanted, HealthGood
		}
		s.Units[path] = u
	}
	s.changed = nil
	return s
}

// Play carries the commit out in a fleet that takes all that it is told, and is well
// at once. What is not as wanted after it waits for something that only another
// commit, or an approval, brings about.
func (s *State) Play(want *Wanted) {
	results := map[Kind]Result{Apply: Applied, Check: Healthy, Remove: Removed}
	for now := time.Unix(0, 0).UTC(); ; {
		plan := s.Decide(want, now)
		for _, a := range plan.Actions {
			s.Record(Outcome{Action: a, Result: results[a.Kind], Pruned: a.Prune}, now)
		}
		switch {
		case len(plan.Actions) > 0:
		case !plan.Wake.After(now):
			return
		default:
			now = plan.Wake
		}
	}
}

// Waits says why the target is not, or not yet, as the commit wants it; empty when it
// is, or when the commit wants nothing of it.
func (s *State) Waits(at Place, w *Wanted) string {
	u := s.Units[at.Unit]
	if u == nil || u.Targets[at.Target] == nil {
		if w.FateOf(&Unit{Path: at.Unit, Rollout: &Rollout{}}, at.Target) == Brought {
			return "its release does not begin"
		}
		return ""
	}
	switch t := u.Targets[at.Target]; w.FateOf(u, at.Target) {
	case Brought:
		if digest := w.Units[at.Unit].Targets[at.Target].Digest; t.Holds(digest) {
			return ""
		}
	case Cleaned:
	default:
		return ""
	}
	return u.Rollout.Reason
}
