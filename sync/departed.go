// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/store"
)

// A cluster that a commit takes out of the fleet leaves the waves at once. What swell has
// there stays in the inventory, until somebody approves that it is forgotten, or until the
// cluster comes back, under its name or another one. Then its objects are taken in like
// those that a survey found: what no unit applies again is deleted with approval only.

// trackClusters takes in which clusters left the fleet, or came back to it.
func (p *pass) trackClusters() error {
	fleet := p.monorepo.wanted.Clusters
	if fleet == nil || p.monorepo.wanted.Refused() != "" {
		return nil
	}
	isOther := !maps.Equal(p.surveys.tracked, fleet)
	p.surveys.tracked = fleet
	if err := p.findPinned(fleet, isOther); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.surveys.known)) {
		if err := p.trackCluster(name, fleet[name]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) trackCluster(name string, belongs bool) error {
	switch departed := p.surveys.known[name].Survey == store.Departed; {
	case departed && belongs:
		return p.welcome(name)
	case !departed && !belongs:
		return p.depart(name)
	}
	return nil
}

// forgetDeparted looks at what would be forgotten, and forgets what was approved.
func (p *pass) forgetDeparted() error {
	if !p.guarded.stale && !p.guarded.forgetLater || p.monorepo.wanted.Clusters == nil {
		return nil
	}
	p.guarded.forgetLater = false
	for _, name := range slices.Sorted(maps.Keys(p.surveys.known)) {
		if p.surveys.known[name].Survey != store.Departed {
			continue
		}
		if err := p.forgetApproved(name); err != nil {
			return err
		}
	}
	return nil
}

// findPinned reads the clusters again while one is departed, as it may have another name by now, see
// [store.Store.PinCluster], and when the fleet is another one: whoever was pinned and never surveyed may leave.
func (p *pass) findPinned(fleet map[string]bool, isOther bool) error {
	departed := func(c store.ClusterState) bool { return c.Survey == store.Departed }
	if !isOther && !slices.ContainsFunc(slices.Collect(maps.Values(p.surveys.known)), departed) {
		return nil
	}
	clusters, err := p.tx.Clusters()
	if err != nil {
		return err
	}
	for name, known := range p.surveys.known {
		if _, exists := clusters[name]; !exists && departed(known) {
			p.dropDeparted(name)
			delete(p.surveys.known, name)
			p.forgotten = append(p.forgotten, name) // should it be called that again, it is pinned again
		}
	}
	for name, c := range clusters {
		if _, isKnown := p.surveys.known[name]; !isKnown || departed(c) && fleet[name] {
			p.surveys.known[name] = c
		}
	}
	return nil
}

// depart notes that a cluster left the fleet. One in which swell has nothing is forgotten.
func (p *pass) depart(name string) error {
	entries, err := p.tx.ClusterInventory(name)
	if err != nil {
		return err
	}
	p.sweeps.ledger.ForgetCluster(name)
	if len(entries) == 0 && !p.executor.Clusters()[name] {
		return p.forget(name)
	}
	known := p.surveys.known[name]
	known.Name, known.Survey = name, store.Departed
	p.surveys.known[name] = known
	p.fleetEvent("departed", fmt.Sprintf("cluster %s left the fleet: %s stay there: swell approve forgets them", name, extentOf(entries)))
	p.guarded.stale = true
	return p.tx.Surveyed(name, known.Survey, known.Unknown)
}

// extentOf counts objects of the inventory and their units: "3 objects of 2 units".
func extentOf(entries []store.Entry) string {
	units := map[config.UnitPath]bool{}
	for i := range entries {
		units[entries[i].Unit] = true
	}
	return document.Count(len(entries), "object") + " of " + document.Count(len(units), "unit")
}

// noteDeparted makes entries something that would be forgotten.
func (p *pass) noteDeparted(entries []store.Entry) {
	if p.guarded.departed == nil {
		p.guarded.departed = map[object.UnitTarget]approval.Loss{}
	}
	addDeparted(p.guarded.departed, entries)
}

func addDeparted(losses map[object.UnitTarget]approval.Loss, entries []store.Entry) {
	for _, e := range entries {
		l := losses[e.Place()]
		l.UnitTarget, l.Departed = e.Place(), true
		l.Gone = append(l.Gone, objectOf(e))
		losses[e.Place()] = l
	}
}

// dropDeparted ends what would be forgotten of a cluster.
func (p *pass) dropDeparted(name string) {
	maps.DeleteFunc(p.guarded.departed, func(unitTarget object.UnitTarget, _ approval.Loss) bool {
		return unitTarget.Target.Cluster() == name
	})
	p.guarded.stale = true
}

// forgetApproved forgets what was approved of a departed cluster, and looks at the rest.
func (p *pass) forgetApproved(name string) error {
	entries, err := p.tx.ClusterInventory(name)
	if err != nil {
		return err
	}
	if p.executor.Clusters()[name] { // a job there notes what it did
		p.guarded.forgetLater = true
		return nil
	}
	if len(entries) == 0 {
		return p.forget(name)
	}
	approved := p.guarded.ledger.Approved()
	left := slices.DeleteFunc(slices.Clone(entries), func(e store.Entry) bool { return approved[approval.Forgetting(e)] })
	p.dropDeparted(name)
	p.noteDeparted(left)
	if len(left) == len(entries) {
		return nil
	}
	p.fleetEvent("forgotten", fmt.Sprintf("cluster %s: %s, as approved", name, document.Count(len(entries)-len(left), "object")))
	if len(left) == 0 {
		return p.forget(name)
	}
	gone := slices.DeleteFunc(entries, func(e store.Entry) bool { return !approved[approval.Forgetting(e)] })
	return p.tx.Forget(gone)
}

// forget ends all knowledge of a cluster.
func (p *pass) forget(name string) error {
	delete(p.surveys.known, name)
	delete(p.surveys.compared, name)
	delete(p.surveys.due, name)
	p.forgotten = append(p.forgotten, name)
	return p.tx.ForgetCluster(name)
}

// welcome takes a cluster in again that had left.
func (p *pass) welcome(name string) error {
	known := p.surveys.known[name]
	known.Survey = store.Rebuilding
	p.surveys.known[name] = known
	delete(p.surveys.compared, name) // nobody looked at it meanwhile
	delete(p.surveys.due, name)
	p.surveys.reported = false
	p.dropDeparted(name)
	p.fleetEvent("rebuilding", fmt.Sprintf("cluster %s came back to the fleet: what it has is taken in", name))
	return errors.Join(p.tx.MarkFound(name), p.tx.Surveyed(name, known.Survey, known.Unknown))
}

// addDeparting adds to losses the objects that are forgotten with clusters that are not of the fleet.
func addDeparting(losses map[object.UnitTarget]approval.Loss, s *store.Store, fleet map[string]bool) error {
	known, err := s.Clusters()
	if err != nil || fleet == nil {
		return err
	}
	for name := range known {
		if fleet[name] {
			continue
		}
		entries, err := s.ClusterInventory(name)
		if err != nil {
			return err
		}
		addDeparted(losses, entries)
	}
	return nil
}
