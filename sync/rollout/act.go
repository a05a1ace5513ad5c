// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Bounds on how often a target is looked at. In between it is a tenth of the
// time since its health last changed. What nothing waits for, debts and
// leftovers, is looked at ever more rarely, down to once in maxBackoff.
const (
	minCheck = time.Second
	maxCheck = 30 * time.Second
)

// Bounds on the time between attempts to write to a target.
const (
	minBackoff = 5 * time.Second
	maxBackoff = 5 * time.Minute
)

// backoff is the pause after so many failed attempts, counted from 1. It
// doubles, and is spread by up to a quarter so that what failed together is not
// tried again together.
func backoff(unit config.UnitPath, target config.TargetName, attempts int) time.Duration {
	pause := maxBackoff
	if attempts < 7 { // 5 s · 2⁶ is over 5 min
		pause = minBackoff << (attempts - 1)
	}
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %s %d", unit, target, attempts)
	pause += time.Duration(sum.Sum64() % uint64(pause/4))
	return min(pause, maxBackoff)
}

// act plans the actions of one unit.
func (p *pass) act(u *Unit) {
	if u.Rollout.Status == Held && u.Rollout.Spec.OnFailure == config.Hold {
		return
	}
	w := p.openWaves(u)
	for _, at := range u.list() {
		name, t := at.name, at.Target
		switch {
		case t.Masked != "": // its health tells when the mask may end
			p.check(u, name, t, w)
		case p.write(u, name, t, w):
		case p.correct(u, name, t):
		default:
			p.check(u, name, t, w)
		}
	}
}

// waves is which waves of a unit may be written at the moment.
type waves struct {
	// apply and remove are the last waves that may be written and cleaned; -1
	// is none.
	apply, remove int
	// free are how many more targets of a wave may be changed at the same
	// time, for applying and for removing.
	free [2][]int
	// objects are, for each wave, how many objects the bundles in change have.
	objects []int
	bounds  []int // how many they may have; 0 is any number
	// back is the first wave that a rollback may write: those after it are done.
	back int
	// soaks is when the soak of the current wave ends.
	soaks time.Time
}

func (p *pass) openWaves(u *Unit) waves {
	r := u.Rollout
	last := len(r.Spec.Waves) - 1
	w := waves{apply: last, remove: -1}
	if (r.Status == Progressing || r.Stalled) && !r.Removing {
		w.apply = min(r.Wave, last)
		w.soaks = u.tally(w.apply, false).soakEnd()
	}
	quiet := true
	for i, y := range u.tallies(false) {
		w.objects, w.bounds = append(w.objects, y.objects), append(w.bounds, y.wave.MaxObjects)
		w.free[0] = append(w.free[0], y.slots()-y.underway)
		if quiet = quiet && y.quiet(); !quiet {
			// a wave that was passed can come to life again, by drift or
			// because a debt was paid: nothing behind it is written then
			w.apply = min(w.apply, i)
		}
	}
	for i, y := range u.tallies(true) {
		w.free[1] = append(w.free[1], y.slots()-y.underway)
		if reached := r.Status == Done || r.Removing && i <= r.Wave; quiet && reached && p.known(u.Path) {
			w.remove = i
		}
		quiet = quiet && y.quiet()
	}
	for _, t := range u.list() {
		if t.Touched && t.Good != "" && t.Masked == "" && !t.done() && !t.debt() {
			w.back = max(w.back, t.Wave)
		}
	}
	return w
}

// underway says that the target is changed and not yet healthy, and may become so.
func (t *Target) underway() bool {
	return !t.debt() && (t.Dirty || t.Wanted != "" && t.Applied == t.Wanted && t.Health != HealthGood)
}

// write plans the action that brings the target to its wanted bundle, and reports
// whether it planned one.
func (p *pass) write(u *Unit, name config.TargetName, t *Target, w waves) bool {
	if t.applied() {
		return false
	}
	a := u.ActionFor(name, t.Wanted)
	a.Kind, a.Wave, a.Why = Apply, u.waveName(t), WhyRollout
	removing := 0
	if t.Wanted == "" {
		a.Kind, a.Digest, removing = Remove, "", 1
	}
	switch status := u.Rollout.Status; {
	case status == RollingBack, status == RolledBack && t.Touched && t.Good != "" && t.Wanted == t.Good:
		if !t.Touched || t.Good == "" || t.Wave < w.back {
			return false
		}
		a.Why = WhyRollback
	case status == RolledBack, t.Wave < 0, status == Held && !(u.Rollout.Stalled && t.Touched && t.Wanted != ""):
		return false
	case t.Wanted == "" && t.Wave > w.remove, t.Wanted != "" && t.Wave > w.apply && !t.Fast:
		return false
	case t.Wanted == "" && (p.wants(u.Path, name) || p.leaveLater(u, name)), t.Wanted != "" && p.waits(u, name, t):
		return false
	case t.Attempts > 0 && !t.TriedAt.IsZero() || status == Done:
		a.Why = WhyRetry
	}
	if !t.TriedAt.IsZero() && p.early(u, name, t) {
		return false
	}
	if t.Wanted != "" && a.Why != WhyRollback && p.compare(u, named{name, t}) {
		return true
	}
	why, until := p.bars(u, name, t, a.Why)
	if why == "" && a.Why != WhyRollback {
		free, counted := &w.free[removing][t.Wave], t.underway()
		if !counted && (*free <= 0 || removing == 0 && !w.takeObjects(t)) {
			p.wakeAt(until)
			return false
		}
		if !t.inChange() { // also where a release that was superseded left it half written
			why = p.full(u, name)
		}
		if why == "" && !counted {
			*free--
		}
	}
	if why != "" {
		u.barred = cmp.Or(u.barred, why)
		p.wakeAt(until)
		return false
	}
	unasked := a.Why == WhyRollback && !t.inChange()
	if t.TriedAt.IsZero() { // what went wrong before was about something else
		t.forgive(p.now)
		t.TriedAt = p.now
	}
	if u.Rollout.Status == Progressing || t.Owes {
		t.Touched = true
	}
	p.dirty(u, named{name, t}, unasked)
	p.plan.Actions = append(p.plan.Actions, a)
	return true
}

// dirty notes that a write to the target begins, and counts it where it comes to be in change
// and no budget was asked.
func (p *pass) dirty(u *Unit, target named, unasked bool) {
	target.Dirty = true
	if unasked && target.inChange() {
		p.take(u, target.name)
	}
	p.state.touch(u.Path)
	p.open(u, target.name)
}

// takeObjects counts the target's objects among those in change, if they fit or are the
// only ones.
func (w *waves) takeObjects(t *Target) bool {
	in := &w.objects[t.Wave]
	if most := w.bounds[t.Wave]; most > 0 && *in > 0 && *in+t.Objects > most {
		return false
	}
	*in += t.Objects
	return true
}

// bars says what keeps a release, or a rollback, from writing at a target now, empty when
// nothing does, and until when that holds. What has started is not kept from going on by
// what is about starts only.
func (p *pass) bars(u *Unit, name config.TargetName, t *Target, why Why) (text string, until time.Time) {
	at := u.at(name, t)
	if text := p.stopped(at); text != "" {
		return text, time.Time{}
	}
	if why == WhyRollback || !t.TriedAt.IsZero() {
		return "", time.Time{}
	}
	if !u.Rollout.Promoted {
		if text := p.broken(u.Rollout.Commit); text != "" {
			return text + "; " + u.promoteText(), time.Time{}
		}
	}
	if text, until = p.closed(at); text != "" || t.Wanted == "" || t.Fast {
		return text, until
	}
	text, changes := p.notStarted(u, name, t)
	return text, earlier(until, changes)
}

// early says that it is too early to go on with a write, or to try it again.
func (p *pass) early(u *Unit, name config.TargetName, t *Target) bool {
	due, waits := t.RetryAt, t.Step != "" && t.Attempts == 0
	if unitTarget := (object.UnitTarget{Unit: u.Path, Target: name}); waits && p.state.notices.fought[unitTarget] == 0 {
		due = p.state.notices.earlier(unitTarget, due)
	}
	if !due.After(p.now) {
		return false
	}
	if waits {
		p.open(u, name)
	}
	p.wakeAt(due)
	return true
}

// correct plans what undoes drift, and reports whether it did. A target that a
// rollout is in the middle of writing is left to it.
func (p *pass) correct(u *Unit, name config.TargetName, t *Target) bool {
	if !t.Drifted || t.Applied == "" || t.Dirty && (t.Touched || !t.TriedAt.IsZero()) {
		return false
	}
	if p.early(u, name, t) {
		return false
	}
	p.dirty(u, named{name, t}, !t.inChange())
	u.restless = true // from the next Decide on it is a write like any other
	a := u.ActionFor(name, t.Applied)
	a.Kind, a.Wave, a.Why = Apply, u.waveName(t), WhyDrift
	p.plan.Actions = append(p.plan.Actions, a)
	return true
}

// check plans a look at a target that is not known to be healthy, that soaks,
// or that has leftovers to delete.
func (p *pass) check(u *Unit, name config.TargetName, t *Target, w waves) {
	if t.Applied == "" || t.Dirty {
		return
	}
	r := u.Rollout
	look := u.watching(t, w.soaks)
	if p.state.notices.steady && look == lookOut {
		look = lookNever
	}
	keeps := p.keeps(u, name, t)
	prune := t.Leftovers && t.applied() && keeps == ""
	if look == lookNever && p.state.notices.doubted[object.UnitTarget{Unit: u.Path, Target: name}] {
		look = lookDoubt
	}
	p.putOff(u, t, keeps)
	if t.Health == HealthGood && t.Trouble == NoTrouble && look == lookNever && !prune {
		return
	}
	if t.Masked == "" && (t.Health != HealthGood || look == lookOut || look == lookSoak) {
		p.open(u, name)
	}
	due := p.checkDue(u, name, t, look, w.soaks)
	if prune {
		due = earlier(due, p.checkDue(u, name, t, lookNever, time.Time{}))
	}
	if due.After(p.now) {
		p.wakeAt(due)
		return
	}
	if p.proves[object.UnitTarget{Unit: u.Path, Target: name}] {
		return // one action at a place, see [pass.unfinished]
	}
	a := u.ActionFor(name, t.Applied)
	a.Kind, a.Wave, a.Why, a.Prune = Check, u.waveName(t), WhyRollout, prune
	switch {
	case r.Status == RollingBack && t.Touched:
		a.Why = WhyRollback
	case r.Status != Progressing || !t.Touched:
		a.Why = WhyRetry
	}
	p.plan.Actions = append(p.plan.Actions, a)
}

// keeps says why nothing is deleted at a place of what an earlier bundle may have left
// there; empty when it may be.
func (p *pass) keeps(u *Unit, name config.TargetName, t *Target) string {
	if t.Masked != "" {
		return t.Masked
	}
	if !p.known(u.Path) {
		return "it is not known whether Git wants it"
	}
	return p.stopped(u.at(name, t))
}

// putOff says so of a target where nothing else is waited for.
func (p *pass) putOff(u *Unit, t *Target, keeps string) {
	if t.Leftovers && t.applied() && t.Health == HealthGood && t.Left == "" && keeps != "" {
		t.Left = "what an earlier bundle left is not deleted: " + keeps
		p.state.touch(u.Path)
	}
}

// watch is why a target that is healthy is looked at.
type watch int

const (
	lookNever watch = iota
	lookDoubt       // something happened to its objects, and no rollout waits for it
	lookOut         // the rollout that wrote it is not over: it may still fail
	lookSoak        // it soaks
)

// watching says why the target is looked at while it is healthy.
func (u *Unit) watching(t *Target, soaks time.Time) watch {
	r := u.Rollout
	switch {
	case r.Status != Progressing || !t.Touched || t.Wanted == "" || t.Wave > r.Wave && !r.Removing:
		return lookNever
	case !r.Removing && t.Wave == r.Wave && !soaks.IsZero():
		return lookSoak
	}
	return lookOut
}

// checkDue is when the target is to be looked at next: at once after an apply,
// soon after something happened to its objects, and not later than when its soak
// or its time to become healthy ends.
func (p *pass) checkDue(u *Unit, name config.TargetName, t *Target, look watch, soaks time.Time) time.Time {
	if t.CheckedAt.IsZero() && t.Attempts == 0 {
		return p.now
	}
	at, most, waited := object.UnitTarget{Unit: u.Path, Target: name}, maxCheck, t.CheckedAt.Sub(t.Since)
	well := t.Health == HealthGood && t.Trouble == NoTrouble
	switch {
	case well && look == lookDoubt:
		return t.notBeforeRetry(t.CheckedAt.Add(min(max(waited/10, maxCheck), maxBackoff)))
	case well && look != lookNever && p.state.notices.watched[at]:
		most, waited = maxBackoff, 10*maxBackoff // what flaps has events
	case well && look == lookOut:
		most, waited = maxBackoff, max(waited, 10*maxCheck)
	case t.Trouble != NoTrouble || well && look == lookNever:
		most = maxBackoff
	}
	due := t.CheckedAt.Add(p.state.notices.pause(at, waited, most))
	ends := time.Time{}
	switch {
	case t.Health != HealthGood:
		ends = t.Since.Add(u.timeout(t))
	case look == lookSoak:
		ends = soaks
	}
	if ends.After(t.CheckedAt) && ends.Before(due) {
		due = ends
	}
	if t.Health != HealthGood || look != lookNever {
		due = p.state.notices.earlier(at, due)
	}
	return t.notBeforeRetry(due)
}

// notBeforeRetry is a time, or the one of the next attempt where that is later.
func (t *Target) notBeforeRetry(due time.Time) time.Time {
	if t.Attempts > 0 && t.RetryAt.After(due) {
		return t.RetryAt
	}
	return due
}

func (p *pass) open(u *Unit, name config.TargetName) {
	p.plan.Open = append(p.plan.Open, object.UnitTarget{Unit: u.Path, Target: name})
}

// timeout is how long the target may take from applied to healthy.
func (u *Unit) timeout(t *Target) time.Duration {
	if t.Wave < 0 || u.Rollout.Spec.Waves[t.Wave].Timeout <= 0 {
		return config.DefaultHealthTimeout
	}
	return u.Rollout.Spec.Waves[t.Wave].Timeout
}

// soak is that of the target's wave; zero where it has none.
func (u *Unit) soak(t *Target) time.Duration {
	if t.Wave < 0 || t.Wave >= len(u.Rollout.Spec.Waves) {
		return 0
	}
	return u.Rollout.Spec.Waves[t.Wave].Soak
}
