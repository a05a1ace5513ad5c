// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"time"
)

// event is a line of test2json, see go doc test2json.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds, where a test has ended
}

// timed is a test that has passed, failed or been skipped.
type timed struct {
	pkg, test string
	took      time.Duration
}

// outcome is what the events of one test binary say.
type outcome struct {
	tests           []timed // those at the top, subtests are within them
	passed, failed  int     // of these
	skipped         []string
	output          map[string]*strings.Builder // by test, "" for what no test output
	failures        []string                    // tests and subtests, in the order in which they ended
	ended, isFailed bool
}

// readEvents reads events to their end, and hands each line on to log.
func readEvents(pkg string, from io.Reader, log io.Writer) (*outcome, error) {
	o := &outcome{output: map[string]*strings.Builder{}}
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Action != "" {
			o.add(pkg, e)
			_, _ = io.WriteString(log, e.Output) // the log is for people, and may be cut
		}
		switch {
		case err == io.EOF:
			return o, nil
		case err != nil:
			return o, err
		}
	}
}

func (o *outcome) add(pkg string, e event) {
	isTop := e.Test != "" && !strings.Contains(e.Test, "/")
	switch e.Action {
	case "output":
		output := o.output[e.Test]
		if output == nil {
			output = &strings.Builder{}
			o.output[e.Test] = output
		}
		output.WriteString(e.Output)
		return
	case "pass", "skip":
		delete(o.output, e.Test)
	case "fail":
		o.isFailed = true
		if e.Test != "" {
			o.failures = append(o.failures, e.Test)
		}
	default:
		return
	}
	if e.Test == "" {
		o.ended = true
		return
	}
	if !isTop {
		return
	}
	o.tests = append(o.tests, timed{pkg, e.Test, time.Duration(e.Elapsed * float64(time.Second))})
	switch e.Action {
	case "pass":
		o.passed++
	case "fail":
		o.failed++
	case "skip":
		o.skipped = append(o.skipped, e.Test)
	}
}

// maxOutput is how many lines of a failed test are shown; its log has all of them.
const maxOutput = 40

// explain is what the failed tests output. Where none failed, the binary itself did, and what it
// output last is shown: the place of a panic, a deadline.
func (o *outcome) explain() string {
	var b strings.Builder
	for _, test := range o.failures {
		if output := o.output[test]; output != nil {
			b.WriteString(telling(output.String()))
		}
	}
	if output := o.output[""]; output != nil && !o.onlyVerdict() {
		b.WriteString(telling(output.String()))
	}
	if b.Len() == 0 { // a test that was under way when the process ended
		for test, output := range o.output {
			b.WriteString(test + ":\n" + telling(output.String()))
		}
	}
	return b.String()
}

// telling are the lines that say why a test failed: the last ones or, of a panic and of a deadline,
// the first ones and the goroutines that run tests, as the last of all goroutines says nothing.
func telling(output string) string {
	start := strings.Index("\n"+output, "\npanic: ")
	if start < 0 {
		return lastLines(output, maxOutput)
	}
	blocks := strings.Split(output[start:], "\n\n")
	var b strings.Builder
	for i, block := range blocks {
		if i < 2 || strings.Contains(block, "_test.go:") {
			b.WriteString(block + "\n\n")
		}
	}
	lines := strings.SplitAfterN(b.String(), "\n", 2*maxOutput+1)
	return lastLines(output[:start], maxOutput/2) + strings.Join(lines[:min(len(lines), 2*maxOutput)], "")
}

// onlyVerdict says that what no test output is the usual last line, FAIL.
func (o *outcome) onlyVerdict() bool { return o.output[""].String() == "FAIL\n" }
