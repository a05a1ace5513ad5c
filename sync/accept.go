// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// accept has a cluster that was made anew under its name count as a new one, or one whose Lease
// names another one count as that of its name. What the one before had is forgotten with it, and
// the newest commit comes to the new one through the waves.
func (p *pass) accept(o *order.Order) error {
	name := o.Scope.Target.Cluster()
	clusters, err := p.tx.Clusters()
	if err != nil {
		return err
	}
	if why := p.refusesAccept(clusters, name, o.To); why != "" {
		p.noteOrder(o, o.Verb, fmt.Sprintf("%s (there was nothing to do: %s)", o.Text(), why))
		return p.tx.DropOrder(o)
	}
	entries, err := p.tx.ClusterInventory(name)
	if err != nil {
		return err
	}
	before := cmp.Or(clusters[name].UID, "that nobody knew")
	p.noteOrder(o, o.Verb, fmt.Sprintf("%s (kube-system had the UID %s, and has %s: %s are forgotten)",
		o.Text(), before, o.To, extentOf(entries)))
	p.sweeps.ledger.ForgetCluster(name)
	p.r.Transitions = append(p.r.Transitions, p.state.Distrust(name, fmt.Sprintf("cluster %s is a new one", name), p.r.At)...)
	if err := errors.Join(p.forget(name), p.tx.Pin(name, o.To), p.tx.DropOrder(o)); err != nil {
		return err
	}
	p.surveys.known[name] = store.ClusterState{Name: name, UID: o.To}
	p.guarded.stale = true
	return nil
}

// refusesAccept says why a cluster is not taken for a new one with the UID; empty when it is.
func (p *pass) refusesAccept(clusters map[string]store.ClusterState, name, uid string) string {
	for other, c := range clusters {
		if c.UID == uid && other != name {
			return fmt.Sprintf("cluster %s has the UID %s", other, uid)
		}
	}
	if c := p.fleet.Of(name); c != nil && c.Stranger() != "" && c.Stranger() != uid {
		return fmt.Sprintf("its namespace kube-system has the UID %s", c.Stranger())
	}
	switch known := clusters[name]; {
	case known.UID == "" && !p.monorepo.wanted.Clusters[name]:
		return "the fleet has no cluster of this name"
	case known.UID == uid:
		return "it is the cluster that swell knows"
	case known.Survey == store.Departed:
		return "it is not in the fleet: swell approve forgets what it had"
	case p.executor.Clusters()[name]:
		return "work is under way there: give the order again"
	}
	return ""
}
