// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/store"
)

// TestHandOver: a daemon hands over to another one on the same store, in the middle of a
// wave. The Leases are never free in between, and the other one has them at once.
func TestHandOver(t *testing.T) {
	simulatedWith(t, func(w *world) { w.real, w.poll = true, time.Second }, testHandOver)
}

func testHandOver(t *testing.T, w *world) {
	run := func(lasts time.Duration) {
		t.Helper()
		over := make(chan error)
		go func() { over <- w.daemon.Run(t.Context()) }()
		time.Sleep(lasts) // of the bubble's time
		w.daemon.HandOver()
		w.must(<-over)
	}
	run(30 * time.Minute)
	w.want("images", w.tags("app"), "1 1 1")
	first := w.holder("dev-1")
	w.app("app", "2", "one")
	w.commit()
	w.open()
	run(20 * time.Second) // a Lease of somebody else would last for a minute
	w.want("images", w.tags("app"), "2 1 1")
	w.open()
	run(30 * time.Minute)
	w.want("images", w.tags("app"), "2 2 2")
	is, was := strings.Split(w.holder("dev-1"), "/"), strings.Split(first, "/")
	if len(is) != 3 || len(was) != 3 || is[1] != was[1] || is[2] == was[2] {
		t.Errorf("held by %q, and before by %q: want the same state and another process", is, was)
	}
}

// TestConfigurationProblem: why a changed configuration is not taken is a condition until it
// is.
func TestConfigurationProblem(t *testing.T) { simulated(t, testConfigurationProblem) }

func testConfigurationProblem(t *testing.T, w *world) {
	w.release()
	for _, text := range []string{"daemon.yaml: open: no such file", "another text", ""} {
		w.daemon.SetConfigurationProblem(text)
		w.pass()
		w.want("the condition", w.trouble(store.AboutChange), text)
	}
}
