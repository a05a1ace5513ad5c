// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
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

// TestATenantOfAHeldCommit: a commit that nothing may be taken from gives no unit to another tenant,
// whose Masks would hold there.
func TestATenantOfAHeldCommit(t *testing.T) {
	for _, held := range []string{"", "it has a problem"} {
		s := &State{}
		s.Decide(ofTenants("shop", "till"), time.Time{})
		want := ofTenants("pay", "till")
		want.Held, want.Masks = held, []Mask{{Name: "pay", Where: config.Where{Tenants: []string{"pay"}}}}
		s.Decide(want, time.Time{})
		if masked := s.Units["cart"].Targets["sas-1"].Masked; (masked != "") != (held == "") {
			t.Errorf("held %q: masked %q", held, masked)
		}
	}
}

// TestAnOrderOfATenant: it is about the units of that tenant, and about no others; that of a wave about
// those which have it.
func TestAnOrderOfATenant(t *testing.T) {
	s, want := &State{}, ofTenants("shop", "till")
	for _, a := range s.Decide(want, time.Time{}).Actions {
		s.Record(Outcome{Action: a, Result: Unreachable, Reason: "no route"}, time.Time{})
	}
	for scope, left := range map[order.Scope]int{{Wave: "none"}: 1, {Tenant: "till"}: 0, {Tenant: "till", Wave: "all"}: 0} {
		s.Units["till"].Targets["sas-1"].Attempts = 1
		s.Obey(order.Order{Verb: order.Retry, Scope: scope, By: "ann"}, want, time.Time{})
		cart, till := s.Units["cart"].Targets["sas-1"].Attempts, s.Units["till"].Targets["sas-1"].Attempts
		if cart != 1 || till != left {
			t.Errorf("%s: %d failed attempts of cart are counted, and %d of till; want 1 and %d", scope.Text(), cart, till, left)
		}
	}
}

// ofTenants wants the units cart and till, each of its tenant.
func ofTenants(cart, till string) *Wanted {
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all"}}}
	w := &Wanted{Commit: config.Commit(cart), Units: map[config.UnitPath]*WantedUnit{}}
	for path, tenant := range map[config.UnitPath]string{"cart": cart, "till": till} {
		w.Units[path] = &WantedUnit{Tenant: tenant, Rollout: spec, Targets: map[config.TargetName]WantedTarget{"sas-1": {Digest: "1"}}}
	}
	return w
}

// TestApprovedWorkStaysApproved: what was approved to end is missed by no release that supersedes
// the one which ended it, and by each that begins after that one was done.
func TestApprovedWorkStaysApproved(t *testing.T) {
	want := func(digest object.Digest) *Wanted {
		w := ofTenants("shop", "till")
		w.Commit, w.Units["cart"].Targets["sas-1"] = config.Commit(digest), WantedTarget{Digest: digest}
		return w
	}
	s, first := &State{}, want("1")
	first.Approved = map[config.UnitPath]bool{"cart": true}
	s.Decide(first, time.Time{})
	s.Decide(want("2"), time.Time{})
	if r := s.Units["cart"].Rollout; r.Commit != "2" || !r.Approved {
		t.Errorf("the release of commit %s supersedes one that was approved: approved %t", r.Commit, r.Approved)
	}
	for s.Units["cart"].Rollout.Status != Done {
		plan := s.Decide(want("2"), time.Time{})
		for _, a := range plan.Actions {
			s.Record(success(a), time.Time{})
		}
	}
	s.Decide(want("3"), time.Time{})
	if r := s.Units["cart"].Rollout; r.Commit != "3" || r.Approved {
		t.Errorf("the release of commit %s begins after that one was done: approved %t", r.Commit, r.Approved)
	}
}
