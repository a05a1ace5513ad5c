// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
)

// findRenamedUnits finds which units of the commit have the objects of units that it does
// not have any more: once for each commit, before their releases begin.
func (p *pass) findRenamedUnits() error {
	w := p.monorepo.wanted
	if w.Renamed != nil || w.Refused() != "" {
		return nil
	}
	w.Renamed = map[object.UnitTarget]config.UnitPath{}
	for _, path := range slices.Sorted(maps.Keys(p.state.Units)) {
		if w.Units[path] != nil {
			continue
		}
		for name, t := range p.state.Units[path].Targets {
			successor, err := p.successor(path, name, t)
			if err != nil {
				return err
			}
			if successor != "" {
				w.Renamed[object.UnitTarget{Unit: successor, Target: name}] = path
			}
		}
	}
	return nil
}

// successor returns the unit, new on a target, that the commit gives more than half of the objects
// which another one has there; empty where there is none.
func (p *pass) successor(path config.UnitPath, name config.TargetName, t *rollout.Target) (config.UnitPath, error) {
	if t.Good == "" {
		return "", nil
	}
	entries, err := p.tx.Inventory(path, name)
	if err != nil {
		return "", err
	}
	objects, counts := 0, map[config.UnitPath]int{}
	for id, e := range entries {
		if isHook(e) || e.UID == "" {
			continue
		}
		objects++
		for _, unitTarget := range p.monorepo.wants(name.Cluster(), id) {
			isOwn := p.monorepo.wanted.Units[unitTarget.Unit].Tenant == p.state.Units[path].Tenant
			if isOwn && unitTarget.Target == name && p.isNew(unitTarget) {
				counts[unitTarget.Unit]++
			}
		}
	}
	for successor, n := range counts {
		if 2*n > objects { // there is at most one, as an object has one unit in a commit
			return successor, nil
		}
	}
	return "", nil
}

// isNew says that the state knows nothing of a unit on a target.
func (p *pass) isNew(unitTarget object.UnitTarget) bool {
	u := p.state.Units[unitTarget.Unit]
	return u == nil || u.Targets[unitTarget.Target] == nil
}
