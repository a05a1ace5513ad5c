// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
)

// informer watches the objects of places whose health a release waits for, so that
// they are not polled. Its events never decide: they make a check due. A place that
// cannot be watched, for whatever reason, is checked in intervals, see
// [rollout.Notices].
type informer struct {
	// All but what mu guards is used by the pass only.
	subscriptions map[rollout.Place]subscription
	watches       map[watchKey]*healthWatch
	refused       map[watchKey]time.Time // when to try again
	all           sync.WaitGroup

	mu     sync.Mutex
	places map[clusterObject]rollout.Place // by object
	queued map[rollout.Place]bool
	waking bool // a wake-up is on its way
}

// watchKey is what one watch is about.
type watchKey struct {
	cluster, account string
	kind             schema.GroupVersionKind
	namespace        string // empty: all, and always so for swell's own account
}

// subscription is what is watched for a place.
type subscription struct {
	objects []clusterObject
	keys    []watchKey
	begun   time.Time // when a job last began there
}

// healthWatch is one watch.
type healthWatch struct {
	conn   *apply.Cluster
	cancel context.CancelFunc
	used   time.Time // when it was last of use
	// began and err are guarded by informer.mu; err says why it is over.
	began bool
	err   error
}

const (
	// watchesAtOnce bounds the watches of a cluster; they share one connection with
	// all requests, and servers allow 100 streams or more on it.
	watchesAtOnce = 32
	// watchKept is how long a watch stays that is of no use: the next wave is
	// often about the same kinds.
	watchKept = time.Minute
	// watchRetry is when a watch that ended with an error is tried again.
	watchRetry = time.Minute
	// requeuePause is the time between two looks at a place because of what happens
	// there, and wakePause that between two wake-ups.
	requeuePause = 250 * time.Millisecond
	wakePause    = 25 * time.Millisecond
)

func newInformer() *informer {
	return &informer{subscriptions: map[rollout.Place]subscription{}, watches: map[watchKey]*healthWatch{}, refused: map[watchKey]time.Time{},
		places: map[clusterObject]rollout.Place{}, queued: map[rollout.Place]bool{}}
}

// subscribe notes what a job is about that is about to begin. Events from
// before it count no more.
func (d *Daemon) subscribe(j *executor.Job, now time.Time) {
	at := j.Place()
	delete(d.state.Notices.RequeueAt, at)
	if j.Bundle == nil {
		return
	}
	h := subscription{begun: now}
	for _, o := range j.Work.Objects {
		if !j.Work.Asks(o) {
			continue
		}
		e := watchKey{cluster: j.Cluster, account: j.Account, kind: schema.GroupVersionKind{Group: o.ID.Group, Version: o.Version, Kind: o.ID.Kind}}
		if j.Account != "" { // whose rights mostly end with the namespace
			e.namespace = o.ID.Namespace
		}
		if !slices.Contains(h.keys, e) {
			h.keys = append(h.keys, e)
		}
		h.objects = append(h.objects, clusterObject{j.Cluster, o.ID})
	}
	w := d.informer
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropLocked(at)
	w.subscriptions[at] = h
	for _, object := range h.objects {
		w.places[object] = at
	}
}

func (w *informer) dropLocked(at rollout.Place) {
	for _, object := range w.subscriptions[at].objects {
		if w.places[object] == at {
			delete(w.places, object)
		}
	}
	delete(w.subscriptions, at)
}

// takeEvents makes checks due for the events since the last time.
func (p *pass) takeEvents() error {
	w := p.informer
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waking = false
	for at := range w.queued {
		if _, known := p.state.Notices.RequeueAt[at]; !known {
			p.state.Notices.RequeueAt[at] = w.subscriptions[at].begun.Add(requeuePause)
		}
	}
	clear(w.queued)
	return nil
}

// syncWatches has the watches that the open places of a plan need, and only those.
func (d *Daemon) syncWatches(ctx context.Context, r *Record, open []rollout.Place) {
	w := d.informer
	w.unsubscribe(d.state, open)
	w.dropEnded(r)
	used := map[string]int{}
	for e := range w.watches {
		used[e.cluster]++
	}
	for at, h := range w.subscriptions {
		watched := len(h.keys) > 0
		for _, e := range h.keys {
			watched = d.ensureWatch(ctx, e, used, r.At) && watched
		}
		if watched {
			d.state.Notices.Watched[at] = true
		} else {
			delete(d.state.Notices.Watched, at)
		}
	}
	for e, l := range w.watches {
		if r.At.Sub(l.used) > watchKept {
			l.cancel()
			delete(w.watches, e)
		}
	}
}

// unsubscribe drops the places that nothing is waited for at any more.
func (w *informer) unsubscribe(state *rollout.State, open []rollout.Place) {
	if len(w.subscriptions) == 0 {
		return
	}
	keep := make(map[rollout.Place]bool, len(open))
	for _, at := range open {
		keep[at] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.subscriptions {
		if !keep[at] {
			w.dropLocked(at)
			delete(state.Notices.RequeueAt, at)
			delete(state.Notices.Watched, at)
		}
	}
}

// dropEnded takes away the watches that are over. What refuses to be watched is no
// failure: it is looked at in intervals.
func (w *informer) dropEnded(r *Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, l := range w.watches {
		if l.err != nil {
			delete(w.watches, e)
			w.refused[e] = r.At.Add(watchRetry)
		}
	}
	maps.DeleteFunc(w.refused, func(_ watchKey, until time.Time) bool { return r.At.After(until) })
}

// ensureWatch says whether the key is watched, and starts a watch where it is not. used
// are the watches by cluster.
func (d *Daemon) ensureWatch(ctx context.Context, e watchKey, used map[string]int, now time.Time) bool {
	w := d.informer
	if e.account == "" && d.watches.has(e.cluster, render.ObjectID{Group: e.kind.Group, Kind: e.kind.Kind}) {
		return true
	}
	c := d.fleet.Of(e.cluster)
	if c == nil {
		return false
	}
	conn := c.Linked()
	l := w.watches[e]
	if l != nil && l.conn != conn {
		l.cancel()
		delete(w.watches, e)
		used[e.cluster]--
		l = nil
	}
	if l != nil {
		l.used = now
		w.mu.Lock()
		defer w.mu.Unlock()
		return l.began && l.err == nil
	}
	if _, refused := w.refused[e]; refused || conn == nil || used[e.cluster] >= watchesAtOnce {
		return false
	}
	used[e.cluster]++
	w.watches[e] = d.startWatch(ctx, e, conn, now)
	return false
}

// startWatch starts one watch.
func (d *Daemon) startWatch(ctx context.Context, e watchKey, conn *apply.Cluster, now time.Time) *healthWatch {
	ctx, cancel := context.WithCancel(ctx)
	l := &healthWatch{conn: conn, cancel: cancel, used: now}
	w := d.informer
	w.all.Go(func() {
		defer cancel()
		err := conn.As(e.account).Follow(ctx, e.kind, e.namespace, func() {
			w.mu.Lock()
			l.began = true
			w.mu.Unlock()
			d.enqueueKind(e.cluster, e.kind.GroupKind())
		}, func(seen apply.Seen) { d.enqueue(e.cluster, seen.ID) })
		if err != nil {
			w.mu.Lock()
			l.err = err
			w.mu.Unlock()
		}
	})
	return l
}

// enqueue notes that something happened to an object, and wakes the daemon if that
// is waited for. It runs in the background.
func (d *Daemon) enqueue(cluster string, id render.ObjectID) {
	w := d.informer
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, waits := w.places[clusterObject{cluster, id}]; waits {
		d.enqueueLocked(at)
	}
}

// enqueueKind notes that something may have happened to any object of a kind.
func (d *Daemon) enqueueKind(cluster string, kind schema.GroupKind) {
	w := d.informer
	w.mu.Lock()
	defer w.mu.Unlock()
	for object, at := range w.places {
		if object.cluster == cluster && object.id.Group == kind.Group && object.id.Kind == kind.Kind {
			d.enqueueLocked(at)
		}
	}
}

func (d *Daemon) enqueueLocked(at rollout.Place) {
	w := d.informer
	w.queued[at] = true
	if !w.waking {
		w.waking = true
		time.AfterFunc(wakePause, d.wake)
	}
}
