// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// noGit is a Git that is down. It counts how often it is asked.
type noGit struct{ asked atomic.Int32 }

func (g *noGit) Fetch(context.Context) (config.Commit, error) {
	g.asked.Add(1)
	return "", errors.New("down")
}

func (g *noGit) Hurry() {}

func (g *noGit) Tree(config.Commit) (config.Tree, error) { return nil, errors.New("down") }

// TestRetryWhileGitIsDown: an order to retry has Git looked at at once. It ended all looks
// at it when nothing else was due: with a state that knows no cluster yet, the daemon
// slept for ever.
func TestRetryWhileGitIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		s, err := store.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		git := &noGit{}
		d, err := Open(Options{Source: git, Store: s, Poll: 30 * time.Second, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- d.Run(ctx) }()
		time.Sleep(5 * time.Minute)
		beside := s.Beside()
		err = beside.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Give(order.Order{At: time.Now(), By: "ann", Verb: order.Retry}, "")
			return err
		})
		if err := errors.Join(err, beside.Close()); err != nil {
			t.Fatal(err)
		}
		before := git.asked.Load()
		time.Sleep(5 * time.Minute)
		if after := git.asked.Load(); after < before+5 {
			t.Errorf("asked %d times before the order, and %d times in the five minutes after it", before, after-before)
		}
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}
