// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/swell-sh/swell/config"
)

// Order is an operator's order that the daemon has not carried out yet.
type Order struct {
	Seq  int64     // the oldest is the smallest
	At   time.Time // when it was given
	By   string
	Verb string // [OrderRetry]
	// Unit is the one that it is about, with those below that path, Target or
	// cluster the place. Both empty: all.
	Unit   config.UnitPath
	Target config.TargetName
	Reason string // as the operator gave it; may be empty
}

// OrderRetry starts again what failed or waits, see [rollout.State.Retry].
const OrderRetry = "retry"

// Text is the order in one line, for the history.
func (o *Order) Text() string {
	text := "by " + o.By
	if o.Reason != "" {
		text += ": " + o.Reason
	}
	return text
}

// Give stores an order in the state of a folder, whether or not a daemon is at work
// on it. Like [Approve] it needs no lock.
func Give(ctx context.Context, dir string, o Order) error {
	return updateUnlocked(ctx, dir, func(tx *Tx) error {
		return tx.exec(`INSERT INTO orders (at, by, verb, unit, target, reason) VALUES (?, ?, ?, ?, ?, ?)`,
			stored(o.At), o.By, o.Verb, string(o.Unit), string(o.Target), o.Reason)
	})
}

// updateUnlocked writes to the state of a folder that a daemon may be at work on.
func updateUnlocked(ctx context.Context, dir string, do func(*Tx) error) error {
	file, err := filepath.Abs(filepath.Join(dir, fileName))
	if err != nil {
		return err
	}
	if err := inspect(file); err != nil {
		return err
	}
	s := &Store{writer: connect(file, "mode=rw", 1)}
	found, err := checkVersion(s.writer, file)
	if err == nil && found < version {
		err = fmt.Errorf("%s: made by an older version of swell: schema %d, this one knows %d: swell run brings it up to date", file, found, version)
	}
	if err == nil {
		err = s.Update(ctx, do)
	}
	return errors.Join(err, s.Close())
}

// Orders are those that wait to be carried out, the oldest first.
func (s Reader) Orders() ([]Order, error) {
	if ok, err := s.knows(ordersSchema); err != nil || !ok {
		return nil, err
	}
	var orders []Order
	err := s.query(func(rows *sql.Rows) error {
		var o Order
		var at stamp
		err := rows.Scan(&o.Seq, &at, &o.By, &o.Verb, (*string)(&o.Unit), (*string)(&o.Target), &o.Reason)
		o.At = at.Time
		orders = append(orders, o)
		return err
	}, `SELECT seq, at, by, verb, unit, target, reason FROM orders ORDER BY seq`)
	return orders, err
}

// DropOrder forgets an order that was carried out.
func (tx *Tx) DropOrder(o Order) error { return tx.exec(`DELETE FROM orders WHERE seq = ?`, o.Seq) }
