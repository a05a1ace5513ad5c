// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/swell-sh/swell/config"
)

// Tenant is on whose behalf something is written.
type Tenant struct {
	Name string `json:"name,omitempty"`
	// Account is the user that the tenant's requests were made as when this was
	// noted; empty: swell's own. The fleet's word is newer, where it has one.
	Account string `json:"account,omitempty"`
}

// Writes notes that a tenant is about to write to a target. So its objects there can be
// checked and deleted as its account, also when the unit is gone or belongs to another
// tenant. It must be stored before the first write.
func (s *State) Writes(path config.UnitPath, name config.TargetName, by Tenant) {
	u := s.Units[path]
	if u == nil || u.Targets[name] == nil {
		return
	}
	t := u.Targets[name]
	before := t.Tenants
	if len(before) == 0 && (t.Applied != "" || by.Account == "") {
		before = []Tenant{{}} // swell itself
	}
	after := append([]Tenant{by}, slices.DeleteFunc(slices.Clone(before), func(known Tenant) bool { return known.Name == by.Name })...)
	if !slices.ContainsFunc(after, func(known Tenant) bool { return known.Account != "" }) {
		after = nil
	}
	if slices.Equal(after, t.Tenants) {
		return
	}
	t.Tenants = after
	s.touch(path)
}

// cleaned forgets all tenants but the last one, when only its objects are left.
func (t *Target) cleaned() {
	if len(t.Tenants) > 1 {
		t.Tenants = slices.Clone(t.Tenants[:1])
	}
}

// Account is that of the tenant that last wrote the unit's objects on a target,
// as far as is known; empty is swell's own.
func (s *State) Account(path config.UnitPath, name config.TargetName) string {
	if u := s.Units[path]; u != nil && u.Targets[name] != nil && len(u.Targets[name].Tenants) > 0 {
		return u.Targets[name].Tenants[0].Account
	}
	return ""
}
