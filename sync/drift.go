// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// sweep compares live objects with the inventory, where the time has come or
// the watch saw something, and notes what differs: the next plan corrects it,
// or it is only reported.
func (d *Daemon) sweep(ctx context.Context, r *Record) {
	begun := d.looks(r)
	for _, l := range begun {
		d.beginLook(ctx, l)
	}
	looks := d.endedLooks(ctx, begun)
	if ctx.Err() != nil || len(looks) == 0 {
		return
	}
	var corrected []store.Entry
	for _, l := range looks {
		corrected = append(corrected, d.takeIn(r, l)...)
	}
	d.book.tidy(r.At)
	// In one transaction: an object whose digest is cleared is not judged by
	// the next sweep, so it must be known that it has to be sent.
	r.Err = d.Store.Update(ctx, func(tx *store.Tx) error {
		if err := errors.Join(tx.Suspect(corrected), d.book.put(tx)); err != nil {
			return err
		}
		for _, l := range looks {
			if err := d.putLook(tx, l); err != nil {
				return err
			}
		}
		return d.putState(tx)
	})
	if r.Err != nil {
		return
	}
	d.state.Stored()
	d.book.stored()
	for _, l := range looks {
		d.follow(ctx, l)
	}
	d.hush(r.At)
}

func (d *Daemon) putLook(tx *store.Tx, l *look) error {
	var errs []error
	if l.sweep && !l.failed() {
		errs = append(errs, tx.Swept(l.cluster, d.sweptAt[l.cluster]))
	}
	if l.deep.done {
		errs = append(errs, tx.DeepAfter(l.cluster, l.deep.last))
	}
	return errors.Join(errs...)
}

// failed says that the look has to be taken again soon. A kind that the server
// does not let us see is no such reason.
func (l *look) failed() bool { return l.err != nil && (l.conn == nil || l.found.Lost) }

// looks is what is due.
func (d *Daemon) looks(r *Record) []*look {
	suspects := d.gather(r)
	d.book.clamp(r.At)
	var due []*look
	for name := range d.clusters {
		if barred, _ := d.barred(name); barred || d.looking[name] != nil {
			d.watches.putBack(name, suspects[name]) // for the look after that
			continue
		}
		if last := d.sweptAt[name]; last.After(r.At) {
			d.sweptAt[name] = r.At // the clock was set back
		}
		at := d.sweepAt(name)
		l := &look{cluster: name, sweep: !at.IsZero() && !at.After(r.At), few: suspects[name], deep: d.deepDue(name, r.At)}
		if !d.sweepAfter[name].After(r.At) {
			for _, of := range d.book.resting(name, r.At) {
				l.few = append(l.few, suspect{id: of.ID, anyway: true})
			}
		}
		if l.sweep || len(l.few) > 0 || l.deep.due {
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b *look) int { return strings.Compare(a.cluster, b.cluster) })
	return due
}

// maxFew is how many objects are looked at one by one.
const maxFew = 200

// entriesFor are the entries to look at, without those that nobody wants looked
// at, and those of suspects that are parked. It turns many single looks into a
// sweep.
func (d *Daemon) entriesFor(l *look) ([]store.Entry, error) {
	busy := map[rollout.Place]bool{}
	for _, at := range d.beside.places() {
		busy[at] = true
	}
	spared := func(e store.Entry, s suspect) bool {
		if at := e.Place(); busy[at] && !s.anyway {
			d.park(at, s)
			return true
		}
		return d.clean(e, s)
	}
	if !l.sweep && len(l.few) <= maxFew {
		var entries []store.Entry
		for _, s := range l.few {
			holders, err := d.Store.Holders(l.cluster, s.id)
			if err != nil {
				return nil, err
			}
			entries = append(entries, slices.DeleteFunc(holders, func(e store.Entry) bool { return spared(e, s) })...)
		}
		return entries, nil
	}
	all, err := d.Store.ClusterInventory(l.cluster)
	if err != nil {
		return nil, err
	}
	if len(l.few) > 0 {
		suspects := make(map[render.ObjectID]suspect, len(l.few))
		for _, s := range l.few {
			suspects[s.id] = s
		}
		few := slices.DeleteFunc(slices.Clone(all), func(e store.Entry) bool {
			s, ok := suspects[e.ID]
			return !ok || spared(e, s)
		})
		if !l.sweep && len(few) <= maxFew {
			return few, nil
		}
		l.sweep = true // costs less
	}
	l.gone = d.withoutEntry(l.cluster, all)
	return slices.DeleteFunc(all, d.off), nil
}

// clean says that a suspect needs no look: what the watch saw was our own write,
// which is known by now.
func (d *Daemon) clean(e store.Entry, s suspect) bool {
	return !apply.Judged(e) || d.off(e) || !s.anyway && e.Fingerprint == s.fingerprint
}

func (d *Daemon) off(e store.Entry) bool { return d.modes.of(e.Unit, e.Target) == config.DriftOff }

// withoutEntry are the objects that are known to have drifted and are not in
// the inventory any more, or not to be looked at.
func (d *Daemon) withoutEntry(cluster string, all []store.Entry) []store.Object {
	drifted := d.book.on(cluster)
	if len(drifted) == 0 {
		return nil
	}
	there := make(map[store.Object]bool, len(all))
	for i := range all {
		there[all[i].Of()] = !d.off(all[i])
	}
	return slices.DeleteFunc(drifted, func(of store.Object) bool { return there[of] })
}

// takeIn notes what a look found, and returns the entries that the next plan
// has to send again.
func (d *Daemon) takeIn(r *Record, l *look) (corrected []store.Entry) {
	if l.err != nil {
		r.fail(fmt.Errorf("sweep of cluster %s: %s", l.cluster, strings.ReplaceAll(l.err.Error(), "\n", "; ")))
	}
	if l.deep.err != nil {
		r.fail(fmt.Errorf("deep sweep of cluster %s: %s", l.cluster, strings.ReplaceAll(l.deep.err.Error(), "\n", "; ")))
	}
	switch {
	case l.failed():
		d.sweepAfter[l.cluster] = r.At.Add(sweepPause)
		if d.Drift.Watch || d.Drift.Schedule != nil { // what was missed is made up for soon, and not when it is time again
			d.lookTrouble[l.cluster] = "not looked at for drift: " + l.err.Error()
			d.sweepNow[l.cluster] = true
		}
	case l.sweep:
		delete(d.lookTrouble, l.cluster)
		d.sweptAt[l.cluster] = r.At
		delete(d.sweepNow, l.cluster)
		r.Swept = append(r.Swept, l.cluster)
	}
	for _, of := range l.gone {
		d.book.clear(of)
		d.book.endFight(of)
	}
	corrected = d.noteDrifts(r, l.found.Drifts, false, r.At)
	d.noteGood(r, l.entries, l.found, false)
	deeper := slices.DeleteFunc(slices.Clone(l.deep.found.Drifts), func(drift apply.Drift) bool { // the sweep of this pass found it too
		return slices.ContainsFunc(l.found.Drifts, func(known apply.Drift) bool { return known.Entry.Of() == drift.Entry.Of() })
	})
	corrected = append(corrected, d.noteDrifts(r, deeper, false, r.At)...)
	d.noteGood(r, l.deep.entries(), l.deep.found, true)
	return corrected
}

// noteGood notes which of the entries are as they were applied. What only a
// deep look could see is not over because another one sees nothing.
func (d *Daemon) noteGood(r *Record, entries []store.Entry, found apply.Swept, deep bool) {
	if len(d.book.drifts)+len(d.book.fights) == 0 {
		return
	}
	differs := make(map[store.Object]bool, len(found.Drifts))
	for _, drift := range found.Drifts {
		differs[drift.Entry.Of()] = true
	}
	for i := range entries {
		of := entries[i].Of()
		if i >= len(found.Looked) || !found.Looked[i] || differs[of] {
			continue
		}
		was, known := d.book.drifts[of]
		if known && was.Deep && !deep {
			continue
		}
		if known {
			d.book.clear(of)
			d.say(r, of, "restored", of.ID.String()+": as it was applied")
		}
		if f, ok := d.book.fights[of]; ok && (over(f, r.At) || f.Rounds > 0 && f.Tried.IsZero() && !paused(f, r.At)) {
			d.endFight(r, of)
		}
	}
}

// endFight forgets a fight, and says so if it was one.
func (d *Daemon) endFight(r *Record, of store.Object) {
	if f, ok := d.book.endFight(of); ok && f.Rounds > 0 {
		d.say(r, of, "fight over", fmt.Sprintf("%s: %s", of.ID, fightText(f.Field, f.Manager)))
	}
}

// say adds a transition about an object: "reported" and "restored" for drift
// that is not corrected, "fight" and "fight over".
func (d *Daemon) say(r *Record, of store.Object, kind, text string) {
	t := rollout.Transition{Time: r.At.UTC().Round(0), Unit: of.Unit, Target: of.Target, Kind: kind, Text: text}
	if u := d.state.Units[of.Unit]; u != nil {
		t.Commit, t.Rollout = u.Rollout.Commit, u.Rollout.ID
	}
	r.Transitions = append(r.Transitions, t)
}

// noteDrifts writes down what was found, and returns the entries of what the
// next plan has to correct. What a check of health misses in a release is made
// anew whatever the mode: else the release could neither become healthy nor be
// put back.
func (d *Daemon) noteDrifts(r *Record, drifts []apply.Drift, checked bool, now time.Time) (corrected []store.Entry) {
	known := objectsInForce{}
	for _, drift := range drifts {
		of := drift.Entry.Of()
		if !d.isApplied(drift.Entry, known) {
			continue // what is left of an earlier bundle is on its way out
		}
		mode, awaited := d.modes.of(of.Unit, of.Target), checked && drift.Missing && d.releasing(of.Unit)
		switch {
		case mode == config.DriftOff && !awaited:
			continue
		case mode == config.DriftReport && !awaited:
			if d.book.note(drift, string(mode), now) {
				d.say(r, of, "reported", DriftText(drift))
			}
		case drift.Kept:
			d.noteFight(r, drift, fightText(drift.Changes[0].Field, drift.Changes[0].Manager), now)
		case !d.contend(drift, now):
			f := d.book.fights[of]
			d.noteFight(r, drift, fmt.Sprintf("%s, not corrected before %s", fightText(f.Field, f.Manager), f.Until.UTC().Format(time.RFC3339)), now)
		default:
			d.book.note(drift, string(mode), now)
			corrected = append(corrected, drift.Entry)
			r.Transitions = append(r.Transitions, d.state.Record(rollout.Outcome{
				Action: rollout.Action{Kind: rollout.Sweep, Unit: of.Unit, Target: of.Target},
				Result: rollout.Drifted,
				Reason: DriftText(drift),
			}, now)...)
		}
		r.Drifts = append(r.Drifts, drift)
	}
	return corrected
}

// isApplied says whether an object is of the bundle that its unit has on the target
// or is to have; also when that is not known.
func (d *Daemon) isApplied(e store.Entry, known objectsInForce) bool {
	unit := d.state.Units[e.Unit]
	if unit == nil || unit.Targets[e.Target] == nil {
		return true
	}
	t := unit.Targets[e.Target]
	for _, digest := range []render.Digest{t.Wanted, t.Applied} {
		if digest == "" {
			continue
		}
		if holds, err := d.inBundle(e, digest, known); err != nil || holds {
			return true
		}
	}
	return false
}

// releasing says whether a rollout of the unit, or its way back, is under way.
func (d *Daemon) releasing(path config.UnitPath) bool {
	u := d.state.Units[path]
	return u != nil && (u.Rollout.Status == rollout.Progressing || u.Rollout.Status == rollout.RollingBack)
}

func (d *Daemon) noteFight(r *Record, drift apply.Drift, text string, now time.Time) {
	of := drift.Entry.Of()
	before := d.book.drifts[of].Mode
	if d.book.note(drift, fightMode, now) && before != fightMode {
		d.say(r, of, "fight", fmt.Sprintf("%s: %s", of.ID, text))
	}
}

// fightMode is the mode in the state of a drift that is not corrected because
// that does not help.
const fightMode = "fight"

// contend counts what an object lost, and says whether to correct it.
func (d *Daemon) contend(drift apply.Drift, now time.Time) bool {
	of := drift.Entry.Of()
	f := d.book.fights[of]
	f.Object, f.Digest = of, drift.Entry.Digest
	f, correct := contend(f, lossesOf(drift, now), now)
	d.book.putFight(f)
	return correct
}

// settled notes that what a job sent is now as the server answered, and that
// what it deleted is not ours any more.
func (d *Daemon) settled(r *Record, j *job) {
	if len(d.book.drifts)+len(d.book.fights) == 0 {
		return
	}
	for i := range j.confirmed {
		e := &j.confirmed[i]
		if e.Digest == "" || j.inventory[e.ID].Digest == e.Digest {
			continue // not known, or not sent
		}
		if was, ok := d.book.clear(e.Of()); ok && was.Mode != string(config.DriftCorrect) {
			d.say(r, e.Of(), "restored", e.ID.String()+": applied again")
		}
		if f, ok := d.book.fights[e.Of()]; ok && f.Digest != "" && f.Digest != e.Digest {
			d.endFight(r, e.Of()) // Git brings something else
		}
	}
	for i := range j.forgotten {
		of := j.forgotten[i].Of()
		d.book.clear(of)
		d.book.endFight(of)
	}
}

// sweepPause is when a sweep that failed is tried again.
const sweepPause = time.Minute

// DriftText says in one line what was changed on an object, and by whom.
func DriftText(drift apply.Drift) string {
	var parts []string
	if drift.Missing {
		parts = append(parts, "deleted")
	}
	for _, change := range drift.Changes {
		parts = append(parts, change.String())
	}
	return fmt.Sprintf("%s: %s", drift.Entry.ID, strings.Join(parts, "; "))
}
