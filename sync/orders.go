// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// orders are what operators said. It is used by the pass only, but for what others set and tell.
type orders struct {
	moved    []order.Order  // whose ends moved with the clock, and are to be stored
	read     int64          // [store.Store.Changes] when they were read
	standing order.Standing // in force
	// lookedAt is when a pass looked for orders last, by the steady clock; nil before one of this
	// process did.
	lookedAt *time.Duration
	hurried  atomic.Bool   // see [Daemon.Hurry]; anybody sets it
	pushed   atomic.Bool   // see [Daemon.Pushed]; anybody sets it
	given    chan struct{} // told of each order; anybody tells it

	asks            []order.Ask   // that the store knows
	brought, stored store.Brought // of the last commit that was taken, and as the store knows it
	taken           taken         // that commit; zero after a restart

	names store.Names      // that the store knows
	named *render.Snapshot // what names was made of
}

// openOrders reads what is in force. What waits to be put in force counts: an operator who
// masks a cluster while the daemon is down means what it does when it starts.
func (d *Daemon) openOrders() (err error) {
	d.orders.read = -1
	if d.orders.standing, err = d.Store.Standing(); err != nil {
		return err
	}
	waiting, err := d.Store.Orders()
	if err != nil {
		return err
	}
	d.orders.standing = d.orders.standing.With(waiting)
	if d.orders.asks, err = d.Store.Asks(); err != nil {
		return err
	}
	if d.orders.stored, err = d.Store.Brought(); err != nil {
		return err
	}
	d.orders.brought = d.orders.stored
	d.orders.names, err = d.Store.Names()
	return err
}

// takeOrders carries out the orders that were given since the last time. An order, what
// it changed and its line in the history are stored at once, so it is carried out
// exactly once whenever the process ends.
func (p *pass) takeOrders() error {
	if err := p.readOrders(); err != nil {
		return err
	}
	if err := p.inherit(); err != nil {
		return err
	}
	if err := p.endOverdue(); err != nil {
		return err
	}
	p.putInForce()
	p.stopMasked()
	return nil
}

func (p *pass) readOrders() error {
	now := p.clock.steady()
	changes, err := p.tx.Changes()
	if err == nil && changes != p.orders.read {
		err = p.readChanges(changes)
	}
	p.orders.lookedAt = &now
	return err
}

// readChanges reads the orders of a store that changed.
func (p *pass) readChanges(changes int64) (err error) {
	if p.orders.standing, err = p.tx.Standing(); err != nil {
		return err
	}
	given, err := p.tx.Orders()
	if err != nil {
		return err
	}
	for i := range given {
		if err := p.obey(&given[i]); err != nil {
			return err
		}
	}
	p.orders.read = changes
	return nil
}

// lookFirst says whether orders wait, or end, that have something written. They are meant for
// what Git has by now, such as a fix that somebody put in by hand under a mask, so Git is looked
// at before. What stops writes waits for nothing.
func (d *Daemon) lookFirst(now time.Time) bool {
	for _, o := range d.orders.standing {
		if o.Over(now) {
			return true
		}
	}
	changes, err := d.Store.Changes()
	if err != nil || changes == d.orders.read {
		return false // the pass meets the error too
	}
	given, err := d.Store.Orders()
	if err != nil {
		return false
	}
	stops := func(o order.Order) bool { return o.Verb.KeepsWrites() }
	return len(given) > 0 && !slices.ContainsFunc(given, stops)
}

// putInForce has the orders in force count from now on. Where other targets are retired,
// other objects are to be deleted than were found before.
func (p *pass) putInForce() {
	if p.monorepo.wanted.Order(p.orders.standing) {
		p.guarded.pending, p.guarded.stale = nil, true
	}
}

// obey carries out one order, or puts it in force.
func (p *pass) obey(o *order.Order) error {
	if ago := p.clock.now().Sub(o.At); o.Relative && p.orders.isOtherClock(ago, p.clock.steady()) {
		o.Until = o.Until.Add(ago)
		if err := p.tx.PutEnd(o); err != nil {
			return err
		}
	}
	switch err := o.Check(p.timeFor(o)); {
	case err != nil: // its time is over, or another version of swell stored it
		p.noteOrder(o, o.Verb, fmt.Sprintf("%s (not carried out: %s)", o.Text(), err))
		return p.tx.DropOrder(o)
	case o.Verb.Stands():
		p.orders.standing = append(slices.Clip(p.orders.standing), *o)
		p.noteOrder(o, o.Verb, orderText(o))
		return p.tx.PutInForce(o)
	case o.Verb.Ends() != "":
		return p.endStanding(o)
	}
	if o.Verb == order.Accept {
		return p.accept(o)
	}
	if o.Verb == order.Retry || o.Verb == order.Reconcile {
		p.hurry() // it costs little, whatever the order is about
		p.sweeps.ledger.Resume(func(fought store.Object) bool {
			u := p.state.Units[fought.Unit]
			return u != nil && u.Targets[fought.Target] != nil && o.Scope.Has(u.Place(fought.Target))
		}, p.r.At)
	}
	if o.Verb == order.Reconcile {
		clusters := p.clustersIn(o.Scope)
		p.askSweeps(clusters)
		p.noteOrder(o, o.Verb, fmt.Sprintf("%s (Git, and %s for drift)", o.Text(), document.Count(len(clusters), "cluster")))
	} else {
		p.putInForce()
		p.r.Transitions = append(p.r.Transitions, p.state.Obey(*o, p.monorepo.wanted, p.r.At)...)
	}
	return p.tx.DropOrder(o)
}

// timeFor is the time by which the end of an order is judged: that of the pass, or, where somebody said when it
// ends, the wall as it is. It may have been set since the pass began.
func (p *pass) timeFor(o *order.Order) time.Time {
	if o.Relative {
		return p.r.At
	}
	return p.clock.wall()
}

// isOtherClock says that an order cannot have been given so long ago, as no pass looked meanwhile: the
// clock was set since.
func (o *orders) isOtherClock(ago, steady time.Duration) bool {
	return ago < -leastStep || o.lookedAt != nil && ago > steady-*o.lookedAt+leastStep
}

// endStanding ends the orders that another one ends.
func (p *pass) endStanding(o *order.Order) error {
	left, ended := p.orders.standing.EndedBy(o)
	text := orderText(o) + " (nothing was in force)"
	if len(ended) > 0 {
		text = orderText(o) + " ("
		for i := range ended {
			if i > 0 {
				text += ", "
			}
			text += fmt.Sprintf("ends %s of %s %s", ended[i].Verb, ended[i].Scope.Text(), ended[i].Text())
			if err := p.tx.DropOrder(&ended[i]); err != nil {
				return err
			}
		}
		text += ")"
	}
	p.orders.standing = left
	p.lookAgain(ended)
	p.noteOrder(o, o.Verb, text)
	return errors.Join(p.noteEnded(ended), p.tx.DropOrder(o))
}

// endOverdue ends the orders whose time is over.
func (p *pass) endOverdue() error {
	var left, over order.Standing
	for _, o := range p.orders.standing {
		if o.Over(p.timeFor(&o)) {
			over = append(over, o)
		} else {
			left = append(left, o)
		}
	}
	for i := range over {
		o := &over[i]
		p.noteOrder(o, cmp.Or(o.Verb.EndVerb(), o.Verb), fmt.Sprintf("the time of %s is over (%s)", o.Verb, orderText(o)))
		if err := p.tx.DropOrder(o); err != nil {
			return err
		}
	}
	p.orders.standing = left
	p.lookAgain(over)
	return p.noteEnded(over)
}

// lookAgain has the places that were masked compared with what was applied there.
func (p *pass) lookAgain(ended order.Standing) {
	for _, o := range ended.Of(order.Mask) {
		p.askSweeps(p.clustersIn(o.Scope))
	}
}

func (p *pass) askSweeps(clusters []string) {
	for _, name := range clusters {
		p.sweeps.timetable.Ask(name)
	}
}

// noteOrder adds an order to the history.
func (p *pass) noteOrder(o *order.Order, kind order.Verb, text string) {
	p.r.Transitions = append(p.r.Transitions,
		rollout.Transition{Time: p.r.At.UTC().Round(0), Unit: o.Scope.Unit, Target: o.Scope.Target, Wave: o.Scope.Wave, Kind: string(kind), Text: text})
}

// orderText is an order with what it is about and its end.
func orderText(o *order.Order) string {
	text := o.Scope.Text()
	if o.Digest != "" {
		text = o.Digest.Short()
	}
	if !o.Until.IsZero() {
		text += " until " + o.Until.UTC().Format(time.RFC3339)
	}
	return text + ", " + o.Text()
}

// clustersIn are the clusters that have something of a scope, sorted.
func (d *Daemon) clustersIn(scope order.Scope) []string {
	var names []string
	for _, name := range d.fleet.Names() {
		if scope.HasCluster(name) || d.hasPlaceIn(name, scope) {
			names = append(names, name)
		}
	}
	return names
}

func (d *Daemon) hasPlaceIn(cluster string, scope order.Scope) bool {
	for path, u := range d.state.Units {
		if !config.Within(string(path), string(scope.Unit)) {
			continue
		}
		for target := range u.Targets {
			if target.Cluster() == cluster && scope.Has(u.Place(target)) {
				return true
			}
		}
	}
	return false
}

// nextEnd is when the first order in force is over; zero is never.
func (d *Daemon) nextEnd() (next time.Time) {
	for _, o := range d.orders.standing {
		next = earliest(next, o.Until)
	}
	return next
}

// saveFacts stores what operators may name and what waits for their approval, where that
// changed.
func (p *pass) saveFacts() error {
	asks := p.state.Asks()
	if !reflect.DeepEqual(asks, p.orders.asks) {
		p.orders.asks = asks
		if err := p.tx.PutAsks(asks); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(p.orders.brought, p.orders.stored) {
		p.orders.stored = p.orders.brought
		if err := p.tx.PutBrought(p.orders.brought); err != nil {
			return err
		}
	}
	if s := p.monorepo.snapshot; s != p.orders.named && p.monorepo.isKnown() {
		p.orders.named = s
		if names := namesOf(s); !reflect.DeepEqual(names, p.orders.names) {
			p.orders.names = names
			return p.tx.PutNames(names)
		}
	}
	return nil
}

// namesOf are what operators may name in a commit, besides its units.
func namesOf(s *render.Snapshot) store.Names {
	var names store.Names
	targets, tenants, waves := map[config.TargetName]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range s.Repository.Clusters {
		names.Clusters = append(names.Clusters, c.Name)
		for _, whole := range []bool{false, true} {
			for _, t := range c.Targets(whole) {
				targets[t.Name] = true
			}
		}
	}
	for name := range s.Repository.Tenants {
		tenants[name] = true
	}
	for _, unit := range s.Units.All() {
		if unit.Tenant != "" {
			tenants[unit.Tenant] = true
		}
	}
	for _, r := range s.Repository.Rollouts {
		for _, w := range r.Waves {
			waves[w.Name] = true
		}
	}
	names.Targets, names.Tenants, names.Waves = sortedKeys(targets), sortedKeys(tenants), sortedKeys(waves)
	slices.SortFunc(names.Clusters, strings.Compare)
	return names
}

func sortedKeys[K ~string](set map[K]bool) []K {
	var keys []K
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Hurry makes the daemon look at Git, at kubeconfigs, and at clusters whose last look
// for drift failed, at once. It is safe for concurrent use.
func (d *Daemon) Hurry() {
	d.orders.hurried.Store(true)
	d.wake()
}

// Pushed makes the daemon look at the branch at once. It is safe for concurrent use.
func (d *Daemon) Pushed() {
	d.orders.pushed.Store(true)
	d.wake()
}

// Wake begins a pass, for an order that was stored. It is safe for concurrent use.
func (d *Daemon) Wake() {
	select {
	case d.orders.given <- struct{}{}:
	default: // it looks at all that were given
	}
	d.wake()
}

func (d *Daemon) hurry() {
	d.branch.again()
	d.sweeps.timetable.Hurry()
	d.fleet.Hurry()
}
