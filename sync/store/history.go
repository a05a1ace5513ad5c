// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
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

// Recorded is an event with its number in the history. A later event has a larger number.
type Recorded struct {
	Seq int64 `json:"seq"`
	Event
}

// History is the newest events, newest first, limit at most: of a unit and the
// units below that path, with the orders about folders that it is in or about everything;
// or of everything when the path is empty.
func (s Reader) History(below config.UnitPath, limit int) ([]Event, error) {
	recorded, err := s.Newest(below, limit)
	var events []Event
	for _, r := range recorded {
		events = append(events, r.Event)
	}
	return events, err
}

// Newest is what [Reader.History] is, with the numbers.
func (s Reader) Newest(below config.UnitPath, limit int) ([]Recorded, error) {
	return s.events(`DESC`, below, 0, limit)
}

// After is the events with a number above seq, the oldest first, limit at most: of a unit
// and the units below that path, or of everything when it is empty.
func (s Reader) After(seq int64, below config.UnitPath, limit int) ([]Recorded, error) {
	return s.events(`ASC`, below, seq, limit)
}

func (s Reader) events(direction string, below config.UnitPath, seq int64, limit int) ([]Recorded, error) {
	where, args := `seq > ?3`, []any{limit, string(below), seq}
	if below != "" { // "0" is the character after "/"
		folders, err := json.Marshal(foldersOf(below))
		if err != nil {
			return nil, err
		}
		verbs, err := json.Marshal(order.Verbs)
		if err != nil {
			return nil, err
		}
		where += ` AND (unit = ?2 OR unit > ?2 || '/' AND unit < ?2 || '0' OR
			unit IN (SELECT value FROM json_each(?4)) AND kind IN (SELECT value FROM json_each(?5)))`
		args = append(args, string(folders), string(verbs))
	}
	var events []Recorded
	err := s.query(func(rows *sql.Rows) error {
		var e Recorded
		var at stamp
		err := rows.Scan(&e.Seq, &at, (*string)(&e.Commit), (*string)(&e.Unit), (*string)(&e.Target), &e.Rollout, &e.Wave, &e.Kind, &e.Text)
		e.Time = at.Time
		events = append(events, e)
		return err
	}, `SELECT seq, at, "commit", unit, target, rollout, wave, kind, text FROM history WHERE `+where+` ORDER BY seq `+direction+` LIMIT ?1`, args...)
	return events, err
}

// foldersOf are the folders that a unit is in, the root among them, which is empty.
func foldersOf(unit config.UnitPath) []string {
	folders := []string{""}
	for i, c := range unit {
		if c == '/' {
			folders = append(folders, string(unit[:i]))
		}
	}
	return folders
}

// Range is the numbers of the oldest and the newest event that are kept; both are 0 when
// there is none.
func (s Reader) Range() (oldest, newest int64, err error) {
	err = s.db.QueryRow(`SELECT coalesce((SELECT min(seq) FROM history), 0), coalesce((SELECT max(seq) FROM history), 0)`).Scan(&oldest, &newest)
	if err != nil {
		err = fmt.Errorf("read state: %w", err)
	}
	return oldest, newest, err
}
