// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Ledger is the plans that wait for approval, what was approved, and what was deleted
// since a commit, as it is in the store. It is used by one goroutine.
type Ledger struct {
	plans     []store.Plan
	approvals []store.Approval
	approved  map[Deletion]bool
	deleted   map[object.UnitTarget]store.Tally
	changes   int64 // [Stored.Changes] when approvals were read
}

// Stored is where a ledger is kept.
type Stored interface {
	Plans() ([]store.Plan, error)
	Approvals() ([]store.Approval, error)
	Deleted() (map[object.UnitTarget]store.Tally, error)
	// Changes is a number that grows when somebody else writes to the state.
	Changes() (int64, error)
}

// Open reads plans and tallies. What was approved is read by the first [Ledger.Load].
func Open(s Stored) (l *Ledger, err error) {
	l = &Ledger{changes: -1, approved: map[Deletion]bool{}}
	if l.plans, err = s.Plans(); err != nil {
		return nil, err
	}
	l.deleted, err = s.Deleted()
	return l, err
}

// Changed says whether somebody approved or rejected something since the last
// [Ledger.Load]; also when that cannot be known.
func (l *Ledger) Changed(s Stored) bool {
	changes, err := s.Changes()
	return err != nil || changes != l.changes
}

// Load reads what was approved or rejected since the last time, and returns the units
// with deletions that were approved since. read says whether there was anything to
// read.
func (l *Ledger) Load(s Stored) (units []config.UnitPath, read bool, err error) {
	changes, err := s.Changes()
	if err != nil || changes == l.changes {
		return nil, false, err
	}
	known := l.approved
	if l.approvals, err = s.Approvals(); err != nil {
		return nil, false, err
	}
	if l.plans, err = s.Plans(); err != nil {
		return nil, false, err
	}
	l.changes = changes
	l.index()
	fresh := map[config.UnitPath]bool{}
	for deletion := range l.approved {
		if !known[deletion] {
			fresh[deletion.Unit] = true
		}
	}
	return slices.Sorted(maps.Keys(fresh)), true, nil
}

func (l *Ledger) index() {
	l.approved = map[Deletion]bool{}
	for _, a := range l.approvals {
		for _, deletion := range a.Deletions {
			l.approved[stored(deletion)] = true
		}
	}
}

// Of is the deletion of an entry's object.
func Of(e store.Entry) Deletion {
	return Deletion{UnitTarget: e.Place(), ID: e.ID, UID: e.UID}
}

// Forgetting is that an entry leaves the inventory with its cluster, and its object stays.
func Forgetting(e store.Entry) Deletion {
	deletion := Of(e)
	deletion.Forget = true
	return deletion
}

func stored(deletion store.Deletion) Deletion {
	return Deletion{UnitTarget: object.UnitTarget{Unit: deletion.Unit, Target: deletion.Target}, ID: deletion.ID, UID: deletion.UID, Forget: deletion.Forget}
}

// Approved are all deletions that were approved. It must not be changed.
func (l *Ledger) Approved() map[Deletion]bool { return l.approved }

// IsEmpty says that nothing waits, and nothing was approved that is not over.
func (l *Ledger) IsEmpty() bool { return len(l.plans)+len(l.approvals) == 0 }

// scope is what the deletions of one plan have in common.
type scope struct {
	unit    config.UnitPath // empty: the whole fleet
	cluster string          // that left the fleet; empty for deletions
}

// scopeOf is that of the plan which a deletion is in.
func (v *Verdict) scopeOf(deletion *Deletion) scope {
	switch {
	case deletion.Forget:
		return scope{cluster: deletion.Target.Cluster()}
	case v.Together[deletion.Unit]:
		return scope{}
	}
	return scope{unit: deletion.Unit}
}

// PlansOf makes plans of what is held: one for each unit, so that one team's deletions
// do not stand in another's way, or a single one when it is held because of what the
// commit deletes in all. Objects that are forgotten with a cluster are a plan for each cluster. Those
// that were there before keep their time, and who rejected them.
func (l *Ledger) PlansOf(v Verdict, now time.Time) []store.Plan {
	held := map[scope][]store.Deletion{}
	for deletion, why := range v.Held {
		common := v.scopeOf(&deletion)
		held[common] = append(held[common], store.Deletion{
			Target: deletion.Target, Unit: deletion.Unit, ID: deletion.ID, UID: deletion.UID, Forget: deletion.Forget, Why: why,
		})
	}
	known := map[object.Digest]store.Plan{}
	for _, p := range l.plans {
		known[p.Digest] = p
	}
	var plans []store.Plan
	compare := func(a, b scope) int { return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(a.cluster, b.cluster)) }
	for _, common := range slices.SortedFunc(maps.Keys(held), compare) {
		plan := store.NewPlan(common.unit, now, held[common])
		if was, ok := known[plan.Digest]; ok {
			plan.At, plan.Rejected = was.At, was.Rejected
		}
		plans = append(plans, plan)
	}
	return plans
}

// Has says whether plans are those that the ledger has.
func (l *Ledger) Has(plans []store.Plan) bool {
	return slices.EqualFunc(plans, l.plans, func(a, b store.Plan) bool {
		return a.Digest == b.Digest && a.Unit == b.Unit && slices.Equal(a.Deletions, b.Deletions)
	})
}

// Put takes plans in that were stored.
func (l *Ledger) Put(plans []store.Plan) { l.plans = plans }

// Expire ends approvals of what is not to be deleted any more, so that they do not
// count should it be, one day: it returns what is left of those that change, by the
// digest of their plan.
func (l *Ledger) Expire(expired func(Deletion) bool) map[object.Digest][]store.Deletion {
	changed := l.take(expired)
	l.approvals = slices.DeleteFunc(l.approvals, func(a store.Approval) bool { return len(a.Deletions) == 0 })
	return changed
}

// Revoke takes approvals back: the objects are not the ones any more that were
// approved. Of an [Anchor] that is so for what its unit has beside it, too, which it may
// need. It returns what is left of the approvals that change, by the digest of their plan.
func (l *Ledger) Revoke(entries []store.Entry) map[object.Digest][]store.Deletion {
	return l.take(func(deletion Deletion) bool {
		return slices.ContainsFunc(entries, func(e store.Entry) bool {
			revoked := Of(e)
			isBesideAnchor := WeightOf(revoked.ID) == Anchor && WeightOf(deletion.ID) != Anchor && deletion.UnitTarget == revoked.UnitTarget
			return deletion == revoked || isBesideAnchor
		})
	})
}

// take takes deletions out of approvals.
func (l *Ledger) take(out func(Deletion) bool) map[object.Digest][]store.Deletion {
	changed := map[object.Digest][]store.Deletion{}
	for i := range l.approvals {
		a := &l.approvals[i]
		left := slices.DeleteFunc(slices.Clone(a.Deletions), func(deletion store.Deletion) bool { return out(stored(deletion)) })
		if len(left) < len(a.Deletions) {
			a.Deletions, changed[a.Digest] = left, left
		}
	}
	if len(changed) > 0 {
		l.index()
	}
	return changed
}

// Done is how many objects were deleted at a place since a commit. The zero place is
// the whole fleet.
func (l *Ledger) Done(at object.UnitTarget, since config.Commit) int {
	if t := l.deleted[at]; t.Commit == since {
		return t.Objects
	}
	return 0
}

// LostBy are the units that something was deleted of since a commit.
func (l *Ledger) LostBy(since config.Commit) (units []config.UnitPath) {
	for at, t := range l.deleted {
		if at != (object.UnitTarget{}) && t.Commit == since {
			units = append(units, at.Unit)
		}
	}
	return units
}

// Count adds objects that were deleted at a place since a commit.
func (l *Ledger) Count(at object.UnitTarget, since config.Commit, objects int) {
	t := l.deleted[at]
	if t.Commit != since {
		t = store.Tally{Commit: since}
	}
	t.Objects += objects
	l.deleted[at] = t
}

// PutTallies stores the tallies of some places, and forgets those of units that are
// gone, since an earlier commit than the newest.
func (l *Ledger) PutTallies(tx *store.Tx, counted map[object.UnitTarget]bool, newest config.Commit, gone func(config.UnitPath) bool) error {
	for _, at := range slices.SortedFunc(maps.Keys(l.deleted), object.UnitTarget.Compare) {
		t := l.deleted[at]
		switch {
		case at != (object.UnitTarget{}) && t.Commit != newest && gone(at.Unit):
			delete(l.deleted, at)
			t = store.Tally{}
		case !counted[at]:
			continue
		}
		if err := tx.PutDeleted(at, t); err != nil {
			return err
		}
	}
	return nil
}

// Waits says of each unit that has deletions in a plan what it waits for. Units do not wait
// for objects that are forgotten.
func Waits(plans []store.Plan) map[config.UnitPath]string {
	texts := map[config.UnitPath]string{}
	for _, p := range plans {
		if p.Forgets() != "" {
			continue
		}
		counts := map[config.UnitPath]int{}
		for _, deletion := range p.Deletions {
			counts[deletion.Unit]++
		}
		for unit, n := range counts {
			texts[unit] = waitText(n, p)
		}
	}
	return texts
}

// waitText is what a unit says while n deletions of its own are in a plan.
func waitText(n int, p store.Plan) string {
	text := fmt.Sprintf("%s pending: %s", document.Count(n, "deletion"), p.Ask())
	if p.Unit == "" {
		text += fmt.Sprintf(" (%s of the whole fleet)", document.Count(len(p.Deletions), "deletion"))
	}
	return text
}
