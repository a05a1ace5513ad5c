// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package rapidtest gives random tests a share of CPU time. It is imported by tests alone, and
// measures CPU, not the clock: on a machine that is busy with other things a test tries as much.
package rapidtest

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// longTime names the variable that gives each random test another share, such as 2m. It is for
// the long forms.
const longTime = "SWELL_RANDOM_TIME"

// Check checks the property with at least so many cases, and with more until the share of CPU
// time is used. Failures that testdata/rapid keeps come first, all of them. With -short it stops
// at the least number of cases. A case, seed or number of cases of the command line is
// what runs, and nothing else. A test that calls it cannot be parallel.
func Check(t *testing.T, least int, share time.Duration, property func(*rapid.T)) {
	t.Helper()
	if given() {
		rapid.Check(t, property)
		return
	}
	b := NewBudget(t, least, share)
	usual := flag.Lookup("rapid.checks").Value.String()
	defer func() { _ = flag.Set("rapid.checks", usual) }()
	for n := least; n > 0; n = b.affordable() {
		b.cases += n
		if testing.Short() {
			n *= 5 // rapid takes a fifth then
		}
		if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, property)
	}
}

// given says whether the command line or the environment names what rapid checks. It is asked
// before Check sets a flag, because a flag that was set looks like one that was given.
var given = sync.OnceValue(func() (found bool) {
	flag.Visit(func(f *flag.Flag) {
		found = found || f.Name == "rapid.checks" || f.Name == "rapid.seed" || f.Name == "rapid.failfile"
	})
	return found || os.Getenv("RAPID_CHECKS") != "" || os.Getenv("RAPID_SEED") != "" || os.Getenv("RAPID_FAILFILE") != ""
})

// Budget bounds a random test that does not use rapid.
type Budget struct {
	least, cases int
	share, began time.Duration
}

// NewBudget returns a budget for at least so many cases. It begins to count now.
func NewBudget(t testing.TB, least int, share time.Duration) *Budget {
	t.Helper()
	switch text := os.Getenv(longTime); {
	case testing.Short():
		share = 0
	case text != "":
		long, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", longTime, err)
		}
		share = max(share, long)
	}
	return &Budget{least: least, share: share, began: used()}
}

// Next counts a case, and says whether it is to run.
func (b *Budget) Next() bool {
	if b.cases >= b.least && used()-b.began >= b.share {
		return false
	}
	b.cases++
	return true
}

// affordable is how many more cases the rest of the share pays for: at most as many as there
// were, because the first ones may have been cheap, and none where it pays for less than one,
// or hardly anything is left.
func (b *Budget) affordable() int {
	spent := used() - b.began
	if spent >= b.share*9/10 {
		return 0
	}
	one := max(1, spent/time.Duration(b.cases))
	return min(b.cases, int((b.share-spent)/one))
}

// used is the CPU time of this process so far, and of those that it started and waited for.
func used() time.Duration {
	total := time.Duration(0)
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var usage syscall.Rusage
		if err := syscall.Getrusage(who, &usage); err != nil {
			panic(err) // only for another number
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}
