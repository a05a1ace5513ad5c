// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// The Leases carry the orders that keep writes from places, so that a daemon with another state,
// or with an older one, has them in force before it writes anything: see [fleet.Fleet.Inherited].

// maxCarried bounds what a Lease carries, in bytes. Annotations may have 256 KiB in all.
const maxCarried = 64 << 10

// tooMany is carried in place of more orders than have room.
var tooMany = pauseOfAll("there were more orders in force than a Lease can carry: see swell orders of the daemon before")

// pauseOfAll stands for orders that nobody knows.
func pauseOfAll(reason string) []order.Order {
	return []order.Order{{Verb: order.Pause, By: "swell", Reason: reason}}
}

// carried are the orders in force that Leases carry, as JSON; empty where there are none.
func carried(standing order.Standing) string {
	held := slices.DeleteFunc(slices.Clone(standing), func(o order.Order) bool { return !o.Verb.KeepsWrites() })
	if len(held) == 0 {
		return ""
	}
	text, err := json.Marshal(held)
	if err == nil && len(text) > maxCarried {
		text, err = json.Marshal(tooMany)
	}
	if err != nil {
		panic(err) // it is data
	}
	return string(text)
}

// inherit has orders in force that the Leases of clusters carry and that the state does not know.
func (p *pass) inherit() error {
	p.inherited = p.fleet.Inherited()
	for name, text := range p.inherited {
		var orders []order.Order
		if err := json.Unmarshal([]byte(text), &orders); err != nil { // nobody knows what it said
			orders = pauseOfAll(fmt.Sprintf("the orders that the Lease of cluster %s carries cannot be read: %s", name, err))
		}
		for i := range orders {
			if err := p.inheritOne(&orders[i], name); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritOne has an order in force that the Lease of a cluster carries. Whoever may write there
// has a say about that cluster, and about no other.
func (p *pass) inheritOne(o *order.Order, cluster string) error {
	first := *o // as it was given, before another daemon took it over for a cluster
	if first.Scope.Target == config.TargetName(cluster) {
		first.Scope.Target = ""
	}
	everywhere := nameOf(&first)
	switch {
	case o.Scope.Target == "":
		o.Scope.Target = config.TargetName(cluster)
	case o.Scope.Target.Cluster() != cluster:
		return nil
	}
	if !o.Over(p.r.At) && (o.Check(p.r.At) != nil || !isPrintable(o)) {
		*o = pauseOfAll("the Lease carries an order that is none")[0]
		o.Scope.Target = config.TargetName(cluster)
	}
	isThere := func(other order.Order) bool { // its end may have moved with the clock since
		isIn := other.Scope == o.Scope || other.Scope == first.Scope // as it is here, or everywhere
		isSame := other.Verb == o.Verb && isIn && other.By == o.By && other.Reason == o.Reason
		return isSame && (o.At.IsZero() || other.At.Equal(o.At))
	}
	if !o.Verb.KeepsWrites() || o.Over(p.r.At) || slices.ContainsFunc(p.orders.standing, isThere) {
		return nil
	}
	ended, err := p.tx.Ended()
	isEnded := func(name string) bool { return name == everywhere || name == nameOf(o) }
	if err != nil || slices.ContainsFunc(ended, isEnded) { // it was ended here, and a standby does not know that
		return err
	}
	if o.At.IsZero() {
		o.At = p.r.At
	}
	if err := p.tx.Inherit(o); err != nil {
		return err
	}
	p.orders.standing = append(slices.Clip(p.orders.standing), *o)
	p.noteOrder(o, o.Verb, orderText(o)+" (in force in the daemon that wrote before)")
	return nil
}

// isPrintable says whether the texts of an order are such as operators give.
func isPrintable(o *order.Order) bool {
	const most = 1000
	texts := []string{o.By, string(o.Scope.Unit), string(o.Scope.Target), o.Scope.Tenant, o.Scope.Wave}
	return !slices.ContainsFunc(texts, func(text string) bool {
		return len(text) > most || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	})
}

// maxEnded is how many orders that ended are remembered.
const maxEnded = 200

// noteEnded remembers that orders ended, so that none comes back from a standby.
func (p *pass) noteEnded(orders order.Standing) error {
	var names []string
	for i := range orders {
		if orders[i].Verb.KeepsWrites() {
			names = append(names, nameOf(&orders[i]))
		}
	}
	if len(names) == 0 {
		return nil
	}
	ended, err := p.tx.Ended()
	if err != nil {
		return err
	}
	ended = append(ended, names...)
	return p.tx.PutEnded(ended[max(0, len(ended)-maxEnded):])
}

// nameOf tells an order from all others, in every state that has it. One that was taken over
// from the Lease of a cluster is about that cluster, and ends for it alone.
func nameOf(o *order.Order) string {
	return fmt.Sprintf("%s %s %q %s", o.At.UTC().Format(time.RFC3339Nano), o.Verb, o.By, o.Scope.Text())
}

// carryOrders has the Leases carry the orders in force, now that those are stored.
func (d *Daemon) carryOrders(p *pass) {
	d.fleet.Carry(carried(d.orders.standing))
	for name, text := range p.inherited {
		d.fleet.Adopt(name, text)
	}
}
