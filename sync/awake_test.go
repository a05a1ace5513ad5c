// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"log/slog"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
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
	of := store.Object{Unit: "unit", Target: "gone/a", ID: object.ID{Kind: "ConfigMap", Name: "x"}}
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
