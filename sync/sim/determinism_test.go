// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameSeedSameHistory: a history can be played again, byte by byte. It is part of make
// sim: on a machine under load the runtime may switch between two goroutines at another
// place, and then one of many histories takes another turn.
func TestSameSeedSameHistory(t *testing.T) {
	if os.Getenv("SWELL_SIM_TIME") == "" {
		return
	}
	n := number(t, "SWELL_SIM_STEPS", 200)
	first := uint64(number(t, "SWELL_SIM_SEED", 1))
	for seed := first; seed < first+4; seed++ {
		a := run(t, seed, choices(seed, n), newStats())
		b := run(t, seed, choices(seed, n), newStats())
		if diff := cmp.Diff(strings.Join(a.history, "\n"), strings.Join(b.history, "\n")); diff != "" {
			t.Errorf("seed %d, %d and %d lines:\n%s", seed, len(a.history), len(b.history), diff)
		}
	}
}
