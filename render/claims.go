// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
)

// claims knows which units want which object in which cluster. It is kept up
// to date from commit to commit, so that its cost is that of what changed.
type claims struct {
	wanted    map[claimKey][]claim
	contested map[claimKey]bool // those that more than one bundle wants
	// namespaces says whether a claim on a Namespace came or went.
	namespaces bool
}

type claimKey struct {
	cluster string
	id      ObjectID
}

type claim struct {
	unit   config.UnitPath
	target config.TargetName
	object *Object
}

// update replaces the claims of units that are not the same in next, and
// finds anew what units need of each other.
func (c *claims) update(previous, next map[config.UnitPath]*rendered) {
	if c.wanted == nil {
		c.wanted, c.contested = map[claimKey][]claim{}, map[claimKey]bool{}
	}
	c.namespaces = false
	for path, was := range previous {
		if next[path] != was {
			c.each(was.unit, c.drop)
		}
	}
	for path, is := range next {
		if previous[path] != is {
			c.each(is.unit, c.add)
		}
	}
	for path, is := range next {
		if previous[path] == is && !c.namespaces {
			continue
		}
		if needs := c.needs(is.unit); !maps.EqualFunc(needs, is.unit.Needs, slices.Equal) {
			unit := *is.unit
			unit.Needs = needs
			next[path] = &rendered{is.key, &unit}
		}
	}
}

func (c *claims) each(unit *Unit, do func(claimKey, claim)) {
	for target, bundle := range unit.Bundles {
		cluster := target.Cluster()
		for _, o := range bundle.Objects {
			do(claimKey{cluster, o.ID}, claim{unit.Path, target, o})
		}
	}
}

func (c *claims) add(key claimKey, by claim) {
	c.namespaces = c.namespaces || key.id.Kind == "Namespace"
	all := append(c.wanted[key], by)
	c.wanted[key] = all
	if len(all) > 1 {
		c.contested[key] = true
	}
}

func (c *claims) drop(key claimKey, by claim) {
	c.namespaces = c.namespaces || key.id.Kind == "Namespace"
	left := slices.DeleteFunc(c.wanted[key], func(other claim) bool { return other.unit == by.unit && other.target == by.target })
	if len(left) < 2 {
		delete(c.contested, key)
	}
	if len(left) == 0 {
		delete(c.wanted, key)
		return
	}
	c.wanted[key] = left
}

// contest adds a problem to every unit that wants an object which another
// bundle in the same cluster wants too.
func (c *claims) contest(s *Snapshot) {
	for key := range c.contested {
		all := slices.Clone(c.wanted[key])
		slices.SortFunc(all, func(a, b claim) int {
			return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.target, b.target))
		})
		for i, mine := range all {
			other := all[0]
			if i == 0 {
				other = all[1]
			}
			message := fmt.Sprintf("%s in cluster %s: wanted by unit %s too, at %s", key.id, key.cluster, other.unit, other.object.Spec)
			if other.unit == mine.unit {
				message = fmt.Sprintf("%s in cluster %s: wanted by both %s and %s; put target.cell into its name or namespace, or place the unit with topology cluster",
					key.id, key.cluster, all[0].target, all[1].target)
			}
			unit := *s.Units[mine.unit]
			unit.Bundles, unit.Needs = nil, nil
			unit.Problems = append(slices.Clone(unit.Problems), config.Problem{Position: mine.object.Spec, Code: config.CodeDuplicate,
				Message: message, Unit: mine.unit, Via: via(mine.object.Template)}).Sorted()
			s.Units[mine.unit] = &unit
		}
	}
}

func comparePlaced(a, b Placed) int {
	return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Target, b.Target))
}

// needs finds the units that bring the namespaces which the unit's objects
// live in, sorted.
func (c *claims) needs(unit *Unit) map[config.TargetName][]Placed {
	var needs map[config.TargetName][]Placed
	for target, bundle := range unit.Bundles {
		cluster := target.Cluster()
		for _, namespace := range bundle.namespaces {
			for _, provider := range c.wanted[claimKey{cluster, ObjectID{Kind: "Namespace", Name: namespace}}] {
				need := Placed{provider.unit, provider.target}
				if provider.unit == unit.Path || slices.Contains(needs[target], need) {
					continue
				}
				if needs == nil {
					needs = map[config.TargetName][]Placed{}
				}
				needs[target] = append(needs[target], need)
			}
		}
		slices.SortFunc(needs[target], comparePlaced)
	}
	return needs
}
