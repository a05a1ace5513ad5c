// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"time"

	"github.com/swell-sh/swell/config"
)

// Timetable is when clusters are swept: by the schedule, because somebody asked for
// it, or in parts all the time. Clusters are known by their names. Of all times, the
// zero one is never.
type Timetable struct {
	of      config.Drift
	started time.Time
	swept   map[string]time.Time
	failed  map[string]time.Time // not before that: a sweep failed
	asked   map[string]bool      // somebody asked for a sweep
	askedAt map[string]time.Time // and not before that
	parts   map[string]time.Time // when the next part of the deep sweep is due
}

// failedPause is when a sweep that failed is tried again.
const failedPause = time.Minute

// NewTimetable begins at a time; swept is when clusters were swept before, which may
// not lie ahead: then the clock was.
func NewTimetable(of config.Drift, started time.Time, swept map[string]time.Time) *Timetable {
	t := &Timetable{of: of, started: started, swept: map[string]time.Time{}, failed: map[string]time.Time{}, asked: map[string]bool{}, askedAt: map[string]time.Time{}, parts: map[string]time.Time{}}
	for cluster, at := range swept {
		if at.After(started) {
			at = started
		}
		t.swept[cluster] = at
	}
	return t
}

// Due is when a cluster is to be swept next. Runs that were missed are made up for by
// one.
func (t *Timetable) Due(cluster string) time.Time {
	next := t.scheduled(cluster)
	if t.asked[cluster] {
		next = earliest(t.started.Add(Jitter(cluster, t.of.Jitter)), next)
		if after := t.askedAt[cluster]; next.Before(after) {
			next = earliest(after, t.scheduled(cluster))
		}
	}
	return t.held(cluster, next)
}

// held is a time, or the one before which nothing is tried after a failure.
func (t *Timetable) held(cluster string, next time.Time) time.Time {
	if after := t.failed[cluster]; !next.IsZero() && next.Before(after) {
		return after
	}
	return next
}

// scheduled is when the schedule has the cluster swept next.
func (t *Timetable) scheduled(cluster string) time.Time {
	if t.of.Schedule == nil {
		return time.Time{}
	}
	last, ok := t.swept[cluster]
	if !ok {
		last = t.started
	}
	zone := t.of.Location
	if zone == nil {
		zone = time.UTC
	}
	// The jitter is part of the cluster's own clock: what is compared with the
	// schedule is the time less the jitter.
	shift := Jitter(cluster, t.of.Jitter)
	next := NextRun(t.of.Schedule, last.Add(-shift), zone)
	if next.IsZero() {
		return next // the schedule never comes
	}
	if next = next.Add(shift); next.Before(t.started) {
		return t.started.Add(shift) // missed while nobody ran, by many clusters maybe
	}
	return next
}

// Ask has a cluster swept before its time.
func (t *Timetable) Ask(cluster string) { t.asked[cluster] = true }

// AskAfter has a cluster swept before its time, but not before after. Other calls of
// Ask do not move that.
func (t *Timetable) AskAfter(cluster string, after time.Time) {
	t.asked[cluster], t.askedAt[cluster] = true, after
}

// IsAsked says whether somebody asked for a sweep that was not made yet.
func (t *Timetable) IsAsked(cluster string) bool { return t.asked[cluster] }

// Begun notes that a sweep of the cluster begins: it answers all calls of Ask so far. A
// later call asks for another sweep.
func (t *Timetable) Begun(cluster string) { delete(t.asked, cluster) }

// Swept notes that a cluster was swept.
func (t *Timetable) Swept(cluster string, at time.Time) { t.swept[cluster] = at }

// SweptAt is when a cluster was swept last.
func (t *Timetable) SweptAt(cluster string) time.Time { return t.swept[cluster] }

// Shift moves what waits for an amount of time, after the clock was set. The schedule goes by
// the wall; what was swept by a clock that was ahead was swept now.
func (t *Timetable) Shift(step time.Duration, now time.Time) {
	t.started = t.started.Add(step)
	for _, times := range []map[string]time.Time{t.failed, t.askedAt, t.parts} {
		for cluster, due := range times {
			times[cluster] = due.Add(step)
		}
	}
	for cluster, last := range t.swept {
		if last.After(now) {
			t.swept[cluster] = now
		}
	}
}

// Failed holds back what is due of a cluster that could not be swept.
func (t *Timetable) Failed(cluster string, now time.Time) { t.failed[cluster] = now.Add(failedPause) }

// HeldUntil is before when nothing is tried after a failure.
func (t *Timetable) HeldUntil(cluster string) time.Time { return t.failed[cluster] }

// Hurry has clusters that could not be swept tried again.
func (t *Timetable) Hurry() { clear(t.failed) }

// DeepDue is when the next part of a cluster's deep sweep is due.
func (t *Timetable) DeepDue(cluster string) time.Time {
	if t.of.Deep <= 0 {
		return time.Time{}
	}
	at, ok := t.parts[cluster]
	if !ok {
		_, every := deepRhythm(t.of.Deep)
		at = t.started.Add(Jitter(cluster, every))
	}
	return t.held(cluster, at)
}

// TakeDeep takes the part of the deep sweep that is due by now, and says how many
// objects it has; zero when none is due.
func (t *Timetable) TakeDeep(cluster string, now time.Time) (objects int) {
	at := t.DeepDue(cluster)
	if at.IsZero() || at.After(now) {
		return 0
	}
	n, every := deepRhythm(t.of.Deep)
	t.parts[cluster] = now.Add(every)
	return n
}

// deepStep is the least time between two parts: the objects of a minute are
// spread over it.
const deepStep = 10 * time.Second

// deepRhythm is how many objects are swept how often.
func deepRhythm(perMinute int) (n int, every time.Duration) {
	if perMinute < int(time.Minute/deepStep) {
		return 1, time.Minute / time.Duration(perMinute)
	}
	return perMinute / int(time.Minute/deepStep), deepStep
}

// earliest is the earlier of two times of which the zero one means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
