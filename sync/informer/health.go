// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
)

const (
	// watchesAtOnce bounds the watches for health of a cluster; they share one
	// connection with all requests, and servers allow 100 streams or more on it.
	watchesAtOnce = 32
	// watchKept is how long a watch for health stays that is of no use: the next
	// wave is often about the same kinds.
	watchKept = time.Minute
	// watchRetry is when a watch for health that ended with an error is tried again.
	watchRetry = time.Minute
	// wakePause is the time between two wake-ups for the health of places.
	wakePause = 25 * time.Millisecond
)

// subscription is what is watched for a place.
type subscription struct {
	objects []clusterObject
	keys    map[key]string // to the version of the kind
	begun   time.Time
}

// Subscribe notes the objects whose health a job at a place is about. The job begins
// now: events from before it count no more.
func (in *Informer) Subscribe(at object.UnitTarget, now time.Time, cluster, account string, objects []*object.Object) {
	s := subscription{begun: now, keys: map[key]string{}}
	for _, o := range objects {
		k := key{cluster: cluster, account: account, kind: kindOf(o.ID)}
		if account != "" { // whose rights mostly end with the namespace
			k.namespace = o.ID.Namespace
		}
		s.keys[k] = o.Version
		s.objects = append(s.objects, clusterObject{cluster, o.ID})
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.unsubscribeLocked(at)
	in.subscriptions[at] = s
	for _, o := range s.objects {
		in.places[o] = at
	}
}

func (in *Informer) unsubscribeLocked(at object.UnitTarget) {
	for _, o := range in.subscriptions[at].objects {
		if in.places[o] == at {
			delete(in.places, o)
		}
	}
	delete(in.subscriptions, at)
	delete(in.queued, at)
}

// DrainDue takes the places where something happened since the last time, and when
// the last job began there.
func (in *Informer) DrainDue() map[object.UnitTarget]time.Time {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.waking = false
	due := make(map[object.UnitTarget]time.Time, len(in.queued))
	for at := range in.queued {
		due[at] = in.subscriptions[at].begun
	}
	clear(in.queued)
	return due
}

// Sync has the watches for health that the open places need, and only those. It
// returns the places that are subscribed to, each with whether all of it is watched.
// conn is the connection to a cluster; nil where there is none.
func (in *Informer) Sync(ctx context.Context, now time.Time, open []object.UnitTarget, conn func(cluster string) Connection) map[object.UnitTarget]bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.keepLocked(open)
	used := in.dropEndedLocked(now)
	watched := make(map[object.UnitTarget]bool, len(in.subscriptions))
	for at, s := range in.subscriptions {
		watched[at] = len(s.keys) > 0
		for k, version := range s.keys {
			watched[at] = in.ensureLocked(ctx, k, version, conn(k.cluster), used, now) && watched[at]
		}
	}
	for k, w := range in.watches {
		if !w.drift && now.Sub(w.used) > watchKept {
			in.closeLocked(k)
		}
	}
	return watched
}

// keepLocked drops the places that nothing is waited for at any more.
func (in *Informer) keepLocked(open []object.UnitTarget) {
	keep := make(map[object.UnitTarget]bool, len(open))
	for _, at := range open {
		keep[at] = true
	}
	for at := range in.subscriptions {
		if !keep[at] {
			in.unsubscribeLocked(at)
		}
	}
}

// dropEndedLocked takes away the watches for health that are over, and counts the
// others by cluster. What refuses to be watched is no failure: it is looked at in
// intervals.
func (in *Informer) dropEndedLocked(now time.Time) map[string]int {
	maps.DeleteFunc(in.refused, func(_ key, until time.Time) bool { return now.After(until) })
	used := map[string]int{}
	for k, w := range in.watches {
		switch {
		case w.drift:
		case w.err != nil:
			delete(in.watches, k)
			in.refused[k] = now.Add(watchRetry)
		default:
			used[k.cluster]++
		}
	}
	return used
}

// ensureLocked says whether the key is watched, and starts a watch where it is not.
// used are the watches for health by cluster.
func (in *Informer) ensureLocked(ctx context.Context, k key, version string, conn Connection, used map[string]int, now time.Time) bool {
	w := in.watches[k]
	switch {
	case w == nil:
	case w.drift:
		return true
	case w.conn == conn:
		w.used = now
		return w.began
	default: // of a connection that was given up
		in.closeLocked(k)
		used[k.cluster]--
	}
	if _, refused := in.refused[k]; refused || conn == nil || used[k.cluster] >= watchesAtOnce {
		return false
	}
	used[k.cluster]++
	in.openLocked(ctx, k, &watch{conn: conn, version: version, used: now}, "")
	return false
}

// enqueueKindLocked notes that something may have happened to any object of a kind.
func (in *Informer) enqueueKindLocked(cluster string, kind schema.GroupKind) {
	for o, at := range in.places {
		if o.cluster == cluster && kindOf(o.id) == kind {
			in.enqueueLocked(at)
		}
	}
}

// enqueueLocked notes that something happened at a place, and wakes whoever waits.
func (in *Informer) enqueueLocked(at object.UnitTarget) {
	in.queued[at] = true
	if !in.waking {
		in.waking = true
		time.AfterFunc(wakePause, in.wake)
	}
}

// Shift moves the times that passes named, after the clock was set.
func (in *Informer) Shift(step time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for target, s := range in.subscriptions {
		s.begun = s.begun.Add(step)
		in.subscriptions[target] = s
	}
	for k, until := range in.refused {
		in.refused[k] = until.Add(step)
	}
	for _, w := range in.watches {
		w.used = w.used.Add(step)
	}
}
