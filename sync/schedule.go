// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"time"
)

// nextSweep is when live objects are to be looked at next.
func (d *Daemon) nextSweep() time.Time {
	next := d.ledger.NextResume(func(cluster string) time.Time {
		if barred, _ := d.barred(cluster); barred || d.sweeps.underWay[cluster] != nil || d.fleet.Of(cluster) == nil {
			return never // its end is told, or nobody looks there any more
		}
		return d.timetable.HeldUntil(cluster)
	})
	for _, name := range d.fleet.Names() {
		if barred, _ := d.barred(name); barred || d.sweeps.underWay[name] != nil {
			continue
		}
		next = earliest(next, d.timetable.Due(name))
		next = earliest(next, d.timetable.DeepDue(name))
	}
	return next
}
