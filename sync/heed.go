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
	"github.com/swell-sh/swell/sync/rollout"
)

// heed listens to what happens to the objects of places where something is
// waited for, so that nobody has to ask again and again. Like a watch for drift,
// it only wakes: how well an object is, a look at it says. What is not heard, for
// whatever reason, is looked at in intervals as before, see [rollout.Notices].
type heed struct {
	// All but what mu guards is used by the pass only.
	of      map[rollout.Place]heeded
	ears    map[ear]*listening
	refused map[ear]time.Time // when to try again
	all     sync.WaitGroup

	mu      sync.Mutex
	places  map[claim]rollout.Place // by object
	stirred map[rollout.Place]bool
	waking  bool // a wake-up is on its way
}

// ear is what one watch is about.
type ear struct {
	cluster, account string
	kind             schema.GroupVersionKind
	namespace        string // empty: all, and always so for swell's own account
}

// heeded is what is listened to for a place.
type heeded struct {
	objects []claim
	ears    []ear
	looked  time.Time // when a job last began there
}

// listening is one watch.
type listening struct {
	conn   *apply.Cluster
	cancel context.CancelFunc
	used   time.Time // when it was last of use
	// began and err are guarded by heed.mu; err says why it is over.
	began bool
	err   error
}

const (
	// earsAtOnce bounds the watches of a cluster; they share one connection with
	// all requests, and servers allow 100 streams or more on it.
	earsAtOnce = 32
	// earKept is how long a watch stays that is of no use: the next wave is
	// often about the same kinds.
	earKept = time.Minute
	// deafFor is when a watch that ended with an error is tried again.
	deafFor = time.Minute
	// stirPause is the time between two looks at a place because of what happens
	// there, and wakePause that between two wake-ups.
	stirPause = 250 * time.Millisecond
	wakePause = 25 * time.Millisecond
)

func newHeed() *heed {
	return &heed{of: map[rollout.Place]heeded{}, ears: map[ear]*listening{}, refused: map[ear]time.Time{},
		places: map[claim]rollout.Place{}, stirred: map[rollout.Place]bool{}}
}

// attend notes what a job is about that is about to begin, and that what was
// heard until now is old.
func (d *Daemon) attend(j *job, now time.Time) {
	at := j.place()
	delete(d.state.Notices.Stirred, at)
	if j.bundle == nil {
		return
	}
	h := heeded{looked: now}
	for _, o := range j.work.Objects {
		if !j.work.Asks(o) {
			continue
		}
		e := ear{cluster: j.cluster, account: j.account, kind: schema.GroupVersionKind{Group: o.ID.Group, Version: o.Version, Kind: o.ID.Kind}}
		if j.account != "" { // whose rights mostly end with the namespace
			e.namespace = o.ID.Namespace
		}
		if !slices.Contains(h.ears, e) {
			h.ears = append(h.ears, e)
		}
		h.objects = append(h.objects, claim{j.cluster, o.ID})
	}
	w := d.heed
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropLocked(at)
	w.of[at] = h
	for _, object := range h.objects {
		w.places[object] = at
	}
}

func (w *heed) dropLocked(at rollout.Place) {
	for _, object := range w.of[at].objects {
		if w.places[object] == at {
			delete(w.places, object)
		}
	}
	delete(w.of, at)
}

// hearken takes in what was heard since the last time.
func (d *Daemon) hearken() {
	w := d.heed
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waking = false
	for at := range w.stirred {
		if _, known := d.state.Notices.Stirred[at]; !known {
			d.state.Notices.Stirred[at] = w.of[at].looked.Add(stirPause)
		}
	}
	clear(w.stirred)
}

// listen has the watches that the open places of a plan need, and only those.
func (d *Daemon) listen(ctx context.Context, r *Record, open []rollout.Place) {
	w := d.heed
	w.forget(d.state, open)
	w.sort(r)
	used := map[string]int{}
	for e := range w.ears {
		used[e.cluster]++
	}
	for at, h := range w.of {
		heard := len(h.ears) > 0
		for _, e := range h.ears {
			heard = d.hears(ctx, e, used, r.At) && heard
		}
		if heard {
			d.state.Notices.Heard[at] = true
		} else {
			delete(d.state.Notices.Heard, at)
		}
	}
	for e, l := range w.ears {
		if r.At.Sub(l.used) > earKept {
			l.cancel()
			delete(w.ears, e)
		}
	}
}

// forget drops the places that nothing is waited for at any more.
func (w *heed) forget(state *rollout.State, open []rollout.Place) {
	if len(w.of) == 0 {
		return
	}
	keep := make(map[rollout.Place]bool, len(open))
	for _, at := range open {
		keep[at] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.of {
		if !keep[at] {
			w.dropLocked(at)
			delete(state.Notices.Stirred, at)
			delete(state.Notices.Heard, at)
		}
	}
}

// sort takes away the watches that are over. What refuses to be watched is no
// failure: it is looked at in intervals.
func (w *heed) sort(r *Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e, l := range w.ears {
		if l.err != nil {
			delete(w.ears, e)
			w.refused[e] = r.At.Add(deafFor)
		}
	}
	maps.DeleteFunc(w.refused, func(_ ear, until time.Time) bool { return r.At.After(until) })
}

// hears says whether somebody listens, and sees to it that somebody will. used
// are the watches by cluster.
func (d *Daemon) hears(ctx context.Context, e ear, used map[string]int, now time.Time) bool {
	w := d.heed
	if e.account == "" && d.watches.has(e.cluster, render.ObjectID{Group: e.kind.Group, Kind: e.kind.Kind}) {
		return true
	}
	c := d.clusters[e.cluster]
	if c == nil {
		return false
	}
	conn := c.linked()
	l := w.ears[e]
	if l != nil && l.conn != conn {
		l.cancel()
		delete(w.ears, e)
		used[e.cluster]--
		l = nil
	}
	if l != nil {
		l.used = now
		w.mu.Lock()
		defer w.mu.Unlock()
		return l.began && l.err == nil
	}
	if _, refused := w.refused[e]; refused || conn == nil || used[e.cluster] >= earsAtOnce {
		return false
	}
	used[e.cluster]++
	w.ears[e] = d.follows(ctx, e, conn, now)
	return false
}

// follows starts one watch.
func (d *Daemon) follows(ctx context.Context, e ear, conn *apply.Cluster, now time.Time) *listening {
	ctx, cancel := context.WithCancel(ctx)
	l := &listening{conn: conn, cancel: cancel, used: now}
	w := d.heed
	w.all.Go(func() {
		defer cancel()
		err := conn.As(e.account).Follow(ctx, e.kind, e.namespace, func() {
			w.mu.Lock()
			l.began = true
			w.mu.Unlock()
			d.stirAll(e.cluster, e.kind.GroupKind())
		}, func(seen apply.Seen) { d.stir(e.cluster, seen.ID) })
		if err != nil {
			w.mu.Lock()
			l.err = err
			w.mu.Unlock()
		}
	})
	return l
}

// stir notes that something happened to an object, and wakes the daemon if that
// is waited for. It runs beside the passes.
func (d *Daemon) stir(cluster string, id render.ObjectID) {
	w := d.heed
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, waits := w.places[claim{cluster, id}]; waits {
		d.stirLocked(at)
	}
}

// stirAll notes that something may have happened to any object of a kind.
func (d *Daemon) stirAll(cluster string, kind schema.GroupKind) {
	w := d.heed
	w.mu.Lock()
	defer w.mu.Unlock()
	for object, at := range w.places {
		if object.cluster == cluster && object.id.Group == kind.Group && object.id.Kind == kind.Kind {
			d.stirLocked(at)
		}
	}
}

func (d *Daemon) stirLocked(at rollout.Place) {
	w := d.heed
	w.stirred[at] = true
	if !w.waking {
		w.waking = true
		time.AfterFunc(wakePause, d.wake)
	}
}
