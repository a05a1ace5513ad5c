// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"fmt"
)

// steps bring a file from each schema version to the next: the first one from
// 1 to 2. A new file is made by schema and all of them. They only add.
var steps = []string{`
CREATE TABLE drift (
	target TEXT NOT NULL, unit TEXT NOT NULL,
	"group" TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
	found_at TEXT, mode TEXT NOT NULL, deep INTEGER NOT NULL, missing INTEGER NOT NULL, changes TEXT NOT NULL,
	PRIMARY KEY (target, unit, "group", kind, namespace, name)
) WITHOUT ROWID;

CREATE TABLE fights (
	target TEXT NOT NULL, unit TEXT NOT NULL,
	"group" TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
	digest TEXT NOT NULL, losses TEXT NOT NULL, field TEXT NOT NULL, manager TEXT NOT NULL,
	rounds INTEGER NOT NULL, until TEXT, tried TEXT,
	PRIMARY KEY (target, unit, "group", kind, namespace, name)
) WITHOUT ROWID;

ALTER TABLE clusters ADD COLUMN deep_after TEXT NOT NULL DEFAULT '';
`}

// migrate brings an older file up to date, all or nothing.
func migrate(db *sql.DB) error {
	was, err := schemaOf(db)
	if err != nil || was == version {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return fmt.Errorf("schema %d to %d: %w", was, version, err)
	}
	defer tx.Rollback() // after a commit it does nothing
	for v := was; v < version; v++ {
		if _, err := tx.Exec(steps[v-1] + fmt.Sprintf("PRAGMA user_version = %d;", v+1)); err != nil {
			return fmt.Errorf("schema %d to %d: %w", v, v+1, err)
		}
	}
	return tx.Commit()
}

// schemaOf is the schema version of the file as it is now.
func schemaOf(db *sql.DB) (v int, err error) {
	err = db.QueryRow(`PRAGMA user_version`).Scan(&v)
	return v, err
}

// knows says whether the file has what a schema version brought. It may be
// older where it is open for reading only.
func (s *Store) knows(v int) (bool, error) {
	is, err := schemaOf(s.reader)
	if err != nil {
		return false, fmt.Errorf("read state: %w", err)
	}
	return is >= v, nil
}
