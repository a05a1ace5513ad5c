// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// driftLedger is what is known of the objects that are not as they were applied. It
// holds nothing of those that are. What changes in it is stored with the next
// transaction.
type driftLedger struct {
	drifts map[store.Object]store.Drift
	fights map[store.Object]store.Fight
	// seen are the fingerprints that the drifts were found with, which only
	// matter to this process.
	seen map[store.Object]string
	// resumed are the fights that were to be taken up again, and when: an object
	// that cannot be looked at is left alone for a while.
	resumed map[store.Object]time.Time

	changedDrifts, changedFights map[store.Object]bool
}

func openDriftLedger(s Store) (*driftLedger, error) {
	b := &driftLedger{drifts: map[store.Object]store.Drift{}, fights: map[store.Object]store.Fight{}, seen: map[store.Object]string{}, resumed: map[store.Object]time.Time{}}
	b.stored()
	drifts, err := s.Drifts()
	if err != nil {
		return nil, err
	}
	for _, d := range drifts {
		b.drifts[d.Object] = d
	}
	fights, err := s.Fights()
	if err != nil {
		return nil, err
	}
	for _, f := range fights {
		b.fights[f.Object] = f
	}
	return b, nil
}

// put writes what changed since stored was last called.
func (b *driftLedger) put(tx *store.Tx) error {
	var drifts []store.Drift
	var fights []store.Fight
	var noDrift, noFight []store.Object
	for of := range b.changedDrifts {
		if d, ok := b.drifts[of]; ok {
			drifts = append(drifts, d)
		} else {
			noDrift = append(noDrift, of)
		}
	}
	for of := range b.changedFights {
		if f, ok := b.fights[of]; ok {
			fights = append(fights, f)
		} else {
			noFight = append(noFight, of)
		}
	}
	return errors.Join(tx.PutDrifts(drifts), tx.DropDrifts(noDrift), tx.PutFights(fights), tx.DropFights(noFight))
}

func (b *driftLedger) stored() {
	b.changedDrifts, b.changedFights = map[store.Object]bool{}, map[store.Object]bool{}
}

// note writes a drift down, and says whether it is news: another object, other
// fields or managers, or something else is done about it now.
func (b *driftLedger) note(drift apply.Drift, mode string, now time.Time) bool {
	of := drift.Entry.Of()
	d := store.Drift{Object: of, Found: now, Mode: mode, Deep: drift.Deep, Missing: drift.Missing}
	for _, c := range drift.Changes {
		d.Changes = append(d.Changes, store.Change(c))
	}
	before, known := b.drifts[of]
	news := !known || before.Mode != mode || driftKey(before) != driftKey(d)
	if known && !news {
		d.Found = before.Found
	}
	b.drifts[of], b.seen[of] = d, drift.Fingerprint
	b.changedDrifts[of] = true
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
		b.WriteString("\n" + apply.Change(c).String())
	}
	return b.String()
}

// clear forgets a drift; ok is false when there was none.
func (b *driftLedger) clear(of store.Object) (was store.Drift, ok bool) {
	if was, ok = b.drifts[of]; ok {
		delete(b.drifts, of)
		delete(b.seen, of)
		b.changedDrifts[of] = true
	}
	return was, ok
}

func (b *driftLedger) putFight(f store.Fight) {
	b.fights[f.Object] = f
	b.changedFights[f.Object] = true
}

func (b *driftLedger) endFight(of store.Object) (was store.Fight, ok bool) {
	if was, ok = b.fights[of]; ok {
		delete(b.fights, of)
		delete(b.resumed, of)
		b.changedFights[of] = true
	}
	return was, ok
}

// forgetCluster forgets all drifts and fights of a cluster.
func (b *driftLedger) forgetCluster(name string) {
	for of := range b.drifts {
		if of.Target.Cluster() == name {
			b.clear(of)
		}
	}
	for of := range b.fights {
		if of.Target.Cluster() == name {
			b.endFight(of)
		}
	}
}

// tidy forgets losses that lead to nothing.
func (b *driftLedger) tidy(now time.Time) {
	for of, f := range b.fights {
		if f.Rounds == 0 && over(f, now) {
			b.endFight(of)
		}
	}
}

// clamp takes in that the clock was set back.
func (b *driftLedger) clamp(now time.Time) {
	for _, f := range b.fights {
		if f, jumped := clamped(f, now); jumped {
			b.putFight(f)
		}
	}
	for of, at := range b.resumed {
		if at.After(now) {
			b.resumed[of] = now
		}
	}
}

// resumesAt is when a fight is taken up again; zero is never.
func (b *driftLedger) resumesAt(of store.Object, f store.Fight) time.Time {
	if f.Rounds == 0 || !f.Tried.IsZero() {
		return time.Time{}
	}
	if at, ok := b.resumed[of]; ok && f.Until.Before(at.Add(minBackoff)) {
		return at.Add(minBackoff)
	}
	return f.Until
}

// nextResume is when the first of the fights is taken up again, of those on
// clusters that may be looked at; zero is never.
func (b *driftLedger) nextResume(after func(cluster string) time.Time) (next time.Time) {
	for of, f := range b.fights {
		at := b.resumesAt(of, f)
		if not := after(of.Target.Cluster()); !at.IsZero() && at.Before(not) {
			at = not
		}
		next = earliest(next, at)
	}
	return next
}

// dueFights are the objects of a cluster whose fight is to be taken up again by
// now. They are named once.
func (b *driftLedger) dueFights(cluster string, now time.Time) []store.Object {
	var due []store.Object
	for of, f := range b.fights {
		if at := b.resumesAt(of, f); of.Target.Cluster() == cluster && !at.IsZero() && !now.Before(at) {
			b.resumed[of] = now
			due = append(due, of)
		}
	}
	return due
}

// on are the objects of a cluster that drifted, sorted by name.
func (b *driftLedger) on(cluster string) []store.Object {
	all := slices.Collect(maps.Keys(b.drifts))
	all = slices.DeleteFunc(all, func(of store.Object) bool { return of.Target.Cluster() != cluster })
	slices.SortFunc(all, func(a, b store.Object) int { return render.CompareApplyOrder(a.ID, b.ID) })
	return all
}

// tolerated are the objects of a job that are left as they are, whoever changed
// them: drift is not corrected there, or that does not help.
func (d *Daemon) tolerated(j *job) map[render.ObjectID]bool {
	all := d.modes.of(j.Unit, j.Target) != config.DriftCorrect
	if !all && len(d.ledger.drifts) == 0 {
		return nil
	}
	tolerated := map[render.ObjectID]bool{}
	for id, e := range j.inventory {
		if all || d.ledger.drifts[e.Of()].Mode == fightMode {
			tolerated[id] = true
		}
	}
	return tolerated
}

// takenOver are the objects of a job that another monorepo was found to have.
func (d *Daemon) takenOver(j *job) map[render.ObjectID]bool {
	if len(d.ledger.drifts) == 0 {
		return nil
	}
	taken := map[render.ObjectID]bool{}
	for id, e := range j.inventory {
		if changes := d.ledger.drifts[e.Of()].Changes; len(changes) > 0 && changes[0].Note == apply.TakenOver {
			taken[id] = true
		}
	}
	return taken
}
