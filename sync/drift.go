// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// sweep compares live objects with the inventory, on the clusters whose time
// has come, and notes what differs: the next plan corrects it.
func (d *Daemon) sweep(ctx context.Context, r *Record) {
	var due []string
	for name := range d.clusters {
		if at := d.sweepAt(name); !at.IsZero() && !at.After(r.At) && d.sweeps[name] == nil {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	d.beginSweeps(ctx, due)
	done := d.endedSweeps(ctx, due)
	if ctx.Err() != nil || len(done) == 0 {
		return
	}
	for _, s := range done {
		d.note(r, s.name, s.swept)
	}
	// In one transaction: an object whose digest is cleared is not judged by
	// the next sweep, so it must be known that it has to be sent.
	r.Err = d.Store.Update(ctx, func(tx *store.Tx) error {
		for _, s := range done {
			if err := tx.Suspect(entriesOf(s.drifts)); err != nil {
				return err
			}
			if s.err != nil {
				continue // it is swept again soon
			}
			if err := tx.Swept(s.name, r.At); err != nil {
				return err
			}
		}
		return d.putState(tx)
	})
	if r.Err == nil {
		d.state.Stored()
	}
}

// note takes in what the sweep of a cluster found.
func (d *Daemon) note(r *Record, name string, found swept) {
	if found.err != nil {
		d.sweepAfter[name] = r.At.Add(sweepPause)
		r.fail(fmt.Errorf("sweep of cluster %s: %s", name, strings.ReplaceAll(found.err.Error(), "\n", "; ")))
	} else {
		d.sweptAt[name] = r.At
		r.Swept = append(r.Swept, name)
	}
	r.Transitions = append(r.Transitions, d.noteDrifts(r, found.drifts, r.At)...)
}

// noteDrifts makes the next plan correct what was found.
func (d *Daemon) noteDrifts(r *Record, drifts []apply.Drift, now time.Time) []rollout.Transition {
	r.Drifts = append(r.Drifts, drifts...)
	var transitions []rollout.Transition
	for _, drift := range drifts {
		transitions = append(transitions, d.state.Record(rollout.Outcome{
			Action: rollout.Action{Kind: rollout.Sweep, Unit: drift.Entry.Unit, Target: drift.Entry.Target},
			Result: rollout.Drifted,
			Reason: DriftText(drift),
		}, now)...)
	}
	return transitions
}

func entriesOf(drifts []apply.Drift) []store.Entry {
	entries := make([]store.Entry, len(drifts))
	for i, drift := range drifts {
		entries[i] = drift.Entry
	}
	return entries
}

// sweepPause is when a sweep that failed is tried again.
const sweepPause = time.Minute

type swept struct {
	drifts []apply.Drift
	err    error
}

// DriftText says in one line what was changed on an object, and by whom.
func DriftText(drift apply.Drift) string {
	var parts []string
	if drift.Missing {
		parts = append(parts, "deleted")
	}
	for _, change := range drift.Changes {
		parts = append(parts, change.String())
	}
	return fmt.Sprintf("%s: %s", drift.Entry.ID, strings.Join(parts, "; "))
}

// sweepAt is when a cluster is to be swept next; zero is never.
func (d *Daemon) sweepAt(name string) time.Time {
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
	next := d.Drift.Schedule.Next(last.Add(-shift).In(zone))
	if next.IsZero() {
		return next // the schedule never comes
	}
	next = next.Add(shift)
	if after := d.sweepAfter[name]; next.Before(after) {
		return after
	}
	return next
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

func (d *Daemon) nextSweep() time.Time {
	var next time.Time
	for name := range d.clusters {
		if d.sweeps[name] == nil { // its end is told
			next = earliest(next, d.sweepAt(name))
		}
	}
	return next
}
