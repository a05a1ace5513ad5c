// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// slowest is how many tests the report names.
const slowest = 15

// line is printed when a binary has ended, in the form of go test.
func (r *result) line() string {
	verdict := "ok  "
	if r.isFailed {
		verdict = "FAIL"
	}
	return fmt.Sprintf("%s\t%s\t%.1fs\t%.1fs CPU\n", verdict, r.entry.name(), r.wall.Seconds(), r.cpu.Seconds())
}

// finish prints the report, and stores it.
func (r *runner) finish(began time.Time, t *tally) error {
	counts, err := t.counts()
	if err != nil {
		return err
	}
	text := r.report(time.Since(began), totalCPU(), counts)
	fmt.Print(text)
	if err := os.WriteFile(filepath.Join(resultsDir, "report.txt"), []byte(text), 0o644); err != nil {
		return err
	}
	if slices.ContainsFunc(r.results, func(res result) bool { return res.isFailed }) {
		return errFailed
	}
	return nil
}

// totalCPU is that of this process and of all that it waited for.
func totalCPU() (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			total += time.Duration(used.Utime.Nano() + used.Stime.Nano())
		}
	}
	return total
}

func (r *runner) report(wall, cpu time.Duration, counts map[string]int) string {
	var b strings.Builder
	fmt.Fprintln(&b)
	r.packages(&b)
	fmt.Fprintf(&b, "\nthe %d slowest tests\n", slowest)
	r.slowest(&b)
	passed, failed, skipped := 0, 0, 0
	for _, res := range r.results {
		passed, failed = passed+res.passed, failed+max(res.failed, map[bool]int{true: 1}[res.isFailed])
		skipped += len(res.skipped)
	}
	r.skipped(&b)
	r.failures(&b)
	fmt.Fprintf(&b, "\nwall %s, CPU %s, of it %s to link %d binaries (%d were kept) and %s of shared servers; "+
		"%d control planes and %d processes of swell started\n",
		short(wall), short(cpu), short(r.linking), r.linked, r.kept, short(r.serving), counts["control plane"], counts["swell"])
	fmt.Fprintf(&b, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if exceeded := r.overBudget(); len(exceeded) > 0 {
		fmt.Fprintf(&b, "over budget by half: %s\n", strings.Join(exceeded, ", "))
	}
	return b.String()
}

// packages is the table of all binaries, those that took most first.
func (r *runner) packages(b *strings.Builder) {
	all := slices.SortedFunc(slices.Values(r.results), func(a, b result) int { return cmp.Compare(b.cpu, a.cpu) })
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "CPU s\tbudget\twall s\ttests\t package")
	for _, res := range all {
		fmt.Fprintf(table, "%.1f\t%d\t%.1f\t%d\t %s\n",
			res.cpu.Seconds(), res.entry.budget, res.wall.Seconds(), len(res.tests), res.entry.name())
	}
	_ = table.Flush() // into memory
}

// namedSkips is how many skipped tests of a binary are named.
const namedSkips = 3

// skipped names what was skipped; a count stands for many of one binary, which want a server.
func (r *runner) skipped(b *strings.Builder) {
	var parts []string
	for _, res := range r.results {
		switch n := len(res.skipped); {
		case n > namedSkips:
			parts = append(parts, fmt.Sprintf("%s %d tests", res.entry.name(), n))
		case n > 0:
			parts = append(parts, res.entry.name()+" "+strings.Join(res.skipped, ", "))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "\nskipped: %s\n", strings.Join(parts, "; "))
	}
}

// failures is what failed, near the end: where a log is cut, its end is kept.
func (r *runner) failures(b *strings.Builder) {
	for _, res := range r.results {
		if res.isFailed {
			fmt.Fprintf(b, "\n%s failed: the last lines of each test; all are in %s\n", res.entry.name(), logFile(res.entry))
			b.WriteString(res.explain())
		}
	}
}

func (r *runner) slowest(b *strings.Builder) {
	var all []timed
	for _, res := range r.results {
		all = append(all, res.tests...)
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(b.took, a.took) })
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, test := range all[:min(slowest, len(all))] {
		fmt.Fprintf(table, "%.1f s\t %s %s\n", test.took.Seconds(), test.pkg, test.test)
	}
	_ = table.Flush() // into memory
}

// overBudget are the binaries that took more than one and a half times their budget. That is
// no failure: machines are shared.
func (r *runner) overBudget() (exceeded []string) {
	for _, res := range r.results {
		if budget := time.Duration(res.entry.budget) * time.Second; res.cpu > budget+budget/2 {
			exceeded = append(exceeded, fmt.Sprintf("%s %.0f s of %d", res.entry.name(), res.cpu.Seconds(), res.entry.budget))
		}
	}
	slices.Sort(exceeded)
	return exceeded
}

func short(d time.Duration) string { return d.Round(time.Second).String() }
