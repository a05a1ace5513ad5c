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
// "checks", "facts", "policies".
func RuleChanges(base, head *Repository) (changed []string) {
	for name := range maps.Keys(merged(base.Tenants, head.Tenants)) {
		if !base.Tenants[name].same(head.Tenants[name]) {
			changed = append(changed, "Tenant "+name)
		}
	}
	if base.Owners.hash != head.Owners.hash {
		changed = append(changed, "CODEOWNERS")
	}
	for _, list := range [][2][]*Checker{{base.Checkers, head.Checkers}, {head.Checkers, base.Checkers}} {
		for _, each := range list[0] {
			if !slices.ContainsFunc(list[1], each.Same) {
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
	both := maps.Clone(a)
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

func sameAllowed(a, b AllowedChange) bool {
	return a.Rule == b.Rule && a.At == b.At && a.Reason == b.Reason
}
