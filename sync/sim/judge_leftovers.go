// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
)

// unsaid: what lives on though Git dropped it is said. A unit that is shown as done has
// nothing else in the clusters than what the commit of its rollout has, and one that is gone
// has nothing.
func (j *judge) unsaid(p *process, before, next map[string]*row) {
	newest := j.known[p.number]
	if newest == nil || newest.held || j.isOlder { // which is said, as are objects newer than the state
		return
	}
	clusters, err := p.store.Clusters()
	if err != nil {
		j.objectf("state", "clusters: %v", err)
		return
	}
	entries := j.entries(p)
	for path, r := range next {
		if r == before[path] || r.Rollout.Status != rollout.Done {
			continue
		}
		var u rollout.Unit
		if err := json.Unmarshal(r.raw, &u); err != nil {
			j.objectf("state", "unit %s: %v", path, err)
		}
		commit := j.world.git.commit(config.Commit(r.Rollout.Commit))
		if commit == nil || commit.unit(path) == nil || status.Of(&u, status.Known{}).Status != status.Done {
			continue
		}
		for _, t := range j.world.targets(commit.unit(path)) {
			if known := r.Targets[t.name]; known == nil || known.Applied == "" || clusters[t.cluster].Survey != "known" {
				continue
			}
			wanted := map[key]string{} // also by a unit that has not come to it yet
			for _, u := range commit.units {
				maps.Copy(wanted, u.objects(t))
			}
			for _, e := range entries {
				k := key{e.ID.Kind, e.ID.Namespace, e.ID.Name}
				l, lives := j.world.clusters[t.cluster].live[k]
				_, wants := wanted[k]
				isOf := string(e.Unit) == path && string(e.Target) == t.name
				if isOf && lives && l.uid == e.UID && k.kind != "Job" && !wants && !l.going {
					j.objectf("what lives on is said", "%s is done with %s, and has %s on %s still", path, r.Rollout.Commit, k, t.name)
				}
			}
		}
	}
}
