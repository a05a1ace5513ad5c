// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/swell-sh/swell/render/object"
)

// Rejection records who rejected a plan. It ends with the plan, or when somebody
// approves the plan after all. The deletions wait as before: only Git says which
// objects are wanted.
type Rejection struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"` // as the operator gave it
}

// Text says who rejected the plan, why, and how to end the plan.
func (r *Rejection) Text() string {
	return "rejected by " + r.who() + "; take the change back in Git, or approve it after all"
}

func (r *Rejection) who() string {
	if r.Reason == "" {
		return r.By
	}
	return r.By + ": " + r.Reason
}

// ErrApproved means that somebody approved the plan already.
var ErrApproved = errors.New("it is approved already")

// Reject notes that the plan with the digest is not to be carried out. The error wraps
// [ErrNoPlan] when no such plan waits, and [ErrApproved] when it is approved.
func (tx *Tx) Reject(digest object.Digest, r Rejection) error {
	unit, deletions, err := tx.plan(digest)
	if err != nil {
		return err
	}
	var approved int
	if err := tx.tx.QueryRow(`SELECT count(*) FROM approvals WHERE digest = ?`, string(digest)).Scan(&approved); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	if approved > 0 {
		return fmt.Errorf("plan %s: %w", digest.Short(), ErrApproved)
	}
	err = tx.exec(`INSERT OR REPLACE INTO rejections (digest, at, by, reason) VALUES (?, ?, ?, ?)`, string(digest), stored(r.At), r.By, r.Reason)
	if err != nil {
		return err
	}
	return tx.AddHistory([]Event{{Time: r.At, Unit: unit, Kind: "rejected", Text: judgedText(digest, deletions, r.who())}})
}

// dropRejections forgets the rejections of plans that do not wait any more.
func (tx *Tx) dropRejections() error {
	return tx.exec(`DELETE FROM rejections WHERE digest NOT IN (SELECT digest FROM plans)`)
}

// rejections are those of the plans that wait.
func (s Reader) rejections() (map[object.Digest]*Rejection, error) {
	if ok, err := s.knows(rejectionsSchema); err != nil || !ok {
		return nil, err
	}
	all := map[object.Digest]*Rejection{}
	err := s.query(func(rows *sql.Rows) error {
		var digest object.Digest
		var at stamp
		var r Rejection
		err := rows.Scan((*string)(&digest), &at, &r.By, &r.Reason)
		r.At = at.Time
		all[digest] = &r
		return err
	}, `SELECT digest, at, by, reason FROM rejections`)
	return all, err
}
