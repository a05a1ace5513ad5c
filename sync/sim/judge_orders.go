// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// given is an order that somebody gave.
type given struct {
	order.Order
	world *world
	seq   int64
	tag   string // nobody else's, and in each line of the history about it
	at    time.Duration
	from  int // the first process that finds it when it starts

	taken   bool
	takenAt time.Duration
	heard   bool           // a pass told that it was carried out
	ended   bool           // another order that ends it was given, or its time is over
	endedAt time.Duration  // when
	waited  int            // passes that were told while it was not taken
	dirty   map[place]bool // where a write was under way when it was taken
	// inherited says that a Lease carried it from another state, and left that no pass has told
	// of it yet: it keeps writes back, and nothing in the state.
	inherited, left bool
}

// stands says that the order is one that stands, and that nobody has ended it.
func (g *given) stands() bool { return g.Verb.Stands() && !g.ended }

// holds says whether the order is in force for a place in a process: it was taken, or it
// was there when the process started.
func (g *given) holds(verb order.Verb, at place, p *process) bool {
	return g.Verb == verb && g.stands() && (g.taken || p.number >= g.from) && g.has(at)
}

func (g *given) has(at place) bool {
	wave := g.world.waveAt(at.target)
	return g.Scope.Has(config.Place{Unit: config.UnitPath(at.unit), Target: config.TargetName(at.target), Tenant: "shop", Wave: wave})
}

const (
	// lateTime is how long after a bound was lifted what was left out because of it
	// may not be there yet.
	lateTime = 5 * time.Minute
	// mostPasses is how many passes an order may wait.
	mostPasses = 4
)

// ordered notes an order.
func (j *judge) ordered(g *given) {
	switch g.Verb {
	case order.Retry, order.Clear:
		clear(j.failed)
	case order.Rollback:
		for _, u := range j.world.git.head.units {
			if g.Scope.HasUnit(config.UnitPath(u.path), "shop") {
				j.cause(u.path, "an operator's rollback")
			}
		}
	case order.Promote:
		j.promoted[string(g.Scope.Unit)] = true
		j.promotes[string(g.Scope.Unit)] = append(j.promotes[string(g.Scope.Unit)], g.By)
	}
	for _, other := range j.given {
		if other.Verb == g.Verb.Ends() && other.stands() && other.Scope.Within(g.Scope) {
			j.endOrder(other)
		}
	}
	j.given = append(j.given, g)
	j.world.stats.situation("order " + string(g.Verb))
}

func (j *judge) endOrder(g *given) { g.ended, g.endedAt = true, j.elapsed }

// endOver ends the orders whose time is over.
func (j *judge) endOver() {
	given := j.given
	if second := j.world.rival; second != nil {
		given = slices.Concat(given, second.disk.memory.given)
		for _, left := range j.left[second.number] {
			given = slices.Concat(given, left)
		}
	}
	for _, g := range given {
		if g.stands() && g.Over(j.world.now()) {
			j.endOrder(g)
		}
	}
}

// readOrders looks which orders a process has taken. They were given to one state: a
// second daemon, whose last write arrives when it is dead, has another.
func (j *judge) readOrders(p *process) {
	if j.lineage[p.number] != j.generation {
		return
	}
	p.mu.Lock()
	is := [3]int{p.number, p.commits, j.orderCount}
	p.mu.Unlock()
	if is == j.ordersOf || !slices.ContainsFunc(j.given, func(g *given) bool { return !g.taken }) {
		return
	}
	j.ordersOf = is
	waiting, err := p.store.Orders()
	if err != nil {
		j.objectf("state", "orders: %v", err)
	}
	for _, g := range j.given {
		if g.taken || slices.ContainsFunc(waiting, func(o order.Order) bool { return o.Seq == g.seq }) {
			continue
		}
		g.taken, g.takenAt, g.dirty = true, j.elapsed, j.dirtyNow()
		if told := j.toldOf(p, g); told == 0 {
			j.objectf("an order is carried out", "%s, %s of %s, is gone, and the history does not have it", g.tag, g.Verb, g.Scope.Text())
		}
	}
}

// toldOf is how many moments of the history an order was carried out at.
func (j *judge) toldOf(p *process, g *given) int {
	events, err := p.store.History("", 2000)
	if err != nil {
		j.objectf("state", "history: %v", err)
	}
	moments := map[time.Time]bool{}
	for _, e := range events {
		isEnd := strings.HasPrefix(e.Text, "the time of ")
		if e.Kind == string(g.Verb) && strings.Contains(e.Text, g.tag) && !strings.HasSuffix(e.Text, inherited) && !isEnd {
			moments[e.Time] = true
		}
	}
	return len(moments)
}

// ordersWaited counts the passes that orders waited for, and objects to one that is left.
func (j *judge) ordersWaited(p *process) {
	for _, g := range j.given {
		if g.taken || j.world.process != p {
			continue
		}
		if g.waited++; g.waited > mostPasses {
			j.objectf("an order is carried out", "%s, %s of %s, still waits after %d passes", g.tag, g.Verb, g.Scope.Text(), g.waited)
		}
	}
}

// inherited ends the line of an order that a Lease carried.
const inherited = "(in force in the daemon that wrote before)"

// inherits takes in an order that a Lease carried from another state.
func (j *judge) inherits(t rollout.Transition) {
	if !strings.HasSuffix(t.Text, inherited) {
		return
	}
	g := &given{world: j.world, tag: t.Text, at: j.elapsed, takenAt: j.elapsed, dirty: j.dirtyNow()}
	g.taken, g.heard, g.inherited = true, true, true
	g.Verb, g.Scope = order.Verb(t.Kind), order.Scope{Unit: t.Unit, Target: t.Target, Wave: t.Wave}
	if _, text, ok := strings.Cut(t.Text, " until "); ok {
		until, _, _ := strings.Cut(text, ",")
		g.Until, _ = time.Parse(time.RFC3339, until)
	}
	for _, known := range j.given {
		if known.taken && !known.inherited && known.stands() && strings.Contains(t.Text, known.tag) && g.Scope.Within(known.Scope) {
			j.objectf("an order is in force once", "%s is taken over from a Lease, and %s stands", t.Text, known)
		}
	}
	if slices.ContainsFunc(j.given, func(end *given) bool { return !end.taken && end.Verb.Ends() == g.Verb && g.Scope.Within(end.Scope) }) {
		j.endOrder(g) // somebody has ended it, and the pass after this one does so
	}
	j.given = append(j.given, g)
}

// endsInherited ends what a Lease carried and a pass took over after the order was given that ends
// it.
func (j *judge) endsInherited(t rollout.Transition) {
	for _, g := range j.given {
		if g.Verb.Ends() == "" || !strings.Contains(t.Text, g.tag) {
			continue
		}
		for _, other := range j.given {
			if other.inherited && other.Verb == g.Verb.Ends() && other.stands() && other.Scope.Within(g.Scope) {
				j.endOrder(other)
			}
		}
	}
}

// leftTo takes in what the Lease carries that a process reads. That is in force in its cluster
// once the process has the Lease, also where its state does not know it.
func (j *judge) leftTo(c *call) {
	if own := j.holders[c.process.number][c.cluster]; own != "" && j.holder == own {
		return
	}
	left := j.ordersIn(c.cluster)
	if c.process != j.world.rival {
		j.areLeft(c.cluster, left)
		return
	}
	if j.left[c.process.number] == nil {
		j.left[c.process.number] = map[string][]*given{}
	}
	j.left[c.process.number][c.cluster] = left
}

// ordersIn are those that the Lease of a cluster carried before the call under way. They are
// about that cluster alone.
func (j *judge) ordersIn(cluster string) (left []*given) {
	if j.carried == "" {
		return nil
	}
	var orders []order.Order
	if err := json.Unmarshal([]byte(j.carried), &orders); err != nil {
		j.objectf("state", "the Lease of %s: %v", cluster, err)
	}
	for _, o := range orders {
		switch {
		case o.Scope.Target == "":
			o.Scope.Target = config.TargetName(cluster)
		case o.Scope.Target.Cluster() != cluster:
			continue
		}
		g := &given{Order: o, world: j.world, tag: o.Reason, at: j.elapsed, takenAt: j.elapsed}
		g.taken, g.heard, g.inherited, g.left = true, true, true, true
		left = append(left, g)
	}
	return left
}

// areLeft has the orders in force that the Lease of a cluster carried when it was last read,
// and no others of those that it carried before.
func (j *judge) areLeft(cluster string, left []*given) {
	j.given = slices.DeleteFunc(j.given, func(g *given) bool { return g.left && g.Scope.Target.Cluster() == cluster && !g.ended })
	for _, g := range left {
		j.isLeft(g)
	}
}

// isLeft has an order in force that a Lease carried, unless the state knows what became of it.
func (j *judge) isLeft(g *given) {
	isKnown := func(known *given) bool {
		isThere := known.Scope.Target.Cluster() == g.Scope.Target.Cluster()
		if known.left && !isThere {
			return false // the Lease of another cluster has its part of the same order
		}
		return known.tag == g.tag || known.inherited && isThere && strings.Contains(known.tag, g.tag)
	}
	if slices.ContainsFunc(j.given, isKnown) {
		return
	}
	g.dirty = j.dirtyNow()
	j.given = append(j.given, g)
	j.world.stats.situation("a Lease leaves an order")
}

// carriedOut: no order was carried out twice.
func (j *judge) carriedOut(p *process) {
	for _, g := range j.given {
		if n := j.toldOf(p, g); g.taken && !g.inherited && n != 1 {
			j.objectf("an order is carried out once", "%s, %s of %s, %d times", g.tag, g.Verb, g.Scope.Text(), n)
		}
	}
}

// masked says by what a place is masked; empty when it is not.
func (j *judge) masked(at place, p *process) string {
	for _, g := range j.given {
		if g.holds(order.Mask, at, p) {
			return g.tag
		}
	}
	for _, a := range j.masks {
		newest := j.known[p.number]
		if a.has(at) && (newest == nil || newest.held || slices.Contains(newest.masks, a)) {
			return "Mask " + a.String()
		}
	}
	return ""
}

// wasBound says that a place is masked or retired, or was not long ago, or when the process
// started. A unit with a problem does not come back to what was retired before that is mended.
func (j *judge) wasBound(at place, p *process) bool {
	for _, g := range j.given {
		isOver := g.ended && j.elapsed-max(g.endedAt, p.since) >= lateTime && !(g.Verb == order.Retire && j.isBlocked(at.unit, p))
		if (g.Verb == order.Mask || g.Verb == order.Retire) && g.has(at) && !isOver {
			return true
		}
	}
	if c := j.known[p.number]; c != nil && slices.ContainsFunc(c.masks, func(a where) bool { return a.has(at) }) {
		return true // the pass that took it has told nothing yet
	}
	ended, was := j.maskEnded[at]
	return was && j.elapsed-ended < lateTime || slices.ContainsFunc(j.masks, func(a where) bool { return a.has(at) })
}

// isBlocked says that the commit that a process knows has a problem in the unit.
func (j *judge) isBlocked(unit string, p *process) bool {
	c := j.known[p.number]
	if c == nil || c.unit(unit) == nil {
		return false
	}
	return !j.goodIn(c, c.unit(unit))
}

// isRetired says that a target is retired, or was not long ago.
func (j *judge) isRetired(target string) bool {
	for _, g := range j.given {
		if g.Verb == order.Retire && g.has(place{"", target}) && (!g.ended || j.elapsed-g.endedAt < lateTime) {
			return true
		}
	}
	return false
}

// fleetIs takes in the Masks of a commit that a process works with.
func (j *judge) fleetIs(c *commit) {
	if c.held {
		return // those of the commit before hold
	}
	for at := range j.places {
		if slices.ContainsFunc(j.masks, func(a where) bool { return a.has(at) }) {
			j.maskEnded[at] = j.elapsed
		}
	}
	j.masks, j.windows = c.masks, c.windows
}

// bound: nothing is written at a masked place, and nothing new at a paused one. What the unit
// had there before another one took it over, and gave it up, is not new.
func (j *judge) bound(c *call, at *cluster, k key) {
	if c.process.isDead() {
		return // it was on its way
	}
	var places []place
	mark, unit := "", ""
	if c.method == http.MethodDelete {
		for _, e := range j.entriesOf(c, k, at.live[k].uid, at.live[k].unit) {
			places = append(places, place{string(e.Unit), string(e.Target)})
		}
	} else if b := bodyOf(c); b.unit() != "" {
		mark, unit = b.mark(), b.unit()
		places = append(places, place{unit, j.world.targetOf(c.cluster, k)})
	}
	why := ""
	for _, is := range places {
		if why = j.masked(is, c.process); why == "" {
			break
		}
	}
	if why != "" {
		j.objectf("nothing is written at a masked place", "%s: %v by %s", c.key(), places, why)
	}
	if l, there := at.live[k]; unit != "" && there && !l.going && l.mark != mark && !j.wasThere(unit, c.cluster, k, mark, there) {
		j.paused(c, places[0], fmt.Sprintf("%s is %s of unit %s, and gets %s", k, l.mark, l.unit, mark))
	}
}

// paused: a write of something new began before the pause.
func (j *judge) paused(c *call, at place, change string) {
	for _, g := range j.given {
		if !g.holds(order.Pause, at, c.process) || !g.taken {
			continue
		}
		if !g.dirty[at] || j.elapsed-g.takenAt > lateTime {
			j.objectf("what is paused is not written", "%s: %v, by %s: %s", c.key(), at, g.tag, change)
		}
	}
}

// targetOf is where an object of a unit is.
func (w *world) targetOf(cluster string, k key) string {
	cell, ok := strings.CutPrefix(k.namespace, "shop-")
	if k.kind == "Namespace" {
		cell, ok = strings.CutPrefix(k.name, "shop-")
	}
	if !ok {
		return cluster
	}
	return cluster + "/" + cell
}

func (g *given) String() string { return fmt.Sprintf("%s %s %s", g.tag, g.Verb, g.Scope.Text()) }
