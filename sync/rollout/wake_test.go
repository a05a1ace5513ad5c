// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// TestTenantOfAUnitAtRest: a Mask of a tenant holds for a unit that the commit gives to that
// tenant, also where nothing else of it changes; and goes on to hold while a problem in the
// folder's Defaults hides whose the unit is.
func TestTenantOfAUnitAtRest(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all"}}}
	want := func(u WantedUnit) *Wanted {
		u.Targets = map[config.TargetName]WantedTarget{"sas-1/a": {Digest: "1"}}
		if u.Frozen != "" {
			u.Targets = nil
		} else {
			u.Rollout = spec
		}
		return &Wanted{Commit: "c", Units: map[config.UnitPath]*WantedUnit{"cart": &u},
			Bounds: Bounds{Masks: []Mask{{Name: "m", Where: config.Where{Tenants: []string{"pay"}}}}}}
	}
	s := &State{}
	s.Simulate(want(WantedUnit{Tenant: "shop"}))
	at := object.UnitTarget{Unit: "cart", Target: "sas-1/a"}
	for _, c := range []struct {
		is     WantedUnit
		masked bool
	}{
		{WantedUnit{Tenant: "shop"}, false},
		{WantedUnit{Tenant: "pay"}, true},
		{WantedUnit{Frozen: "swell.yaml:3:1: tenant: unknown"}, true},
		{WantedUnit{Tenant: "pay"}, true},
		{WantedUnit{}, false},
	} {
		w := want(c.is)
		s.Decide(w, now)
		if got := s.Masked(w, at, now); (got != "") != c.masked {
			t.Errorf("tenant %q, frozen %q: got mask %q, want one: %t", c.is.Tenant, c.is.Frozen, got, c.masked)
		}
		if got := s.Units["cart"].Targets["sas-1/a"].Masked; (got != "") != c.masked {
			t.Errorf("tenant %q, frozen %q: the target is masked by %q, want a mask: %t", c.is.Tenant, c.is.Frozen, got, c.masked)
		}
	}
}

// TestMaskedBeforeItIsThere: a Mask of a tenant or of labels holds at a place that the commit
// has and the state does not.
func TestMaskedBeforeItIsThere(t *testing.T) {
	w := &Wanted{Commit: "c", Units: map[config.UnitPath]*WantedUnit{"cart": {Tenant: "pay", Targets: map[config.TargetName]WantedTarget{
		"sas-1/a": {Digest: "1", Labels: map[string]string{"site": "sas"}}}}}}
	unitTarget := object.UnitTarget{Unit: "cart", Target: "sas-1/a"}
	for _, c := range []struct {
		where  config.Where
		masked bool
	}{
		{config.Where{Tenants: []string{"pay"}}, true},
		{config.Where{Tenants: []string{"shop"}}, false},
		{config.Where{Match: config.Match{Labels: map[string][]string{"site": {"sas"}}}}, true},
		{config.Where{Match: config.Match{Labels: map[string][]string{"site": {"vla"}}}}, false},
	} {
		w.Masks = []Mask{{Name: "m", Where: c.where}}
		if got := (&State{}).Masked(w, unitTarget, time.Time{}); (got != "") != c.masked {
			t.Errorf("%+v: got mask %q, want one: %t", c.where, got, c.masked)
		}
	}
}
