// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// account brings the claims and the units up to date with the results.
func (p *pass) account() {
	changes := map[config.UnitPath]*Unit{}
	brings := false // whether something that others need came or went
	for _, e := range p.gone {
		brings = p.release(e) || brings
		p.uses.add(e.unit.uses, -1)
		changes[e.unit.Path] = nil
		delete(p.retry, e.unit.Path)
		delete(p.collectors, e.unit.Path)
		delete(p.elsewhere, e.unit.Path)
		delete(p.blames, e.unit.Path)
		delete(p.naming, e.unit.Path)
		p.together.remove(e.unit.Path)
	}
	for _, e := range p.touched {
		r := e.result()
		unit := p.world.assemble(e, r)
		path := unit.Path
		set(p.retry, path, unit.Problems.Retry() || e.packed == nil)
		set(p.collectors, path, r.collects())
		set(p.elsewhere, path, r.reads.elsewhere(path))
		set(p.naming, path, len(unit.Problems) == 0 && namesAccounts(r.sharedNames))
		p.noteBlames(path, r.blames)
		p.together.note(path, e.source.Defaults.Together, len(unit.Problems) > 0)
		if e.unit != nil && unit.same(e.unit) {
			continue
		}
		brings = p.release(e) || brings
		if e.unit != nil {
			p.uses.add(e.unit.uses, -1)
		}
		p.uses.add(unit.uses, 1)
		e.unit = unit
		brings = p.claim(e, r) || brings
		changes[path] = unit
	}
	again := p.touched
	for path := range p.outside { // the others may have made up
		if e := p.entries[path]; e != nil {
			again = append(again, e)
			changes[path] = e.unit
		}
	}
	refused := p.contested.refused
	p.contested = p.contest()
	p.outside = p.causedByOthers()
	brings = brings || !maps.EqualFunc(refused, p.contested.refused, maps.Equal)
	if brings {
		again = slices.Collect(maps.Values(p.entries))
	}
	for _, e := range again {
		if p.outside[e.source.Path] == nil {
			p.needs(e, changes)
		}
	}
	for path, problems := range p.outside {
		unit := *p.entries[path].unit
		unit.Placements = withoutBundles(unit.Placements)
		unit.Problems = append(slices.Clone(unit.Problems), problems...).Sorted()
		if was := p.units.Get(path); was != nil && unit.same(was) {
			changes[path] = was
		} else {
			changes[path] = &unit
		}
	}
	for path, unit := range changes {
		set(p.troubled, path, unit != nil && len(unit.Problems) > 0)
	}
	p.units = p.units.with(changes)
	for _, e := range p.touched {
		e.failed = nil
	}
}

func set(paths map[config.UnitPath]bool, path config.UnitPath, in bool) {
	if in {
		paths[path] = true
	} else {
		delete(paths, path)
	}
}

// assemble makes the unit of a snapshot of what is known of it.
func (w *world) assemble(e *entry, r *result) *Unit {
	source, d := e.source, e.source.Defaults
	unit := &Unit{Path: source.Path, Tenant: d.Tenant, Rollout: d.Rollout, Policy: d.Policy, Notes: r.notes, source: source, uses: r.uses, body: r.key(e.static)}
	unit.Problems = slices.Concat(source.Problems, d.Problems, w.checkPlacement(source, e.placed), r.problems)
	if w.hard != nil { // it is, for a [Commit] that only looks into the cache
		unit.Problems = append(unit.Problems, w.hard.problems[source.Path]...)
	}
	unit.Foreign = r.foreign
	if unit.Void = len(r.foreign) > 0 && len(r.holds) == 0 && len(source.Problems)+len(r.problems) == 0; unit.Void {
		unit.Problems = nil // of Defaults, which hold for nothing here
	}
	if len(unit.Problems) > 0 {
		for i := range unit.Problems {
			unit.Problems[i].Unit = string(unit.Path)
		}
		unit.Problems = unit.Problems.Sorted()
	}
	unit.Placements = make([]Placement, len(e.placed))
	for i, p := range e.placed {
		unit.Placements[i].Target = p.target
		if len(unit.Problems) == 0 {
			unit.Placements[i].Digest, unit.Placements[i].Objects = r.heads[i].digest, len(r.heads[i].ids)
		}
	}
	if len(unit.Problems) == 0 {
		unit.sharedNames = r.sharedNames
	}
	return unit
}

func withoutBundles(placements []Placement) []Placement {
	without := make([]Placement, len(placements))
	for i, p := range placements {
		without[i].Target = p.Target
	}
	return without
}

// same says whether two units are the same to readers of snapshots, except for their
// needs.
func (u *Unit) same(other *Unit) bool {
	samePlacement := func(a, b Placement) bool {
		return a.Digest == b.Digest && a.Objects == b.Objects && (a.Target == b.Target || factsOf(a.Target, "") == factsOf(b.Target, ""))
	}
	return u.Tenant == other.Tenant && u.Rollout == other.Rollout && reflect.DeepEqual(u.Policy, other.Policy) && u.body == other.body && u.Void == other.Void && slices.Equal(u.Foreign, other.Foreign) &&
		slices.EqualFunc(u.Problems, other.Problems, sameProblem) && slices.EqualFunc(u.Notes, other.Notes, sameProblem) &&
		slices.EqualFunc(u.Placements, other.Placements, samePlacement) && slices.Equal(u.uses, other.uses)
}

func sameProblem(a, b document.Problem) bool {
	return a.Code == b.Code && a.Retry == b.Retry && a.String() == b.String()
}

// noSlot stands for a placement without a bundle.
const noSlot = math.MaxUint32

// release takes back what the entry's unit claimed. It returns whether others
// may have needed some of it.
func (p *pass) release(e *entry) (brought bool) {
	if e.claimed == nil {
		return false
	}
	claimed := mustUnpack(e.claimed)
	for i, slot := range e.slots {
		if slot != noSlot {
			p.claims.drop(slot, claimed.heads[i].ids)
			brought = brought || claimed.heads[i].brings
		}
	}
	p.hosts.drop(e.unit)
	if e.valued {
		p.holders.drop(e.unit.Path, claimed.values)
	}
	e.slots, e.claimed, e.valued = nil, nil, false
	return brought
}

// claim enters what the entry's unit wants.
func (p *pass) claim(e *entry, r *result) (brings bool) {
	e.slots, e.claimed = make([]uint32, len(e.unit.Placements)), e.packed
	for i, placement := range e.unit.Placements {
		e.slots[i] = noSlot
		if placement.Digest != "" {
			head := &r.heads[i]
			e.slots[i] = p.claims.add(object.UnitTarget{Unit: e.unit.Path, Target: placement.Target.Name}, head.ids)
			brings = brings || head.brings
		}
	}
	p.hosts.add(e.unit, allNames)
	if e.valued = len(e.unit.Problems) == 0 && len(r.values) > 0; e.valued {
		p.holders.add(e.unit.Path, r.values)
	}
	return brings
}

// needs finds anew what the entry's unit needs of others.
func (p *pass) needs(e *entry, changes map[config.UnitPath]*Unit) {
	var needs [][]object.UnitTarget
	differ := false
	last := e.result()
	for i, placement := range e.unit.Placements {
		var some []object.UnitTarget
		if placement.Digest != "" {
			some = p.claims.needs(e.unit.Path, placement.Target.Name, last.heads[i].needs, p.contested.refused)
		}
		needs = append(needs, some)
		differ = differ || !slices.Equal(some, placement.Needs)
	}
	if !differ {
		return
	}
	unit := *e.unit
	unit.Placements = slices.Clone(unit.Placements)
	for i := range needs {
		unit.Placements[i].Needs = needs[i]
	}
	e.unit, changes[unit.Path] = &unit, &unit
}
