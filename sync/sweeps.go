// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// sweeping is the sweep of a cluster on its way. Like jobs, it goes on beside
// the passes when the cluster takes its time.
type sweeping struct {
	name string
	over chan struct{} // closed when what follows is known
	swept
}

// beginSweeps starts to sweep clusters.
func (d *Daemon) beginSweeps(ctx context.Context, names []string) {
	for _, name := range names {
		s := &sweeping{name: name, over: make(chan struct{})}
		d.sweeps[name] = s
		entries, err := d.Store.ClusterInventory(name)
		if err != nil || len(entries) == 0 {
			s.swept = swept{err: err}
			close(s.over)
			continue
		}
		accounts, of := d.byAccount(entries)
		c := d.clusters[name]
		go func() {
			s.swept = d.sweepCluster(ctx, name, c, accounts, of)
			close(s.over)
			select {
			case d.arrived <- struct{}{}:
			default:
			}
		}()
	}
	if len(d.sweeps) > 0 {
		for _, at := range d.beside.places() {
			d.disturbed[at] = true
		}
	}
}

// disturb notes jobs that begin while sweeps are under way.
func (d *Daemon) disturb(jobs []*job) {
	if len(d.sweeps) > 0 {
		for _, j := range jobs {
			d.disturbed[j.place()] = true
		}
	}
}

// endedSweeps waits for the sweeps that were just begun, for as long as the
// patience lasts, and returns all that are over, by name. What was written
// during a sweep is not judged.
func (d *Daemon) endedSweeps(ctx context.Context, begun []string) []*sweeping {
	timer := time.NewTimer(d.Patience)
	defer timer.Stop()
	var done []*sweeping
	late := false
	for _, name := range slices.Sorted(maps.Keys(d.sweeps)) {
		s := d.sweeps[name]
		if !late && slices.Contains(begun, name) {
			select {
			case <-s.over:
			case <-timer.C:
				late = true
			case <-ctx.Done():
				late = true
			}
		}
		select {
		case <-s.over:
		default:
			continue
		}
		delete(d.sweeps, name)
		s.drifts = slices.DeleteFunc(s.drifts, func(drift apply.Drift) bool {
			return d.disturbed[place{drift.Entry.Unit, drift.Entry.Target}]
		})
		done = append(done, s)
	}
	if len(d.sweeps) == 0 {
		clear(d.disturbed)
	}
	return done
}

// sweepCluster compares what is live in a cluster with the entries, account by
// account.
func (d *Daemon) sweepCluster(ctx context.Context, name string, c *cluster, accounts []string, of map[string][]store.Entry) (s swept) {
	conn, err := d.reach(ctx, name, c)
	if err != nil {
		return swept{err: err}
	}
	for _, account := range accounts {
		drifts, err := conn.As(account).Sweep(ctx, of[account])
		s.drifts, s.err = append(s.drifts, drifts...), errors.Join(s.err, err)
	}
	if errors.Is(s.err, apply.ErrUnreachable) {
		c.Lost(ctx, s.err)
	}
	return s
}
