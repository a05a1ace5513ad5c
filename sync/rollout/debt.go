// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
)

// silent says that the target has not answered for as long as the rollout gives it, and
// when that will be so; zero when it answers.
func (u *Unit) silent(t *Target, now time.Time) (is bool, from time.Time) {
	if t.Trouble != TroubleUnreachable || t.BlindSince.IsZero() {
		return false, time.Time{}
	}
	from = t.BlindSince.Add(u.Rollout.Spec.Unreachable.After)
	return !from.After(now), from
}

// excuse marks the targets that the waves go on without because they do not answer: by
// name, up to the limit.
func (p *pass) excuse(u *Unit) {
	policy := &u.Rollout.Spec.Unreachable
	if policy.Policy != config.ExcuseUnreachable {
		return
	}
	left := policy.Limit.Of(len(u.Targets))
	for _, at := range u.list() {
		t := at.Target
		is, from := u.silent(t, p.now)
		if !is && !from.IsZero() {
			p.wakeAt(from)
		}
		is = is && left > 0
		if is {
			left--
		}
		if t.Excused != is {
			t.Excused = is
			p.state.touch(u.Path)
		}
	}
}

// silence is the first target of the waves so far that has not answered for too long;
// empty when there is none, or the rollout's policy is another one.
func (p *pass) silence(u *Unit) config.TargetName {
	r := u.Rollout
	if r.Spec.Unreachable.Policy != config.HoldForUnreachable || r.Removing {
		return ""
	}
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if t.Wave > r.Wave || t.Wanted == "" || t.Masked != "" {
			continue
		}
		is, from := u.silent(t, p.now)
		if is {
			return name
		}
		if !from.IsZero() {
			p.wakeAt(from)
		}
	}
	return ""
}

// holdForSilence holds a rollout whose policy is that while a target does not answer.
func (p *pass) holdForSilence(u *Unit) bool {
	name := p.silence(u)
	if name == "" {
		return false
	}
	r := u.Rollout
	r.Failure = fmt.Sprintf("wave %s: target %s unreachable; it goes on by itself when that is over", r.Spec.Waves[r.Wave].Name, name)
	r.Status, r.Stalled, r.Silence, r.FinishedAt = Held, true, true, p.now
	p.state.touch(u.Path)
	p.note(u, "", "held", r.Failure)
	return true
}

// owe notes which targets a wave was passed without. They catch up later: of a wave that was
// passed without any, those that were written too, since nothing has asked its gates.
func (u *Unit) owe(y *tally) {
	for _, t := range u.list() {
		ofWave := t.Wave >= 0 && t.Wave < len(u.Rollout.Spec.Waves) && &u.Rollout.Spec.Waves[t.Wave] == y.wave
		if ofWave && (!t.applied() || y.touched == 0 && t.Touched && t.debt()) {
			t.Owes = true
		}
	}
}

// reopen goes back to the wave of a target that caught up, so that it passes the same
// soak and gates.
func (p *pass) reopen(u *Unit) {
	r := u.Rollout
	if r.Status != Done && r.Status != Progressing {
		return
	}
	back := -1
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if !t.Owes || t.Masked != "" || !t.applied() || t.debt() {
			continue
		}
		t.Owes = false
		p.state.touch(u.Path)
		if t.Wanted == "" || t.Wave < 0 || !t.Touched {
			continue
		}
		p.note(u, name, "caught up", "")
		if back < 0 || t.Wave < back {
			back = t.Wave
		}
	}
	if back < 0 || r.Status == Progressing && !r.Removing && back >= r.Wave {
		return
	}
	r.Status, r.Wave, r.Removing, r.FinishedAt = Progressing, back, false, time.Time{}
	r.forgetEnds(back)
	p.state.touch(u.Path)
}

// unproved says that the wave would be passed without any of its targets, and that the
// release was not proved on any other target before.
func (u *Unit) unproved(y *tally) bool {
	if y.size > 0 || len(y.masked)+len(y.excused) == 0 {
		return false
	}
	for _, t := range u.list() {
		if t.Touched && t.Wanted != "" && t.done() && t.Wave < u.Rollout.Wave {
			return false
		}
	}
	return true
}
