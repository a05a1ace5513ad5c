// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// neverDeleted are kinds whose deletion takes other people's objects or data
// along. swell lets go of them and leaves the deleting to a person.
var neverDeleted = map[string]bool{
	"Namespace": true, "PersistentVolume": true, "PersistentVolumeClaim": true,
	"CustomResourceDefinition.apiextensions.k8s.io": true,
}

// prune deletes the objects of the job's inventory that its unit does not want
// any more. kept says, in one line, what is left of them and why; empty when
// nothing is.
func (d *Daemon) prune(ctx context.Context, conn *apply.Cluster, j *job, wanted map[render.ObjectID]bool) (results []apply.Result, kept string) {
	var doomed []store.Entry
	for id, entry := range j.inventory {
		switch why := d.spared(j, id); {
		case wanted[id]:
		case why == moved || why == protected:
			j.forgotten = append(j.forgotten, entry)
		case why != "":
			kept = fmt.Sprintf("%s stays: %s", id, why)
		default:
			doomed = append(doomed, entry)
		}
	}
	slices.SortFunc(doomed, func(a, b store.Entry) int { return render.CompareApplyOrder(a.ID, b.ID) })
	results = conn.Prune(ctx, doomed)
	j.take(results)
	for _, res := range results {
		switch {
		case res.Err != nil:
			kept = res.Err.Error()
		case !res.Forget:
			kept = fmt.Sprintf("%s: %s", res.ID, res.Reason)
		}
	}
	return results, kept
}

const (
	moved     = "another unit wants it"
	protected = "swell deletes nothing of this kind"
)

// spared says why an object must not be deleted although its unit does not
// want it; empty when it may be. Not to know is a reason: an object may be on
// its way to a unit that has a problem at the moment.
func (d *Daemon) spared(j *job, id render.ObjectID) string {
	if d.snapshot == nil || d.snapshot.Held {
		return "it is not known what the commit wants"
	}
	for _, by := range d.compiler.Wants(clusterOf(j.Target), id) {
		if by.Unit != j.Unit || by.Target != j.Target {
			return moved
		}
	}
	if broken := d.brokenNear(j.Unit); broken != "" {
		return fmt.Sprintf("it may belong to %s, which has a problem", broken)
	}
	kind := id.Kind
	if id.Group != "" {
		kind += "." + id.Group
	}
	if neverDeleted[kind] {
		return protected
	}
	return ""
}

// brokenNear names a unit with a problem that an object of the given unit may
// have moved to: one of the same tenant, or any when the unit itself is gone.
func (d *Daemon) brokenNear(path config.UnitPath) config.UnitPath {
	unit := d.snapshot.Units[path]
	var found config.UnitPath
	for _, other := range d.snapshot.Units {
		if len(other.Problems) > 0 && (unit == nil || other.Tenant == unit.Tenant) && (found == "" || other.Path < found) {
			found = other.Path
		}
	}
	return found
}
