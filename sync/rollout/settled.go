// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
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
		u := &Unit{Path: path}
		p.start(u, *unit.Rollout, unit)
		u.Rollout.Status = Done
		for _, t := range u.list() {
			t.Applied, t.Good, t.Health = t.Wanted, t.Wanted, HealthGood
		}
		u.settled, u.over = true, true
		s.Units[path] = u
	}
	s.changed = nil
	return s
}

// Simulate carries the commit out in a fleet that accepts every object and is healthy
// at once. No wave soaks. A target that is not as wanted after it waits for another
// commit or for an approval.
func (s *State) Simulate(want *Wanted) {
	want = want.withoutSoak()
	now := time.Unix(0, 0).UTC()
	results := map[Kind]Result{Apply: Applied, Check: Healthy, Remove: Removed}
	for {
		plan := s.Decide(want, now)
		for _, a := range plan.Actions {
			s.Record(Outcome{Action: a, Result: results[a.Kind], Pruned: a.Prune}, now)
		}
		if len(plan.Actions) == 0 {
			return
		}
	}
}

// withoutSoak is the same commit, of which no wave soaks.
func (w *Wanted) withoutSoak() *Wanted {
	quick := *w
	quick.Units = make(map[config.UnitPath]*WantedUnit, len(w.Units))
	specs := map[*config.Rollout]*config.Rollout{} // many units share one
	for path, unit := range w.Units {
		u := *unit
		if u.Rollout != nil {
			if specs[u.Rollout] == nil {
				spec := *u.Rollout
				spec.Waves = slices.Clone(spec.Waves)
				for i := range spec.Waves {
					spec.Waves[i].Soak, spec.Waves[i].Gates = 0, nil
				}
				specs[u.Rollout] = &spec
			}
			u.Rollout = specs[u.Rollout]
		}
		quick.Units[path] = &u
	}
	return &quick
}

// Waits says why the target does not have, or not yet, the bundle that the commit
// brings there; empty when it has, or when the commit brings none.
func (s *State) Waits(at object.UnitTarget, w *Wanted) string {
	u := s.Units[at.Unit]
	if u == nil || u.Targets[at.Target] == nil {
		if w.FateOf(&Unit{Path: at.Unit, Rollout: &Rollout{}}, at.Target) == Brought {
			return "its release does not begin"
		}
		return ""
	}
	if w.FateOf(u, at.Target) != Brought || u.Targets[at.Target].Holds(w.Units[at.Unit].Targets[at.Target].Digest) {
		return ""
	}
	return u.Rollout.Reason
}
