// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// keysFor is how long the keys of orders are remembered, see [Tx.Give].
const keysFor = 24 * time.Hour

// ErrKey means that an order has the key of another one.
var ErrKey = errors.New("the idempotency key was used for another order")

// Give stores an order, which the next pass carries out, and returns its number. With a
// key, an order that was given under the same key in the last 24 hours is not stored
// again: the number is that of the first one. The error wraps [ErrKey] when that was
// another order.
func (tx *Tx) Give(o order.Order, key string) (seq int64, err error) {
	if seq, err = tx.GivenAs(o, key); seq != 0 || err != nil {
		return seq, err
	}
	if seq, err = tx.insertOrder(&o); err != nil || key == "" {
		return seq, err
	}
	return seq, tx.exec(`INSERT INTO order_keys (key, at, seq, request) VALUES (?, ?, ?, ?)`, key, stored(o.At), seq, requestOf(o))
}

// GivenAs is the number of the order that was given under a key in the last 24 hours; zero
// where there is none.
func (tx *Tx) GivenAs(o order.Order, key string) (seq int64, err error) {
	if key == "" {
		return 0, nil
	}
	if err := tx.exec(`DELETE FROM order_keys WHERE at < ?`, stored(o.At.Add(-keysFor))); err != nil {
		return 0, err
	}
	var known string
	switch err := tx.tx.QueryRow(`SELECT seq, request FROM order_keys WHERE key = ?`, key).Scan(&seq, &known); {
	case errors.Is(err, sql.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("read state: %w", err)
	case known != requestOf(o):
		return 0, ErrKey
	}
	return seq, nil
}

// requestOf is what two orders under one key must have in common.
func requestOf(o order.Order) string {
	until := fmt.Sprint(stored(o.Until))
	if o.Relative { // a request that comes again comes later
		until = o.Until.Sub(o.At).Round(time.Second).String()
	}
	return fmt.Sprintf("%q", []string{o.By, string(o.Verb), string(o.Scope.Unit), string(o.Scope.Target), o.Scope.Tenant, o.Scope.Wave, o.Reason, until, string(o.Digest), o.To})
}

func (tx *Tx) insertOrder(o *order.Order) (seq int64, err error) {
	done, err := tx.tx.Exec(`INSERT INTO orders (at, by, verb, unit, target, tenant, wave, reason, until, digest, commit_to, relative) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		stored(o.At), o.By, string(o.Verb), string(o.Scope.Unit), string(o.Scope.Target), o.Scope.Tenant, o.Scope.Wave, o.Reason, stored(o.Until), string(o.Digest), o.To, o.Relative)
	if err == nil {
		seq, err = done.LastInsertId()
	}
	if err != nil {
		return 0, fmt.Errorf("write state: %w", err)
	}
	return seq, nil
}

// Alone writes to the state of a folder that no daemon is at work on. The error wraps
// [ErrLocked] when one is: what operators say is to be said to it.
func Alone(ctx context.Context, dir string, do func(*Tx) error) error {
	file, err := filepath.Abs(filepath.Join(dir, fileName))
	if err != nil {
		return err
	}
	if err := inspect(file); err != nil {
		return err
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer keepLog(dir, lostLog(dir))
	s := &Store{writer: newStatements(connect(file, "mode=rw", 1)), lock: lock}
	found, err := checkVersion(s.writer.DB, file)
	s.schema = found
	if err == nil && found < version {
		err = fmt.Errorf("%s: made by an older version of swell: schema %d, this one knows %d: swell run brings it up to date", file, found, version)
	}
	if err == nil {
		err = s.Update(ctx, do)
	}
	return errors.Join(err, s.Close())
}

// Orders are those that wait to be carried out, the oldest first.
func (s Reader) Orders() ([]order.Order, error) { return s.orders(false) }

// Standing are the orders in force, the oldest first.
func (s Reader) Standing() (order.Standing, error) { return s.orders(true) }

func (s Reader) orders(standing bool) ([]order.Order, error) {
	if ok, err := s.knows(ordersSchema); err != nil || !ok {
		return nil, err
	}
	from, err := s.orderColumns()
	if err != nil {
		return nil, err
	}
	var orders []order.Order
	err = s.query(func(rows *sql.Rows) error {
		var o order.Order
		var at, until stamp
		err := rows.Scan(&o.Seq, &at, &o.By, (*string)(&o.Verb), (*string)(&o.Scope.Unit), (*string)(&o.Scope.Target), &o.Scope.Tenant, &o.Scope.Wave,
			&o.Reason, &until, (*string)(&o.Digest), &o.To, &o.Relative)
		o.At, o.Until = at.Time, until.Time
		orders = append(orders, o)
		return err
	}, `SELECT seq, at, by, verb, unit, target, `+from+` ORDER BY seq`, standing)
	return orders, err
}

// orderColumns are those that came after the first ones, with the table and its condition.
func (s Reader) orderColumns() (string, error) {
	for _, columns := range []struct {
		since int
		text  string
	}{
		{relativeSchema, `tenant, wave, reason, until, digest, commit_to, relative FROM orders WHERE standing = ?`},
		{commitToSchema, `tenant, wave, reason, until, digest, commit_to, 0 FROM orders WHERE standing = ?`},
		{standingSchema, `tenant, wave, reason, until, digest, '', 0 FROM orders WHERE standing = ?`},
	} {
		if ok, err := s.knows(columns.since); ok || err != nil {
			return columns.text, err
		}
	}
	return `'', '', reason, NULL, '', '', 0 FROM orders WHERE 0 = ?`, nil
}

// PutInForce makes an order one of [Reader.Standing].
func (tx *Tx) PutInForce(o *order.Order) error {
	return tx.exec(`UPDATE orders SET standing = 1 WHERE seq = ?`, o.Seq)
}

// PutEnd moves the end of an order.
func (tx *Tx) PutEnd(o *order.Order) error {
	return tx.exec(`UPDATE orders SET until = ? WHERE seq = ?`, stored(o.Until), o.Seq)
}

// Inherit puts an order in force that was given to another daemon, and gives it its number.
func (tx *Tx) Inherit(o *order.Order) (err error) {
	if o.Seq, err = tx.insertOrder(o); err != nil {
		return err
	}
	return tx.PutInForce(o)
}

// DropOrder forgets an order that was carried out, or is not in force any more.
func (tx *Tx) DropOrder(o *order.Order) error {
	return tx.exec(`DELETE FROM orders WHERE seq = ?`, o.Seq)
}

// Names are what operators may name besides units.
type Names struct {
	Targets  []config.TargetName `json:"targets"`
	Clusters []string            `json:"clusters"`
	Tenants  []string            `json:"tenants"`
	Waves    []string            `json:"waves"`
}

// Brought is who wrote what a commit brings.
type Brought struct {
	Commit config.Commit `json:"commit"`
	// Base is the one that was taken before it, whose rules judge it too; empty where there was
	// none.
	Base    config.Commit `json:"base,omitempty"`
	Authors []string      `json:"authors,omitempty"`
	// Unreleased are those of earlier commits too, by unit: of what changed while the unit had a
	// problem, and comes with the commit that mends it.
	Unreleased map[config.UnitPath][]string `json:"unreleased,omitempty"`
	// Refused is a newer commit that nothing may be taken from; empty where there is none.
	Refused config.Commit `json:"refused,omitempty"`
}

// BaseOf is the commit that one goes to: the last one that was taken, or, of that, the one
// before.
func (b *Brought) BaseOf(commit config.Commit) config.Commit {
	if b.Commit == commit {
		return b.Base
	}
	return b.Commit
}

// Brought is that of the last commit that was taken.
func (s Reader) Brought() (is Brought, err error) { return is, s.fact(factBrought, &is) }

// PutBrought notes that of the last commit.
func (tx *Tx) PutBrought(is Brought) error { return tx.putFact(factBrought, is) }

// Ended are names of orders that were in force here and ended, the oldest first.
func (s Reader) Ended() (names []string, err error) { return names, s.fact(factEnded, &names) }

// PutEnded notes them.
func (tx *Tx) PutEnded(names []string) error { return tx.putFact(factEnded, names) }

// The rows of the table facts.
const (
	factBrought   = "brought"
	factAsks      = "asks"
	factEnded     = "ended"
	factNames     = "names"
	factBounds    = "bounds"
	factUnreached = "unreached"
	factWriters   = "writers"
)

// Asks are the gates that waited for approval when the last pass ended.
func (s Reader) Asks() (asks []order.Ask, err error) { return asks, s.fact(factAsks, &asks) }

// PutAsks makes these the gates that wait.
func (tx *Tx) PutAsks(asks []order.Ask) error { return tx.putFact(factAsks, asks) }

// Names are those of the last commit that was taken.
func (s Reader) Names() (names Names, err error) { return names, s.fact(factNames, &names) }

// PutNames makes these the names that operators may use.
func (tx *Tx) PutNames(names Names) error { return tx.putFact(factNames, names) }

func (s Reader) fact(name string, value any) error {
	if ok, err := s.knows(standingSchema); err != nil || !ok {
		return err
	}
	var text []byte
	switch err := s.db.QueryRow(`SELECT value FROM facts WHERE name = ?`, name).Scan(&text); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("read state: %w", err)
	}
	return json.Unmarshal(text, value)
}

func (tx *Tx) putFact(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return tx.exec(`INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, name, string(text))
}
