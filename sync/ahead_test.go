// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/store"
	"github.com/swell-sh/swell/testdata/large"
)

// TestALargeReleaseIsPreparedPieceByPiece: what is made ready for a cluster is
// bounded, and all of it has its turn.
func TestALargeReleaseIsPreparedPieceByPiece(t *testing.T) {
	t.Parallel()
	const specs = 1500 // of 5 objects on the canary, which is written first
	dir := filepath.Join(t.TempDir(), "repo.git")
	if err := (large.Monorepo{Example: "../testdata/monorepo", Specs: specs}).Repository(dir); err != nil {
		t.Fatal(err)
	}
	state, err := store.Open(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	src, err := source.Open(source.Config{URL: dir, Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d, err := Open(Options{Source: src, Store: state, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	r := Record{At: now}
	d.fetch(t.Context(), &r)
	ahead := func() []*executor.Job {
		p := &pass{Daemon: d, r: &r}
		if err := p.store(t.Context(), []func() error{p.decide, p.prepare, p.writeAhead, p.saveUnits}); err != nil || len(r.Errors) > 0 {
			t.Fatal(err, r.Errors)
		}
		return p.jobs
	}
	written := map[object.UnitTarget]bool{}
	for jobs := ahead(); len(written) < specs; jobs = ahead() {
		objects := 0
		for _, j := range jobs {
			if written[j.Place()] || j.Kind != rollout.Apply {
				t.Fatalf("%+v once more", j.Action)
			}
			written[j.Place()] = true
			objects += len(j.Bundle.Objects)
		}
		if len(jobs) == 0 || objects > executor.ObjectsAhead+5 {
			t.Fatalf("%d objects of %d units made ready, %d units before", objects, len(jobs), len(written)-len(jobs))
		}
		if more := ahead(); len(more) > 0 {
			t.Fatalf("%d units made ready while %d are under way", len(more), len(jobs))
		}
		for _, j := range jobs {
			j.Ended(rollout.Applied, "")
			d.executor.Start(t.Context(), j.Cluster, []*executor.Job{j}, func(context.Context, *executor.Job) {})
		}
		d.executor.Drain()
		p := &pass{Daemon: d, r: &r, in: observation{jobs: d.executor.Collect()}}
		if err := p.store(t.Context(), p.last()); err != nil {
			t.Fatal(err)
		}
		for path, unit := range d.state.Units { // health is not the matter here
			for name := range unit.Targets {
				if written[object.UnitTarget{Unit: path, Target: name}] {
					d.state.Record(rollout.Outcome{Action: rollout.Action{Kind: rollout.Check, Unit: path, Target: name, Digest: unit.Targets[name].Applied}, Result: rollout.Unhealthy}, now)
				}
			}
		}
	}
}
