// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite" // and the driver
	sqlite3 "modernc.org/sqlite/lib"
)

const applicationID = 0x73776c6c // "swll"

// version is the schema version of this program.
var version = len(schemas)

// Unusable says why a state file cannot be used. What it holds is left as it is.
type Unusable struct {
	File   string
	Reason string
}

func (e *Unusable) Error() string {
	return fmt.Sprintf("%s: %s; move it away, together with its -wal and -shm, and start again: the inventory is rebuilt from the "+
		"clusters, and every unit goes through its waves again; never remove the -wal alone; an older copy of all of them may be "+
		"put back too: swell notices what the clusters know better", e.File, e.Reason)
}

// schemas are what each schema version adds to the one before. A file of an
// older version is brought up to date by what follows it.
var schemas = [...]string{`
CREATE TABLE units (path TEXT PRIMARY KEY, state BLOB NOT NULL);

CREATE TABLE inventory (
	target TEXT NOT NULL, unit TEXT NOT NULL,
	"group" TEXT NOT NULL, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
	version TEXT NOT NULL, uid TEXT NOT NULL, digest TEXT NOT NULL, fingerprint TEXT NOT NULL,
	fields BLOB REFERENCES fieldsets,
	PRIMARY KEY (target, unit, "group", kind, namespace, name)
) WITHOUT ROWID;
CREATE INDEX inventory_object ON inventory (name, namespace, kind);

CREATE TABLE fieldsets (hash BLOB PRIMARY KEY, json TEXT NOT NULL);

CREATE TABLE clusters (name TEXT PRIMARY KEY, uid TEXT NOT NULL DEFAULT '', swept_at TEXT);

CREATE TABLE history (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	at TEXT, "commit" TEXT NOT NULL, unit TEXT NOT NULL, target TEXT NOT NULL,
	rollout INTEGER NOT NULL, wave TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL
);
CREATE INDEX history_unit ON history (unit, seq);
`, `
ALTER TABLE inventory ADD COLUMN keep INTEGER NOT NULL DEFAULT 0;
ALTER TABLE inventory ADD COLUMN found INTEGER NOT NULL DEFAULT 0;

ALTER TABLE clusters ADD COLUMN survey TEXT NOT NULL DEFAULT '';
ALTER TABLE clusters ADD COLUMN unknown TEXT NOT NULL DEFAULT '';
UPDATE clusters SET survey = 'known' WHERE uid <> '';

CREATE TABLE plans (digest TEXT PRIMARY KEY, unit TEXT NOT NULL, at TEXT, deletions BLOB NOT NULL);
CREATE TABLE approvals (digest TEXT PRIMARY KEY, at TEXT, by TEXT NOT NULL, deletions BLOB NOT NULL);
CREATE TABLE deleted (
	unit TEXT NOT NULL, target TEXT NOT NULL, "commit" TEXT NOT NULL, objects INTEGER NOT NULL,
	PRIMARY KEY (unit, target)
) WITHOUT ROWID;
`, `
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
`, `
ALTER TABLE inventory ADD COLUMN ran TEXT NOT NULL DEFAULT '';
`, `
ALTER TABLE inventory ADD COLUMN phase INTEGER NOT NULL DEFAULT 0;

CREATE TABLE troubles (about TEXT PRIMARY KEY, since TEXT, text TEXT NOT NULL) WITHOUT ROWID;
`, `
CREATE TABLE repository (name TEXT NOT NULL);
`, `
CREATE TABLE orders (
	seq INTEGER PRIMARY KEY AUTOINCREMENT,
	at TEXT, by TEXT NOT NULL, verb TEXT NOT NULL, unit TEXT NOT NULL, target TEXT NOT NULL, reason TEXT NOT NULL
);
`, `
ALTER TABLE inventory ADD COLUMN written TEXT NOT NULL DEFAULT '';

CREATE TABLE holder (state TEXT NOT NULL, place TEXT NOT NULL, processes TEXT NOT NULL);
`, `
CREATE TABLE rejections (digest TEXT PRIMARY KEY, at TEXT, by TEXT NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
`, `
ALTER TABLE orders ADD COLUMN tenant TEXT NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN wave TEXT NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN until TEXT;
ALTER TABLE orders ADD COLUMN digest TEXT NOT NULL DEFAULT '';
ALTER TABLE orders ADD COLUMN standing INTEGER NOT NULL DEFAULT 0;

CREATE TABLE order_keys (key TEXT PRIMARY KEY, at TEXT NOT NULL, seq INTEGER NOT NULL, request TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
`, `
ALTER TABLE inventory ADD COLUMN replicas TEXT NOT NULL DEFAULT '';
ALTER TABLE inventory ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
`, `
ALTER TABLE orders ADD COLUMN commit_to TEXT NOT NULL DEFAULT '';
CREATE INDEX history_approved ON history (seq) WHERE kind = 'approved';
`, `
-- Rows of units say of what ran on a target which rollout made it good.
`, `
ALTER TABLE orders ADD COLUMN relative INTEGER NOT NULL DEFAULT 0;
`}

// The versions that brought the tables of orders and of rejections, the orders in force, the
// commit that a rollback goes to, and ends that move with the clock.
const (
	ordersSchema     = 7
	rejectionsSchema = 9
	standingSchema   = 10
	commitToSchema   = 12
	relativeSchema   = 14
)

// connect makes a pool of connections; none is opened before it is used. Whoever writes
// waits up to a minute for somebody else who does: a pass of the daemon may render an
// earlier commit meanwhile.
func connect(file, mode string, connections int) *sql.DB {
	// the path has to be escaped: a question mark in it would start the options
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: mode +
		"&_pragma=busy_timeout(60000)&_pragma=synchronous(FULL)&_pragma=trusted_schema(0)&_txlock=immediate"}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		panic(err) // there is no such driver
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db
}

// open opens the file, or makes it when there is none. The lock is held.
func (s *Store) open(file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	s.logLost = lostLog(filepath.Dir(file))
	switch err := inspect(file); {
	case errors.Is(err, fs.ErrNotExist):
		if err := create(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	case err != nil:
		return err
	}
	if s.file, err = os.Open(file); err != nil {
		return err
	}
	s.writer = newStatements(connect(file, "mode=rw&_pragma=journal_mode(WAL)", 1))
	s.reader = newStatements(connect(file, "mode=rw&_pragma=query_only(1)", 4))
	s.Reader = Reader{s.reader, version}
	found, err := checkVersion(s.writer.DB, file)
	if err != nil {
		return err
	}
	wrong, err := examine(s.writer.DB)
	if err != nil {
		return unread(file, err)
	}
	if wrong != "" {
		return &Unusable{file, "damaged: " + wrong}
	}
	if err := upgrade(s.writer.DB, found); err != nil {
		return fmt.Errorf("%s: schema %d to %d: %w", file, found, version, err)
	}
	_, err = s.writer.Exec(`DELETE FROM fieldsets WHERE hash NOT IN (SELECT fields FROM inventory WHERE fields IS NOT NULL)`)
	return err
}

// upgrade brings the schema from a version to ours, or leaves all as it is.
func upgrade(db *sql.DB, from int) error {
	if from == version {
		return nil
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // after a commit it does nothing
	for _, statements := range schemas[from:] {
		if _, err := tx.Exec(statements); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	return tx.Commit()
}

// create makes a new file under another name first, so that a file with the
// right name is never half made.
func create(file string) error {
	if _, err := os.Lstat(file + "-wal"); err == nil {
		return &Unusable{file, "missing, but its -wal is there"}
	}
	draft := file + ".new"
	for _, name := range []string{draft, draft + "-wal", draft + "-shm", draft + "-journal"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	db := connect(draft, "mode=rw&_pragma=journal_mode(WAL)", 1)
	_, err = db.Exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID))
	if err == nil {
		err = upgrade(db, 0)
	}
	// closing the last connection moves everything out of the -wal
	if err := errors.Join(err, db.Close(), f.Sync(), os.Rename(draft, file)); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// schemaOf is the schema version of the file as it is now.
func schemaOf(db querier) (v int, err error) {
	err = db.QueryRow(`PRAGMA user_version`).Scan(&v)
	return v, err
}

// knows says whether the file has the additions of a schema version. The file may be
// older where it is open for reading only.
func (s Reader) knows(v int) (bool, error) {
	is, err := schemaOf(s.db)
	if err != nil {
		return false, fmt.Errorf("read state: %w", err)
	}
	return is >= v, nil
}

// inspect reads the head of the file, before SQLite may change anything.
func inspect(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 100)
	n, err := io.ReadFull(f, head)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case n == 0:
		return &Unusable{file, "damaged: it is empty"}
	case n < len(head):
		return &Unusable{file, fmt.Sprintf("damaged: it has %d bytes", n)}
	case string(head[:16]) != "SQLite format 3\x00":
		return &Unusable{file, "not a state file of swell"}
	}
	if why := cutOff(f, head); why != "" {
		return &Unusable{file, why}
	}
	id, v := binary.BigEndian.Uint32(head[68:]), binary.BigEndian.Uint32(head[60:])
	return judge(file, int64(id), int(int32(v)))
}

// cutOff compares the size of the file with the size in its head. While there is a
// -wal, it may hold the missing part.
func cutOff(f *os.File, head []byte) string {
	if wal, err := os.Stat(f.Name() + "-wal"); err == nil && wal.Size() > 0 {
		return ""
	}
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	page, pages := int64(binary.BigEndian.Uint16(head[16:])), int64(binary.BigEndian.Uint32(head[28:]))
	if page == 1 { // that is how 65536 is written
		page = 1 << 16
	}
	if info.Size() != page*pages {
		return fmt.Sprintf("damaged: it has %d bytes, not %d", info.Size(), page*pages)
	}
	return ""
}

// checkVersion reads what inspect reads, but through SQLite: it may be in the
// -wal by now. It returns the schema version.
func checkVersion(db *sql.DB, file string) (v int, err error) {
	var id int64
	err = db.QueryRow(`SELECT application_id, user_version FROM pragma_application_id, pragma_user_version`).Scan(&id, &v)
	if err != nil {
		return 0, unread(file, err)
	}
	return v, judge(file, id, v)
}

// unread is why a file could not be read. A full disk or missing rights say nothing
// about the content of the file.
func unread(file string, err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff { // without what SQLite adds to a code
		case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA:
		default:
			return fmt.Errorf("%s: cannot be read: %w: is the disk full, or not to be written?", file, err)
		}
	}
	return &Unusable{file, "damaged: " + err.Error()}
}

func judge(file string, id int64, v int) error {
	switch {
	case id != applicationID:
		return &Unusable{file, "not a state file of swell"}
	case v > version:
		return &Unusable{file, fmt.Sprintf("made by a newer version of swell: schema %d, this one knows %d, so run that version", v, version)}
	case v < 1:
		return &Unusable{file, fmt.Sprintf("damaged: schema %d", v)}
	}
	return nil
}
