// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"hash/fnv"
	"time"

	"github.com/robfig/cron/v3"
)

// everyHour is the bit that cron sets for a star.
const everyHour = 1 << 63

// NextRun is the first run of a schedule after a time. Where the clocks of the
// zone change, a schedule that names hours runs once on each of its days: at
// the time as it would have been when the clocks skip it, and not twice when
// they repeat it. One that does not name hours goes on in its rhythm.
func NextRun(schedule cron.Schedule, after time.Time, zone *time.Location) time.Time {
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

// Jitter is the delay of a cluster, from 0 to less than most; it depends on
// the name alone, so that it is the same after a restart.
func Jitter(name string, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	sum := fnv.New64a()
	sum.Write([]byte(name))
	return time.Duration(sum.Sum64() % uint64(most))
}
