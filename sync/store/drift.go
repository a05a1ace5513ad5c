// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Object is one object of a unit on a target: what inventory, drift and fights
// are stored under.
type Object struct {
	Unit   config.UnitPath
	Target config.TargetName
	ID     object.ID
}

// Of is the object that the entry is about.
func (e *Entry) Of() Object { return Object{e.Unit, e.Target, e.ID} }

// Place is the bundle that the object belongs to.
func (e *Entry) Place() object.UnitTarget { return object.UnitTarget{Unit: e.Unit, Target: e.Target} }

func (o *Object) key() []any {
	return []any{string(o.Target), string(o.Unit), o.ID.Group, o.ID.Kind, o.ID.Namespace, o.ID.Name}
}

func (o *Object) scan() []any {
	return []any{(*string)(&o.Target), (*string)(&o.Unit), &o.ID.Group, &o.ID.Kind, &o.ID.Namespace, &o.ID.Name}
}

// Drift is one object that is not as it was applied.
type Drift struct {
	Object
	// Found is when it was first seen to be like this.
	Found time.Time
	// Mode is what is done about it: "correct", "report", or "fight" while its
	// correction is given up, see [Fight].
	Mode string
	// Deep says that only the deep sweep can see it.
	Deep bool
	// Missing says that the object of the inventory does not exist.
	Missing bool
	Changes []Change
	// Until is when the correction of a fight is tried again. It is stored with the [Fight],
	// and set by [Reader.DriftsUntil] alone.
	Until time.Time
}

// Change is one field that somebody changed or removed after we applied it,
// and who did.
type Change struct {
	// Field is the path, `.spec.template.spec.containers[name="main"].image`,
	// or `.data["app.toml"]` where a name is not a plain word. When a whole
	// item went, it stands for all below it. Empty for a note on the object.
	Field string `json:"field,omitempty"`
	// Manager owns the field now; the newest, where several do. A removed
	// field has no owner: then it is who last wrote to the object since we
	// did, or [UnknownManager].
	Manager     string `json:"manager,omitempty"`
	Operation   string `json:"operation,omitempty"`   // "Apply" or "Update"
	Subresource string `json:"subresource,omitempty"` // "scale", "status", or empty
	// Time has whole seconds. The server records none for the scale subresource.
	Time time.Time `json:"time,omitzero"`
	// Note says what there is to say when no field was lost.
	Note string `json:"note,omitempty"`
}

// UnknownManager stands for somebody who left no trace: one who only removed
// fields owns none, and the server keeps no record of who owns nothing.
const UnknownManager = "unknown"

// String is the change in one line:
//
//	.spec.replicas: kubectl-edit (Update, 2026-01-02T15:04:05Z)
func (c Change) String() string {
	var parts []string
	for _, part := range []string{c.Field, c.Note, c.author(c.Time)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Author is the manager and how it wrote, without the time: "kubectl-edit (Update)".
func (c Change) Author() string { return c.author(time.Time{}) }

// author is the manager and how it wrote, with a time that is not zero.
func (c Change) author(written time.Time) string {
	if c.Operation == "" {
		return c.Manager
	}
	how := c.Operation
	if c.Subresource != "" {
		how += " of " + c.Subresource
	}
	if !written.IsZero() {
		how += ", " + written.UTC().Format(time.RFC3339)
	}
	return c.Manager + " (" + how + ")"
}

// Fight is the record of an object that another writer keeps changing back.
type Fight struct {
	Object
	// Digest is the object's when it was last corrected; when Git brings
	// another one, the fight is forgotten.
	Digest object.Digest
	// Losses are the fields lost within the last minute, oldest first.
	Losses []Loss
	// Field and Manager are the contested field and the other writer; set with Rounds.
	Field, Manager string
	// Rounds counts how often the correction was given up. Zero: never, these
	// are losses that do not make a fight yet.
	Rounds int
	// Until is when the object is corrected again.
	Until time.Time
	// Tried is when it was, after Until; zero before.
	Tried time.Time
}

// Loss is one field that was found changed and was to be corrected.
type Loss struct {
	Field   string    `json:"field,omitempty"` // empty is the object as a whole
	Manager string    `json:"manager,omitempty"`
	At      time.Time `json:"at"`
}

const objectIs = ` WHERE target = ? AND unit = ? AND "group" = ? AND kind = ? AND namespace = ? AND name = ?`

const objectColumns = `target, unit, "group", kind, namespace, name`

// PutDrifts stores drifts, in place of the earlier ones of the same objects.
func (tx *Tx) PutDrifts(drifts []Drift) error {
	changes := make([]string, len(drifts))
	for i := range drifts {
		text, err := json.Marshal(drifts[i].Changes)
		if err != nil {
			return err
		}
		changes[i] = string(text)
	}
	i := -1
	return each(tx, `INSERT OR REPLACE INTO drift (`+objectColumns+`, found_at, mode, deep, missing, changes)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, drifts, func(d *Drift) []any {
		i++
		return append(d.key(), stored(d.Found), d.Mode, d.Deep, d.Missing, changes[i])
	})
}

// DropDrifts removes the drifts of objects that are as applied again, or that are no
// longer ours.
func (tx *Tx) DropDrifts(objects []Object) error {
	return each(tx, `DELETE FROM drift`+objectIs, objects, func(o *Object) []any { return o.key() })
}

// Drifts are all objects that are not as they were applied, as far as is
// known, sorted by target, unit, group, kind, namespace and name.
func (s Reader) Drifts() ([]Drift, error) {
	if ok, err := s.knows(3); err != nil || !ok {
		return nil, err
	}
	var drifts []Drift
	err := s.query(func(rows *sql.Rows) error {
		var d Drift
		var at stamp
		var changes []byte
		if err := rows.Scan(append(d.scan(), &at, &d.Mode, &d.Deep, &d.Missing, &changes)...); err != nil {
			return err
		}
		d.Found = at.Time
		drifts = append(drifts, d)
		return readJSON(d.Object, changes, &drifts[len(drifts)-1].Changes)
	}, `SELECT `+objectColumns+`, found_at, mode, deep, missing, changes FROM drift ORDER BY `+objectColumns)
	return drifts, err
}

// PutFights stores fights, in place of the earlier ones of the same objects.
func (tx *Tx) PutFights(fights []Fight) error {
	losses := make([]string, len(fights))
	for i := range fights {
		text, err := json.Marshal(fights[i].Losses)
		if err != nil {
			return err
		}
		losses[i] = string(text)
	}
	i := -1
	return each(tx, `INSERT OR REPLACE INTO fights (`+objectColumns+`, digest, losses, field, manager, rounds, until, tried)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, fights, func(f *Fight) []any {
		i++
		return append(f.key(), string(f.Digest), losses[i], f.Field, f.Manager, f.Rounds, stored(f.Until), stored(f.Tried))
	})
}

// DropFights forgets fights.
func (tx *Tx) DropFights(objects []Object) error {
	return each(tx, `DELETE FROM fights`+objectIs, objects, func(o *Object) []any { return o.key() })
}

// DriftsUntil are all drifts, and until when nothing is done about those that are fights.
func (s Reader) DriftsUntil() ([]Drift, error) {
	drifts, err := s.Drifts()
	if err != nil {
		return nil, err
	}
	fights, err := s.Fights()
	if err != nil {
		return nil, err
	}
	until := make(map[Object]time.Time, len(fights))
	for i := range fights {
		until[fights[i].Object] = fights[i].Until
	}
	for i := range drifts {
		drifts[i].Until = until[drifts[i].Object]
	}
	return drifts, nil
}

// Fights are all that are noted, sorted as Drifts are.
func (s Reader) Fights() ([]Fight, error) {
	if ok, err := s.knows(3); err != nil || !ok {
		return nil, err
	}
	var fights []Fight
	err := s.query(func(rows *sql.Rows) error {
		var f Fight
		var until, tried stamp
		var losses []byte
		if err := rows.Scan(append(f.scan(), (*string)(&f.Digest), &losses, &f.Field, &f.Manager, &f.Rounds, &until, &tried)...); err != nil {
			return err
		}
		f.Until, f.Tried = until.Time, tried.Time
		fights = append(fights, f)
		return readJSON(f.Object, losses, &fights[len(fights)-1].Losses)
	}, `SELECT `+objectColumns+`, digest, losses, field, manager, rounds, until, tried FROM fights ORDER BY `+objectColumns)
	return fights, err
}

func readJSON(of Object, text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s of unit %s on %s: %w", of.ID, of.Unit, of.Target, err)
	}
	return nil
}

// Holders are the entries of all units for one object of a cluster.
func (s Reader) Holders(cluster string, id object.ID) ([]Entry, error) {
	return s.entries(`name = ?1 AND namespace = ?2 AND kind = ?3 AND "group" = ?4 AND (target = ?5 OR target > ?5 || '/' AND target < ?5 || '0')`,
		id.Name, id.Namespace, id.Kind, id.Group, cluster)
}

// Elsewhere are those of the objects that are on record in the place's cluster for
// another unit, or for the same one on another target.
func (s Reader) Elsewhere(at object.UnitTarget, ids []object.ID) (map[object.ID]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	stmt, err := s.db.Prepare(`SELECT EXISTS (SELECT 1 FROM inventory WHERE name = ?1 AND namespace = ?2 AND kind = ?3 AND "group" = ?4
		AND (target = ?5 OR target > ?5 || '/' AND target < ?5 || '0') AND NOT (target = ?6 AND unit = ?7))`)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	defer stmt.Close()
	found := map[object.ID]bool{}
	for _, id := range ids {
		var there bool
		if err := stmt.QueryRow(id.Name, id.Namespace, id.Kind, id.Group, at.Target.Cluster(), string(at.Target), string(at.Unit)).Scan(&there); err != nil {
			return nil, fmt.Errorf("read state: %w", err)
		}
		if there {
			found[id] = true
		}
	}
	return found, nil
}

// InventoryAfter is the next part of [Store.ClusterInventory], n entries at
// most, after an object; the zero Object is before the first one.
func (s Reader) InventoryAfter(cluster string, after Object, n int) ([]Entry, error) {
	return s.entries(`(`+objectColumns+`) IN (SELECT `+objectColumns+` FROM inventory
		WHERE (target = ?1 OR target > ?1 || '/' AND target < ?1 || '0') AND (`+objectColumns+`) > (?2, ?3, ?4, ?5, ?6, ?7)
		ORDER BY `+objectColumns+` LIMIT ?8)`,
		append(append([]any{cluster}, after.key()...), n)...)
}

// SetDeepAfter notes how far the deep sweep of a cluster has come: the last object
// that it looked at, in the order of [Store.ClusterInventory]; empty is the
// beginning.
func (tx *Tx) SetDeepAfter(cluster string, last Object) error {
	text := ""
	if last != (Object{}) {
		raw, err := json.Marshal(last)
		if err != nil {
			return err
		}
		text = string(raw)
	}
	return tx.exec(`INSERT INTO clusters (name, deep_after) VALUES (?, ?) ON CONFLICT DO UPDATE SET deep_after = excluded.deep_after`, cluster, text)
}

// DeepAfter is how far the deep sweep of a cluster has come.
func (s Reader) DeepAfter(cluster string) (last Object, err error) {
	err = s.query(func(rows *sql.Rows) error {
		var text []byte
		if err := rows.Scan(&text); err != nil || len(text) == 0 {
			return err
		}
		return json.Unmarshal(text, &last)
	}, `SELECT deep_after FROM clusters WHERE name = ?`, cluster)
	return last, err
}
