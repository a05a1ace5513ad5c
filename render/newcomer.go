// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// Units of several tenants may want one thing: an object, a unique value, a host name. Then the one
// that had it keeps it, and the newcomer has a problem, so that no tenant stops another one. Who had
// it is told by the newest release of each, or else by the base. Where that does not tell, each of
// them has a problem, as units of one tenant have that want one thing.

// Releases tell what the units of a fleet were released with. They are asked about units that want
// what others want.
type Releases interface {
	// Newest is the commit of the unit's newest release that began; empty where there is none.
	Newest(config.UnitPath) config.Commit
	// Commit renders units of it; nil where Git does not have it any more. The error is for what may
	// pass.
	Commit(config.Commit) (*Commit, error)
}

// had says where a unit had something before the commit.
type had struct {
	released bool // in its newest release
	base     bool // in the base
}

// or is where one of two had it.
func (h had) or(other had) had { return had{h.released || other.released, h.base || other.base} }

// older says which of two may keep what both want; none where that cannot be told.
func older(first, second had) (mayFirst, maySecond bool) {
	if first.released != second.released {
		return first.released, second.released
	}
	return first.base && !second.base, second.base && !first.base
}

// past asks what units had before the commit of a pass.
type past struct {
	*pass
	asked   bool // somebody asked
	unknown bool // something could not be told, and may be later
}

// states are those that a unit had: in its newest release, and in the base; nil where there is none.
func (p *past) states(path config.UnitPath) (released, base *Commit) {
	if p.Releases != nil {
		if commit := p.Releases.Newest(path); commit != "" {
			var err error
			released, err = p.Releases.Commit(commit)
			p.unknown = p.unknown || err != nil
		}
	}
	return released, p.inBase()
}

// unit is a unit in one of its states; nil where it is not in it, or cannot be told.
func (p *past) unit(c *Commit, path config.UnitPath) *Unit {
	if c == nil {
		return nil
	}
	unit, err := c.Unit(path)
	if err != nil || unit != nil && unit.Problems.Retry() {
		p.unknown = true
		return nil
	}
	return unit
}

// had asks the states of a tenant's unit whether something is in them.
func (p *past) had(path config.UnitPath, tenant string, in func(*Commit, *Unit) (bool, error)) (h had) {
	ask := func(c *Commit) bool {
		unit := p.unit(c, path)
		if unit == nil || unit.Tenant != tenant || len(unit.Problems) > 0 {
			return false
		}
		found, err := in(c, unit)
		p.unknown = p.unknown || err != nil
		return found
	}
	released, base := p.states(path)
	return had{ask(released), ask(base)}
}

// inBase renders units of the base; nil where there is none.
func (p *pass) inBase() *Commit {
	if p.earlier == nil && p.world.base != nil {
		p.earlier = p.commitOf(p.world.base)
	}
	return p.earlier
}

// keepers is the one of some units that may have what all of them want; empty where none may. A unit
// stands there as often as it wants it.
func (p *past) keepers(units []config.UnitPath, in func(*Commit, *Unit) (bool, error)) map[config.UnitPath]bool {
	tenants := map[string][]config.UnitPath{}
	for _, path := range units {
		tenant := p.entries[path].unit.Tenant
		tenants[tenant] = append(tenants[tenant], path)
	}
	if len(tenants) < 2 {
		return nil
	}
	p.asked = true
	holders := map[string]had{}
	for tenant, some := range tenants {
		for _, path := range slices.Compact(some) {
			holders[tenant] = holders[tenant].or(p.had(path, tenant, in))
		}
	}
	keep := map[config.UnitPath]bool{}
	for tenant, some := range tenants {
		isOldest := true
		for other, had := range holders {
			mayFirst, _ := older(holders[tenant], had)
			isOldest = isOldest && (other == tenant || mayFirst)
		}
		if isOldest && len(some) == 1 {
			keep[some[0]] = true
		}
	}
	return keep
}

// memory is what tells who had something.
type memory struct {
	base     *config.Repository
	releases string // the commits of units
}

// memory is what tells who of some units had something.
func (p *pass) memory(units []config.UnitPath) memory {
	var releases strings.Builder
	if p.Releases != nil {
		for _, path := range units {
			releases.WriteString(string(p.Releases.Newest(path)) + " ")
		}
	}
	return memory{p.world.base, releases.String()}
}

// brings says whether a unit of the commit has an object in a cluster.
func (c *Commit) brings(unit *Unit, wanted clusterObject) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, placement := range unit.Placements {
		if placement.Target.Name.Cluster() != wanted.cluster {
			continue
		}
		bundle, err := c.pass.world.bundle(unit, placement.Target.Name)
		if err != nil || bundle != nil && bundle.Find(wanted.id) != nil {
			return err == nil, err
		}
	}
	return false, nil
}

// has says whether a unit of the commit has a unique value.
func (c *Commit) has(unit *Unit, key uniqueKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := c.compiler.entries[unit.Path].result().values
	return slices.ContainsFunc(values, func(v uniqueValue) bool { return v.uniqueKey == key })
}
