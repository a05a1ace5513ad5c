// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// grid is a commit with units on targets, in two waves that soak.
func grid(units, targets int, digest string) *Wanted {
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{
		{Name: "canary", Match: config.Match{Labels: map[string][]string{"ring": {"canary"}}}, Soak: 10 * time.Minute, Timeout: time.Minute},
		{Name: "rest", Soak: 20 * time.Minute, Timeout: time.Minute},
	}}
	w := &Wanted{Commit: config.Commit("c" + digest), Units: map[config.UnitPath]*WantedUnit{}, Clusters: map[string]bool{}}
	for i := range units {
		u := &WantedUnit{Rollout: spec, Targets: map[config.TargetName]WantedTarget{}, Needs: map[config.TargetName][]config.UnitPath{}}
		for j := range targets {
			name := config.TargetName(fmt.Sprintf("cluster-%d", j))
			labels := map[string]string{"ring": "rest"}
			if j == 0 {
				labels["ring"] = "canary"
			}
			u.Targets[name] = WantedTarget{Labels: labels, Digest: object.Digest(digest)}
			w.Clusters[name.Cluster()] = true
		}
		w.Units[config.UnitPath(fmt.Sprintf("unit-%d", i))] = u
	}
	return w
}

// TestSimulate: it ends, also where a wave soaks and never passes, because one of its
// targets waits for a unit that is to be approved.
func TestSimulate(t *testing.T) {
	s, want := Settled(grid(3, 4, "1")), grid(3, 4, "2")
	want.Units["unit-1"].Needs["cluster-2"] = []config.UnitPath{"unit-0"}
	want.Withheld = map[config.UnitPath]string{"unit-0": "12 deletions pending"}
	s.Simulate(want)
	for at, reason := range map[object.UnitTarget]string{
		{Unit: "unit-1", Target: "cluster-0"}: "", // in the canary, or in the same wave
		{Unit: "unit-1", Target: "cluster-1"}: "",
		{Unit: "unit-1", Target: "cluster-2"}: "waits for unit unit-0 to be applied there, which waits for approval",
		{Unit: "unit-2", Target: "cluster-2"}: "",
	} {
		if got := s.Waits(at, want); !strings.Contains(got, reason) || got == "" != (reason == "") {
			t.Errorf("%s on %s: %q, want %q", at.Unit, at.Target, got, reason)
		}
	}
	if want.Units["unit-1"].Rollout.Waves[0].Soak == 0 {
		t.Error("the commit itself was changed")
	}
}

// TestTakeInOfAClusterThatLeft: what a survey that was under way brings of a cluster
// that left the fleet meanwhile is not removed.
func TestTakeInOfAClusterThatLeft(t *testing.T) {
	s, want := Settled(grid(2, 2, "1")), grid(2, 1, "1")
	now := time.Unix(1000, 0)
	s.Decide(want, now)
	s.Adopt("unit-1", "cluster-1", want.Commit, now)
	s.Adopt("gone", "cluster-1", want.Commit, now)
	for range 3 {
		for _, a := range s.Decide(want, now).Actions {
			if a.Target == "cluster-1" {
				t.Errorf("planned: %+v", a)
			}
		}
		now = now.Add(time.Hour)
	}
	if s.Units["gone"] != nil || s.Units["unit-1"].Targets["cluster-1"] != nil {
		t.Error("it is still known")
	}
}
