// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
)

// TestTurnOf: a commit has the same target each time, and commits come to all of them.
func TestTurnOf(t *testing.T) {
	targets := []target{{"./a", "FuzzA"}, {"./a", "FuzzB"}, {"./b", "FuzzC"}}
	seen := map[target]bool{}
	for i := range 30 {
		commit := fmt.Sprintf("%08xffff", i*0x01234567)
		first, err := turnOf(targets, commit)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := turnOf(targets, commit); err != nil || again != first {
			t.Errorf("%s: %v, then %v (%v)", commit, first, again, err)
		}
		seen[first] = true
	}
	if len(seen) != len(targets) {
		t.Errorf("only %v had a turn", seen)
	}
	for _, commit := range []string{"", "main"} {
		if _, err := turnOf(targets, commit); err == nil {
			t.Errorf("%q has a turn", commit)
		}
	}
}
