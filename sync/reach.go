// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/apply"
)

func (d *Daemon) kubeconfig(access config.ClusterAccess) kubeconfig {
	return kubeconfig{access: access, dir: d.KubeconfigDir, allow: d.Allow}
}

// addCluster makes a cluster known to the daemon.
func (d *Daemon) addCluster(name string, access config.ClusterAccess) {
	options, l := d.Connection, d.newLease(name)
	if l != nil {
		options.Fence = l.fence
	}
	c := newCluster(name, d.repository, d.kubeconfig(access), options)
	c.lease, c.back = l, d.wake
	d.clusters[name] = c
	d.sweepNow[name] = d.Drift.Watch // where the watch begins
}

// findClusters gets to know the clusters whose kubeconfigs are new in the
// folder. One whose file is gone stays known, and cannot be reached.
func (d *Daemon) findClusters(r *Record) {
	if d.KubeconfigDir == "" {
		return
	}
	names, err := clustersIn(d.KubeconfigDir)
	d.warnOnce(r, "", err)
	for _, name := range names {
		if d.clusters[name] == nil {
			d.addCluster(name, config.ClusterAccess{})
		}
	}
}

// reportStaleKubeconfigs says which clusters have a kubeconfig that cannot be taken up.
func (d *Daemon) reportStaleKubeconfigs(r *Record) {
	for _, name := range slices.Sorted(maps.Keys(d.clusters)) {
		d.warnOnce(r, name, d.clusters[name].Stale())
	}
}

// warnOnce notes an error that lasts, once; nil says that it is over.
func (d *Daemon) warnOnce(r *Record, about string, err error) {
	if err == nil {
		delete(d.warned, about)
		return
	}
	if d.warned[about] != err.Error() {
		d.warned[about] = err.Error()
		r.fail(err)
	}
}

// reach returns the connection to a cluster that is the one we knew. c is nil
// where nobody says how to reach it. It may be used in the background.
func (d *Daemon) reach(ctx context.Context, name string, c *cluster) (*apply.Cluster, error) {
	if c == nil {
		err := errors.New("the daemon's configuration does not say how to reach it")
		if d.KubeconfigDir != "" {
			err = fmt.Errorf("it is not in the daemon's configuration, and there is no %s.yaml or %s.kubeconfig in %s", name, name, d.KubeconfigDir)
		}
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	conn, uid, err := c.Reachable(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	pinned, err := c.pin(func() (string, error) { return d.Store.PinCluster(ctx, name, uid) })
	if err != nil {
		return nil, err
	}
	if pinned != uid {
		return nil, fmt.Errorf("cluster %s: not the cluster we knew: its kube-system namespace has the UID %s, ours had %s: one that was made anew takes a new name in the fleet", name, uid, pinned)
	}
	return conn, nil
}
