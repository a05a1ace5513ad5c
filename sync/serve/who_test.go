// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// TestWhoMayApprove: a person is known by all of his names, as an author and as one whom the
// gate names.
func TestWhoMayApprove(t *testing.T) {
	ann := Who{Name: "ann", Also: []string{"ann@example.com"}}
	for _, c := range []struct {
		authors, by []string
		as          string // empty: refused
	}{
		{nil, nil, "ann"},
		{[]string{"bob"}, []string{"ann", "bob"}, "ann"},
		{[]string{"bob"}, []string{"ann@example.com"}, "ann@example.com"},
		{nil, []string{"bob"}, ""},
		{[]string{"ann"}, nil, ""},
		{[]string{"ann@example.com"}, nil, ""},
		{[]string{"ann@example.com"}, []string{"ann"}, ""},
	} {
		ask := order.Ask{Unit: "shop/cart", Wave: "canary", Authors: c.authors, By: c.by, Expires: "1h"}
		o, err := approvalOf(ask, Judge{Digest: "d"}, ann, noon)
		if err == nil != (c.as != "") || err == nil && (o.By != c.as || !o.Until.Equal(noon.Add(time.Hour))) {
			t.Errorf("authors %q, by %q: %+v, %v", c.authors, c.by, o, err)
		}
	}
}

// TestKnownAs: the gates of a scope know a person by the name under which the person wrote something
// of it, else by the one that may approve it; gates elsewhere do not matter.
func TestKnownAs(t *testing.T) {
	ann := Who{Name: "ann", Also: []string{"ann@example.com"}}
	wave := config.Wave{Gates: []config.Gate{{Approval: &config.ApprovalGate{By: []string{"ann@example.com"}}}}}
	for unit, want := range map[config.UnitPath]string{"wrote": "ann@example.com", "may": "ann@example.com", "other": "ann"} {
		state := &rollout.State{Units: map[config.UnitPath]*rollout.Unit{
			"wrote": {Path: "wrote", Rollout: &rollout.Rollout{Authors: []string{"bob", "ann@example.com"}}},
			"may":   {Path: "may", Rollout: &rollout.Rollout{Spec: config.Rollout{Waves: []config.Wave{wave}}}},
			"other": {Path: "other", Rollout: &rollout.Rollout{Authors: []string{"bob"}}},
		}}
		if got := knownAs(state, order.Scope{Unit: unit}, ann); got != want {
			t.Errorf("of unit %s: known as %q, want %q", unit, got, want)
		}
	}
}
