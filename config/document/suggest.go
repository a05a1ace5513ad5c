// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"slices"
	"strings"
)

// LongestName is the length in bytes up to which names are compared: no kind of
// Kubernetes with its apiVersion is longer, and comparing takes the square of it.
const LongestName = 80

// most is how many names a name is compared with at most. Many unknown names
// among many known ones take the product of both; those in use stay below.
const most = 2000

// DidYouMean is the end of a message about an unknown name: `, did you mean
// "replicas"?` when one of the known names is near, else the known names when
// they are few, else nothing.
func DidYouMean(got string, known []string) string {
	if len(got) > LongestName || len(known) > most {
		return ""
	}
	if best := nearestName(got, known, nearness(got)); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	const few = 16 // spec of Daemon has so many
	if len(known) == 0 || len(known) > few {
		return ""
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(known)))
	for i := range sorted {
		sorted[i] = Shorten(sorted[i])
	}
	return ", want one of " + strings.Join(sorted, ", ")
}

// nearness is how many letters away a name may be that is suggested.
func nearness(got string) int { return max(1, len(got)/3) }

// IsNear says whether a name would be suggested for an unknown one.
func IsNear(got, name string) bool {
	return len(got) <= LongestName && nearestName(got, []string{name}, nearness(got)) != ""
}

// Misspelt is the known name that a name was surely meant to be; empty when it may
// well be another one: it is one letter in four away.
func Misspelt(got string, known []string) string {
	if len(got) > LongestName || len(known) > most {
		return ""
	}
	return nearestName(got, known, len(got)/4)
}

// nearestName is the known name that is nearest, and at most so many letters away.
func nearestName(got string, known []string, away int) string {
	best, bestDistance := "", away+1
	for _, name := range known {
		if len(name) > LongestName {
			continue
		}
		if d := EditDistance(strings.ToLower(got), strings.ToLower(name)); d < bestDistance || d == bestDistance && best != "" && name < best {
			best, bestDistance = name, d
		}
	}
	return best
}

// EditDistance counts insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment) between two short names.
func EditDistance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
