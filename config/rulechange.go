// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"maps"
	"reflect"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// RuleChanges name what differs in the rules by which two states of a monorepo judge
// their units, sorted: "Checker nginx", "CODEOWNERS", "Tenant shop", "allowedChanges",
// "checks", "facts", "policies", and "tenants of Cluster sas-1" for whom it takes.
func RuleChanges(base, head *Repository) (changed []string) {
	for name := range maps.Keys(merged(base.Tenants, head.Tenants)) {
		if !base.Tenants[name].same(head.Tenants[name]) {
			changed = append(changed, "Tenant "+name)
		}
	}
	for _, c := range head.Clusters {
		i := slices.IndexFunc(base.Clusters, func(was *Cluster) bool { return was.Name == c.Name })
		if i >= 0 && !slices.Equal(base.Clusters[i].Tenants, c.Tenants) {
			changed = append(changed, "tenants of Cluster "+c.Name)
		}
	}
	if base.Owners.hash != head.Owners.hash {
		changed = append(changed, "CODEOWNERS")
	}
	for _, list := range [][2][]*Checker{{base.Checkers, head.Checkers}, {head.Checkers, base.Checkers}} {
		for _, each := range list[0] {
			if !slices.ContainsFunc(list[1], each.Same) || !sameSchema(each, base.Tree, head.Tree) {
				changed = append(changed, "Checker "+each.Name)
			}
		}
	}
	for name, differ := range map[string]bool{"allowedChanges": !slices.EqualFunc(base.AllowedChanges, head.AllowedChanges, sameAllowed), "checks": base.Checks != head.Checks, "facts": base.FactsHash != head.FactsHash, "policies": base.PoliciesHash != head.PoliciesHash} {
		if differ {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

func merged(a, b map[string]*Tenant) map[string]*Tenant {
	both := map[string]*Tenant{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// same says whether two tenants say the same; either may be nil.
func (t *Tenant) same(other *Tenant) bool {
	if t == nil || other == nil {
		return t == other
	}
	a, b := *t, *other
	a.Position, b.Position = document.Position{}, document.Position{}
	return reflect.DeepEqual(a, b)
}

// Same says whether two Checkers say the same, wherever they stand.
func (c *Checker) Same(other *Checker) bool {
	a, b := *c, *other
	a.Position, b.Position = document.Position{}, document.Position{}
	return reflect.DeepEqual(a, b)
}

// sameSchema says whether the schema that a Checker judges by is the same in both trees.
// A Checker that judges by none has the same.
func sameSchema(c *Checker, base, head Tree) bool {
	if c.Schema == "" {
		return true
	}
	was, lost := base.Hash(c.Schema)
	is, missing := head.Hash(c.Schema)
	return was == is && (lost == nil) == (missing == nil)
}

func sameAllowed(a, b AllowedChange) bool {
	return a.Rule == b.Rule && a.At == b.At && a.Reason == b.Reason
}
