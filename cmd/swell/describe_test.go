// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
)

var describedAt = time.Date(2026, 3, 1, 12, 6, 0, 0, time.UTC)

// largeWave is a description with a wave of 300 targets, some of which have texts of others.
func largeWave() *status.Description {
	d := &status.Description{UnderWay: status.UnderWay{Unit: "shop/cart", Commit: "c1c1c1c1c1c1", Status: status.Progressing, Done: 298, Targets: 300, Since: describedAt.Add(-6 * time.Minute)}, Now: describedAt}
	d.Rollout = status.Rollout{ID: 4, Name: "default"}
	w := status.Wave{Name: "all", Phase: rollout.PhaseUnderWay, Soak: &status.Soak{For: "10m0s", From: describedAt.Add(-6 * time.Minute), Ends: describedAt.Add(4 * time.Minute)}}
	for i := range 300 {
		t := status.Target{Target: config.TargetName(fmt.Sprintf("sas-%03d/rz00a", i)), Status: status.Healthy, Commit: "c1c1c1c1c1c1"}
		if i == 7 || i == 9 {
			t.Status, t.Reason = status.Failed, "Deployment/cart: \x1b[31mno\nsuch image\u202e"
		}
		if i == 11 {
			t.Status, t.Reason, t.FailsAt = status.Progressing, "Deployment/cart: 0 of 1 replicas available", describedAt.Add(time.Minute)
		}
		w.Targets = append(w.Targets, t)
	}
	d.WaveList = []status.Wave{w}
	return d
}

// TestDescribeLargeWave: targets in the same state are one line; with --all each has its
// own. No text of a cluster moves the cursor.
func TestDescribeLargeWave(t *testing.T) {
	write := func(w *describer) string {
		var b strings.Builder
		if err := w.write(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	got := write(&describer{d: largeWave(), width: 80})
	want := `shop/cart: progressing since 12:00:00Z (6m)
  rollout 4 of commit c1c1c1c1, waves of default, 298 of 300 targets done
wave 1/1 all: under way, 300 targets
  297 targets, sas-000/rz00a, sas-001/rz00a, sas-002/rz00a and 294 more:
    healthy, commit c1c1c1c1
  sas-007/rz00a, sas-009/rz00a: failed, commit c1c1c1c1: Deployment/cart:
    \x1b[31mno\nsuch image\u202e
  sas-011/rz00a: progressing, commit c1c1c1c1: Deployment/cart: 0 of 1
    replicas available; it fails at 12:07:00Z unless that changes
  soak 6m of 10m, ends 12:10:00Z
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(write(&describer{d: largeWave(), width: 80, all: true}), "/rz00a: "); n != 300 {
		t.Errorf("--all: %d targets, want 300", n)
	}
}

// TestRoundly: a duration has two units at most.
func TestRoundly(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 40 * time.Second: "40s", time.Minute: "1m", 90 * time.Second: "1m30s", 2*time.Hour + 5*time.Minute + time.Second: "2h5m", 50 * time.Hour: "2d2h", -time.Second: "0s"} {
		if got := roundly(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
