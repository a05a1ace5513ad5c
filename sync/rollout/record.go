// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Outcome is the result of an action, or a finding of a sweep.
type Outcome struct {
	Action
	Result Result
	// Reason is one line without the target's name, and the same as long as
	// the cause is the same. It is required for everything that went wrong.
	Reason string
	// Step names what a [Waiting] action waits for. It stays the same for as long
	// as the action gets no further.
	Step string
	// Outside says that a [Waiting] action waits for something that is not part of the
	// bundle, so the bundle never fails for it.
	Outside bool
	// Overwrote says that an Apply changed back what somebody else had changed. Where it waits
	// for the same as before, that one does so again and again.
	Overwrote bool
	// Pruned says, for a Check with Prune, that no leftovers are there any
	// more. If it is not set, Reason may say why.
	Pruned bool
	// Left says, for a Check with Prune, which leftovers are still there and why. Denied
	// says that the server refused to delete some.
	Left   string
	Denied bool
	// Runs says, for a Check that found the bundle healthy, what it runs.
	Runs string
	// Event is set of a [Waiting] Apply that wrote nothing, because by the objects in the
	// cluster the bundle is another event than the state knew: this one.
	Event object.Event
}

// Result of an action.
type Result string

const (
	// Applied: the server took the whole bundle.
	Applied Result = "applied"
	// Waiting: the server took the bundle up to a phase that is not healthy yet,
	// or up to a hook that is not over. Of a Remove: a hook is to run before
	// anything is deleted. The same action is to be carried out again to go on.
	Waiting Result = "waiting"
	// Removed: nothing that is ours is there any more.
	Removed Result = "removed"
	// Healthy: all objects of the bundle are.
	Healthy Result = "healthy"
	// Unhealthy: not yet, or no longer.
	Unhealthy Result = "unhealthy"
	// Failed: not, and waiting will not help. Of an Apply or a Remove: an object
	// of a phase, or a hook, that the rest waits for.
	Failed Result = "failed"
	// Refused: the server understood and said no, to one object at least.
	Refused Result = "refused"
	// Deferred: something is missing that the bundle needs, a kind, a namespace, an
	// answer of a webhook that the bundle itself brings; or an object is still
	// terminating. It may come, and it may be the bundle's own fault.
	Deferred Result = "deferred"
	// Unavailable: the target is in trouble that says nothing about the bundle. The
	// server is in distress, asks to slow down or denies us a right, health could
	// not be read, or we could not make the bundle. A write may have happened.
	Unavailable Result = "unavailable"
	// Gone: the repository does not have the commit any more that the bundle is rendered
	// from, see [config.ErrNoCommit]. Nothing was written.
	Gone Result = "gone"
	// Unreachable: there was no answer to rely on. A write may have happened.
	Unreachable Result = "unreachable"
	// Drifted: live objects differ from what was applied.
	Drifted Result = "drifted"
	// Same: an apply would change nothing. Differs: it would, or nobody knows.
	Same    Result = "same"
	Differs Result = "differs"
)

// Record records the outcome of an action. Outcomes of one target come in the
// order in which they happened. One about a bundle that is not wanted any more
// only changes the applied bundle; one about a unit or a target that is gone changes
// nothing.
func (s *State) Record(o Outcome, now time.Time) []Transition {
	u := s.Units[o.Unit]
	if u == nil || u.Targets[o.Target] == nil {
		return nil
	}
	r := &recording{Outcome: o, u: u, t: u.Targets[o.Target], notices: &s.notices, now: instant(now)}
	before := *r.t
	r.known()
	switch {
	case o.Result == Drifted:
		r.drifted()
	case o.Kind == Compare:
		r.compareEnded()
	case o.Kind == Prove:
		r.proved()
	case o.Kind == Apply && o.Result == Applied:
		r.applied()
	case o.Kind != Check && o.Result == Waiting:
		r.t.found(o.Event)
		r.waiting()
	case o.Kind == Remove && o.Result == Removed:
		r.removed()
	case o.Kind == Check && (o.Result == Healthy || o.Result == Unhealthy || o.Result == Failed):
		r.health()
	case o.Result == Refused || o.Result == Failed || o.Result == Deferred || o.Result == Unavailable || o.Result == Unreachable:
		r.failed()
	case o.Result == Gone:
		r.failed()
		r.gone()
	default:
		return nil
	}
	s.touch(u.Path)
	r.notable(&before)
	return r.transitions
}

// recording is one Record under way.
type recording struct {
	Outcome
	u           *Unit
	t           *Target
	notices     *notices
	now         time.Time
	transitions []Transition
}

func (r *recording) note(kind, text string) {
	r.transitions = append(r.transitions, r.u.transition(r.now, r.Target, kind, text))
}

// wanted says that the outcome is about the wanted bundle of the target. Otherwise it
// is about the bundle that the target has until its wave comes, or out of date.
func (r *recording) wanted() bool { return r.Digest == r.t.Wanted }

// minAway is how long a target has to be away for its objects to get a fresh timeout when
// it is back: a node that could not report for 40 s counts as lost, and takes its pods with
// it (node-monitor-grace-period of Kubernetes, 40 s before 1.32 and 50 s since).
const minAway = 30 * time.Second

// known adds the time in which the target's health was not known to its timeout, once
// it is known again: that time does not count against the bundle. After a longer one its
// nodes and pods may have to come back first, so the timeout begins anew, once.
func (r *recording) known() {
	t := r.t
	switch {
	case r.Result == Drifted:
	case r.Result == Unavailable || r.Result == Gone || r.Result == Unreachable:
		if t.BlindSince.IsZero() {
			t.BlindSince = r.now
		}
	case !t.BlindSince.IsZero():
		blind := r.now.Sub(t.BlindSince)
		fresh := blind >= minAway && !r.recovers() // or one that is away all the time never fails
		for _, since := range []*time.Time{&t.TriedAt, &t.StepSince, &t.Since} {
			switch {
			case since.IsZero():
			case since == &t.Since && t.Health == HealthGood:
				*since = since.Add(blind)
				soak := r.u.soak(t)
				if least := r.now.Add(min(soak, r.u.timeout(t)) - soak); fresh && since.Before(least) {
					*since = least
				}
			case fresh:
				*since = r.now
			default:
				*since = since.Add(blind)
			}
			if since.After(r.now) { // it began while nothing was known
				*since = r.now
			}
		}
		if fresh {
			t.BackSince = r.now
		}
		t.BlindSince = time.Time{}
	}
}

// recovers says that the target was away until lately: its objects may be ill for that
// reason.
func (r *recording) recovers() bool {
	return !r.t.BackSince.IsZero() && r.now.Before(r.t.BackSince.Add(r.u.timeout(r.t)))
}

// correcting says that the outcome is about drift from what the target has.
func (r *recording) correcting() bool { return r.Why == WhyDrift && r.Digest == r.t.Applied }

func (r *recording) drifted() {
	if r.t.Applied != "" && !r.t.Drifted {
		r.t.Drifted = true
		r.note("drifted", r.Reason)
	}
}

func (r *recording) applied() {
	t := r.t
	if _, ok := r.u.Commits[r.Digest]; !ok && r.u.Commits != nil {
		r.u.Commits[r.Digest] = r.Commit // it was wanted when the action was planned
	}
	if r.Why == WhyDrift {
		r.note("corrected", "")
	} else {
		t.Leftovers, t.Left = true, ""
		r.note("applied", "bundle "+r.Digest.Short())
		if r.Commit != "" { // a bundle that is put back came with an earlier one
			r.transitions[len(r.transitions)-1].Commit = r.Commit
		}
	}
	if ro := r.u.Rollout; ro.Status == Progressing && t.Wave == ro.Wave && !ro.Removing && r.Why != WhyDrift {
		ro.forgetEnds(t.Wave) // what they said was said without this target
	}
	t.Applied, t.AppliedAt, t.Dirty, t.Drifted = r.Digest, r.now, false, false
	t.Health, t.Since, t.CheckedAt, t.GateFailed = HealthProgressing, r.now, time.Time{}, ""
	r.settle()
}

func (r *recording) removed() {
	t := r.t
	t.Applied, t.AppliedAt, t.Dirty, t.Drifted, t.Leftovers, t.Left = "", r.now, false, false, false, ""
	t.Installed, t.Existed, t.Installing = false, false, ""
	t.Made = nil
	t.Tenants = nil
	t.Health, t.Since, t.CheckedAt = HealthUnknown, r.now, time.Time{}
	r.settle()
	r.note("removed", "")
}

// settle forgets what went wrong.
func (r *recording) settle() {
	t := r.t
	t.Trouble, t.Reason, t.Attempts, t.RetryAt = NoTrouble, "", 0, time.Time{}
	t.Step, t.StepSince, t.OthersStep = "", time.Time{}, false
}

func (r *recording) health() {
	t := r.t
	if r.Digest != t.Applied || t.Dirty {
		return // it was looked at before something else was written
	}
	was := t.Health
	t.CheckedAt = r.now
	if r.Result == Healthy {
		if was != HealthGood {
			t.Since = r.now
		}
		r.settle()
		t.Health, t.Reason, t.Runs, t.Installed = HealthGood, r.Reason, r.Runs, true
		switch {
		case r.Pruned:
			t.Leftovers, t.Left, t.Made = false, "", nil
			t.cleaned()
		case r.Prune && r.Left == "":
			t.Left = cmp.Or(t.Left, "the deletion of what an earlier bundle left was cut short")
		case r.Prune:
			if r.Denied && t.Left != r.Left {
				r.note("not deleted", r.Left)
			}
			t.Left = r.Left
		}
		if r.u.Rollout.Status == Done && t.done() {
			t.good(r.u.Rollout.ID)
		}
		return
	}
	t.Health, t.Reason = HealthProgressing, r.Reason
	gaveUp := r.Result == Failed && !r.recovers()
	if gaveUp {
		t.Health = HealthFailed
	}
	if was == HealthGood {
		t.Since = r.now // a soak starts again
	}
	t.Attempts, t.RetryAt = 0, time.Time{}
	late := !r.now.Before(t.Since.Add(r.u.timeout(t)))
	switch {
	case !r.wanted():
	case t.Masked != "" && r.u.Rollout.Status == Progressing: // no release fails by its health
	case gaveUp:
		t.Trouble = TroubleFailed
	case late && t.Trouble != TroubleFailed:
		t.Trouble = TroubleFailed
		t.Reason = "not healthy within " + r.u.timeout(t).String()
		if r.Reason != "" {
			t.Reason += ": " + r.Reason
		}
	case t.Trouble != TroubleFailed:
		t.Trouble = NoTrouble
	}
}

// proved takes in how far the Job of a gate is. It says nothing about the bundle's own
// health.
func (r *recording) proved() {
	t := r.t
	if r.Digest != t.Applied || t.Dirty {
		return
	}
	t.Reason = r.Reason
	switch r.Result {
	case Healthy:
		if t.Proved == nil {
			t.Proved = map[string]object.Digest{}
		}
		t.Proved[r.Job] = r.Digest
		r.settle()
		r.note("proved", strings.TrimSuffix("Job "+r.Job+": "+r.Reason, ": "))
	case Failed, Refused:
		r.settle()
		t.GateFailed = r.Reason
	case Waiting:
		if t.Step != r.Step || t.StepSince.IsZero() {
			t.Step, t.StepSince = r.Step, r.now
		}
		t.Attempts, t.Reason = 0, r.Reason
		t.RetryAt = r.now.Add(r.notices.pause(object.UnitTarget{Unit: r.Unit, Target: r.Target}, r.now.Sub(t.StepSince), maxCheck))
	default:
		t.Attempts++
		t.RetryAt = r.now.Add(backoff(r.Unit, r.Target, t.Attempts))
	}
}

// waiting records that an action got as far as it can for now. It is tried again soon;
// how soon depends on how long it has been waiting for the same step.
func (r *recording) waiting() {
	t := r.t
	if !r.wanted() && !r.correcting() {
		return
	}
	isFought := r.Overwrote && t.Step == r.Step && !t.StepSince.IsZero()
	if t.Step != r.Step || t.StepSince.IsZero() {
		t.Step, t.StepSince = r.Step, r.now
		r.note("step", r.Reason)
	}
	t.OthersStep = r.Outside
	t.Reason, t.Attempts = r.Reason, 0
	ends := t.StepSince.Add(r.u.timeout(t))
	late := !r.now.Before(ends)
	if r.wanted() {
		switch {
		case late && r.Outside && t.Trouble != TroubleFailed:
			t.Trouble = TroubleUnavailable
		case late && t.Trouble != TroubleFailed:
			t.Trouble = TroubleFailed
			t.Reason = fmt.Sprintf("not past %s within %s: %s", r.Step, r.u.timeout(t), r.Reason)
		case t.Trouble != TroubleFailed:
			t.Trouble = NoTrouble
		}
	}
	most := maxCheck
	if t.debt() {
		most = maxBackoff
	}
	t.RetryAt = r.now.Add(r.notices.pause(object.UnitTarget{Unit: r.Unit, Target: r.Target}, r.now.Sub(t.StepSince), most))
	if n := r.notices.fights(object.UnitTarget{Unit: r.Unit, Target: r.Target}, isFought); n > 0 {
		t.RetryAt = r.now.Add(min(backoff(r.Unit, r.Target, n), most))
	}
	if !late && ends.Before(t.RetryAt) {
		t.RetryAt = ends
	}
}

// failed takes in that an action did not come to an end.
func (r *recording) failed() {
	t := r.t
	if !r.wanted() && !r.correcting() && r.Kind != Check {
		return
	}
	if r.Kind == Check && (r.Digest != t.Applied || t.Dirty) {
		return
	}
	t.Attempts++
	t.Gone = r.Result == Gone && t.Attempts >= goneAttempts
	t.RetryAt = r.now.Add(backoff(r.Unit, r.Target, t.Attempts))
	t.Reason = r.Reason
	if !r.wanted() || t.Trouble == TroubleFailed {
		return
	}
	late := !t.TriedAt.IsZero() && !r.now.Before(t.TriedAt.Add(r.u.timeout(t)))
	switch {
	case r.Result == Unreachable:
		t.Trouble = TroubleUnreachable
	case r.Result == Unavailable, r.Result == Gone, r.Kind == Check: // health that cannot be read is not ill health
		t.Trouble = TroubleUnavailable
	case r.Result == Refused, r.Result == Failed && !r.recovers(), r.Result == Deferred && late && r.Kind == Apply:
		t.Trouble = TroubleFailed
	default:
		t.Trouble = TroubleDeferred
	}
}

// FailsAt is when a target that the release under way wrote counts as failed, if nothing
// changes. Zero: it does not fail by time, also while it does not answer.
func (u *Unit) FailsAt(name config.TargetName) time.Time {
	t := u.Targets[name]
	if u.Rollout.Status != Progressing || t.Wanted == "" || !t.Touched || !t.BlindSince.IsZero() || t.Masked != "" {
		return time.Time{}
	}
	switch {
	case t.Trouble == TroubleDeferred && !t.applied():
		return t.TriedAt.Add(u.timeout(t))
	case t.Trouble != NoTrouble:
		return time.Time{}
	case t.Step != "" && !t.applied() && !t.OthersStep:
		return t.StepSince.Add(u.timeout(t))
	case !t.Dirty && t.Applied == t.Wanted && t.Health == HealthProgressing:
		return t.Since.Add(u.timeout(t))
	}
	return time.Time{}
}

// goneAttempts is how often a bundle is missed before a rollback to it is given up: within
// that time, a minute, a damaged copy of the repository is fetched anew.
const goneAttempts = 5

// gone gives up a rollback to a bundle that cannot be made again: the target keeps what it
// has.
func (r *recording) gone() {
	t := r.t
	if r.u.Rollout.Status != RollingBack || !t.Touched || !r.wanted() || t.Attempts < goneAttempts {
		return
	}
	t.Ran = slices.DeleteFunc(t.Ran, func(p Past) bool { return p.Digest == t.Good })
	t.Good, t.Wanted = "", t.Applied
	if failure := &r.u.Rollout.Failure; !strings.Contains(*failure, r.Reason) {
		*failure += "; " + r.Reason
	}
	t.forgive(r.now)
}

// notable adds the transitions of health and trouble.
func (r *recording) notable(before *Target) {
	t := r.t
	rests := r.Kind == Check && !before.CheckedAt.IsZero() && r.u.rests(before)
	switch {
	case rests && t.Trouble == TroubleFailed && before.Trouble != TroubleFailed:
		r.note("degraded", t.Reason)
	case r.Kind == Check && r.u.rests(before) && t.Health == HealthGood && before.Trouble == TroubleFailed:
		r.note("recovered", "")
	case t.Trouble != before.Trouble && t.Trouble != NoTrouble:
		r.note(string(t.Trouble), t.Reason)
	case rests: // it gets more or fewer pods, or a node is drained
	case t.Health == HealthGood && before.Health != HealthGood:
		r.note("healthy", "")
	case t.Health != HealthGood && before.Health == HealthGood && r.Kind == Check:
		r.note("unhealthy", t.Reason)
	}
}

// rests says that nothing is under way for a target that has its good bundle.
func (u *Unit) rests(t *Target) bool {
	isOver := u.Rollout.Status == Done || u.Rollout.Status == RolledBack
	return isOver && t.Wanted != "" && t.applied() && t.Good == t.Applied && !t.Drifted
}

// Dips says that a target that rests is less healthy than it was, and not for long enough
// to be ill.
func (u *Unit) Dips(name config.TargetName) bool {
	t := u.Targets[name]
	return t != nil && u.dips(t)
}

func (u *Unit) dips(t *Target) bool {
	return u.rests(t) && t.Trouble == NoTrouble && t.Health == HealthProgressing && !t.CheckedAt.IsZero()
}

// Ails says that a target that rests is ill: it has been unhealthy for longer than its wave's
// timeout, or will not become healthy by itself.
func (u *Unit) Ails(name config.TargetName) bool {
	t := u.Targets[name]
	return t != nil && u.rests(t) && t.Trouble == TroubleFailed
}
