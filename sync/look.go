// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// look is what is to be looked at on one cluster, and what was found. Like jobs,
// it goes on beside the passes when the cluster takes its time; there is one at
// a time for a cluster.
type look struct {
	cluster string
	sweep   bool      // all of the inventory
	few     []suspect // single objects
	deep    deepPart  // a part of the deep sweep

	asked []asked       // in the order of entries and of deep.items
	over  chan struct{} // closed when what follows is known

	conn    *apply.Cluster
	entries []store.Entry // that found is about
	gone    []store.Object
	found   apply.Swept
	err     error
}

// asked is the part of a look that is asked as one account.
type asked struct {
	account string
	entries []store.Entry
	items   []apply.DeepItem
}

// clustersAtOnce is how many clusters are looked at at a time. It bounds memory.
const clustersAtOnce = 128

// beginLook finds what there is to ask, and starts to ask it.
func (d *Daemon) beginLook(ctx context.Context, l *look) {
	l.over = make(chan struct{})
	d.looking[l.cluster] = l
	entries, err := d.entriesFor(l)
	l.deep.done = l.deep.due && l.deep.err == nil && len(l.deep.items) == 0
	if err != nil || len(entries)+len(l.deep.items) == 0 {
		l.err = err
		close(l.over)
		return
	}
	for _, at := range d.beside.places() {
		d.disturbed[at] = true
	}
	d.share(l, entries)
	c, ignored := d.clusters[l.cluster], apply.Ignored(d.watches.ignored)
	go func() {
		d.lookSlots <- struct{}{}
		d.ask(ctx, c, l, ignored)
		<-d.lookSlots
		close(l.over)
		d.wake()
	}()
}

// share sorts what a look is about by who asks.
func (d *Daemon) share(l *look, entries []store.Entry) {
	accounts, of := d.byAccount(entries)
	for _, account := range accounts {
		l.asked = append(l.asked, asked{account: account, entries: of[account]})
		l.entries = append(l.entries, of[account]...)
	}
	items := make(map[store.Object]apply.DeepItem, len(l.deep.items))
	for _, item := range l.deep.items {
		items[item.Entry.Of()] = item
	}
	accounts, of = d.byAccount(l.deep.entries())
	l.deep.items = l.deep.items[:0]
	for _, account := range accounts {
		part := asked{account: account}
		for i := range of[account] {
			part.items = append(part.items, items[of[account][i].Of()])
		}
		l.asked, l.deep.items = append(l.asked, part), append(l.deep.items, part.items...)
	}
}

// ask takes the look. It runs beside the passes.
func (d *Daemon) ask(ctx context.Context, c *cluster, l *look, ignored apply.Ignored) {
	if l.conn, l.err = d.reach(ctx, l.cluster, c); l.err != nil {
		return
	}
	for _, part := range l.asked {
		conn := l.conn.As(part.account)
		switch {
		case len(part.entries) > 0:
			sweep := conn.SweepFew
			if l.sweep {
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

// disturb notes jobs that begin while looks are under way.
func (d *Daemon) disturb(jobs []*job) {
	if len(d.looking) > 0 {
		for _, j := range jobs {
			d.disturbed[j.place()] = true
		}
	}
}

// endedLooks waits for the looks that were just begun, for as long as the
// patience lasts, and returns all that are over, by cluster. What was written
// meanwhile is not judged.
func (d *Daemon) endedLooks(ctx context.Context, begun []*look) []*look {
	timer := time.NewTimer(d.Patience)
	defer timer.Stop()
	late := false
	for _, l := range begun {
		if late {
			break
		}
		select {
		case <-l.over:
		case <-timer.C:
			late = true
		case <-ctx.Done():
			late = true
		}
	}
	var done []*look
	for _, name := range slices.Sorted(maps.Keys(d.looking)) {
		l := d.looking[name]
		select {
		case <-l.over:
		default:
			continue
		}
		delete(d.looking, name)
		d.lookAgain(forget(&l.found, l.entries, d.disturbed))
		forget(&l.deep.found, l.deep.entries(), d.disturbed)
		done = append(done, l)
	}
	if len(d.looking) == 0 {
		clear(d.disturbed)
	}
	return done
}

// forget takes what was found on disturbed places for not looked at, and returns
// what differs there.
func forget(found *apply.Swept, entries []store.Entry, disturbed map[rollout.Place]bool) (forgotten []apply.Drift) {
	if len(disturbed) == 0 {
		return nil
	}
	found.Drifts = slices.DeleteFunc(found.Drifts, func(drift apply.Drift) bool {
		if !disturbed[drift.Entry.Place()] {
			return false
		}
		forgotten = append(forgotten, drift)
		return true
	})
	for i := range found.Looked {
		if disturbed[entries[i].Place()] {
			found.Looked[i] = false
		}
	}
	return forgotten
}

// lookAgain makes suspects of what differed while a job may have been writing it.
func (d *Daemon) lookAgain(drifts []apply.Drift) {
	for _, drift := range drifts {
		at := drift.Entry.Place()
		d.park(at, suspect{id: drift.Entry.ID, fingerprint: drift.Fingerprint})
		if d.beside.free(rollout.Action{Unit: at.Unit, Target: at.Target}) {
			d.unpark(at)
		}
	}
}

// park keeps a suspect until the job at its place is recorded.
func (d *Daemon) park(at rollout.Place, s suspect) {
	if d.parked[at] == nil {
		d.parked[at] = map[render.ObjectID]suspect{}
	}
	d.parked[at][s.id] = s
}

// unpark has the suspects of a place looked at.
func (d *Daemon) unpark(at rollout.Place) {
	if len(d.parked[at]) == 0 {
		return
	}
	d.watches.putBack(at.Target.Cluster(), slices.Collect(maps.Values(d.parked[at])))
	delete(d.parked, at)
	d.wake()
}
