// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// PinCluster returns the UID of the kube-system namespace that the cluster had
// when it was first seen. uid is noted as that if it never was. A caller must
// not write to a cluster that now has another one. A cluster that left the fleet under
// another name, with the same UID, was renamed: it keeps what the state knows of it, and is
// still [Departed]. belongs says, in the transaction, whether the fleet has a cluster of that
// name: whoever asks may have begun before it left. It is an error where it has none.
func (s *Store) PinCluster(ctx context.Context, name, uid string, belongs func() bool) (pinned string, err error) {
	if pinned, err = s.pinned(name); err != nil || pinned != "" {
		return pinned, err
	}
	if uid == "" {
		return "", fmt.Errorf("cluster %s: pinned without a UID", name)
	}
	err = s.Update(ctx, func(tx *Tx) error {
		if pinned, err = tx.pinned(name); err != nil || pinned != "" { // somebody else was first
			return err
		}
		if !belongs() {
			return fmt.Errorf("cluster %s: it is not of the fleet", name)
		}
		pinned = uid
		other, survey, err := tx.namedLike(name, uid)
		switch {
		case err != nil:
			return err
		case other == "":
			return tx.Pin(name, uid)
		case survey != Departed:
			return fmt.Errorf("cluster %s: it is cluster %s under another name: both have the kube-system UID %s", name, other, uid)
		}
		return tx.renameCluster(other, name)
	})
	if err != nil {
		return "", err
	}
	return pinned, nil
}

// Pin notes the UID of a cluster that none is known of.
func (tx *Tx) Pin(name, uid string) error {
	return tx.exec(`INSERT INTO clusters (name, uid) VALUES (?, ?) ON CONFLICT DO UPDATE SET uid = excluded.uid WHERE uid = ''`, name, uid)
}

func (s Reader) pinned(name string) (uid string, err error) {
	err = s.db.QueryRow(`SELECT uid FROM clusters WHERE name = ?`, name).Scan(&uid)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read state: %w", err)
	}
	return uid, nil
}

// namedLike finds another name that the same cluster is known under. Two names
// for one would let a unit that moves from one to the other delete its objects.
func (s Reader) namedLike(name, uid string) (other string, survey Survey, err error) {
	err = s.query(func(rows *sql.Rows) error { return rows.Scan(&other, (*string)(&survey)) },
		`SELECT name, survey FROM clusters WHERE uid = ? AND name <> ?`, uid, name)
	return other, survey, err
}

// Swept notes when a cluster was last swept for drift.
func (tx *Tx) Swept(name string, at time.Time) error {
	return tx.exec(`INSERT INTO clusters (name, swept_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET swept_at = excluded.swept_at`, name, stored(at))
}

// SweptAt is when each cluster was last swept; those that never were are not
// in it.
func (s Reader) SweptAt() (map[string]time.Time, error) {
	swept := map[string]time.Time{}
	err := s.query(func(rows *sql.Rows) error {
		var name string
		var at stamp
		err := rows.Scan(&name, &at)
		swept[name] = at.Time
		return err
	}, `SELECT name, swept_at FROM clusters WHERE swept_at IS NOT NULL`)
	return swept, err
}
