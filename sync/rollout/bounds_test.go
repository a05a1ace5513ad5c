// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// bounded is a world in which operators and the fleet's documents keep releases from
// writing, now and then, and gates say what they like. The judge of the plain world knows
// nothing of that; what must hold here is looked at here.
type bounded struct {
	*world
	bounds   Bounds
	standing order.Standing
}

// TestBounds plays random commits, failures, kills, masks, pauses, freezes, windows,
// budgets, tiers, gates and orders: nothing is written where something keeps it from that,
// a restart decides the same, and when all of that is over a good commit arrives
// everywhere.
func TestBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := &bounded{world: newWorld(t, mutation{})}
		for range 20 + b.draw(80) {
			b.restrict()
			b.happen()
			b.step()
		}
		b.release()
	})
}

// restrict is one thing that keeps releases from writing, or does no more.
func (b *bounded) restrict() {
	names := slices.Sorted(maps.Keys(targets))
	name, unit := names[b.draw(len(names))], units[b.draw(len(units))]
	toggle := func(verb order.Verb, scope order.Scope) {
		if i := slices.IndexFunc(b.standing, func(o order.Order) bool { return o.Verb == verb && o.Scope == scope }); i >= 0 {
			b.standing = slices.Delete(slices.Clone(b.standing), i, i+1)
			return
		}
		o := order.Order{Seq: int64(b.passes), At: b.now, By: "ann", Verb: verb, Scope: scope}
		if b.draw(2) == 0 {
			o.Until = b.now.Add(time.Duration(1+b.draw(60)) * time.Minute)
		}
		b.standing = append(slices.Clip(b.standing), o)
	}
	switch b.draw(14) {
	case 0:
		b.bounds.Masks = nil
		if b.draw(2) == 0 {
			b.bounds.Masks = []Mask{{Name: "m", Where: config.Where{Targets: []config.TargetName{name}}}}
		}
	case 1:
		toggle(order.Mask, order.Scope{Target: name})
	case 2:
		toggle(order.Pause, order.Scope{Unit: unit})
	case 3:
		toggle(order.Freeze, order.Scope{Target: config.TargetName(name.Cluster())})
	case 4:
		b.bounds.Windows = nil
		if b.draw(2) == 0 {
			b.bounds.Windows = []Window{{Name: "w", Deny: b.draw(2) == 0, Time: config.Timetable{Schedule: "*/30 * * * *", Duration: 10 * time.Minute}}}
		}
	case 5:
		failed := b.draw(2)
		b.bounds.Release = config.Release{Budget: config.Budget{FailedUnits: &failed, Units: b.draw(3), UnitsPerTarget: b.draw(2)}}
	case 6:
		b.bounds.Release.Tiers = [][]string{nil, {"canary"}}[b.draw(2)]
	case 7, 8:
		verb := []order.Verb{order.Promote, order.Rollback, order.Retry, order.Clear}[b.draw(4)]
		b.wants()
		b.state.Obey(order.Order{At: b.now, By: "ann", Verb: verb, Scope: order.Scope{Unit: unit}}, b.want, b.now)
	case 9:
		for _, ask := range b.state.Asks() {
			b.standing = append(slices.Clip(b.standing), order.Order{Seq: int64(b.passes), At: b.now, By: "bob", Verb: order.Approve, Digest: ask.Digest})
		}
	default:
		for _, q := range b.plan.Questions {
			b.state.Answer(Answer{Question: q, Kind: []AnswerKind{Yes, Yes, No, NoAnswer}[b.draw(4)], Reason: "because"}, b.now)
		}
	}
}

// wants gives the commit at hand what keeps releases from writing, and gates.
func (b *bounded) wants() {
	b.want.Bounds = b.bounds
	b.want.Order(b.standing)
	for path, u := range b.want.Units {
		if u.Tier = 0; path != "ns" {
			u.Tier = 1
		}
		if u.Rollout == nil || len(u.Rollout.Waves[1].Gates) > 0 || b.calm || len(path)%2 == 0 {
			continue
		}
		spec := *u.Rollout
		spec.Waves = slices.Clone(spec.Waves)
		spec.Waves[0].Gates = []config.Gate{{Prometheus: &config.PrometheusGate{Endpoint: "e", Query: "q", Every: 30 * time.Second}}, {Job: &config.JobGate{Name: "smoke"}}}
		spec.Waves[1].Gates = []config.Gate{{Approval: &config.ApprovalGate{Expires: time.Hour}}, {HTTP: &config.HTTPGate{Endpoint: "e", Path: "/", Every: time.Minute, Timeout: time.Hour}}}
		spec.Unreachable = config.Unreachable{Policy: []config.UnreachablePolicy{config.WaitForUnreachable, config.ExcuseUnreachable, config.HoldForUnreachable}[len(path)%3], After: time.Minute, Limit: config.Amount{Count: 1}}
		spec.FastRevert = len(path) == 5
		u.Rollout = &spec
	}
}

// step is a pass, and what must hold of its plan.
func (b *bounded) step() {
	b.wants()
	b.pass()
	if err := b.judge.objection; err != nil && len(err.Error()) > 31 && err.Error()[:31] == "a restart decides differently:\n" {
		b.t.Fatal(err)
	}
	b.judge.objection = nil
	for _, a := range b.plan.Actions {
		b.allowed(a)
	}
}

// allowed says what is wrong with an action.
func (b *bounded) allowed(a Action) {
	if a.Kind == Check && !a.Prune {
		return
	}
	place := config.Place{Unit: a.Unit, Target: a.Target}
	switch {
	case slices.ContainsFunc(b.bounds.Masks, func(m Mask) bool {
		return m.Where.Has(config.Place{Unit: a.Unit, Target: a.Target})
	}), b.standing.Holds(order.Mask, place, b.now) != nil:
		b.t.Fatalf("written at a masked place: %+v\n%s", a, b.dump())
	case a.Why != WhyDrift && b.standing.Holds(order.Pause, place, b.now) != nil:
		b.t.Fatalf("written by a paused release: %+v\n%s", a, b.dump())
	}
}

// release lets all of that be over, and expects a good commit to arrive everywhere.
func (b *bounded) release() {
	b.bounds, b.standing, b.calm = Bounds{}, nil, true
	clear(b.down)
	clear(b.distress)
	clear(b.ill)
	for _, at := range slices.SortedFunc(maps.Keys(b.underway), comparePlaces) {
		b.finish(at)
	}
	b.commit(true)
	for range 3000 {
		b.step()
		for _, q := range b.plan.Questions {
			b.state.Answer(Answer{Question: q, Kind: Yes}, b.now)
		}
		if left := b.left(); left == "" {
			return
		}
		if len(b.plan.Actions) == 0 && !b.plan.Wake.IsZero() {
			b.elapse(max(0, b.plan.Wake.Sub(b.now)))
		}
	}
	b.t.Fatalf("a good commit does not arrive: %s\n%s", b.left(), b.dump())
}

// left is a place that has not got what the commit brings; empty when there is none.
func (b *bounded) left() string {
	for _, path := range units {
		u := b.state.Units[path]
		if u == nil || u.Rollout.Status != Done || u.Blocked != "" || u.Rollout.Reason != "" {
			return string(path)
		}
		for name := range targets {
			if l := b.live[object.UnitTarget{Unit: path, Target: name}]; l == nil || l.digest != b.want.Units[path].Targets[name].Digest || l.mixed {
				return fmt.Sprintf("%s on %s", path, name)
			}
		}
	}
	return ""
}
