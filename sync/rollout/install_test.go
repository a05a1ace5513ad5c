// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// TestEventOf goes through the life of a unit on a target, and holds what each bundle is
// there against the rule.
func TestEventOf(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	cart := object.UnitTarget{Unit: "services/shop", Target: "dev/a"}
	var s *State
	begin := func(target Target) {
		s = &State{Units: map[config.UnitPath]*Unit{cart.Unit: {
			Path: cart.Unit, Rollout: &Rollout{Spec: config.Rollout{Waves: []config.Wave{{}}}},
			Targets: map[config.TargetName]*Target{cart.Target: &target},
		}}}
	}
	writes := func(digest object.Digest, differs bool) {
		event, _ := s.EventOf(cart, digest)
		s.BeginsAs(cart, digest, event, differs)
	}
	result := func(kind Kind, digest object.Digest, result Result, event object.Event) {
		action := Action{Kind: kind, Unit: cart.Unit, Target: cart.Target, Digest: digest}
		s.Record(Outcome{Action: action, Result: result, Event: event, Reason: "x"}, now)
	}
	applies := func(digest object.Digest) {
		writes(digest, true)
		result(Apply, digest, Applied, "")
	}
	heals := func(digest object.Digest) { applies(digest); result(Check, digest, Healthy, "") }
	for _, test := range []struct {
		name string
		life func()
		// what bundle 1 and bundle 2 are after that
		first, second object.Event
	}{
		{"nothing was written", func() {}, object.Install, object.Install},
		{"the first bundle is on its way", func() { writes("1", true) }, object.Install, object.Install},
		{"the first bundle failed", func() { writes("1", true); result(Apply, "1", Failed, "") }, object.Install, object.Install},
		{"the first bundle is not healthy", func() { applies("1"); result(Check, "1", Unhealthy, "") }, object.Install, object.Install},
		{"the first bundle is healthy", func() { heals("1") }, object.Install, object.Upgrade},
		{"the first bundle is ill again", func() { heals("1"); result(Check, "1", Failed, "") }, object.Install, object.Upgrade},
		{"drift is corrected", func() { heals("1"); writes("1", true) }, object.Install, object.Upgrade},
		{"the second bundle came, and failed", func() { heals("1"); writes("2", true) }, object.Upgrade, object.Upgrade},
		{"the second bundle has no such hooks", func() { heals("1"); writes("2", false) }, object.Upgrade, object.Upgrade},
		{"the unit was removed", func() { heals("1"); result(Remove, "", Removed, "") }, object.Install, object.Install},
		{"objects were there", func() { writes("1", true); result(Apply, "1", Waiting, object.Upgrade) }, object.Upgrade, object.Upgrade},
		{"and went", func() {
			writes("1", true)
			result(Apply, "1", Waiting, object.Upgrade)
			writes("1", true)
			result(Apply, "1", Waiting, object.Install)
		}, object.Install, object.Install},
		{"objects were found after a loss of the state", func() {
			s.Recovers(cart)
			writes("1", true)
		}, object.Upgrade, object.Upgrade},
		{"a row from before, with a good bundle", func() { begin(Target{Good: "1", Applied: "1"}) }, object.Upgrade, object.Upgrade},
		{"a row from before, with one that was good", func() { begin(Target{Ran: []Past{{Digest: "1"}}}) }, object.Upgrade, object.Upgrade},
		{"a row from before, of a canary", func() { begin(Target{Applied: "1", Health: HealthGood}) }, object.Upgrade, object.Upgrade},
		{"an old row of one that is ill", func() { begin(Target{Applied: "1", Health: HealthFailed}) }, object.Install, object.Install},
	} {
		begin(Target{Wanted: "1"})
		test.life()
		first, _ := s.EventOf(cart, "1")
		second, _ := s.EventOf(cart, "2")
		if first != test.first || second != test.second {
			t.Errorf("%s: bundle 1 is an %s and bundle 2 an %s, want %s and %s", test.name, first, second, test.first, test.second)
		}
	}
	for name, life := range map[string]func(){
		"existed": func() { result(Apply, "1", Waiting, object.Upgrade) },
		"healthy": func() { heals("1") },
	} {
		begin(Target{Wanted: "1"})
		life()
		if _, isProven := s.EventOf(cart, "2"); isProven != (name == "healthy") {
			t.Errorf("%s: proven %t", name, isProven)
		}
	}
	if event, isProven := (&State{}).EventOf(cart, "1"); event != object.Install || isProven {
		t.Errorf("a unit that nobody knows: %s, proven %t", event, isProven)
	}
}
