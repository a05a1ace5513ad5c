// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"
)

// sweepAt is when a cluster is to be swept next; zero is never. Runs that were
// missed are made up for by one.
func (d *Daemon) sweepAt(name string) time.Time {
	next := d.scheduled(name)
	if d.sweepNow[name] {
		next = earliest(d.started.Add(jitter(name, d.Drift.Jitter)), next)
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
	shift := jitter(name, d.Drift.Jitter)
	next := nextRun(d.Drift.Schedule, last.Add(-shift), zone)
	if next.IsZero() {
		return next // the schedule never comes
	}
	if next = next.Add(shift); next.Before(d.started) {
		return d.started.Add(shift) // missed while nobody ran, by many clusters maybe
	}
	return next
}

// everyHour is the bit that cron sets for a star.
const everyHour = 1 << 63

// nextRun is the first run of a schedule after a time. Where the clocks of the
// zone change, a schedule that names hours runs once on each of its days: at
// the time as it would have been when the clocks skip it, and not twice when
// they repeat it. One that does not name hours goes on in its rhythm.
func nextRun(schedule cron.Schedule, after time.Time, zone *time.Location) time.Time {
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok || spec.Hour&everyHour != 0 {
		return schedule.Next(after.In(zone))
	}
	// What the clock on the wall shows, in a zone without changes.
	local := after.In(zone)
	wall := time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), local.Second(), local.Nanosecond(), time.UTC)
	for {
		if wall = spec.Next(wall); wall.IsZero() {
			return wall
		}
		next := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
		if next.After(after) {
			return next
		}
	}
}

// jitter is the delay of a cluster, from 0 to less than most; it depends on
// the name alone, so that it is the same after a restart.
func jitter(name string, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	sum := fnv.New64a()
	sum.Write([]byte(name))
	return time.Duration(sum.Sum64() % uint64(most))
}

// nextSweep is when live objects are to be looked at next.
func (d *Daemon) nextSweep() time.Time {
	next := d.ledger.nextResume(func(cluster string) time.Time {
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
