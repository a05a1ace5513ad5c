// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import "github.com/swell-sh/swell/config"

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
