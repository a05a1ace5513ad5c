// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// refresh brings the needs of the unit's targets up to date with the commit, if
// it may be believed.
func (p *pass) refresh(u *Unit) {
	w := p.want.Units[u.Path]
	if w == nil || !p.known(u.Path) {
		return
	}
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if needs := w.Needs[name]; !slices.Equal(t.Needs, needs) {
			t.Needs = needs
			p.state.touch(u.Path)
		}
	}
}

// waits says whether the target still waits for another unit, and notes which
// one as its reason. Units that wait for each other are released together: the
// server takes the objects that it can, and the others are tried again.
func (p *pass) waits(u *Unit, name config.TargetName, t *Target) bool {
	for _, path := range t.Needs {
		begun := t.Dirty && !t.TriedAt.IsZero() // it is not left half-written
		withheld := u.Rollout.Status == Progressing && !begun && p.withheld(path, name)
		u.restless = u.restless || path != u.Path
		if path == u.Path || p.met(path, name) && !withheld || p.reaches(path, u.Path, name, nil) {
			continue
		}
		text := fmt.Sprintf("waits for unit %s to be applied there", path)
		switch w := p.want.Units[path]; {
		case withheld:
			text += ", which waits for approval"
		case p.held == "" && w != nil && w.frozen() != "":
			text += ", which has a problem"
		}
		p.reason(u, t, text)
		return true
	}
	if t.Trouble == NoTrouble && t.Step == "" {
		p.reason(u, t, "")
	}
	return false
}

func (p *pass) reason(u *Unit, t *Target, text string) {
	if t.Reason != text {
		t.Reason = text
		p.state.touch(u.Path)
	}
}

// met says whether the unit is applied on the target. What it last put there
// counts too when it is not about to bring anything else.
func (p *pass) met(path config.UnitPath, name config.TargetName) bool {
	u := p.state.Units[path]
	if u == nil || u.Targets[name] == nil {
		return p.held == "" && p.want.Units[path] == nil // nobody will ever bring it
	}
	t := u.Targets[name]
	switch {
	case t.Applied == "":
		return false
	case t.applied():
		return true
	case t.Dirty:
		return false
	}
	return t.Wanted == "" || u.Rollout.Status == Held || u.Rollout.Status == RolledBack
}

// withheld says whether the unit will bring a bundle to the target as soon as its
// deletions are approved.
func (p *pass) withheld(path config.UnitPath, name config.TargetName) bool {
	w := p.want.Units[path]
	if p.held != "" || w == nil || p.want.Withheld[path] == "" || w.Targets[name].Digest == "" {
		return false
	}
	u := p.state.Units[path]
	return u == nil || u.Targets[name] == nil || u.Targets[name].Applied != w.Targets[name].Digest
}

// reaches says whether from waits on the target for to, directly or not.
func (p *pass) reaches(from, to config.UnitPath, name config.TargetName, seen []config.UnitPath) bool {
	u := p.state.Units[from]
	if u == nil || u.Targets[name] == nil || slices.Contains(seen, from) {
		return false
	}
	needs := u.Targets[name].Needs
	return slices.Contains(needs, to) || slices.ContainsFunc(needs, func(next config.UnitPath) bool {
		return p.reaches(next, to, name, append(seen, from))
	})
}

// leaveLater says that other units have to leave the target first, because
// they need what this one has there, or that its successor has to be well there, and notes
// one as the reason.
func (p *pass) leaveLater(u *Unit, name config.TargetName) bool {
	u.restless = true
	if p.awaitsSuccessor(u, name, u.Targets[name]) {
		return true
	}
	dependents := p.dependentsOn(object.UnitTarget{Unit: u.Path, Target: name})
	for _, path := range slices.Sorted(slices.Values(dependents)) { // so that the reason stays the same
		if other := p.state.Units[path]; path == u.Path || other == nil || other.Targets[name] == nil || other.Targets[name].nothing() {
			continue
		}
		if !p.reaches(u.Path, path, name, nil) {
			p.reason(u, u.Targets[name], fmt.Sprintf("waits for unit %s to leave first", path))
			return true
		}
	}
	return false
}

// dependentsOn are the units that must leave a target before this one does.
func (p *pass) dependentsOn(unitTarget object.UnitTarget) []config.UnitPath {
	if p.dependents == nil {
		p.findDependents()
	}
	return p.dependents[unitTarget]
}

func (p *pass) findDependents() {
	p.dependents = map[object.UnitTarget][]config.UnitPath{}
	for path, other := range p.state.Units {
		if w := p.want.Units[path]; w != nil && len(w.Needs) == 0 && p.known(path) && !other.Rollout.Spec.HasAfter() {
			continue
		}
		for target, t := range other.Targets {
			needs := p.needsOf(path, target, t)
			if !p.wants(path, target) { // one that stays starts no more
				needs = slices.Concat(needs, other.afterUnits(t))
			}
			for _, need := range needs {
				unitTarget := object.UnitTarget{Unit: need, Target: target}
				p.dependents[unitTarget] = append(p.dependents[unitTarget], path)
			}
		}
	}
}

// afterUnits are the units that a gate has a target's wave start after.
func (u *Unit) afterUnits(t *Target) (units []config.UnitPath) {
	if t.Wave < 0 || t.Wave >= len(u.Rollout.Spec.Waves) {
		return nil
	}
	for _, gate := range u.Rollout.Spec.Waves[t.Wave].Gates {
		if gate.After != nil {
			units = append(units, gate.After.Unit)
		}
	}
	return units
}

// needsOf are the needs that the commit gives, or the last known ones.
func (p *pass) needsOf(path config.UnitPath, name config.TargetName, t *Target) []config.UnitPath {
	if w := p.want.Units[path]; w != nil && p.known(path) {
		return w.Needs[name]
	}
	return t.Needs
}
