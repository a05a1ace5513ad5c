// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// placed are the verbs that keep places from being written, or let them be.
var placed = []order.Verb{order.Mask, order.Freeze, order.Pause, order.Exempt}

// notes say what an order that is taken does not do: who gave it would take himself for safe.
// One of which nothing comes is refused. The state is not of use afterwards.
func (v View) notes(o *order.Order, state *rollout.State, who Who, now time.Time) (notes []string, err error) {
	if slices.Contains(once, o.Verb) {
		return v.hasWork(o, state, who, now)
	}
	if !o.Verb.Stands() && o.Verb.Ends() == "" {
		return nil, nil
	}
	if slices.Contains(placed, o.Verb) {
		if text := nowhere(o, state); text != "" {
			notes = append(notes, text)
		}
	}
	conditions, err := v.Store.Conditions()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, c := range conditions {
		name, isCluster := strings.CutPrefix(c.About, store.AboutCluster(""))
		isIn := o.Scope.Target == "" || o.Scope.Target.Cluster() == name
		if isCluster && isIn && strings.Contains(c.Text, fleet.AnotherWrites) {
			others = append(others, name)
		}
	}
	if slices.Sort(others); len(others) > 0 {
		notes = append(notes, fmt.Sprintf("on %s %s: give the order to that one; this one counts there only when this daemon takes over",
			document.SomeTexts(others, 5), fleet.AnotherWrites))
	}
	return notes, nil
}

// shutFor says of which units a gate stays shut, since the operator may not go past it, with the
// first reasons; nil for none.
func shutFor(shut []rollout.Effect) []string {
	if len(shut) == 0 {
		return nil
	}
	var units []string
	for _, e := range shut {
		units = append(units, fmt.Sprintf("%s (%s)", e.Unit, e.Text))
	}
	return []string{fmt.Sprintf("it opens no gate of %s that you may not pass: %s",
		document.Count(len(units), "unit"), document.SomeTexts(units, 5))}
}

// nowhere says that no target has all the names of an order, each of which is known; empty when
// one has, or when a unit of the scope is not released so far.
func nowhere(o *order.Order, state *rollout.State) string {
	var where []string
	for path, u := range state.Units {
		if !o.Scope.HasUnit(path, u.Tenant) {
			continue
		}
		if len(u.Targets) == 0 {
			return ""
		}
		for name := range u.Targets {
			target := u.Place(name)
			if o.Scope.Has(target) {
				return ""
			}
			where = append(where, fmt.Sprintf("%s on %s in wave %s", path, name, target.Wave))
		}
	}
	if len(where) == 0 {
		return ""
	}
	slices.Sort(where)
	return "so far it matches no target: there is " + document.SomeTexts(where, 3)
}
