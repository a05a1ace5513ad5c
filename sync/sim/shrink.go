// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"
)

// shrink looks for a shorter list of choices that breaks the same rule: it leaves out
// parts, and then makes single choices harmless, until the time is over.
func shrink(events []uint64, limit time.Duration, fails func([]uint64) bool) []uint64 {
	end := time.Now().Add(limit)
	for size := max(1, len(events)/2); size > 0 && time.Now().Before(end); {
		shorter := false
		for at := 0; at < len(events) && time.Now().Before(end); {
			if without := slices.Delete(slices.Clone(events), at, min(at+size, len(events))); fails(without) {
				events, shorter = without, true
				continue
			}
			at += size
		}
		if !shorter || size > 1 {
			size /= 2
		}
	}
	for i := range events {
		if calmer := slices.Clone(events); events[i] != 0 && time.Now().Before(end) {
			if calmer[i] = 0; fails(calmer) {
				events = calmer
			}
		}
	}
	return events
}
