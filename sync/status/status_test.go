// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestStanding: the worst of what is true is told, and never that a unit is done
// while something of it is not as the newest commit wants it.
func TestStanding(t *testing.T) {
	const cart, target = config.UnitPath("services/cart"), config.TargetName("sas-1/a")
	type change func(u *rollout.Unit, on *rollout.Target)
	drift := func(mode string) []store.Drift {
		return []store.Drift{{Object: store.Object{Unit: cart, Target: target, ID: object.ID{Kind: "ConfigMap", Name: "x"}}, Mode: mode, Missing: true}}
	}
	dip := func(t *rollout.Target) { // shorter than its wave's timeout
		t.Good, t.Health, t.CheckedAt = t.Applied, rollout.HealthProgressing, time.Now()
	}
	for _, c := range []struct {
		name   string
		change change
		drifts []store.Drift
		want   Standing
		ready  int
	}{
		{"all is well", func(*rollout.Unit, *rollout.Target) {}, nil, Done, 1},
		{"drift that is only reported", func(*rollout.Unit, *rollout.Target) {}, drift("report"), Drifted, 0},
		{"a fight", func(*rollout.Unit, *rollout.Target) {}, drift("fight"), Fight, 0},
		{"drift that was just seen", func(_ *rollout.Unit, on *rollout.Target) { on.Drifted = true }, nil, Drifted, 0},
		{"drift of another unit", func(u *rollout.Unit, _ *rollout.Target) { u.Path = "services/web" }, drift("report"), Done, 1},
		{"a problem", func(u *rollout.Unit, _ *rollout.Target) { u.Blocked = "a.yaml:1:1: no" }, nil, Blocked, 1},
		{"a problem that quotes other words", func(u *rollout.Unit, _ *rollout.Target) {
			u.Blocked = `a.yaml:1:1: "is quarantined, renders to nothing": no`
		}, nil, Blocked, 1},
		{"a quarantined bundle", func(u *rollout.Unit, _ *rollout.Target) {
			u.Blocked, u.BlockedBy = "bundle d2 for target sas-1/a is quarantined: it failed", rollout.ObstacleQuarantine
		}, nil, Quarantined, 1},
		{"an empty render", func(u *rollout.Unit, _ *rollout.Target) {
			u.Blocked, u.BlockedBy = "the unit renders to nothing on every target: nothing is deleted", rollout.ObstacleEmpty
		}, nil, Empty, 1},
		{"an empty render on one target", func(_ *rollout.Unit, on *rollout.Target) { on.Wave = -1 }, nil, Empty, 0},
		{"after a rollback", func(u *rollout.Unit, _ *rollout.Target) {
			u.Rollout.Status, u.Rollout.Failure, u.Rollout.Commit = rollout.RolledBack, "wave canary: no", "bbbbbbbb"
		}, nil, RolledBack, 1},
		{"a hold, and a target that failed", func(u *rollout.Unit, on *rollout.Target) {
			u.Rollout.Status, on.Trouble = rollout.Held, rollout.TroubleFailed
		}, nil, Held, 0},
		{"a deletion that waits", func(u *rollout.Unit, _ *rollout.Target) { u.Waiting = "1 deletion waits" }, nil, Approval, 1},
		{"a cluster that is away after the rollout", func(_ *rollout.Unit, on *rollout.Target) { on.Trouble = rollout.TroubleUnreachable }, nil, Unreachable, 0},
		{"a server in distress", func(_ *rollout.Unit, on *rollout.Target) { on.Trouble = rollout.TroubleUnavailable }, nil, Unavailable, 0},
		{"ill after the rollout", func(_ *rollout.Unit, on *rollout.Target) { on.Health = rollout.HealthFailed }, nil, Failed, 0},
		{"ill for longer than its wave's timeout", func(_ *rollout.Unit, t *rollout.Target) {
			dip(t)
			t.Trouble, t.Reason = rollout.TroubleFailed, "Deployment/cart: 0 of 1 replicas available"
		}, nil, Degraded, 0},
		{"a dip", func(_ *rollout.Unit, t *rollout.Target) { dip(t) }, nil, Done, 1},
		{"a dip, and what a commit dropped", func(_ *rollout.Unit, t *rollout.Target) {
			dip(t)
			t.Left = "1 deletion waits"
		}, nil, Leftovers, 0},
		{"under way", func(u *rollout.Unit, on *rollout.Target) { u.Rollout.Status, on.Wanted = rollout.Progressing, "d2" }, nil, Progressing, 0},
	} {
		on := &rollout.Target{Wanted: "d1", Applied: "d1", Health: rollout.HealthGood}
		u := &rollout.Unit{Path: cart, Rollout: &rollout.Rollout{ID: 1, Commit: "aaaaaaaa", Status: rollout.Done},
			Targets: map[config.TargetName]*rollout.Target{target: on}, Commits: map[object.Digest]config.Commit{"d1": "aaaaaaaa", "d2": "bbbbbbbb"}}
		c.change(u, on)
		got := Of(u, Known{Drifts: c.drifts})
		if got.Status != c.want || got.Ready != c.ready || !slices.Equal(got.Commits, []config.Commit{"aaaaaaaa"}) {
			t.Errorf("%s: %s, %d ready, on %v; want %s, %d ready, on the commit that was applied", c.name, got.Status, got.Ready, got.Commits, c.want, c.ready)
		}
		if reported := len(c.drifts) > 0 || c.want == Empty || u.Blocked != ""; reported && got.Status != Done && got.Reason == "" {
			t.Errorf("%s: no reason", c.name)
		}
	}
}

// TestUnreached: a target whose cluster cannot be looked at is not called healthy.
func TestUnreached(t *testing.T) {
	good := func() *rollout.Target {
		return &rollout.Target{Wanted: "d1", Applied: "d1", Health: rollout.HealthGood}
	}
	u := &rollout.Unit{Path: "services/cart", Rollout: &rollout.Rollout{ID: 1, Commit: "aaaaaaaa", Status: rollout.Done},
		Targets: map[config.TargetName]*rollout.Target{"sas-1/a": good(), "sas-2/a": good()},
		Commits: map[object.Digest]config.Commit{"d1": "aaaaaaaa"}}
	got := Of(u, Known{Unreached: map[string]string{"sas-1": "Unauthorized"}})
	if got.Status != Unreachable || got.Ready != 1 || got.Reason != "target sas-1/a: cluster sas-1: Unauthorized" {
		t.Errorf("%s, %d ready: %s", got.Status, got.Ready, got.Reason)
	}
	if line := UnderWayOf(u, &got); line.Done != 1 {
		t.Errorf("%d done", line.Done)
	}
}

// TestReasonOfLeftovers: what a commit dropped and is still there is named, whatever else goes on.
func TestReasonOfLeftovers(t *testing.T) {
	left := &rollout.Target{Wanted: "d1", Applied: "d1", Health: rollout.HealthGood,
		Left: "ConfigMap/a/b: denied", Reason: "0 of 2 replicas"}
	u := &rollout.Unit{Path: "services/cart", Targets: map[config.TargetName]*rollout.Target{"sas-1/a": left},
		Rollout: &rollout.Rollout{ID: 1, Status: rollout.Done}}
	const want = "target sas-1/a: ConfigMap/a/b: denied; 0 of 2 replicas"
	if got := Of(u, Known{}); got.Status != Leftovers || got.Reason != want {
		t.Errorf("%s: %q, want %q", got.Status, got.Reason, want)
	}
	u.Rollout.Status, u.Rollout.Reason = rollout.Progressing, "wave canary: soaking"
	if got := Of(u, Known{}); got.Status != Leftovers || got.Reason != want+"; wave canary: soaking" {
		t.Errorf("during a soak %s: %q", got.Status, got.Reason)
	}
}
