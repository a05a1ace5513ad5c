// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
)

// uniqueKey is a value that one spec at most may have. The same spec may have it on
// many targets.
type uniqueKey struct {
	name   string // what it is
	in     kind.UniqueIn
	within string // the cluster or the tenant; empty in the fleet
	value  string
}

func (k uniqueKey) String() string {
	switch k.in {
	case kind.UniqueInCluster:
		return "in cluster " + k.within
	case kind.UniqueInTenant:
		return "of tenant " + k.within
	}
	return "in the fleet"
}

// uniqueValue is one that a unit has.
type uniqueValue struct {
	uniqueKey
	at     document.Position
	spec   document.Position // of the document
	secret bool
}

// shown is the value as a message may have it.
func (v *uniqueValue) shown() string {
	if v.secret {
		return document.Redacted
	}
	return fmt.Sprintf("%q", document.Shorten(v.value))
}

// noteUnique notes a value of a spec of the unit on a target.
func (u *unitRenderer) noteUnique(target config.TargetName, found kind.Unique) {
	v := uniqueValue{uniqueKey: uniqueKey{name: found.Name, in: found.In, value: found.Value}, at: found.At, spec: found.Spec, secret: found.Secret}
	switch found.In {
	case kind.UniqueInCluster:
		v.within = target.Cluster()
	case kind.UniqueInTenant:
		v.within = u.unit.Defaults.Tenant
	}
	i := slices.IndexFunc(u.values, func(known uniqueValue) bool { return known.uniqueKey == v.uniqueKey })
	switch {
	case i < 0:
		u.values = append(u.values, v)
	case u.values[i].spec != v.spec:
		u.found.add(v.problem(u.values[i].at))
	}
}

// problem is that another spec has the value too.
func (v *uniqueValue) problem(other document.Position) document.Problem {
	return document.Problem{Position: v.at, Code: document.CodeUnique, Message: fmt.Sprintf("%s %s: stands at %s too, and has to be the only one %s", v.name, v.shown(), other, v.uniqueKey)}
}

// holders knows which units have each unique value. It is kept up to date from commit
// to commit.
type holders struct {
	units map[uniqueKey][]config.UnitPath
	many  map[uniqueKey]bool // more than one unit has it
}

func newHolders() holders {
	return holders{map[uniqueKey][]config.UnitPath{}, map[uniqueKey]bool{}}
}

func (h holders) add(unit config.UnitPath, values []uniqueValue) {
	for _, v := range values {
		h.put(v.uniqueKey, append(slices.Clip(h.units[v.uniqueKey]), unit))
	}
}

func (h holders) drop(unit config.UnitPath, values []uniqueValue) {
	for _, v := range values {
		others := func(other config.UnitPath) bool { return other == unit }
		h.put(v.uniqueKey, slices.DeleteFunc(slices.Clone(h.units[v.uniqueKey]), others))
	}
}

func (h holders) put(key uniqueKey, units []config.UnitPath) {
	if h.units[key] = units; len(units) == 0 {
		delete(h.units, key)
	}
	if h.many[key] = len(units) > 1; !h.many[key] {
		delete(h.many, key)
	}
}

// collisions are the problems of units that have values of others.
func (p *pass) collisions() map[config.UnitPath]document.Problems {
	before := earlier{pass: p}
	found := map[config.UnitPath]document.Problems{}
	values := map[config.UnitPath][]uniqueValue{}
	valueOf := func(unit config.UnitPath, key uniqueKey) *uniqueValue {
		if _, known := values[unit]; !known {
			values[unit] = mustUnpack(p.entries[unit].claimed).values
		}
		list := values[unit]
		return &list[slices.IndexFunc(list, func(v uniqueValue) bool { return v.uniqueKey == key })]
	}
	for _, key := range slices.SortedFunc(maps.Keys(p.holders.many), compareUnique) {
		units := slices.Sorted(slices.Values(p.holders.units[key]))
		keeper, ok := before.keeper(units, func(h *holdings) bool { return h.values[key] })
		for i, unit := range units {
			if ok && unit == keeper {
				continue
			}
			other, suffix := units[0], ""
			if i == 0 {
				other = units[1]
			}
			if ok {
				other, suffix = keeper, fmt.Sprintf("; unit %s had it before", keeper)
			}
			problem := valueOf(unit, key).problem(valueOf(other, key).at)
			problem.Message += suffix
			problem.Unit = string(unit)
			found[unit] = append(found[unit], problem)
		}
	}
	before.markLate(found)
	return found
}

func compareUnique(a, b uniqueKey) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.in, b.in), cmp.Compare(a.within, b.within), cmp.Compare(a.value, b.value))
}
