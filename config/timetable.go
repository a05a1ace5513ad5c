// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"time"

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
	begins := schedule.Next(now.Add(-t.Duration).In(zone))
	if begins.IsZero() || begins.After(now) {
		return false, begins.UTC()
	}
	end := begins.Add(t.Duration)
	for range 5000 { // the next ones may begin before the end of this one
		next := schedule.Next(begins)
		if next.IsZero() || next.After(end) {
			return true, end.UTC()
		}
		begins, end = next, next.Add(t.Duration)
	}
	return true, time.Time{}
}
