// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// BenchmarkRestart reads the state of 1,000 units on 1,000 clusters and decides what is to
// be done: nothing, for all that is wanted is there.
func BenchmarkRestart(b *testing.B) {
	want, now := manyPlaces(1000, 1000), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	dir := b.TempDir()
	bytes := storePlaces(b, dir, want, now)
	for b.Loop() {
		s, err := store.Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		state, err := LoadState(s)
		if err != nil {
			b.Fatal(err)
		}
		if plan := state.Decide(want, now); len(plan.Actions) > 0 {
			b.Fatalf("%d actions", len(plan.Actions))
		}
		b.StopTimer()
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		b.ReportMetric(float64(memory.Sys)/(1<<20), "MiB-of-system")
		runtime.GC()
		runtime.ReadMemStats(&memory)
		b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "MiB-kept")
		b.ReportMetric(float64(bytes)/(1<<20), "MiB-stored")
		runtime.KeepAlive(state)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// manyPlaces is a commit with so many units on so many clusters.
func manyPlaces(units, clusters int) *rollout.Wanted {
	spec := &config.Rollout{Name: "default", Waves: []config.Wave{{Name: "canary", Share: 1, Soak: 10 * time.Minute}, {Name: "early", Share: 10}, {Name: "rest"}}}
	want := &rollout.Wanted{Commit: "0123456789012345678901234567890123456789", Units: map[config.UnitPath]*rollout.WantedUnit{}}
	for n := range units {
		u := &rollout.WantedUnit{Rollout: spec, Targets: make(map[config.TargetName]rollout.WantedTarget, clusters)}
		for i := range clusters {
			u.Targets[config.TargetName(fmt.Sprintf("cluster-%03d/main", i))] = rollout.WantedTarget{
				Labels: map[string]string{"region": "eu", "ring": "rest"}, Objects: 5, Digest: object.Digest(fmt.Sprintf("%064d", n*clusters+i)),
			}
		}
		want.Units[config.UnitPath(fmt.Sprintf("services/unit%03d", n))] = u
	}
	return want
}

// storePlaces stores the state of a fleet that has all that is wanted, and returns its
// size.
func storePlaces(b *testing.B, dir string, want *rollout.Wanted, now time.Time) (bytes int) {
	s, err := store.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for _, u := range rollout.Settled(want).Units {
		for _, t := range u.Targets {
			t.Since, t.CheckedAt, t.AppliedAt, t.Ran = now, now, now, []rollout.Past{{Digest: t.Good}}
		}
		row, err := json.Marshal(u)
		if err != nil {
			b.Fatal(err)
		}
		bytes += len(row)
		if err := s.Update(b.Context(), func(tx *store.Tx) error { return tx.PutUnit(u.Path, row) }); err != nil {
			b.Fatal(err)
		}
	}
	return bytes
}
