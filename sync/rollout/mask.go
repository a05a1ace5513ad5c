// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// bounds are what keeps releases from writing, as far as it is known from documents and
// orders.
type bounds struct {
	Bounds
	standing order.Standing // those whose time is not over
}

// bound takes in what keeps releases from writing now.
func (p *pass) bound() {
	is := bounds{Bounds: p.want.Bounds}
	for _, o := range p.want.Standing {
		if o.Over(p.now) {
			continue
		}
		is.standing = append(is.standing, o)
		if !o.Until.IsZero() {
			p.plan.Wake = earlier(p.plan.Wake, o.Until)
		}
	}
	p.bounds = is
}

// Place is one of the unit's targets as documents and orders see it.
func (u *Unit) Place(name config.TargetName) config.Place { return u.at(name, u.Targets[name]) }

// at is a place of the unit as documents and orders see it.
func (u *Unit) at(name config.TargetName, t *Target) config.Place {
	return config.Place{Unit: u.Path, Tenant: u.Tenant, Target: name, Labels: t.Labels, Wave: u.waveName(t)}
}

// under is the standing order of the verb that holds for a place; nil for none.
func (b *bounds) under(verb order.Verb, at config.Place, now time.Time) *order.Order {
	return b.standing.Holds(verb, at, now)
}

// mask says why nothing may be written at a place; empty when it may.
func (b *bounds) mask(at config.Place, now time.Time) string {
	for _, m := range b.Masks {
		if m.Where.Has(at) {
			return fmt.Sprintf("masked by Mask %s%s", m.Name, reasonText(m.Reason))
		}
	}
	if o := b.under(order.Mask, at, now); o != nil {
		return "masked " + o.Text()
	}
	return ""
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// Masked says why nothing may be written at a place, of any sort; empty when it may.
func (s *State) Masked(want *Wanted, place object.UnitTarget, now time.Time) string {
	b := bounds{Bounds: want.Bounds, standing: want.Standing}
	if len(b.Masks)+len(b.standing) == 0 {
		return ""
	}
	return b.mask(s.placeOf(want, place), now)
}

// Paused says why nothing is written at a place for a release or a rollback; empty when it
// may be.
func (s *State) Paused(want *Wanted, target object.UnitTarget, now time.Time) string {
	b := bounds{Bounds: want.Bounds, standing: want.Standing}
	if len(b.standing) == 0 {
		return ""
	}
	return b.paused(s.placeOf(want, target), now)
}

// placeOf returns the place as masks and orders see it.
func (s *State) placeOf(want *Wanted, target object.UnitTarget) config.Place {
	if u := s.Units[target.Unit]; u != nil && u.Targets[target.Target] != nil {
		return u.Place(target.Target)
	}
	seen := config.Place{Unit: target.Unit, Target: target.Target}
	if w := want.Units[target.Unit]; w != nil {
		seen.Tenant, seen.Labels = w.Tenant, w.Targets[target.Target].Labels
	}
	return seen
}

// mask brings up to date which targets of the unit are masked, and which of these were ill
// before it, and still are.
func (p *pass) mask(u *Unit) {
	if w := p.want.Units[u.Path]; p.held == "" && u.changesTenant(w) {
		u.Tenant = w.Tenant
		p.state.touch(u.Path)
	}
	for _, at := range u.list() {
		name, t := at.name, at.Target
		text := p.bounds.mask(u.at(name, t), p.now)
		ill := text != "" && t.isIll() && (t.Masked == "" || t.MaskedIll)
		if t.Masked != text || t.MaskedIll != ill {
			t.Masked, t.MaskedIll = text, ill
			p.state.touch(u.Path)
		}
	}
}

// changesTenant says that the commit gives the unit to another tenant. One that cannot tell
// whose the unit is, because the folder's Defaults have a problem, does not.
func (u *Unit) changesTenant(w *WantedUnit) bool {
	return w != nil && u.Tenant != w.Tenant && (w.Tenant != "" || w.Frozen == "")
}

// stopped says why no release, and no rollback, writes or deletes at a place; empty when
// they may.
func (p *pass) stopped(at config.Place) string { return p.bounds.paused(at, p.now) }

// paused says by which order nothing is written at a place.
func (b *bounds) paused(scope config.Place, now time.Time) string {
	if o := b.under(order.Pause, scope, now); o != nil {
		return "paused " + o.Text()
	}
	return ""
}

// closed says why no release starts at a place now, empty when it may, and until when
// that holds; zero is for as long as nothing happens.
func (p *pass) closed(at config.Place) (why string, until time.Time) {
	if o := p.bounds.under(order.Exempt, at, p.now); o != nil {
		return "", o.Until
	}
	if o := p.bounds.under(order.Freeze, at, p.now); o != nil {
		return "frozen " + o.Text(), time.Time{}
	}
	shut, open, opens := "", false, time.Time{}
	for _, w := range p.bounds.Windows {
		if !w.Where.Has(at) {
			continue
		}
		is, changes := w.Time.At(p.now)
		until = earlier(until, changes)
		switch {
		case w.Deny && is:
			return fmt.Sprintf("Window %s lets nothing start%s%s", w.Name, beforeText(changes), reasonText(w.Reason)), until
		case w.Deny:
		case is:
			open = true
		case shut == "" || !changes.IsZero() && (opens.IsZero() || changes.Before(opens)):
			shut, opens = w.Name, changes
		}
	}
	if open || shut == "" {
		return "", until
	}
	return fmt.Sprintf("Window %s %s", shut, opensText(opens)), until
}

// beforeText says until when something holds; zero is for good.
func beforeText(end time.Time) string {
	if end.IsZero() {
		return ""
	}
	return " before " + clock(end)
}

// opensText says when something opens that is shut; zero is never.
func opensText(opens time.Time) string {
	if opens.IsZero() {
		return "does not open any more"
	}
	return "opens at " + clock(opens)
}

// openText says until when something is open; zero is for good.
func openText(closes time.Time) string {
	if closes.IsZero() {
		return "open at all times"
	}
	return "open until " + clock(closes)
}

// clock is a time in a text. The time must not be zero.
func clock(at time.Time) string { return at.UTC().Format(time.RFC3339) }
