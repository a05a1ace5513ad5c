// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

func TestWrites(t *testing.T) {
	own, shop, moved, search := Tenant{}, Tenant{"shop", "a"}, Tenant{"shop", "b"}, Tenant{"search", "c"}
	plain := Tenant{Name: "plain"}
	for _, c := range []struct {
		name    string
		applied bool
		before  []Tenant
		by      Tenant
		want    []Tenant
		changed bool
	}{
		{"nothing there yet", false, nil, shop, []Tenant{shop}, true},
		{"swell wrote before", true, nil, shop, []Tenant{shop, own}, true},
		{"swell writes", true, nil, own, nil, false},
		{"a tenant without an account", false, nil, plain, nil, false},
		{"again", true, []Tenant{shop, own}, shop, []Tenant{shop, own}, false},
		{"another account", true, []Tenant{shop, own}, moved, []Tenant{moved, own}, true},
		{"another tenant", true, []Tenant{shop}, search, []Tenant{search, shop}, true},
		{"and back", true, []Tenant{search, shop}, shop, []Tenant{shop, search}, true},
		{"without an account from now on", true, []Tenant{shop}, plain, []Tenant{plain, shop}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := &Target{Tenants: c.before}
			if c.applied {
				target.Applied = "d"
			}
			s := &State{Units: map[config.UnitPath]*Unit{"u": {Path: "u", Targets: map[config.TargetName]*Target{"c/a": target}}}}
			s.Writes("u", "c/a", c.by)
			if diff := cmp.Diff(c.want, target.Tenants); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := len(s.changed) > 0; got != c.changed {
				t.Errorf("changed %t, want %t", got, c.changed)
			}
			s.Writes("u", "none", c.by)
			s.Writes("none", "c/a", c.by)
		})
	}
	target := &Target{Tenants: []Tenant{search, shop, own}}
	if target.cleaned(); !cmp.Equal(target.Tenants, []Tenant{search}) {
		t.Errorf("cleaned: %v", target.Tenants)
	}
}
