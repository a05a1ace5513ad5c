// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// stateless is a daemon on an empty state that knows one cluster, which cannot be
// reached.
func stateless(t *testing.T, s *store.Store) *Daemon {
	t.Helper()
	d, err := Open(Options{Store: s, Log: slog.New(slog.DiscardHandler), Clusters: map[string]config.ClusterAccess{"dev": {Name: "dev"}}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func emptyState(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestAFightInAClusterThatLeft: nobody looks at it any more, so it wakes nobody.
func TestAFightInAClusterThatLeft(t *testing.T) {
	s := emptyState(t)
	of := store.Object{Unit: "unit", Target: "gone/a", ID: render.ObjectID{Kind: "ConfigMap", Name: "x"}}
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PutFights([]store.Fight{{Object: of, Rounds: 1, Until: time.Now().Add(-time.Hour)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	d := stateless(t, s)
	if next := d.nextSweep(); !next.IsZero() && next.Before(time.Now().Add(time.Hour)) {
		t.Errorf("the next look is due %s", next)
	}
}

// TestACommitWhileAJobWaitsForItsTurn: a deletion that is not begun yet ends when
// a commit wants the object, like one that is.
func TestACommitWhileAJobWaitsForItsTurn(t *testing.T) {
	b := newExecutor(make(chan struct{}, 1))
	var all []*job
	for i := range unitsAtOnce + 1 {
		j := &job{Action: rollout.Action{Kind: rollout.Check, Unit: config.UnitPath(rune('a' + i)), Target: "dev/a"}, cluster: "dev"}
		j.prunable = []store.Entry{{ID: render.ObjectID{Kind: "ConfigMap", Name: string(j.Unit)}}}
		b.tryLock(j)
		b.lockPrunable(j)
		all = append(all, j)
	}
	let := make(chan struct{})
	begun := make(chan *job, len(all))
	b.begin(t.Context(), "dev", all, func(ctx context.Context, j *job) {
		begun <- j
		select {
		case <-let:
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			j.objects = map[apply.Action]int{apply.Deleted: 1}
		}
	})
	for range unitsAtOnce {
		<-begun
	}
	last := all[len(all)-1]
	b.cancelStale(func(j *job, _ render.ObjectID) bool { return j == last })
	close(let)
	b.running.Wait()
	for _, j := range all {
		if deleted := j.objects[apply.Deleted] > 0; deleted != (j != last) {
			t.Errorf("unit %q: deleted is %t", j.Unit, deleted)
		}
	}
}
