// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// largeFleet is a commit of 1,000 units on 1,000 clusters.
func largeFleet(version string) *Wanted {
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{
		{Name: "canary", Match: config.Match{Labels: map[string][]string{"ring": {"0"}}}, Soak: 10 * time.Minute, Timeout: 5 * time.Minute},
		{Name: "early", Share: 10, MaxConcurrent: config.Amount{Percent: 25}, MaxFailures: config.Amount{Count: 1}, Timeout: 5 * time.Minute},
		{Name: "rest", MaxConcurrent: config.Amount{Percent: 25}, MaxFailures: config.Amount{Percent: 1}, Timeout: 5 * time.Minute},
	}}
	w := &Wanted{Commit: config.Commit("commit" + version), Units: map[config.UnitPath]*WantedUnit{}}
	names, labels := make([]config.TargetName, 1000), make([]map[string]string, 1000)
	for i := range names {
		names[i], labels[i] = config.TargetName(fmt.Sprintf("cluster-%03d", i)), map[string]string{"ring": fmt.Sprint(i % 100)}
	}
	for n := range 1000 {
		u := &WantedUnit{Rollout: spec, Targets: make(map[config.TargetName]WantedTarget, len(names))}
		for i, name := range names {
			u.Targets[name] = WantedTarget{Labels: labels[i], Objects: 5, Digest: object.Digest(fmt.Sprintf("%s-%d-%d", version, n, i))}
		}
		w.Units[config.UnitPath(fmt.Sprintf("services/team%02d/unit%03d", n%50, n))] = u
	}
	return w
}

// BenchmarkLargeFleet has 1,000,000 placements: a new commit that changes all of them, the
// decision after one outcome while all units are on their way, the same with a budget, and
// one after drift was found in a fleet at rest.
func BenchmarkLargeFleet(b *testing.B) {
	before, after := largeFleet("1"), largeFleet("2")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := Settled(before)
	s.Decide(before, now)
	drifted := Outcome{Action: Action{Kind: Sweep, Unit: "services/team07/unit007", Target: "cluster-500"}, Result: Drifted, Reason: "image"}
	b.Run("AtRest", func(b *testing.B) {
		for b.Loop() {
			s.Record(drifted, now)
			if plan := s.Decide(before, now); len(plan.Actions) != 1 {
				b.Fatalf("%d actions", len(plan.Actions))
			}
			u := s.Units[drifted.Unit]
			u.Targets[drifted.Target].Drifted, u.Targets[drifted.Target].Dirty = false, false
			s.touch(u.Path)
			s.Decide(before, now)
		}
	})
	b.Run("NewCommit", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			s, after := Settled(before), largeFleet("2")
			s.Decide(before, now)
			b.StartTimer()
			s.Decide(after, now)
		}
	})
	plan := s.Decide(after, now)
	b.Run("UnderWay", func(b *testing.B) {
		i := 0
		for b.Loop() {
			a := plan.Actions[i%len(plan.Actions)]
			i++
			s.Record(Outcome{Action: a, Result: Deferred, Reason: "later"}, now)
			s.Decide(after, now)
		}
	})
	after.Release.Budget = config.Budget{FailedUnits: new(int), Units: 20}
	s.Decide(after, now)
	b.Run("UnderWayWithBudget", func(b *testing.B) {
		i := 0
		for b.Loop() {
			a := plan.Actions[i%len(plan.Actions)]
			i++
			s.Record(Outcome{Action: a, Result: Deferred, Reason: "later"}, now)
			s.Decide(after, now)
		}
	})
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "MiB-heap")
	runtime.KeepAlive(s)
}
