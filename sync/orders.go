// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// orders are what operators said.
type orders struct {
	read    int64       // [store.Store.Changes] when they were read
	hurried atomic.Bool // see [Daemon.Hurry]; anybody sets it
}

// takeOrders carries out the orders that were given since the last time. An order, what
// it changed and its line in the history are stored at once, so it is carried out
// exactly once whenever the process ends.
func (p *pass) takeOrders() error {
	changes, err := p.tx.Changes()
	if err != nil || changes == p.orders.read {
		return err
	}
	orders, err := p.tx.Orders()
	if err != nil {
		return err
	}
	for i, o := range orders {
		if o.Verb == store.OrderRetry {
			p.r.Transitions = append(p.r.Transitions, p.retry(&orders[i], p.r.At)...)
		}
		if err := p.tx.DropOrder(o); err != nil {
			return err
		}
	}
	p.orders.read = changes
	return nil
}

// retry makes due what the order is about. Whatever it is about, Git and the
// clusters are looked at at once as well: they cost little.
func (d *Daemon) retry(o *store.Order, now time.Time) []rollout.Transition {
	d.hurry()
	transitions := d.state.Retry(o.Unit, o.Target, o.Text(), now)
	slices.SortFunc(transitions, func(a, b rollout.Transition) int { return cmp.Compare(a.Unit, b.Unit) })
	if len(transitions) == 0 {
		return []rollout.Transition{{Time: now.UTC().Round(0), Unit: o.Unit, Target: o.Target, Kind: "retry", Text: o.Text() + " (nothing failed or waits)"}}
	}
	return transitions
}

// Hurry makes the daemon look at Git, at kubeconfigs, and at clusters whose last look
// for drift failed, at once. It is safe for concurrent use.
func (d *Daemon) Hurry() {
	d.orders.hurried.Store(true)
	d.wake()
}

func (d *Daemon) hurry() {
	d.branch.hurry()
	d.sweeps.timetable.Hurry()
	d.fleet.Hurry()
}
