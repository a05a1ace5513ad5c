// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"time"

	"github.com/swell-sh/swell/sync/drift"
)

// sweepAt is when a cluster is to be swept next; zero is never. Runs that were
// missed are made up for by one.
func (d *Daemon) sweepAt(name string) time.Time {
	next := d.scheduled(name)
	if d.sweepNow[name] {
		next = earliest(d.started.Add(drift.Jitter(name, d.Drift.Jitter)), next)
		if after := d.watchAfter[name]; next.Before(after) {
			next = earliest(after, d.scheduled(name))
		}
	}
	if after := d.sweepAfter[name]; !next.IsZero() && next.Before(after) {
		return after
	}
	return next
}

// scheduled is when the schedule has the cluster swept next; zero is never.
func (d *Daemon) scheduled(name string) time.Time {
	if d.Drift.Schedule == nil {
		return time.Time{}
	}
	last, ok := d.sweptAt[name]
	if !ok {
		last = d.started
	}
	zone := d.Drift.Location
	if zone == nil {
		zone = time.UTC
	}
	// The jitter is part of the cluster's own clock: what is compared with the
	// schedule is the time less the jitter.
	shift := drift.Jitter(name, d.Drift.Jitter)
	next := drift.NextRun(d.Drift.Schedule, last.Add(-shift), zone)
	if next.IsZero() {
		return next // the schedule never comes
	}
	if next = next.Add(shift); next.Before(d.started) {
		return d.started.Add(shift) // missed while nobody ran, by many clusters maybe
	}
	return next
}

// nextSweep is when live objects are to be looked at next.
func (d *Daemon) nextSweep() time.Time {
	next := d.ledger.NextResume(func(cluster string) time.Time {
		if barred, _ := d.barred(cluster); barred || d.sweeping[cluster] != nil || d.fleet.Of(cluster) == nil {
			return never // its end is told, or nobody looks there any more
		}
		return d.sweepAfter[cluster]
	})
	for _, name := range d.fleet.Names() {
		if barred, _ := d.barred(name); barred || d.sweeping[name] != nil {
			continue
		}
		next = earliest(next, d.sweepAt(name))
		next = earliest(next, d.deepAt(name))
	}
	return next
}
