// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"

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
	entry := j.entryOf(c, k, uid)
	if entry == nil {
		j.objectf("a deletion is of the inventory", "%s: no entry has %s with the UID %s", c.key(), k, uid)
		return
	}
	if j.objection == nil && k.kind != "Job" { // a hook that runs again
		j.rightly(c, entry, k, uid)
	}
	if j.objection == nil {
		j.overwritten(c.cluster, k, "")
		j.world.stats.situation("pruned " + k.kind)
	}
}

// rightly objects to a deletion that neither the commit in force allows nor the one that
// the process has just fetched.
func (j *judge) rightly(c *call, e *store.Entry, k key, uid string) {
	var rule, why string
	for _, commit := range []*commit{j.inForce[c.process.number], j.known[c.process.number]} {
		if commit == nil {
			continue
		}
		if rule, why = j.wrong(c, commit, e, k, uid); why == "" {
			return
		}
	}
	if why == "" {
		rule, why = "nothing is deleted in doubt", "no commit was fetched"
	}
	j.objectf(rule, "%s: %s", c.key(), why)
}

// wrong says which rule a deletion breaks; empty when none.
func (j *judge) wrong(c *call, commit *commit, e *store.Entry, k key, uid string) (rule, why string) {
	if commit.held {
		return "nothing is deleted in doubt", "it is not known what Git wants"
	}
	if by := j.wants(commit, c.cluster, k); len(by) > 0 {
		return "what Git wants stays", fmt.Sprintf("%v want it", by)
	}
	if u := commit.unit(string(e.Unit)); u != nil && !j.goodIn(commit, u) {
		return "nothing is deleted in doubt", u.path + " has a problem"
	}
	return "guard", j.unguarded(commit, e, k, uid)
}

func (j *judge) entryOf(c *call, k key, uid string) *store.Entry {
	for _, e := range j.entries(c.process) {
		if e.UID == uid && e.Target.Cluster() == c.cluster && e.ID.Kind == k.kind && e.ID.Namespace == k.namespace && e.ID.Name == k.name {
			return &e
		}
	}
	return nil
}

// unguarded says why a deletion takes approval that nobody gave; empty when it does not.
func (j *judge) unguarded(commit *commit, e *store.Entry, k key, uid string) string {
	if j.allowed[deletion{place{string(e.Unit), string(e.Target)}, k, uid}] {
		j.world.stats.situation("deleted with approval")
		return ""
	}
	if k.kind == "Namespace" || k.kind == "CustomResourceDefinition" {
		return "it takes others along, and nobody approved it"
	}
	if e.Found {
		return "it was found after the state was lost, and nobody approved it"
	}
	u := commit.unit(string(e.Unit))
	if u == nil {
		return ""
	}
	if k.kind == "Deployment" && !u.workload {
		return u.path + " stays, and loses its last workload"
	}
	if k.kind == "ConfigMap" && u.hashed {
		return "" // it may be replaced
	}
	at := fmt.Sprint(commit.id, " ", e.Unit, " ", e.Target)
	if j.deleted[at]++; j.deleted[at] > 3 {
		return fmt.Sprintf("the %d. deletion of %s on %s without approval", j.deleted[at], e.Unit, e.Target)
	}
	return ""
}
