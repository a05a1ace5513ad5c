// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/sync/store"
)

// deletes judges a DELETE.
func (j *judge) deletes(c *call, at *cluster, k key) {
	var options struct {
		Preconditions struct{ UID string }
	}
	_ = json.Unmarshal(c.body, &options) // without a body there are none
	uid := options.Preconditions.UID
	if uid == "" {
		j.objectf("a deletion is bound to a UID", "%s", c.key())
		return
	}
	l, there := at.live[k]
	if !there || l.uid != uid {
		return // the cluster refuses it
	}
	entries := j.entriesOf(c, k, uid, l.unit)
	if len(entries) == 0 {
		j.objectf("a deletion is of the inventory", "%s: no entry has %s with the UID %s", c.key(), k, uid)
		return
	}
	if j.objection == nil && k.kind != "Job" { // a hook that runs again
		j.rightly(c, entries, k, uid)
	}
	if j.objection == nil {
		if k.kind != "Job" {
			j.overwritten(c.cluster, k, "")
		}
		j.world.stats.situation("pruned " + k.kind)
	}
}

// rightly objects to a deletion that neither the commit in force allows nor the one that
// the process has just fetched, whichever of the units that have the object makes it.
func (j *judge) rightly(c *call, entries []store.Entry, k key, uid string) {
	rule, why := "nothing is deleted in doubt", "no commit was fetched"
	commits := []*commit{j.inForce[c.process.number], j.known[c.process.number]}
	if commits[0] == nil && (commits[1] == nil || j.isBlind(c.process)) { // without Git, the commit of the state stays in force
		commits[0] = j.newest
	}
	for _, commit := range commits {
		for i := range entries {
			if commit == nil {
				continue
			}
			if rule, why = j.wrong(c, commit, &entries[i], k, uid); why == "" {
				return
			}
		}
	}
	j.objectf(rule, "%s: %s", c.key(), why)
}

// wrong says which rule a deletion breaks; empty when none.
func (j *judge) wrong(c *call, commit *commit, e *store.Entry, k key, uid string) (rule, why string) {
	if commit.held {
		return "nothing is deleted in doubt", "it is not known what Git wants"
	}
	by := slices.DeleteFunc(j.wants(commit, c.cluster, k), func(at place) bool { return j.isRetired(at.target) })
	if len(by) > 0 {
		return "what Git wants stays", fmt.Sprintf("%v want it", by)
	}
	if u := commit.unit(string(e.Unit)); u != nil && !j.goodIn(commit, u) {
		return "nothing is deleted in doubt", u.path + " has a problem"
	}
	if why := j.tooEarly(c.process, commit, place{string(e.Unit), string(e.Target)}, k); why != "" && !j.isRetired(string(e.Target)) {
		return "deletions come last", why
	}
	for _, u := range commit.units {
		if !j.goodIn(commit, u) && u.path != string(e.Unit) && !j.world.contested(commit)[u.path] {
			return "nothing is deleted in doubt", "it may belong to " + u.path + ", which has a problem"
		}
	}
	return "guard", j.unguarded(commit, e, k, uid)
}

// entriesOf are the entries that a deletion may be of. One without a UID is of an apply
// that was cut short: then the object has to name the unit. Those that were found after
// the state was lost count only where there are no others.
func (j *judge) entriesOf(c *call, k key, uid, unit string) (all []store.Entry) {
	var found []store.Entry
	for _, e := range j.entries(c.process) {
		is := e.UID == uid || e.UID == "" && string(e.Unit) == unit || k.kind == "Job" && unit != "" // a hook's earlier run may be another unit's
		if !is || e.Target.Cluster() != c.cluster || e.ID.Kind != k.kind || e.ID.Namespace != k.namespace || e.ID.Name != k.name {
			continue
		}
		if e.Found {
			found = append(found, e)
		} else {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return found
	}
	return all
}

// unguarded says why a deletion takes approval that nobody gave; empty when it does not.
func (j *judge) unguarded(commit *commit, e *store.Entry, k key, uid string) string {
	at := place{string(e.Unit), string(e.Target)}
	if j.allowed[deletion{at, k, uid}] || e.UID == "" && j.allowed[deletion{at, k, ""}] { // who approved it knew no UID either
		j.world.stats.situation("deleted with approval")
		return ""
	}
	if k.kind == "Namespace" || k.kind == "CustomResourceDefinition" {
		return "it takes others along, and nobody approved it"
	}
	if e.Found {
		return fmt.Sprintf("it was found after the state was lost, and nobody approved it: %s on %s, %+v", e.Unit, e.Target, e)
	}
	u := commit.unit(string(e.Unit))
	if u == nil || j.isRetired(string(e.Target)) {
		return ""
	}
	if k.kind == "Deployment" && !u.workload {
		return u.path + " stays, and loses its last workload"
	}
	if k.kind == "ConfigMap" && u.hashed {
		return "" // it may be replaced
	}
	count := fmt.Sprint(commit.id, " ", e.Unit, " ", e.Target)
	if j.deleted[count]++; j.deleted[count] > 3+j.made[at] { // what is made beside may replace it
		return fmt.Sprintf("the %d. deletion of %s on %s without approval", j.deleted[count], e.Unit, e.Target)
	}
	return ""
}
