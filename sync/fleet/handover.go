// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/apply"
)

// A Lease carries what whoever writes to the cluster next has to know before: the name of the
// cluster in the monorepo, the orders that keep writes from places, and which process wrote there
// last. They are read by the next holder, which may have another state, such as a standby, or an older one: its state was
// lost, or put back from a copy.

// write puts into a Lease what it carries. Orders of an earlier holder stay until they were
// taken over. The lock is held.
func (l *lease) write(next *coordinationv1.Lease) {
	annotations := maps.Clone(next.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[config.AnnotationCluster] = l.cluster
	switch {
	case l.inherited != "":
	case l.orders != "":
		annotations[config.AnnotationOrders] = l.orders
	default:
		delete(annotations, config.AnnotationOrders)
	}
	if l.isWriter {
		annotations[config.AnnotationWriter] = l.process
	}
	next.Annotations = annotations
}

// mayBe is the error that a cluster which is about to be taken for ours is another one by its
// Lease. It is not sure where nobody may read that. The state may know the cluster under another
// name, that it had before.
func (l *lease) mayBe(ctx context.Context, conn *apply.Cluster, uid string) (isSure bool, err error) {
	if l.known == nil || l.known(l.cluster, uid) {
		return true, nil
	}
	existing, err := conn.GetLease(ctx, l.namespace, l.name)
	switch {
	case isHTTP(err, http.StatusNotFound):
		return true, nil
	case isHTTP(err, http.StatusForbidden): // nothing is written there, so nothing has to be noted
		return false, nil
	case err != nil:
		return false, l.named(err)
	}
	if err := l.contradicts(existing, uid); err != nil {
		return false, NotWriter{l.named(err)}
	}
	return true, nil
}

// contradicts is the error that a Lease is of another cluster. uid is that of the one that has it.
func (l *lease) contradicts(existing *coordinationv1.Lease, uid string) error {
	if name := existing.Annotations[config.AnnotationCluster]; name != "" && name != l.cluster {
		const text = "it is cluster %s by the annotation %s of this Lease, and the state knows nothing of it: " +
			"where kubeconfigs are swapped, swap them back; where it has another name by now, " +
			"swell cluster accept %s --uid %s takes it for that"
		return fmt.Errorf(text, name, config.AnnotationCluster, l.cluster, uid)
	}
	return nil
}

// read takes in what a Lease carries that somebody else may have written. The error is that it
// is of another cluster, in a cluster that the state knows nothing of: the state was lost, and
// kubeconfigs may be swapped.
func (l *lease) read(existing *coordinationv1.Lease) error {
	if l.known != nil && !l.known(l.cluster, "") {
		if err := l.contradicts(existing, "UID"); err != nil {
			return err
		}
	}
	orders := existing.Annotations[config.AnnotationOrders]
	l.mu.Lock()
	l.writer, l.isWriter = existing.Annotations[config.AnnotationWriter], false
	isNew := orders != "" && orders != l.orders && orders != l.adopted && orders != l.inherited
	if isNew {
		l.inherited = orders
	}
	l.mu.Unlock()
	if isNew {
		l.changed()
	}
	return nil
}

// carry has the Lease carry other orders, at once where it is ours.
func (l *lease) carry(orders string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orders == orders {
		return
	}
	l.orders, l.unsaid = orders, true
	l.poke()
}

// adopt says that inherited orders are in force here too.
func (l *lease) adopt(orders string) {
	l.mu.Lock()
	isThat := l.inherited == orders
	if isThat {
		l.inherited, l.adopted, l.unsaid = "", orders, true
		l.poke()
	}
	l.mu.Unlock()
	if isThat {
		l.changed()
	}
}

// claim has the Lease say that we write to the cluster.
func (l *lease) claim() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isWriter {
		l.isWriter, l.unsaid = true, true
		l.poke()
	}
}

// Writer is the process that last wrote to the cluster before the present term of its Lease,
// by the Lease; empty where that is not known, or no Leases are kept.
func (c *Cluster) Writer() string {
	if c.lease == nil {
		return ""
	}
	c.lease.mu.Lock()
	defer c.lease.mu.Unlock()
	return c.lease.writer
}

// Writes has the Lease say that this process writes to the cluster. The state must know the
// process by then: see [store.Tx.PutWriters].
func (c *Cluster) Writes() {
	if c.lease != nil {
		c.lease.claim()
	}
}

// Process is the random name of this process, that Leases carry.
func (f *Fleet) Process() string { return f.options.Holder.Process }

// poke has the Lease written soon.
func (l *lease) poke() {
	select {
	case l.resumed <- struct{}{}:
	default:
	}
}

// Inherited are the orders of earlier holders that Leases carry, by cluster. Nothing is written to
// a cluster before they were adopted.
func (f *Fleet) Inherited() map[string]string {
	found := map[string]string{}
	for name, c := range f.clusters {
		if c.lease == nil {
			continue
		}
		c.lease.mu.Lock()
		if c.lease.inherited != "" {
			found[name] = c.lease.inherited
		}
		c.lease.mu.Unlock()
	}
	return found
}

// Adopt says that the orders which the Lease of a cluster carried are in force here too.
func (f *Fleet) Adopt(cluster, orders string) {
	if c := f.clusters[cluster]; c != nil && c.lease != nil {
		c.lease.adopt(orders)
	}
}

// Carry has the Leases carry these orders.
func (f *Fleet) Carry(orders string) {
	if f.orders == orders { // new Leases have them from the beginning
		return
	}
	f.orders = orders
	for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
		if c := f.clusters[name]; c.lease != nil {
			c.lease.carry(orders)
		}
	}
}
