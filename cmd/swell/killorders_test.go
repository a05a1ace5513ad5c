// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

// TestOrdersSurviveAKill: the daemon is killed at any moment after it was given an order,
// before a pass too. The order is carried out once, also when it is given again under its
// key because nobody knows whether the first one arrived.
func TestOrdersSurviveAKill(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.once(0)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	state := filepath.Join(filepath.Dir(s.config), "state")
	socket := filepath.Join(state, "swell.sock")
	client := func() (c *serve.Client) {
		s.eventually("the daemon's answer", func() bool {
			var err error
			c, err = serve.Dial(t.Context(), socket)
			return err == nil
		})
		return c
	}
	const rounds = 10
	verbs := []order.Verb{order.Pause, order.Resume, order.Reconcile}
	request := func(i int) serve.Request {
		verb := verbs[i%len(verbs)]
		return serve.Request{Verb: verb, All: true, Reason: fmt.Sprintf("round %d.", i), IdempotencyKey: fmt.Sprint("round", i)}
	}
	for i := range rounds {
		cmd := program(t.Context(), "run", "-c", s.config)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c := client()
		given := make(chan error, 1)
		go func() {
			_, err := c.Give(t.Context(), request(i))
			given <- err
		}()
		if i%2 == 0 { // it was taken, and a pass may have begun
			if err := <-given; err != nil {
				t.Fatal(err)
			}
		}
		s.pause(time.Duration(random.IntN(8)) * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if i%2 == 1 {
			<-given
		}
		_ = c.Close()

		// Who does not know gives it again: to the next daemon, or to nobody.
		if i%4 == 1 {
			settings, err := readDaemonConfig(configPath{in: ofProcess(), name: s.config})
			if err != nil {
				t.Fatal(err)
			}
			o := order.Order{At: time.Now(), By: whoami(ofProcess(), settings).Name, Verb: request(i).Verb, Reason: request(i).Reason}
			if err := store.Alone(t.Context(), state, func(tx *store.Tx) error {
				_, err := serve.Give(tx, serve.Given{Order: o}, request(i).IdempotencyKey)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		stop := s.daemon()
		c = client()
		if _, err := c.Give(t.Context(), request(i)); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	s.once(0)
	got, err := store.OpenReadOnly(state)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	events, err := got.History("", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rounds {
		n := 0
		for _, e := range events {
			if e.Kind == string(request(i).Verb) && strings.Contains(e.Text, ": "+request(i).Reason) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("round %d, %s: %d lines in the history", i, request(i).Verb, n)
		}
	}
	if waiting, err := got.Orders(); err != nil || len(waiting) > 0 {
		t.Errorf("they still wait: %+v, %v", waiting, err)
	}
}
