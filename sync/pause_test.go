// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// hanging is a Git server that does not answer before it is told what to say.
type hanging chan error

func (h hanging) Fetch(ctx context.Context) (config.Commit, error) {
	select {
	case err := <-h:
		return "", err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (h hanging) Hurry() {}

func (h hanging) Tree(config.Commit) (config.Tree, error) { return nil, errors.New("no commit") }

func (h hanging) Between(_, _ config.Commit) ([]config.Commit, error) {
	return nil, errors.New("no commit")
}

// TestAFetchThatHangsMakesNoPasses: while Git does not answer, the daemon sleeps
// until it does, although it is time to look at the branch again.
func TestAFetchThatHangsMakesNoPasses(t *testing.T) {
	s, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	synctest.Test(t, func(t *testing.T) {
		passes := 0
		git := make(hanging, 1)
		d, err := Open(Options{Source: git, Store: s, Log: slog.New(slog.DiscardHandler), Poll: time.Second,
			Observe: func(Record, *rollout.State) { passes++ }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if passes != 1 {
			t.Errorf("%d passes in a minute, want the first one only", passes)
		}
		git <- context.DeadlineExceeded
		synctest.Wait()
		if passes != 2 {
			t.Errorf("%d passes when Git answered, want 2", passes)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
