// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
)

// Deletion is one object that is to be deleted.
type Deletion struct {
	Target config.TargetName `json:"target"`
	Unit   config.UnitPath   `json:"unit"`
	object.ID
	// UID of the live object. Empty: it is not known whether there is one.
	UID string `json:"uid,omitempty"`
	// Forget: the object stays as it is, and leaves the inventory with its cluster.
	Forget bool `json:"forget,omitempty"`
	// Why it waits for approval.
	Why string `json:"why"`
}

// Same says whether two deletions are of the same object of the same unit on
// the same target.
func (d Deletion) Same(other Deletion) bool {
	d.Why, other.Why = "", ""
	return d == other
}

func (d Deletion) compare(other Deletion) int {
	return cmp.Or(cmp.Compare(d.Unit, other.Unit), cmp.Compare(d.Target, other.Target), d.ID.Compare(other.ID), cmp.Compare(d.UID, other.UID))
}

// Plan is deletions that wait for approval together. It is stored from when
// they were first held until they are approved, or not wanted any more.
type Plan struct {
	// Digest is the SHA-256 of target, unit, object and UID of all deletions:
	// who approves it approves these and no others.
	Digest object.Digest `json:"digest"`
	// Unit is the one whose deletions they are; empty for the whole fleet's.
	Unit config.UnitPath `json:"unit,omitempty"`
	// At is when they were first held.
	At time.Time `json:"at"`
	// Deletions sorted by unit, target and object; never empty.
	Deletions []Deletion `json:"deletions"`
	// Rejected says who rejected it; nil for nobody.
	Rejected *Rejection `json:"rejected,omitempty"`
}

// Forgets is the cluster whose objects the plan would forget; empty when it deletes.
func (p *Plan) Forgets() string { return Forgets(p.Deletions) }

// Forgets is the cluster whose objects the deletions of a plan would forget; empty when they
// delete.
func Forgets(deletions []Deletion) string {
	if len(deletions) > 0 && deletions[0].Forget {
		return deletions[0].Target.Cluster()
	}
	return ""
}

// Ask says what the plan waits for.
func (p *Plan) Ask() string {
	ask := "swell approve " + p.Digest.Short()
	if p.Rejected != nil {
		ask = p.Rejected.Text() + ": " + ask
	}
	return ask
}

// NewPlan sorts the deletions.
func NewPlan(unit config.UnitPath, at time.Time, deletions []Deletion) Plan {
	slices.SortFunc(deletions, Deletion.compare)
	sum := sha256.New()
	for _, d := range deletions {
		for _, part := range []string{string(d.Unit), string(d.Target), d.Group, d.Kind, d.Namespace, d.Name, d.UID} {
			fmt.Fprintf(sum, "%d %s\n", len(part), part)
		}
		if d.Forget {
			fmt.Fprintln(sum, "forget")
		}
	}
	return Plan{Digest: object.Digest(hex.EncodeToString(sum.Sum(nil))), Unit: unit, At: at, Deletions: deletions}
}

// Approval is what somebody approved of a plan and is still to be carried out.
type Approval struct {
	Digest    object.Digest // of the plan
	At        time.Time
	By        string
	Deletions []Deletion
}

// ErrNoPlan means that no plan with that digest waits for approval.
var ErrNoPlan = errors.New("no such plan")

// Plans are the deletions that wait, those of the fleet first, then by unit.
func (s Reader) Plans() ([]Plan, error) {
	if s.schema < 2 {
		return nil, nil
	}
	rejections, err := s.rejections()
	if err != nil {
		return nil, err
	}
	var plans []Plan
	err = s.query(func(rows *sql.Rows) error {
		var p Plan
		var at stamp
		var deletions []byte
		if err := rows.Scan((*string)(&p.Digest), (*string)(&p.Unit), &at, &deletions); err != nil {
			return err
		}
		p.At, p.Rejected = at.Time, rejections[p.Digest]
		plans = append(plans, p)
		return json.Unmarshal(deletions, &plans[len(plans)-1].Deletions)
	}, `SELECT digest, unit, at, deletions FROM plans ORDER BY unit, digest`)
	return plans, err
}

// PutPlans makes the plans the ones that wait, in place of all others. Who rejected
// them stays, and is not read from them.
func (tx *Tx) PutPlans(plans []Plan) error {
	if err := tx.exec(`DELETE FROM plans`); err != nil {
		return err
	}
	for i := range plans {
		p := &plans[i]
		deletions, err := json.Marshal(p.Deletions)
		if err != nil {
			return err
		}
		if err := tx.exec(`INSERT INTO plans (digest, unit, at, deletions) VALUES (?, ?, ?, ?)`, string(p.Digest), string(p.Unit), stored(p.At), deletions); err != nil {
			return err
		}
	}
	return tx.dropRejections()
}

// Approvals are the approved deletions that are not done yet, the oldest first.
func (s Reader) Approvals() ([]Approval, error) {
	if s.schema < 2 {
		return nil, nil
	}
	var approvals []Approval
	err := s.query(func(rows *sql.Rows) error {
		var a Approval
		var at stamp
		var deletions []byte
		if err := rows.Scan((*string)(&a.Digest), &at, &a.By, &deletions); err != nil {
			return err
		}
		a.At = at.Time
		approvals = append(approvals, a)
		return json.Unmarshal(deletions, &approvals[len(approvals)-1].Deletions)
	}, `SELECT digest, at, by, deletions FROM approvals ORDER BY at, digest`)
	return approvals, err
}

// KeepApproval notes what of an approval is still to be carried out; with no
// deletions, that nothing is.
func (tx *Tx) KeepApproval(digest object.Digest, left []Deletion) error {
	if len(left) == 0 {
		return tx.exec(`DELETE FROM approvals WHERE digest = ?`, string(digest))
	}
	deletions, err := json.Marshal(left)
	if err != nil {
		return err
	}
	return tx.exec(`UPDATE approvals SET deletions = ? WHERE digest = ?`, deletions, string(digest))
}

// Approve approves the plan with the digest. The deletions that the plan holds at that
// moment are approved; the digest names them. The error wraps [ErrNoPlan] when no such
// plan waits.
func (tx *Tx) Approve(digest object.Digest, by string, at time.Time) error {
	unit, listed, err := tx.plan(digest)
	if err != nil {
		return err
	}
	deletions, err := json.Marshal(listed)
	if err != nil {
		return err
	}
	err = errors.Join(
		tx.exec(`INSERT INTO approvals (digest, at, by, deletions) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET deletions = excluded.deletions`,
			string(digest), stored(at), by, deletions),
		tx.exec(`DELETE FROM rejections WHERE digest = ?`, string(digest)))
	if err != nil {
		return err
	}
	return tx.AddHistory([]Event{{Time: at, Unit: unit, Kind: "approved", Text: judgedText(digest, listed, by)}})
}

// ApprovedPlans returns the newest plans that the history knows as approved, the newest first,
// limit at most: the beginning of the digest, by whom and when.
func (s Reader) ApprovedPlans(limit int) (plans []ApprovedPlan, err error) {
	err = s.query(func(rows *sql.Rows) error {
		var p ApprovedPlan
		var since stamp
		var text string
		if err := rows.Scan(&since, (*string)(&p.Unit), &text); err != nil {
			return err
		}
		p.Since = since.Time
		digest, rest, isPlan := strings.Cut(strings.TrimPrefix(text, judgedPlan), ": ")
		if _, by, ok := strings.Cut(rest, judgedBy); isPlan && ok {
			p.Digest, p.By = object.Digest(digest), by
			plans = append(plans, p)
		}
		return nil
	}, `SELECT at, unit, text FROM history WHERE kind = 'approved' AND text LIKE ? || '%' ORDER BY seq DESC LIMIT ?`, judgedPlan, limit)
	return plans, err
}

// ApprovedPlan is a plan that was approved, as the history tells of it.
type ApprovedPlan struct {
	Digest object.Digest // its beginning, [object.Digest.Short]
	Unit   config.UnitPath
	By     string
	Since  time.Time
}

// The words around digest and name in [judgedText].
const (
	judgedPlan = "plan "
	judgedBy   = ", by "
)

// judgedText is a plan in the history. [Reader.ApprovedPlans] reads it.
func judgedText(digest object.Digest, deletions []Deletion, by string) string {
	text := document.Count(len(deletions), "deletion")
	if cluster := Forgets(deletions); cluster != "" {
		text = fmt.Sprintf("%s of cluster %s to forget", document.Count(len(deletions), "object"), cluster)
	}
	return fmt.Sprintf("%s%s: %s%s%s", judgedPlan, digest.Short(), text, judgedBy, by)
}

// plan is the unit and the deletions of a plan that waits.
func (tx *Tx) plan(digest object.Digest) (unit config.UnitPath, deletions []Deletion, err error) {
	var list []byte
	err = tx.tx.QueryRow(`SELECT unit, deletions FROM plans WHERE digest = ?`, string(digest)).Scan((*string)(&unit), &list)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil, fmt.Errorf("plan %s: %w", digest.Short(), ErrNoPlan)
	}
	if err == nil {
		err = json.Unmarshal(list, &deletions)
	}
	if err != nil {
		return "", nil, fmt.Errorf("read state: %w", err)
	}
	return unit, deletions, nil
}

// Changes is a number that becomes another one when somebody else than this
// Store has written to the state, a Store [Store.Beside] it included.
func (s *Store) Changes() (int64, error) { return changes(s.writer) }

// Changes is [Store.Changes], with nothing changing until the end of the transaction.
func (tx *Tx) Changes() (int64, error) { return changes(tx.tx) }

func changes(db querier) (n int64, err error) {
	if err := db.QueryRow(`PRAGMA data_version`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read state: %w", err)
	}
	return n, nil
}
