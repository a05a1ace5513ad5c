// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"maps"
	"reflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// affected are the units that the release of a commit may do something about in a fleet that
// has all of another one, and those that this depends on. A fleet has a hundred thousand
// units, and a commit mostly changes a few.
type affected map[config.UnitPath]bool

// affectedBy finds the units that differ, those of which nothing may be taken, and those that
// any of these needs. Where documents of the fleet differ that releases depend on, it finds
// all. A unit that is the same in both has what the commit wants, so that no gate waits for
// it. Nor does it keep one that it needs from leaving: that would be no need of it any more,
// and it would differ.
//
// That this leaves nothing out is what TestAffected looks at.
func affectedBy(base, head *render.Snapshot) affected {
	if !sameReleases(base.Repository, head.Repository) {
		return everything(base, head)
	}
	f := &finder{base: base, head: head, found: affected{}}
	for path := range base.Units.Differing(head.Units) {
		f.add(path)
	}
	for path, unit := range base.Units.All() {
		if isFrozen(base, unit) {
			f.add(path)
		}
	}
	f.follow()
	return f.found
}

// everything are all units of two snapshots.
func everything(base, head *render.Snapshot) affected {
	all := affected{}
	for _, s := range []*render.Snapshot{base, head} {
		for path := range s.Units.All() {
			all[path] = true
		}
	}
	return all
}

// sameReleases says whether the documents that decide how units are released are the same.
func sameReleases(was, is *config.Repository) bool {
	return was == is || reflect.DeepEqual(was.Rollouts, is.Rollouts) && reflect.DeepEqual(boundsOf(was, nil), boundsOf(is, nil)) && maps.Equal(clusterNames(was), clusterNames(is))
}

// isFrozen says that nothing may be taken of a unit, as far as it can be seen from a snapshot:
// see [rollout.Wanted.WhyFrozen].
func isFrozen(s *render.Snapshot, unit *render.Unit) bool {
	if spec := s.Repository.Rollouts[unit.Rollout]; unit.Void || len(unit.Problems) > 0 || spec == nil || len(spec.Waves) == 0 {
		return true
	}
	for i := range unit.Placements {
		if unit.Placements[i].Digest != "" {
			return false
		}
	}
	return true
}

// finder is an affectedBy under way.
type finder struct {
	base, head *render.Snapshot
	found      affected
	next       []config.UnitPath // of those found, what they wait for is not known yet
}

func (f *finder) add(path config.UnitPath) {
	if !f.found[path] {
		f.found[path] = true
		f.next = append(f.next, path)
	}
}

// follow adds the units that others need: those that need each other are released together.
func (f *finder) follow() {
	for len(f.next) > 0 {
		path := f.next[len(f.next)-1]
		f.next = f.next[:len(f.next)-1]
		for _, s := range []*render.Snapshot{f.base, f.head} {
			unit := s.Units.Get(path)
			if unit == nil {
				continue
			}
			for i := range unit.Placements {
				for _, need := range unit.Placements[i].Needs {
					f.add(need.Unit)
				}
			}
		}
	}
}

// want is what a snapshot wants of the affected units, whatever came before. The others are
// there, too: a commit that has none of the affected ones is not empty.
func (a affected) want(s *render.Snapshot, there *rollout.State, before earlier) *rollout.Wanted {
	units := make(map[config.UnitPath]*render.Unit, len(a))
	for path := range a {
		if unit := s.Units.Get(path); unit != nil {
			units[path] = unit
		}
	}
	w := wantOfUnits(s, maps.All(units), len(units), there, before, plainUnit(s, there, before))
	w.AllowEmpty = len(units) < s.Units.Len()
	return w
}
