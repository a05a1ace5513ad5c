// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

// Guard says how much may be deleted without approval.
type Guard struct {
	Unit  DeletionLimit // what a unit deletes on one target
	Fleet DeletionLimit // what a commit deletes in all
}

// DeletionLimit is exceeded by more objects that are also a larger share. The
// zero value is exceeded by any deletion.
type DeletionLimit struct {
	Objects int
	Percent int // of what is there, 0 to 50
}

// DefaultGuard holds where the configuration says nothing else.
var DefaultGuard = Guard{Unit: DeletionLimit{Objects: 10, Percent: 10}, Fleet: DeletionLimit{Objects: 50, Percent: 1}}

// Bounds of what the configuration may say. A guard that can be set so high
// that it never holds anything is none.
const (
	maxGuardObjects = 1000
	maxGuardPercent = 50
)

// Exceeded says whether so many objects, of so many that are there, need
// approval.
func (l DeletionLimit) Exceeded(n, of int) bool { return n > l.Objects && n*100 > l.Percent*of }

// guardSpec is Guard as it is written.
type guardSpec struct {
	Unit, Fleet struct{ Objects, Percent *int }
}

func (g *Guard) read(doc *Document, spec guardSpec) Problems {
	*g = DefaultGuard
	var problems Problems
	for _, field := range []struct {
		limit, name string
		written     *int
		value       *int
		most        int
	}{
		{"unit", "objects", spec.Unit.Objects, &g.Unit.Objects, maxGuardObjects},
		{"unit", "percent", spec.Unit.Percent, &g.Unit.Percent, maxGuardPercent},
		{"fleet", "objects", spec.Fleet.Objects, &g.Fleet.Objects, maxGuardObjects},
		{"fleet", "percent", spec.Fleet.Percent, &g.Fleet.Percent, maxGuardPercent},
	} {
		if field.written == nil {
			continue
		}
		*field.value = *field.written
		if *field.value < 0 || *field.value > field.most {
			problems = append(problems, doc.at("spec.guard.%s.%s: want 0 to %d, got %d", CodeType, "spec", "guard", field.limit, field.name)(
				field.limit, field.name, field.most, *field.value))
		}
	}
	return problems
}
