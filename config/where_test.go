// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

// TestWhereHas: a Where has the places that have each of what it names, and no others.
func TestWhereHas(t *testing.T) {
	cart := Place{Unit: "services/shop/cart", Tenant: "shop", Target: "sas-1/a", Labels: map[string]string{"ring": "main"}, Wave: "canary"}
	for name, c := range map[string]struct {
		where Where
		has   bool
	}{
		"everything":                {Where{}, true},
		"a cluster":                 {Where{Targets: []TargetName{"vla-1", "sas-1"}}, true},
		"another target":            {Where{Targets: []TargetName{"sas-1/b"}}, false},
		"a folder":                  {Where{Units: []UnitPath{"services/shop"}}, true},
		"a folder named alike":      {Where{Units: []UnitPath{"services/sho"}}, false},
		"a tenant":                  {Where{Tenants: []string{"search", "shop"}}, true},
		"another tenant":            {Where{Tenants: []string{"search"}}, false},
		"a wave":                    {Where{Waves: []string{"canary"}}, true},
		"another wave":              {Where{Waves: []string{"main"}}, false},
		"a label":                   {Where{Match: Match{Labels: map[string][]string{"ring": {"main"}}}}, true},
		"another label":             {Where{Match: Match{Labels: map[string][]string{"ring": {"canary"}}}}, false},
		"a cluster, another tenant": {Where{Targets: []TargetName{"sas-1"}, Tenants: []string{"search"}}, false},
	} {
		if got := c.where.Has(cart); got != c.has {
			t.Errorf("%s: %t, want %t", name, got, c.has)
		}
	}
}
