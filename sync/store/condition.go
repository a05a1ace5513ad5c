// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"slices"
	"time"
)

// Condition is what keeps the daemon from its work as a whole, or from a cluster, or from
// telling of it.
type Condition struct {
	// About is "git", or "commit " with a hash, "cluster " with a name, or "unit "
	// with the path of one that was never released; or [AboutConfiguration],
	// [AboutChange], [AboutClock], [AboutState], [AboutFleet], [AboutForge] or [AboutWebhooks].
	About string    `json:"about"`
	Since time.Time `json:"since"`
	Text  string    `json:"text"` // one line
}

// AboutConfiguration is about clusters that the daemon's configuration names and the
// fleet does not have. It blocks nothing.
const AboutConfiguration = "configuration"

// AboutChange is about a changed configuration of the daemon that is not in force.
const AboutChange = "changed configuration"

// AboutClock is about a clock that was set. It blocks nothing.
const AboutClock = "clock"

// AboutFleet is about names and selectors in documents of the fleet that match nothing any more.
// It blocks nothing.
const AboutFleet = "fleet"

// AboutState is about writes to the state that were lost.
const AboutState = "state"

// AboutDaemon is about a daemon that died, or does not answer. It is stored by nobody.
const AboutDaemon = "daemon"

// AboutForge is about previews and statuses that are not on the forge as they should be, and
// AboutWebhooks about webhooks, of which none is taken. Both block no release.
const (
	AboutForge    = "forge"
	AboutWebhooks = "webhooks"
)

// Blocks says whether anything is not applied, or not as it should be, because of it.
func (c Condition) Blocks() bool {
	return !slices.Contains([]string{AboutConfiguration, AboutClock, AboutFleet, AboutForge, AboutWebhooks}, c.About)
}

// AboutCluster is what a condition of a cluster is about.
func AboutCluster(name string) string { return "cluster " + name }

// Unreached returns the clusters that the last pass could not look at, sorted: all facts
// of them are old. The condition of each says why.
func (s Reader) Unreached() (clusters []string, err error) {
	return clusters, s.fact(factUnreached, &clusters)
}

// PutUnreached makes these the clusters that cannot be looked at.
func (tx *Tx) PutUnreached(clusters []string) error { return tx.putFact(factUnreached, clusters) }

// SetConditions replaces all conditions.
func (tx *Tx) SetConditions(troubles []Condition) error {
	if err := tx.exec(`DELETE FROM troubles`); err != nil {
		return err
	}
	return each(tx, `INSERT INTO troubles (about, since, text) VALUES (?, ?, ?)`, troubles, func(t *Condition) []any {
		return []any{t.About, stored(t.Since), t.Text}
	})
}

// Conditions are those that were last set, sorted by what they are about.
func (s Reader) Conditions() ([]Condition, error) {
	if ok, err := s.knows(5); err != nil || !ok {
		return nil, err
	}
	var troubles []Condition
	err := s.query(func(rows *sql.Rows) error {
		var t Condition
		var since stamp
		err := rows.Scan(&t.About, &since, &t.Text)
		t.Since = since.Time
		troubles = append(troubles, t)
		return err
	}, `SELECT about, since, text FROM troubles ORDER BY about`)
	return troubles, err
}
