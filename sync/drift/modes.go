// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"iter"

	"github.com/swell-sh/swell/config"
)

// Modes are the drift modes of the newest commit. Nil is not known: no
// commit was fetched yet. Units that correct everywhere are not kept.
type Modes map[config.UnitPath]UnitModes

// UnitModes are the drift modes of one unit.
type UnitModes struct {
	// Unknown says that the unit has a problem, so that nobody can read its modes.
	Unknown bool
	// On are the modes by target; those of targets that correct are left out.
	On map[config.TargetName]config.DriftMode
}

// Of is what to do about drift of a unit on a target. Where it is not known,
// drift is only reported: a word that nobody could read may have been "leave it
// alone". A unit that the commit does not have is corrected until it is gone.
func (m Modes) Of(unit config.UnitPath, target config.TargetName) config.DriftMode {
	known := m[unit]
	if m == nil || known.Unknown {
		return config.DriftReport
	}
	if mode, ok := known.On[target]; ok {
		return mode
	}
	return config.DriftCorrect
}

// ReadModes returns the modes of a commit, given those of its units and the modes before:
// a unit whose modes are unknown leaves in force what was known of it.
func ReadModes(units iter.Seq2[config.UnitPath, UnitModes], before Modes) Modes {
	m := Modes{}
	for path, unit := range units {
		if unit.Unknown && before != nil {
			unit = before[path]
		}
		if unit.Unknown || len(unit.On) > 0 {
			m[path] = unit
		}
	}
	return m
}
