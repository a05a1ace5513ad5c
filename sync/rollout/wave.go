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
	"github.com/swell-sh/swell/sync/order"
)

// tally is how the targets of one wave stand: those to be written, or, when it
// is a tally of removals, those to be cleaned. Names are sorted.
type tally struct {
	wave    *config.Wave
	size    int
	failed  []config.TargetName // debts of targets that this rollout wrote
	debts   []config.TargetName // failed ones included
	waiting []config.TargetName // neither done nor debts
	masked  []config.TargetName // not done, and nothing may be written there
	excused []config.TargetName // do not answer, and are not waited for
	// underway counts the targets that are changed and not yet healthy, those that failed
	// or cannot be reached left out; objects are those of what is wanted there.
	underway, objects int
	// passed says that the rollout is past the wave. Then silent counts the debts that have
	// the release, were well when they were last seen, and do not answer: their wave was
	// passed with them.
	passed bool
	silent int
	// touched counts the targets that are done and were written. They are all
	// healthy since last, and were all seen so at checked.
	touched       int
	last, checked time.Time
}

func (u *Unit) tally(wave int, removing bool) *tally {
	y := &tally{wave: &u.Rollout.Spec.Waves[wave]}
	for _, at := range u.list() {
		if at.Wave == wave && (at.Wanted == "") == removing {
			y.add(at.name, at.Target, removing)
		}
	}
	return y
}

// tallies are those of all waves.
func (u *Unit) tallies(removing bool) []tally {
	all := make([]tally, len(u.Rollout.Spec.Waves))
	for i := range all {
		all[i].wave, all[i].passed = &u.Rollout.Spec.Waves[i], !removing && i < u.passedWaves()
	}
	for _, at := range u.list() {
		if at.Wave >= 0 && (at.Wanted == "") == removing {
			all[at.Wave].add(at.name, at.Target, removing)
		}
	}
	return all
}

func (y *tally) add(name config.TargetName, t *Target, removing bool) {
	if t.underway() {
		y.underway++
		y.objects += t.Objects
	}
	done := t.done()
	switch {
	case t.Masked != "" && !done && !t.MaskedIll:
		y.masked = append(y.masked, name)
		return
	case t.Excused && !done:
		y.excused = append(y.excused, name)
		return
	}
	y.size++
	switch {
	case done && t.Touched && !t.Fast:
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
	case done:
	case t.debt():
		y.debts = append(y.debts, name)
		if y.passed && t.Trouble != TroubleFailed && t.applied() && t.Health == HealthGood && !t.Drifted {
			y.silent++
		}
		if t.Touched && t.Trouble == TroubleFailed {
			y.failed = append(y.failed, name)
		}
	default:
		y.waiting = append(y.waiting, name)
	}
}

// isIll says that the release was seen there, and not healthy, when the target was last looked
// at. A target that is away is not judged.
func (t *Target) isIll() bool {
	isAway := !t.BlindSince.IsZero() || t.Trouble == TroubleUnreachable
	return t.Touched && t.applied() && t.Health != HealthGood && !t.CheckedAt.IsZero() && !isAway
}

// tolerated is how many targets of the wave may fail. A share below 100 % never
// tolerates that all of them do, although it is rounded up to one target.
func (y *tally) tolerated() int {
	size := y.size
	if y.passed { // masks and silence came later
		size += len(y.masked) + len(y.excused)
	}
	n := y.wave.MaxFailures.Of(size)
	if p := y.wave.MaxFailures.Percent; p > 0 && p < 100 && n == size {
		n = max(0, size-1)
	}
	return n
}

// slots is how many targets of the wave may be changed and not healthy.
func (y *tally) slots() int {
	size := y.size + len(y.excused) // those are tried again all the same
	if y.wave.MaxConcurrent == (config.Amount{}) {
		return size
	}
	return max(1, y.wave.MaxConcurrent.Of(size))
}

// quiet says that no target of the wave is under way and that no more than may
// fail are missing.
func (y *tally) quiet() bool { return len(y.waiting) == 0 && !y.missesMany() }

// missesMany says that more of the wave's targets are missing than may fail.
func (y *tally) missesMany() bool { return len(y.debts)-y.silent > y.tolerated() }

// passedWaves is how many waves the rollout has passed.
func (u *Unit) passedWaves() int {
	if u.Rollout.Removing {
		return len(u.Rollout.Spec.Waves)
	}
	return u.Rollout.Wave
}

// relapse looks at the waves that the rollout has passed. ill is the first one in which
// more targets fail by now than may; quiet says that nothing happens in any of them.
func (u *Unit) relapse() (ill *tally, quiet bool) {
	quiet = true
	if u.passedWaves() == 0 {
		return nil, quiet
	}
	all := u.tallies(false)[:u.passedWaves()]
	for i := range all {
		y := &all[i]
		if len(y.failed) > y.tolerated() {
			return y, false
		}
		quiet = quiet && y.quiet()
	}
	return nil, quiet
}

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
	p.unit = u
	u.barred, u.wake, u.restless, u.crowded = "", time.Time{}, false, false
	p.mask(u)
	if u.idle() {
		return
	}
	p.refresh(u)
	p.excuse(u)
	p.reopen(u)
	switch u.Rollout.Status {
	case Progressing:
		for p.step(u) {
			p.state.touch(u.Path)
		}
	case RollingBack:
		p.restored(u)
		p.finishRestored(u)
	case RolledBack:
		p.restoredLate(u)
		p.finishRestored(u)
	case Held:
		p.resume(u)
	case Done:
		if u.dropCleaned() {
			p.state.touch(u.Path)
		}
	}
}

// resume continues a stalled rollout once its wave is healthy and no gate of it fails.
func (p *pass) resume(u *Unit) {
	r := u.Rollout
	if !r.Stalled {
		return
	}
	y := u.tally(r.Wave, false)
	if ill, _ := u.relapse(); ill != nil || len(y.failed) > y.tolerated() {
		return
	}
	if y.quiet() {
		if _, failed := p.ends(u, y); failed { // which asks again
			return
		}
	}
	if r.Silence && p.silence(u) != "" {
		return
	}
	r.Status, r.Stalled, r.Silence, r.Failure, r.FinishedAt = Progressing, false, false, "", time.Time{}
	p.state.touch(u.Path)
	p.note(u, "", "resumed", "")
	p.reopen(u) // for what caught up while it was held
	for p.step(u) {
		p.state.touch(u.Path)
	}
}

// step passes the current wave, or ends the rollout, and reports whether there
// is more to look at.
func (p *pass) step(u *Unit) bool {
	r := u.Rollout
	ill, calm := u.relapse()
	if ill != nil && !r.Removing { // later nothing is taken back: cleaned targets would return
		p.fail(u, u.why(ill.failed), ill.wave, ill.failed)
		return false
	}
	if r.Wave == len(r.Spec.Waves) {
		if !r.Removing {
			r.Removing, r.Wave = true, 0
			return true
		}
		if !calm {
			return false
		}
		p.finish(u)
		return false
	}
	y := u.tally(r.Wave, r.Removing)
	switch {
	case !r.Removing && len(y.failed) > y.tolerated():
		p.fail(u, u.why(y.failed), y.wave, y.failed)
		return false
	case !r.Removing && p.holdForSilence(u):
		return false
	case !r.Removing && r.Wave >= r.EndsWaived && u.unproved(y):
		u.barred = cmp.Or(u.barred, fmt.Sprintf("nothing can be written to its targets, and no earlier wave has proved the release: %s goes on without them", order.Command("promote", u.Path)))
		return false
	case !y.quiet(), !calm:
		return false
	}
	if !r.Removing {
		waits, failed := p.ends(u, y)
		switch {
		case failed:
			p.fail(u, waits, y.wave, u.written(r.Wave))
			if r.Stalled {
				p.ends(u, y) // they are asked on
			}
			return false
		case waits != "":
			u.barred = cmp.Or(u.barred, waits)
		}
		if waits != "" || r.Wave >= r.EndsWaived && !y.soaked(false, p.now) {
			if end := y.soakEnd(); end.After(p.now) {
				p.wakeAt(end)
			}
			return false
		}
	} else if !y.soaked(true, p.now) {
		if end := y.soakEnd(); end.After(p.now) {
			p.wakeAt(end)
		}
		return false
	}
	if y.size > 0 {
		p.plan.Transitions = append(p.plan.Transitions, Transition{
			Time: p.now, Commit: r.Commit, Unit: u.Path, Rollout: r.ID, Wave: y.wave.Name,
			Kind: overKind(r.Removing), Text: y.passedText(),
		})
	}
	u.owe(y)
	r.Wave++
	return true
}

// finish ends a rollout that passed all waves: bundles that are healthy now are good.
func (p *pass) finish(u *Unit) {
	r := u.Rollout
	r.Status, r.FinishedAt = Done, p.now
	u.dropCleaned()
	for _, t := range u.list() {
		t.Touched = false
		if t.done() {
			t.good(r.ID)
			t.TriedAt = time.Time{}
		}
	}
	u.passed()
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
			u.drop(name)
		}
	}
	return len(u.Targets) < before
}

// maxQuarantine is the most quarantined bundles that are remembered for one unit.
const maxQuarantine = 100

// Kinds of the transition when a wave is over: all are passed before the first is cleaned.
const (
	kindPassed  = "passed"
	kindCleaned = "cleaned"
)

func overKind(removing bool) string {
	if removing {
		return kindCleaned
	}
	return kindPassed
}

// passedText says how many targets a wave was passed with, and without which.
func (y *tally) passedText() string {
	text := fmt.Sprintf("%d of %d targets", y.size-len(y.debts), y.size)
	if n := len(y.masked); n > 0 {
		text += fmt.Sprintf(", without %d that are masked: %s", n, list(y.masked))
	}
	if n := len(y.excused); n > 0 {
		text += fmt.Sprintf(", without %d that do not answer: %s", n, list(y.excused))
	}
	return text
}

// written are the targets of a wave that the rollout wrote.
func (u *Unit) written(wave int) (names []config.TargetName) {
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if t.Wave == wave && t.Touched && t.Wanted != "" {
			names = append(names, name)
		}
	}
	return names
}

// fail turns the rollout back, or holds it, because of failed targets of a wave. What they
// were to have is put into quarantine.
func (p *pass) fail(u *Unit, why string, wave *config.Wave, failed []config.TargetName) {
	r := u.Rollout
	r.Failure = fmt.Sprintf("wave %s: %s", wave.Name, why)
	p.state.touch(u.Path)
	if r.Spec.OnFailure == config.Hold {
		r.Status, r.FinishedAt = Held, p.now
		p.note(u, "", "held", r.Failure)
		return
	}
	if !u.CanGoBack() {
		r.Status, r.FinishedAt = Held, p.now
		r.Failure += "; not rolled back, no earlier good version"
		failedJob := func(name config.TargetName) bool { return u.Targets[name].GateFailed != "" } // it is not run again
		if r.Stalled = !slices.ContainsFunc(failed, failedJob); r.Stalled {
			r.Failure += ": it goes on by itself when this is well"
		}
		p.note(u, "", "held", r.Failure)
		return
	}
	p.turnBack(u, failed)
}

// turnBack begins to put back what the targets had that the rollout wrote.
func (p *pass) turnBack(u *Unit, failed []config.TargetName) {
	r := u.Rollout
	for _, name := range failed {
		if t := u.Targets[name]; t.Wanted != t.Good {
			p.quarantine(u, name, t)
		}
	}
	r.Status, r.FinishedAt = RollingBack, time.Time{}
	r.Authors = u.Authors() // targets that never had anything are forgotten now
	for _, at := range u.list() {
		name, t := at.name, at.Target
		switch {
		case t.Touched && t.Good != "":
			t.Wanted = t.Good
			t.forgive(p.now)
		case t.nothing():
			u.drop(name)
		default: // untouched, or nothing to go back to: it stays as it is
			t.Wanted = t.Applied
		}
	}
	p.note(u, "", "rolling back", r.Failure)
	p.restored(u)
}

// CanGoBack says that the rollout wrote to a target that had a good bundle.
func (u *Unit) CanGoBack() bool {
	for _, t := range u.list() {
		if t.Touched && t.Good != "" {
			return true
		}
	}
	return false
}

func (p *pass) quarantine(u *Unit, name config.TargetName, t *Target) {
	if u.Quarantine == nil {
		u.Quarantine = map[object.Digest]Quarantined{}
	}
	u.Quarantine[t.Wanted] = Quarantined{Commit: u.Rollout.Commit, Target: name, Reason: cmp.Or(t.Reason, u.Rollout.Failure), At: p.now}
	if len(u.Quarantine) <= maxQuarantine {
		return
	}
	var oldest object.Digest
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
	for _, at := range u.list() {
		name, t := at.name, at.Target
		switch {
		case !t.Touched:
		case t.Good == "":
			without = append(without, name)
		case t.Masked != "": // it is put back when that is over
		case !t.done():
			return
		}
	}
	for _, t := range u.list() {
		t.Touched = t.Touched && (t.Good == "" || t.Masked != "" && !t.done())
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

// finishRestored ends a release that was rolled back to what it brings itself, as one that takes a bad one back and was
// late: all of it is well by now.
func (p *pass) finishRestored(u *Unit) {
	w := p.want.Units[u.Path]
	if p.held == "" && w != nil && w.frozen() == "" && u.Rollout.Release == w.Release() && u.isRestoredTo(w) {
		p.finish(u)
	}
}

// restoredLate notes masked targets that were put back after the rollback was over.
func (p *pass) restoredLate(u *Unit) {
	for _, t := range u.list() {
		if t.Touched && t.Good != "" && t.done() {
			t.Touched, t.TriedAt = false, time.Time{}
			p.state.touch(u.Path)
		}
	}
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
	case t.Masked != "" && t.MaskedIll:
		const text = " is %s, and was not healthy with this release before: %s"
		return fmt.Sprintf(text, t.Masked, cmp.Or(t.Reason, "it was not looked at again"))
	case t.Masked != "":
		return " is " + t.Masked
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
	if reason := u.reason(u.barred); reason != u.Rollout.Reason {
		u.Rollout.Reason = reason
		p.state.touch(u.Path)
	}
}

func (u *Unit) reason(why string) string {
	r := u.Rollout
	var open []config.TargetName
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if !t.done() && t.Masked == "" && !u.dips(t) && (r.Status != RollingBack || t.Touched && t.Good != "") {
			open = append(open, name)
		}
	}
	switch r.Status {
	case Held, RolledBack:
		return r.Failure + "; " + u.again()
	case RollingBack:
		if why != "" {
			why += "; "
		}
		return fmt.Sprintf("%s; rolling back: %s%s", r.Failure, why, u.why(open))
	case Done:
		return joined(why, u.why(open), u.debtText())
	}
	for wave, y := range u.tallies(false) {
		if reason := y.reason(u, r.Removing || wave < r.Wave); reason != "" || wave == r.Wave && why != "" && !r.Removing {
			return fmt.Sprintf("wave %s: %s", y.wave.Name, joined(why, reason))
		}
	}
	for wave, y := range u.tallies(true) {
		if reason := y.reason(u, wave < r.Wave); reason != "" {
			return fmt.Sprintf("cleaning wave %s: %s", y.wave.Name, joined(why, reason))
		}
	}
	return joined(why, u.debtText())
}

// debtText says which targets miss a release because they are masked; empty when none
// does.
func (u *Unit) debtText() string {
	var names []config.TargetName
	for _, at := range u.list() {
		name, t := at.name, at.Target
		if t.Masked != "" && !t.done() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d targets owe it, %s is %s", len(names), len(u.Targets), names[0], u.Targets[names[0]].Masked)
}

// joined are the texts that are not empty, with "; " between.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// reason says why a wave is not passed, or no longer quiet.
func (y *tally) reason(u *Unit, passed bool) string {
	end := y.soakEnd()
	switch { // a soak that is over may be followed by a gate
	case y.missesMany():
		if name := y.debts[0]; u.Targets[name].Trouble == TroubleFailed && !u.Targets[name].Touched {
			return fmt.Sprintf("%s; %s %s goes on without it", u.why(y.debts), order.Command("mask", u.Path), name)
		}
		return u.why(y.debts)
	case len(y.waiting) > 0:
		return fmt.Sprintf("waiting for %d of %d targets: %s", len(y.waiting), y.size, u.why(y.waiting))
	case !passed && y.checked.Before(end):
		return "soaking until " + end.Format(time.RFC3339)
	}
	return ""
}
