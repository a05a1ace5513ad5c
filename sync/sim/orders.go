// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// command writes an operator's order. It says which one; empty when there is no state to
// write it to.
func (w *world) command(verb order.Verb, scope order.Scope, lasts time.Duration) string {
	return w.issue(order.Order{By: "ann", Verb: verb, Scope: scope}, lasts)
}

// issue writes an order, with an end after some time; zero is none.
func (w *world) issue(o order.Order, lasts time.Duration) string {
	if _, err := os.Stat(w.disk.file()); err != nil || w.disk.full.Load() {
		return ""
	}
	w.judge.orderCount++
	g := &given{world: w, tag: fmt.Sprintf("order %d.", w.judge.orderCount), at: w.judge.elapsed, from: w.processes}
	g.Order, g.At, g.Reason = o, w.now(), g.tag
	switch {
	case lasts > 0 && o.Verb == order.Approve:
		g.EndAfter(lasts)
	case lasts > 0:
		g.Until = w.now().Add(lasts)
	}
	if w.process != nil {
		g.from = w.process.number + 1
	}
	err := w.say(func(tx *store.Tx) (err error) {
		g.seq, err = tx.Give(g.Order, "")
		return err
	})
	if err != nil {
		w.judge.objectf("state", "%s: %v", o.Verb, err)
	}
	w.judge.ordered(g)
	return fmt.Sprintf("%s %s %s %s", g.tag, o.Verb, o.Scope.Text(), lasts)
}

// standingVerbs are in force until another order ends them.
var standingVerbs = []order.Verb{order.Pause, order.Pause, order.Freeze, order.Mask, order.Mask, order.Retire}

// begin gives an order that stands.
func (w *world) begin() string {
	verb, a := pick(w.rand, standingVerbs...), w.someWhere()
	if name := w.writtenTo(); name != "" && w.rand.IntN(3) == 0 { // a job is to notice it
		said := w.command(order.Mask, order.Scope{Target: config.TargetName(name)}, 0)
		w.elapse(time.Second)
		return said
	}
	if verb == order.Retire {
		a.unit = ""
		if a.target == "" || w.rand.IntN(3) > 0 {
			return ""
		}
	}
	return w.command(verb, order.Scope{Unit: config.UnitPath(a.unit), Target: config.TargetName(a.target)}, pick(w.rand, 0, 0, 5*time.Minute, 40*time.Minute))
}

// lift ends an order that stands.
func (w *world) lift() string {
	var all []*given
	for _, g := range w.judge.given {
		if g.stands() && g.Verb.EndVerb() != "" {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		return ""
	}
	g := all[w.rand.IntN(len(all))]
	return w.command(g.Verb.EndVerb(), g.Scope, 0)
}

// once gives an order that is carried out once.
func (w *world) once() string {
	units := w.git.head.units
	if len(units) == 0 {
		return ""
	}
	unit := config.UnitPath(units[w.rand.IntN(len(units))].path)
	verb := pick(w.rand, order.Promote, order.Promote, order.Rollback, order.Clear, order.Reconcile)
	return w.issue(order.Order{By: w.somebody(), Verb: verb, Scope: order.Scope{Unit: unit}}, 0)
}

// somebody is one of the operators, where it matters who.
func (w *world) somebody() string {
	if w.shape.gated {
		return pick(w.rand, people...)
	}
	return people[0]
}

// liftAll ends what stands, as the state has it, and reports whether there was something.
func (w *world) liftAll() bool {
	if w.process == nil {
		return false
	}
	w.process.mu.Lock()
	is := [3]int{w.process.number, w.process.commits, w.judge.orderCount}
	w.process.mu.Unlock()
	if is == w.lifted {
		return false // nothing has changed since
	}
	w.lifted = is
	standing := w.standing()
	for i := range standing {
		if verb := standing[i].Verb.EndVerb(); verb != "" {
			w.tell("lift: %s", w.command(verb, standing[i].Scope, 0))
			w.stepped()
			return true
		}
	}
	return false
}

// standing are the orders in force as the state has them, with those that wait.
func (w *world) standing() order.Standing {
	standing, err := w.process.store.Standing()
	if err != nil {
		w.judge.objectf("state", "orders: %v", err)
	}
	waiting, err := w.process.store.Orders()
	if err != nil {
		w.judge.objectf("state", "orders: %v", err)
	}
	return standing.With(waiting)
}
