// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOrders: an order that is given beside a daemon is noticed, kept over a
// restart, and dropped when it was carried out.
func TestOrders(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Changes()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := []Order{
		{Seq: 1, At: at, By: "ann", Verb: OrderRetry, Unit: "services/shop", Reason: "it is back"},
		{Seq: 2, At: at, By: "bob", Verb: OrderRetry, Target: "sas-1/a"},
	}
	for _, o := range want {
		if err := Give(t.Context(), dir, o); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := s.Changes(); err != nil || after == before {
		t.Errorf("not noticed: %d, %v", after, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Orders()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if err := s.Update(t.Context(), func(tx *Tx) error { return tx.DropOrder(want[0]) }); err != nil {
		t.Fatal(err)
	}
	got, err = s.Orders()
	if diff := cmp.Diff(want[1:], got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	if text := want[0].Text() + "; " + want[1].Text(); text != "by ann: it is back; by bob" {
		t.Error(text)
	}
	if err := Give(t.Context(), t.TempDir(), want[0]); err == nil {
		t.Error("given to nobody")
	}
}
