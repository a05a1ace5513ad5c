// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// A target of which the state knows nothing may have what the commit wants of it: the state
// was lost, or the cluster was out of the fleet for a while. Before somebody is asked to approve
// its release, it is compared: a bundle that is live was approved once. All else is as usual:
// other gates, its wave, its soak, and the write, which changes nothing.

// SetFound says where objects were found that no bundle was applied to since. The units
// there are looked at again.
func (s *State) SetFound(places []object.UnitTarget) {
	s.found = make(map[object.UnitTarget]bool, len(places))
	for _, unitTarget := range places {
		s.found[unitTarget] = true
		if t := s.target(unitTarget); t != nil && t.Applied == "" {
			s.look(unitTarget.Unit)
		}
	}
}

// maxCompares is how often a comparison is tried at a server that does not tell.
const maxCompares = 3

// compare plans the comparison of a target that is about to start with what was found there,
// and reports whether that is still to be made. Where nobody would be asked, there is nothing
// to find out.
func (p *pass) compare(u *Unit, t named) bool {
	started := !t.TriedAt.IsZero() || t.Applied != "" || t.Dirty
	if !p.state.found[object.UnitTarget{Unit: u.Path, Target: t.name}] || started || t.compared == t.Wanted || !p.takesApproval(u, t) {
		return false
	}
	if p.early(u, t.name, t.Target) {
		return true
	}
	a := u.ActionFor(t.name, t.Wanted)
	a.Kind, a.Wave, a.Why = Compare, u.waveName(t.Target), WhyRollout
	p.plan.Actions = append(p.plan.Actions, a)
	return true
}

// takesApproval says that somebody has to approve the start of the target's wave, and that
// nothing else keeps it from starting.
func (p *pass) takesApproval(u *Unit, t named) bool {
	if why, _ := p.closed(u.at(t.name, t.Target)); why != "" || t.Wave < u.Rollout.StartsWaived {
		return false
	}
	return slices.ContainsFunc(u.Rollout.Spec.Waves[t.Wave].Gates, func(g config.Gate) bool { return g.Approval != nil && g.AtStart() })
}

// isLive says that the wanted bundle was live when the target was compared.
func (t *Target) isLive() bool { return t.Wanted != "" && t.compared == t.Wanted && t.live }

// compareEnded takes in what a comparison found. Where there was no answer, it is made again.
func (r *recording) compareEnded() {
	t := r.t
	switch {
	case !r.wanted() || t.Applied != "":
	case r.Result == Unreachable, r.Result == Unavailable && t.Attempts+1 < maxCompares:
		r.failed()
	default:
		t.compared, t.live = r.Digest, r.Result == Same
		r.settle()
	}
}
