// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hmarr/codeowners"
)

// unitsWhere are the units of head that a function is true of, sorted; never nil.
func (c *ruleComparison) unitsWhere(isConcerned func(*Unit) bool) []UnitPath {
	units := []UnitPath{}
	for unit := range c.head.Units() {
		if isConcerned(unit) {
			units = append(units, unit.Path)
		}
	}
	slices.Sort(units)
	return units
}

// unitsIn are the units that are in one of two wheres on a target and not in the other one. isOther
// says that the document says something else of those that are in both, too. Nil is a document
// that is not there.
func (c *ruleComparison) unitsIn(before, now *Where, isOther bool) []UnitPath {
	type alike struct { // units with the same answer
		scope             placeScope
		inBefore, inAfter bool
	}
	concerned := map[alike]bool{}
	return c.unitsWhere(func(unit *Unit) bool {
		like := alike{scopeOf(unit.Defaults), before.takesUnit(unit.Path), now.takesUnit(unit.Path)}
		if !like.inBefore && !like.inAfter {
			return false
		}
		found, known := concerned[like]
		if !known {
			found = slices.ContainsFunc(c.placesOf(like.scope, unit.Defaults), func(scope Place) bool {
				scope.Unit = unit.Path
				inBefore, inNow := before != nil && before.Has(scope), now != nil && now.Has(scope)
				return inBefore != inNow || isOther && inNow
			})
			concerned[like] = found
		}
		return found
	})
}

// placeScope is all of Defaults that says where units are placed, and in which waves.
type placeScope struct {
	tenant, rollout, placement string
	isPlaced                   bool
}

// scopeOf is that of Defaults; zero where their units are placed nowhere.
func scopeOf(d *Defaults) placeScope {
	if d.Placement == nil || len(d.Problems) > 0 {
		return placeScope{}
	}
	return placeScope{d.Tenant, d.Rollout, fmt.Sprint(*d.Placement), true} // maps are printed by their keys
}

// placesOf are where units with these Defaults are placed in head, without the unit.
func (c *ruleComparison) placesOf(scope placeScope, d *Defaults) []Place {
	places, known := c.places[scope]
	if !known {
		places = c.head.PlacesOf(d)
		c.places[scope] = places
	}
	return places
}

// PlacesOf are where units with these Defaults are placed, in the order of the fleet, without the
// unit. A target that no wave takes has a place without a wave.
func (r *Repository) PlacesOf(d *Defaults) (places []Place) {
	if d.Placement == nil || len(d.Problems) > 0 {
		return nil
	}
	var targets []TargetName
	labels := map[TargetName]map[string]string{}
	for _, cluster := range r.Clusters {
		if !r.Takes(cluster, d.Tenant) {
			continue
		}
		for _, target := range cluster.Targets(d.Placement.WholeClusters) {
			if d.Placement.Match.Matches(target.Labels) {
				targets, labels[target.Name] = append(targets, target.Name), target.Labels
			}
		}
	}
	rollout := r.Rollouts[d.Rollout]
	waves := map[TargetName]int{}
	if rollout != nil {
		waves = rollout.WavesOf(targets, func(name TargetName) map[string]string { return labels[name] })
	}
	for _, name := range targets {
		scope := Place{Tenant: d.Tenant, Target: name, Labels: labels[name]}
		if i, hasWave := waves[name]; hasWave {
			scope.Wave = rollout.Waves[i].Name
		}
		places = append(places, scope)
	}
	return places
}

// Takes says whether units of a tenant may be placed on a cluster, by the cluster and by the Tenant.
func (r *Repository) Takes(cluster *Cluster, tenant string) bool {
	return cluster.Allows(tenant) && r.Tenants[tenant].OnCluster(cluster.Name)
}

// rules are the owners by pattern; where a pattern stands twice, those of its last line.
func (o *Owners) rules() any {
	rules := map[string]any{}
	for _, section := range o.sections {
		for _, rule := range section {
			rules[rule.RawPattern()] = ownersText(rule)
		}
	}
	return rules
}

func ownersText(rule codeowners.Rule) string {
	owners := make([]string, len(rule.Owners))
	for i, owner := range rule.Owners {
		owners[i] = owner.String()
	}
	return strings.Join(owners, " ")
}

// unitsOfOwners are the units of head with a file that others own than did. Files that no line is
// about which differs are not looked at, unless none differs: then the order does.
func (c *ruleComparison) unitsOfOwners() []UnitPath {
	var differ []codeowners.Rule
	for _, both := range [][2]*Owners{{&c.base.Owners, &c.head.Owners}, {&c.head.Owners, &c.base.Owners}} {
		for _, section := range both[0].sections {
			for _, rule := range section {
				if !both[1].has(rule) {
					differ = append(differ, rule)
				}
			}
		}
	}
	return c.unitsWhere(func(unit *Unit) bool {
		return slices.ContainsFunc(unit.Files, func(file string) bool {
			isNamed := len(differ) == 0 || slices.ContainsFunc(differ, func(rule codeowners.Rule) bool {
				matches, err := rule.Match(file)
				return matches && err == nil
			})
			return isNamed && !slices.Equal(c.base.Owners.Of(file), c.head.Owners.Of(file))
		})
	})
}

// has says whether a line says the same as another one.
func (o *Owners) has(rule codeowners.Rule) bool {
	return slices.ContainsFunc(o.sections, func(section codeowners.Ruleset) bool {
		return slices.ContainsFunc(section, func(own codeowners.Rule) bool {
			return own.RawPattern() == rule.RawPattern() && ownersText(own) == ownersText(rule)
		})
	})
}
