// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/source"
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

func (g *noGit) Between(_, _ config.Commit) ([]config.Commit, error) { return nil, errors.New("down") }

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

// busyGit is a Git that asks to be left alone, or hangs until it is hurried.
type busyGit struct {
	noGit
	after   time.Duration
	hurried chan struct{} // closed by Hurry; nil: it answers
}

type leaveAlone time.Duration

func (l leaveAlone) Error() string             { return "429" }
func (l leaveAlone) RetryAfter() time.Duration { return time.Duration(l) }

func (g *busyGit) Fetch(context.Context) (config.Commit, error) {
	g.asked.Add(1)
	if g.hurried != nil {
		<-g.hurried
	}
	return "", fmt.Errorf("fetch: %w", leaveAlone(g.after))
}

func (g *busyGit) Hurry() {
	if g.hurried != nil {
		close(g.hurried)
	}
}

// TestABusyGitIsLeftAlone for as long as it asks for, unless somebody wants it looked at now; and
// that ends a look that hangs.
func TestABusyGitIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ after, next time.Duration }{
		"longer than the pause between polls": {2 * time.Minute, 2 * time.Minute},
		"shorter":                             {10 * time.Second, 10 * time.Second},
		"not at all":                          {0, fetchRetry},
	} {
		t.Run(name, func(t *testing.T) {
			git := &busyGit{after: c.after}
			b := &branch{source: git, poll: 30 * time.Second, wake: func() {}}
			b.newest(t.Context(), noon)
			if due := b.due().Sub(noon); due != c.next {
				t.Errorf("it is looked at after %s, want %s", due, c.next)
			}
			if _, ok := b.newest(t.Context(), noon.Add(c.next-1)); ok {
				t.Error("it was looked at before")
			}
			b.again()
			if b.due().IsZero() {
				t.Error("it is never looked at again")
			}
			if _, ok := b.newest(t.Context(), noon.Add(1)); !ok || git.asked.Load() != 2 {
				t.Errorf("it was looked at %d times, want once more", git.asked.Load())
			}
		})
	}
	t.Run("a look that hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			git := &busyGit{hurried: make(chan struct{})}
			b := &branch{source: git, poll: 30 * time.Second, wake: func() {}}
			if answer, _ := b.newest(t.Context(), noon); answer.over {
				t.Fatalf("it does not hang: %v", answer.err)
			}
			b.again()
			synctest.Wait()
			if answer, ok := b.newest(t.Context(), noon); !ok || !answer.over {
				t.Errorf("it hangs still: %v", answer.err)
			}
			if due := b.due().Sub(noon); due != fetchRetry {
				t.Errorf("it is looked at after %s, want %s", due, fetchRetry)
			}
		})
	})
}

// TestABusyServerIsLeftAlone for as long as the header of its answer says, and no longer than an
// hour.
func TestABusyServerIsLeftAlone(t *testing.T) {
	for header, want := range map[string]time.Duration{"120": 2 * time.Minute, "7200": time.Hour, "": fetchRetry} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		defer server.Close()
		git, err := source.Open(source.Config{URL: server.URL + "/fleet.git", Branch: "main", Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer git.Close()
		b := &branch{source: git, poll: 30 * time.Second, wake: func() {}}
		answer, _ := b.newest(t.Context(), noon)
		if due := b.due().Sub(noon); due != want || !answer.over {
			t.Errorf("Retry-After %q: it is looked at after %s, want %s: %v", header, due, want, answer.err)
		}
	}
}
