// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"github.com/swell-sh/swell/config"
)

// Snapshot is what one commit wants of the fleet: the bundles of every unit
// for every target, and the problems found. It is never changed after it was
// made; parts of it are shared with earlier snapshots.
type Snapshot struct {
	Commit config.Commit // empty for a plain folder
	// Repository is what was loaded: clusters, rollouts, units.
	Repository *config.Repository
	// Units holds every unit of the commit, those with problems too. A unit
	// for which nothing changed is the same pointer as in the snapshot before.
	Units map[config.UnitPath]*Unit
	// Problems are all of them, sorted: of the repository, of kinds, of units.
	Problems config.Problems
	// Held is set when a problem is in a document that concerns the whole
	// fleet. Nothing at all may be written from such a snapshot.
	Held bool
	// Retry is set when a file could not be read; render the same commit again,
	// with the same Compiler: what could be read is taken over.
	Retry bool
	// Rendered counts the units that were rendered for this snapshot; the
	// others were taken over from the one before.
	Rendered int
}

// Unit is one unit of a snapshot.
type Unit struct {
	Path    config.UnitPath
	Tenant  string // empty where no Defaults name one
	Rollout string // the name of its Rollout
	// Problems of this unit. Where there is one, nothing of the unit may be
	// applied or pruned: it stays at its last good bundles.
	Problems config.Problems
	// Targets are those that the unit is placed on, in the order of the fleet.
	Targets []config.Target
	// Bundles by target; nil when the unit has a problem. A target of Targets
	// that is not in it is one where the unit renders to nothing.
	Bundles map[config.TargetName]*Bundle
	// Needs are, by target, the units that bring what this unit's objects
	// cannot be applied without: the namespaces they live in.
	Needs map[config.TargetName][]Placed

	// reads are what the unit depends on besides its folder.
	reads []read
}

// Placed is a unit on a target.
type Placed struct {
	Unit   config.UnitPath
	Target config.TargetName
}
