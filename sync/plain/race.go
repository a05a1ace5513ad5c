// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Workers are how many requests at a time a plain loop is tried with. What
// counts is the best of them.
var Workers = []int{8, 16, 32}

// Cost of something that was measured.
type Cost struct {
	Objects int
	Took    time.Duration
	CPU     time.Duration // of this process
}

// Measure does something to as many objects.
func Measure(objects int, do func() error) (Cost, error) {
	runtime.GC() // what was before is nobody's fault
	began, used := time.Now(), cpu()
	err := do()
	return Cost{objects, time.Since(began), cpu() - used}, err
}

func cpu() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// Race has swell, which is 0 workers, and the plain loops take turns, and
// reports their rates, the ratio of swell's to that of the best loop, and the
// CPU time that each took in this process for an object. In each round everybody
// comes once. After an even number of rounds everybody was as early as the
// others.
func Race(b *testing.B, rounds int, name string, turn func(workers int) Cost) {
	total := map[int]Cost{}
	for b.Loop() {
		for round := range rounds {
			order := append([]int{0}, Workers...)
			order = slices.Concat(order[round/2:], order[:round/2])
			if round%2 == 1 {
				slices.Reverse(order)
			}
			for _, workers := range order {
				c := turn(workers)
				sum := total[workers]
				total[workers] = Cost{sum.Objects + c.Objects, sum.Took + c.Took, sum.CPU + c.CPU}
			}
		}
	}
	rate := func(c Cost) float64 { return float64(c.Objects) / c.Took.Seconds() }
	each := func(c Cost) float64 { return float64(c.CPU.Microseconds()) / float64(c.Objects) }
	best := total[Workers[0]]
	for _, workers := range Workers {
		c := total[workers]
		b.ReportMetric(rate(c), fmt.Sprintf("plain%d/s", workers))
		if rate(c) > rate(best) {
			best = c
		}
	}
	b.ReportMetric(rate(total[0]), name+"/s")
	b.ReportMetric(rate(total[0])/rate(best), name+"/plain")
	b.ReportMetric(each(total[0]), name+"-cpu-us")
	b.ReportMetric(each(best), "plain-cpu-us")
	b.ReportMetric(0, "ns/op") // holds all
}
