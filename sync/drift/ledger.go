// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package drift keeps a daemon's knowledge of drift: the ledger of differences, the
// fights with other writers over a field, the drift modes that Git asks for, and the
// schedule of sweeps.
//
// It asks no cluster and corrects nothing.
package drift

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Ledger has the objects that differ from what was applied. It holds
// nothing of those that are. What changes in it is stored with the next transaction.
// It is used by one goroutine.
type Ledger struct {
	drifts map[store.Object]store.Drift
	fights map[store.Object]store.Fight
	// seen are the fingerprints that the drifts were found with, which only
	// matter to this process.
	seen map[store.Object]string
	// resumed are the fights that were to be taken up again, and when: an object
	// that cannot be swept is left alone for a while.
	resumed map[store.Object]time.Time
	// again are the drifts that [Ledger.Reconsider] named.
	again map[store.Object]bool

	changedDrifts, changedFights map[store.Object]bool
}

// Open reads the ledger.
func Open(s interface {
	Drifts() ([]store.Drift, error)
	Fights() ([]store.Fight, error)
}) (*Ledger, error) {
	l := &Ledger{drifts: map[store.Object]store.Drift{}, fights: map[store.Object]store.Fight{}, seen: map[store.Object]string{}, resumed: map[store.Object]time.Time{}, again: map[store.Object]bool{}}
	l.Stored()
	drifts, err := s.Drifts()
	if err != nil {
		return nil, err
	}
	for _, d := range drifts {
		l.drifts[d.Object] = d
	}
	fights, err := s.Fights()
	if err != nil {
		return nil, err
	}
	for _, f := range fights {
		l.fights[f.Object] = f
	}
	return l, nil
}

// Put writes what changed since [Ledger.Stored] was last called.
func (l *Ledger) Put(tx *store.Tx) error {
	var drifts []store.Drift
	var fights []store.Fight
	var noDrift, noFight []store.Object
	for of := range l.changedDrifts {
		if d, ok := l.drifts[of]; ok {
			drifts = append(drifts, d)
		} else {
			noDrift = append(noDrift, of)
		}
	}
	for of := range l.changedFights {
		if f, ok := l.fights[of]; ok {
			fights = append(fights, f)
		} else {
			noFight = append(noFight, of)
		}
	}
	return errors.Join(tx.PutDrifts(drifts), tx.DropDrifts(noDrift), tx.PutFights(fights), tx.DropFights(noFight))
}

// Stored says that what was put is on disk.
func (l *Ledger) Stored() {
	l.changedDrifts, l.changedFights = map[store.Object]bool{}, map[store.Object]bool{}
}

// Note writes a finding down, and says whether it is news: another object, other
// fields or managers, or something else is done about it now.
func (l *Ledger) Note(f Finding, mode string, now time.Time) bool {
	of := f.Entry.Of()
	d := store.Drift{Object: of, Found: now, Mode: mode, Deep: f.Deep, Missing: f.Missing, Changes: f.Changes}
	before, known := l.drifts[of]
	news := !known || before.Mode != mode || driftKey(before) != driftKey(d)
	if known && !news {
		d.Found = before.Found
	}
	l.drifts[of], l.seen[of] = d, f.Fingerprint
	l.changedDrifts[of] = true
	return news
}

// driftKey is what makes one drift differ from another: not the time, which
// moves whenever the manager writes anything.
func driftKey(d store.Drift) string {
	var b strings.Builder
	if d.Missing {
		b.WriteString("missing")
	}
	for _, c := range d.Changes {
		c.Time = time.Time{}
		b.WriteString("\n" + c.String())
	}
	return b.String()
}

// Clear forgets a drift; ok is false when there was none.
func (l *Ledger) Clear(of store.Object) (was store.Drift, ok bool) {
	if was, ok = l.drifts[of]; ok {
		delete(l.drifts, of)
		delete(l.seen, of)
		delete(l.again, of)
		l.changedDrifts[of] = true
	}
	return was, ok
}

func (l *Ledger) putFight(f store.Fight) {
	l.fights[f.Object] = f
	l.changedFights[f.Object] = true
}

// EndFight forgets a fight; ok is false when there was none.
func (l *Ledger) EndFight(of store.Object) (was store.Fight, ok bool) {
	if was, ok = l.fights[of]; ok {
		delete(l.fights, of)
		delete(l.resumed, of)
		l.changedFights[of] = true
	}
	return was, ok
}

// ForgetCluster forgets all drifts and fights of a cluster.
func (l *Ledger) ForgetCluster(name string) {
	for of := range l.drifts {
		if of.Target.Cluster() == name {
			l.Clear(of)
		}
	}
	for of := range l.fights {
		if of.Target.Cluster() == name {
			l.EndFight(of)
		}
	}
}

// Tidy forgets losses that lead to nothing.
func (l *Ledger) Tidy(now time.Time) {
	for of, f := range l.fights {
		if f.Rounds == 0 && over(f, now) {
			l.EndFight(of)
		}
	}
}

// Shift moves all times of fights, after the clock was set: a pause takes as long as it would
// have taken.
func (l *Ledger) Shift(step time.Duration) {
	moved := func(moment time.Time) time.Time {
		if moment.IsZero() {
			return moment
		}
		return moment.Add(step)
	}
	for _, f := range l.fights {
		f.Losses = slices.Clone(f.Losses)
		for i := range f.Losses {
			f.Losses[i].At = moved(f.Losses[i].At)
		}
		f.Until, f.Tried = moved(f.Until), moved(f.Tried)
		l.putFight(f)
	}
	for object, since := range l.resumed {
		l.resumed[object] = moved(since)
	}
}

// Latest is the latest moment that fights tell of; zero where they tell of none.
func (l *Ledger) Latest() (latest time.Time) {
	for _, f := range l.fights {
		for _, loss := range f.Losses {
			if loss.At.After(latest) {
				latest = loss.At
			}
		}
		if f.Tried.After(latest) {
			latest = f.Tried
		}
	}
	return latest
}

// resumesAt is when a fight is taken up again; zero is never.
func (l *Ledger) resumesAt(of store.Object, f store.Fight) time.Time {
	if f.Rounds == 0 || !f.Tried.IsZero() {
		return time.Time{}
	}
	if at, ok := l.resumed[of]; ok && f.Until.Before(at.Add(MinBackoff)) {
		return at.Add(MinBackoff)
	}
	return f.Until
}

// NextResume is when the first of the fights is taken up again, of those on
// clusters that may be looked at; zero is never.
func (l *Ledger) NextResume(after func(cluster string) time.Time) (next time.Time) {
	for of, f := range l.fights {
		at := l.resumesAt(of, f)
		if not := after(of.Target.Cluster()); !at.IsZero() && at.Before(not) {
			at = not
		}
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// DueFights are the objects of a cluster whose fight is to be taken up again by
// now. They are named once.
func (l *Ledger) DueFights(cluster string, now time.Time) []store.Object {
	var due []store.Object
	for of, f := range l.fights {
		if at := l.resumesAt(of, f); of.Target.Cluster() == cluster && !at.IsZero() && !now.Before(at) {
			l.resumed[of] = now
			due = append(due, of)
		}
	}
	return due
}

// Resume has paused fights taken up again at once: somebody thinks that they are over.
func (l *Ledger) Resume(these func(store.Object) bool, now time.Time) {
	for fought, f := range l.fights {
		if f.Rounds > 0 && paused(f, now) && these(fought) {
			f.Until = now
			l.putFight(f)
			delete(l.resumed, fought)
		}
	}
}

// Reconsider are the objects of a cluster whose drift was only reported and is to be
// corrected now. They are named once, until corrected says otherwise.
func (l *Ledger) Reconsider(cluster string, corrected func(store.Object) bool) []store.Object {
	var due []store.Object
	for of, d := range l.drifts {
		switch {
		case d.Mode != string(config.DriftReport) || of.Target.Cluster() != cluster:
		case !corrected(of):
			delete(l.again, of)
		case !l.again[of]:
			l.again[of] = true
			due = append(due, of)
		}
	}
	return due
}

// On are the objects of a cluster that drifted, sorted by name.
func (l *Ledger) On(cluster string) []store.Object {
	all := slices.Collect(maps.Keys(l.drifts))
	all = slices.DeleteFunc(all, func(of store.Object) bool { return of.Target.Cluster() != cluster })
	slices.SortFunc(all, func(a, b store.Object) int { return object.CompareApplyOrder(a.ID, b.ID) })
	return all
}

// Drift is what was found of an object; ok is false when nothing is known of it.
func (l *Ledger) Drift(of store.Object) (d store.Drift, ok bool) {
	d, ok = l.drifts[of]
	return d, ok
}

// Fight is the fight over an object; ok is false when there is none.
func (l *Ledger) Fight(of store.Object) (f store.Fight, ok bool) {
	f, ok = l.fights[of]
	return f, ok
}

// Empty says that all objects are as they were applied, and nobody fights.
func (l *Ledger) Empty() bool { return len(l.drifts)+len(l.fights) == 0 }

// AllowCorrection counts what an object lost, and says whether to correct it.
func (l *Ledger) AllowCorrection(f Finding, now time.Time) bool {
	of := f.Entry.Of()
	fight := l.fights[of]
	fight.Object, fight.Digest = of, f.Entry.Digest
	repeats := 0
	if corrections(fight, now) > 0 {
		repeats = l.repeats(of.Target, now)
	}
	fight, correct := countLosses(fight, lossesOf(f, now), repeats, now)
	l.putFight(fight)
	return correct
}

// repeats is how often objects of a target were corrected again within the last minute.
func (l *Ledger) repeats(target config.TargetName, now time.Time) (n int) {
	for fought, f := range l.fights {
		if fought.Target == target {
			n += max(0, corrections(f, now)-1)
		}
	}
	return n
}

// FightIsOver says of an object that is as it was applied whether the fight over it,
// if there is one, has come to an end.
func (l *Ledger) FightIsOver(of store.Object, now time.Time) bool {
	f, ok := l.fights[of]
	return ok && (over(f, now) || f.Rounds > 0 && f.Tried.IsZero() && !paused(f, now))
}

// Tolerated are the drifted objects of an inventory that are left as they are: drift is
// not corrected there, or correcting it does not help.
func (l *Ledger) Tolerated(inventory map[object.ID]store.Entry, mode config.DriftMode) map[object.ID]bool {
	all := mode != config.DriftCorrect
	if !all && len(l.drifts) == 0 {
		return nil
	}
	tolerated := map[object.ID]bool{}
	for id, e := range inventory {
		if all || l.drifts[e.Of()].Mode == ModeFight {
			tolerated[id] = true
		}
	}
	return tolerated
}

// TakenOver are the objects of an inventory that another monorepo was found to have.
func (l *Ledger) TakenOver(inventory map[object.ID]store.Entry) map[object.ID]bool {
	if len(l.drifts) == 0 {
		return nil
	}
	taken := map[object.ID]bool{}
	for id, e := range inventory {
		if changes := l.drifts[e.Of()].Changes; len(changes) > 0 && changes[0].Note == TakenOver {
			taken[id] = true
		}
	}
	return taken
}

// Suppression is a drift that is known and left alone.
type Suppression struct {
	Fingerprint string        // of the object as it is left
	For         time.Duration // whatever happens to it; zero: until it looks different
}

// Suppressed are the drifts that are left alone, by cluster.
func (l *Ledger) Suppressed(now time.Time) map[string]map[object.ID]Suppression {
	all := map[string]map[object.ID]Suppression{}
	for of, d := range l.drifts {
		fingerprint, seen := l.seen[of]
		if d.Mode == string(config.DriftCorrect) || !seen {
			continue
		}
		s := Suppression{Fingerprint: fingerprint}
		if f, ok := l.fights[of]; ok && paused(f, now) {
			s.For = f.Until.Sub(now)
		}
		cluster := of.Target.Cluster()
		if all[cluster] == nil {
			all[cluster] = map[object.ID]Suppression{}
		}
		all[cluster][of.ID] = s
	}
	return all
}

// ModeFight is the mode of a [store.Drift] that is not corrected because that does not
// help.
const ModeFight = "fight"
