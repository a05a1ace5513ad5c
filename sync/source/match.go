// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

// maxEdits is how many lines two versions of a file may differ in, counting
// both, to be compared further. It bounds time and memory by its square: 8 MiB.
const maxEdits = 2_000

// matches finds for each line of b the line of a that it is, -1 for a new one:
// a longest common subsequence, with the greedy algorithm of Myers (1986). Of
// equal lines the first ones match.
func matches(a, b []string) []int {
	from := make([]int, len(b))
	for i := range from {
		from[i] = -1
	}
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		from[start] = start
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
		from[endB] = endA
	}
	for _, m := range middle(a[start:endA], b[start:endB]) {
		from[start+m.b] = start + m.a
	}
	return from
}

type match struct{ a, b int }

// middle is the matches of what begins and ends differently. Diagonal k is
// where x-y is k; frontier d has how far x gets on each with d edits.
func middle(a, b []string) []match {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	var frontiers [][]int32
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		at := make([]int32, 2*d+1)
		frontiers = append(frontiers, at)
		for k := -d; k <= d; k += 2 {
			x := step(frontiers, d, k)
			for x < len(a) && x-k >= 0 && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			at[k+d] = int32(x)
			if x >= len(a) && x-k >= len(b) {
				return walkBack(frontiers, len(a), len(b))
			}
		}
	}
	return nil
}

// step is x after the d-th edit, which leads to diagonal k, before any match.
func step(frontiers [][]int32, d, k int) int {
	if d == 0 {
		return 0
	}
	before := frontiers[d-1]
	get := func(k int) int {
		if k < -(d-1) || k > d-1 {
			return -1
		}
		return int(before[k+d-1])
	}
	if k == -d || k != d && get(k-1) < get(k+1) {
		return get(k + 1) // a line of b is new
	}
	return get(k-1) + 1 // a line of a is gone
}

func walkBack(frontiers [][]int32, x, y int) []match {
	var found []match
	for d := len(frontiers) - 1; d >= 0; d-- {
		k := x - y
		start := step(frontiers, d, k)
		for x > start {
			x, y = x-1, y-1
			found = append(found, match{x, y})
		}
		if d == 0 {
			break
		}
		// back over the edit
		if before := frontiers[d-1]; k == -d || k != d && at(before, k-1, d-1) < at(before, k+1, d-1) {
			y--
		} else {
			x--
		}
	}
	return found
}

// at is the frontier of d edits at diagonal k; -1 outside of it.
func at(frontier []int32, k, d int) int32 {
	if k < -d || k > d {
		return -1
	}
	return frontier[k+d]
}
