// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
)

// TestAskedForDuringASweep: what is asked for while a sweep is under way may be about
// something that it did not see any more.
func TestAskedForDuringASweep(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	table := NewTimetable(config.Drift{Watch: true}, now, nil)
	table.Ask("dev")
	table.Begun("dev")
	if table.IsAsked("dev") || !table.Due("dev").IsZero() {
		t.Error("the sweep that has begun is due again")
	}
	table.Ask("dev")
	table.Swept("dev", now)
	if due := table.Due("dev"); !due.Equal(now) {
		t.Errorf("what was asked for during the sweep is due at %v", due)
	}
}

func TestDeepRhythm(t *testing.T) {
	for perMinute, want := range map[int]string{1: "1 every 1m0s", 4: "1 every 15s", 6: "1 every 10s", 60: "10 every 10s", 6000: "1000 every 10s"} {
		n, every := deepRhythm(perMinute)
		if got := fmt.Sprintf("%d every %s", n, every); got != want {
			t.Errorf("%d a minute: got %s, want %s", perMinute, got, want)
		}
	}
}
