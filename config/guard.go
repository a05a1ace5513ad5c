// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "github.com/swell-sh/swell/config/document"

// Guard says how much may be deleted without approval. Each bound holds by
// itself: one that is exceeded is enough. Package sync/approval applies them.
type Guard struct {
	Unit  DeletionLimit // what a unit deletes on one target
	Fleet DeletionLimit // what a commit deletes in all
	// Units is how many units that stay in the monorepo may lose objects by one
	// commit. More than that is mostly one edit of something that they share: a
	// kind, Defaults, data, a schema.
	Units int
}

// DeletionLimit is exceeded by more than so many objects, or by a larger share
// of what is there. The zero value is exceeded by any deletion.
type DeletionLimit struct {
	Objects int
	Percent int // of what is there, 0 to 50
	// Floor is up to how many objects the share does not count: one object of
	// five is 20 %, and five must stay editable.
	Floor int
}

// DefaultGuard holds where the configuration says nothing else. The floors are
// what one edit of a small unit, and of a small fleet, takes away.
var DefaultGuard = Guard{
	Unit:  DeletionLimit{Objects: 10, Percent: 10, Floor: 3},
	Fleet: DeletionLimit{Objects: 50, Percent: 1, Floor: 10},
	Units: 3,
}

// Bounds of the configuration's numbers: a guard that is set so high that it never
// holds a deletion protects nothing.
const (
	maxGuardObjects = 1000
	maxGuardPercent = 50
)

// Exceeded says whether so many objects, of so many that are there, need
// approval.
func (l DeletionLimit) Exceeded(n, of int) bool {
	return n > l.Objects || n > l.Floor && n*100 > l.Percent*of
}

// guardSpec is Guard as it is written.
type guardSpec struct {
	Unit, Fleet limitSpec
	Units       *int
}

type limitSpec struct{ Objects, Percent, Floor *int }

func (g *Guard) read(in *reading, spec guardSpec) {
	*g = DefaultGuard
	for _, field := range []struct {
		path    []any
		written *int
		value   *int
		most    int
	}{
		{[]any{"unit", "objects"}, spec.Unit.Objects, &g.Unit.Objects, maxGuardObjects},
		{[]any{"unit", "percent"}, spec.Unit.Percent, &g.Unit.Percent, maxGuardPercent},
		{[]any{"unit", "floor"}, spec.Unit.Floor, &g.Unit.Floor, maxGuardObjects},
		{[]any{"fleet", "objects"}, spec.Fleet.Objects, &g.Fleet.Objects, maxGuardObjects},
		{[]any{"fleet", "percent"}, spec.Fleet.Percent, &g.Fleet.Percent, maxGuardPercent},
		{[]any{"fleet", "floor"}, spec.Fleet.Floor, &g.Fleet.Floor, maxGuardObjects},
		{[]any{"units"}, spec.Units, &g.Units, maxGuardObjects},
	} {
		if field.written == nil {
			continue
		}
		*field.value = *field.written
		if *field.value < 0 || *field.value > field.most {
			in.at(append([]any{"spec", "guard"}, field.path...)...).problem(document.CodeType, "want 0 to %d, got %d", field.most, *field.value)
		}
	}
}
