// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// played are tests that pass, fail, are skipped and panic, as TestEvents runs them.
const played = `package played

import "testing"

func TestGood(t *testing.T)    { t.Log("good words") }
func TestSkipped(t *testing.T) { t.Skip("no part") }
func TestBad(t *testing.T) {
	t.Run("one", func(t *testing.T) { t.Parallel(); t.Error("bad words") })
	t.Run("two", func(t *testing.T) { t.Parallel(); t.Log("other words") })
}
`

const panicking = `package played

import "testing"

func TestPanic(t *testing.T) { panic("out of words") }
`

// execute builds and runs tests as make test does.
func execute(t *testing.T, source string) (result, string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"go.mod": "module played\n\ngo 1.26.0\n", "played/played_test.go": source} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(resultsDir, 0o755); err != nil {
		t.Fatal(err)
	}
	test2json, err := exec.Command("go", "tool", "-n", "test2json").Output()
	if err != nil {
		t.Fatal(err)
	}
	e := &entry{pkg: "./played", how: computes, budget: 1}
	b := batches([]*entry{e})[0]
	if _, _, err := b.build(t.Context(), t.TempDir(), "out"); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs(binary("out", e))
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{env: os.Environ(), test2json: strings.TrimSpace(string(test2json))}
	res, err := r.execute(t.Context(), e, program)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(resultsDir, "played.log"))
	if err != nil {
		t.Fatal(err)
	}
	return res, string(log)
}

func TestEvents(t *testing.T) {
	res, log := execute(t, played)
	if res.passed != 1 || res.failed != 1 || !slices.Equal(res.skipped, []string{"TestSkipped"}) || len(res.tests) != 3 || !res.isFailed {
		t.Errorf("%+v", res.outcome)
	}
	text := res.explain()
	if !strings.Contains(text, "bad words") || strings.Contains(text, "good words") || strings.Contains(text, "other words") {
		t.Errorf("it explains\n%s", text)
	}
	if !strings.Contains(log, "other words") {
		t.Errorf("the log is\n%s", log)
	}
	if res.cpu <= 0 || res.wall <= 0 {
		t.Errorf("it took %s, CPU %s", res.wall, res.cpu)
	}
}

func TestPanicIsShown(t *testing.T) {
	res, _ := execute(t, panicking)
	if text := res.explain(); !res.isFailed || !strings.Contains(text, "out of words") || !strings.Contains(text, "played_test.go:5") {
		t.Errorf("failed %t:\n%s", res.isFailed, text)
	}
}

func TestTellingOfADeadline(t *testing.T) {
	var dump strings.Builder
	fmt.Fprint(&dump, "said before\npanic: test timed out after 30m0s\n\trunning tests:\n\t\tTestStuck (29m1s)\n\ngoroutine 1 [running]:\ntesting.(*M).startAlarm\n\n")
	for i := range 100 {
		fmt.Fprintf(&dump, "goroutine %d [select]:\nnet/http.readLoop\n\t/http.go:1\n\n", 2+i)
	}
	fmt.Fprint(&dump, "goroutine 300 [select]:\nstuck\n\t/stuck_test.go:7\n\n", "goroutine 301 [select]:\nlast\n\t/last.go:7\n")
	text := telling(dump.String())
	for _, want := range []string{"said before\n", "\t\tTestStuck (29m1s)\n", "stuck_test.go:7\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "readLoop") || strings.Contains(text, "last.go") {
		t.Errorf("it tells of other goroutines:\n%s", text)
	}
}

func TestReport(t *testing.T) {
	r := &runner{linked: 2, kept: 5, linking: 3 * time.Second, serving: 4 * time.Second, results: []result{
		{entry: &entry{pkg: "./a", how: computes, budget: 10}, cpu: 16 * time.Second, outcome: &outcome{passed: 2,
			tests: []timed{{"a", "TestX", 2 * time.Second}, {"a", "TestY", 3 * time.Second}}}},
		{entry: &entry{pkg: "./b", how: withRace, budget: 10}, cpu: 15 * time.Second, outcome: &outcome{passed: 1, failed: 1,
			skipped: []string{"TestZ"}, isFailed: true}},
		{entry: &entry{pkg: "./c", how: computes, budget: 10}, outcome: &outcome{isFailed: true}}, // it did not come to any test
	}}
	text := r.report(time.Minute, 2*time.Minute, map[string]int{"control plane": 4, "swell": 7})
	for _, want := range []string{
		"wall 1m0s, CPU 2m0s, of it 3s to link 2 binaries (5 were kept) and 4s of shared servers; " +
			"4 control planes and 7 processes of swell started\n",
		"3 passed, 2 failed, 1 skipped\n", "skipped: b (race) TestZ\n", "over budget by half: a 16 s of 10\n", "3.0 s a TestY\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Index(text, "TestY") > strings.Index(text, "TestX") {
		t.Errorf("the slowest test is not first:\n%s", text)
	}
}
