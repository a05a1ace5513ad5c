// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// BenchmarkSimulator plays one history after the other, and reports how many steps of the
// world a second has.
func BenchmarkSimulator(b *testing.B) {
	s, seed, began := newStats(), uint64(0), time.Now()
	always := func(string, string) (bool, error) { return true, nil }
	for b.Loop() {
		seed++
		history := func(t *testing.T) { // a bubble is made of a test
			if w := run(t, seed, choices(seed, usualSteps), s); w.judge.objection != nil {
				t.Error(w.judge.objection)
			}
		}
		if !testing.RunTests(always, []testing.InternalTest{{Name: "history", F: history}}) {
			b.Fatalf("seed %d", seed)
		}
	}
	b.ReportMetric(float64(s.now.steps)/time.Since(began).Seconds(), "steps/s")
}
