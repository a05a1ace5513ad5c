// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
)

// TestWorld plays random commits, failures, cut networks, flapping health,
// drift, kills and clock jumps. See judge for what must hold throughout, and
// world.calmDown for how it must end.
func TestWorld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if err := play(t, mutation{}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWorldFindsBrokenRules breaks a rule at a time. Each must be objected to
// within a bounded number of worlds: else TestWorld proves nothing.
func TestWorldFindsBrokenRules(t *testing.T) {
	t.Parallel()
	const worlds = 400
	each := func(do func(*Unit)) func(*State) {
		return func(s *State) {
			for _, u := range s.Units {
				do(u)
			}
		}
	}
	eachTarget := func(do func(*Unit, *Target)) func(*State) {
		return each(func(u *Unit) {
			for _, t := range u.Targets {
				do(u, t)
			}
		})
	}
	eachWave := func(do func(*config.Wave)) func(*State) {
		return each(func(u *Unit) {
			for i := range u.Rollout.Spec.Waves {
				do(&u.Rollout.Spec.Waves[i])
			}
		})
	}
	for name, m := range map[string]mutation{
		"soak is skipped":                 {beforeDecide: eachWave(func(w *config.Wave) { w.Soak = 0 })},
		"all may fail":                    {beforeDecide: eachWave(func(w *config.Wave) { w.MaxFailures = config.Amount{Percent: 100} })},
		"any number at a time":            {beforeDecide: eachWave(func(w *config.Wave) { w.MaxConcurrent = config.Amount{} })},
		"waves forgotten at restart":      {afterRestart: each(func(u *Unit) { u.Rollout.Wave = len(u.Rollout.Spec.Waves) - 1 })},
		"intent forgotten at restart":     {afterRestart: eachTarget(func(_ *Unit, t *Target) { t.Dirty = false })},
		"quarantine forgotten at restart": {afterRestart: each(func(u *Unit) { u.Quarantine, u.Rollout.Release = nil, "" })},
		"untouched rolled back": {beforeDecide: eachTarget(func(u *Unit, t *Target) {
			if u.Rollout.Status == RollingBack && t.Good != "" && !t.Touched {
				t.Wanted, t.Touched, t.Dirty = t.Good, true, true
			}
		})},
		"good is what is applied": {beforeDecide: eachTarget(func(_ *Unit, t *Target) { t.Good = t.Applied })},
		"unreachable is failed": {beforeDecide: eachTarget(func(_ *Unit, t *Target) {
			if t.Trouble == TroubleUnreachable {
				t.Trouble = TroubleFailed
			}
		})},
		"health assumed": {beforeDecide: eachTarget(func(_ *Unit, t *Target) {
			t.Health, t.CheckedAt = HealthGood, t.Since.Add(time.Hour)
		})},
		"waiting is applied": {beforeDecide: eachTarget(func(_ *Unit, t *Target) {
			if t.Step != "" && t.Dirty {
				t.Applied, t.Dirty, t.Step = t.Wanted, false, ""
			}
		})},
		"drift forgotten":     {beforeDecide: eachTarget(func(_ *Unit, t *Target) { t.Drifted = false })},
		"leftovers forgotten": {afterRestart: eachTarget(func(_ *Unit, t *Target) { t.Leftovers = false })},
		"hold is rollback": {beforeDecide: each(func(u *Unit) {
			if u.Rollout.Status == Held {
				u.Rollout.Status = RolledBack
			}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			game := rapid.Custom(func(t *rapid.T) error { return play(t, m) })
			for seed := range worlds {
				if err := game.Example(seed); err != nil {
					t.Logf("world %d: %.200s", seed, err)
					return
				}
			}
			t.Errorf("not found in %d worlds", worlds)
		})
	}
}
