// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package store keeps what the daemon must not forget in one SQLite file: the
// state of rollouts, the inventory of applied objects, which cluster is which,
// and the history. It never holds an object's content: bundles are rendered
// again from Git, so no secret value is ever in the file. It decides nothing.
//
// # Stored format
//
// The folder holds state.db, SQLite's own state.db-wal and state.db-shm, and
// state.lock, which the one daemon that may write holds locked. state.db has
// the application id 0x73776c6c and the schema version as its user_version.
// Times are RFC 3339 in UTC with nanoseconds. The tables:
//
//	units       path, state      one row per unit; the format of state is
//	                             specified in package rollout
//	inventory   target, unit,    one row per object that was applied, or was
//	            object, version, about to be, see [Entry]; fields refers to
//	            uid, digest,     fieldsets; keep and found since version 2,
//	            fingerprint, fields, ran since version 4, phase since version 5
//	            keep, found, ran,  and written since version 8
//	            phase, written
//	fieldsets   hash, json       managed fields, which many objects share
//	clusters    name, uid,       survey is a [Survey], unknown what it could not
//	            swept_at,        see; both since version 2. deep_after is where
//	            survey, unknown, the deep sweep is, see [Store.DeepAfter]; since
//	            deep_after       version 3
//	plans       digest, unit,    deletions that wait for approval, see [Plan];
//	            at, deletions    deletions is the JSON of a list of [Deletion]
//	approvals   digest, at, by,  what was approved of them and is not carried
//	            deletions        out yet, see [Approval]
//	rejections  digest, at, by,  who rejected one of the plans, see [Rejection];
//	            reason           since version 9
//	deleted     unit, target,    how many objects were deleted since the commit
//	            commit, objects  that the unit's release began with; the row of
//	                             no unit and target counts all since the newest
//	                             commit. Plans, approvals and deleted came with
//	                             version 2
//	drift       target, unit,    one row per object that is not as it was
//	            object,          applied, see [Drift]; changes is a JSON list
//	            found_at, mode,  of [Change]; since version 3
//	            deep, missing, changes
//	fights      target, unit,    one row per object that somebody else keeps
//	            object, digest,  changing back, see [Fight]; losses is a JSON
//	            losses, field,   list of [Loss]; since version 3
//	            manager, rounds, until, tried
//	troubles    about, since,    what ails the daemon as a whole at the moment,
//	            text             see [Condition]; since version 5
//	repository  name             the monorepo that all of this is about, in at
//	                             most one row; since version 6
//	orders      seq, at, by,     what operators told the daemon, see [order.Order]:
//	            verb, unit,      what it has not done yet and, with standing set,
//	            target, reason,  what is in force; since version 7, from tenant on
//	            tenant, wave,    since version 10
//	            until, digest,
//	            standing
//	order_keys  key, at, seq,    which order was given under a key, see [Tx.Give];
//	            request          since version 10
//	facts       name, value      JSON of what the last pass left for those who ask:
//	                             asks is a list of [order.Ask], names are [Names], bounds
//	                             what [Tx.SetBounds] was given, brought
//	                             is [Brought]; since version 10
//	holder      state, place,    who works with the state, see [Holder], in at most
//	            processes        one row; place is where the file is; since
//	                             version 8
//	history     seq, at, commit, unit, target, rollout, wave, kind, text
//	                             the newest 100,000 events, see [Event]
//
// Compatibility: a swell reads every schema version up to its own and brings
// older ones up to date when it opens them for writing. It refuses a newer one.
// Columns and tables are only added; a version is added with each. A row of
// units that a newer swell wrote is refused by its reader.
//
// A file that is damaged, cut off, empty, newer, or not swell's is an error that
// says how to go on. It is never changed, and never taken for a new start: only
// the absence of the file is one.
//
// What operators say is written beside the passes of the daemon, see [Store.Beside], or by
// their own process while there is no daemon, see [Alone]; in both cases only to the
// tables approvals, rejections, orders and order_keys. The daemon notices it by [Store.Changes].
//
// # Losing it
//
// Without the file, the inventory is rebuilt from the labels of live objects
// (package sync, rebuild.go), and every unit goes through its waves again. Objects that
// no unit wants are deleted after that, with approval. There are no good bundles to
// go back to until the first rollout is done.
// The same happens where an older copy takes its place (package sync, older.go).
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/swell-sh/swell/config"
)

// ErrLocked means that another process has the state open for writing.
var ErrLocked = errors.New("locked by another process")

const (
	fileName = "state.db"
	lockName = "state.lock"
)

// Store is an open state file. It is safe for concurrent use. It reads whole
// transactions only.
type Store struct {
	Reader
	writer *statements // one connection; nil when opened for reading
	reader *statements
	lock   *os.File
	dir    string
	// file is the database's, held open from before the first connection until
	// after the last one: when a process closes any descriptor of a file, POSIX
	// drops all its locks on it, SQLite's too. Nil when opened for reading.
	file    *os.File
	opened  opened
	logLost bool // see [Store.LostLog]
}

// Reader reads the state, for a [Store] or for a [Tx].
type Reader struct {
	db     querier
	schema int // of the file; ours unless it was opened for reading
}

// querier is a database or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
	QueryRow(query string, args ...any) *sql.Row
	Prepare(query string) (*sql.Stmt, error)
}

// Open opens the state in a folder for writing, and makes both where there are
// none. It checks the whole file first. While another process has it open, the
// error is [ErrLocked].
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFile(filepath.Join(dir, lockName))
	if err != nil {
		return nil, err
	}
	s := &Store{lock: lock, dir: dir}
	if err := s.open(filepath.Join(dir, fileName)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.remember(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// InUse says whether a process has the state open for writing.
func (s *Store) InUse() (bool, error) { return isLocked(filepath.Join(s.dir, lockName)) }

// OpenReadOnly opens the state in a folder for reading, whether or not a daemon
// is at work on it. The error wraps [fs.ErrNotExist] when there is none.
func OpenReadOnly(dir string) (*Store, error) {
	file := filepath.Join(dir, fileName)
	if err := inspect(file); err != nil {
		return nil, err
	}
	s := &Store{reader: newStatements(connect(file, "mode=ro", 1)), dir: dir}
	s.db = s.reader
	var err error
	if s.schema, err = checkVersion(s.reader.DB, file); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Beside is the same state over connections of its own, for those who answer to operators:
// reading there takes nothing away from the daemon's own connections, and what is written
// there is noticed by [Store.Changes] of s. It is to be closed before s.
func (s *Store) Beside() *Store {
	file := s.file.Name() // absolute
	b := &Store{writer: newStatements(connect(file, "mode=rw", 1)), reader: newStatements(connect(file, "mode=rw&_pragma=query_only(1)", 4)), dir: s.dir, opened: opened{files: s.opened.files}}
	b.Reader = Reader{b.reader, s.schema}
	return b
}

// Close gives up the lock last.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*statements{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	if s.lock != nil {
		errs = append(errs, unlockFile(s.lock))
	}
	return errors.Join(errs...)
}

// Tx is one transaction. It reads what it wrote; the Store does not until all of it is
// written. It must not be kept beyond the function that it was handed to.
type Tx struct {
	Reader
	tx transaction
}

// Update writes all that do does, or nothing when it returns an error or ctx
// ends first. Meanwhile nobody else writes, not even in another process: do must wait
// for nothing that takes its time. When Update has returned nil, it is on disk. It writes nothing to a
// file that is not the one that was opened, see [Store.Intact].
func (s *Store) Update(ctx context.Context, do func(*Tx) error) error {
	if s.writer == nil {
		return errors.New("state is open for reading only")
	}
	if err := s.Intact(); err != nil {
		return err
	}
	if err := s.writer.prepareMissed(ctx); err != nil {
		return s.unwritten(fmt.Errorf("write state: %w", err))
	}
	begun, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return s.unwritten(fmt.Errorf("write state: %w", err))
	}
	tx := transaction{begun, s.writer}
	defer tx.Rollback() // after a commit it does nothing
	if err = do(&Tx{Reader{tx, s.schema}, tx}); err == nil {
		if err = tx.Commit(); err != nil {
			err = fmt.Errorf("write state: %w", err)
		}
	}
	if errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return fmt.Errorf("write state: %w", ctx.Err()) // the transaction ended with ctx
	}
	return s.unwritten(err)
}

// unwritten adds to an error what to do about a disk that takes nothing more.
func (s *Store) unwritten(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff { // without what SQLite adds to a code
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%s: %w: nothing more is written to any cluster; make room, or the folder writable, and start swell again", s.dir, err)
	}
	return err
}

// each runs one statement for every item.
func each[T any](tx *Tx, query string, items []T, args func(*T) []any) error {
	if len(items) == 0 {
		return nil
	}
	stmt, err := tx.tx.Prepare(query)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	defer stmt.Close()
	for i := range items {
		if _, err := stmt.Exec(args(&items[i])...); err != nil {
			return fmt.Errorf("write state: %w", err)
		}
	}
	return nil
}

func (tx *Tx) exec(query string, args ...any) error {
	if _, err := tx.tx.Exec(query, args...); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// query hands each row of a query to scan.
func (s Reader) query(scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.db.Query(query, args...)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return fmt.Errorf("read state: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	return nil
}

// PutUnit stores the state of a unit, as package rollout specifies it.
func (tx *Tx) PutUnit(path config.UnitPath, state []byte) error {
	return tx.exec(`INSERT INTO units (path, state) VALUES (?, ?) ON CONFLICT DO UPDATE SET state = excluded.state`, string(path), state)
}

// DeleteUnit forgets a unit. It is no error if there is none.
func (tx *Tx) DeleteUnit(path config.UnitPath) error {
	return tx.exec(`DELETE FROM units WHERE path = ?`, string(path))
}

// Units is the state of all units, as it was put.
func (s Reader) Units() (map[config.UnitPath][]byte, error) {
	units := map[config.UnitPath][]byte{}
	err := s.query(func(rows *sql.Rows) error {
		var path string
		var state []byte
		err := rows.Scan(&path, &state)
		units[config.UnitPath(path)] = state
		return err
	}, `SELECT path, state FROM units`)
	return units, err
}

// UnitPaths are the paths of all units, sorted.
func (s Reader) UnitPaths() ([]config.UnitPath, error) {
	var paths []config.UnitPath
	err := s.query(func(rows *sql.Rows) error {
		var path config.UnitPath
		err := rows.Scan((*string)(&path))
		paths = append(paths, path)
		return err
	}, `SELECT path FROM units ORDER BY path`)
	return paths, err
}

// stamp is a time as it is stored; the zero time is NULL.
type stamp struct{ time.Time }

func stored(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Scan implements [sql.Scanner].
func (s *stamp) Scan(value any) (err error) {
	switch v := value.(type) {
	case nil:
		s.Time = time.Time{}
	case string:
		s.Time, err = time.Parse(time.RFC3339Nano, v)
	default:
		err = fmt.Errorf("time is a %T", value)
	}
	return err
}
