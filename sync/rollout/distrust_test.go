// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// TestDistrust: whatever a unit was at, nothing that the state believed is written
// any more; the newest commit comes through the waves as soon as it may.
func TestDistrust(t *testing.T) {
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{
		{Name: "canary", Match: config.Match{Labels: map[string][]string{"ring": {"canary"}}}}, {Name: "rest"},
	}}
	wants := func(commit config.Commit, version string) *Wanted {
		targets := map[config.TargetName]WantedTarget{}
		for name, ring := range map[config.TargetName]string{"a/1": "canary", "a/2": "main", "b/1": "main"} {
			targets[name] = WantedTarget{Labels: map[string]string{"ring": ring}, Digest: object.Digest(version + "-" + string(name))}
		}
		return &Wanted{Commit: commit, Units: map[config.UnitPath]*WantedUnit{"cart": {Rollout: spec, Targets: targets}}}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	// settle carries out all that is planned; what is applied on a/1 ends as told.
	settle := func(s *State, want *Wanted, on Result) {
		for range 20 {
			for _, a := range s.Decide(want, now).Actions {
				o := Outcome{Action: a, Result: Applied, Reason: "because"}
				switch {
				case a.Kind == Check:
					o.Result, o.Pruned = Healthy, true
				case a.Target == "a/1" && a.Kind == Apply:
					o.Result = on
				}
				s.Record(o, now)
			}
		}
	}
	for name, prepare := range map[string]func(*State){
		"done": func(s *State) { settle(s, wants("c1", "v1"), Applied) },
		"suspected before": func(s *State) {
			settle(s, wants("c1", "v1"), Unreachable)
			if got := s.Suspect("b", "older", now); len(got) != 1 || s.Units["cart"].Rollout.Status != Held {
				panic("a release under way goes on")
			}
			for _, a := range s.Decide(wants("c1", "v1"), now).Actions {
				if a.Kind == Apply {
					panic("it goes on")
				}
			}
			if got := s.Suspect("b", "older", now); len(got) != 0 {
				panic("it is told again")
			}
		},
		"progressing":    func(s *State) { settle(s, wants("c1", "v1"), Unreachable) },
		"stalled":        func(s *State) { settle(s, wants("c1", "v1"), Refused) },
		"being put back": func(s *State) { settle(s, wants("c1", "v1"), Applied); settle(s, wants("c2", "v2"), Refused) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &State{}
			prepare(s)
			s.Distrust("a", "older", now)
			now := now.Add(24 * time.Hour)
			for range 5 {
				for _, a := range s.Decide(&Wanted{Commit: "c3", Held: "fleet: wrong"}, now).Actions {
					if a.Kind != Check || a.Target.Cluster() == "a" {
						t.Errorf("while nothing may be taken from the commit: %+v", a)
					}
				}
				now = now.Add(time.Hour)
			}
			for range 3 {
				for _, a := range s.Decide(wants("c4", "v4"), now).Actions {
					if a.Kind == Apply && (a.Target != "a/1" || a.Digest != "v4-a/1") {
						t.Errorf("the first wave of the newest commit: %+v", a)
					}
				}
			}
			if u := s.Units["cart"]; u.Rollout.Commit != "c4" || u.Targets["a/1"].Good != "" || !u.Targets["a/1"].Dirty {
				t.Errorf("the rollout is of %s, the canary %+v", u.Rollout.Commit, u.Targets["a/1"])
			}
		})
	}
}
