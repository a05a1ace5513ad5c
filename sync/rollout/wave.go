// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// tally is how the targets of one wave stand: those to be written, or, when it
// is a tally of removals, those to be cleaned. Names are sorted.
type tally struct {
	wave    *config.Wave
	size    int
	failed  []config.TargetName // debts of targets that this rollout wrote
	debts   []config.TargetName // failed ones included
	waiting []config.TargetName // neither done nor debts
	// touched counts the targets that are done and were written. They are all
	// healthy since last, and were all seen so at checked.
	touched       int
	last, checked time.Time
}

func (u *Unit) tally(wave int, removing bool) *tally {
	y := &tally{wave: &u.Rollout.Spec.Waves[wave]}
	for _, name := range u.names() {
		t := u.Targets[name]
		if t.Wave != wave || (t.Wanted == "") != removing {
			continue
		}
		y.size++
		switch {
		case t.done():
			if !t.Touched {
				break
			}
			checked := t.CheckedAt
			if removing {
				checked = t.AppliedAt // there is nothing to look at
			}
			if y.touched == 0 || checked.Before(y.checked) {
				y.checked = checked
			}
			if t.Since.After(y.last) {
				y.last = t.Since
			}
			y.touched++
		case t.debt():
			y.debts = append(y.debts, name)
			if t.Touched && t.Trouble == TroubleFailed {
				y.failed = append(y.failed, name)
			}
		default:
			y.waiting = append(y.waiting, name)
		}
	}
	return y
}

// tolerated is how many targets of the wave may fail. A share below 100 % never
// tolerates that all of them do, although it is rounded up to one target.
func (y *tally) tolerated() int {
	n := y.wave.MaxFailures.Of(y.size)
	if p := y.wave.MaxFailures.Percent; p > 0 && p < 100 && n == y.size {
		n = max(0, y.size-1)
	}
	return n
}

// slots is how many targets of the wave may be changed and not healthy.
func (y *tally) slots() int {
	if y.wave.MaxConcurrent == (config.Amount{}) {
		return y.size
	}
	return max(1, y.wave.MaxConcurrent.Of(y.size))
}

// quiet says that no target of the wave is under way and that no more than may
// fail are missing.
func (y *tally) quiet() bool { return len(y.waiting) == 0 && len(y.debts) <= y.tolerated() }

// soakEnd is when the wave's soak ends if nothing happens; zero when there is
// nothing to soak. A wave that nothing was written to needs no soak.
func (y *tally) soakEnd() time.Time {
	if y.touched == 0 || y.wave.Soak <= 0 {
		return time.Time{}
	}
	return y.last.Add(y.wave.Soak)
}

// soaked says that every target was seen healthy at the end of the soak or
// later. A soak is not over because time went by unseen.
func (y *tally) soaked(removing bool, now time.Time) bool {
	end := y.soakEnd()
	if removing {
		return !now.Before(end)
	}
	return end.IsZero() || !y.checked.Before(end)
}

// advance moves the unit's rollout on as far as the known outcomes allow.
func (p *pass) advance(u *Unit) {
	if u.idle() {
		return
	}
	p.refresh(u)
	for _, t := range u.Targets {
		if t.clamp(p.now) {
			p.state.touch(u.Path)
		}
	}
	switch u.Rollout.Status {
	case Progressing:
		for p.step(u) {
			p.state.touch(u.Path)
		}
	case RollingBack:
		p.restored(u)
	case Held:
		p.resume(u)
	case Done:
		if u.dropCleaned() {
			p.state.touch(u.Path)
		}
	}
}

// resume continues a stalled rollout once its wave is healthy.
func (p *pass) resume(u *Unit) {
	r := u.Rollout
	if !r.Stalled {
		return
	}
	if y := u.tally(r.Wave, false); len(y.failed) > y.tolerated() {
		return
	}
	r.Status, r.Stalled, r.Failure, r.FinishedAt = Progressing, false, "", time.Time{}
	p.state.touch(u.Path)
	p.note(u, "", "resumed", "")
	for p.step(u) {
		p.state.touch(u.Path)
	}
}

// step passes the current wave, or ends the rollout, and reports whether there
// is more to look at.
func (p *pass) step(u *Unit) bool {
	r := u.Rollout
	if r.Wave == len(r.Spec.Waves) {
		if !r.Removing {
			r.Removing, r.Wave = true, 0
			return true
		}
		p.finish(u)
		return false
	}
	y := u.tally(r.Wave, r.Removing)
	switch {
	case !r.Removing && len(y.failed) > y.tolerated():
		p.fail(u, y)
		return false
	case !y.quiet():
		return false
	case !y.soaked(r.Removing, p.now):
		if end := y.soakEnd(); end.After(p.now) {
			p.wakeAt(end)
		}
		return false
	}
	if y.size > 0 {
		p.plan.Transitions = append(p.plan.Transitions, Transition{
			Time: p.now, Commit: r.Commit, Unit: u.Path, Rollout: r.ID, Wave: y.wave.Name,
			Kind: "passed", Text: fmt.Sprintf("%d of %d targets", y.size-len(y.debts), y.size),
		})
	}
	r.Wave++
	return true
}

// finish ends a rollout that passed all waves: bundles that are healthy now are good.
func (p *pass) finish(u *Unit) {
	r := u.Rollout
	r.Status, r.FinishedAt = Done, p.now
	u.dropCleaned()
	for _, t := range u.Targets {
		t.Touched = false
		if t.done() {
			t.Good, t.TriedAt = t.Applied, time.Time{}
		}
	}
	u.keepCommits()
	p.state.touch(u.Path)
	p.note(u, "", "done", "")
}

// dropCleaned forgets targets that the unit left, and reports whether there
// were any.
func (u *Unit) dropCleaned() bool {
	before := len(u.Targets)
	for name, t := range u.Targets {
		if t.Wanted == "" && t.done() {
			delete(u.Targets, name)
		}
	}
	return len(u.Targets) < before
}

// maxQuarantine is the most quarantined bundles that are remembered for one unit.
const maxQuarantine = 100

// fail turns the rollout back, or holds it, because of the failed targets of
// its wave.
func (p *pass) fail(u *Unit, y *tally) {
	r := u.Rollout
	r.Failure = fmt.Sprintf("wave %s: %s", y.wave.Name, u.why(y.failed))
	p.state.touch(u.Path)
	if r.Spec.OnFailure == config.Hold {
		r.Status, r.FinishedAt = Held, p.now
		p.note(u, "", "held", r.Failure)
		return
	}
	if !u.canGoBack() {
		r.Status, r.Stalled, r.FinishedAt = Held, true, p.now
		r.Failure += "; not rolled back, no earlier good version: it goes on by itself when this is well"
		p.note(u, "", "held", r.Failure)
		return
	}
	for _, name := range y.failed {
		if t := u.Targets[name]; t.Wanted != t.Good {
			p.quarantine(u, name, t)
		}
	}
	r.Status = RollingBack
	for _, name := range u.names() {
		t := u.Targets[name]
		switch {
		case t.Touched && t.Good != "":
			t.Wanted = t.Good
			t.forgive(p.now)
		case t.nothing():
			delete(u.Targets, name)
		default: // untouched, or nothing to go back to: it stays as it is
			t.Wanted = t.Applied
		}
	}
	p.note(u, "", "rolling back", r.Failure)
	p.restored(u)
}

// canGoBack says that the rollout wrote to a target that had a good bundle.
func (u *Unit) canGoBack() bool {
	for _, t := range u.Targets {
		if t.Touched && t.Good != "" {
			return true
		}
	}
	return false
}

func (p *pass) quarantine(u *Unit, name config.TargetName, t *Target) {
	if u.Quarantine == nil {
		u.Quarantine = map[render.Digest]Quarantined{}
	}
	u.Quarantine[t.Wanted] = Quarantined{Commit: u.Rollout.Commit, Target: name, Reason: t.Reason, At: p.now}
	if len(u.Quarantine) <= maxQuarantine {
		return
	}
	var oldest render.Digest
	for digest, q := range u.Quarantine {
		if c := q.At.Compare(u.Quarantine[oldest].At); oldest == "" || c < 0 || c == 0 && digest < oldest {
			oldest = digest
		}
	}
	delete(u.Quarantine, oldest)
}

// restored ends a rollback when every target that there is something to put
// back on has it, healthy.
func (p *pass) restored(u *Unit) {
	var without []config.TargetName
	for _, name := range u.names() {
		switch t := u.Targets[name]; {
		case !t.Touched:
		case t.Good == "":
			without = append(without, name)
		case !t.done():
			return
		}
	}
	for _, t := range u.Targets {
		t.Touched = t.Touched && t.Good == ""
		t.TriedAt = time.Time{}
	}
	r := u.Rollout
	r.Status, r.FinishedAt = RolledBack, p.now
	if len(without) > 0 {
		r.Status = Held
		r.Failure += "; not rolled back, no earlier good version: " + list(without)
	}
	u.keepCommits()
	p.state.touch(u.Path)
	p.note(u, "", string(r.Status), r.Failure)
}

// why names targets with their reasons, three at most.
func (u *Unit) why(names []config.TargetName) string {
	const most = 3
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		parts = append(parts, fmt.Sprintf("target %s%s", name, u.Targets[name].why()))
	}
	if len(names) > most {
		parts = append(parts, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(parts, "; ")
}

// why continues "target x".
func (t *Target) why() string {
	text := ""
	switch {
	case t.Trouble == TroubleUnreachable:
		text = " unreachable"
	case t.Trouble == TroubleUnavailable:
		text = " unavailable"
	case t.Wanted == "" && !t.applied():
		text = ": not cleaned yet"
	case !t.applied():
		text = ": not applied yet"
	case t.Drifted:
		text = ": drifted"
	default:
		text = ": not healthy yet"
	}
	if t.Trouble == TroubleFailed && t.Reason != "" {
		return ": " + t.Reason
	}
	if t.Reason != "" {
		text += ": " + t.Reason
	}
	return text
}

// explain says what the rollout waits for.
func (p *pass) explain(u *Unit) {
	if reason := u.reason(); reason != u.Rollout.Reason {
		u.Rollout.Reason = reason
		p.state.touch(u.Path)
	}
}

func (u *Unit) reason() string {
	r := u.Rollout
	var open []config.TargetName
	for _, name := range u.names() {
		if t := u.Targets[name]; !t.done() && (r.Status != RollingBack || t.Touched && t.Good != "") {
			open = append(open, name)
		}
	}
	switch r.Status {
	case Held, RolledBack:
		return r.Failure + "; " + u.again()
	case RollingBack:
		return fmt.Sprintf("%s; rolling back: %s", r.Failure, u.why(open))
	case Done:
		return u.why(open)
	}
	for wave := range r.Spec.Waves {
		if reason := u.tally(wave, false).reason(u, r.Removing || wave < r.Wave); reason != "" {
			return fmt.Sprintf("wave %s: %s", r.Spec.Waves[wave].Name, reason)
		}
	}
	for wave := range r.Spec.Waves {
		if reason := u.tally(wave, true).reason(u, wave < r.Wave); reason != "" {
			return fmt.Sprintf("cleaning wave %s: %s", r.Spec.Waves[wave].Name, reason)
		}
	}
	return ""
}

// reason says why a wave is not passed, or no longer quiet.
func (y *tally) reason(u *Unit, passed bool) string {
	end := y.soakEnd()
	switch {
	case len(y.debts) > y.tolerated():
		return u.why(y.debts)
	case len(y.waiting) > 0:
		return fmt.Sprintf("waiting for %d of %d targets: %s", len(y.waiting), y.size, u.why(y.waiting))
	case !passed && !end.IsZero():
		return "soaking until " + end.Format(time.RFC3339)
	}
	return ""
}
