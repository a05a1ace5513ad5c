// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"iter"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Agenda is what is due of all units: what the plans of one state said so far, each of
// which replaces what is said of the units that it looked at. The zero value is empty. It
// is not safe for concurrent use.
type Agenda struct {
	// actions by cluster, then by unit, then by target.
	actions map[string]map[config.UnitPath][]Action
	// clusters are those where a unit has actions.
	clusters map[config.UnitPath][]string
	open     map[config.UnitPath][]object.UnitTarget
}

// Take takes a plan in.
func (a *Agenda) Take(plan *Plan) {
	if a.actions == nil {
		*a = Agenda{map[string]map[config.UnitPath][]Action{}, map[config.UnitPath][]string{}, map[config.UnitPath][]object.UnitTarget{}}
	}
	for _, path := range plan.Looked {
		for _, cluster := range a.clusters[path] {
			delete(a.actions[cluster], path)
		}
		delete(a.clusters, path)
		delete(a.open, path)
	}
	for at, actions := range runs(plan.Actions, func(action Action) object.UnitTarget {
		return object.UnitTarget{Unit: action.Unit, Target: config.TargetName(action.Target.Cluster())}
	}) {
		cluster := string(at.Target)
		if a.actions[cluster] == nil {
			a.actions[cluster] = map[config.UnitPath][]Action{}
		}
		a.actions[cluster][at.Unit] = actions
		a.clusters[at.Unit] = append(a.clusters[at.Unit], cluster)
	}
	for path, open := range runs(plan.Open, func(at object.UnitTarget) config.UnitPath { return at.Unit }) {
		a.open[path] = open
	}
}

// runs are the parts of a list whose items have the same key; those with one stand
// together.
func runs[K comparable, T any](list []T, key func(T) K) iter.Seq2[K, []T] {
	return func(yield func(K, []T) bool) {
		for len(list) > 0 {
			of, n := key(list[0]), 1
			for n < len(list) && key(list[n]) == of {
				n++
			}
			if !yield(of, list[:n:n]) {
				return
			}
			list = list[n:]
		}
	}
}

// Clusters are those where something is to be done, sorted.
func (a *Agenda) Clusters() []string {
	var names []string
	for name, units := range a.actions {
		if len(units) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// At are the actions that are due on the targets of a cluster, by unit, then by target.
func (a *Agenda) At(cluster string) []Action {
	var actions []Action
	for _, path := range slices.Sorted(maps.Keys(a.actions[cluster])) {
		actions = append(actions, a.actions[cluster][path]...)
	}
	return actions
}

// Open are all places that something is done at, or that wait for what their objects will
// be, in no order.
func (a *Agenda) Open() []object.UnitTarget {
	return slices.Concat(slices.Collect(maps.Values(a.open))...)
}
