// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
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
func (s Reader) Bounds() (bounds []byte, err error) {
	if ok, err := s.knows(boundsSchema); err != nil || !ok {
		return nil, err
	}
	err = s.db.QueryRow(`SELECT bounds FROM repository`).Scan(&bounds)
	if errors.Is(err, sql.ErrNoRows) || len(bounds) == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return bounds, nil
}

// SetBounds notes them, once the monorepo has a name.
func (tx *Tx) SetBounds(bounds []byte) error {
	return tx.exec(`UPDATE repository SET bounds = ?`, string(bounds))
}
