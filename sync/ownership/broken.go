// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// Broken are the units of a snapshot that have a problem, by path.
func Broken(s *render.Snapshot) []*render.Unit {
	var broken []*render.Unit
	for _, unit := range s.Units.All() {
		if len(unit.Problems) > 0 {
			broken = append(broken, unit)
		}
	}
	slices.SortFunc(broken, func(a, b *render.Unit) int { return cmp.Compare(a.Path, b.Path) })
	return broken
}

// Blocking names a unit with a problem that an object of the given unit may have
// moved to: one of the same tenant, or any when the tenant of either is not known. It
// is empty when there is none. broken are those of the snapshot.
func Blocking(s *render.Snapshot, broken []*render.Unit, path config.UnitPath) config.UnitPath {
	unit := s.Units.Get(path)
	for _, other := range broken {
		if unit == nil || unit.Tenant == "" || other.Tenant == "" || other.Tenant == unit.Tenant {
			return other.Path
		}
	}
	return ""
}

// MayBelong says why an object stays that a unit with a problem may want.
func MayBelong(broken config.UnitPath) string {
	return fmt.Sprintf("it may belong to %s, which has a problem", broken)
}
