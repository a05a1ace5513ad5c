// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/store"
)

// openFleet prepares the ways to the clusters. It talks to nobody yet.
func (d *Daemon) openFleet(ctx context.Context) error {
	holder, err := d.Store.Hold(ctx)
	if err != nil {
		return err
	}
	d.fleet, err = fleet.New(fleet.Options{
		Clusters: d.Clusters, KubeconfigDir: d.KubeconfigDir, Allow: d.Allow, Reach: d.Reach, Connection: d.Connection, Lease: d.Lease, LeaseTimes: d.LeaseTimes,
		Holder: holder, Pin: d.pin, Known: d.isKnown, Changed: d.wake,
	}, d.monorepo.name)
	if err != nil {
		return err
	}
	d.fleet.Carry(carried(d.orders.standing)) // before any Lease is written
	for _, name := range d.fleet.Names() {
		d.sweepFirst(name)
	}
	return nil
}

// pin is [store.Store.PinCluster] for the fleet of the newest commit. It is safe for concurrent use.
func (d *Daemon) pin(ctx context.Context, name, uid string) (pinned string, err error) {
	return d.Store.PinCluster(ctx, name, uid, func() bool {
		fleet := d.surveys.fleet.Load()
		return fleet != nil && (*fleet)[name]
	})
}

// isKnown says whether the state knows a cluster of that name by its identity, or one with
// that identity under another name. It is safe for concurrent use.
func (d *Daemon) isKnown(name, uid string) bool {
	clusters, err := d.Store.Clusters()
	if err != nil {
		return false // it is asked again
	}
	for other, c := range clusters {
		isSurveyed := c.Survey != store.Unsurveyed
		if other == name && (c.UID != "" || isSurveyed) || uid != "" && c.UID == uid && isSurveyed {
			return true
		}
	}
	return false
}

// findClusters looks for kubeconfigs that were added since the last pass.
func (d *Daemon) findClusters(r *Record) {
	added, err := d.fleet.Find()
	d.warnOnce(r, "", err)
	for _, name := range added {
		d.sweepFirst(name)
	}
}

// sweepFirst has a cluster swept in which a watch is to begin.
func (d *Daemon) sweepFirst(name string) {
	if d.Drift.Watch {
		d.sweeps.timetable.Ask(name)
	}
}

// reportStaleKubeconfigs says which clusters have a kubeconfig that cannot be taken up.
func (d *Daemon) reportStaleKubeconfigs(r *Record) {
	for _, name := range d.fleet.Names() {
		d.warnOnce(r, name, d.fleet.Of(name).Stale())
	}
}

// warnOnce notes an error that lasts, once; nil says that it is over.
func (d *Daemon) warnOnce(r *Record, about string, err error) {
	before := d.told.warned[about]
	switch {
	case err != nil && before != err.Error():
		d.told.warned[about] = err.Error()
		r.went("kubeconfig of "+about, err)
	case err == nil && before != "":
		delete(d.told.warned, about)
		r.went("kubeconfig of "+about, nil)
	}
}

// wayTo is how to reach a cluster. It may be used in the background.
func (d *Daemon) wayTo(name string) func(context.Context) (*apply.Cluster, error) {
	if c := d.fleet.Of(name); c != nil {
		return c.Reach
	}
	unknown := d.fleet.Unknown(name)
	return func(context.Context) (*apply.Cluster, error) { return nil, unknown }
}
