// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"time"

	"github.com/swell-sh/swell/config"
)

// Event is one line of the history. Fields that it is not about are empty. A
// rollout.Transition can be converted to it.
type Event struct {
	Time    time.Time         `json:"time"`
	Commit  config.Commit     `json:"commit,omitempty"`
	Unit    config.UnitPath   `json:"unit,omitempty"`
	Target  config.TargetName `json:"target,omitempty"`
	Rollout int               `json:"rollout,omitempty"`
	Wave    string            `json:"wave,omitempty"`
	Kind    string            `json:"kind"`
	Text    string            `json:"text,omitempty"` // never holds a value of a Secret: callers see to it
}

// maxHistory is how many events are kept. At 200 bytes each they are 20 MB.
const maxHistory = 100_000

// AddHistory adds events in the order in which they happened, and drops the oldest
// beyond 100,000.
func (tx *Tx) AddHistory(events []Event) error {
	if len(events) == 0 {
		return nil
	}
	err := each(tx, `INSERT INTO history (at, "commit", unit, target, rollout, wave, kind, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, events, func(e *Event) []any {
		return []any{stored(e.Time), string(e.Commit), string(e.Unit), string(e.Target), e.Rollout, e.Wave, e.Kind, e.Text}
	})
	if err != nil {
		return err
	}
	return tx.exec(`DELETE FROM history WHERE seq <= (SELECT max(seq) FROM history) - ?`, maxHistory)
}

// History is the newest events, newest first, limit at most: of a unit and the
// units below that path, or of everything when it is empty.
func (s Reader) History(below config.UnitPath, limit int) ([]Event, error) {
	where, args := "", []any{limit}
	if below != "" { // "0" is the character after "/"
		where, args = `WHERE unit = ?2 OR unit > ?2 || '/' AND unit < ?2 || '0'`, append(args, string(below))
	}
	var events []Event
	err := s.query(func(rows *sql.Rows) error {
		var e Event
		var at stamp
		err := rows.Scan(&at, (*string)(&e.Commit), (*string)(&e.Unit), (*string)(&e.Target), &e.Rollout, &e.Wave, &e.Kind, &e.Text)
		e.Time = at.Time
		events = append(events, e)
		return err
	}, `SELECT at, "commit", unit, target, rollout, wave, kind, text FROM history `+where+` ORDER BY seq DESC LIMIT ?1`, args...)
	return events, err
}
