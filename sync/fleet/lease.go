// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/sync/apply"
)

// Each cluster has one Lease for each monorepo. Only its holder may write there: a
// second daemon, with another state or with a copy of the same, does nothing in the
// cluster until the Lease runs out or is given back.
//
// The holder is HOST/STATE/PROCESS, see [store.Holder]. A daemon that starts again
// on the same file takes over from its predecessor at once, because the file's lock
// proves that it is gone. For every other holder, a daemon waits until it has seen no
// renewal for as long as the Lease lasts; clocks of two machines are never compared.
// A holder stops writing some time before others may take over. Each request that
// writes is checked, so a daemon that was frozen finds out before it sends anything.

// LeaseTimes are how long a Lease lasts and how often it is renewed.
type LeaseTimes struct{ Duration, Renew time.Duration }

var defaultLeaseTimes = LeaseTimes{Duration: time.Minute, Renew: 20 * time.Second}

const (
	// leaseRetry is when a Lease that somebody else holds, or that could not be
	// renewed, is asked for again.
	leaseRetry = 5 * time.Second
	// leasePatience is how long a pass waits for the first word about Leases.
	leasePatience = 5 * time.Second
	// leaseMargin is the share of its time, one in so many, for which nothing more
	// is sent before somebody else may take the Lease: of a minute, 20 s. A request
	// that takes longer than 15 s is given up when that time begins.
	leaseMargin = 3
	// releasePatience is how long Leases are tried to be given back.
	releasePatience = 3 * time.Second
)

// lease keeps the Lease of one cluster. Its methods are safe for concurrent use.
type lease struct {
	cluster         string
	namespace, name string
	times           LeaseTimes
	process         string   // the random part of our name
	holder          string   // our name
	before          []string // our names in earlier processes
	reach           func(context.Context) (*apply.Cluster, error)
	linked          func() *apply.Cluster
	changed         func() // is called when the Lease was won or lost

	begun chan struct{} // closed when the first try is over
	over  chan struct{} // closed when nobody keeps it any more

	resumed chan struct{} // told when it is not suspended any more, or is to be written soon

	state string                      // the name of ours
	known func(name, uid string) bool // whether the state knows the content of a cluster

	mu        sync.Mutex
	suspended bool // nothing is sent, not even what keeps the Lease

	last *coordinationv1.Lease // as we wrote it; nil when it is not ours
	// renewed is when the last renewal that went through was sent.
	renewed time.Time
	terms   int   // counts how often it became ours
	why     error // it is not ours; nil before the first try
	// orders are those that it carries, and unsaid is set while they are not written. inherited
	// are those of another state that were found, and adopted those that are in force by now.
	orders, inherited, adopted string
	unsaid                     bool
	parted                     bool // it was written since it is suspended: see farewell
	// writer is who last wrote to the cluster, as the Lease said when the term began; isWriter
	// says that we have begun to since.
	writer   string
	isWriter bool
	// seen is the Lease of somebody else, and since when it has been that.
	seen   string
	seenAt time.Time
}

// term is the number of the time for which the Lease is ours, from 1; zero when it
// is not, or when it was not renewed for so long that somebody else may come to
// take it. A nil lease is one that nobody keeps: there is one term.
func (l *lease) term() (term int, why error) {
	if l == nil {
		return 1, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.suspended, l.inherited != "": // soon the daemon has them in force too
		return 0, nil
	case l.last == nil:
		return 0, l.why
	case since(l.renewed) > l.times.Duration-l.times.Duration/leaseMargin:
		return 0, cmp.Or(l.why, fmt.Errorf("cluster %s: %s was not renewed for %s", l.cluster, l.text(), since(l.renewed).Round(time.Second)))
	}
	return l.terms, nil
}

// since is the time that has passed, by the clock that stands still while the
// machine sleeps or by the one that does not, whichever says more.
func since(at time.Time) time.Duration {
	return max(time.Since(at), time.Now().Round(0).Sub(at.Round(0)))
}

// fence is [apply.Options.Fence].
func (l *lease) fence() error {
	term, why := l.term()
	if term == 0 && why == nil {
		why = fmt.Errorf("cluster %s: %s is not held yet", l.cluster, l.text())
	}
	return why
}

// during is the fence of what began in a term of the Lease: it ends with the term.
// In the next one the cluster is compared with the state first, as somebody else may
// have written there in between.
func (l *lease) during(term int) func() error {
	return func() error {
		if is, why := l.term(); is != term {
			return cmp.Or(why, error(NotWriter{fmt.Errorf("cluster %s: %s was not held all the time; it is tried again once the cluster is compared with the state", l.cluster, l.text())}))
		}
		return nil
	}
}

// AnotherWrites is in the text about a cluster whose Lease another daemon has.
const AnotherWrites = "another swell writes there"

// NotWriter is the error for a cluster whose Lease is not ours, or cannot be kept.
type NotWriter struct{ error }

func (e NotWriter) Unwrap() error { return e.error }

func (l *lease) text() string { return "lease " + l.namespace + "/" + l.name }

// named is an error about the Lease, with its name and its cluster's.
func (l *lease) named(err error) error {
	return fmt.Errorf("cluster %s: %s: %w", l.cluster, l.text(), err)
}

// keep tries to get the Lease and to keep it until ctx ends.
func (l *lease) keep(ctx context.Context) {
	defer close(l.over)
	first := sync.OnceFunc(func() { close(l.begun) })
	defer first()
	for {
		if l.isSuspended() {
			first()
			l.farewell(ctx)
			select {
			case <-ctx.Done():
				return
			case <-l.resumed:
			}
			continue
		}
		before, hadWhy := l.term()
		next := l.try(ctx)
		after, why := l.term()
		first()
		if before != after || text(why) != text(hadWhy) {
			l.changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-l.resumed:
		case <-time.After(next):
		}
	}
}

// farewell writes orders that are not written yet, such as the one that masks the cluster:
// whoever takes over has to know it.
func (l *lease) farewell(ctx context.Context) {
	l.mu.Lock()
	last, unsaid := l.last, l.owes()
	l.unsaid, l.parted = false, l.parted || unsaid
	l.mu.Unlock()
	conn := l.linked()
	if last == nil || !unsaid || conn == nil {
		return
	}
	_ = l.send(ctx, conn, last, false) // there is no second try in a masked cluster
	if ctx.Err() != nil {              // but it is given back
		l.mu.Lock()
		l.unsaid, l.parted = true, false
		l.mu.Unlock()
	}
}

// owes says that a farewell is to be written. The lock is held.
func (l *lease) owes() bool { return l.unsaid && !l.parted }

// suspend has nothing more sent for the Lease, or has it kept again.
func (l *lease) suspend(suspended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.suspended && !suspended {
		l.parted = false
		l.poke()
	}
	l.suspended = suspended
}

func (l *lease) isSuspended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspended
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// try renews the Lease or tries to get it, and returns when to try again.
func (l *lease) try(ctx context.Context) time.Duration {
	l.mu.Lock()
	last := l.last
	l.mu.Unlock()
	if conn := l.linked(); last != nil && conn != nil {
		switch err := l.put(ctx, conn, last, false); {
		case err == nil:
			return l.times.Renew
		case !isHTTP(err, http.StatusConflict) && !isHTTP(err, http.StatusNotFound):
			return l.failed(err)
		}
	}
	conn, err := l.reach(ctx)
	if err != nil {
		return l.failed(err)
	}
	there, err := conn.GetLease(ctx, l.namespace, l.name)
	switch {
	case isHTTP(err, http.StatusNotFound):
		there = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: l.name}}
	case err != nil:
		return l.failed(err)
	}
	wait := l.wait(there)
	if wait > 0 {
		return min(wait, l.retry())
	}
	ours := there.Spec.HolderIdentity != nil && *there.Spec.HolderIdentity == l.holder && last != nil
	if !ours { // else nobody wrote it whose orders count
		if err := l.read(there); err != nil {
			return l.failed(err)
		}
	}
	if err := l.put(ctx, conn, there, !ours); err != nil {
		return l.failed(err)
	}
	return l.times.Renew
}

func (l *lease) retry() time.Duration { return min(leaseRetry, l.times.Renew/4) }

// put writes the Lease as ours. anew says that it was not.
func (l *lease) put(ctx context.Context, conn *apply.Cluster, from *coordinationv1.Lease, anew bool) error {
	if l.isSuspended() {
		return NotWriter{fmt.Errorf("cluster %s: it is masked", l.cluster)}
	}
	return l.send(ctx, conn, from, anew)
}

func (l *lease) send(ctx context.Context, conn *apply.Cluster, from *coordinationv1.Lease, anew bool) error {
	now := time.Now()
	next := from.DeepCopy()
	l.mu.Lock()
	l.write(next)
	l.unsaid = false
	l.mu.Unlock()
	next.Spec.HolderIdentity = &l.holder
	next.Spec.LeaseDurationSeconds = new(int32(math.Ceil(l.times.Duration.Seconds())))
	next.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if anew {
		next.Spec.AcquireTime = next.Spec.RenewTime
		next.Spec.LeaseTransitions = new(valueOf(from.Spec.LeaseTransitions) + 1)
	}
	got, err := conn.PutLease(ctx, next)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.renewed, l.why, l.seen = got, now, nil, ""
	if anew {
		l.terms++
	}
	return nil
}

// wait is how long the present Lease must be left to its holder.
func (l *lease) wait(there *coordinationv1.Lease) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	holder := valueOf(there.Spec.HolderIdentity)
	if holder == "" || holder == l.holder || slices.Contains(l.before, holder) {
		return 0
	}
	if is := fmt.Sprint(there.UID, there.ResourceVersion); is != l.seen {
		l.seen, l.seenAt = is, time.Now()
	}
	l.last = nil
	since := "an unknown time"
	if there.Spec.AcquireTime != nil {
		since = there.Spec.AcquireTime.UTC().Format(time.RFC3339)
	}
	lasts := max(l.times.Duration, time.Duration(valueOf(there.Spec.LeaseDurationSeconds))*time.Second)
	l.why = NotWriter{fmt.Errorf("cluster %s: %s: %s is held by %s since %s; %s, or this one takes over when nobody renews it for %s",
		l.cluster, AnotherWrites, l.text(), holder, since, l.advice(holder), lasts)}
	return max(0, lasts-time.Since(l.seenAt))
}

// advice is what to do about another holder.
func (l *lease) advice(holder string) string {
	if theirs, ours := strings.Split(holder, "/"), strings.Split(l.holder, "/"); len(theirs) == 3 && theirs[1] == ours[1] {
		return "it works with a copy of this state: stop one of the two"
	}
	return "one daemon follows one monorepo: stop one of the two"
}

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func isHTTP(err error, code int) bool {
	var e *apply.Error
	return errors.As(err, &e) && e.Code == code
}

// failed notes why the Lease could not be had or renewed. What was ours stays so
// until it runs out.
func (l *lease) failed(err error) time.Duration {
	var why error = NotWriter{l.named(err)}
	switch {
	case isHTTP(err, http.StatusForbidden), isHTTP(err, http.StatusUnauthorized):
		why = NotWriter{fmt.Errorf("cluster %s: %s cannot be kept, so nothing is written there: %w; allow get, create and update of leases in the API group "+
			"coordination.k8s.io in namespace %s; lease: {enabled: false} in the daemon's configuration does without, and nothing keeps a second daemon away then",
			l.cluster, l.text(), err, l.namespace)}
	case strings.HasPrefix(err.Error(), "cluster "+l.cluster+": "): // it cannot even be reached
		why = err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
	return l.retry()
}

// release gives the Lease back, so that nobody has to wait.
func (l *lease) release(ctx context.Context) {
	l.mu.Lock()
	last, silent := l.last, l.suspended && !l.owes()
	l.last = nil
	l.mu.Unlock()
	conn := l.linked()
	if last == nil || conn == nil || silent {
		return
	}
	next := last.DeepCopy()
	l.mu.Lock()
	l.write(next)
	l.mu.Unlock()
	next.Spec.HolderIdentity = new("")
	next.Spec.LeaseDurationSeconds = new(int32(1))
	next.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	_, _ = conn.PutLease(ctx, next) // else it runs out
}
