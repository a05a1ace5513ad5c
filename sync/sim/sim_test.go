// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	_ "embed"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

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
			t.Errorf("seed %d (%s): %v\n%s", seed, strings.TrimSpace(found), w.judge.objection, w.end60())
		}
	}
}

// usualSteps is how many choices a history has before all faults end.
const usualSteps = 300

// TestSim plays fresh histories until the time is over. It is for the long form, see the
// Makefile.
func TestSim(t *testing.T) {
	limit := time.Duration(0)
	if text := os.Getenv("SWELL_SIM_TIME"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	s, began := newStats(), time.Now()
	n := number(t, "SWELL_SIM_STEPS", usualSteps)
	seed := uint64(number(t, "SWELL_SIM_SEED", int(began.UnixNano()%1_000_000)))
	for ; time.Since(began) < limit; seed++ {
		if w := run(t, seed, choices(seed, n), s); w.judge.objection != nil {
			t.Errorf("seed %d: %v\n%s", seed, w.judge.objection, w.end60())
			break
		}
	}
	took := time.Since(began)
	t.Logf("%.0f steps/s\n%s", float64(s.now.steps)/took.Seconds(), s)
}

// end60 is the end of the history.
func (w *world) end60() string {
	return strings.Join(w.history[max(0, len(w.history)-60):], "\n")
}
