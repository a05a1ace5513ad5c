// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/config/timezone"
)

// TestTimetable: a time that comes again is on from each beginning for its duration, in
// its zone, also over the changes to and from summer time, and when the next beginning is
// before the end.
func TestTimetable(t *testing.T) {
	for _, c := range []struct {
		schedule, zone, duration, at string
		is                           bool
		changes                      string
	}{
		{"0 8 * * MON-FRI", "", "8h", "2026-03-02T08:00:00Z", true, "2026-03-02T16:00:00Z"},
		{"0 8 * * MON-FRI", "", "8h", "2026-03-02T07:59:59Z", false, "2026-03-02T08:00:00Z"},
		{"0 8 * * MON-FRI", "", "8h", "2026-03-02T16:00:00Z", false, "2026-03-03T08:00:00Z"},
		{"0 18 * * FRI", "Europe/Berlin", "62h", "2026-03-28T12:00:00Z", true, "2026-03-30T07:00:00Z"}, // it gets an hour of the clock longer
		{"30 2 * * *", "Europe/Berlin", "1h", "2026-10-25T00:45:00Z", true, "2026-10-25T02:30:00Z"},    // half past two comes twice, one after the other
		{"0 0 * * FRI", "Africa/Cairo", "48h", "2027-04-30T00:00:00Z", true, "2027-05-01T22:00:00Z"},   // that midnight is left out
		{"0 0 * * FRI", "Africa/Cairo", "48h", "2027-04-29T21:59:59Z", false, "2027-04-29T22:00:00Z"},
		{"0 2 * * SUN", "America/New_York", "2h", "2026-03-08T07:30:00Z", true, "2026-03-08T09:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "1h", "2026-03-29T01:10:00Z", true, "2026-03-29T02:00:00Z"},
		{"0 0 * * SUN", "Europe/Berlin", "24h", "2026-10-25T22:30:00Z", true, "2026-10-25T23:00:00Z"}, // of 25 hours
		{"0 0 * * *", "Europe/Berlin", "24h", "2026-10-25T22:30:00Z", true, ""},
		{"0 * * * *", "", "90m", "2026-03-02T08:10:00Z", true, ""}, // for ever
		{"0 0 29 2 *", "", "24h", "2026-03-02T08:10:00Z", false, "2028-02-29T00:00:00Z"},
	} {
		d, err := time.ParseDuration(c.duration)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		table := Timetable{Schedule: c.schedule, TimeZone: c.zone, Duration: d}
		if field, err := table.check(); err != nil {
			t.Errorf("%v: %s: %v", c, field, err)
		}
		is, changes := table.At(at)
		text := ""
		if !changes.IsZero() {
			text = changes.Format(time.RFC3339)
		}
		if is != c.is || text != c.changes {
			t.Errorf("%v: got %t, changes %q", c, is, text)
		}
	}
}

// TestTimetableByMinute holds what a timetable says against all of its beginnings.
func TestTimetableByMinute(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		table := Timetable{
			Schedule: fmt.Sprintf("%d %s * * %s", rapid.IntRange(0, 59).Draw(t, "minute"), rapid.SampledFrom([]string{"*", "2", "*/6", "1-3"}).Draw(t, "hour"), rapid.SampledFrom([]string{"*", "SUN", "MON-FRI"}).Draw(t, "day")),
			TimeZone: rapid.SampledFrom([]string{"", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kolkata"}).Draw(t, "zone"),
			Duration: time.Duration(rapid.OneOf(rapid.IntRange(1, 3000), rapid.Just(24*60)).Draw(t, "duration")) * time.Minute,
		}
		now := time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 3*24*60*60).Draw(t, "now")) * time.Second)
		zone, err := timezone.Load(orText(table.TimeZone, "UTC"))
		if err != nil {
			t.Fatal(err)
		}
		schedule, err := ParseSchedule(table.Schedule)
		if err != nil {
			t.Fatal(err)
		}
		want := false
		for minute := now.Add(-table.Duration - 2*time.Hour).Truncate(time.Minute); !minute.After(now); minute = minute.Add(time.Minute) {
			shows := wall(minute.In(zone))
			before := wall(minute.Add(-time.Minute).In(zone)).Add(time.Minute) // later than that: the clock was set forward
			begins := schedule.Next(earlierOf(before, shows).Add(-time.Second))
			want = want || !begins.After(shows) && now.Before(table.end(minute.In(zone)))
		}
		is, changes := table.At(now)
		if is != want {
			t.Fatalf("%+v at %s: got %t, want %t", table, now, is, want)
		}
		if changes.IsZero() {
			return
		}
		if before, _ := table.At(changes.Add(-time.Nanosecond)); before != is || !changes.After(now) {
			t.Fatalf("%+v at %s: it is %t, and is no more just before it changes at %s", table, now, is, changes)
		}
		if after, _ := table.At(changes); after == is {
			t.Fatalf("%+v at %s: it is %t, and still is when it changes at %s", table, now, is, changes)
		}
	})
}

// TestWavesOf: every target is in one wave at most, a share is what it says, and one target
// less changes one choice at most.
func TestWavesOf(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(t *rapid.T) {
		share := rapid.IntRange(1, 100).Draw(t, "share")
		r := &Rollout{Name: "default", Waves: []Wave{{Name: "listed", Targets: []TargetName{"c-003", "d"}}, {Name: "some", Share: share}, {Name: "rest"}}}
		var names []TargetName
		for i := range rapid.IntRange(1, 60).Draw(t, "targets") {
			names = append(names, TargetName(fmt.Sprintf("c-%03d", i)))
		}
		names = append(names, "d/a", "d/b")
		none := func(TargetName) map[string]string { return nil }
		count := func(names []TargetName) (map[TargetName]int, int) {
			waves, n := r.WavesOf(names, none), 0
			for _, name := range names {
				wave, taken := waves[name]
				if listed := name == "c-003" || name.Cluster() == "d"; !taken || listed != (wave == 0) {
					t.Fatalf("%s is in wave %d (%t)", name, wave, taken)
				}
				if wave == 1 {
					n++
				}
			}
			return waves, n
		}
		all, n := count(names)
		left := len(names) - 2
		if left > 3 {
			left--
		}
		if want := max(1, left*share/100); n != want {
			t.Fatalf("%d of %d targets are %d %%, want %d", n, left, share, want)
		}
		fewer, _ := count(names[1:])
		changed := 0
		for _, name := range names[1:] {
			if all[name] != fewer[name] {
				changed++
			}
		}
		if changed > 1 {
			t.Fatalf("without one target, %d others are in another wave", changed)
		}
	})
}

// earlierOf is the earlier of two times.
func earlierOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
