// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/store"
)

// watches are the open watches of all clusters, and what they saw since the
// last pass. A watch only wakes: whether there is drift is found by a look at
// the live object, when all that swell wrote itself is known.
type watches struct {
	streams map[string]*streams // by cluster; only the pass uses it
	all     sync.WaitGroup
	// writing are the clusters that jobs are at work in, as a map[string]bool:
	// each from before its first write until all writes are recorded. Meanwhile
	// the inventory says less than what is known.
	writing atomic.Value
	// snapshot is the daemon's, for what runs in the background.
	snapshot atomic.Pointer[render.Snapshot]
	// modes are the daemon's, for whoever runs in the background.
	modes atomic.Pointer[drift.Modes]

	mu         sync.Mutex
	suspects   map[string]map[render.ObjectID]string // by cluster; the fingerprint that was seen
	flooded    map[string]bool                       // more than could be noted
	ended      []endedWatch
	suppressed map[string]map[render.ObjectID]suppression
}

// streams are the watches of one cluster.
type streams struct {
	conn   *apply.Cluster
	cancel map[schema.GroupVersionKind]context.CancelFunc
}

// suspect is an object that may have drifted.
type suspect struct {
	id          render.ObjectID
	fingerprint string // as it was seen
	anyway      bool   // it is looked at whatever its fingerprint was
}

// endedWatch is a watch that does not go on by itself.
type endedWatch struct {
	cluster string
	kind    schema.GroupVersionKind
	conn    *apply.Cluster
	err     error
}

// suppression is an object whose drift is known and left alone.
type suppression struct {
	fingerprint string
	until       time.Time // whatever happens to it; zero: until it looks different
}

// maxSuspects is how many objects of a cluster are noted between two passes.
// More are a reason for a sweep.
const maxSuspects = 20_000

// watchPause is when a kind whose watch was refused is tried again.
const watchPause = 10 * time.Minute

func newWatches() *watches {
	return &watches{streams: map[string]*streams{}, suspects: map[string]map[render.ObjectID]string{}, flooded: map[string]bool{}}
}

// watchKinds starts watching the kinds that a sweep listed, where nobody watches
// them yet, and stops watching those that are not there any more.
func (d *Daemon) watchKinds(ctx context.Context, l *sweep) {
	if !d.Drift.Watch || !l.full || l.failed() {
		return
	}
	s := d.watches.streams[l.cluster]
	if s == nil || s.conn != l.conn {
		d.watches.close(l.cluster)
		s = &streams{conn: l.conn, cancel: map[schema.GroupVersionKind]context.CancelFunc{}}
		d.watches.streams[l.cluster] = s
	}
	for kind, cancel := range s.cancel {
		if _, listed := l.found.Lists[kind]; !listed && l.err == nil {
			cancel()
			delete(s.cancel, kind)
		}
	}
	for kind, since := range l.found.Lists {
		if s.cancel[kind] == nil {
			s.cancel[kind] = d.open(ctx, l.cluster, l.conn, kind, since)
			d.enqueueKind(l.cluster, kind.GroupKind())
		}
	}
}

// open starts one watch.
func (d *Daemon) open(ctx context.Context, cluster string, conn *apply.Cluster, kind schema.GroupVersionKind, since string) context.CancelFunc {
	ctx, cancel := context.WithCancel(ctx)
	d.watches.all.Go(func() {
		err := conn.Watch(ctx, kind, "", since, func(seen apply.Seen) { d.onEvent(cluster, seen) })
		if err == nil {
			return
		}
		w := d.watches
		w.mu.Lock()
		w.ended = append(w.ended, endedWatch{cluster, kind, conn, err})
		w.mu.Unlock()
		d.wake()
	})
	return cancel
}

// close stops the watches of a cluster.
func (w *watches) close(cluster string) {
	if s := w.streams[cluster]; s != nil {
		for _, cancel := range s.cancel {
			cancel()
		}
	}
	delete(w.streams, cluster)
}

// onEvent notes an object that may have drifted, and wakes the daemon. It runs
// in the background.
func (d *Daemon) onEvent(cluster string, seen apply.Seen) {
	d.enqueue(cluster, seen.ID)
	w := d.watches
	if w.isSuppressed(cluster, seen) {
		return
	}
	if writing, _ := w.writing.Load().(map[string]bool); !writing[cluster] { // else a pass sorts out what it wrote itself
		holders, err := d.Store.Holders(cluster, seen.ID)
		if err != nil {
			return // the daemon is about to end; the next one sweeps
		}
		if !slices.ContainsFunc(holders, func(e store.Entry) bool { return apply.Judged(e) && !w.off(e) && seen.Differs(e, w.ignored) }) {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.suspects[cluster] == nil {
		w.suspects[cluster] = map[render.ObjectID]string{}
	}
	if len(w.suspects[cluster]) < maxSuspects {
		w.suspects[cluster][seen.ID] = seen.Fingerprint
	} else {
		w.flooded[cluster] = true
	}
	d.wake()
}

// ignored implements [apply.Ignored].
func (w *watches) ignored(entry store.Entry) []config.IgnoreRule {
	_, rules := policyIn(w.snapshot.Load(), entry.Unit, entry.Target)
	return rules
}

// off says that nobody wants the entry's object looked at.
func (w *watches) off(e store.Entry) bool {
	m := w.modes.Load()
	return m != nil && m.Of(e.Unit, e.Target) == config.DriftOff
}

func (w *watches) isSuppressed(cluster string, seen apply.Seen) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h, ok := w.suppressed[cluster][seen.ID]
	return ok && (h.fingerprint == seen.Fingerprint || time.Now().Before(h.until))
}

// wake has whoever waits between two passes make the next one. It may wake one
// time too often; a pass that finds nothing does no harm.
func (d *Daemon) wake() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// drainSuspects takes what the watches saw since the last time, by cluster.
func (d *Daemon) drainSuspects(r *Record) map[string][]suspect {
	w := d.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.ended {
		s := w.streams[e.cluster]
		if s == nil || s.conn != e.conn {
			continue // not missed any more
		}
		delete(s.cancel, e.kind)
		d.timetable.Ask(e.cluster)
		var refused *apply.Error
		if !errors.Is(e.err, apply.ErrExpired) {
			if !errors.As(e.err, &refused) || refused.Code != http.StatusUnauthorized { // new credentials may be there
				d.timetable.AskAfter(e.cluster, r.At.Add(watchPause))
			}
			r.fail(fmt.Errorf("cluster %s: %w", e.cluster, e.err))
		}
	}
	w.ended = nil
	for cluster := range w.flooded {
		d.timetable.Ask(cluster)
	}
	clear(w.flooded)
	found := map[string][]suspect{}
	for cluster, seen := range w.suspects {
		for _, id := range slices.SortedFunc(maps.Keys(seen), render.CompareApplyOrder) {
			found[cluster] = append(found[cluster], suspect{id: id, fingerprint: seen[id]})
		}
	}
	clear(w.suspects)
	return found
}

// requeue notes suspects once more that could not be looked at yet.
func (w *watches) requeue(cluster string, suspects []suspect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range suspects {
		if w.suspects[cluster] == nil {
			w.suspects[cluster] = map[render.ObjectID]string{}
		}
		if _, seen := w.suspects[cluster][s.id]; !seen {
			w.suspects[cluster][s.id] = s.fingerprint
		}
	}
}

// requestSweep has clusters swept where objects of kinds were applied that nobody
// watches yet. What is asked about as a tenant's account is not watched: an
// account may mostly watch nothing but its own namespaces.
func (d *Daemon) requestSweep(confirmed []store.Entry) {
	if !d.Drift.Watch {
		return
	}
	for i := range confirmed {
		e := &confirmed[i]
		cluster := e.Target.Cluster()
		if d.timetable.IsAsked(cluster) || e.Digest == "" || d.watches.has(cluster, e.ID) || d.off(*e) || d.writers(e.Unit, e.Target)[0] != "" {
			continue
		}
		d.timetable.Ask(cluster)
	}
}

// has says whether a kind is watched, in whatever version.
func (w *watches) has(cluster string, id render.ObjectID) bool {
	if s := w.streams[cluster]; s != nil {
		for kind := range s.cancel {
			if kind.Kind == id.Kind && kind.Group == id.Group {
				return true
			}
		}
	}
	return false
}

// suppress tells the watches which objects are left as they are.
func (d *Daemon) suppress(now time.Time) {
	if !d.Drift.Watch {
		return
	}
	all := map[string]map[render.ObjectID]suppression{}
	for cluster, objects := range d.ledger.Suppressed(now) {
		all[cluster] = make(map[render.ObjectID]suppression, len(objects))
		for id, s := range objects {
			all[cluster][id] = suppression{s.Fingerprint, time.Now().Add(s.For)}
		}
	}
	d.watches.mu.Lock()
	defer d.watches.mu.Unlock()
	d.watches.suppressed = all
}

// endWatches waits for the watches to stop after ctx has ended, so that the
// store can be closed after it.
func (d *Daemon) endWatches() {
	d.watches.all.Wait()
	d.informer.all.Wait()
}
