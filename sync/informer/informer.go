// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package informer keeps watches open on the objects that swell applied, for drift
// and for health. Its events never decide: they make an object a suspect, which a
// sweep looks at, or a check of a place's health due. What cannot be watched is
// looked at in intervals. It reads no object, and of what it watches it gets the
// metadata only.
//
// A pass calls the exported functions; the streams run in the background. All that
// both know of is in [Informer], under one lock, which is never held while a request
// is under way or somebody is asked.
package informer

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render/object"
)

// Connection is a connection to a cluster, of which the informer only needs watches. Two
// values are compared to tell a new connection from the one before.
type Connection interface {
	// Watch follows a stream as an account of the cluster; the empty one is swell's own.
	// It returns nil when ctx ends, and an error when the stream does not go on by
	// itself.
	Watch(ctx context.Context, account string, s Stream) error
}

// Stream is what to watch.
type Stream struct {
	Kind      schema.GroupVersionKind
	Namespace string // empty: all of them
	// Since is the resourceVersion behind which the stream begins. Where it is empty,
	// the stream begins with what is now, and again where it cannot go on from where it
	// was.
	Since string
	// Began is called each time that a stream without Since begins: what happened
	// before is then unknown.
	Began func()
	// See is called for each event.
	See func(Seen)
}

// Seen is one change of an object. It must not be kept beyond the function that it was
// handed to.
type Seen struct {
	ID object.ID
	// Fingerprint is that of the object after the change; empty when it is gone.
	Fingerprint string
	// MayDiffer says whether the object may not be as some unit applied it.
	MayDiffer func() bool
	// MayAil says whether the object's health may be another one now.
	MayAil func() bool
}

// Informer is the watches of all clusters, and what they saw since the last pass.
type Informer struct {
	wake    func()
	streams sync.WaitGroup

	mu      sync.Mutex // guards all that follows
	watches map[key]*watch
	busy    map[string]bool // clusters, see Busy

	// For drift.
	suspects   map[string]map[object.ID]string // by cluster; the fingerprint that was seen
	flooded    map[string]bool                 // more than could be noted
	suppressed map[string]map[object.ID]Suppression
	overlooked map[string]map[object.ID]string // what suppressed objects looked like last

	// For the health of what nothing waits for.
	stirred  map[string]map[object.ID]bool // by cluster; what drift watches saw
	stirring bool                          // a wake-up for these is on its way

	// For health.
	subscriptions map[object.UnitTarget]subscription
	places        map[clusterObject]object.UnitTarget // of the subscriptions
	queued        map[object.UnitTarget]bool          // where something happened
	waking        bool                                // a wake-up for these is on its way
	refused       map[key]time.Time                   // when to try again
}

// clusterObject is one object of a cluster.
type clusterObject struct {
	cluster string
	id      object.ID
}

// key is what one watch is about.
type key struct {
	cluster, account string
	kind             schema.GroupKind
	namespace        string // empty: all, and always so for swell's own account
}

// watch is one watch that is open, or that has ended and nobody has asked why yet.
type watch struct {
	conn    Connection
	version string // of the kind
	cancel  context.CancelFunc
	// drift: it goes on from a sweep, and serves health too. Else it began by itself
	// and serves health only.
	drift bool
	used  time.Time // when it was last of use, where it is for health
	began bool
	err   error // why it is over
}

// New makes an Informer. wake is told when there is something for the next pass; it
// may be told once too often. It is called in the background.
func New(wake func()) *Informer {
	return &Informer{
		wake: wake, watches: map[key]*watch{},
		suspects: map[string]map[object.ID]string{}, flooded: map[string]bool{},
		overlooked: map[string]map[object.ID]string{}, stirred: map[string]map[object.ID]bool{},
		subscriptions: map[object.UnitTarget]subscription{}, places: map[clusterObject]object.UnitTarget{}, queued: map[object.UnitTarget]bool{}, refused: map[key]time.Time{},
	}
}

// Wait waits for the watches to stop after their contexts have ended.
func (in *Informer) Wait() { in.streams.Wait() }

// Has says whether a kind is watched for drift, in whatever version.
func (in *Informer) Has(cluster string, id object.ID) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	w := in.watches[key{cluster: cluster, kind: kindOf(id)}]
	return w != nil && w.drift
}

func kindOf(id object.ID) schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// openLocked starts a watch: behind since, or with what is now.
func (in *Informer) openLocked(ctx context.Context, k key, w *watch, since string) {
	ctx, w.cancel = context.WithCancel(ctx)
	in.watches[k] = w
	in.streams.Go(func() {
		defer w.cancel()
		err := w.conn.Watch(ctx, k.account, Stream{
			Kind: k.kind.WithVersion(w.version), Namespace: k.namespace, Since: since,
			Began: func() { in.began(k, w) },
			See:   func(seen Seen) { in.see(k.cluster, w.drift, seen) },
		})
		if err != nil {
			in.ended(w, err)
		}
	})
}

func (in *Informer) closeLocked(k key) {
	in.watches[k].cancel()
	delete(in.watches, k)
}

// began notes that a watch for health has begun: what happened before is unknown.
func (in *Informer) began(k key, w *watch) {
	in.mu.Lock()
	defer in.mu.Unlock()
	w.began = true
	in.enqueueKindLocked(k.cluster, k.kind)
}

// ended notes why a watch does not go on by itself. The next pass asks.
func (in *Informer) ended(w *watch, err error) {
	in.mu.Lock()
	w.err = err
	in.mu.Unlock()
	if w.drift {
		in.wake()
	}
}

// see takes in one event.
func (in *Informer) see(cluster string, drift bool, seen Seen) {
	in.mu.Lock()
	if at, waits := in.places[clusterObject{cluster, seen.ID}]; waits {
		in.enqueueLocked(at)
	}
	ignored := !drift || in.overlooksLocked(cluster, seen)
	busy := in.busy[cluster]
	in.mu.Unlock()
	if drift && seen.MayAil() {
		in.stir(cluster, seen.ID)
	}
	// Where jobs are at work a pass sorts out what they wrote themselves.
	if ignored || !busy && !seen.MayDiffer() {
		return
	}
	in.mu.Lock()
	in.suspectLocked(cluster, Suspect{ID: seen.ID, Fingerprint: seen.Fingerprint})
	in.mu.Unlock()
	in.wake()
}
