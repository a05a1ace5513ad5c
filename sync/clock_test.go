// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// twoClocks are the wall and one that goes on evenly.
type twoClocks struct {
	wall   time.Time
	steady time.Duration
}

// still is a clock that does not go on.
func still(now time.Time) clock {
	return newClock(func() time.Time { return now }, func() time.Duration { return 0 })
}

func (c *twoClocks) pass(d time.Duration) { c.wall, c.steady = c.wall.Add(d), c.steady+d }

// TestClock: a step is what the wall went on more, or less, than the steady clock.
func TestClock(t *testing.T) {
	clocks := twoClocks{wall: noon}
	c := newClock(func() time.Time { return clocks.wall }, func() time.Duration { return clocks.steady })
	expect := func(step time.Duration, want string) {
		t.Helper()
		if now, got := c.tick(); got != step || !now.Equal(clocks.wall) {
			t.Errorf("at %s the step is %s, want %s", now, got, step)
		}
		if got := c.condition(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
	expect(0, "")
	clocks.pass(time.Hour)
	expect(0, "")
	clocks.pass(time.Second)
	clocks.wall = clocks.wall.Add(2 * time.Hour)
	expect(2*time.Hour, "set forward by 2h0m0s at 2026-03-01T15:00:01Z")
	due := clocks.wall.Add(time.Minute)
	clocks.pass(10 * time.Second)
	clocks.wall = clocks.wall.Add(-10 * time.Minute)
	if wait := c.until(due); wait != 50*time.Second {
		t.Errorf("it sleeps for %s, want 50s", wait)
	}
	expect(-10*time.Minute, "set back by 10m0s")
	clocks.pass(59 * time.Minute)
	clocks.wall = clocks.wall.Add(30 * time.Second) // too small to be told of
	expect(30*time.Second, "set back by 10m0s at 2026-03-01T14:50:41Z")
	clocks.pass(time.Minute)
	expect(0, "")
	clocks.wall = clocks.wall.Add(leastStep - 1)
	expect(0, "")
}

// soaking has a unit that soaks, and knows of a moment.
func soaking(since time.Time) *rollout.State {
	return &rollout.State{Units: map[config.UnitPath]*rollout.Unit{"app": {
		Path: "app", Rollout: &rollout.Rollout{StartedAt: since.Add(-time.Minute)},
		Targets: map[config.TargetName]*rollout.Target{"dev/a": {Since: since, RetryAt: since.Add(time.Minute)}},
	}}}
}

// TestTheClockIsSet: what waits for an amount of time waits as long as before; what waits for
// a time of day does not move.
func TestTheClockIsSet(t *testing.T) {
	fought := store.Object{Target: "dev/a", ID: object.ID{Kind: "ConfigMap", Name: "x"}}
	tomorrow := noon.Add(24 * time.Hour)
	always := func(string) time.Time { return time.Time{} }
	for name, c := range map[string]struct {
		step    time.Duration
		restart bool // the daemon did not run when the clock was set
		moved   time.Duration
		// Since noon: of a relative order given at noon, of one with a time, and of a relative one that was
		// given after the step.
		ends []time.Duration
	}{
		"forward": {step: 2 * time.Hour, moved: 2 * time.Hour,
			ends: []time.Duration{3 * time.Hour, 24 * time.Hour, 4 * time.Hour}},
		"back": {step: -10 * time.Minute, moved: -10 * time.Minute,
			ends: []time.Duration{50 * time.Minute, 24 * time.Hour, 110 * time.Minute}},
		"back, while it was down": {step: -3 * time.Hour, restart: true, moved: -3 * time.Hour,
			ends: []time.Duration{-2 * time.Hour, 24 * time.Hour, -2 * time.Hour}},
		"forward, while it was down": {step: time.Hour, restart: true,
			ends: []time.Duration{time.Hour, 24 * time.Hour, 2 * time.Hour}},
	} {
		t.Run(name, func(t *testing.T) {
			clocks := &twoClocks{wall: noon.Add(time.Second)}
			d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
			d.Now, d.Steady = func() time.Time { return clocks.wall }, func() time.Duration { return clocks.steady }
			d.state, d.branch = soaking(noon), &branch{next: noon.Add(30 * time.Second)}
			d.surveys.due = map[string]time.Time{"dev": noon.Add(time.Minute)}
			var err error
			if d.sweeps.ledger, err = drift.Open(fights{{Object: fought, Rounds: 1, Until: noon.Add(time.Minute)}}); err != nil {
				t.Fatal(err)
			}
			later := noon.Add(time.Hour)
			if c.restart {
				later = noon.Add(c.step)
			}
			d.orders.standing = order.Standing{
				{Seq: 1, Verb: order.Mask, At: noon.Add(-4 * time.Hour), Until: noon.Add(time.Hour), Relative: true},
				{Seq: 2, Verb: order.Freeze, At: noon, Until: tomorrow},
				{Seq: 3, Verb: order.Pause, At: later, Until: later.Add(time.Hour), Relative: true},
			}
			if !c.restart {
				d.openClock(nil)
			}
			clocks.wall = clocks.wall.Add(c.step)
			if c.restart {
				d.openClock(d.orders.standing[:2])
			}
			r := d.begin()
			since := func(t time.Time) time.Duration { return t.Sub(noon) }
			unit := d.state.Units["app"]
			got := map[string]time.Duration{
				"soak": since(unit.Targets["dev/a"].Since), "retry": since(unit.Targets["dev/a"].RetryAt) - time.Minute,
				"start": since(unit.Rollout.StartedAt) + time.Minute, "branch": since(d.branch.next) - 30*time.Second,
				"survey": since(d.surveys.due["dev"]) - time.Minute, "fight": since(d.sweeps.ledger.NextResume(always)) - time.Minute,
			}
			// What the state knew when the process began is at most a second old.
			moved := c.moved
			if c.restart && moved < 0 {
				moved += time.Second
			}
			for name, by := range got {
				if by != moved {
					t.Errorf("%s moved by %s, want %s", name, by, moved)
				}
			}
			var ends []time.Duration
			for _, o := range d.orders.standing {
				ends = append(ends, since(o.Until).Round(time.Minute))
			}
			if diff := cmp.Diff(c.ends, ends); diff != "" {
				t.Errorf("ends of orders (-want +got):\n%s", diff)
			}
			if r.At != clocks.wall {
				t.Errorf("the pass is at %s, want %s", r.At, clocks.wall)
			}
			if text := d.clock.condition(); (text != "") != (c.moved != 0) {
				t.Errorf("told is %q", text)
			}
		})
	}
}
