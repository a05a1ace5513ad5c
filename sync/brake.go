// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/order"
)

// A pass takes the orders that were given before it, and may take long: a commit that changes a kind
// renders all units anew. Meanwhile the jobs of earlier passes go on, so an order that keeps writes from
// places brakes them at once.

// brake does so until release is called. Nothing is put in force: that is for the next pass.
func (d *Daemon) brake() (release func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-d.orders.given:
				d.stopBraked()
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// stopBraked ends jobs at the places of masks that were given: all that write. At those of pauses and
// freezes the jobs end that have not begun, and a pass begins anew which of them may.
func (d *Daemon) stopBraked() {
	given, err := d.Store.Orders()
	if err != nil {
		return // the pass meets the error too
	}
	for i := range given {
		o := &given[i]
		isBraked := func(j *executor.Job) bool { return mayWrite(j) && concerns(o, j) }
		switch {
		case o.Verb == order.Mask:
			d.executor.Cancel(isBraked)
		case o.Verb.KeepsWrites():
			d.executor.CancelWaiting(isBraked)
		}
	}
}

// concerns says whether an order is about the place of a job. A tenant or a wave that nobody knows is
// the order's.
func concerns(o *order.Order, j *executor.Job) bool {
	tenant, wave := cmp.Or(j.Tenant.Name, o.Scope.Tenant), cmp.Or(j.Wave, o.Scope.Wave)
	return o.Scope.Has(config.Place{Unit: j.Unit, Target: j.Target, Tenant: tenant, Wave: wave})
}
