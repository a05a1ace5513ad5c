// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/informer"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// recordSweeps takes in the sweeps that are over: the next plan corrects what differs,
// or it is only reported.
func (p *pass) recordSweeps() error {
	if len(p.in.sweeps) == 0 {
		return nil
	}
	var corrected []store.Entry
	for _, l := range p.in.sweeps {
		corrected = append(corrected, p.recordSweep(l)...)
		if err := p.saveSweep(l); err != nil {
			return err
		}
	}
	p.sweeps.ledger.Tidy(p.r.At)
	// An object whose digest is cleared is not judged by the next sweep, so it must be
	// known that it has to be sent: that is in the same transaction.
	return p.tx.MarkDirty(corrected)
}

// saveSweep notes how far the sweeps of a cluster have come.
func (p *pass) saveSweep(l *sweep) error {
	var errs []error
	if l.full && !l.failed() {
		errs = append(errs, p.tx.Swept(l.cluster, p.sweeps.timetable.SweptAt(l.cluster)))
	}
	if l.deep.done {
		errs = append(errs, p.tx.SetDeepAfter(l.cluster, l.deep.last))
	}
	return errors.Join(errs...)
}

// failed says that the sweep has to be done again soon. A kind that the server
// does not let us see is no such reason. Of single objects that a watch told of, nobody else looks
// again before the next sweep.
func (l *sweep) failed() bool {
	return l.err != nil && (l.conn == nil || l.found.Lost || !l.full && l.found.Unanswered)
}

// dueSweeps is what is due.
func (d *Daemon) dueSweeps(r *Record) []*sweep {
	suspects := d.drainSuspects(r)
	var due []*sweep
	for _, name := range d.fleet.Names() {
		if !d.mayLook(name) || d.sweeps.underWay[name] != nil {
			d.informer.Requeue(name, suspects[name]) // for the sweep after that
			continue
		}
		at := d.sweeps.timetable.Due(name)
		l := &sweep{cluster: name, full: !at.IsZero() && !at.After(r.At), few: suspects[name], deep: d.deepDue(name, r.At)}
		if !d.sweeps.timetable.HeldUntil(name).After(r.At) {
			for _, of := range d.sweeps.ledger.DueFights(name, r.At) {
				l.few = append(l.few, informer.Suspect{ID: of.ID, Anyway: true})
			}
			for _, of := range d.reconsidered(name) {
				l.few = append(l.few, informer.Suspect{ID: of.ID, Anyway: true})
			}
		}
		if l.full || len(l.few) > 0 || l.deep.due {
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b *sweep) int { return strings.Compare(a.cluster, b.cluster) })
	return due
}

// reconsidered are the objects of a cluster whose drift a watch saw that was not to be
// corrected then, and is now: a Mask is gone, a commit says so, or it is known again what
// the unit says. Where nothing is watched, the next sweep corrects them.
func (d *Daemon) reconsidered(cluster string) []store.Object {
	if !d.Drift.Watch {
		return nil
	}
	return d.sweeps.ledger.Reconsider(cluster, func(of store.Object) bool {
		if d.sweeps.modes.Of(of.Unit, of.Target) != config.DriftCorrect || d.masked(object.UnitTarget{Unit: of.Unit, Target: of.Target}) != "" {
			return false
		}
		if u := d.state.Units[of.Unit]; u != nil && u.Targets[of.Target] != nil && u.Targets[of.Target].IsEmpty() {
			return false // a first release that failed is not judged
		}
		_, _, moves := d.movesOn(of)
		return !moves
	})
}

// sweepWhereJudged has the clusters of units swept of which a commit says something else
// about drift: watches told nothing of what was not looked at.
func (d *Daemon) sweepWhereJudged(before, now *render.Snapshot) {
	if !d.Drift.Watch || before == nil {
		return
	}
	for path, unit := range now.Units.All() {
		was := before.Units.Get(path)
		if was == nil || was == unit || len(unit.Problems) > 0 ||
			reflect.DeepEqual(was.Policy.Drift, unit.Policy.Drift) && reflect.DeepEqual(was.Policy.Ignore, unit.Policy.Ignore) {
			continue
		}
		for _, p := range unit.Placements {
			d.sweeps.timetable.Ask(p.Target.Name.Cluster())
		}
	}
}

// maxFew is how many objects are looked at one by one.
const maxFew = 200

// entriesFor are the entries to sweep, without those with drift off, and those of
// suspects that are postponed. It turns a sweep of many suspects into a full
// sweep.
func (d *Daemon) entriesFor(l *sweep) ([]store.Entry, error) {
	busy := map[object.UnitTarget]bool{}
	for _, at := range d.executor.Places() {
		busy[at] = true
	}
	spared := func(e store.Entry, s informer.Suspect) bool {
		if at := e.Place(); busy[at] && !s.Anyway {
			d.postpone(at, s)
			return true
		}
		return d.clean(e, s)
	}
	if !l.full && len(l.few) <= maxFew {
		var entries []store.Entry
		for _, s := range l.few {
			holders, err := d.Store.Holders(l.cluster, s.ID)
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
		suspects := make(map[object.ID]informer.Suspect, len(l.few))
		for _, s := range l.few {
			suspects[s.ID] = s
		}
		few := slices.DeleteFunc(slices.Clone(all), func(e store.Entry) bool {
			s, ok := suspects[e.ID]
			return !ok || spared(e, s)
		})
		if !l.full && len(few) <= maxFew {
			return few, nil
		}
		l.full = true // costs less
	}
	l.gone = d.withoutEntry(l.cluster, all)
	return slices.DeleteFunc(all, d.off), nil
}

// clean says that a suspect needs no look: what the watch saw was our own write,
// which is known by now.
func (d *Daemon) clean(e store.Entry, s informer.Suspect) bool {
	return !apply.Judged(e) || d.off(e) || !s.Anyway && e.Fingerprint == s.Fingerprint
}

func (d *Daemon) off(e store.Entry) bool {
	return d.sweeps.modes.Of(e.Unit, e.Target) == config.DriftOff
}

// withoutEntry are the objects that are known to have drifted and are not in
// the inventory any more, or not to be looked at.
func (d *Daemon) withoutEntry(cluster string, all []store.Entry) []store.Object {
	drifted := d.sweeps.ledger.On(cluster)
	if len(drifted) == 0 {
		return nil
	}
	there := make(map[store.Object]bool, len(all))
	for i := range all {
		there[all[i].Of()] = !d.off(all[i])
	}
	return slices.DeleteFunc(drifted, func(of store.Object) bool { return there[of] })
}

// recordSweep notes what a sweep found, and returns the entries that the next plan
// has to send again.
func (p *pass) recordSweep(l *sweep) (corrected []store.Entry) {
	switch {
	case l.err != nil:
		p.r.went(watching(l.cluster), fmt.Errorf("sweep of cluster %s: %s", l.cluster, strings.ReplaceAll(l.err.Error(), "\n", "; ")))
	case l.full:
		p.r.went(watching(l.cluster), nil)
	}
	if l.deep.err != nil {
		p.r.fail(fmt.Errorf("deep sweep of cluster %s: %s", l.cluster, strings.ReplaceAll(l.deep.err.Error(), "\n", "; ")))
	}
	isRepeated := p.Drift.Watch || p.Drift.Schedule != nil
	switch {
	case l.failed():
		p.sweeps.timetable.Failed(l.cluster, p.r.At)
		if isRepeated { // what was missed is made up for soon, and not when it is time again
			p.sweeps.failures[l.cluster] = "not looked at for drift: " + l.err.Error()
			p.sweeps.timetable.Ask(l.cluster)
		}
	case l.full:
		delete(p.sweeps.failures, l.cluster)
		p.sweeps.timetable.Swept(l.cluster, p.r.At)
		p.r.Swept = append(p.r.Swept, l.cluster)
		if l.found.Unanswered && isRepeated { // of kinds that nobody may watch now
			p.sweeps.timetable.AskAfter(l.cluster, p.r.At.Add(watchPause))
		}
	}
	for _, of := range l.gone {
		p.sweeps.ledger.Clear(of)
		p.sweeps.ledger.EndFight(of)
	}
	corrected = p.noteDrifts(l.found.Drifts, false, p.r.At)
	p.noteGood(l.entries, l.found, false)
	p.doubtSwept(l.cluster, l.entries, l.found)
	if l.full && !l.failed() {
		p.sweeps.marks.keep(l.cluster, l.entries)
	}
	deeper := slices.DeleteFunc(slices.Clone(l.deep.found.Drifts), func(f drift.Finding) bool { // the sweep of this pass found it too
		return slices.ContainsFunc(l.found.Drifts, func(known drift.Finding) bool { return known.Entry.Of() == f.Entry.Of() })
	})
	corrected = append(corrected, p.noteDrifts(deeper, false, p.r.At)...)
	p.noteGood(l.deep.entries(), l.deep.found, true)
	return corrected
}

// noteGood notes which of the entries are as they were applied. What only a
// deep sweep could see is not over because another one sees nothing.
func (p *pass) noteGood(entries []store.Entry, found apply.Swept, deep bool) {
	if p.sweeps.ledger.Empty() {
		return
	}
	differs := make(map[store.Object]bool, len(found.Drifts))
	for _, f := range found.Drifts {
		differs[f.Entry.Of()] = true
	}
	for i := range entries {
		of := entries[i].Of()
		if i >= len(found.Looked) || !found.Looked[i] || differs[of] {
			continue
		}
		was, known := p.sweeps.ledger.Drift(of)
		if known && was.Deep && !deep {
			continue
		}
		if known {
			p.sweeps.ledger.Clear(of)
			p.event(of, "restored", of.ID.String()+": as it was applied")
		}
		if p.sweeps.ledger.FightIsOver(of, p.r.At) {
			p.endFight(of)
		}
	}
}

// endFight forgets a fight, and says so if it was one.
func (p *pass) endFight(of store.Object) {
	if f, ok := p.sweeps.ledger.EndFight(of); ok && f.Rounds > 0 {
		p.event(of, "fight over", fmt.Sprintf("%s: %s", of.ID, drift.FightText(f.Field, f.Manager)))
	}
}

// event adds a transition about an object: "reported" and "restored" for drift
// that is not corrected, "fight" and "fight over".
func (p *pass) event(of store.Object, kind, text string) {
	t := rollout.Transition{Time: p.r.At.UTC().Round(0), Unit: of.Unit, Target: of.Target, Kind: kind, Text: text}
	if u := p.state.Units[of.Unit]; u != nil {
		t.Commit, t.Rollout = u.Rollout.Commit, u.Rollout.ID
	}
	p.r.Transitions = append(p.r.Transitions, t)
}

// noteDrifts writes down what was found, and returns the entries of what the
// next plan has to correct. What a check of health misses in a release is made
// anew whatever the mode: else the release could neither become healthy nor be
// put back.
func (p *pass) noteDrifts(drifts []drift.Finding, checked bool, now time.Time) (corrected []store.Entry) {
	owners := p.owners(p.tx)
	for _, found := range drifts {
		of := found.Entry.Of()
		if !owners.IsApplied(found.Entry) {
			continue // what is left of an earlier bundle is on its way out
		}
		mode, awaited := p.sweeps.modes.Of(of.Unit, of.Target), checked && found.Missing && p.releasing(of.Unit)
		switch {
		case mode == config.DriftOff && !awaited:
			continue
		case mode == config.DriftReport && !awaited, found.Leaving, p.reportsOnly(found.Entry):
			p.noteReported(found, drift.Text(found), now)
		case p.waitsForRelease(found):
			p.noteReported(found, drift.Text(found)+"; the newest commit changes it too: it stays until its wave", now)
		case found.Kept:
			p.noteFight(found, drift.FightText(found.Changes[0].Field, found.Changes[0].Manager), now)
		case !p.sweeps.ledger.AllowCorrection(found, now):
			f, _ := p.sweeps.ledger.Fight(of)
			p.noteFight(found, fmt.Sprintf("%s, not corrected before %s", drift.FightText(f.Field, f.Manager), f.Until.UTC().Format(time.RFC3339)), now)
		default:
			p.sweeps.ledger.Note(found, string(mode), now)
			corrected = append(corrected, found.Entry)
			p.r.Transitions = append(p.r.Transitions, p.state.Record(rollout.Outcome{
				Action: rollout.Action{Kind: rollout.Sweep, Unit: of.Unit, Target: of.Target},
				Result: rollout.Drifted,
				Reason: drift.Text(found),
			}, now)...)
		}
		p.r.Drifts = append(p.r.Drifts, found)
	}
	return corrected
}

// releasing says whether a rollout of the unit, or its way back, is under way.
func (p *pass) releasing(path config.UnitPath) bool {
	u := p.state.Units[path]
	return u != nil && (u.Rollout.Status == rollout.Progressing || u.Rollout.Status == rollout.RollingBack)
}

func (p *pass) noteReported(found drift.Finding, text string, now time.Time) {
	if p.sweeps.ledger.Note(found, string(config.DriftReport), now) {
		p.event(found.Entry.Of(), "reported", text)
	}
}

func (p *pass) noteFight(found drift.Finding, text string, now time.Time) {
	of := found.Entry.Of()
	before, _ := p.sweeps.ledger.Drift(of)
	if p.sweeps.ledger.Note(found, drift.ModeFight, now) && before.Mode != drift.ModeFight {
		p.event(of, "fight", fmt.Sprintf("%s: %s", of.ID, text))
	}
}

// clearDrift notes that what a job sent is now as the server answered, and that
// what it deleted is not ours any more.
func (p *pass) clearDrift(j *executor.Job) {
	if p.sweeps.ledger.Empty() {
		return
	}
	for i := range j.Confirmed {
		e := &j.Confirmed[i]
		if e.Digest == "" || j.Inventory[e.ID].Digest == e.Digest {
			continue // not known, or not sent
		}
		if was, ok := p.sweeps.ledger.Clear(e.Of()); ok && was.Mode != string(config.DriftCorrect) {
			p.event(e.Of(), "restored", e.ID.String()+": applied again")
		}
		if f, ok := p.sweeps.ledger.Fight(e.Of()); ok && f.Digest != "" && f.Digest != e.Digest {
			p.endFight(e.Of()) // Git brings something else
		}
	}
	for i := range j.Forgotten {
		of := j.Forgotten[i].Of()
		p.sweeps.ledger.Clear(of)
		p.sweeps.ledger.EndFight(of)
	}
}

// driftModes yields the drift modes of each unit of a snapshot.
func driftModes(s *render.Snapshot) iter.Seq2[config.UnitPath, drift.UnitModes] {
	return func(yield func(config.UnitPath, drift.UnitModes) bool) {
		for path, unit := range s.Units.All() {
			if !yield(path, unitModes(unit)) {
				return
			}
		}
	}
}

func unitModes(unit *render.Unit) drift.UnitModes {
	if len(unit.Problems) > 0 {
		return drift.UnitModes{Unknown: true}
	}
	if len(unit.Policy.Drift) == 0 {
		return drift.UnitModes{}
	}
	on := map[config.TargetName]config.DriftMode{}
	for _, p := range unit.Placements {
		if mode := unit.Policy.DriftOn(p.Target.Labels); mode != config.DriftCorrect {
			on[p.Target.Name] = mode
		}
	}
	return drift.UnitModes{On: on}
}
