// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
)

// A Decide looks at the units that something may have to be done for, and leaves the
// others alone: those cost it a look-up. A unit is looked at when
//
//   - it was changed, by an outcome for one, or a watch noticed something;
//   - its own time has come: a soak, a pause, a window;
//   - the commit wants something else of it;
//   - it waits for room in a budget, and other units are in change than before;
//   - it waits for another unit, or is restless for another reason;
//   - what concerns all units changed.
//
// That this leaves nothing out is what TestWorld and TestBounds look at: a state that was
// read from disk, of which every unit is looked at, has to decide the same.

// common is what decisions about any unit depend on besides that unit and its wake.
type common struct {
	bounds   bounds
	held     string
	withheld map[config.UnitPath]string
	failed   map[config.Commit][]config.UnitPath // while a budget bounds them
	counts   counts                              // while a budget bounds those
}

// rouse has all units looked at when what concerns all of them changed since the last
// Decide.
func (p *pass) rouse() {
	is, was := common{bounds: p.bounds, held: p.held, withheld: p.want.Withheld, failed: p.failures(), counts: p.state.common.counts}, p.state.common
	p.state.common = is
	if is.held == was.held && maps.Equal(is.withheld, was.withheld) &&
		equalFailed(is.failed, was.failed) && reflect.DeepEqual(is.bounds, was.bounds) {
		return
	}
	for _, u := range p.state.Units {
		u.settled = false
	}
}

func equalFailed(a, b map[config.Commit][]config.UnitPath) bool {
	return maps.EqualFunc(a, b, slices.Equal[[]config.UnitPath])
}

// recount counts again after units may have failed, or be done, and has those looked at
// that it concerns: all of them when other units have failed than before, and those that
// wait for room in a budget when other units are in change, or wait for others. It returns
// the units that are to be looked at now.
func (p *pass) recount(paths []config.UnitPath) []config.UnitPath {
	p.counts, p.failed, p.before = nil, nil, nil
	all := !equalFailed(p.failures(), p.state.common.failed)
	b := &p.bounds.Release.Budget
	room := b.Counts() && !p.count().equal(&p.state.common.counts, b)
	if !all && !room {
		return paths
	}
	p.state.common.failed, p.others = p.failures(), time.Time{}
	for _, path := range slices.Sorted(maps.Keys(p.state.Units)) {
		switch u := p.state.Units[path]; {
		case u.settled && (all || u.crowded):
			u.settled = false
			p.advance(u)
			paths = append(paths, path)
		case u.settled:
			p.others = earlier(p.others, u.wake)
		}
	}
	if p.counts = nil; b.Counts() {
		p.count() // before anything is asked for
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// equal says that a budget lets the same units through by both counts. Counts that were not
// kept are equal to none.
func (c *counts) equal(others *counts, b *config.Budget) bool {
	return others.inFlight != nil && maps.Equal(c.inFlight, others.inFlight) && maps.Equal(c.sought, others.sought) &&
		(b.UnitsPerTarget == 0 || maps.Equal(c.onTarget, others.onTarget))
}

// keepCounts keeps the counts that the next Decide compares its own with. Where units wait
// for room that another one has given up since these were counted, or one has taken room that
// waits for others, the next Decide comes at once and looks at them.
func (p *pass) keepCounts() {
	used := p.counts
	p.state.common.counts, p.counts = counts{}, nil
	if used == nil || p.uncounted {
		return
	}
	left := p.count()
	if p.state.waitsForBudget() && (used.exceed(left) || !maps.Equal(used.sought, left.sought)) {
		p.plan.Wake = earlier(p.plan.Wake, p.now)
		return
	}
	p.state.common.counts = *left
}

// exceed says that the counts have something in change that the others have not.
func (c *counts) exceed(others *counts) bool {
	for path := range c.inFlight {
		if !others.inFlight[path] {
			return true
		}
	}
	for name, n := range c.onTarget {
		if n > others.onTarget[name] {
			return true
		}
	}
	return false
}

// waitsForBudget says that a unit waits for room in a budget.
func (s *State) waitsForBudget() bool {
	for _, u := range s.Units {
		if u.crowded {
			return true
		}
	}
	return false
}

// concerned are the units of which the commit wants something new, and those that are to
// be looked at, sorted. The latter are not settled any more.
func (p *pass) concerned() []config.UnitPath {
	var paths []config.UnitPath
	known := 0
	for path, u := range p.state.Units {
		w := p.want.Units[path]
		if w != nil {
			known++
		}
		if !u.wake.IsZero() && !u.wake.After(p.now) || !u.over && u.wanted != w || p.held == "" && u.changesTenant(w) {
			u.settled = false
		}
		if !u.settled || p.held == "" && !u.current(w) {
			paths = append(paths, path)
		}
		if u.settled {
			p.others = earlier(p.others, u.wake)
		}
	}
	if p.held == "" && known < len(p.want.Units) {
		for path := range p.want.Units {
			if p.state.Units[path] == nil {
				paths = append(paths, path)
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// current says that the commit wants of the unit what its rollout brought.
func (u *Unit) current(w *WantedUnit) bool {
	if w == nil {
		return false
	}
	if why := w.frozen(); why != "" {
		return u.Blocked == why
	}
	return u.Blocked == "" && u.Rollout.Release == w.Release() && !u.failedFor(w)
}

// settle notes whether and when the unit has to be looked at again, and drops it when nothing is left
// of it.
func (p *pass) settle(u *Unit) {
	p.plan.Looked = append(p.plan.Looked, u.Path)
	if p.held == "" && p.want.Units[u.Path] == nil && len(u.Targets) == 0 {
		delete(p.state.Units, u.Path)
		p.state.touch(u.Path)
		return
	}
	p.plan.Wake = earlier(p.plan.Wake, u.wake)
	u.wanted, u.settled = p.want.Units[u.Path], !u.restless
	u.over = u.settled && u.wake.IsZero() && u.idle()
	if p.bounds.Release.Budget.Counts() {
		u.changes = u.inChange()
	}
}
