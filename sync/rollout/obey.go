// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
)

// Obey carries out an order that is carried out once: a retry, a promotion, a rollback, or
// the end of quarantines. The transitions say what was done, of kind [order.Order.Verb];
// one says that there was nothing to do.
func (s *State) Obey(o order.Order, want *Wanted, now time.Time) []Transition {
	transitions, does := s.obey(&o, want, now)
	if len(does.Done) == 0 {
		text := "there was nothing to do"
		if does.Idle != "" {
			text += ": " + does.Idle
		}
		transitions = append(transitions, Transition{Time: instant(now), Unit: o.Scope.Unit, Target: o.Scope.Target, Kind: string(o.Verb), Text: fmt.Sprintf("%s (%s)", o.Text(), text)})
	}
	return transitions
}

// Effect is what an order does to a unit, in one line.
type Effect struct {
	Unit config.UnitPath `json:"unit"`
	Text string          `json:"text"`
}

// Effects are what an order that is carried out once does, or would do.
type Effects struct {
	Done []Effect // by unit
	Shut []Effect // of units of which a gate stays shut, since the operator may not go past it: why
	Idle string   // why nothing is done, in words that are the same for many units; of no unit, empty
}

// Effects says what an order that is carried out once would do. The state is not of use
// afterwards.
func (s *State) Effects(o order.Order, b Bounds, standing order.Standing, now time.Time) Effects {
	_, would := s.obey(&o, &Wanted{Held: "the commit is not read", Bounds: b, Standing: standing}, now)
	if len(would.Done) == 0 && would.Idle == "" {
		would.Idle = "nothing of it was released"
	}
	return would
}

// obey carries an order out for all units that it is about, and says what it did to each.
func (s *State) obey(o *order.Order, want *Wanted, now time.Time) (transitions []Transition, does Effects) {
	p := &pass{state: s, want: want, held: want.Refused(), now: instant(now)}
	p.bound()
	reasons := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(s.Units)) {
		u := s.Units[path]
		if !o.Scope.HasUnit(path, u.Tenant) || o.Scope.Wave != "" && !u.hasWave(o.Scope.Wave) {
			continue
		}
		caused := len(p.plan.Transitions)
		did, idle, shut := p.obey(u, o)
		if did != "" {
			does.Done = append(does.Done, Effect{path, did})
			s.touch(path)
			p.note(u, "", string(o.Verb), joined(o.Text(), did))
			is := p.plan.Transitions // the order first, and then what it caused
			p.plan.Transitions = append(append(is[:caused:caused], is[len(is)-1]), is[caused:len(is)-1]...)
		} else if why := cmp.Or(shut, idle); why != "" {
			reasons[why] = true
		}
		if shut != "" {
			does.Shut = append(does.Shut, Effect{path, shut})
		}
	}
	if len(does.Done) == 0 {
		does.Idle = strings.Join(slices.Sorted(maps.Keys(reasons)), "; ")
	}
	return p.plan.Transitions, does
}

func (u *Unit) hasWave(name string) bool {
	for i := range u.Rollout.Spec.Waves {
		if u.Rollout.Spec.Waves[i].Name == name {
			return true
		}
	}
	return false
}

// obey carries the order out for one unit, and says what it did; or why there was nothing
// to do, in words that are the same for many units; or which gate is shut for the operator.
func (p *pass) obey(u *Unit, o *order.Order) (did, idle, shut string) {
	switch o.Verb {
	case order.Retry:
		waits, kept := u.waitsForRetry(o.Scope.Target), len(u.Quarantine)
		switch {
		case !u.retry(o.Scope.Target, p.now):
			return "", "nothing failed or waits", ""
		case !waits:
			return outOfQuarantine(kept), "", ""
		}
		return "tried again", "", ""
	case order.Promote:
		return p.promote(u, o)
	case order.Rollback:
		did, idle = p.rollBack(u, o)
		return did, idle, ""
	case order.Clear:
		if n := len(u.Quarantine); n > 0 {
			u.Quarantine = nil
			return outOfQuarantine(n), "", ""
		}
		return "", "nothing is in quarantine", ""
	}
	return "", "", ""
}

func outOfQuarantine(bundles int) string {
	if bundles == 1 {
		return "1 bundle is out of quarantine"
	}
	return fmt.Sprintf("%d bundles are out of quarantine", bundles)
}

// promote opens what the unit's release waits for: its turn; the gates at the start of the
// wave under way; else the soak and the gates at its end, and those at the start of the
// next one. A gate opens for those only who may open it, see [pass.keepsShut].
func (p *pass) promote(u *Unit, o *order.Order) (did, idle, shut string) {
	r, wave := u.Rollout, o.Scope.Wave
	if u.Pending != nil && !u.Pending.Promoted && u.BlockedBy == ObstacleTurn {
		u.Pending.Promoted = true
		return "its release begins before its turn", "", ""
	}
	if _, calm := u.relapse(); r.Status == Progressing && !calm && r.EndsWaived < u.passedWaves() {
		r.EndsWaived = u.passedWaves()
		return "what somebody changed in waves that were passed is let be; who is ill there is waited for", "", ""
	}
	if r.Status != Progressing || r.Removing || r.Wave >= len(r.Spec.Waves) {
		return "", "no wave of a release is under way", ""
	}
	name := r.Spec.Waves[r.Wave].Name
	if wave != "" && name != wave {
		return "", fmt.Sprintf("the wave under way is %s", name), ""
	}
	if text := p.broken(r.Commit); text != "" && !r.Promoted {
		r.Promoted = true
		return "it goes on although other units failed on its commit", "", ""
	}
	if r.StartsWaived <= r.Wave && u.starts(r.Wave, false) {
		if why := p.keepsShut(u, r.Wave, true, o); why != "" {
			return "", "", why
		}
		r.StartsWaived = r.Wave + 1
		return fmt.Sprintf("wave %s starts whatever its gates say", name), "", ""
	}
	if r.EndsWaived > r.Wave {
		return "", fmt.Sprintf("wave %s is promoted already", name), ""
	}
	if !u.begun(r.Wave) && !u.unproved(u.tally(r.Wave, false)) {
		return "", fmt.Sprintf("wave %s has not begun: it has no soak and no gate to end yet", name), ""
	}
	if why := p.keepsShut(u, r.Wave, false, o); why != "" {
		return "", "", why
	}
	r.EndsWaived = r.Wave + 1
	did = fmt.Sprintf("wave %s ends when it is healthy, whatever its soak and gates say", name)
	if r.StartsWaived <= r.Wave && u.starts(r.Wave, true) { // masked targets start later, with the gates waived
		shut = p.keepsShut(u, r.Wave, true, o)
	}
	if shut = cmp.Or(shut, p.keepsShut(u, r.Wave+1, true, o)); shut != "" {
		return did + "; what has not started does not: " + shut, "", shut
	}
	r.StartsWaived = r.Wave + 2
	return did, "", ""
}

// begun says that a target of a wave was written.
func (u *Unit) begun(wave int) bool {
	for _, t := range u.list() {
		if t.Wave == wave && (!t.TriedAt.IsZero() || t.Touched && t.applied()) {
			return true
		}
	}
	return false
}

// keepsShut says why an order opens no gates at the start, or at the end, of a wave; empty
// when it does. Who may not approve the gate may not go past it, and what was measured is
// passed over for a reason only.
func (p *pass) keepsShut(u *Unit, wave int, start bool, o *order.Order) string {
	if wave >= len(u.Rollout.Spec.Waves) {
		return ""
	}
	spec := &u.Rollout.Spec.Waves[wave]
	for n := range spec.Gates {
		gate := &spec.Gates[n]
		if gate.AtStart() != start || u.gateState(wave, n).Passed {
			continue
		}
		named := fmt.Sprintf("gate %s of wave %s", gate.Word(), spec.Name)
		switch {
		case gate.Approval != nil && slices.Contains(u.authorsOf(wave), o.By):
			return fmt.Sprintf("%s: %s is an author of what it brings", named, o.By)
		case gate.Approval != nil && len(gate.Approval.By) > 0 && !slices.Contains(gate.Approval.By, o.By):
			return fmt.Sprintf("%s: %s may not approve it", named, o.By)
		case gate.Approval == nil && o.Reason == "" && !p.isOpen(u, wave, n):
			return named + ": it takes --reason to go past it"
		}
	}
	return ""
}

// isOpen says that a gate which nobody approves lets the release through now.
func (p *pass) isOpen(u *Unit, wave, n int) bool {
	gate, known := &u.Rollout.Spec.Waves[wave].Gates[n], u.gateState(wave, n)
	switch {
	case gate.Window != nil:
		open, _ := gate.Window.At(p.now)
		return open
	case gate.Prometheus != nil:
		return !known.AskedAt.IsZero() && known.Reason == ""
	case gate.HTTP != nil:
		return known.Passed
	}
	for _, t := range u.list() {
		switch {
		case t.Wave != wave || t.Wanted == "" || t.Masked != "" || t.Excused:
		case gate.After != nil && !t.applied() && p.notAfter(gate.After.Unit, t.name) != "",
			gate.Job != nil && t.Touched && !t.proved(gate.Job.Name):
			return false
		}
	}
	return true
}

// starts says that a wave has gates at its start, and a target that was not written; of those
// that are masked only if masked is set.
func (u *Unit) starts(wave int, masked bool) bool {
	gated := slices.ContainsFunc(u.Rollout.Spec.Waves[wave].Gates, func(g config.Gate) bool { return g.AtStart() })
	if !gated {
		return false
	}
	for _, t := range u.list() {
		if t.Wave == wave && t.Wanted != "" && !t.applied() && t.TriedAt.IsZero() && (masked || t.Masked == "") {
			return true
		}
	}
	return false
}

// byHand is how the failure of a release begins that an operator took back.
const byHand = "rollback "

// wrote says that the rollout wrote to any target.
func (u *Unit) wrote() bool {
	return slices.ContainsFunc(u.list(), func(t named) bool { return t.Touched })
}

// rollBack puts back what the unit had before the release under way; or before the last
// one, where none is.
func (p *pass) rollBack(u *Unit, o *order.Order) (did, idle string) {
	r, without, why := u.Rollout, "", ""
	wasDone := r.Status == Done || u.Releases[r.ID] != "" // until a target caught up
	switch {
	case r.Status == RollingBack || r.Status == RolledBack && o.To == "":
		return "", fmt.Sprintf("it is %s already", r.Status)
	case o.To != "":
		if without, why = u.stepBackTo(o); why != "" {
			return "", why
		}
	case !wasDone && !u.wrote() && len(u.BackTo()) > 0:
		const text = "the release of commit %s has written nothing so far; --to puts back one before it: swell describe %s lists them"
		return "", fmt.Sprintf(text, r.Commit.Short(), u.Path)
	case wasDone && !u.stepBack(), !wasDone && !u.CanGoBack():
		return "", "no earlier bundle that passed its wave is known"
	}
	r.Stalled, r.Silence = false, false
	r.Failure = byHand + o.Text()
	if wasDone && o.To == "" {
		without = u.withoutPast()
	}
	r.Failure = joined(r.Failure, without)
	var written []config.TargetName
	for _, t := range u.list() {
		if t.Touched {
			written = append(written, t.name)
		}
	}
	did = u.backText(written)
	p.turnBack(u, written)
	return joined(did, without), ""
}
