// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"sync"
)

// statements runs the queries of one pool of connections, each parsed by SQLite once for
// a connection: parsing takes longer than most of them run. The texts are constants, so
// there are some dozens. They are closed with the pool.
type statements struct {
	*sql.DB
	mu       sync.Mutex
	prepared map[string]*sql.Stmt
	missed   map[string]bool // by transactions, see [statements.prepareMissed]
}

func newStatements(db *sql.DB) *statements {
	return &statements{DB: db, prepared: map[string]*sql.Stmt{}, missed: map[string]bool{}}
}

// Query implements [querier].
func (s *statements) Query(query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.statement(context.Background(), query)
	if err != nil {
		return nil, err
	}
	return stmt.Query(args...)
}

// QueryRow implements [querier].
func (s *statements) QueryRow(query string, args ...any) *sql.Row {
	stmt, err := s.statement(context.Background(), query)
	if err != nil {
		return s.DB.QueryRow(query, args...) // a [sql.Row] with the error
	}
	return stmt.QueryRow(args...)
}

// statement returns a query, prepared. It waits for a connection when it is new, and must
// not hold the lock meanwhile: whoever has the connection may want to look something up.
func (s *statements) statement(ctx context.Context, query string) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.prepared[query]
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := s.DB.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.prepared[query]; other != nil {
		return other, stmt.Close() // somebody else was faster
	}
	s.prepared[query] = stmt
	return stmt, nil
}

// lookUp returns a query if it is prepared, and else notes it for [statements.prepareMissed].
func (s *statements) lookUp(query string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	stmt := s.prepared[query]
	if stmt == nil {
		s.missed[query] = true
	}
	return stmt
}

// prepareMissed prepares what transactions could not: while they have the only connection,
// waiting for one would never end.
func (s *statements) prepareMissed(ctx context.Context) error {
	s.mu.Lock()
	missed := s.missed
	s.missed = map[string]bool{}
	s.mu.Unlock()
	for query := range missed {
		if _, err := s.statement(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// transaction runs queries in a transaction, prepared where they are.
type transaction struct {
	*sql.Tx
	statements *statements
}

// Query implements [querier].
func (t transaction) Query(query string, args ...any) (*sql.Rows, error) {
	if stmt := t.statements.lookUp(query); stmt != nil {
		return t.Stmt(stmt).Query(args...)
	}
	return t.Tx.Query(query, args...)
}

// QueryRow implements [querier].
func (t transaction) QueryRow(query string, args ...any) *sql.Row {
	if stmt := t.statements.lookUp(query); stmt != nil {
		return t.Stmt(stmt).QueryRow(args...)
	}
	return t.Tx.QueryRow(query, args...)
}

// Exec runs a statement that returns no rows.
func (t transaction) Exec(query string, args ...any) (sql.Result, error) {
	if stmt := t.statements.lookUp(query); stmt != nil {
		return t.Stmt(stmt).Exec(args...)
	}
	return t.Tx.Exec(query, args...)
}

// Prepare implements [querier].
func (t transaction) Prepare(query string) (*sql.Stmt, error) {
	if stmt := t.statements.lookUp(query); stmt != nil {
		return t.Stmt(stmt), nil
	}
	return t.Tx.Prepare(query)
}
