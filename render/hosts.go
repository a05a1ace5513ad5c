// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Hosts knows which units have each host name in each cluster. The zero value has none.
type Hosts struct {
	clusters map[string]*clusterHosts
	version  int // another one after each change
}

// clusterHosts are the host names of one cluster.
type clusterHosts struct {
	units     map[string]map[config.UnitPath]bool // by name
	wildcards int                                 // names that are wildcards
}

// HostsOf are the host names of units: those where traffic comes in, or those where it goes on, see
// [object.Host].
func HostsOf(units Units, listens bool) *Hosts {
	var h Hosts
	for _, unit := range units.All() {
		h.add(unit, func(name sharedName) bool { return name.Listens == listens })
	}
	return &h
}

// add enters the host names of a unit that are to count.
func (h *Hosts) add(unit *Unit, counts func(sharedName) bool) {
	for cluster, name := range unit.hosts(counts) {
		in := h.clusters[cluster]
		if in == nil {
			in = &clusterHosts{units: map[string]map[config.UnitPath]bool{}}
			if h.clusters == nil {
				h.clusters = map[string]*clusterHosts{}
			}
			h.clusters[cluster] = in
		}
		if in.units[name] == nil {
			in.units[name] = map[config.UnitPath]bool{}
			in.wildcards += countWildcard(name)
		}
		in.units[name][unit.Path] = true
		h.version++
	}
}

// drop takes the host names of a unit out again.
func (h *Hosts) drop(unit *Unit) {
	for cluster, name := range unit.hosts(allNames) {
		in := h.clusters[cluster]
		if in == nil || in.units[name] == nil {
			continue // the unit has it twice
		}
		delete(in.units[name], unit.Path)
		if len(in.units[name]) == 0 {
			delete(in.units, name)
			in.wildcards -= countWildcard(name)
		}
		h.version++
	}
}

func countWildcard(name string) int {
	if strings.HasPrefix(name, "*.") {
		return 1
	}
	return 0
}

func allNames(sharedName) bool { return true }

// hosts are the host names of the unit that count with their clusters, some of them several times.
func (u *Unit) hosts(counts func(sharedName) bool) iter.Seq2[string, string] {
	return func(yield func(cluster, name string) bool) {
		for _, name := range u.sharedNames {
			if name.Host == "" || !counts(name) {
				continue
			}
			for _, i := range name.Places {
				if !yield(u.Placements[i].Target.Name.Cluster(), name.Host) {
					return
				}
			}
		}
	}
}

// having are the units with exactly this name, sorted.
func (h *clusterHosts) having(name string) []config.UnitPath {
	return slices.Sorted(maps.Keys(h.units[name]))
}

// above are the name and the wildcards with units that it falls under.
func (h *clusterHosts) above(name string) []string {
	names := []string{name}
	if h.wildcards > 0 {
		for _, wildcard := range object.Wildcards(name) {
			if len(h.units[wildcard]) > 0 {
				names = append(names, wildcard)
			}
		}
	}
	return names
}

// rivals are the units with names that several units have, sorted.
func (h *Hosts) rivals() []config.UnitPath {
	units := map[config.UnitPath]bool{}
	for _, in := range h.clusters {
		for _, name := range in.contested() {
			for _, above := range in.above(name) {
				maps.Copy(units, in.units[above])
			}
		}
	}
	return slices.Sorted(maps.Keys(units))
}

// contested are the names of a cluster that several units have, also by a wildcard; sorted.
func (h *clusterHosts) contested() (names []string) {
	for name, units := range h.units {
		if len(units) > 1 || len(h.above(name)) > 1 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Others are the units besides one that have a host name in a cluster for the same as it does, also
// by a wildcard; sorted.
func (h *Hosts) Others(unit config.UnitPath, cluster, name string) (others []config.UnitPath) {
	in := h.clusters[cluster]
	if in == nil {
		return nil
	}
	for _, above := range in.above(name) {
		others = append(others, in.having(above)...)
	}
	if suffix, isWildcard := strings.CutPrefix(name, "*"); isWildcard {
		for below := range in.units {
			if strings.HasSuffix(below, suffix) && below != name {
				others = append(others, in.having(below)...)
			}
		}
	}
	slices.Sort(others)
	return slices.DeleteFunc(slices.Compact(others), func(other config.UnitPath) bool { return other == unit })
}
