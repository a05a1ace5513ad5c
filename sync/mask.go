// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// At a masked place nothing is written. The planner plans nothing there; what follows
// holds whatever it plans: no job that writes begins, those under way are cancelled, a
// check deletes nothing, drift is only reported, and the Lease of a cluster that is masked as a
// whole is not renewed. Health is looked at as elsewhere.

// masked says why nothing may be written at a place; empty when it may.
func (d *Daemon) masked(at object.UnitTarget) string {
	return d.state.Masked(d.monorepo.wanted, at, d.clock.now())
}

// isMasked says whether all of a cluster is masked, by an order or by a document that names
// the cluster.
func (d *Daemon) isMasked(cluster string) bool {
	for _, m := range d.monorepo.bounds.Masks {
		narrow := len(m.Where.Match.Labels) + len(m.Where.Units) + len(m.Where.Tenants) + len(m.Where.Waves)
		if narrow == 0 && (len(m.Where.Targets) == 0 || slices.Contains(m.Where.Targets, config.TargetName(cluster))) {
			return true
		}
	}
	for _, o := range d.orders.standing {
		if o.Verb == order.Mask && !o.Over(d.clock.now()) && o.Scope.HasCluster(cluster) {
			return true
		}
	}
	return false
}

// mayBegin says whether an action may be carried out: it is the one place that every job
// comes by.
func (d *Daemon) mayBegin(a rollout.Action) bool {
	return a.Kind == rollout.Check || d.masked(object.UnitTarget{Unit: a.Unit, Target: a.Target}) == ""
}

// spareMasked has a check delete nothing at a masked place.
func (d *Daemon) spareMasked(j *executor.Job) {
	if !j.Deletes() {
		return
	}
	if why := d.masked(j.Place()); why != "" {
		j.Prunable, j.Held, j.Kept, j.Moved = nil, nil, nil, nil
		j.Left = []string{"nothing is deleted here: " + why}
	}
}

// stopMasked ends the jobs under way at masked places, and the Leases of masked clusters.
func (p *pass) stopMasked() {
	p.executor.Cancel(func(j *executor.Job) bool { return mayWrite(j) && p.masked(j.Place()) != "" })
	p.fleet.SuspendLeases(p.isMasked)
}

// mayWrite says whether the job may change something in its cluster.
func mayWrite(j *executor.Job) bool {
	return j.Kind != rollout.Check || len(j.Prunable)+len(j.Kept) > 0 || j.Work.Frees
}

// reportsOnly says whether drift of an entry may not be corrected.
func (d *Daemon) reportsOnly(e store.Entry) bool { return d.masked(e.Place()) != "" }
