// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Request is an order as an operator gives it.
type Request struct {
	Verb order.Verb `json:"verb" doc:"What is to be done" example:"pause"`
	// About are names: of a unit or a folder of units, and of a target or a cluster.
	About  []string `json:"about,omitempty" maxItems:"2" doc:"A unit or a folder of units, a target or a cluster, or one of each"`
	Tenant string   `json:"tenant,omitempty" doc:"Only what this tenant has"`
	Wave   string   `json:"wave,omitempty" doc:"Only targets of the wave with this name"`
	All    bool     `json:"all,omitempty" doc:"Everything: required where nothing else says what the order is about"`
	Reason string   `json:"reason,omitempty" doc:"One line, for the history"`
	// Until is when a standing order ends by itself; zero is never.
	Until time.Time `json:"until,omitzero" required:"false" doc:"When an order that stands ends by itself"`
	// For is how long a standing order is in force, in place of Until; see [order.ParseAmount].
	// Empty is until somebody ends it.
	For string `json:"for,omitempty" maxLength:"20" doc:"How long it is in force, in place of until"`
	// Digest is what an approval is about.
	Digest object.Digest `json:"digest,omitempty"`
	// To is the commit whose bundles a rollback puts back, or the number of a unit's rollout;
	// see [order.Order.To].
	To string `json:"to,omitempty" maxLength:"64" doc:"Of a rollback: a commit or a rollout's number; of an accept: the UID of kube-system"`
	// DryRun stores nothing; the answer says what the order would do.
	DryRun bool `json:"dryRun,omitempty" doc:"Store nothing, and say what the order would do"`
	// Expect is [Given.Digest] of a dry run: an order that would do something else is refused.
	Expect object.Digest `json:"expect,omitempty" doc:"Digest of a dry run: an order that would do something else by now is refused"`
	// IdempotencyKey makes one order of a request that is repeated.
	IdempotencyKey string `json:"idempotencyKey,omitempty" maxLength:"100" doc:"The same order under the same key is one order, for 24 hours"`
}

// Given is what became of a request.
type Given struct {
	// Order is as it was stored; its number is zero where it was not.
	Order order.Order `json:"order"`
	// Already is an order in force that says the same: then nothing was stored.
	Already *order.Order `json:"already,omitempty"`
	// Besides are other orders of the verb in force, or about to be, that have some of the same places.
	Besides []order.Order `json:"besides,omitempty"`
	// HeldBy are orders in force, or about to be, that keep what this one begins from being
	// written.
	HeldBy []order.Order `json:"heldBy,omitempty"`
	// Ends are the orders that this one ends.
	Ends []order.Order `json:"ends,omitempty"`
	// Notes say what the order does not do as things are: no target is meant, or another daemon
	// writes there.
	Notes []string `json:"notes,omitempty"`
	// Effects are what the order would do, of a dry run; Digest is theirs.
	Effects []rollout.Effect `json:"effects,omitempty"`
	Digest  object.Digest    `json:"digest,omitempty"`
}

// Who gives an order.
type Who struct {
	Name string
	Also []string // other names of the same person
}

// is says whether one of the names is of the person.
func (w Who) is(names []string) bool { return w.as(names) != "" }

// as is the first name of the person that is among others; empty when none is.
func (w Who) as(names []string) string {
	for _, name := range append([]string{w.Name}, w.Also...) {
		if slices.Contains(names, name) {
			return name
		}
	}
	return ""
}

// reasoned are the verbs that need a reason: who comes next has to know whether the order
// may be ended.
var reasoned = []order.Verb{order.Mask, order.Freeze, order.Retire, order.Exempt, order.Rollback, order.Accept}

// resolve makes an order of a request, and says what is wrong with it. It only reads.
func (v View) resolve(r Request, state *rollout.State, who Who, now time.Time) (order.Order, error) {
	o := order.Order{At: now.UTC(), By: who.Name, Verb: r.Verb, Reason: strings.TrimSpace(r.Reason), Until: r.Until, Digest: r.Digest}
	o.To = strings.ToLower(r.To)
	if r.For != "" {
		amount, err := order.ParseAmount(r.For)
		switch {
		case err != nil:
			return o, refuse(http.StatusUnprocessableEntity, "for %q: %s", r.For, err)
		case !r.Until.IsZero():
			return o, refuse(http.StatusUnprocessableEntity, "for and until: want one of them")
		}
		o.EndAfter(amount)
	}
	wantsScope := r.Verb == order.Retire || r.Verb == order.Exempt || r.Verb == order.Accept // that is not known yet
	if err := o.Check(now); err != nil && !wantsScope {
		return o, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	if o.Reason == "" && slices.Contains(reasoned, o.Verb) {
		return o, refuse(http.StatusUnprocessableEntity, "%s: want a reason", o.Verb).hint("--reason tells who comes next why")
	}
	if o.Verb == order.Approve {
		return o, refuse(http.StatusUnprocessableEntity, "approve: want POST /v1/plans/%s/approve", o.Digest)
	}
	scoped := len(r.About) > 0 || r.Tenant != "" || r.Wave != ""
	switch {
	case r.All && scoped:
		return o, refuse(http.StatusUnprocessableEntity, "--all and a name: want one of them")
	case !r.All && !scoped:
		return o, refuse(http.StatusUnprocessableEntity, "%s: want a unit, a target, a cluster, a tenant or a wave", o.Verb).hint("--all is everything")
	}
	known, err := v.known(o.Verb, state)
	if err != nil {
		return o, err
	}
	if o.Scope, err = known.scope(r); err != nil {
		return o, err
	}
	if err := o.Check(now); err != nil {
		return o, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	if number, numbered := o.ToRollout(); numbered && state.Units[o.Scope.Unit] == nil {
		return o, refuse(http.StatusUnprocessableEntity, "%s to %d: each unit numbers its own rollouts, so want one unit, or a commit", o.Verb, number).
			hint("swell describe UNIT lists what it can be put back to")
	}
	return o, nil
}

// Prepare makes an order of a request, and only reads. Of a dry run it says what the order
// would do; otherwise it refuses one that would not do what [Request.Expect] stands for.
func (v View) Prepare(r Request, who Who, now time.Time) (Given, error) {
	state, err := sync.LoadState(v.Store)
	if err != nil {
		return Given{}, err
	}
	o, err := v.resolve(r, state, who, now)
	if err != nil {
		return Given{Order: o}, err
	}
	notes, err := v.notes(&o, state, who, now)
	if err != nil {
		return Given{Order: o}, err
	}
	given := Given{Order: o}
	if r.DryRun {
		given, err = v.foresee(o, now)
	} else {
		err = v.expected(o, r.Expect, now)
	}
	given.Notes = notes
	return given, err
}

// once are the verbs that are carried out once, and of which it is known before whether
// there is something to do.
var once = []order.Verb{order.Promote, order.Rollback, order.Clear}

// hasWork refuses an order that nothing comes of, and gives it by the name of the person that
// the gates know. The notes say where nothing comes of it. The state is not of use afterwards.
func (v View) hasWork(o *order.Order, state *rollout.State, who Who, now time.Time) (notes []string, err error) {
	if o.Verb == order.Promote {
		o.By = knownAs(state, o.Scope, who)
	}
	bounds, err := v.bounds()
	if err != nil {
		return nil, err
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return nil, err
	}
	would := state.Effects(*o, bounds, standing, now)
	if len(would.Done) == 0 {
		return nil, refuse(http.StatusConflict, "%s of %s: there is nothing to do: %s", o.Verb, o.Scope.Text(), would.Idle)
	}
	return shutFor(would.Shut), nil
}

// knownAs is the name of a person by which the authors of releases and their gates are judged:
// one under which the person wrote something of the scope, or may approve it.
func knownAs(state *rollout.State, scope order.Scope, who Who) string {
	name := who.Name
	for path, u := range state.Units {
		if !scope.HasUnit(path, u.Tenant) {
			continue
		}
		if author := who.as(u.Authors()); author != "" {
			return author
		}
		for i := range u.Rollout.Spec.Waves {
			for _, g := range u.Rollout.Spec.Waves[i].Gates {
				if g.Approval != nil && !slices.Contains(g.Approval.By, name) {
					name = cmp.Or(who.as(g.Approval.By), name)
				}
			}
		}
	}
	return name
}

// Give stores an order that was prepared. The transaction should have nothing else to do.
func Give(tx *store.Tx, prepared Given, key string) (given Given, err error) {
	given = prepared
	o := given.Order
	if given.Order.Seq, err = tx.GivenAs(o, key); given.Order.Seq != 0 || err != nil {
		return given, err
	}
	standing, err := tx.Standing()
	if err != nil {
		return given, err
	}
	waiting, err := tx.Orders()
	if err != nil {
		return given, err
	}
	standing = slices.DeleteFunc(standing.With(waiting), func(is order.Order) bool { return is.Over(o.At) })
	if o.Verb.Stands() {
		for _, is := range standing.Of(o.Verb) {
			if is.Scope == o.Scope && is.Digest == o.Digest && (is.Until.IsZero() || !o.Until.IsZero() && !o.Until.After(is.Until)) {
				given.Already = &is
			} else if is.Scope.Meets(o.Scope) {
				given.Besides = append(given.Besides, is)
			}
		}
	}
	exempts := func(other order.Order) bool { return o.Scope.Within(other.Scope) }
	for _, verb := range o.Verb.HeldBy() {
		if verb == order.Freeze && slices.ContainsFunc(standing.Of(order.Exempt), exempts) {
			continue // it holds no exception
		}
		for _, is := range standing.Of(verb) {
			if is.Scope.Meets(o.Scope) {
				given.HeldBy = append(given.HeldBy, is)
			}
		}
	}
	if o.Verb.Ends() != "" {
		_, given.Ends = standing.EndedBy(&o)
	}
	switch {
	case given.Already != nil:
		return given, nil
	case o.Verb.Ends() != "" && len(given.Ends) == 0:
		return given, nothingToEnd(o, standing.Of(o.Verb.Ends()))
	}
	given.Order.Seq, err = tx.Give(o, key)
	return given, err
}

func nothingToEnd(o order.Order, standing order.Standing) error {
	if len(standing) == 0 {
		return refuse(http.StatusConflict, "%s: no %s is in force", o.Verb, o.Verb.Ends())
	}
	var texts []string
	for i := range standing {
		texts = append(texts, standing[i].Scope.Text()+" "+SinceText(&standing[i]))
	}
	return refuse(http.StatusConflict, "%s of %s: no %s of it is in force; there is %s of %s", o.Verb, o.Scope.Text(), o.Verb.Ends(), o.Verb.Ends(), document.SomeTexts(texts, 5)).
		hint("an order ends those with its own scope and those within it")
}

// SinceText says since when an order is in force, and by whose word.
func SinceText(o *order.Order) string {
	text := "since " + o.At.UTC().Format(time.RFC3339) + " " + o.Text()
	if !o.Until.IsZero() {
		text += ", until " + o.Until.UTC().Format(time.RFC3339)
	}
	return text
}

// names are what an order may be about.
type names struct {
	units []config.UnitPath
	store.Names
}

// known are the names that an order of the verb may have: what ends an order may name what
// is gone.
func (v View) known(verb order.Verb, state *rollout.State) (n names, err error) {
	rows, err := v.Store.UnitPaths()
	if err != nil {
		return n, err
	}
	n.units = rows
	if n.Names, err = v.Store.Names(); err != nil {
		return n, err
	}
	n.addState(state)
	if verb.Ends() == "" {
		return n, nil
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return n, err
	}
	waiting, err := v.Store.Orders()
	if err != nil {
		return n, err
	}
	for _, o := range standing.With(waiting).Of(verb.Ends()) {
		n.add(o.Scope)
	}
	return n, nil
}

// addState adds where units are, which no commit may name any more.
func (n *names) addState(state *rollout.State) {
	for path, u := range state.Units {
		for target, t := range u.Targets {
			n.add(order.Scope{Unit: path, Target: target})
			for _, tenant := range t.Tenants {
				n.add(order.Scope{Tenant: tenant.Name})
			}
		}
		for _, w := range u.Rollout.Spec.Waves {
			n.add(order.Scope{Wave: w.Name})
		}
	}
	for _, list := range []*[]string{&n.Clusters, &n.Tenants, &n.Waves} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	slices.Sort(n.Targets)
	n.Targets = slices.Compact(n.Targets)
	slices.Sort(n.units)
	n.units = slices.Compact(n.units)
}

func (n *names) add(scope order.Scope) {
	if scope.Unit != "" {
		n.units = append(n.units, scope.Unit)
	}
	if scope.Target != "" {
		n.Targets, n.Clusters = append(n.Targets, scope.Target), append(n.Clusters, scope.Target.Cluster())
	}
	if scope.Tenant != "" {
		n.Tenants = append(n.Tenants, scope.Tenant)
	}
	if scope.Wave != "" {
		n.Waves = append(n.Waves, scope.Wave)
	}
}

// scope is what a request is about.
func (n *names) scope(r Request) (s order.Scope, err error) {
	for _, name := range r.About {
		one, err := n.find(name)
		switch {
		case err != nil:
			return s, err
		case one.Unit != "" && s.Unit != "", one.Target != "" && s.Target != "":
			return s, refuse(http.StatusUnprocessableEntity, "%q and %q: want one unit or folder, and one target or cluster", r.About[0], name)
		case one.Unit != "":
			s.Unit = one.Unit
		default:
			s.Target = one.Target
		}
	}
	if s.Tenant = r.Tenant; s.Tenant != "" && !slices.Contains(n.Tenants, s.Tenant) {
		return s, refuse(http.StatusNotFound, "%q: no such tenant%s", s.Tenant, document.DidYouMean(s.Tenant, n.Tenants))
	}
	if s.Wave = r.Wave; s.Wave != "" && !slices.Contains(n.Waves, s.Wave) {
		return s, refuse(http.StatusNotFound, "%q: no such wave%s", s.Wave, document.DidYouMean(s.Wave, n.Waves))
	}
	return s, nil
}

// find is what a name is of: a unit or a folder of units, or else a target or a cluster.
func (n *names) find(given string) (order.Scope, error) {
	name := path.Clean(given)
	if name == "." || name == "/" {
		return order.Scope{}, refuse(http.StatusUnprocessableEntity, "%q: want a unit, a target or a cluster", given).hint("--all is everything")
	}
	if slices.ContainsFunc(n.units, func(u config.UnitPath) bool { return config.Within(string(u), name) }) {
		return order.Scope{Unit: config.UnitPath(name)}, nil
	}
	if slices.Contains(n.Targets, config.TargetName(name)) || slices.Contains(n.Clusters, name) {
		return order.Scope{Target: config.TargetName(name)}, nil
	}
	return order.Scope{}, refuse(http.StatusNotFound, "%q: no such unit, target or cluster%s", name, n.nearTo(name)).
		hint("swell get units and swell get targets list them")
}

// nearTo suggests a name: of a unit, or of something else where that is near.
func (n *names) nearTo(name string) string {
	others := map[string]bool{}
	for _, u := range n.units {
		for dir := path.Dir(string(u)); dir != "."; dir = path.Dir(dir) {
			others[dir] = true
		}
	}
	for _, t := range n.Targets {
		others[string(t)], others[t.Cluster()] = true, true
	}
	for _, c := range n.Clusters {
		others[c] = true
	}
	isNear := func(other string) bool { return document.IsNear(name, other) }
	if !slices.ContainsFunc(n.units, func(u config.UnitPath) bool { return isNear(string(u)) }) {
		if near := slices.DeleteFunc(slices.Sorted(maps.Keys(others)), func(other string) bool { return !isNear(other) }); len(near) > 0 {
			return document.DidYouMean(name, near)
		}
	}
	return didYouMean(name, n.units)
}

// Judge approves or rejects what waits under a digest: a plan of deletions, or a gate.
type Judge struct {
	Digest object.Digest
	Reject bool
	Reason string
}

// approvalOf is the order that approves the start of a wave; the error says that it would
// not count.
func approvalOf(ask order.Ask, j Judge, who Who, now time.Time) (order.Order, error) {
	o := order.Order{At: now.UTC(), By: who.Name, Verb: order.Approve, Scope: order.Scope{Unit: ask.Unit, Wave: ask.Wave}, Digest: j.Digest, Reason: j.Reason}
	lasts, err := time.ParseDuration(ask.Expires)
	switch {
	case err != nil:
		return o, err
	case who.is(ask.Authors):
		return o, refuse(http.StatusForbidden, "gate %s: %s is an author of what it brings: somebody else has to approve it", j.Digest.Short(), who.Name)
	case len(ask.By) > 0 && !who.is(ask.By):
		return o, refuse(http.StatusForbidden, "gate %s: %s may not approve it, want one of %s", j.Digest.Short(), who.Name, strings.Join(ask.By, ", "))
	}
	o.By = cmp.Or(who.as(ask.By), o.By) // the gate knows the person by this name
	o.EndAfter(lasts)
	return o, nil
}

// Judgement is what became of it.
type Judgement struct {
	Digest    object.Digest `json:"digest"`
	Deletions int           `json:"deletions,omitempty"` // of the plan
	Seq       int64         `json:"seq,omitempty"`       // of the order that approves a gate
	// Already is an earlier approval of the same: then nothing was stored.
	Already *Approved `json:"already,omitempty"`
}

// Judge carries out an approval or a rejection, in the store's own transaction.
func (v View) Judge(ctx context.Context, j Judge, who Who, now time.Time, update func(context.Context, func(*store.Tx) error) error) (done Judgement, err error) {
	if err := (&order.Order{Verb: order.Retry, Reason: j.Reason}).Check(now); err != nil {
		return done, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	is, err := v.Approvals(ctx)
	if err != nil {
		return done, err
	}
	done.Digest = j.Digest
	if a := is.Already(string(j.Digest)); a != nil {
		if j.Reject {
			return done, refuse(http.StatusConflict, "%s %s: %s: %s", a.Word(), j.Digest.Short(), store.ErrApproved, a.Text())
		}
		done.Already = a
		return done, nil
	}
	if i := slices.IndexFunc(is.Asks, func(ask order.Ask) bool { return ask.Digest == j.Digest }); i >= 0 {
		if j.Reject {
			return done, refuse(http.StatusConflict, "gate %s: a gate is not rejected", j.Digest.Short()).hint("swell pause holds the unit, swell rollback takes the release back")
		}
		o, err := approvalOf(is.Asks[i], j, who, now)
		if err != nil {
			return done, err
		}
		return done, update(ctx, func(tx *store.Tx) (err error) {
			done.Seq, err = tx.Give(o, "")
			return err
		})
	}
	for _, p := range is.Plans {
		if p.Digest == j.Digest {
			done.Deletions = len(p.Deletions)
		}
	}
	return done, update(ctx, func(tx *store.Tx) error {
		if j.Reject {
			return tx.Reject(j.Digest, store.Rejection{At: now, By: who.Name, Reason: j.Reason})
		}
		return tx.Approve(j.Digest, who.Name, now)
	})
}
