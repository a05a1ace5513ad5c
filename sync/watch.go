// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/informer"
	"github.com/swell-sh/swell/sync/store"
)

const (
	// watchPause is when a kind whose watch was refused is tried again.
	watchPause = 10 * time.Minute
	// requeuePause is the time between two looks at a place because of what happens
	// there.
	requeuePause = 250 * time.Millisecond
)

// policies are what the last commit says of drift, for whatever runs in the
// background. They are replaced as a whole and never changed.
type policies struct {
	snapshot *render.Snapshot
	modes    drift.Modes
}

// ignored implements [apply.Ignored].
func (d *Daemon) ignored(entry store.Entry) []config.IgnoreRule {
	p := d.policies.Load()
	if p == nil {
		return nil
	}
	_, rules := policyIn(p.snapshot, entry.Unit, entry.Target)
	return rules
}

// mayDiffer says whether an object that a watch saw is not as some unit applied it.
// It runs in the background.
func (d *Daemon) mayDiffer(cluster string, seen apply.Seen) bool {
	holders, err := d.Store.Holders(cluster, seen.ID)
	if err != nil {
		return false // the daemon is about to end; the next one sweeps
	}
	p := d.policies.Load()
	return slices.ContainsFunc(holders, func(e store.Entry) bool {
		isOff := p != nil && p.modes.Of(e.Unit, e.Target) == config.DriftOff
		return apply.Judged(e) && !isOff && seen.Differs(e, d.ignored)
	})
}

// mayAil says whether a change that a watch saw may be about health. It runs in the
// background.
func (d *Daemon) mayAil(seen apply.Seen) bool {
	var rules render.HealthRules
	if p := d.policies.Load(); p != nil {
		rules = p.snapshot.HealthRules
	}
	return !seen.Gone && mayAil(seen.ID, rules)
}

// wake has whoever waits between two passes make the next one. It may wake one
// time too often; a pass that finds nothing does no harm.
func (d *Daemon) wake() {
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// watchKinds watches the kinds that a sweep listed.
func (d *Daemon) watchKinds(ctx context.Context, l *sweep) {
	if d.Drift.Watch && l.full && !l.failed() {
		d.informer.Listed(ctx, l.cluster, watched{d, l.cluster, l.conn}, l.found.Lists, l.err == nil)
	}
}

// drainSuspects takes what the watches saw since the last time, by cluster, and asks
// for sweeps where they could not see all.
func (d *Daemon) drainSuspects(r *Record) map[string][]informer.Suspect {
	found := d.informer.Drain()
	for _, e := range found.Ended {
		d.sweeps.timetable.Ask(e.Cluster)
		if errors.Is(e.Err, apply.ErrExpired) {
			continue
		}
		var refused *apply.Error
		if !errors.As(e.Err, &refused) || refused.Code != http.StatusUnauthorized { // new credentials may be there
			d.sweeps.timetable.AskAfter(e.Cluster, r.At.Add(watchPause))
		}
		r.went(watching(e.Cluster), fmt.Errorf("cluster %s: %w", e.Cluster, e.Err))
	}
	for _, cluster := range found.Flooded {
		d.sweeps.timetable.Ask(cluster)
	}
	return found.Suspects
}

// watching is what errors are about that are over once a cluster was swept as a whole.
func watching(cluster string) string { return "watching " + cluster }

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
		if d.sweeps.timetable.IsAsked(cluster) || e.Digest == "" || d.informer.Has(cluster, e.ID) || d.off(*e) || d.writers(e.Unit, e.Target)[0] != "" {
			continue
		}
		d.sweeps.timetable.Ask(cluster)
	}
}

// suppress tells the watches which objects are left as they are.
func (d *Daemon) suppress(now time.Time) {
	if !d.Drift.Watch {
		return
	}
	all := map[string]map[object.ID]informer.Suppression{}
	for cluster, objects := range d.sweeps.ledger.Suppressed(now) {
		all[cluster] = make(map[object.ID]informer.Suppression, len(objects))
		for id, s := range objects {
			all[cluster][id] = informer.Suppression{Fingerprint: s.Fingerprint, Until: time.Now().Add(s.For)}
		}
	}
	d.informer.Suppress(all)
}

// subscribe notes what a job is about that is about to begin.
func (d *Daemon) subscribe(j *executor.Job, now time.Time) {
	at := j.Place()
	d.state.Begins(at)
	if j.Bundle == nil {
		return
	}
	objects := slices.DeleteFunc(slices.Clone(j.Work.Objects), func(o *object.Object) bool { return !j.Work.Asks(o) })
	d.informer.Subscribe(at, now, j.Cluster, j.Account, objects)
}

// takeEvents makes checks due where something happened since the last time.
func (p *pass) takeEvents() error {
	for at, begun := range p.informer.DrainDue() {
		p.state.Requeue(at, begun.Add(requeuePause))
	}
	return p.doubtStirred()
}

// syncWatches has the watches that the open places of a plan need, and only those.
func (d *Daemon) syncWatches(ctx context.Context, r *Record, open []object.UnitTarget) {
	d.state.Watch(d.informer.Sync(ctx, r.At, open, d.linked))
}

// linked is the connection to a cluster, nil where there is none.
func (d *Daemon) linked(cluster string) informer.Connection {
	c := d.fleet.Of(cluster)
	if c == nil {
		return nil
	}
	conn := c.Linked()
	if conn == nil {
		return nil // and not an interface that holds nil
	}
	return watched{d, cluster, conn}
}

// watched is a connection to a cluster as the informer uses it.
type watched struct {
	daemon  *Daemon
	cluster string
	conn    *apply.Cluster
}

// Watch implements [informer.Connection].
func (w watched) Watch(ctx context.Context, account string, s informer.Stream) error {
	return w.conn.As(account).Watch(ctx, apply.Watch{
		Kind: s.Kind, Namespace: s.Namespace, Since: s.Since, Began: s.Began,
		See: func(seen apply.Seen) {
			mayDiffer := func() bool { return w.daemon.mayDiffer(w.cluster, seen) }
			mayAil := func() bool { return w.daemon.mayAil(seen) }
			s.See(informer.Seen{ID: seen.ID, Fingerprint: seen.Fingerprint, MayDiffer: mayDiffer, MayAil: mayAil})
		},
	})
}
