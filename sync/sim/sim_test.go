// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	_ "embed"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain lets memory grow: nothing here lives long. All goroutines share one core: of
// two whose timers end at one moment, it is then always the same that goes first.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// run plays one history in a bubble of its own.
func run(t *testing.T, seed uint64, events []uint64, s *stats) (w *world) {
	t.Helper()
	dir := folder(t.TempDir())
	defer os.RemoveAll(dir)
	synctest.Test(t, func(t *testing.T) { w = play(seed, events, dir, s) })
	return w
}

func number(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// kept are the seeds that once found something, each with what.
//
//go:embed testdata/seeds.txt
var kept string

// TestKeptSeeds plays the histories that once went wrong.
func TestKeptSeeds(t *testing.T) {
	s := newStats()
	for line := range strings.Lines(kept) {
		text, found, _ := strings.Cut(strings.TrimSpace(line), " ")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if w := run(t, seed, choices(seed, usualSteps), s); w.judge.objection != nil {
			t.Logf("seed %d found: %s", seed, strings.TrimSpace(found))
			report(t, seed, choices(seed, usualSteps), w)
		}
	}
}

// usualSteps is how many choices a history has before all faults end.
const usualSteps = 300

// TestSim plays histories until the time is over. The long form is make sim, and plays other
// ones each time.
func TestSim(t *testing.T) {
	limit, first, began := 5*time.Second, 1, time.Now()
	if text := os.Getenv("SWELL_SIM_TIME"); text != "" {
		first = int(began.UnixNano() % 1_000_000)
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s := newStats()
	n := number(t, "SWELL_SIM_STEPS", usualSteps)
	seed := uint64(number(t, "SWELL_SIM_SEED", first))
	for ; time.Since(began) < limit; seed++ {
		if w := run(t, seed, choices(seed, n), s); w.judge.objection != nil {
			report(t, seed, choices(seed, n), w)
			break
		}
	}
	took := time.Since(began)
	t.Logf("%.0f steps/s\n%s", float64(s.now.steps)/took.Seconds(), s)
}

// shrinkTime bounds the search for a shorter history.
const shrinkTime = 30 * time.Second

// report fails the test with a history that is as short as it can be made in time.
func report(t *testing.T, seed uint64, events []uint64, w *world) {
	t.Helper()
	rule := w.judge.objection.rule
	before := len(w.history)
	least := shrink(events, shrinkTime, func(some []uint64) bool {
		again := run(t, seed, some, newStats())
		if again.judge.objection == nil || again.judge.objection.rule != rule {
			return false
		}
		w = again
		return true
	})
	t.Errorf("seed %d: %v\n%d choices of %d, %d lines of %d; play it again with SWELL_SIM_SEED=%d SWELL_SIM_CHOICES=%s\n%s",
		seed, w.judge.objection, len(least), len(events), len(w.history), before, seed, coded(least), strings.Join(w.history[max(0, len(w.history)-400):], "\n"))
}

// coded is a list of choices as one word.
func coded(events []uint64) string {
	words := make([]string, len(events))
	for i, e := range events {
		words[i] = strconv.FormatUint(e, 36)
	}
	return strings.Join(words, ",")
}

// TestChoices plays the history of SWELL_SIM_CHOICES, and prints it and the daemon's log.
func TestChoices(t *testing.T) {
	text, ok := os.LookupEnv("SWELL_SIM_CHOICES")
	if !ok {
		return
	}
	var events []uint64
	for word := range strings.SplitSeq(text, ",") {
		e, err := strconv.ParseUint(word, 36, 64)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	w := run(t, uint64(number(t, "SWELL_SIM_SEED", 0)), events, newStats())
	t.Logf("%s\nlog of the daemon:\n%s", strings.Join(w.history, "\n"), strings.Join(w.logged.recent, ""))
	if w.judge.objection != nil {
		t.Error(w.judge.objection)
	}
}
