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
)

// holder is a tenant whose units have a host name in a cluster.
type holder struct {
	cluster, name, tenant string
}

// disputes are about the host names that units of several tenants have in a cluster.
type disputes struct {
	*world
	hosts   *Hosts
	entries map[config.UnitPath]*entry
	before  earlier
	names   map[config.UnitPath]map[string][]sharedName // of units, by host name
	refused map[holder]bool
	found   map[config.UnitPath]*targetProblems
}

// disputed are the problems of units with host names of others, and what they depend on.
type disputed struct {
	version  int               // of the names
	rivals   []config.UnitPath // with names that several units have
	fleet    string
	evidence evidence
	problems map[config.UnitPath]document.Problems
}

// hostProblems are the problems of units with host names that another tenant's units have in the same
// cluster.
func (p *pass) hostProblems() map[config.UnitPath]document.Problems {
	if len(p.world.judges()) == 0 {
		return nil
	}
	known := p.disputed
	found := disputed{version: p.hosts.version, rivals: known.rivals, fleet: p.world.repository.FleetHash}
	if known.version != found.version {
		found.rivals = p.hosts.rivals()
	}
	found.evidence = p.evidence(found.rivals)
	if known.version == found.version && known.fleet == found.fleet && known.evidence == found.evidence {
		return known.problems
	}
	d := disputes{world: p.world, hosts: &p.hosts, entries: p.entries, before: earlier{pass: p},
		names: map[config.UnitPath]map[string][]sharedName{}, refused: map[holder]bool{}, found: map[config.UnitPath]*targetProblems{}}
	for _, cluster := range slices.Sorted(maps.Keys(p.hosts.clusters)) {
		in := p.hosts.clusters[cluster]
		for _, name := range in.contested() {
			for _, above := range in.above(name) {
				d.judgeAll(d.holders(cluster, name), d.holders(cluster, above))
			}
		}
	}
	found.problems = map[config.UnitPath]document.Problems{}
	for path, problems := range d.found {
		found.problems[path] = problems.ofUnit(path, p.entries[path].placed)
	}
	d.before.markLate(found.problems)
	if p.disputed = found; d.before.unknown {
		p.disputed = disputed{version: -1}
	}
	return found.problems
}

// holders are the tenants with a name, and their units; both sorted.
func (d *disputes) holders(cluster, name string) (list []holding) {
	for _, unit := range d.hosts.clusters[cluster].having(name) {
		tenant := d.entries[unit].unit.Tenant
		i := slices.IndexFunc(list, func(h holding) bool { return h.tenant == tenant })
		if i < 0 {
			i = len(list)
			list = append(list, holding{holder: holder{cluster, name, tenant}})
		}
		list[i].units = append(list[i].units, unit)
	}
	slices.SortFunc(list, func(a, b holding) int { return strings.Compare(a.tenant, b.tenant) })
	return list
}

// holding are the units of a holder, sorted.
type holding struct {
	holder
	units []config.UnitPath
}

// judgeAll judges each of some holders of a name with each of the others.
func (d *disputes) judgeAll(some, others []holding) {
	for _, first := range some {
		for _, second := range others {
			if first.tenant == second.tenant || d.refused[first.holder] && d.refused[second.holder] {
				continue
			}
			mayFirst, maySecond := d.judge(first, second)
			if !mayFirst {
				d.refuse(first, second)
			}
			if !maySecond {
				d.refuse(second, first)
			}
		}
	}
}

// judge says which of two may have the name: the one whose Tenant lists it, or else the one who had
// it before, or none. Where the Tenants of both list it, both may.
func (d *disputes) judge(first, second holding) (mayFirst, maySecond bool) {
	mayFirst, maySecond = d.lists(first.holder), d.lists(second.holder)
	if mayFirst || maySecond {
		return mayFirst, maySecond
	}
	mayFirst, maySecond = d.hadIt(first), d.hadIt(second)
	return mayFirst && !maySecond, maySecond && !mayFirst
}

// lists says whether a holder has the name by the documents of all that judge.
func (d *disputes) lists(h holder) bool {
	return !slices.ContainsFunc(d.judges(), func(j judge) bool {
		t := j.Tenants[h.tenant]
		return t == nil || !t.Lists(h.name)
	})
}

// hadIt says whether one of the units had the name before.
func (d *disputes) hadIt(h holding) bool {
	return slices.ContainsFunc(h.units, func(unit config.UnitPath) bool {
		return d.before.hadIt(unit, func(had *holdings) bool { return had.hosts[clusterHost{h.cluster, h.name}] })
	})
}

// namesOf are the host names of a unit.
func (d *disputes) namesOf(path config.UnitPath) map[string][]sharedName {
	if known := d.names[path]; known != nil {
		return known
	}
	names := map[string][]sharedName{}
	for _, name := range d.entries[path].unit.sharedNames {
		names[name.Host] = append(names[name.Host], name)
	}
	d.names[path] = names
	return names
}

// refuse notes that units may not have their name because of others.
func (d *disputes) refuse(h, by holding) {
	if d.refused[h.holder] {
		return
	}
	d.refused[h.holder] = true
	for _, path := range h.units {
		for _, name := range d.namesOf(path)[h.name] {
			problem := name.Problem
			problem.Message += fmt.Sprintf(" in cluster %s: unit %s of tenant %s has it, too; the hosts of a Tenant say whose it is",
				h.cluster, by.units[0], by.tenant)
			d.add(path, name, h.cluster, problem)
		}
	}
}

// add adds a problem of a unit on those of its targets with the name that are in a cluster.
func (d *disputes) add(path config.UnitPath, name sharedName, cluster string, problem document.Problem) {
	if d.found[path] == nil {
		d.found[path] = &targetProblems{}
	}
	for _, i := range name.Places {
		if d.entries[path].placed[i].cluster.Name == cluster && len(d.found[path].problems) < maxUnitProblems {
			d.found[path].placement = i
			d.found[path].add(problem)
		}
	}
}
