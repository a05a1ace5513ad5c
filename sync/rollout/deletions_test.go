// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

func TestDeletes(t *testing.T) {
	spec := &config.Rollout{Waves: []config.Wave{{Name: "all"}}}
	wants := func(targets map[config.TargetName]WantedTarget) *Wanted {
		return &Wanted{Units: map[config.UnitPath]*WantedUnit{"u": {Rollout: spec, Targets: targets}}}
	}
	here := wants(map[config.TargetName]WantedTarget{"a": {Digest: "new"}})
	frozen := wants(map[config.TargetName]WantedTarget{"a": {Digest: "new"}})
	frozen.Units["u"].Frozen = "a problem"
	other := &Wanted{Units: map[config.UnitPath]*WantedUnit{"x": {Rollout: spec}}}
	for _, c := range []struct {
		name   string
		target *Target
		wanted *Wanted
		want   bool
	}{
		{"as wanted", &Target{Wanted: "new", Applied: "new"}, here, false},
		{"with leftovers", &Target{Wanted: "new", Applied: "new", Leftovers: true}, here, true},
		{"in a later wave", &Target{Wanted: "new", Applied: "old"}, here, true},
		{"put back", &Target{Wanted: "old", Applied: "old", Leftovers: true}, here, false},
		{"renders to nothing", &Target{Wanted: "", Dirty: true}, wants(map[config.TargetName]WantedTarget{"a": {}, "b": {Digest: "x"}}), false},
		{"left", &Target{Applied: "old"}, wants(map[config.TargetName]WantedTarget{"b": {Digest: "x"}}), true},
		{"gone", &Target{Applied: "old"}, other, true},
		{"a problem", &Target{Wanted: "new", Applied: "old"}, frozen, false},
		{"held", &Target{Applied: "old"}, &Wanted{Held: "a problem"}, false},
		{"no units", &Target{Applied: "old"}, &Wanted{}, false},
		{"no units, allowed", &Target{Applied: "old"}, &Wanted{AllowEmpty: true}, true},
	} {
		release := gone
		if unit := c.wanted.Units["u"]; unit != nil {
			release = unit.Release()
		}
		u := &Unit{Path: "u", Rollout: &Rollout{Release: release, Spec: *spec}, Targets: map[config.TargetName]*Target{"a": c.target}}
		if got := u.Deletes("a", c.wanted); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
		if c.name == "put back" {
			u.Rollout.Release = "another"
			if !u.Deletes("a", c.wanted) {
				t.Error("it was put back, and a release that has not begun would delete")
			}
			u.Quarantine = map[object.Digest]Quarantined{"new": {}}
			if u.Deletes("a", c.wanted) {
				t.Error("a release with a quarantined bundle does not begin")
			}
		}
	}
}

// TestTakeIn: objects that were found make their unit leave where the commit
// does not have it, and a unit that is gone come back to be removed.
func TestTakeIn(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all"}}}
	want := &Wanted{Commit: "c", Units: map[config.UnitPath]*WantedUnit{"here": {Rollout: spec, Targets: map[config.TargetName]WantedTarget{"dev/a": {Digest: "d"}}}}}
	s := &State{}
	step := func() []Action {
		plan := s.Decide(want, now)
		for _, a := range plan.Actions {
			result := map[Kind]Result{Apply: Applied, Check: Healthy, Remove: Removed}[a.Kind]
			s.Record(Outcome{Action: a, Result: result, Pruned: a.Prune}, now)
		}
		return plan.Actions
	}
	for len(step()) > 0 {
	}
	s.Adopt("here", "dev/a", "c", now) // its own target: to be pruned
	s.Adopt("here", "dev", "c", now)
	s.Adopt("gone", "dev", "c", now)
	var did []string
	for range 5 {
		for _, a := range step() {
			did = append(did, string(a.Kind)+" "+string(a.Unit)+" "+string(a.Target))
		}
	}
	if got, want := strings.Join(did, ", "), "remove gone dev, remove here dev, check here dev/a"; got != want {
		t.Errorf("did %q, want %q", got, want)
	}
	if s.Units["gone"] != nil || len(s.Units["here"].Targets) != 1 || s.Units["here"].Rollout.Status != Done {
		t.Errorf("left: %+v", s.Units)
	}
}

// TestTakeInBeforeItsWave: what was found on a target that the unit's release never came
// to is removed with the unit. It stayed, in the inventory of nobody.
func TestTakeInBeforeItsWave(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	spec := config.Rollout{Name: "default", Waves: []config.Wave{{Name: "canary"}, {Name: "rest"}}}
	s := &State{Units: map[config.UnitPath]*Unit{"u": {Path: "u", Rollout: &Rollout{ID: 1, Commit: "c", Release: "r", Status: Held, Spec: spec},
		Targets: map[config.TargetName]*Target{"dev/a": {Wanted: "d", Dirty: true, Touched: true, Trouble: TroubleFailed}, "dev/b": {Wanted: "d", Wave: 1}}}}}
	s.Adopt("u", "dev/b", "c", now)
	want := &Wanted{Commit: "gone", Units: map[config.UnitPath]*WantedUnit{"other": {Rollout: &spec}}}
	removed := map[config.TargetName]bool{}
	for range 5 {
		for _, a := range s.Decide(want, now).Actions {
			removed[a.Target] = a.Kind == Remove
			s.Record(Outcome{Action: a, Result: Removed}, now)
		}
	}
	if !removed["dev/a"] || !removed["dev/b"] || s.Units["u"] != nil {
		t.Errorf("removed: %v, left: %+v", removed, s.Units["u"])
	}
}

func TestAwait(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &State{Units: map[config.UnitPath]*Unit{"u": {Path: "u", Rollout: &Rollout{ID: 3}}}}
	if got := s.Await("u", "2 deletions wait", now); len(got) != 1 || got[0].Kind != "waiting" || got[0].Text != "2 deletions wait" {
		t.Errorf("the first time: %v", got)
	}
	if got := s.Await("u", "2 deletions wait", now); len(got) != 0 {
		t.Errorf("the same again: %v", got)
	}
	if got := s.Await("u", "", now); len(got) != 0 || s.Units["u"].Waiting != "" {
		t.Errorf("the end: %v", got)
	}
	if got := s.Await("nobody", "x", now); len(got) != 0 {
		t.Errorf("a unit that is gone: %v", got)
	}
	if changed, _ := s.Changed(); len(changed) != 1 {
		t.Errorf("changed: %v", changed)
	}
}
