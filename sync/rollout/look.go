// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Look reads how the waves of units stand at a time, by the rules that [State.Decide]
// follows. It decides nothing and changes nothing that is stored.
type Look struct{ p *pass }

// Look prepares the state to be read: what the fleet's documents and orders keep releases
// from, at a time.
func (s *State) Look(b Bounds, standing order.Standing, now time.Time) *Look {
	const unread = "the commit is not read"
	p := &pass{state: s, want: &Wanted{Held: unread}, held: unread, now: instant(now), bounds: bounds{Bounds: b}}
	for _, o := range standing {
		if !o.Over(p.now) {
			p.bounds.standing = append(p.bounds.standing, o)
		}
	}
	return &Look{p}
}

// Phase is where a wave is on the way of its rollout.
type Phase string

const (
	PhasePassed     Phase = "passed"
	PhaseUnderWay   Phase = "under way"
	PhaseAhead      Phase = "ahead" // its turn has not come
	PhaseHeld       Phase = "held"  // the rollout is held in it
	PhaseGoesBack   Phase = "rolling back"
	PhaseBack       Phase = "rolled back"
	PhaseNotReached Phase = "not reached" // the rollout ended before it
	PhaseCleaning   Phase = "cleaning"    // all are passed, and the unit leaves targets of this one
	PhaseToClean    Phase = "to clean"    // the same, and an earlier wave is cleaned first
)

// WaveLook is how a wave stands.
type WaveLook struct {
	*config.Wave
	Phase Phase
	// Targets are all of the wave, sorted by name, those that the unit leaves too.
	// Failed, Waiting, Masked and Excused are those that are not as they should be.
	Targets, Failed, Waiting, Masked, Excused []config.TargetName
	// SoakFrom and SoakEnds say when the soak under way began and when it ends; zero while
	// the wave does not soak.
	SoakFrom, SoakEnds time.Time
	// Unproved says that nothing of the wave can be written, and that no earlier wave
	// proved the release.
	Unproved bool
	GateLook []GateLook
	Holds    []Hold
}

// Waves are the waves of a unit's rollout, in order.
func (l *Look) Waves(u *Unit) []WaveLook {
	waves := make([]WaveLook, len(u.Rollout.Spec.Waves))
	for i := range waves {
		w := &waves[i]
		w.Wave, w.Phase = &u.Rollout.Spec.Waves[i], u.phase(i)
		y := u.tally(i, false)
		left := u.tally(i, true)
		w.Failed, w.Waiting = slices.Concat(y.debts, left.debts), slices.Concat(y.waiting, left.waiting)
		w.Masked, w.Excused = slices.Concat(y.masked, left.masked), slices.Concat(y.excused, left.excused)
		for _, at := range u.list() {
			if at.Wave == i {
				w.Targets = append(w.Targets, at.name)
			}
		}
		if w.Phase == PhaseUnderWay {
			w.Unproved = i >= u.Rollout.EndsWaived && u.unproved(y)
			if end := y.soakEnd(); y.quiet() && i >= u.Rollout.EndsWaived && end.After(l.p.now) {
				w.SoakFrom, w.SoakEnds = y.last, end
			}
		}
		for n := range w.Gates {
			w.GateLook = append(w.GateLook, l.gate(u, i, n, w))
		}
		w.Holds = l.holds(u, w)
	}
	return waves
}

func (u *Unit) phase(wave int) Phase {
	r := u.Rollout
	switch {
	case r.Status == Progressing && r.Removing && wave > r.Wave && u.leaves(wave):
		return PhaseToClean
	case r.Status == Done, r.Status == Progressing && (r.Removing && wave != r.Wave || !r.Removing && wave < r.Wave):
		return PhasePassed
	case r.Status == Progressing && r.Removing:
		return PhaseCleaning
	case r.Status == Progressing && wave == r.Wave:
		return PhaseUnderWay
	case r.Status == Progressing:
		return PhaseAhead
	case wave > r.Wave:
		return PhaseNotReached
	case r.Status == Held && wave < r.Wave:
		return PhasePassed
	case r.Status == Held:
		return PhaseHeld
	case r.Status == RollingBack:
		return PhaseGoesBack
	}
	return PhaseBack
}

// leaves says that the unit has something on a target of the wave that it leaves.
func (u *Unit) leaves(wave int) bool {
	return slices.ContainsFunc(u.list(), func(t named) bool { return t.Wave == wave && t.Wanted == "" && !t.applied() })
}

// isPassed says that a wave of the phase was passed, and is at most cleaned since.
func (p Phase) isPassed() bool { return p == PhasePassed || p == PhaseCleaning || p == PhaseToClean }

// Unpicked are the targets of a unit that no wave picks, sorted.
func (u *Unit) Unpicked() (names []config.TargetName) {
	for _, at := range u.list() {
		if at.Wave < 0 || at.Wave >= len(u.Rollout.Spec.Waves) {
			names = append(names, at.name)
		}
	}
	return names
}

// Hold is what keeps a release from writing at targets besides its gates.
type Hold struct {
	Kind    HoldKind            `json:"kind"`
	Text    string              `json:"text"`
	Until   time.Time           `json:"until,omitzero"` // zero: until somebody ends it
	Targets []config.TargetName `json:"targets,omitempty"`
	// Order is the one that holds; nil for documents.
	Order *order.Order `json:"order,omitempty"`
}

// HoldKind is a kind of [Hold].
type HoldKind string

const (
	HeldByMask    HoldKind = "mask"
	HeldByPause   HoldKind = "pause"
	HeldByFreeze  HoldKind = "freeze"
	HeldByWindow  HoldKind = "window"
	HeldByBudget  HoldKind = "budget"
	HeldByBreaker HoldKind = "breaker" // too many units failed on the commit
)

// holds are what keeps the unfinished targets of a wave from being written.
func (l *Look) holds(u *Unit, w *WaveLook) []Hold {
	var holds []Hold
	for _, name := range w.Targets {
		t := u.Targets[name]
		if t.done() {
			continue
		}
		if h := l.HoldAt(u, name, w.Phase == PhaseUnderWay); h.Kind != "" {
			holds = AddHold(holds, h, name)
		}
	}
	return holds
}

// Stopped says why nothing more of a unit's release begins: too many units failed on its
// commit. It is about the release that waits for its turn, or else about the one under way;
// empty where nothing of it has still to begin. A nil Look knows of no failures.
func (l *Look) Stopped(u *Unit) string {
	r := u.Rollout
	switch {
	case l == nil:
	case u.Pending != nil && u.BlockedBy == ObstacleTurn:
		if !u.Pending.Promoted {
			return l.p.broken(u.Pending.Commit)
		}
	case r.Status == Progressing && !r.Promoted && u.hasToBegin():
		return l.p.broken(r.Commit)
	}
	return ""
}

// hasToBegin says that the release has still to be written to a target for the first time.
func (u *Unit) hasToBegin() bool {
	return slices.ContainsFunc(u.list(), func(t named) bool { return !t.applied() && t.TriedAt.IsZero() && t.Masked == "" })
}

// AddHold adds a target to the hold that is the same, or to a new one.
func AddHold(holds []Hold, h Hold, name config.TargetName) []Hold {
	if i := slices.IndexFunc(holds, func(is Hold) bool { return is.Kind == h.Kind && is.Text == h.Text }); i >= 0 {
		holds[i].Targets = append(holds[i].Targets, name)
		return holds
	}
	h.Targets = []config.TargetName{name}
	return append(holds, h)
}

// HoldAt is what keeps a unit from being written at one of its targets, besides gates;
// the zero value for nothing. The budget counts only where the target's turn has come.
func (l *Look) HoldAt(u *Unit, name config.TargetName, turn bool) Hold {
	p, t := l.p, u.Targets[name]
	h := l.HoldOn(u.at(name, t), !t.TriedAt.IsZero())
	switch {
	case h.Kind == HeldByMask:
		return h
	case t.applied():
		return Hold{}
	case h.Kind == HeldByPause || !t.TriedAt.IsZero():
		return h
	}
	if !u.Rollout.Promoted && turn {
		if text := p.broken(u.Rollout.Commit); text != "" {
			return Hold{Kind: HeldByBreaker, Text: text}
		}
	}
	if h.Kind == "" && turn && !t.underway() {
		if text := p.isFull(u, name); text != "" {
			return Hold{Kind: HeldByBudget, Text: text}
		}
	}
	return h
}

// HoldOn is what documents and orders keep a release from at a place now; the zero value
// for nothing. What is only about starts does not hold what has begun.
func (l *Look) HoldOn(at config.Place, begun bool) Hold {
	p := l.p
	if text := p.bounds.mask(at, p.now); text != "" {
		return byOrder(HeldByMask, text, p.bounds.under(order.Mask, at, p.now))
	}
	if o := p.bounds.under(order.Pause, at, p.now); o != nil {
		return byOrder(HeldByPause, "paused "+o.Text(), o)
	}
	if begun {
		return Hold{}
	}
	switch text, until := p.closed(at); {
	case text == "":
		return Hold{}
	case p.bounds.under(order.Freeze, at, p.now) != nil:
		return byOrder(HeldByFreeze, text, p.bounds.under(order.Freeze, at, p.now))
	default:
		return Hold{Kind: HeldByWindow, Text: text, Until: until}
	}
}

func byOrder(kind HoldKind, text string, o *order.Order) Hold {
	h := Hold{Kind: kind, Text: text, Order: o}
	if o != nil {
		h.Until = o.Until
	}
	return h
}

// GateLook is how a gate of a wave stands.
type GateLook struct {
	Gate  string    `json:"gate"`  // its word: "approval"
	At    string    `json:"at"`    // "start" or "end" of the wave
	State GateStand `json:"state"` // in one word
	Text  string    `json:"text"`  // what it last said, or what it waits for
	// AskedAt is when it last answered; zero when it was not asked.
	AskedAt time.Time     `json:"askedAt,omitzero"`
	Since   time.Time     `json:"since,omitzero"`
	Digest  object.Digest `json:"digest,omitempty"` // that swell approve takes
	// By may approve, all operators where it is empty; Not may not.
	By  []string `json:"by,omitempty"`
	Not []string `json:"not,omitempty"`
}

// GateStand is a word for how a gate stands.
type GateStand string

const (
	GatePassed GateStand = "passed"
	GateWaived GateStand = "waived" // an operator promoted the wave
	GateWaits  GateStand = "waits"
	GateAhead  GateStand = "not asked" // its time has not come
	GateFailed GateStand = "failed"
)

// gate reads one gate of a wave.
func (l *Look) gate(u *Unit, wave, n int, w *WaveLook) GateLook {
	r, gate := u.Rollout, &w.Gates[n]
	g := GateLook{Gate: gate.Word(), At: "end", State: GateAhead}
	waived := wave < r.EndsWaived
	if gate.AtStart() {
		g.At, waived = "start", wave < r.StartsWaived
	}
	known := u.gateState(wave, n)
	g.AskedAt, g.Since, g.Text = known.AskedAt, known.Since, known.Reason
	if gate.Approval != nil {
		g.By, g.Not, g.Digest = gate.Approval.By, u.authorsOf(wave), cmp.Or(known.Digest, u.digestOf(wave, n))
	}
	switch {
	case waived:
		g.State, g.Text = GateWaived, "promoted"
	case w.Phase.isPassed() || known.Passed:
		g.State, g.Text = GatePassed, ""
		if known.By != "" {
			g.Text = "approved by " + known.By
		}
	case w.Phase != PhaseUnderWay:
		if gate.Approval != nil && known.Digest != "" {
			g.State = GateWaits
		}
	default:
		l.askedNow(u, wave, w, gate, &known, &g)
	}
	return g
}

// askedNow says how a gate of the wave under way stands.
func (l *Look) askedNow(u *Unit, wave int, w *WaveLook, gate *config.Gate, known *GateState, g *GateLook) {
	switch {
	case gate.Approval != nil:
		if by := l.approvedBy(u, wave, gate.Approval, g.Digest); by != "" {
			g.State, g.Text = GatePassed, "approved by "+by
		} else if known.Digest != "" {
			g.State = GateWaits
		}
	case gate.Window != nil:
		is, changes := gate.Window.At(l.p.now)
		if g.State, g.Text = GatePassed, openText(changes); !is {
			g.State, g.Text = GateWaits, opensText(changes)
		}
	case gate.After != nil:
		g.State = GatePassed
		for _, name := range w.Targets {
			if t := u.Targets[name]; t.applied() || !t.TriedAt.IsZero() || l.p.state.Units[gate.After.Unit] == nil {
				continue
			}
			if why := l.p.notAfter(gate.After.Unit, name); why != "" {
				g.State, g.Text = GateWaits, fmt.Sprintf("target %s: %s", name, why)
				return
			}
		}
	case gate.Job != nil:
		l.jobNow(u, w, gate.Job, g)
	case known.AskedAt.IsZero():
	case known.Reason != "":
		g.State = GateWaits
	default:
		g.State, g.Text = GateWaits, "it said yes" // until the soak is over
	}
}

// approvedBy is who approved a gate that the planner has not come to yet; empty for
// nobody whose word counts.
func (l *Look) approvedBy(u *Unit, wave int, gate *config.ApprovalGate, digest object.Digest) string {
	for i := range l.p.bounds.standing {
		o := &l.p.bounds.standing[i]
		if o.Verb == order.Approve && o.Digest == digest && refuses(gate, o, u.authorsOf(wave), l.p.now) == "" {
			return o.By
		}
	}
	return ""
}

func (l *Look) jobNow(u *Unit, w *WaveLook, gate *config.JobGate, g *GateLook) {
	proved, all := 0, 0
	for _, name := range w.Targets {
		t := u.Targets[name]
		if t.Wanted == "" || !t.Touched || t.Masked != "" || t.Excused {
			continue
		}
		all++
		switch {
		case t.GateFailed != "":
			g.State, g.Text = GateFailed, fmt.Sprintf("Job %s on target %s: %s", gate.Name, name, t.GateFailed)
			return
		case t.done() && t.proved(gate.Name):
			proved++
		}
	}
	g.Text = fmt.Sprintf("Job %s has succeeded on %d of %d targets", gate.Name, proved, all)
	switch {
	case all > 0 && proved == all:
		g.State = GatePassed
	case len(w.Failed)+len(w.Waiting) == 0 && w.SoakEnds.IsZero():
		g.State = GateWaits
	}
}

// gateState is what is known of a gate; the zero value where it was not asked.
func (u *Unit) gateState(wave, n int) GateState {
	for _, g := range u.Rollout.Gates {
		if g.Wave == wave && g.Gate == n {
			return g
		}
	}
	return GateState{}
}

// IsUnderWay says that a unit's rollout is not over, or that something of it is missing:
// a newer release that does not begin, deletions that wait, targets without it.
func (u *Unit) IsUnderWay() bool {
	if u.Rollout.Status != Done || u.Blocked != "" || u.Waiting != "" || u.Pending != nil {
		return true
	}
	return slices.ContainsFunc(u.list(), func(t named) bool {
		return !t.applied() || t.Left != "" || t.Wanted != "" && !u.dips(t.Target) && (t.Health != HealthGood || t.Trouble != NoTrouble)
	})
}

// Proves says that a release which is not over brought what the unit has at a place, so
// that it counts only while it is as it was brought, and which bundle was good there
// before; without a digest there was none. An operator who promotes the wave lets it be.
func (s *State) Proves(where object.UnitTarget) (earlier Action, proves bool) {
	u := s.Units[where.Unit]
	if u == nil || u.Targets[where.Target] == nil {
		return Action{}, false
	}
	t, r := u.Targets[where.Target], u.Rollout
	goesOn := r.Status == Progressing || r.Status == Held && r.Stalled // by the next look
	if !goesOn || !t.Touched || t.Applied != t.Wanted || t.Wanted == t.Good || t.Wave < r.EndsWaived {
		return Action{}, false
	}
	return u.ActionFor(where.Target, t.Good), true
}
