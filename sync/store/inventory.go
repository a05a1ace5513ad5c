// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Entry is the inventory's record of one object on one target, which we applied or
// were about to apply.
type Entry struct {
	Unit   config.UnitPath
	Target config.TargetName
	ID     object.ID
	// Version is the API version it was last applied with, "v1".
	Version string
	// UID of the live object. Empty: the apply was intended, and nobody knows
	// yet whether it happened. Such an entry leads to a delete only if the live object
	// itself names the unit, and fields of it were applied by us.
	UID string
	// Digest of the object as last applied ([object.Object.Digest]). Empty: it
	// is not known what the server holds (never confirmed, or drift was
	// found), so the next apply must send it.
	Digest object.Digest
	// Fingerprint is the hash of our own managedFields entry, fields and time,
	// as the server returned it after our last apply.
	Fingerprint string
	// Fields is that entry's FieldsV1, as JSON. It serves to say which fields
	// were lost when the fingerprint differs.
	Fields string
	// Keep says that the object as last applied had the annotation that keeps
	// it from being deleted, whatever the live one has.
	Keep bool
	// Found says that the entry was made of a live object after the inventory
	// was lost, and was not applied since: nobody knows for certain whose it is.
	Found bool
	// Ran is the digest of the bundle that the object, a hook, ran for to its
	// good end. From then on it is nobody's business what becomes of the Job,
	// until another bundle is applied. Empty for all other objects.
	Ran object.Digest
	// Phase is that of the object as last applied, see [object.Object.Phase].
	Phase int
	// Written is the time of our managedFields entry as the server returned it
	// after our last apply, as [Written] writes it. Empty: not known.
	Written string
	// Replicas is how many Git wanted when the object was last applied, "none" where it
	// said nothing. Empty: not known, or of no kind that is scaled.
	Replicas string
	// Shared says that somebody who applied the object before holds fields that are ours
	// too. The next apply ends that.
	Shared bool
}

// Written is how a server's time is noted in an [Entry]: times compare as their
// texts do. The zero time is empty.
func Written(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// key is what an entry is stored under.
func (e *Entry) key(before ...any) []any {
	return append(before, string(e.Target), string(e.Unit), e.ID.Group, e.ID.Kind, e.ID.Namespace, e.ID.Name)
}

const keyIs = ` WHERE target = ? AND unit = ? AND "group" = ? AND kind = ? AND namespace = ? AND name = ?`

// Intend notes objects that are about to be applied with their Digest, before
// they are. An object that is already known keeps its UID and all else, except
// for a digest that is going to change: after an apply that is cut short, the content
// on the server is not known.
func (tx *Tx) Intend(entries []Entry) error {
	return each(tx, `INSERT INTO inventory (version, target, unit, "group", kind, namespace, name, uid, digest, fingerprint)
		VALUES (?, ?, ?, ?, ?, ?, ?, '', '', '')
		ON CONFLICT DO UPDATE SET digest = '' WHERE digest <> ?`, entries, func(e *Entry) []any {
		return append(e.key(e.Version), string(e.Digest))
	})
}

// Confirm stores the server's answers to an apply. Every entry has a UID.
func (tx *Tx) Confirm(entries []Entry) error {
	sets, err := tx.fieldsets(entries)
	if err != nil {
		return err
	}
	return each(tx, `INSERT INTO inventory (target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, fields,
			keep, found, ran, phase, written, replicas, shared)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET version = excluded.version, uid = excluded.uid, digest = excluded.digest,
			fingerprint = excluded.fingerprint, fields = excluded.fields, keep = excluded.keep, found = excluded.found,
			ran = excluded.ran, phase = excluded.phase, written = excluded.written,
			replicas = excluded.replicas, shared = excluded.shared`, entries, func(e *Entry) []any {
		return append(e.key(), e.Version, e.UID, string(e.Digest), e.Fingerprint, sets[e.Fields],
			e.Keep, e.Found, string(e.Ran), e.Phase, e.Written, e.Replicas, e.Shared)
	})
}

// fieldsets stores the managed fields of the entries, each once, and returns
// what refers to them.
func (tx *Tx) fieldsets(entries []Entry) (map[string][]byte, error) {
	sets := map[string][]byte{"": nil}
	var fresh []string
	for i := range entries {
		e := &entries[i]
		if e.UID == "" {
			return nil, fmt.Errorf("unit %s on %s: %s is confirmed without a UID", e.Unit, e.Target, e.ID)
		}
		if _, ok := sets[e.Fields]; !ok {
			hash := sha256.Sum256([]byte(e.Fields))
			sets[e.Fields] = hash[:]
			fresh = append(fresh, e.Fields)
		}
	}
	return sets, each(tx, `INSERT INTO fieldsets (hash, json) VALUES (?, ?) ON CONFLICT DO NOTHING`, fresh, func(json *string) []any {
		return []any{sets[*json], *json}
	})
}

// MarkDirty clears the digests of objects that differ from what was applied, so
// that the next apply sends them. An object that was made anew since it was
// looked at, with another UID, is left alone.
func (tx *Tx) MarkDirty(entries []Entry) error {
	return each(tx, `UPDATE inventory SET digest = ''`+keyIs+` AND uid = ?`, entries, func(e *Entry) []any {
		return append(e.key(), e.UID)
	})
}

// MarkOthersDirty clears the digests that other units have for the same objects in the
// same cluster: the given entries are about to be written, so the others' entries
// become wrong.
func (tx *Tx) MarkOthersDirty(cluster string, entries []Entry) error {
	return each(tx, `UPDATE inventory SET digest = '' WHERE name = ? AND namespace = ? AND kind = ? AND "group" = ? AND digest <> ''
		AND (target = ?5 OR target > ?5 || '/' AND target < ?5 || '0') AND NOT (target = ? AND unit = ?)`, entries, func(e *Entry) []any {
		return []any{e.ID.Name, e.ID.Namespace, e.ID.Kind, e.ID.Group, cluster, string(e.Target), string(e.Unit)}
	})
}

// Forget drops objects that are gone, or that are not ours.
func (tx *Tx) Forget(entries []Entry) error {
	return each(tx, `DELETE FROM inventory`+keyIs, entries, func(e *Entry) []any { return e.key() })
}

// Inventory has the objects that a unit has, or may have, on a target.
func (s Reader) Inventory(unit config.UnitPath, target config.TargetName) (map[object.ID]Entry, error) {
	entries, err := s.entries(`target = ? AND unit = ?`, string(target), string(unit))
	if err != nil {
		return nil, err
	}
	inventory := make(map[object.ID]Entry, len(entries))
	for _, e := range entries {
		inventory[e.ID] = e
	}
	return inventory, nil
}

// Inventories has the objects of a unit and of the units below that path, on all
// targets, sorted by target, unit, group, kind, namespace and name. An empty
// path is all units.
func (s Reader) Inventories(below config.UnitPath) ([]Entry, error) {
	if below == "" {
		return s.entries(`true`)
	}
	return s.entries(`unit = ?1 OR unit > ?1 || '/' AND unit < ?1 || '0'`, string(below))
}

// ClusterInventory is what all units have, or may have, on the targets of a
// cluster, sorted by target, unit, group, kind, namespace and name.
func (s Reader) ClusterInventory(cluster string) ([]Entry, error) {
	return s.entries(withinCluster, cluster)
}

// withinCluster picks the targets of the cluster that is the first argument. "0" is the
// character after "/".
const withinCluster = `(target = ?1 OR target > ?1 || '/' AND target < ?1 || '0')`

// added are the columns that came after the first schema version, or what an
// older file, which is only read, has to stand for them.
func (s Reader) added() string {
	switch s.schema {
	case 1:
		return `0, 0, '', 0, '', '', 0`
	case 2, 3:
		return `keep, found, '', 0, '', '', 0`
	case 4:
		return `keep, found, ran, 0, '', '', 0`
	case 5, 6, 7:
		return `keep, found, ran, phase, '', '', 0`
	case 8, 9, 10:
		return `keep, found, ran, phase, written, '', 0`
	}
	return `keep, found, ran, phase, written, replicas, shared`
}

func (s Reader) entries(where string, args ...any) ([]Entry, error) {
	var entries []Entry
	var hash sql.RawBytes
	fields := map[string]string{"": ""} // by hash: one string for all that share it
	var hashes []string                 // of the entries, by index
	err := s.query(func(rows *sql.Rows) error {
		var e Entry
		err := rows.Scan((*string)(&e.Target), (*string)(&e.Unit), &e.ID.Group, &e.ID.Kind, &e.ID.Namespace, &e.ID.Name,
			&e.Version, &e.UID, (*string)(&e.Digest), &e.Fingerprint, &hash,
			&e.Keep, &e.Found, (*string)(&e.Ran), &e.Phase, &e.Written, &e.Replicas, &e.Shared)
		fields[string(hash)] = ""
		hashes, entries = append(hashes, string(hash)), append(entries, e)
		return err
	}, `SELECT target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, fields, `+s.added()+`
		FROM inventory WHERE (`+where+`) ORDER BY target, unit, "group", kind, namespace, name`, args...)
	if err != nil {
		return nil, err
	}
	for hash := range fields {
		err := s.query(func(rows *sql.Rows) error {
			var json string
			err := rows.Scan(&json)
			fields[hash] = json
			return err
		}, `SELECT json FROM fieldsets WHERE hash = ?`, []byte(hash))
		if err != nil {
			return nil, err
		}
	}
	for i := range entries {
		entries[i].Fields = fields[hashes[i]]
	}
	return entries, nil
}
