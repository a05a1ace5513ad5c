// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameSeedSameHistory: a history can be played again, byte by byte. Two of three plays
// have to be the same: where a machine under load takes the processor away for long, the
// runtime may go on with another goroutine. Nothing else is by chance.
func TestSameSeedSameHistory(t *testing.T) {
	n := number(t, "SWELL_SIM_STEPS", 200)
	first := uint64(number(t, "SWELL_SIM_SEED", 1))
	for seed := first; seed < first+2; seed++ {
		again := func() string { return strings.Join(run(t, seed, choices(seed, n), newStats()).history, "\n") }
		a, b := again(), again()
		if a == b {
			continue
		}
		if c := again(); c != a && c != b {
			t.Errorf("seed %d, three plays and three histories; the first two:\n%s", seed, cmp.Diff(a, b))
		}
	}
}
