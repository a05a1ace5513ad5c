// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// Snapshot is what one commit wants of the fleet: the bundles of every unit
// for every target, and the problems found. It is never changed after it was
// made; parts of it are shared with earlier snapshots.
//
// A snapshot holds the digests of its bundles. Their objects are packed, or on
// disk; [Snapshot.Bundle] gets them.
type Snapshot struct {
	Commit config.Commit // empty for a plain folder
	// Repository is what was loaded: clusters, rollouts, units.
	Repository *config.Repository
	// Base is what the commit goes to, where its rules judge the commit too; nil where the
	// commit changes only rules, see [config.Repository.OnlyRules], or goes to nothing.
	Base *config.Repository
	// HealthRules are those of the fleet; never nil, and of no use while Held.
	HealthRules HealthRules
	// Units holds every unit of the commit, those with problems too. A unit
	// for which nothing changed is the same pointer as in the snapshot before.
	Units Units
	// Problems are all of them, sorted: of the repository, of kinds, of units.
	Problems document.Problems
	// Notes are about the fleet: they hold nothing.
	Notes document.Problems
	// Idle are those of Notes about names and selectors of the fleet's documents that match
	// nothing any more, although nobody changed the documents.
	Idle document.Problems
	// Held is set when a problem is in a document that concerns the whole
	// fleet. Nothing at all may be written from such a snapshot.
	Held bool
	// Retry is set when a file could not be read; render the same commit again,
	// with the same Compiler: what could be read is taken over.
	Retry bool
	// Rendered counts the units that were rendered for this snapshot; the
	// others were taken over from the one before, or from the cache.
	Rendered int

	world *world
}

// Unit is one unit of a snapshot.
type Unit struct {
	Path    config.UnitPath
	Tenant  string // empty where no Defaults name one
	Rollout string // the name of its Rollout
	// Policy says how the unit treats what it finds in a cluster. Never nil.
	Policy *config.Policy
	// Problems of this unit. Where there is one, nothing of the unit may be
	// applied or pruned: it stays at its last good bundles.
	Problems document.Problems
	// Notes are about documents of other units that this one collects and
	// left out, because they have a problem.
	Notes document.Problems
	// Foreign are files of the folder that hold no documents but are for other programs,
	// and Void says that there are no others: then the folder is no unit, although it may
	// have been one.
	Foreign []string
	Void    bool
	// Placements are the targets that the unit is placed on, in the order of
	// the fleet.
	Placements []Placement

	source      *config.Unit
	uses        uses
	sharedNames []sharedName
	// body is where the cache has the objects.
	body cache.Key
}

// Labels are those that Defaults give the unit; not to be changed.
func (u *Unit) Labels() map[string]string {
	if u.source == nil || u.source.Defaults == nil {
		return nil
	}
	return u.source.Defaults.Labels
}

// Empty says that the unit's problem is that it renders to nothing.
func (u *Unit) Empty() bool {
	return len(u.Problems) == 1 && u.Problems[0].Code == document.CodeEmpty && u.Problems[0].File == string(u.Path)
}

// Placement is a unit on one of its targets.
type Placement struct {
	Target *config.Target
	// Digest of the bundle; empty where the unit has a problem or renders to
	// nothing.
	Digest object.Digest
	// Objects is how many are in the bundle.
	Objects int
	// Needs are the units that bring what this unit's objects cannot be
	// applied without: the namespaces they live in and the definitions of
	// custom resources. Sorted.
	Needs []object.UnitTarget
}

// On is the unit's placement on a target; nil when it is not placed there.
func (u *Unit) On(target config.TargetName) *Placement {
	for i := range u.Placements {
		if u.Placements[i].Target.Name == target {
			return &u.Placements[i]
		}
	}
	return nil
}

// Bundle is what a unit of the snapshot wants on a target; nil where it wants
// nothing, because it has a problem, is not placed there or renders to nothing.
//
// The objects come from the cache. Where they are not there any more, the unit
// is rendered again.
func (s *Snapshot) Bundle(path config.UnitPath, target config.TargetName) (*object.Bundle, error) {
	unit := s.Units.Get(path)
	if unit == nil {
		return nil, nil
	}
	return s.world.bundle(unit, target)
}

// Bundles are all bundles of one unit of the snapshot, in the order of its
// placements; those that render to nothing are left out.
func (s *Snapshot) Bundles(unit *Unit) ([]*object.Bundle, error) { return s.world.bundles(unit) }

// BundlesByTarget are the bundles of the unit with a path; none where it has problems or is not there. The
// map is the caller's.
func (s *Snapshot) BundlesByTarget(path config.UnitPath) (map[config.TargetName]*object.Bundle, error) {
	unit := s.Units.Get(path)
	if unit == nil {
		return map[config.TargetName]*object.Bundle{}, nil
	}
	bundles, err := s.Bundles(unit)
	byTarget := make(map[config.TargetName]*object.Bundle, len(bundles))
	for _, b := range bundles {
		byTarget[b.Target] = b
	}
	return byTarget, err
}

func (w *world) bundle(unit *Unit, target config.TargetName) (*object.Bundle, error) {
	if len(unit.Problems) > 0 {
		return nil, nil
	}
	if packed, ok := w.cache.Get(unit.body); ok {
		if b, err := decodeBundle(unit, packed, target); err == nil {
			return b, nil
		}
	}
	bundles, err := w.bundles(unit)
	for _, b := range bundles {
		if b.Target == target {
			return b, nil
		}
	}
	return nil, err
}

func (w *world) bundles(unit *Unit) ([]*object.Bundle, error) {
	if len(unit.Problems) > 0 {
		return nil, nil
	}
	if packed, ok := w.cache.Get(unit.body); ok {
		if bundles, err := decodeBundles(unit, packed); err == nil {
			return bundles, nil
		}
	}
	r := w.renderUnit(unit.source, w.placesOf(unit))
	w.builds.Delete(unit.Path)
	if len(r.problems) > 0 {
		return nil, fmt.Errorf("unit %s: could not be rendered again: %w", unit.Path, r.problems)
	}
	packed := encodeBundles(r.bundles)
	w.cache.Put(unit.body, packed)
	return decodeBundles(unit, packed)
}
