// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Repository is the name of the monorepo that the state is about; empty before
// the first commit was taken.
func (s Reader) Repository() (name string, err error) {
	if ok, err := s.knows(6); err != nil || !ok {
		return "", err
	}
	err = s.db.QueryRow(`SELECT name FROM repository`).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read state: %w", err)
	}
	return name, nil
}

// SetRepository notes the name of the monorepo.
func (tx *Tx) SetRepository(name string) error {
	if err := tx.exec(`DELETE FROM repository`); err != nil {
		return err
	}
	return tx.exec(`INSERT INTO repository (name) VALUES (?)`, name)
}

// Bounds are what the fleet's documents kept releases from by the last commit that was
// taken, as the daemon wrote them; nil before the first.
func (s Reader) Bounds() (bounds json.RawMessage, err error) {
	return bounds, s.fact(factBounds, &bounds)
}

// SetBounds notes them.
func (tx *Tx) SetBounds(bounds json.RawMessage) error { return tx.putFact(factBounds, bounds) }
