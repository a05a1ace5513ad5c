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
// their units, sorted: "Tenant shop", "CODEOWNERS".
func RuleChanges(base, head *Repository) (changed []string) {
	for name := range maps.Keys(merged(base.Tenants, head.Tenants)) {
		if !base.Tenants[name].same(head.Tenants[name]) {
			changed = append(changed, "Tenant "+name)
		}
	}
	if base.Owners.hash != head.Owners.hash {
		changed = append(changed, "CODEOWNERS")
	}
	slices.Sort(changed)
	return changed
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
