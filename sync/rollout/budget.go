// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Pending is a release that the commit wants and that has not begun.
type Pending struct {
	Release object.Digest `json:"release"`
	// Commit is the first that wanted it, and Since when that came.
	Commit config.Commit `json:"commit"`
	Since  time.Time     `json:"since"`
	// Changed is when a commit last wanted another one.
	Changed time.Time `json:"changed"`
	// Authors wrote what it brings.
	Authors []string `json:"authors,omitempty"`
	// Promoted says that an operator let it begin before its turn.
	Promoted bool `json:"promoted,omitempty"`
}

// counts are sums over all units, made when they are first asked for.
type counts struct {
	inFlight map[config.UnitPath]bool
	onTarget map[config.TargetName]int // units that are in change there
	// sought are the units that those in flight wait for on some target: without them, these
	// would keep their room for ever.
	sought map[config.UnitPath]bool
}

func (p *pass) count() *counts {
	if p.counts != nil {
		return p.counts
	}
	c := &counts{inFlight: map[config.UnitPath]bool{}, onTarget: map[config.TargetName]int{}, sought: map[config.UnitPath]bool{}}
	for path, u := range p.state.Units {
		if !u.settled {
			u.changes = u.inChange()
		}
		for _, name := range u.changes.on {
			c.onTarget[name]++
		}
		if len(u.changes.on) > 0 || u.changes.soaks {
			c.inFlight[path] = true
		}
	}
	for path := range c.inFlight {
		for _, at := range p.state.Units[path].changes.seeks {
			p.seek(c.sought, p.waitedFor(p.state.Units[path], at), at.name)
		}
	}
	p.counts = c
	return c
}

// inChange is how a unit counts in budgets.
type inChange struct {
	on    []config.TargetName // where it is in change
	soaks bool
	seeks []named // targets that are not as they should be, and may wait for other units
}

func (u *Unit) inChange() (is inChange) {
	deferred := u.deferredTurn()
	for _, at := range u.list() {
		isBehind := !at.applied() && !at.Fast && u.turn(at.Wave, at.Wanted == "") > deferred
		if at.inChange() && !isBehind {
			is.on = append(is.on, at.name)
		}
		if !at.applied() && (len(at.Needs) > 0 || at.Wanted == "" || len(u.afterUnits(at.Target)) > 0) {
			is.seeks = append(is.seeks, at)
		}
	}
	is.soaks = u.soaks(deferred)
	return is
}

// inChange says that the target was written and is not healthy since. One that waits for
// something that others bring is not: it would keep them from it. Nor is one that nothing is
// written to before somebody commits something.
func (t *Target) inChange() bool {
	return t.underway() && t.Masked == "" && !t.TriedAt.IsZero() && t.Trouble != TroubleDeferred && !t.isGone()
}

// turn puts waves in the order in which they are written: all are applied before the first is
// cleaned.
func (u *Unit) turn(wave int, removing bool) int {
	if removing {
		wave += len(u.Rollout.Spec.Waves)
	}
	return wave
}

// deferredTurn is the turn of the first target that waits for something that others bring.
// Later targets go on after it only, also where they were begun because it was masked, so
// they take no room from those others either.
func (u *Unit) deferredTurn() int {
	first := math.MaxInt
	for _, t := range u.list() {
		if t.Trouble == TroubleDeferred && t.Masked == "" && t.Wave >= 0 {
			first = min(first, u.turn(t.Wave, t.Wanted == ""))
		}
	}
	return first
}

// isGone says that the bundle of the target cannot be made again.
func (t *Target) isGone() bool { return t.Trouble == TroubleUnavailable && t.Gone }

// failures are the units that failed, by the commit that they failed on, sorted; nil when
// no budget bounds them.
func (p *pass) failures() map[config.Commit][]config.UnitPath {
	if p.bounds.Release.Budget.FailedUnits == nil || p.failed != nil {
		return p.failed
	}
	p.failed = map[config.Commit][]config.UnitPath{}
	for path, u := range p.state.Units {
		// A network is no fault of the commit, nor is a state that is older than the
		// cluster: such a unit, and one that somebody has tried again, begins anew.
		if u.failed() && !u.Rollout.Silence && u.Rollout.Release != "" {
			p.failed[u.Rollout.Commit] = append(p.failed[u.Rollout.Commit], path)
		}
	}
	for _, paths := range p.failed {
		slices.Sort(paths)
	}
	return p.failed
}

// soaks says that the wave under way was written, and not by a release that this one
// supersedes. One with a target up to there that waits for something that others bring, see
// [Unit.deferredTurn], does not end without them, and takes no room from them; nor does one
// whose removal gets no further, be it that the server refuses it or does not answer, or whose
// bundle is gone: nothing new runs there.
func (u *Unit) soaks(deferred int) (soaks bool) {
	if u.Rollout.Status != Progressing || u.turn(u.Rollout.Wave, u.Rollout.Removing) >= deferred {
		return false
	}
	for _, t := range u.list() {
		if !t.Touched || t.Wave != u.Rollout.Wave {
			continue
		}
		if t.isGone() || u.Rollout.Removing && t.Wanted == "" && t.debt() {
			return false
		}
		soaks = soaks || !t.TriedAt.IsZero() || t.applied() && !t.AppliedAt.Before(u.Rollout.StartedAt)
	}
	return soaks
}

// broken says why nothing more of a commit is released: too many units failed on it.
func (p *pass) broken(commit config.Commit) string {
	most := p.bounds.Release.Budget.FailedUnits
	if most == nil {
		return ""
	}
	failed := p.failures()[commit]
	if len(failed) <= *most {
		return ""
	}
	return fmt.Sprintf("commit %s broke %s, more than budget.failedUnits %d: %s: nothing more of it is released", commit.Short(), countUnits(len(failed)), *most, someUnits(failed))
}

func countUnits(n int) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
}

func areUnits(n int) string {
	if n == 1 {
		return "1 unit is"
	}
	return countUnits(n) + " are"
}

func someUnits(paths []config.UnitPath) string {
	const most = 3
	text := ""
	for i, path := range paths[:min(len(paths), most)] {
		if i > 0 {
			text += ", "
		}
		text += string(path)
	}
	if len(paths) > most {
		text += fmt.Sprintf(" and %d more", len(paths)-most)
	}
	return text
}

// full says why a budget lets no further target of the unit be changed now; empty when
// there is room, or when units in change wait for the unit. What is asked for is counted;
// what it waits for has its turn in the next Decide.
func (p *pass) full(u *Unit, name config.TargetName) string {
	if !p.bounds.Release.Budget.Counts() {
		return ""
	}
	text := p.isFull(u, name)
	if text == "" {
		p.take(u, name)
	}
	u.crowded = u.crowded || text != ""
	if !u.Targets[name].TriedAt.IsZero() { // what is tried again is not counted after this Decide
		u.restless, p.uncounted = true, true
	}
	return text
}

// take counts a target of the unit that comes to be in change.
func (p *pass) take(u *Unit, name config.TargetName) {
	if p.bounds.Release.Budget.Counts() {
		c := p.count()
		c.inFlight[u.Path] = true
		c.onTarget[name]++
	}
}

// isFull is [pass.full] that counts nothing.
func (p *pass) isFull(u *Unit, name config.TargetName) string {
	b := p.bounds.Release.Budget
	if !b.Counts() {
		return ""
	}
	c := p.count()
	if b.Units > 0 && !c.inFlight[u.Path] && len(c.inFlight) >= b.Units && !c.sought[u.Path] {
		return fmt.Sprintf("budget.units: %s in change in the fleet", areUnits(len(c.inFlight)))
	}
	if b.UnitsPerTarget > 0 && c.onTarget[name] >= b.UnitsPerTarget && !c.sought[u.Path] {
		return fmt.Sprintf("budget.unitsPerTarget: %s in change on %s", areUnits(c.onTarget[name]), name)
	}
	return ""
}

// seek notes units that are waited for on a target, and those that they wait for there.
func (p *pass) seek(sought map[config.UnitPath]bool, others []config.UnitPath, name config.TargetName) {
	seen := map[config.UnitPath]bool{}
	for len(others) > 0 {
		path := others[0]
		others = others[1:]
		if seen[path] {
			continue
		}
		seen[path], sought[path] = true, true
		if u := p.state.Units[path]; u != nil && u.Targets[name] != nil {
			others = slices.Concat(others, p.waitedFor(u, named{name, u.Targets[name]}))
		}
	}
}

// waitedFor are the units that one may wait for on a target: those that it needs and those
// that its wave starts after, or, where it leaves, those that have to leave first and the one
// that it became.
func (p *pass) waitedFor(u *Unit, target named) []config.UnitPath {
	if target.Wanted != "" {
		return slices.Concat(target.Needs, u.afterUnits(target.Target))
	}
	others := slices.Clone(p.dependentsOn(object.UnitTarget{Unit: u.Path, Target: target.name}))
	others = slices.DeleteFunc(others, func(path config.UnitPath) bool { // what it begins needs the unit still
		t := p.state.Units[path].Targets[target.name]
		return t.Wanted != "" && slices.Contains(t.Needs, u.Path)
	})
	if target.Successor != "" {
		others = append(others, target.Successor)
	}
	return others
}

// pend notes which release of the unit the commit wants that has not begun.
func (p *pass) pend(path config.UnitPath) {
	u, w := p.state.Units[path], p.want.Units[path]
	if p.held != "" || w == nil || w.frozen() != "" {
		return
	}
	if u == nil {
		u = p.newUnit(path, w)
	}
	if u.failedFor(w) {
		u.retry("", p.now)
		u.Rollout.Adopt = w.Adopt // once, also where the release has to wait
		p.state.touch(path)
	}
	was, release := u.Pending, w.Release()
	switch {
	case u.Rollout.Release == release && was == nil, was != nil && was.Release == release:
		return
	case u.Rollout.Release == release:
		u.Pending = nil
	default:
		u.Pending = &Pending{Release: release, Commit: p.want.Commit, Since: p.now, Changed: p.now,
			Authors: Union(p.want.Authors, p.want.Unreleased[path])}
		if was != nil { // it has waited since then, also for others that changed with it
			u.Pending.Since = was.Since
			u.Pending.Authors = Union(was.Authors, u.Pending.Authors)
		}
	}
	p.state.touch(path)
}

// Union is what is in any of two lists, each once, sorted.
func Union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// delayed says why the pending release of the unit does not begin yet; empty when it may.
func (p *pass) delayed(u *Unit, w *WantedUnit) string {
	if u.Pending.Promoted {
		return ""
	}
	if why := p.broken(u.Pending.Commit); why != "" {
		return why + "; " + u.promoteText()
	}
	if waits := p.earlierTiers(u, w); len(waits) > 0 && !p.areNeeded(waits)[u.Path] {
		return fmt.Sprintf("waits for units of an earlier tier that the commit changes too: %s; %s", someUnits(waits), u.promoteText())
	}
	return ""
}

func (u *Unit) promoteText() string {
	return order.Command("promote", u.Path) + " releases it all the same"
}

// earlierTiers are the units of earlier tiers whose release began, or was wanted, since
// the unit's own was first wanted, and is not done. Those with a problem are not
// among them: they would stop the others for as long as it is there.
func (p *pass) earlierTiers(u *Unit, w *WantedUnit) []config.UnitPath {
	if len(p.bounds.Release.Tiers) == 0 {
		return nil
	}
	if p.tiers == nil {
		p.tiers = map[int][]config.UnitPath{}
		for path, other := range p.want.Units {
			if other.frozen() == "" {
				p.tiers[other.Tier] = append(p.tiers[other.Tier], path)
			}
		}
	}
	at := turn{w.Tier, u.Pending.Since}
	waits, known := p.before[at]
	if known {
		return waits
	}
	for tier, paths := range p.tiers {
		for _, path := range paths {
			if tier < at.tier && p.inTheWay(path, at.since) {
				waits = append(waits, path)
			}
		}
	}
	slices.Sort(waits)
	if p.before == nil {
		p.before = map[turn][]config.UnitPath{}
	}
	p.before[at] = waits
	return waits
}

// areNeeded are the units that some of these need, or that one of those needs: they come
// first, whatever their tier is. The list is one of [pass.earlierTiers].
func (p *pass) areNeeded(by []config.UnitPath) map[config.UnitPath]bool {
	key := &by[0]
	if needed, known := p.needed[key]; known {
		return needed
	}
	needed, left := map[config.UnitPath]bool{}, slices.Clone(by)
	for len(left) > 0 {
		w := p.want.Units[left[0]]
		if left = left[1:]; w == nil {
			continue
		}
		for _, path := range w.neededUnits() {
			if !needed[path] {
				needed[path], left = true, append(left, path)
			}
		}
	}
	if p.needed == nil {
		p.needed = map[*config.UnitPath]map[config.UnitPath]bool{}
	}
	p.needed[key] = needed
	return needed
}

// turn is what it depends on which units come before another.
type turn struct {
	tier  int
	since time.Time
}

func (p *pass) inTheWay(path config.UnitPath, since time.Time) bool {
	u := p.state.Units[path]
	if u.Pending != nil {
		return !u.Pending.Changed.Before(since)
	}
	return u.Rollout.Status != Done && !u.Rollout.StartedAt.Before(since)
}
