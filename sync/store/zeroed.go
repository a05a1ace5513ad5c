// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// zeroed finds a table with a zero byte in it, empty where there is none. swell stores none, but
// in hashes: a disk or a file system that lost a write has left the bytes zero. SQLite checks
// how its pages hang together, and not their values.
func zeroed(db *sql.DB) (table string, err error) {
	rows, err := db.Query(`SELECT t.name, group_concat('instr(CAST("' || c.name || '" AS BLOB), x''00'')', ' OR ')
		FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'
		AND (t.name, c.name) NOT IN (VALUES ('inventory', 'fields'), ('fieldsets', 'hash')) GROUP BY t.name ORDER BY t.name`)
	if err != nil {
		return "", err
	}
	conditions := map[string]string{}
	for rows.Next() {
		var name, condition string
		if err := rows.Scan(&name, &condition); err != nil {
			return "", errors.Join(err, rows.Close())
		}
		conditions[name] = condition
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return "", err
	}
	for name, condition := range conditions {
		var found int
		switch err := db.QueryRow(fmt.Sprintf(`SELECT 1 FROM "%s" WHERE %s LIMIT 1`, name, condition)).Scan(&found); {
		case err == nil:
			return name, nil
		case !errors.Is(err, sql.ErrNoRows):
			return "", err
		}
	}
	return "", nil
}

// examine looks for damage of the content; empty where there is none known.
func examine(db *sql.DB) (wrong string, err error) {
	var verdict string
	if err := db.QueryRow(`PRAGMA integrity_check(1)`).Scan(&verdict); err != nil || verdict != "ok" {
		return strings.Join(strings.Fields(verdict), " "), err
	}
	table, err := zeroed(db)
	if table != "" {
		wrong = "zero bytes in table " + table + ", which swell never stores"
	}
	return wrong, err
}
