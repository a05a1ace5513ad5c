// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rapidtest

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// work uses so much CPU time.
func work(d time.Duration) {
	for began := used(); used()-began < d; {
	}
}

// TestCheck: the least number of cases is always tried, and a share of CPU time buys more.
func TestCheck(t *testing.T) {
	if given() || testing.Short() {
		t.Skip("the number of cases is given")
	}
	t.Setenv(longTime, "")
	cases := func(least int, share, each time.Duration) (n int) {
		Check(t, least, share, func(*rapid.T) { n++; work(each) })
		return n
	}
	if n := cases(3, 0, 0); n != 3 {
		t.Errorf("no share: %d cases, want the least", n)
	}
	if n := cases(3, time.Millisecond, 2*time.Millisecond); n != 3 {
		t.Errorf("a share that the least number takes: %d cases, want 3", n)
	}
	if n := cases(3, 50*time.Millisecond, time.Millisecond); n < 10 || n > 50 {
		t.Errorf("50 ms for cases of 1 ms: %d", n)
	}
	t.Setenv(longTime, "20ms")
	if n := cases(1, 0, time.Millisecond); n < 4 || n > 20 {
		t.Errorf("20 ms by the environment for cases of 1 ms: %d", n)
	}
}

// TestBudget: as Check, for tests without rapid.
func TestBudget(t *testing.T) {
	t.Setenv(longTime, "")
	n := 0
	for b := NewBudget(t, 7, 0); b.Next(); n++ {
	}
	if n != 7 {
		t.Errorf("no share: %d cases, want 7", n)
	}
	if testing.Short() {
		return
	}
	n = 0
	for b := NewBudget(t, 1, 20*time.Millisecond); b.Next(); n++ {
		work(time.Millisecond)
	}
	if n < 4 || n > 20 {
		t.Errorf("20 ms for cases of 1 ms: %d", n)
	}
}
