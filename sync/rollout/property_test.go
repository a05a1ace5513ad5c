// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
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

// TestDistressTurnsNothingBack: whatever trouble targets are in by chance, for as
// long as it may be, a commit with nothing wrong in it is never turned back, held
// or quarantined, and it arrives once the trouble is over.
func TestDistressTurnsNothingBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, mutation{})
		names := slices.Sorted(maps.Keys(targets))
		w.commit(true)
		for range 10 + w.draw(40) {
			name := names[w.draw(len(names))]
			switch w.draw(5) {
			case 0:
				w.down[name] = !w.down[name]
			case 1, 2:
				w.distress[name] = !w.distress[name]
			case 3:
				w.elapse(time.Duration(1+w.draw(300)) * time.Second)
			case 4:
				if w.draw(8) == 0 {
					w.commit(true)
				}
			}
			w.calm = true // nothing else goes wrong
			w.pass()
			w.calm = false
			for path, u := range w.state.Units {
				if u.Rollout.Status != Progressing && u.Rollout.Status != Done || len(u.Quarantine) > 0 {
					t.Fatalf("%s is %s: %s\n%s", path, u.Rollout.Status, u.Rollout.Failure, w.dump())
				}
			}
		}
		if err := w.calmDown(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWorldRecovers plays the same, until all faults end: every unit becomes done by
// itself, from whatever state it was in, also when the state was lost on the way.
func TestWorldRecovers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if err := playToRecovery(t); err != nil {
			t.Fatal(err)
		}
	})
}

// foundFile has a line for each rule that [TestWorldFindsBrokenRules] breaks: a world that
// objects, and the rule's name.
const foundFile = "testdata/broken-rules.txt"

// TestWorldFindsBrokenRules breaks a rule at a time. Each must be objected to: else
// TestWorld proves nothing. The world that is kept for it is tried first, and then a bounded
// number of them. SWELL_MUTANTS=changed (make mutants) writes foundFile where it was
// another one, SWELL_MUTANTS=all looks for all of them anew.
func TestWorldFindsBrokenRules(t *testing.T) {
	const worlds = 400
	kept, found := keptWorlds(t), map[string]int{}
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
		"unavailable is failed": {beforeDecide: eachTarget(func(_ *Unit, t *Target) {
			if t.Trouble == TroubleUnavailable {
				t.Trouble = TroubleFailed
			}
		})},
		"time in distress counts": {beforeDecide: eachTarget(func(_ *Unit, t *Target) { t.BlindSince = time.Time{} })},
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
			game := rapid.Custom(func(t *rapid.T) error { return play(t, m) })
			for n := range worlds {
				world, ok := kept[name]
				if n > 0 || !ok {
					world = n
				}
				if err := game.Example(world); err != nil {
					t.Logf("world %d: %.200s", world, err)
					found[name] = world
					return
				}
			}
			t.Errorf("not found in %d worlds: mend the judge, then make mutants", worlds)
		})
	}
	if os.Getenv("SWELL_MUTANTS") != "" {
		writeWorlds(t, found)
	}
}

// keptWorlds are those of foundFile, by the name of the rule.
func keptWorlds(t *testing.T) map[string]int {
	t.Helper()
	kept := map[string]int{}
	if os.Getenv("SWELL_MUTANTS") == "all" {
		return kept
	}
	content, err := os.ReadFile(foundFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kept[name], err = strconv.Atoi(number); err != nil {
			t.Fatalf("%s: %q: %v", foundFile, line, err)
		}
	}
	return kept
}

func writeWorlds(t *testing.T, found map[string]int) {
	t.Helper()
	text := ""
	for _, name := range slices.Sorted(maps.Keys(found)) {
		text += fmt.Sprintf("%d %s\n", found[name], name)
	}
	if err := os.WriteFile(foundFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
