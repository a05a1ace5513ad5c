// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// inherited makes a target that is new to the unit. Where another unit had the same objects,
// that the commit does not have any more, the unit was renamed: it can be put back to what
// that one had.
// Of numbers it takes over which rollouts brought that.
func (p *pass) inherited(u *Unit, name config.TargetName, numbers config.UnitPath) *Target {
	from := p.want.Renamed[object.UnitTarget{Unit: u.Path, Target: name}]
	before := p.state.Units[from]
	if before == nil || before.Targets[name] == nil || before.Targets[name].Good == "" {
		return &Target{}
	}
	before.Targets[name].Successor = u.Path
	p.state.touch(from)
	t := &Target{Good: before.Targets[name].Good, Ran: slices.Clone(before.Targets[name].Ran)}
	for _, p := range append(slices.Clone(t.Ran), Past{Digest: t.Good}) {
		if u.Origins == nil {
			u.Origins = map[object.Digest]config.UnitPath{}
		}
		u.Commits[p.Digest], u.Origins[p.Digest] = before.Commits[p.Digest], cmp.Or(before.Origins[p.Digest], from)
	}
	if from != numbers {
		for i := range t.Ran {
			t.Ran[i].Rollout = 0
		}
	}
	p.note(u, name, "renamed", fmt.Sprintf("it was unit %s there, and can be put back to that", from))
	return t
}

// numbersOf is the unit whose rollouts a new one goes on counting: the one that it was. A unit
// that has a past of its own, or is made of several, has none: their numbers say nothing here.
func (p *pass) numbersOf(u *Unit, w *WantedUnit) (from config.UnitPath) {
	if u.Rollout.ID > 1 {
		return ""
	}
	for name := range w.Targets {
		renamed := p.want.Renamed[object.UnitTarget{Unit: u.Path, Target: name}]
		if renamed != "" && from != "" && renamed != from {
			return ""
		}
		from = cmp.Or(from, renamed)
	}
	before := p.state.Units[from]
	if before == nil {
		return ""
	}
	for _, r := range before.past() {
		u.Rollout.ID = max(u.Rollout.ID, r.Rollout+1)
	}
	u.Releases = maps.Clone(before.Releases)
	return from
}

// awaitsSuccessor says that a unit which was renamed stays on a target: its successor is not
// well there yet, or failed, and goes back to what this one has.
func (p *pass) awaitsSuccessor(u *Unit, name config.TargetName, t *Target) bool {
	if t.Successor == "" || p.want.Units[t.Successor] == nil {
		return false
	}
	next := p.state.Units[t.Successor]
	if next != nil && (next.Rollout.Status == Progressing || next.Rollout.Status == Done) {
		if target := next.Targets[name]; target != nil && target.Wanted != "" && target.done() {
			return false
		}
	}
	p.reason(u, t, fmt.Sprintf("waits for unit %s, which has its objects by now, to be well there", t.Successor))
	return true
}
