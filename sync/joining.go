// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"maps"
	"slices"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
)

// Joining are the clusters in which units that a change places there would wait, sorted: those that
// the daemon's configuration does not say how to reach or, where known is nil and nobody knows that, those
// that are new. A unit with a problem in base may have been placed in all clusters that base has.
func Joining(base, head *render.Snapshot, known []string) (all []diff.Joining) {
	if head.Held || base.Held {
		return nil
	}
	existing, waits := clusterNames(base.Repository), map[string]bool{}
	for name := range clusterNames(head.Repository) {
		waits[name] = known == nil && !existing[name] || known != nil && !slices.Contains(known, name)
	}
	maps.DeleteFunc(waits, func(_ string, waiting bool) bool { return !waiting })
	if len(waits) == 0 {
		return nil
	}
	units := map[string]int{}
	for path := range base.Units.Differing(head.Units) {
		before := clustersOf(base.Units.Get(path))
		if unit := base.Units.Get(path); unit != nil && len(unit.Problems) > 0 {
			before = existing
		}
		for name := range clustersOf(head.Units.Get(path)) {
			if waits[name] && !before[name] {
				units[name]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		all = append(all, diff.Joining{Cluster: name, Units: units[name], Unreached: known != nil})
	}
	return all
}

// clustersOf are those on which a unit has a bundle; of no unit, none.
func clustersOf(unit *render.Unit) map[string]bool {
	names := map[string]bool{}
	if unit == nil {
		return names
	}
	for i := range unit.Placements {
		if placement := &unit.Placements[i]; placement.Digest != "" {
			names[placement.Target.Name.Cluster()] = true
		}
	}
	return names
}
