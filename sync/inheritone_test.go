// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// inheritFrom has orders in force that the Lease of cluster dev carries, after some that were ended
// here, and returns the scopes of those in force.
func inheritFrom(t *testing.T, ended order.Standing, carried ...order.Order) (scopes []string) {
	t.Helper()
	p := &pass{Daemon: manyUnits(t, 1), r: &Record{At: time.Now()}}
	steps := []func() error{func() error { return p.noteEnded(ended) }}
	for i := range carried {
		steps = append(steps, func() error { return p.inheritOne(&carried[i], "dev") })
	}
	if err := p.store(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	for _, o := range p.orders.standing {
		scopes = append(scopes, o.Scope.Text())
	}
	return scopes
}

// TestALeaseSpeaksOfItsCluster: an order that a Lease carries is in force for the cluster of the
// Lease. One of another cluster is none of its business.
func TestALeaseSpeaksOfItsCluster(t *testing.T) {
	t.Parallel()
	for target, want := range map[config.TargetName]string{"": "dev", "dev": "dev", "dev/a": "dev/a", "prod": "", "prod/a": ""} {
		mask := order.Order{At: time.Now(), By: "ann", Verb: order.Mask, Scope: order.Scope{Target: target}, Reason: "by hand"}
		got := ""
		for _, scope := range inheritFrom(t, nil, mask) {
			got += scope
		}
		if got != want {
			t.Errorf("a mask of %q: in force is one of %q, want %q", target, got, want)
		}
	}
}

// TestWhatEndedDoesNotComeBackFromALease: of an order that ended here, as it was given or as it was
// taken over for one cluster. One that was given later is another one.
func TestWhatEndedDoesNotComeBackFromALease(t *testing.T) {
	t.Parallel()
	mask := order.Order{At: time.Now(), By: "ann", Verb: order.Mask, Reason: "by hand"}
	ofCluster, later := mask, mask
	ofCluster.Scope.Target, later.At = "dev", mask.At.Add(time.Minute)
	for _, ended := range []order.Order{mask, ofCluster} {
		if got := inheritFrom(t, order.Standing{ended}, mask); len(got) > 0 {
			t.Errorf("a mask of %s ended, and is in force again: %q", ended.Scope.Text(), got)
		}
		if got := inheritFrom(t, order.Standing{ended}, ofCluster); len(got) > 0 { // a third daemon had taken it over
			t.Errorf("a mask of %s ended, and is in force again for the cluster: %q", ended.Scope.Text(), got)
		}
		if got := inheritFrom(t, order.Standing{ended}, later); len(got) != 1 {
			t.Errorf("a later mask is in force %d times, want once", len(got))
		}
	}
}

// TestWhatStandsIsNotTakenOverAgain: a Lease that could not be written for a while carries an order that the
// state has, as it was given or as another daemon took it over. It is in force once.
func TestWhatStandsIsNotTakenOverAgain(t *testing.T) {
	t.Parallel()
	everywhere := order.Order{At: time.Now(), By: "ann", Verb: order.Pause, Scope: order.Scope{Unit: "services/shop"}, Reason: "by hand"}
	here, later := everywhere, everywhere
	here.Scope.Target, later.At = "dev", everywhere.At.Add(time.Minute)
	for _, standing := range []order.Order{everywhere, here} {
		for _, carried := range []order.Order{everywhere, here} {
			p := &pass{Daemon: manyUnits(t, 1), r: &Record{At: time.Now()}}
			p.orders.standing = order.Standing{standing}
			inherit := func(o order.Order) func() error { return func() error { return p.inheritOne(&o, "dev") } }
			if err := p.store(t.Context(), []func() error{inherit(carried)}); err != nil {
				t.Fatal(err)
			}
			if n := len(p.orders.standing); n != 1 {
				t.Errorf("%s is paused, and a Lease carries that for %s: %d are in force", standing.Scope.Text(), carried.Scope.Text(), n)
			}
			if err := p.store(t.Context(), []func() error{inherit(later)}); err != nil {
				t.Fatal(err)
			}
			if n := len(p.orders.standing); n != 2 {
				t.Errorf("a pause of %s stands, a later one is carried: %d are in force, want 2", standing.Scope.Text(), n)
			}
		}
	}
}

// TestTheNewestEndsAreRemembered: of more orders that ended than are remembered, the last one does not
// come back.
func TestTheNewestEndsAreRemembered(t *testing.T) {
	t.Parallel()
	var ended order.Standing
	for i := range maxEnded + 1 {
		given := time.Now().Add(time.Duration(i) * time.Second)
		ended = append(ended, order.Order{At: given, By: "ann", Verb: order.Mask, Reason: "by hand"})
	}
	if got := inheritFrom(t, ended, ended[maxEnded]); len(got) > 0 {
		t.Errorf("the last of %d orders that ended is in force again: %q", len(ended), got)
	}
}

// TestMoreOrdersThanALeaseCarries: whoever takes over knows none of them, so it pauses all.
func TestMoreOrdersThanALeaseCarries(t *testing.T) {
	t.Parallel()
	var standing order.Standing
	for range 1 + maxCarried/1000 {
		freeze := order.Order{By: "ann", Verb: order.Freeze, Scope: order.Scope{Unit: "shop"}, Reason: strings.Repeat("x", 1000)}
		standing = append(standing, freeze)
	}
	var got []order.Order
	if err := json.Unmarshal([]byte(carried(standing)), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Verb != order.Pause || got[0].Scope != (order.Scope{}) {
		t.Errorf("%d orders are carried, the first is %s of %s; want a pause of everything", len(got), got[0].Verb, got[0].Scope.Text())
	}
}

// TestAnEndThatMovedIsStored: the next process knows an end that moved with the clock.
func TestAnEndThatMovedIsStored(t *testing.T) {
	t.Parallel()
	d, given := manyUnits(t, 1), time.Now()
	p := &pass{Daemon: d, r: &Record{At: given}}
	mask := order.Order{At: given, By: "ann", Verb: order.Mask, Until: given.Add(time.Hour), Relative: true}
	shift := func() error {
		d.orders.standing = order.Standing{mask}
		d.orders.shift(2*time.Hour, func(*order.Order) bool { return true })
		return nil
	}
	if err := p.store(t.Context(), []func() error{func() error { return p.tx.Inherit(&mask) }, shift, p.saveMoved}); err != nil {
		t.Fatal(err)
	}
	if stored, err := d.Store.Standing(); err != nil || len(stored) != 1 || !stored[0].Until.Equal(mask.Until.Add(2*time.Hour)) {
		t.Errorf("stored is %+v, %v; want the end at %s", stored, err, mask.Until.Add(2*time.Hour))
	}
}
