// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/order"
)

// give stores an order beside a store, as the daemon's API does.
func give(t *testing.T, s *Store, o order.Order, key string) (seq int64, err error) {
	b := s.Beside()
	err = b.Update(t.Context(), func(tx *Tx) (err error) {
		seq, err = tx.Give(o, key)
		return err
	})
	return seq, errors.Join(err, b.Close())
}

// TestOrders: an order that is given beside a daemon is noticed, kept over a
// restart, put in force where it stands, and dropped when it was carried out.
func TestOrders(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	before := value[int64](t)(s.Changes())
	want := []order.Order{
		{Seq: 1, At: noon, By: "ann", Verb: order.Retry, Scope: order.Scope{Unit: "services/shop"}, Reason: "it is back"},
		{Seq: 2, At: noon, By: "bob", Verb: order.Mask, Scope: order.Scope{Target: "sas-1/a", Tenant: "shop", Wave: "canary"}, Until: noon.Add(time.Hour)},
		{Seq: 3, At: noon, By: "eve", Verb: order.Approve, Digest: "abc"},
	}
	for _, o := range want {
		o.Seq = 0
		if _, err := give(t, s, o, ""); err != nil {
			t.Fatal(err)
		}
	}
	if after := value[int64](t)(s.Changes()); after == before {
		t.Error("the daemon does not notice it")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	same(t, want, value[[]order.Order](t)(s.Orders()))
	update(t, s, func(tx *Tx) error { return errors.Join(tx.DropOrder(&want[0]), tx.PutInForce(&want[1])) })
	same(t, want[2:], value[[]order.Order](t)(s.Orders()))
	same(t, order.Standing(want[1:2]), value[order.Standing](t)(s.Standing()))
	update(t, s, func(tx *Tx) error { return tx.DropOrder(&want[1]) })
	same(t, 0, len(value[order.Standing](t)(s.Standing())))
}

// TestOrderKeys: an order that is repeated with its key is one order, also when it was
// carried out meanwhile, and for a day.
func TestOrderKeys(t *testing.T) {
	s := open(t, t.TempDir())
	o := order.Order{At: noon, By: "ann", Verb: order.Retry, Scope: order.Scope{Unit: "services/shop"}}
	same(t, int64(1), value[int64](t)(give(t, s, o, "k")))
	later := o
	later.At = noon.Add(time.Hour)
	same(t, int64(1), value[int64](t)(give(t, s, later, "k")))
	update(t, s, func(tx *Tx) error { return tx.DropOrder(&order.Order{Seq: 1}) })
	same(t, int64(1), value[int64](t)(give(t, s, later, "k")))
	same(t, 0, len(value[[]order.Order](t)(s.Orders())))
	for _, change := range []func(o *order.Order){
		func(o *order.Order) { o.By = "bob" },
		func(o *order.Order) { o.Scope.Unit = "services" },
		func(o *order.Order) { o.Reason = "why not" },
		func(o *order.Order) { o.Verb = order.Reconcile },
		func(o *order.Order) { o.Scope.Target = "sas-1" },
		func(o *order.Order) { o.Scope.Tenant = "shop" },
		func(o *order.Order) { o.Scope.Wave = "canary" },
		func(o *order.Order) { o.Until = noon.Add(time.Hour) },
		func(o *order.Order) { o.Digest = "abc" },
		func(o *order.Order) { o.To = "c0ffee1" },
	} {
		other := o
		change(&other)
		if _, err := give(t, s, other, "k"); !errors.Is(err, ErrKey) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	same(t, int64(2), value[int64](t)(give(t, s, o, "another")))
	later.At = noon.Add(25 * time.Hour)
	same(t, int64(3), value[int64](t)(give(t, s, later, "k")))
}

// TestAlone: without a daemon an order is written under the lock, and with one it is
// refused; where there is no state, none is made.
func TestAlone(t *testing.T) {
	dir := t.TempDir()
	do := func(tx *Tx) error {
		_, err := tx.Give(order.Order{At: noon, By: "ann", Verb: order.Retry}, "")
		return err
	}
	if err := Alone(t.Context(), dir, do); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no state: %v", err)
	}
	s := open(t, dir)
	if err := Alone(t.Context(), dir, do); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a daemon: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Alone(t.Context(), dir, do); err != nil {
		t.Fatal(err)
	}
	same(t, 1, len(value[[]order.Order](t)(open(t, dir).Orders())))
}

// TestOrdersOfAnOlderSchema: an order that an older swell stored is read, and is carried
// out after the state was brought up to date.
func TestOrdersOfAnOlderSchema(t *testing.T) {
	dir := t.TempDir()
	db := connect(filepath.Join(dir, fileName), "mode=rwc", 1)
	_, err := db.Exec(strings.Join(schemas[:standingSchema-1], "") + fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, standingSchema-1) +
		`INSERT INTO orders (at, by, verb, unit, target, reason) VALUES ('2026-03-01T12:00:00Z', 'ann', 'retry', 'shop/cart', '', 'why')`)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	want := []order.Order{{Seq: 1, At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), By: "ann", Verb: order.Retry, Scope: order.Scope{Unit: "shop/cart"}, Reason: "why"}}
	old := value[*Store](t)(OpenReadOnly(dir))
	same(t, want, value[[]order.Order](t)(old.Orders()))
	same(t, 0, len(value[order.Standing](t)(old.Standing())))
	same(t, 0, len(value[[]order.Ask](t)(old.Asks())))
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	same(t, want, value[[]order.Order](t)(s.Orders()))
	same(t, 0, len(value[order.Standing](t)(s.Standing())))
}

// TestHistoryNumbers: events are read on from a number, of all units or of some.
func TestHistoryNumbers(t *testing.T) {
	s := open(t, t.TempDir())
	oldest, newest, err := s.Range()
	if oldest != 0 || newest != 0 || err != nil {
		t.Error(oldest, newest, err)
	}
	update(t, s, func(tx *Tx) error {
		return tx.AddHistory([]Event{{Time: noon, Unit: "a", Kind: "one"}, {Time: noon, Unit: "b", Kind: "two"}, {Time: noon, Unit: "a/c", Kind: "three"}})
	})
	kinds := func(events []Recorded, err error) (text string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			text += fmt.Sprintf("%d %s;", e.Seq, e.Kind)
		}
		return text
	}
	same(t, "1 one;2 two;3 three;", kinds(s.After(0, "", 10)))
	same(t, "2 two;", kinds(s.After(1, "", 1)))
	same(t, "3 three;", kinds(s.After(1, "a", 10)))
	same(t, "3 three;1 one;", kinds(s.Newest("a", 10)))
	if oldest, newest, err = s.Range(); oldest != 1 || newest != 3 || err != nil {
		t.Error(oldest, newest, err)
	}
}
