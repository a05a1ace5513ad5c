// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// Modes are the drift modes of the newest commit. Nil is not known: no
// commit was fetched yet.
type Modes map[config.UnitPath]unitModes

// unitModes holds for one unit. Units that correct everywhere are not kept.
type unitModes struct {
	// unknown: the unit has a problem, and nobody saw it without.
	unknown bool
	on      map[config.TargetName]config.DriftMode
}

// Of is what to do about drift of a unit on a target. Where it is not known,
// drift is only reported: a word that nobody could read may have been "leave it
// alone". A unit that the commit does not have is corrected until it is gone.
func (m Modes) Of(unit config.UnitPath, target config.TargetName) config.DriftMode {
	known := m[unit]
	if m == nil || known.unknown {
		return config.DriftReport
	}
	if mode, ok := known.on[target]; ok {
		return mode
	}
	return config.DriftCorrect
}

// ReadModes reads the modes of a new snapshot. A commit that is held, and a unit with
// a problem, leave in force what was known before.
func ReadModes(s *render.Snapshot, before Modes) Modes {
	if s.Held {
		return before
	}
	m := Modes{}
	for path, unit := range s.Units.All() {
		switch {
		case len(unit.Problems) == 0:
			if on := modesOf(unit); len(on) > 0 {
				m[path] = unitModes{on: on}
			}
		case before == nil:
			m[path] = unitModes{unknown: true}
		default:
			if known, ok := before[path]; ok {
				m[path] = known
			}
		}
	}
	return m
}

// modesOf are the targets of a unit where drift is not corrected.
func modesOf(unit *render.Unit) map[config.TargetName]config.DriftMode {
	if len(unit.Policy.Drift) == 0 {
		return nil
	}
	on := map[config.TargetName]config.DriftMode{}
	for _, p := range unit.Placements {
		if mode := unit.Policy.DriftOn(p.Target.Labels); mode != config.DriftCorrect {
			on[p.Target.Name] = mode
		}
	}
	return on
}
