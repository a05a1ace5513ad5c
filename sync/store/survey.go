// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Survey says how well the objects that swell has in a cluster are known.
type Survey string

const (
	// Unsurveyed: the cluster was not searched for such objects yet.
	Unsurveyed Survey = ""
	// Rebuilding: the live objects are in the inventory. Nothing is deleted until
	// every unit there was applied and seen healthy.
	Rebuilding Survey = "rebuilding"
	// Known: the inventory holds all of them.
	Known Survey = "known"
	// Departed: the fleet has no such cluster any more. What swell has there stays in the
	// inventory until the cluster comes back, or somebody approves that it is forgotten.
	Departed Survey = "departed"
)

// ClusterState is the state's record of a cluster.
type ClusterState struct {
	Name   string `json:"name"`
	UID    string `json:"uid,omitempty"`
	Survey Survey `json:"survey"`
	// Unknown names the kinds that could not be listed; empty when all could.
	Unknown string `json:"unknown,omitempty"`
}

// Clusters are all clusters that were ever seen, by name.
func (s Reader) Clusters() (map[string]ClusterState, error) {
	clusters := map[string]ClusterState{}
	columns := `name, uid, survey, unknown`
	if s.schema < 2 {
		columns = `name, uid, 'known', ''`
	}
	err := s.query(func(rows *sql.Rows) error {
		var c ClusterState
		err := rows.Scan(&c.Name, &c.UID, (*string)(&c.Survey), &c.Unknown)
		clusters[c.Name] = c
		return err
	}, `SELECT `+columns+` FROM clusters`)
	return clusters, err
}

// Surveyed notes how far the survey of a cluster has come, and what could not
// be seen.
func (tx *Tx) Surveyed(name string, survey Survey, unknown string) error {
	return tx.exec(`INSERT INTO clusters (name, survey, unknown) VALUES (?1, ?2, ?3)
		ON CONFLICT DO UPDATE SET survey = ?2, unknown = ?3`, name, string(survey), unknown)
}

// Writers are, by cluster, the processes that may be the last which wrote there, as far as the
// state knows. A cluster that is not among them was not compared yet with a state that notes it.
func (s Reader) Writers() (writers map[string][]string, err error) {
	return writers, s.fact(factWriters, &writers)
}

// PutWriters makes these the processes that may have written to clusters last. A process is
// among them before the Lease of the cluster names it: who is named there and is not among them
// has written since the state was, see [fleet.Cluster.Writer].
func (tx *Tx) PutWriters(writers map[string][]string) error { return tx.putFact(factWriters, writers) }

// Adopt notes live objects that were found in a cluster, as Found. What has a
// UID already stays as it is.
func (tx *Tx) Adopt(entries []Entry) error {
	sets, err := tx.fieldsets(entries)
	if err != nil {
		return err
	}
	return each(tx, `INSERT INTO inventory (target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, fields, keep, found, written)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', ?, ?, ?, 1, ?)
		ON CONFLICT DO UPDATE SET uid = excluded.uid, keep = excluded.keep, found = 1 WHERE uid = ''`, entries, func(e *Entry) []any {
		return append(e.key(), e.Version, e.UID, e.Fingerprint, sets[e.Fields], e.Keep, e.Written)
	})
}

// Distrust notes that the inventory of a cluster is older than the cluster: the content
// of its objects is not known, nor for certain whose they are. All entries of the seen
// objects are removed, and [Tx.Adopt] makes them anew.
func (tx *Tx) Distrust(cluster string, seen []Entry) error {
	if err := tx.exec(`UPDATE inventory SET digest = '', ran = '', found = 1 WHERE `+withinCluster, cluster); err != nil {
		return err
	}
	return each(tx, `DELETE FROM inventory WHERE `+withinCluster+` AND "group" = ? AND kind = ? AND namespace = ? AND name = ?`, seen, func(e *Entry) []any {
		return []any{cluster, e.ID.Group, e.ID.Kind, e.ID.Namespace, e.ID.Name}
	})
}

// MarkFound notes that the inventory of a cluster may be out of date: what no unit applies
// from now on is deleted with approval only.
func (tx *Tx) MarkFound(cluster string) error {
	return tx.exec(`UPDATE inventory SET found = 1 WHERE `+withinCluster, cluster)
}

// Found are the places with objects that were found in a cluster and that no bundle was
// applied to since.
func (s Reader) Found() (places []object.UnitTarget, err error) {
	err = s.query(func(rows *sql.Rows) error {
		var unitTarget object.UnitTarget
		err := rows.Scan((*string)(&unitTarget.Target), (*string)(&unitTarget.Unit))
		places = append(places, unitTarget)
		return err
	}, `SELECT DISTINCT target, unit FROM inventory WHERE found = 1 ORDER BY target, unit`)
	return places, err
}

// ForgetCluster removes a cluster with its inventory and its identity: should it come back,
// it is one that was never seen.
func (tx *Tx) ForgetCluster(cluster string) error {
	return errors.Join(tx.exec(`DELETE FROM inventory WHERE `+withinCluster, cluster), tx.exec(`DELETE FROM clusters WHERE name = ?`, cluster))
}

// renameCluster moves the inventory and the identity of a departed cluster to another name.
func (tx *Tx) renameCluster(from, to string) error {
	return errors.Join(
		tx.exec(`UPDATE OR REPLACE inventory SET target = ?2 || substr(target, length(?1) + 1) WHERE `+withinCluster, from, to),
		tx.exec(`DELETE FROM clusters WHERE name = ?`, to),
		tx.exec(`UPDATE clusters SET name = ? WHERE name = ?`, to, from))
}

// Count is how many objects the inventory holds, over all clusters.
func (s Reader) Count() (n int, err error) {
	if err := s.db.QueryRow(`SELECT count(*) FROM inventory`).Scan(&n); err != nil {
		return 0, fmt.Errorf("read state: %w", err)
	}
	return n, nil
}

// Census hands every entry of the inventory to see, without Fields, in the
// order of [Store.ClusterInventory].
func (s Reader) Census(see func(Entry)) error {
	return s.query(func(rows *sql.Rows) error {
		var e Entry
		err := rows.Scan((*string)(&e.Target), (*string)(&e.Unit), &e.ID.Group, &e.ID.Kind, &e.ID.Namespace, &e.ID.Name,
			&e.Version, &e.UID, (*string)(&e.Digest), &e.Fingerprint, &e.Keep, &e.Found, (*string)(&e.Ran))
		if err == nil {
			see(e)
		}
		return err
	}, `SELECT target, unit, "group", kind, namespace, name, version, uid, digest, fingerprint, keep, found, ran
		FROM inventory ORDER BY target, unit, "group", kind, namespace, name`)
}

// Tally is how many objects were deleted somewhere since a commit.
type Tally struct {
	Commit  config.Commit
	Objects int
}

// Deleted is how many objects were deleted where.
func (s Reader) Deleted() (map[object.UnitTarget]Tally, error) {
	deleted := map[object.UnitTarget]Tally{}
	err := s.query(func(rows *sql.Rows) error {
		var at object.UnitTarget
		var t Tally
		err := rows.Scan((*string)(&at.Unit), (*string)(&at.Target), (*string)(&t.Commit), &t.Objects)
		deleted[at] = t
		return err
	}, `SELECT unit, target, "commit", objects FROM deleted`)
	return deleted, err
}

// PutDeleted notes how many objects were deleted at a place. None forgets it.
func (tx *Tx) PutDeleted(at object.UnitTarget, t Tally) error {
	if t.Objects == 0 {
		return tx.exec(`DELETE FROM deleted WHERE unit = ? AND target = ?`, string(at.Unit), string(at.Target))
	}
	return tx.exec(`INSERT INTO deleted (unit, target, "commit", objects) VALUES (?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET "commit" = excluded."commit", objects = excluded.objects`, string(at.Unit), string(at.Target), string(t.Commit), t.Objects)
}
