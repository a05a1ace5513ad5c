// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	_ "embed"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// kept has a line for each history that once went wrong: its seed, its scene and what it
// found, with | between them. See [scene].
//
//go:embed testdata/seeds.txt
var kept string

// scene is what has to happen in a history: an expression for each of some of its lines,
// in their order. As text, " > " is between them.
type scene []*regexp.Regexp

func newScene(t *testing.T, text string) (s scene) {
	t.Helper()
	for part := range strings.SplitSeq(text, " > ") {
		line, err := regexp.Compile(strings.TrimSpace(part))
		if err != nil {
			t.Fatalf("scene %q: %v", text, err)
		}
		s = append(s, line)
	}
	return s
}

// missing is the first line of the scene that a history does not reach; empty when it
// reaches all of them.
func (s scene) missing(history []string) string {
	for _, line := range history {
		if len(s) > 0 && s[0].MatchString(line) {
			s = s[1:]
		}
	}
	if len(s) > 0 {
		return s[0].String()
	}
	return ""
}

// shortKept is how many kept histories are played with -short.
const shortKept = 6

// TestKeptSeeds plays the histories that once went wrong. Each has to reach its scene: after
// a change of the simulator, its seed may play something else. With -short it plays the newest
// ones alone.
func TestKeptSeeds(t *testing.T) {
	s := newStats()
	lines := slices.Collect(strings.Lines(kept))
	if testing.Short() {
		lines = lines[len(lines)-shortKept:]
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(strings.TrimSpace(line), " | ")
		if len(columns) != 3 {
			t.Fatalf("want seed | scene | what it found: %q", line)
		}
		seed, err := strconv.ParseUint(columns[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		w := run(t, seed, choices(seed, usualSteps), s)
		if w.judge.objection != nil {
			t.Logf("seed %d found: %s", seed, columns[2])
			report(t, seed, choices(seed, usualSteps), w)
		} else if missing := newScene(t, columns[1]).missing(w.history); missing != "" {
			t.Errorf("seed %d does not reach its scene (%s) any more: no %q; SWELL_SIM_SCENE='%s' make sim finds a seed that does", seed, columns[2], missing, columns[1])
		}
	}
}

const (
	// usualSteps is how many choices a history has before all faults end.
	usualSteps = 300
	// editorTime and commitTime are how much CPU histories get beside the editor and for
	// each commit.
	editorTime = 5 * time.Second
	commitTime = 30 * time.Second
)

// TestSim plays histories until the time is over. In CI, each commit has histories of its
// own, see [firstSeed]. The long form is make sim, and plays other ones each time, or until
// one reaches the scene SWELL_SIM_SCENE.
func TestSim(t *testing.T) {
	limit := editorTime
	if os.Getenv("CI") != "" {
		limit = commitTime
	}
	if text := os.Getenv("SWELL_SIM_TIME"); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	var wanted scene
	if text := os.Getenv("SWELL_SIM_SCENE"); text != "" {
		wanted = newScene(t, text)
	}
	n, began, s := number(t, "SWELL_SIM_STEPS", usualSteps), cpuTime(), newStats()
	first := firstSeed(t)
	seed := first
	for ; cpuTime()-began < limit; seed++ {
		w := run(t, seed, choices(seed, n), s)
		if w.judge.objection != nil {
			report(t, seed, choices(seed, n), w)
			break
		}
		if wanted != nil && wanted.missing(w.history) == "" {
			t.Logf("seed %d reaches the scene", seed)
			break
		}
	}
	took := cpuTime() - began
	t.Logf("seeds from %d, %.2f CPU s each, %.0f steps/s\n%s", first, took.Seconds()/float64(s.now.histories), float64(s.now.steps)/took.Seconds(), s)
}

// firstSeed is where histories begin: at SWELL_SIM_SEED; in CI by the hash of the commit, so
// that each commit has others, and the same ones whenever it is proved; and else at 1, or by
// the clock where the time is given.
func firstSeed(t *testing.T) uint64 {
	switch {
	case os.Getenv("SWELL_SIM_SEED") != "":
		return uint64(number(t, "SWELL_SIM_SEED", 0))
	case os.Getenv("SWELL_SIM_TIME") != "":
		return uint64(time.Now().UnixNano() % 1_000_000)
	case os.Getenv("CI") == "":
		return 1
	}
	hash, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		t.Fatalf("git rev-parse: %v", err)
	}
	seed, err := strconv.ParseUint(string(hash[:8]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// cpuTime is how much CPU this process has used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // every Unix has it
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
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
