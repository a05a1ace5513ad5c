// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// TestLookAtAnApproval: a gate is seen as passed by the approval of what it asks for, and by no
// other.
func TestLookAtAnApproval(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	gate := config.Gate{Approval: &config.ApprovalGate{Expires: time.Hour}}
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all", Gates: []config.Gate{gate}}}}
	s := &State{}
	s.Decide(&Wanted{Commit: "c", Authors: []string{"ada"}, Units: map[config.UnitPath]*WantedUnit{
		"cart": {Rollout: spec, Targets: map[config.TargetName]WantedTarget{"sas-1/a": {Digest: "1"}}}}}, now)
	digest := s.Asks()[0].Digest
	for _, c := range []struct {
		o    order.Order
		want GateStand
	}{
		{order.Order{Verb: order.Approve, By: "bob", At: now, Digest: digest}, GatePassed},
		{order.Order{Verb: order.Approve, By: "bob", At: now, Digest: "other"}, GateWaits},
		{order.Order{Verb: order.Approve, By: "bob", At: now.Add(-time.Hour), Digest: digest}, GateWaits},
		{order.Order{Verb: order.Approve, By: "ada", At: now, Digest: digest}, GateWaits},
		{order.Order{Verb: order.Pause, By: "bob", At: now}, GateWaits},
	} {
		if got := s.Look(Bounds{}, order.Standing{c.o}, now).Waves(s.Units["cart"])[0].GateLook[0]; got.State != c.want {
			t.Errorf("%+v: the gate is %q", c.o, got.State)
		}
	}
}
