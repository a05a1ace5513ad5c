// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// Pending is a release that the commit wants and that has not begun.
type Pending struct {
	Release render.Digest `json:"release"`
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
	failed   map[config.Commit][]config.UnitPath // by the commit that they failed on
	inFlight map[config.UnitPath]bool
	onTarget map[config.TargetName]int // units that are in change there
}

func (p *pass) count() *counts {
	if p.counts != nil {
		return p.counts
	}
	c := &counts{failed: map[config.Commit][]config.UnitPath{}, inFlight: map[config.UnitPath]bool{}, onTarget: map[config.TargetName]int{}}
	targets := p.bounds.Release.Budget.Units > 0 || p.bounds.Release.Budget.UnitsPerTarget > 0
	for path, u := range p.state.Units {
		// A network is no fault of the commit, nor is a state that is older than the
		// cluster: such a unit, and one that somebody has tried again, begins anew.
		if u.failed() && !u.Rollout.Silence && u.Rollout.Release != "" {
			c.failed[u.Rollout.Commit] = append(c.failed[u.Rollout.Commit], path)
		}
		if !targets {
			continue
		}
		for _, at := range u.list() {
			name, t := at.name, at.Target
			if t.inChange() {
				c.onTarget[name]++
				c.inFlight[path] = true
			}
		}
		if u.soaks() {
			c.inFlight[path] = true
		}
	}
	p.counts = c
	return c
}

// inChange says that the target was written and is not healthy since. One that waits for
// something that others bring is not: it would keep them from it.
func (t *Target) inChange() bool {
	return t.underway() && t.Masked == "" && !t.TriedAt.IsZero() && t.Trouble != TroubleDeferred
}

// soaks says that the wave under way was written.
func (u *Unit) soaks() bool {
	if u.Rollout.Status != Progressing {
		return false
	}
	for _, t := range u.list() {
		if t.Touched && t.Wave == u.Rollout.Wave && t.Trouble != TroubleDeferred {
			return true
		}
	}
	return false
}

// broken says why nothing more of a commit is released: too many units failed on it.
func (p *pass) broken(commit config.Commit) string {
	most := p.bounds.Release.Budget.FailedUnits
	if most == nil {
		return ""
	}
	failed := p.count().failed[commit]
	if len(failed) <= *most {
		return ""
	}
	slices.Sort(failed)
	return fmt.Sprintf("commit %s broke %s, more than budget.failedUnits %d: %s: nothing more of it is released", commit.Short(), countUnits(len(failed)), *most, someUnits(failed))
}

func countUnits(n int) string {
	if n == 1 {
		return "1 unit"
	}
	return fmt.Sprintf("%d units", n)
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
// there is room, or when units in change wait for the unit. What is asked for is counted.
func (p *pass) full(u *Unit, name config.TargetName) string {
	text := p.isFull(u, name)
	if b := p.bounds.Release.Budget; text == "" && b.Units+b.UnitsPerTarget > 0 {
		c := p.count()
		c.inFlight[u.Path] = true
		c.onTarget[name]++
	}
	return text
}

// isFull is [pass.full] that counts nothing.
func (p *pass) isFull(u *Unit, name config.TargetName) string {
	b := p.bounds.Release.Budget
	if b.Units == 0 && b.UnitsPerTarget == 0 {
		return ""
	}
	c := p.count()
	if b.Units > 0 && !c.inFlight[u.Path] && len(c.inFlight) >= b.Units && !p.awaited(u.Path) {
		return fmt.Sprintf("budget.units: %s of the fleet are in change", countUnits(len(c.inFlight)))
	}
	if b.UnitsPerTarget > 0 && c.onTarget[name] >= b.UnitsPerTarget && !p.awaited(u.Path) {
		return fmt.Sprintf("budget.unitsPerTarget: %s are in change on %s", countUnits(c.onTarget[name]), name)
	}
	return ""
}

// awaited says whether a unit in change waits for this one on some target: without it,
// that one would keep its room for ever.
func (p *pass) awaited(path config.UnitPath) bool {
	for other := range p.count().inFlight {
		for _, at := range p.state.Units[other].list() {
			if !at.applied() && p.reaches(other, path, at.name, nil) {
				return true
			}
		}
	}
	return false
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
	was, release := u.Pending, w.Release()
	switch {
	case u.Rollout.Release == release && was == nil, was != nil && was.Release == release:
		return
	case u.Rollout.Release == release:
		u.Pending = nil
	default:
		u.Pending = &Pending{Release: release, Commit: p.want.Commit, Since: p.now, Changed: p.now, Authors: p.want.Authors}
		if was != nil { // it has waited since then, also for others that changed with it
			u.Pending.Since = was.Since
			u.Pending.Authors = union(was.Authors, u.Pending.Authors)
		}
	}
	p.state.touch(path)
}

// union is what is in any of two sorted lists, sorted.
func union(a, b []string) []string {
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
	if waits := p.earlierTiers(u, w); len(waits) > 0 {
		return fmt.Sprintf("waits for units of an earlier tier that the commit changes too: %s; %s", someUnits(waits), u.promoteText())
	}
	return ""
}

func (u *Unit) promoteText() string {
	return fmt.Sprintf("swell promote %s releases it all the same", u.Path)
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
	var waits []config.UnitPath
	for _, tier := range slices.Sorted(maps.Keys(p.tiers)) {
		if tier >= w.Tier {
			break
		}
		for _, path := range p.tiers[tier] {
			if p.inTheWay(path, u.Pending.Since) {
				waits = append(waits, path)
			}
		}
	}
	slices.Sort(waits)
	return waits
}

func (p *pass) inTheWay(path config.UnitPath, since time.Time) bool {
	u := p.state.Units[path]
	if u.Pending != nil {
		return !u.Pending.Changed.Before(since)
	}
	return u.Rollout.Status != Done && !u.Rollout.StartedAt.Before(since)
}
