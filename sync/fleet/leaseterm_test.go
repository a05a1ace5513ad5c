// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"testing"
	"time"

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
