// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Plan is what is due now of the units that a Decide looked at. What earlier plans say of
// the others still holds: an [Agenda] has all of it.
type Plan struct {
	// Looked are the units that were looked at, sorted: those that something happened to,
	// and those whose time had come. What is said of them here replaces what any earlier
	// plan said.
	Looked []config.UnitPath
	// Actions by unit, then by target; at most one for a unit on a target. The
	// order between units carries no meaning.
	Actions []Action
	// Open are the places that something is done at, or that wait for what
	// their objects will be: where notices are of use. By unit, then by target.
	Open []object.UnitTarget
	// Questions are what gates are to be asked. Their answers go to [State.Answer]; a
	// question is planned again until then.
	Questions []Question
	// Wake is when something can change by itself, of any unit: a soak or a timeout ends,
	// a retry or a look at health is due. Zero: never. It holds as long as
	// nothing is recorded.
	Wake time.Time
	// Transitions that Decide made.
	Transitions []Transition
}

// Action is one thing to do for one unit on one target.
type Action struct {
	Kind   Kind
	Unit   config.UnitPath
	Target config.TargetName
	// Digest of the bundle that it is about, and a commit that renders it.
	// Both are empty for Remove.
	Digest object.Digest
	Commit config.Commit
	// Origin is the unit that the commit has the bundle of; empty: Unit. It had another name.
	Origin config.UnitPath
	Why    Why
	Wave   string // name of the target's wave; empty when it is in none
	// Prune allows a Check to delete the unit's leftovers on the target,
	// once it has seen that the bundle is healthy.
	Prune bool
	// Job is the name of the Job of a Prove.
	Job string
}

// Rendered is the unit that the commit has the bundle of.
func (a Action) Rendered() config.UnitPath { return cmp.Or(a.Origin, a.Unit) }

// ActionFor returns an action about a bundle of the unit on a target. The caller says the rest:
// kind, reason and wave.
func (u *Unit) ActionFor(name config.TargetName, digest object.Digest) Action {
	return Action{Unit: u.Path, Target: name, Digest: digest, Commit: u.Commits[digest], Origin: u.Origins[digest]}
}

func (a Action) place() object.UnitTarget { return object.UnitTarget{Unit: a.Unit, Target: a.Target} }

// Kind of an [Action].
type Kind string

const (
	// Apply brings the bundle to the target: [Applied], [Waiting], [Failed],
	// [Refused], [Deferred], [Unavailable], [Gone], [Unreachable].
	Apply Kind = "apply"
	// Check looks at the health of the bundle's objects: [Healthy],
	// [Unhealthy], [Failed], [Unavailable] when the server does not tell,
	// [Gone], [Unreachable].
	Check Kind = "check"
	// Remove deletes all that the unit has on the target: [Removed],
	// [Waiting] while a hook runs first, [Failed] when it did, [Deferred] while
	// objects are still terminating, [Refused], [Unavailable], [Unreachable].
	Remove Kind = "remove"
	// Prove runs the Job of a gate, and looks at it: [Healthy] when it succeeded,
	// [Waiting] until then, [Failed], [Refused], [Deferred], [Unavailable],
	// [Gone], [Unreachable].
	Prove Kind = "prove"
	// Compare looks whether an apply of the bundle would change nothing, and writes
	// nothing: [Same], [Differs], [Unavailable], [Unreachable].
	Compare Kind = "compare"
	// Sweep is never planned. It is the kind of an outcome that a sweep found:
	// [Drifted], with Unit and Target.
	Sweep Kind = "sweep"
)

// Why is the reason for an action.
type Why string

const (
	WhyRollout  Why = "rollout"
	WhyRollback Why = "rollback"
	WhyDrift    Why = "drift"
	WhyRetry    Why = "retry"
)

// Transition is something that changed, for the history and for events.
type Transition struct {
	Time    time.Time         `json:"time"`
	Commit  config.Commit     `json:"commit,omitempty"`
	Unit    config.UnitPath   `json:"unit,omitempty"`
	Target  config.TargetName `json:"target,omitempty"`
	Rollout int               `json:"rollout,omitempty"` // [Rollout.ID]
	Wave    string            `json:"wave,omitempty"`
	// Kind is one word: "started", "superseded", "resumed", "passed", "cleaned", "applied",
	// "step", "healthy", "unhealthy", "failed", "unreachable", "unavailable", "deferred", "drifted", "corrected",
	// "removed", "departed", "waiting", "rolling back", "rolled back", "held", "done",
	// "degraded", "recovered", "not deleted", "renamed", "blocked", "unblocked", "retry", "promote", "rollback", "clear", "approved",
	// "caught up". Callers add their own.
	Kind string `json:"kind"`
	Text string `json:"text,omitempty"`
}

// Decide plans the actions that are due, and advances rollouts: it starts and
// supersedes them, passes waves, and rolls them back. Targets that it plans a
// write for are marked dirty, so what [State.Changed] gives must be stored
// before the first action is carried out.
func (s *State) Decide(want *Wanted, now time.Time) Plan {
	p := &pass{state: s, want: want, held: want.Refused(), now: instant(now)}
	p.bound()
	p.forgetLeft()
	p.rouse()
	paths := p.concerned()
	for _, path := range paths {
		p.pend(path)
	}
	for _, path := range paths {
		p.release(path)
	}
	for _, path := range paths {
		if u := s.Units[path]; u != nil && !u.settled {
			p.advance(u)
		}
	}
	paths = p.recount(paths)
	if p.takeTurns(paths) {
		paths = p.recount(paths) // what began anew is not in change any more
	}
	for _, path := range p.inTurn(paths) {
		if u := s.Units[path]; u != nil && !u.settled {
			p.unit = u
			p.act(u)
			p.explain(u)
			p.settle(u)
		}
	}
	p.plan.Wake = earlier(p.plan.Wake, p.others)
	p.keepCounts()
	sortByPlace(p.plan.Actions, Action.place)
	sortByPlace(p.plan.Open, func(at object.UnitTarget) object.UnitTarget { return at })
	return p.plan
}

// inTurn are units in the order in which they get room in a budget: those whose release began
// first come first, so that one that is tried again and again keeps none of the others waiting.
func (p *pass) inTurn(paths []config.UnitPath) []config.UnitPath {
	if !p.bounds.Release.Budget.Counts() {
		return paths
	}
	started := func(path config.UnitPath) time.Time {
		if u := p.state.Units[path]; u != nil {
			return u.Rollout.StartedAt
		}
		return time.Time{}
	}
	sorted := slices.Clone(paths)
	slices.SortStableFunc(sorted, func(a, b config.UnitPath) int { return started(a).Compare(started(b)) })
	return sorted
}

// takeTurns begins the releases whose turn has come meanwhile, and says whether there
// were any.
func (p *pass) takeTurns(paths []config.UnitPath) (begun bool) {
	for _, path := range paths {
		if u := p.state.Units[path]; u != nil && u.BlockedBy == ObstacleTurn {
			p.release(path)
			begun = begun || u.BlockedBy != ObstacleTurn
			if !u.settled {
				p.advance(u)
			}
		}
	}
	return begun
}

// sortByPlace sorts what is mostly sorted.
func sortByPlace[T any](list []T, place func(T) object.UnitTarget) {
	compare := func(a, b T) int {
		x, y := place(a), place(b)
		return cmp.Or(cmp.Compare(x.Unit, y.Unit), cmp.Compare(x.Target, y.Target))
	}
	if !slices.IsSortedFunc(list, compare) {
		slices.SortStableFunc(list, compare)
	}
}

// pass is one Decide under way.
type pass struct {
	state *State
	want  *Wanted
	held  string // why nothing may be taken from the commit
	now   time.Time
	plan  Plan

	unit   *Unit     // at hand
	others time.Time // when the first of the units wakes that are not looked at
	bounds bounds
	counts *counts
	failed map[config.Commit][]config.UnitPath           // see failures
	tiers  map[int][]config.UnitPath                     // units of the commit by tier
	before map[turn][]config.UnitPath                    // see earlierTiers
	needed map[*config.UnitPath]map[config.UnitPath]bool // see areNeeded, by the first of the list
	// proves are the places where the Job of a gate is looked at.
	proves map[object.UnitTarget]bool
	// uncounted says that counts has something that is not in change.
	uncounted bool

	// dependents are the units that must leave a target before another, made
	// when they are first asked for.
	dependents map[object.UnitTarget][]config.UnitPath
}

// known says whether the wish of the commit for the unit is known, so that its
// objects may be deleted.
func (p *pass) known(path config.UnitPath) bool { return p.want.Known(path) }

// wants says that the commit has the unit on the target, whatever the rollout
// under way set out to do.
func (p *pass) wants(path config.UnitPath, name config.TargetName) bool {
	w := p.want.Units[path]
	if w == nil {
		return false
	}
	_, placed := w.Targets[name]
	return placed
}

// idle says that the unit's rollout is over and nothing on any target is open.
func (u *Unit) idle() bool {
	switch u.Rollout.Status {
	case Held:
		return u.Rollout.Spec.OnFailure == config.Hold || !u.Rollout.Stalled && u.calm()
	case Done, RolledBack:
		return u.calm()
	}
	return false
}

// calm says that nothing on any target is open. What is masked is not: all units are
// looked at again when masks change.
func (u *Unit) calm() bool {
	for _, t := range u.list() {
		if t.Masked == "" && (!t.done() || t.Leftovers || t.Wanted == "" && u.Rollout.Status == Done) {
			return false
		}
	}
	return true
}

// wakeAt has the unit at hand looked at again at a time.
func (p *pass) wakeAt(at time.Time) { p.unit.wake = earlier(p.unit.wake, at) }

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// note adds a transition of a unit, or of one of its targets.
func (p *pass) note(u *Unit, target config.TargetName, kind, text string) {
	p.plan.Transitions = append(p.plan.Transitions, u.transition(p.now, target, kind, text))
}

func (u *Unit) transition(now time.Time, target config.TargetName, kind, text string) Transition {
	tr := Transition{Time: now, Commit: u.Rollout.Commit, Unit: u.Path, Target: target, Rollout: u.Rollout.ID, Kind: kind, Text: text}
	if t := u.Targets[target]; t != nil {
		tr.Wave = u.waveName(t)
	}
	return tr
}

func (u *Unit) waveName(t *Target) string {
	if t.Wave < 0 || t.Wave >= len(u.Rollout.Spec.Waves) {
		return ""
	}
	return u.Rollout.Spec.Waves[t.Wave].Name
}

// named is a target with its name.
type named struct {
	name config.TargetName
	*Target
}

// list are the unit's targets by name; put and drop keep it so.
func (u *Unit) list() []named {
	if u.listed == nil && len(u.Targets) > 0 {
		u.listed = make([]named, 0, len(u.Targets))
		for name, t := range u.Targets {
			u.listed = append(u.listed, named{name, t})
		}
		slices.SortFunc(u.listed, func(a, b named) int { return cmp.Compare(a.name, b.name) })
	}
	return u.listed
}

func (u *Unit) put(name config.TargetName, t *Target) { u.Targets[name], u.listed = t, nil }

func (u *Unit) drop(name config.TargetName) {
	delete(u.Targets, name)
	u.listed = nil
}

// touch notes that the unit changed: it is to be stored, and to be looked at again.
func (s *State) touch(path config.UnitPath) {
	if s.changed == nil {
		s.changed = map[config.UnitPath]bool{}
	}
	s.changed[path] = true
	s.look(path)
}

// Changed are the units that are different from when [State.Stored] was last
// called, and those that are gone and whose rows are to be deleted; both
// sorted by path.
func (s *State) Changed() (kept []*Unit, dropped []config.UnitPath) {
	for _, path := range slices.Sorted(maps.Keys(s.changed)) {
		if u := s.Units[path]; u != nil {
			kept = append(kept, u)
		} else {
			dropped = append(dropped, path)
		}
	}
	return kept, dropped
}

// Stored says that what [State.Changed] gave is on disk. If it could not be
// stored, the state has to be read from disk again: it is ahead of it.
func (s *State) Stored() { s.changed = nil }

// Commits are all commits that some unit may have to be rendered from again,
// sorted. They must not be lost from the object store.
func (s *State) Commits() []config.Commit {
	seen := map[config.Commit]bool{}
	for _, u := range s.Units {
		for _, c := range u.Commits {
			seen[c] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}
