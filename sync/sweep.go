// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/informer"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// sweep compares live objects of one cluster with the inventory. Like a job, it
// goes on in the background when the cluster takes its time; there is one at a time
// for a cluster.
type sweep struct {
	cluster string
	full    bool               // all of the inventory
	few     []informer.Suspect // single objects
	deep    deepPart           // a part of the deep sweep

	// concurrent are the places of jobs that were under way at the same time: it may have
	// seen them half done.
	concurrent map[object.UnitTarget]bool

	parts []sweepPart   // in the order of entries and of deep.items
	over  chan struct{} // closed when what follows is known

	conn    *apply.Cluster
	entries []store.Entry // that found is about
	gone    []store.Object
	found   apply.Swept
	err     error
}

// sweepPart is the part of a sweep that is done as one account.
type sweepPart struct {
	account string
	entries []store.Entry
	items   []apply.DeepItem
}

// sweeps are those under way, and what they and the jobs must know of each other. It
// is used by the pass only, but for slots.
type sweeps struct {
	timetable *drift.Timetable // when they are due
	modes     drift.Modes      // what is done about what they find
	ledger    *drift.Ledger    // what they found

	underWay map[string]*sweep // by cluster
	slots    chan struct{}     // one token per sweep
	// postponed are suspects on places that a job is at work on. They are swept when
	// it is known what the job did.
	postponed map[object.UnitTarget]map[object.ID]informer.Suspect
	failures  map[string]string // why the last sweep of a cluster failed
	marks     marks
}

func newSweeps() sweeps {
	return sweeps{underWay: map[string]*sweep{}, slots: make(chan struct{}, clustersAtOnce),
		postponed: map[object.UnitTarget]map[object.ID]informer.Suspect{}, failures: map[string]string{}, marks: marks{}}
}

// clustersAtOnce is how many clusters are swept at a time. It bounds memory.
const clustersAtOnce = 128

// startSweeps begins the sweeps that are due.
func (d *Daemon) startSweeps(ctx context.Context, r *Record) []*sweep {
	due := d.dueSweeps(r)
	for _, l := range due {
		d.startSweep(ctx, l)
	}
	return due
}

// startSweep finds the entries of a sweep, and starts it.
func (d *Daemon) startSweep(ctx context.Context, l *sweep) {
	l.over, l.concurrent = make(chan struct{}), map[object.UnitTarget]bool{}
	d.sweeps.underWay[l.cluster] = l
	entries, err := d.entriesFor(l)
	if l.full {
		d.sweeps.timetable.Begun(l.cluster)
	}
	l.deep.done = l.deep.due && l.deep.err == nil && len(l.deep.items) == 0
	if err != nil || len(entries)+len(l.deep.items) == 0 {
		l.err = err
		close(l.over)
		d.wake()
		return
	}
	for _, at := range d.executor.Places() {
		l.concurrent[at] = true
	}
	d.groupByAccount(l, entries)
	c, ignored := d.fleet.Of(l.cluster), apply.Ignored(d.ignored)
	go func() {
		d.sweeps.slots <- struct{}{}
		d.runSweep(ctx, c, l, ignored)
		<-d.sweeps.slots
		close(l.over)
		d.wake()
	}()
}

// groupByAccount makes the parts of a sweep.
func (d *Daemon) groupByAccount(l *sweep, entries []store.Entry) {
	accounts, of := d.byAccount(entries)
	for _, account := range accounts {
		l.parts = append(l.parts, sweepPart{account: account, entries: of[account]})
		l.entries = append(l.entries, of[account]...)
	}
	items := make(map[store.Object]apply.DeepItem, len(l.deep.items))
	for _, item := range l.deep.items {
		items[item.Entry.Of()] = item
	}
	accounts, of = d.byAccount(l.deep.entries())
	l.deep.items = l.deep.items[:0]
	for _, account := range accounts {
		part := sweepPart{account: account}
		for i := range of[account] {
			part.items = append(part.items, items[of[account][i].Of()])
		}
		l.parts, l.deep.items = append(l.parts, part), append(l.deep.items, part.items...)
	}
}

// runSweep does the sweep. It runs in the background.
func (d *Daemon) runSweep(ctx context.Context, c *fleet.Cluster, l *sweep, ignored apply.Ignored) {
	if l.conn, l.err = c.Reach(ctx); l.err != nil {
		return
	}
	for _, part := range l.parts {
		conn := l.conn.As(part.account)
		switch {
		case len(part.entries) > 0:
			sweep := conn.SweepFew
			if l.full {
				sweep = conn.Sweep
			}
			found, err := sweep(ctx, part.entries, ignored)
			l.found.Add(found)
			l.err = errors.Join(l.err, err)
		case !l.found.Lost:
			found, err := conn.Deep(ctx, part.items, ignored)
			l.deep.found.Add(found)
			l.deep.err = errors.Join(l.deep.err, err)
			l.deep.done = ctx.Err() == nil && !l.deep.found.Lost
		}
	}
	if l.found.Lost || l.deep.found.Lost {
		c.Lost(ctx, errors.Join(l.err, l.deep.err))
	}
}

// markConcurrent notes jobs that begin while sweeps are under way.
func (d *Daemon) markConcurrent(jobs []*executor.Job) {
	for _, j := range jobs {
		if l := d.sweeps.underWay[j.Cluster]; l != nil {
			l.concurrent[j.Place()] = true
		}
	}
}

// await waits for the jobs and the sweeps that were just begun, for as long as the
// patience lasts: most end soon, and one pass records them all.
func (d *Daemon) await(ctx context.Context, jobs []*executor.Job, sweeps []*sweep) {
	d.executor.Wait(ctx, jobs, d.Patience)
	timer := time.NewTimer(d.Patience)
	defer timer.Stop()
	for _, l := range sweeps {
		select {
		case <-l.over:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// endedSweeps returns the sweeps that are over, by cluster. What was written meanwhile is
// not judged.
func (d *Daemon) endedSweeps() []*sweep {
	var done []*sweep
	for _, name := range slices.Sorted(maps.Keys(d.sweeps.underWay)) {
		l := d.sweeps.underWay[name]
		select {
		case <-l.over:
		default:
			continue
		}
		delete(d.sweeps.underWay, name)
		d.sweepAgain(forgetConcurrent(&l.found, l.entries, l.concurrent))
		forgetConcurrent(&l.deep.found, l.deep.entries(), l.concurrent)
		done = append(done, l)
	}
	return done
}

// forgetConcurrent marks what was found on places where a job was at work as not
// swept, and returns what differs there.
func forgetConcurrent(found *apply.Swept, entries []store.Entry, concurrent map[object.UnitTarget]bool) (forgotten []drift.Finding) {
	if len(concurrent) == 0 {
		return nil
	}
	found.Drifts = slices.DeleteFunc(found.Drifts, func(f drift.Finding) bool {
		if !concurrent[f.Entry.Place()] {
			return false
		}
		forgotten = append(forgotten, f)
		return true
	})
	for i := range found.Looked {
		if concurrent[entries[i].Place()] {
			found.Looked[i] = false
		}
	}
	return forgotten
}

// sweepAgain makes suspects of what differed while a job may have been writing it.
func (d *Daemon) sweepAgain(drifts []drift.Finding) {
	for _, f := range drifts {
		at := f.Entry.Place()
		d.postpone(at, informer.Suspect{ID: f.Entry.ID, Fingerprint: f.Fingerprint})
		if d.executor.Idle(rollout.Action{Unit: at.Unit, Target: at.Target}) {
			d.requeue(at)
		}
	}
}

// postpone keeps a suspect until the job at its place is recorded.
func (d *Daemon) postpone(at object.UnitTarget, s informer.Suspect) {
	if d.sweeps.postponed[at] == nil {
		d.sweeps.postponed[at] = map[object.ID]informer.Suspect{}
	}
	d.sweeps.postponed[at][s.ID] = s
}

// requeue makes the postponed suspects of a place due.
func (d *Daemon) requeue(at object.UnitTarget) {
	if len(d.sweeps.postponed[at]) == 0 {
		return
	}
	d.informer.Requeue(at.Target.Cluster(), slices.Collect(maps.Values(d.sweeps.postponed[at])))
	delete(d.sweeps.postponed, at)
	d.wake()
}

// nextSweep is when live objects are to be looked at next.
func (d *Daemon) nextSweep() time.Time {
	next := d.sweeps.ledger.NextResume(func(cluster string) time.Time {
		if !d.mayLook(cluster) || d.sweeps.underWay[cluster] != nil || d.fleet.Of(cluster) == nil {
			return never // its end is told, or nobody looks there any more
		}
		return d.sweeps.timetable.HeldUntil(cluster)
	})
	for _, name := range d.fleet.Names() {
		if !d.mayLook(name) || d.sweeps.underWay[name] != nil {
			continue
		}
		next = earliest(next, d.sweeps.timetable.Due(name))
		next = earliest(next, d.sweeps.timetable.DeepDue(name))
	}
	return next
}
