// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"errors"
	"testing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestYields: of two units that have an object in their bundles, exactly one leaves
// it to the other.
func TestYields(t *testing.T) {
	for _, c := range []struct {
		name  string
		wants bool
		other standing
		want  bool
	}{
		{"moved to the other", false, standing{wants: true, holds: true, last: true}, true},
		{"moved to the other, who is to write it again", false, standing{wants: true, holds: true}, true},
		{"on its way to the other", false, standing{wants: true}, false},
		{"given up by the other", false, standing{wants: true, last: true}, false},
		{"moved here, and the other was put back", true, standing{holds: true, last: true}, false},
		{"nobody's any more, and the other wrote it", false, standing{holds: true, last: true}, true},
		{"nobody's any more, and the other did not write it", false, standing{holds: true}, false},
		{"contested, and the other wrote it", true, standing{wants: true, holds: true, last: true}, true},
		{"contested, and the other did not write it", true, standing{wants: true, holds: true}, false},
	} {
		if got := ownedByOther(c.wants, c.other); got != c.want {
			t.Errorf("%s: yields: got %t, want %t", c.name, got, c.want)
		}
	}
	for i := range 16 {
		a, b := standing{wants: i&1 > 0, holds: true, last: i&4 > 0}, standing{wants: i&2 > 0, holds: true, last: i&8 > 0}
		if (!a.last || !b.last) && ownedByOther(a.wants, b) && ownedByOther(b.wants, a) { // only one wrote it last
			t.Errorf("both leave it: %+v, %+v", a, b)
		}
	}
}

// TestHoldsWithoutTheEarlierBundle: who has an object in the bundle that it is to
// have is not asked for the one before, whose commit may be lost.
func TestHoldsWithoutTheEarlierBundle(t *testing.T) {
	e := store.Entry{Unit: "here", Target: "dev/a", ID: object.ID{Kind: "ConfigMap", Namespace: "ns", Name: "x"}, UID: "u"}
	state := &rollout.State{Units: map[config.UnitPath]*rollout.Unit{e.Unit: {Path: e.Unit, Rollout: &rollout.Rollout{Status: rollout.Progressing},
		Targets: map[config.TargetName]*rollout.Target{e.Target: {Wanted: "new", Applied: "lost"}}}}}
	lost := func(rollout.Action) (*object.Bundle, error) { return nil, errors.New("its commit is lost") }
	v := View{State: state, Bundle: lost, bundles: map[object.Digest]map[object.ID]bool{"new": {e.ID: true}}}
	if yes, err := v.holds(e); !yes || err != nil {
		t.Errorf("holds it: %t, %v", yes, err)
	}
}
