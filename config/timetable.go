// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/swell-sh/swell/config/timezone"
)

// Timetable is a time that comes again and again. It is valid, see [Timetable.check].
type Timetable struct {
	Schedule string // five cron fields: when it begins
	TimeZone string // of the schedule; empty is UTC
	Duration time.Duration
}

// maxTimetable is the longest duration of a timetable: a year and a day.
const maxTimetable = 366 * 24 * time.Hour

// check says what is wrong with the timetable, and with which of its fields.
func (t *Timetable) check() (field string, err error) {
	if _, err := timezone.Load(orText(t.TimeZone, "UTC")); err != nil {
		return "timeZone", err
	}
	if t.Schedule == "" {
		return "schedule", errors.New("missing")
	}
	if _, err := ParseSchedule(t.Schedule); err != nil {
		return "schedule", err
	}
	if t.Duration < time.Minute || t.Duration > maxTimetable {
		return "duration", fmt.Errorf("want from 1m to %s, got %s", maxTimetable, t.Duration)
	}
	return "", nil
}

// At says whether it is the time, and when that changes next; zero when it does not
// within some thousand beginnings.
func (t *Timetable) At(now time.Time) (is bool, changes time.Time) {
	schedule, err := ParseSchedule(t.Schedule)
	if err != nil {
		return false, time.Time{}
	}
	zone, err := timezone.Load(orText(t.TimeZone, "UTC"))
	if err != nil {
		return false, time.Time{}
	}
	// A day of the calendar may be longer than 24 hours.
	begins := nextIn(zone, schedule, now.Add(-t.Duration-longestGap))
	for !begins.IsZero() && !begins.After(now) && !t.end(begins).After(now) {
		begins = nextIn(zone, schedule, begins)
	}
	if begins.IsZero() || begins.After(now) {
		return false, begins.UTC()
	}
	end := t.end(begins)
	for range 5000 { // the next ones may begin before the end of this one
		next := nextIn(zone, schedule, begins)
		if next.IsZero() || next.After(end) {
			return true, end.UTC()
		}
		begins, end = next, t.end(next)
	}
	return true, time.Time{}
}

// longestGap is more than any zone's clock was ever set by in the years that schedules are
// asked for: an hour, mostly.
const longestGap = 3 * time.Hour

// end is when a time is over that begins then. Whole days are those of the calendar, so that
// a daily one of 24 hours has no hole on the day with 25.
func (t *Timetable) end(begins time.Time) time.Time {
	const day = 24 * time.Hour
	if t.Duration%day == 0 {
		return begins.AddDate(0, 0, int(t.Duration/day))
	}
	return begins.Add(t.Duration)
}

// nextIn is the first beginning after an instant; zero when there is none within years. A
// beginning in an hour that the clock leaves out is at the instant when it does; one in an
// hour that comes twice is at both.
func nextIn(zone *time.Location, schedule cron.Schedule, after time.Time) time.Time {
	after = after.In(zone)
	next := schedule.Next(after)
	until := next
	if until.IsZero() {
		until = after.AddDate(scheduleYears, 0, 0)
	}
	for from := after; from.Before(until); from = from.Add(24 * time.Hour) {
		change, left := setForward(from, from.Add(24*time.Hour))
		if left <= 0 || change.After(until) {
			continue
		}
		local := wall(change).Add(-left)
		if first := schedule.Next(local.Add(-time.Second)); !first.IsZero() && first.Before(local.Add(left)) {
			return change
		}
	}
	return next
}

// scheduleYears is how far ahead cron looks for a beginning.
const scheduleYears = 5

// setForward is when between two times, a day apart, the clock is set forward, and by how
// much; zero or less when it is not. [time.Time.ZoneBounds] does not do: for some zones it
// gives no end.
func setForward(from, to time.Time) (change time.Time, by time.Duration) {
	_, before := from.Zone()
	_, since := to.Zone()
	if since <= before {
		return change, 0
	}
	for to.Sub(from) > time.Second {
		middle := from.Add(to.Sub(from) / 2)
		if _, offset := middle.Zone(); offset == before {
			from = middle
		} else {
			to = middle
		}
	}
	return to.Truncate(time.Second), time.Duration(since-before) * time.Second
}

// wall is the time on the clock, as one of a zone without changes.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	return time.Date(year, month, day, hour, minute, second, 0, time.UTC)
}
