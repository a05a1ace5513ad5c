// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// judgedBy is an admission policy, by its name and the line where it stands.
type judgedBy struct {
	name     string
	position document.Position
}

// Protections are the rules that match a unit: those of [config.Repository.Protections], and the
// policies and Checkers that judge its objects. It renders the unit again, to count. Objects are not
// counted while the unit has a problem. The error is that there is no such unit.
func (s *Snapshot) Protections(path config.UnitPath) ([]config.Protection, error) {
	unit := s.Units.Get(path)
	if unit == nil {
		return nil, fmt.Errorf("unit %q: no such unit", path)
	}
	bundles, err := s.Bundles(unit)
	if err != nil {
		return nil, err
	}
	var objects config.UnitObjects
	for _, b := range bundles {
		for _, o := range b.Objects {
			if objects.All++; o.ID.Namespace != "" {
				objects.Namespaced++
			}
		}
	}
	all := s.Repository.Protections(unit.source, objects)
	for by, count := range s.world.judgedIn(unit.source) {
		all = append(all, config.Protection{Rule: "policy " + by.name, Position: by.position, Matches: count, Noun: "objects"})
	}
	for _, c := range s.Repository.Checkers {
		for _, u := range unit.uses {
			if u.part == usedText && u.name == c.Name {
				all = append(all, config.Protection{Rule: "Checker " + c.Name, Position: c.ItemAt(u.item), Matches: u.count,
					Noun: "texts", Says: c.Program})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b config.Protection) int {
		return cmp.Or(cmp.Compare(a.Position.File, b.Position.File), cmp.Compare(a.Position.Line, b.Position.Line))
	})
	return all, nil
}

// judgedIn counts the objects of a unit that each admission policy is about.
func (w *world) judgedIn(unit *config.Unit) map[judgedBy]int {
	u := unitRenderer{world: w, unit: unit, reads: recorder{world: w}, judged: map[judgedBy]int{}}
	if w.policies == nil || len(w.policies.from) == 0 && len(w.policies.clusters) == 0 {
		return nil
	}
	placed := w.placed(unit.Defaults).places
	u.render(placed, &result{heads: make([]head, len(placed))})
	return u.judged
}
