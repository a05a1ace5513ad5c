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
