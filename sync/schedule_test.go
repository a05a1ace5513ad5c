// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/informer"
)

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestScheduleAcrossClockChanges: DST both ways. In Berlin the clock goes from
// 2 to 3 on 29 March 2026 and from 3 back to 2 on 25 October. Schedules that
// name hours run once a day, the others keep their rhythm.
func TestScheduleAcrossClockChanges(t *testing.T) {
	for _, c := range []struct {
		name, schedule string
		from           time.Time // UTC
		want           []string  // in Berlin
	}{
		{"skipped hour", "30 2 * * *", time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC), []string{"28 02:30 CET", "29 03:30 CEST", "30 02:30 CEST"}},
		{"after the skipped hour", "30 4 * * *", time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), []string{"29 04:30 CEST", "30 04:30 CEST"}},
		{"repeated hour", "30 2 * * *", time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC), []string{"24 02:30 CEST", "25 02:30 CET", "26 02:30 CET"}},
		{"begun in the repeated hour", "30 2 * * *", time.Date(2026, 10, 25, 1, 10, 0, 0, time.UTC), []string{"25 02:30 CET", "26 02:30 CET"}},
		{"every hour, skipped", "0 * * * *", time.Date(2026, 3, 29, 0, 10, 0, 0, time.UTC), []string{"29 03:00 CEST", "29 04:00 CEST"}},
		{"every hour, repeated", "0 * * * *", time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC), []string{"25 02:00 CET", "25 03:00 CET"}},
		{"every 30 minutes, repeated", "*/30 * * * *", time.Date(2026, 10, 25, 0, 10, 0, 0, time.UTC), []string{"25 02:30 CEST", "25 02:00 CET", "25 02:30 CET", "25 03:00 CET"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			schedule, err := config.ParseSchedule(c.schedule)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for at := c.from; len(got) < len(c.want); {
				next := drift.NextRun(schedule, at, berlin(t))
				if !next.After(at) {
					t.Fatalf("%s comes not after %s", next, at)
				}
				at = next
				got = append(got, at.In(berlin(t)).Format("2 15:04 MST"))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sleeper is a daemon of which only the schedule is looked at.
func sleeper(t *testing.T, schedule string, jitter time.Duration, started time.Time, names ...string) *Daemon {
	t.Helper()
	parsed, err := config.ParseSchedule(schedule)
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{sweeps: newSweeps(), surveys: newSurveys(nil)}
	d.sweeps.ledger = &drift.Ledger{}
	d.informer = informer.New(d.wake)
	d.Drift = config.Drift{Schedule: parsed, Jitter: jitter}
	d.sweeps.timetable = drift.NewTimetable(d.Drift, started, nil)
	d.fleet = fleetOfNames(t, names...)
	for _, name := range names {
		d.surveys.compared[name] = 1
	}
	return d
}

// fleetOfNames are clusters that nobody answers for.
func fleetOfNames(t *testing.T, names ...string) *fleet.Fleet {
	t.Helper()
	clusters := map[string]config.ClusterAccess{}
	for _, name := range names {
		clusters[name] = config.ClusterAccess{}
	}
	pin := func(context.Context, string, string) (string, error) { return "", errors.New("nobody answers") }
	f, err := fleet.New(fleet.Options{Clusters: clusters, Lease: config.Lease{Off: true}, Pin: pin, Changed: func() {}}, "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// due is how many sweeps are due at a time; they are taken to be done then.
func (d *Daemon) due(at time.Time) (n int) {
	for _, l := range d.dueSweeps(&Record{At: at}) {
		if l.full {
			n++
			d.sweeps.timetable.Begun(l.cluster)
			d.sweeps.timetable.Swept(l.cluster, at)
		}
	}
	return n
}

// TestMissedSweepsAreMadeUpForOnce: after days without the daemon, and when the
// clock jumps ahead, one sweep stands for all that were missed; when it jumps
// back, the schedule goes on from there.
func TestMissedSweepsAreMadeUpForOnce(t *testing.T) {
	d := sleeper(t, "*/10 * * * *", 0, noon, "dev")
	run := func(what string, at time.Time, want int) {
		t.Helper()
		if got := d.due(at); got != want {
			t.Errorf("%s: %d sweeps, want %d", what, got, want)
		}
	}
	run("at the start", noon, 0)
	run("after ten minutes", noon.Add(10*time.Minute), 1)
	run("at the same time", noon.Add(10*time.Minute), 0)
	last := d.sweeps.timetable.SweptAt("dev")

	d = sleeper(t, "*/10 * * * *", 0, noon.Add(72*time.Hour), "dev")
	d.sweeps.timetable.Swept("dev", last) // as the state has it
	run("after a restart days later", noon.Add(72*time.Hour), 1)
	run("again", noon.Add(72*time.Hour), 0)
	run("with the next run", noon.Add(72*time.Hour+10*time.Minute), 1)

	run("the clock jumped a year ahead", noon.Add(365*24*time.Hour), 1)
	run("again", noon.Add(365*24*time.Hour), 0)
	d.sweeps.timetable.Shift(73*time.Hour-365*24*time.Hour, noon.Add(73*time.Hour))
	run("and back", noon.Add(73*time.Hour), 0)
	run("ten minutes after that", noon.Add(73*time.Hour+10*time.Minute), 1)
}

// TestManySchedulesAtTheSameMinuteAreSpread: 1,000 clusters, also after a
// restart that makes all of them due.
func TestManySchedulesAtTheSameMinuteAreSpread(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%d", i)
	}
	for _, down := range []time.Duration{0, time.Hour, 100 * time.Hour} {
		d := sleeper(t, "0 * * * *", time.Minute, noon.Add(-time.Second), names...)
		if down > 0 {
			swept := map[string]time.Time{}
			for _, name := range names {
				swept[name] = noon.Add(-down).Add(drift.Jitter(name, time.Minute))
			}
			d.sweeps.timetable = drift.NewTimetable(d.Drift, noon, swept)
		}
		total := 0
		for second := range 60 {
			n := d.due(noon.Add(time.Duration(second) * time.Second))
			if total += n; n > 50 {
				t.Errorf("second %d: %d sweeps", second, n)
			}
		}
		if total += d.due(noon.Add(time.Minute)); total != len(names) {
			t.Errorf("%d sweeps within a minute, want one for each cluster", total)
		}
		if n := d.due(noon.Add(59 * time.Minute)); n != 0 {
			t.Errorf("%d sweeps a second time", n)
		}
	}
}
