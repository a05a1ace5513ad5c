// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"log/slog"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkCommitToPlan: one spec of 10,000 changes; from the look at the
// branch to the plan, with everything released before. The network is left
// out: the repository is on this machine.
func BenchmarkCommitToPlan(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "repo.git")
	if err := (large.Monorepo{Example: "../testdata/monorepo", Specs: 10_000}).Repository(dir); err != nil {
		b.Fatal(err)
	}
	state, err := store.Open(filepath.Join(b.TempDir(), "state"))
	if err != nil {
		b.Fatal(err)
	}
	defer state.Close()
	src, err := source.Open(source.Config{URL: dir, Branch: "main", AllowRewind: true})
	if err != nil {
		b.Fatal(err)
	}
	defer src.Close()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d, err := Open(Options{Source: src, Store: state, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	plan := func() rollout.Plan {
		r := Record{At: now}
		d.fetch(b.Context(), &r)
		if len(r.Errors) > 0 || len(r.Problems) > 0 {
			b.Fatal(r.Errors, r.Problems)
		}
		p := &pass{Daemon: d, r: &r}
		if err := p.decide(); err != nil {
			b.Fatal(err)
		}
		return p.plan
	}
	release := func(p rollout.Plan) (actions int) {
		for ; len(p.Actions) > 0; p = plan() {
			actions += len(p.Actions)
			for _, a := range p.Actions {
				result := map[rollout.Kind]rollout.Result{rollout.Apply: rollout.Applied, rollout.Check: rollout.Healthy}[a.Kind]
				d.state.Record(rollout.Outcome{Action: a, Result: result, Pruned: true}, now)
			}
			now = now.Add(time.Second)
		}
		return actions
	}
	if n := release(plan()); n < 40_000 {
		b.Fatalf("the first release took %d actions, want an apply and a check for each of 20,000 bundles", n)
	}
	commits := map[string]string{}
	for _, branch := range []string{"main", "spec"} {
		out, err := exec.Command("git", "-C", dir, "rev-parse", branch).Output()
		if err != nil {
			b.Fatal(err)
		}
		commits[branch] = strings.TrimSpace(string(out))
	}
	next := "spec"
	for b.Loop() {
		b.StopTimer()
		if out, err := exec.Command("git", "-C", dir, "update-ref", "refs/heads/main", commits[next]).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		next = map[string]string{"main": "spec", "spec": "main"}[next]
		b.StartTimer()
		p := plan()
		b.StopTimer()
		if len(p.Actions) != 1 {
			b.Fatalf("%d actions, want the canary's apply", len(p.Actions))
		}
		release(p)
		b.StartTimer()
	}
}
