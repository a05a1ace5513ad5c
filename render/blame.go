// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/blame"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/override"
)

// Blamed is an object and where it comes from.
type Blamed struct {
	Object *object.Object
	// Origins are of the object itself: its document, its template, and what
	// was asked whether to have it.
	Origins []blame.Origin
	Fields  []blame.Field // sorted by path, as the object is written
}

// Blame tells where the fields of a unit's objects on a target come from, in
// the order of the bundle. It renders the unit again, slowly. There is nothing
// where the unit is not placed; the error is its problems, or that there is no
// such unit.
func (s *Snapshot) Blame(path config.UnitPath, target config.TargetName) ([]Blamed, error) {
	unit := s.Units.Get(path)
	if unit == nil {
		return nil, fmt.Errorf("unit %q: no such unit", path)
	}
	if len(unit.Problems) > 0 {
		return nil, unit.Problems
	}
	for _, p := range s.world.placed(unit.source.Defaults).places {
		if p.target.Name == target {
			return s.world.blame(unit.source, p)
		}
	}
	return nil, nil
}

func (w *world) blame(unit *config.Unit, p place) ([]Blamed, error) {
	u := &unitRenderer{world: w, unit: unit, reads: recorder{world: w}}
	u.read()
	for i := range u.sources {
		src := &u.sources[i]
		src.hard, src.doc = src.object(), src.doc.Whole()
	}
	e := u.expansion(p)
	e.steps = map[*object.Object]*blame.Step{}
	e.expandAll()
	if problems := slices.Concat(u.problems, u.found.problems); len(problems) > 0 {
		return nil, fmt.Errorf("unit %s: could not be rendered again: %w", unit.Path, problems)
	}
	object.Sort(e.objects)
	reader := blame.Reader{Repository: w.repository, Unit: unit, Target: p.target,
		Built:     func() []string { return w.build(unit).result.Reads },
		Collected: func(c *kind.Collection) []document.Position { return u.collectedAt(c, p.target.Name) }}
	blamed := make([]Blamed, len(e.objects))
	for i, o := range e.objects {
		step := e.steps[o]
		blamed[i] = Blamed{Object: o, Origins: reader.Object(step), Fields: reader.Fields(step, o.JSON, o.Redactor())}
	}
	return blamed, nil
}

// stepOf is how an object was made; hard is what it was before the overrides.
func (e *expansion) stepOf(d *draft, src source, hard map[string]any, template *kind.Rendered) *blame.Step {
	step := &blame.Step{Doc: src.doc, Spec: src.spec, Parent: src.step, Template: template, Object: d.object}
	if d.touched != nil {
		id := src.doc.Name
		if template != nil {
			id = template.ID
		}
		step.Touched = d.touched()
		step.Before = override.Before(hard, e.typeOf(hard), e.overridesOf(src, id)...)
	}
	return step
}

// collectedAt lists the places of the documents that a collection holds on a target.
func (u *unitRenderer) collectedAt(c *kind.Collection, target config.TargetName) (at []document.Position) {
	u.offers.find(u.world, u.wanted(c, target), func(_ *offer, from *offered) {
		if from.item != nil {
			at = append(at, from.position)
		}
	})
	return at
}
