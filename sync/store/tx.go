// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// Tx is one transaction: all of its writes happen, or none.
type Tx struct{ tx *sql.Tx }

// Update runs do in one transaction. It is on disk when Update returns without
// an error; with one, nothing has changed.
func (s *Store) Update(ctx context.Context, do func(*Tx) error) error {
	err := s.update(ctx, func(tx *sql.Tx) error { return do(&Tx{tx}) })
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// PutUnit stores the state of a unit.
func (t *Tx) PutUnit(path config.UnitPath, state []byte) error {
	_, err := t.tx.Exec("INSERT INTO units (path, state) VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state", path, state)
	return err
}

// DeleteUnit forgets the state of a unit. Its inventory stays.
func (t *Tx) DeleteUnit(path config.UnitPath) error {
	_, err := t.tx.Exec("DELETE FROM units WHERE path = ?", path)
	return err
}

const identity = `target = ? AND unit = ? AND "group" = ? AND kind = ? AND namespace = ? AND name = ?`

func (e *Entry) identity() []any {
	return []any{e.Target, e.Unit, e.ID.Group, e.ID.Kind, e.ID.Namespace, e.ID.Name}
}

// each runs one prepared statement for every entry.
func (t *Tx) each(query string, entries []Entry, args func(*Entry) []any) error {
	if len(entries) == 0 {
		return nil
	}
	statement, err := t.tx.Prepare(query)
	if err != nil {
		return err
	}
	defer statement.Close()
	for i := range entries {
		if _, err := statement.Exec(args(&entries[i])...); err != nil {
			return fmt.Errorf("%s on %s: %w", entries[i].ID, entries[i].Target, err)
		}
	}
	return nil
}

// Intend notes objects that are about to be applied. What is known of an
// object that is in the inventory already stays as it is.
func (t *Tx) Intend(entries []Entry) error {
	return t.each(`INSERT INTO inventory (target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, fields)
		VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '', '') ON CONFLICT DO NOTHING`, entries,
		func(e *Entry) []any { return append(e.identity(), e.Version) })
}

// Suspect notes that the server may hold something else than the inventory
// says: the digest is cleared, so that the next apply sends the object.
func (t *Tx) Suspect(entries []Entry) error {
	return t.each("UPDATE inventory SET digest = '' WHERE "+identity, entries, (*Entry).identity)
}

// Confirm notes what the server holds now.
func (t *Tx) Confirm(entries []Entry) error {
	return t.each(`INSERT INTO inventory (target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, fields)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET version = excluded.version, uid = excluded.uid,
		digest = excluded.digest, fingerprint = excluded.fingerprint, fields = excluded.fields`, entries,
		func(e *Entry) []any {
			return append(e.identity(), e.Version, e.UID, string(e.Digest), e.Fingerprint, e.Fields)
		})
}

// Forget removes entries from the inventory.
func (t *Tx) Forget(entries []Entry) error {
	return t.each("DELETE FROM inventory WHERE "+identity, entries, (*Entry).identity)
}

// Swept notes when a cluster was last compared with the inventory.
func (t *Tx) Swept(cluster string, at time.Time) error {
	_, err := t.tx.Exec("INSERT INTO clusters (name, swept_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET swept_at = excluded.swept_at", cluster, at.Unix())
	return err
}

// Event is one line of the history.
type Event struct {
	Time   time.Time // to the second
	Unit   config.UnitPath
	Target config.TargetName // empty for what concerns the whole unit
	Kind   string            // one word
	Text   string
}

// keptEvents is how much history is kept, over all units.
const keptEvents = 100_000

// AddHistory appends events, and drops the oldest beyond what is kept.
func (t *Tx) AddHistory(events []Event) error {
	if len(events) == 0 {
		return nil
	}
	statement, err := t.tx.Prepare("INSERT INTO history (time, unit, target, kind, text) VALUES (?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer statement.Close()
	for _, e := range events {
		if _, err := statement.Exec(e.Time.Unix(), e.Unit, e.Target, e.Kind, e.Text); err != nil {
			return err
		}
	}
	_, err = t.tx.Exec("DELETE FROM history WHERE id <= (SELECT max(id) FROM history) - ?", keptEvents)
	return err
}

// History is the newest events of a unit, newest first; of all units when the
// path is empty.
func (s *Store) History(unit config.UnitPath, limit int) ([]Event, error) {
	rows, err := s.db.Query("SELECT time, unit, target, kind, text FROM history WHERE ? = '' OR unit = ? ORDER BY id DESC LIMIT ?", unit, unit, limit)
	if err != nil {
		return nil, fmt.Errorf("state: history: %w", err)
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		var e Event
		var at int64
		if err := rows.Scan(&at, &e.Unit, &e.Target, &e.Kind, &e.Text); err != nil {
			return nil, fmt.Errorf("state: history: %w", err)
		}
		e.Time = time.Unix(at, 0).UTC()
		events = append(events, e)
	}
	return events, rows.Err()
}

const entryColumns = `target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, fields`

func (s *Store) entries(query string, args ...any) ([]Entry, error) {
	rows, err := s.db.Query("SELECT "+entryColumns+" FROM inventory WHERE "+query, args...)
	if err != nil {
		return nil, fmt.Errorf("state: inventory: %w", err)
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		var e Entry
		if err := rows.Scan(&e.Target, &e.Unit, &e.ID.Group, &e.ID.Kind, &e.ID.Namespace, &e.ID.Name,
			&e.Version, &e.UID, &e.Digest, &e.Fingerprint, &e.Fields); err != nil {
			return nil, fmt.Errorf("state: inventory: %w", err)
		}
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// Inventory is what a unit has on a target.
func (s *Store) Inventory(unit config.UnitPath, target config.TargetName) (map[render.ObjectID]Entry, error) {
	entries, err := s.entries("target = ? AND unit = ?", target, unit)
	if err != nil {
		return nil, err
	}
	inventory := make(map[render.ObjectID]Entry, len(entries))
	for _, e := range entries {
		inventory[e.ID] = e
	}
	return inventory, nil
}

// ClusterInventory is what all units have on the targets of a cluster, sorted
// by target, unit and identity.
func (s *Store) ClusterInventory(cluster string) ([]Entry, error) {
	// "/" is followed by "0": all cells of the cluster, and no other cluster
	// whose name begins the same.
	return s.entries("(target = ? OR target >= ? AND target < ?) ORDER BY target, unit, \"group\", kind, namespace, name",
		cluster, cluster+"/", cluster+"0")
}

// PinCluster returns the kube-system UID that a cluster had when it was first
// seen, which is the given one the first time.
func (s *Store) PinCluster(ctx context.Context, name, uid string) (string, error) {
	pinned := uid
	err := s.Update(ctx, func(tx *Tx) error {
		_, err := tx.tx.Exec("INSERT INTO clusters (name, uid) VALUES (?, ?) ON CONFLICT DO UPDATE SET uid = excluded.uid WHERE uid = ''", name, uid)
		if err != nil {
			return err
		}
		return tx.tx.QueryRow("SELECT uid FROM clusters WHERE name = ?", name).Scan(&pinned)
	})
	return pinned, err
}

// SweptAt is when each cluster was last swept; a cluster that never was is not
// in it.
func (s *Store) SweptAt() (map[string]time.Time, error) {
	rows, err := s.db.Query("SELECT name, swept_at FROM clusters WHERE swept_at > 0")
	if err != nil {
		return nil, fmt.Errorf("state: clusters: %w", err)
	}
	defer rows.Close()
	swept := map[string]time.Time{}
	for rows.Next() {
		var name string
		var at int64
		if err := rows.Scan(&name, &at); err != nil {
			return nil, fmt.Errorf("state: clusters: %w", err)
		}
		swept[name] = time.Unix(at, 0).UTC()
	}
	return swept, rows.Err()
}
