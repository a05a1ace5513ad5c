// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/swell-sh/swell/sync/apply"
)

// TestAJobEndsWithItsTerm: what began in one term of a Lease writes nothing in the
// next, although the Lease is held again.
func TestAJobEndsWithItsTerm(t *testing.T) {
	l := &lease{cluster: "dev", namespace: "kube-system", name: "swell", times: defaultLeaseTimes, last: &coordinationv1.Lease{}, renewed: time.Now(), terms: 1}
	first, second := l.during(1), l.during(2)
	if err := errors.Join(first(), l.fence()); err != nil {
		t.Errorf("in its term: %v", err)
	}
	l.last = nil
	if first() == nil || second() == nil {
		t.Error("it writes while somebody else has the Lease")
	}
	l.last, l.terms = &coordinationv1.Lease{}, 2
	if err := first(); !errors.As(err, new(NotWriter)) {
		t.Errorf("in the next term: %v", err)
	}
	if err := second(); err != nil {
		t.Errorf("what began in the next term: %v", err)
	}
	var none *lease
	if err := none.during(1)(); err != nil {
		t.Errorf("where no Lease is kept: %v", err)
	}
}

// TestASuspendedLeaseIsNotWritten: neither by a try that was under way, nor at the end.
func TestASuspendedLeaseIsNotWritten(t *testing.T) {
	l := &lease{cluster: "dev", namespace: "kube-system", name: "swell", times: defaultLeaseTimes, last: &coordinationv1.Lease{},
		renewed: time.Now(), terms: 1, resumed: make(chan struct{}, 1)}
	l.suspend(true)
	if term, why := l.term(); term != 0 || why != nil || l.fence() == nil {
		t.Errorf("term %d, %v", term, why)
	}
	if err := l.put(t.Context(), nil, l.last, false); !errors.As(err, new(NotWriter)) { // there is no connection to write it over
		t.Error(err)
	}
	l.suspend(false)
	if term, why := l.term(); term != 1 || why != nil || len(l.resumed) != 1 {
		t.Errorf("resumed: term %d, %v", term, why)
	}
}

// TestEachMaskIsWrittenOnce: the orders that mask a cluster are written into its Lease when it is
// suspended, once; and again when it is suspended the next time.
func TestEachMaskIsWrittenOnce(t *testing.T) {
	l := &lease{cluster: "dev", times: defaultLeaseTimes, last: &coordinationv1.Lease{}, resumed: make(chan struct{}, 1),
		linked: func() *apply.Cluster { return nil }}
	for _, mask := range []string{"the first", "the second"} {
		l.carry(mask)
		l.suspend(true)
		if !l.owes() {
			t.Errorf("%s mask is not to be written", mask)
		}
		l.farewell(t.Context())
		l.carry(mask + ", and a pause")
		if l.owes() {
			t.Errorf("after %s mask, more is to be written to the masked cluster", mask)
		}
		l.suspend(false)
	}
}

// TestALeaseGoesByTheClockThatSaysMore: a machine that slept and one whose clock was set back do
// not write in a term that somebody else takes for over.
func TestALeaseGoesByTheClockThatSaysMore(t *testing.T) {
	const long = time.Hour
	for _, c := range []struct {
		name         string
		wall, steady time.Duration // how long ago the Lease was renewed, by each clock
		held         bool
	}{
		{"now", 0, 0, true},
		{"the machine slept, and its steady clock stood still", long, 0, false},
		{"the clock was set back meanwhile", 0, long, false},
		{"the clock was set back by more", -long, long, false},
		{"both", long, long, false},
	} {
		l := &lease{cluster: "dev", namespace: "kube-system", name: "swell", times: defaultLeaseTimes, last: &coordinationv1.Lease{},
			renewed: earlier(t, c.wall, c.steady), terms: 1}
		if term, why := l.term(); (term == 1) != c.held || (why == nil) != c.held {
			t.Errorf("%s: term %d, %v", c.name, term, why)
		}
	}
}

// earlier is a time before now, by each of the two clocks that a [time.Time] has.
func earlier(t *testing.T, wall, steady time.Duration) time.Time {
	t.Helper()
	now := time.Now()
	before := now
	parts := (*struct { // see its source
		wall uint64 // the seconds are above 30 bits of nanoseconds
		ext  int64  // the steady clock
		loc  *time.Location
	})(unsafe.Pointer(&before))
	parts.wall -= uint64(wall/time.Second) << 30
	parts.ext -= int64(steady)
	if now.Sub(before) != steady || now.Round(0).Sub(before.Round(0)) != wall {
		t.Fatalf("%s by the steady clock, %s by the other", now.Sub(before), now.Round(0).Sub(before.Round(0)))
	}
	return before
}
