// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// Units of several tenants may want one thing: an object, a unique value, a host name. Then the one
// that had it keeps it, and the newcomer has a problem, so that no tenant stops another one. In a fleet
// a unit had what its newest release has; where no fleet is known, what it has in the base. Where that does
// not tell, each of them has a problem, as units of one tenant have that want one thing.

// Releases tell what the units of a fleet were released with. They are asked about units that want
// what others want.
type Releases interface {
	// Newest is the newest release of the unit that began, or that waits for its turn.
	Newest(config.UnitPath) Release
	// Commit renders units of it; nil where Git does not have it any more. The error is for what may
	// pass.
	Commit(config.Commit) (*Commit, error)
}

// Release is what a unit was released with. The zero value is nothing.
type Release struct {
	Commit config.Commit
	// Bundles are those that it brings, by target; nil where that is not known.
	Bundles map[config.TargetName]object.Digest
	// Same says that it is the release of the commit that is rendered.
	Same bool
}

// brings says whether the release brings the bundles of a unit.
func (r *Release) brings(unit *Unit) bool {
	return r.Same || len(r.Bundles) > 0 && maps.Equal(r.Bundles, unit.digests())
}

// Equal says whether two releases bring the same.
func (r Release) Equal(other Release) bool {
	return r.Commit == other.Commit && r.Same == other.Same && maps.Equal(r.Bundles, other.Bundles)
}

// Release is that of a unit which has what the commit wants; the zero value where it wants none of it.
func (s *Snapshot) Release(path config.UnitPath) Release {
	unit := s.Units.Get(path)
	if unit == nil || len(unit.Problems) > 0 {
		return Release{}
	}
	return Release{Commit: s.Commit, Bundles: unit.digests()}
}

// digests are those of the unit's bundles, by target.
func (u *Unit) digests() map[config.TargetName]object.Digest {
	digests := map[config.TargetName]object.Digest{}
	for _, placement := range u.Placements {
		if placement.Digest != "" {
			digests[placement.Target.Name] = placement.Digest
		}
	}
	return digests
}

// key is another one for another release.
func (r *Release) key() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %t", r.Commit, r.Same)
	for _, name := range slices.Sorted(maps.Keys(r.Bundles)) {
		fmt.Fprintf(&text, " %s %s", name, r.Bundles[name])
	}
	return text.String()
}

// holdings are what a unit had of what others may want.
type holdings struct {
	tenant  string
	objects map[clusterObject]bool
	values  map[uniqueKey]bool
	hosts   map[clusterHost]bool
}

// clusterHost is a host name in a cluster.
type clusterHost struct{ cluster, name string }

// pastKey is a unit in a commit.
type pastKey struct {
	commit config.Commit
	unit   config.UnitPath
}

const (
	// maxLoaded is how many earlier commits a pass loads to see what units had. Others are asked for again, and
	// their units remembered.
	maxLoaded = 8
	// maxRemembered is how many units in earlier commits are remembered.
	maxRemembered = 1000
)

// earlier asks what units had before the commit of a pass.
type earlier struct {
	*pass
	asked   bool // somebody asked
	unknown bool // something could not be told, and may be later
}

// markLate has all that was found asked again, where something could not be told.
func (p *earlier) markLate(found map[config.UnitPath]document.Problems) {
	if !p.unknown {
		return
	}
	for _, problems := range found {
		for i := range problems {
			problems[i].Retry = true
		}
	}
}

// former is a unit in an earlier commit.
type former struct {
	commit *Commit // nil: there is none, or Git does not have it any more
	unit   *Unit   // nil where it is not in the commit, or had a problem there, or is late
	late   bool    // something cannot be told now, and may be later
}

// formerOf is a unit as it was before.
func (p *pass) formerOf(path config.UnitPath) (f former) {
	if p.Releases == nil {
		return formerIn(p.inBase(), path)
	}
	r := p.Releases.Newest(path)
	if r.Bundles != nil {
		if f = formerIn(p.inBase(), path); f.unit != nil && r.brings(f.unit) {
			return f
		}
	}
	if r.Commit == "" {
		return former{late: f.late}
	}
	commit, late := p.load(r.Commit)
	late = late || f.late
	f = formerIn(commit, path)
	f.late = f.late || late
	return f
}

// formerIn is a unit in a commit, which may be nil.
func formerIn(commit *Commit, path config.UnitPath) former {
	if commit == nil {
		return former{}
	}
	unit, err := commit.Unit(path)
	switch {
	case err != nil, unit != nil && unit.Problems.Retry():
		return former{commit: commit, late: true}
	case unit != nil && len(unit.Problems) > 0:
		return former{commit: commit}
	}
	return former{commit: commit, unit: unit}
}

// load loads an earlier commit, unless too many were loaded: then it is late, as one that cannot be read.
func (p *pass) load(commit config.Commit) (found *Commit, late bool) {
	if known, ok := p.loaded[commit]; ok {
		return known, false
	}
	if len(p.loaded) >= maxLoaded {
		return nil, true
	}
	found, err := p.Releases.Commit(commit)
	if err != nil {
		return nil, true
	}
	if p.loaded == nil {
		p.loaded = map[config.Commit]*Commit{}
	}
	p.loaded[commit] = found
	return found, false
}

// had is what a unit had; nil where it had nothing. same says that it had all that it has.
func (p *earlier) had(path config.UnitPath) (had *holdings, same bool) {
	var key pastKey
	if p.Releases != nil {
		r := p.Releases.Newest(path)
		if r.brings(p.entries[path].unit) {
			return nil, true
		}
		key = pastKey{r.Commit, path}
		if known, ok := p.remembered[key]; ok {
			return known, false
		}
	}
	f := p.formerOf(path)
	if f.unit != nil {
		var err error
		had, err = f.commit.holdings(f.unit)
		f.late = f.late || err != nil
	}
	p.unknown = p.unknown || f.late
	if key.commit != "" && f.commit != p.base && !f.late { // the base may say something else of the tenant
		remember(&p.remembered, key, had)
	}
	return had, false
}

// remember keeps a value of an earlier commit.
func remember[K comparable, V any](known *map[K]V, key K, value V) {
	if *known == nil || len(*known) >= maxRemembered {
		*known = map[K]V{}
	}
	(*known)[key] = value
}

// inBase renders units of the base; nil where there is none.
func (p *pass) inBase() *Commit {
	if p.base == nil && p.world.base != nil {
		p.base = p.commitOf(p.world.base)
	}
	return p.base
}

// keeper is the one of some units that may have what all of them want; ok is false where none may. A unit
// stands there as often as it wants it.
func (p *earlier) keeper(units []config.UnitPath, has func(*holdings) bool) (keeper config.UnitPath, ok bool) {
	tenants := map[string][]config.UnitPath{}
	for _, path := range units {
		tenant := p.entries[path].unit.Tenant
		tenants[tenant] = append(tenants[tenant], path)
	}
	if len(tenants) < 2 {
		return "", false
	}
	p.asked = true
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		hadIt := func(path config.UnitPath) bool { return p.hadIt(path, has) }
		if !slices.ContainsFunc(tenants[tenant], hadIt) {
			continue
		}
		if keeper != "" || len(tenants[tenant]) > 1 {
			return "", false
		}
		keeper = tenants[tenant][0]
	}
	return keeper, keeper != ""
}

// hadIt says whether a unit, of the same tenant, had something that it has.
func (p *earlier) hadIt(path config.UnitPath, has func(*holdings) bool) bool {
	had, same := p.had(path)
	return same || had != nil && had.tenant == p.entries[path].unit.Tenant && has(had)
}

// evidence is what tells who had something.
type evidence struct {
	base     *config.Repository
	releases string
}

// evidence is what tells who of some units had something.
func (p *pass) evidence(units []config.UnitPath) evidence {
	if p.Releases == nil {
		return evidence{base: p.world.base}
	}
	var releases strings.Builder
	for _, path := range units {
		r := p.Releases.Newest(path)
		releases.WriteString(r.key() + "\n")
	}
	return evidence{releases: releases.String()}
}

// holdings are those of a unit of the commit.
func (c *Commit) holdings(unit *Unit) (*holdings, error) {
	bundles, err := c.bundlesOf(unit)
	if err != nil {
		return nil, err
	}
	h := &holdings{unit.Tenant, map[clusterObject]bool{}, map[uniqueKey]bool{}, map[clusterHost]bool{}}
	for _, b := range bundles {
		for _, o := range b.Objects {
			h.objects[clusterObject{b.Target.Cluster(), o.ID}] = true
		}
	}
	for cluster, name := range unit.hosts(allNames) {
		h.hosts[clusterHost{cluster, name}] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.compiler.entries[unit.Path].result().values {
		h.values[v.uniqueKey] = true
	}
	return h, nil
}

// bundlesOf are those of a unit of the commit.
func (c *Commit) bundlesOf(unit *Unit) ([]*object.Bundle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pass.world.bundles(unit)
}
