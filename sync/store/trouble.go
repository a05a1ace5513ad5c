// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"time"
)

// Trouble is what keeps the daemon from its work as a whole, or from a cluster.
type Trouble struct {
	// About is "git", or "commit " with a hash, "cluster " with a name, or "unit "
	// with the path of one that was never released; or [AboutConfiguration].
	About string    `json:"about"`
	Since time.Time `json:"since"`
	Text  string    `json:"text"` // one line
}

// AboutConfiguration is what the daemon's configuration names and the fleet does not
// have. It keeps nobody from anything.
const AboutConfiguration = "configuration"

// SetTroubles replaces all troubles.
func (tx *Tx) SetTroubles(troubles []Trouble) error {
	if err := tx.exec(`DELETE FROM troubles`); err != nil {
		return err
	}
	return each(tx, `INSERT INTO troubles (about, since, text) VALUES (?, ?, ?)`, troubles, func(t *Trouble) []any {
		return []any{t.About, stored(t.Since), t.Text}
	})
}

// Troubles are those that were last set, sorted by what they are about.
func (s *Store) Troubles() ([]Trouble, error) {
	if ok, err := s.knows(5); err != nil || !ok {
		return nil, err
	}
	var troubles []Trouble
	err := s.query(func(rows *sql.Rows) error {
		var t Trouble
		var since stamp
		err := rows.Scan(&t.About, &since, &t.Text)
		t.Since = since.Time
		troubles = append(troubles, t)
		return err
	}, `SELECT about, since, text FROM troubles ORDER BY about`)
	return troubles, err
}
