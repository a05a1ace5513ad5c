// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package approval decides which deletions need approval. It is pure: the daemon asks
// it about its inventory, and swell diff about the objects of another commit, so both
// say the same.
//
// Each rule is enough by itself:
//
//   - A unit that stays in the monorepo does not lose all workloads that it has in
//     a namespace of a target, see [IsWorkload].
//   - One commit does not delete objects of more than a few units that stay.
//   - A unit does not delete many objects, or a large share of what it has, on one
//     target. Of a unit that is removed the share is always all, so it does not count.
//   - A commit does not delete many objects of the fleet, or a large share of it.
//     What is approved, or held for a reason of its unit's own, or stays for now because
//     a unit with a problem may want it, is not counted: it stands in nobody else's way.
//   - Objects that take others or data along ([WeightOf]), Services that get another
//     name, and objects that were found after the state was lost, are never deleted
//     without approval.
//   - What swell has in a cluster that left the fleet is not forgotten without approval.
//     That is a plan of its own for each cluster, and no deletion.
//
// The bounds are in [config.Guard]. An object that goes while the same bundle makes
// a new one of its kind in its namespace is replaced, not lost: a ConfigMap whose
// name ends with a hash gets another name with each change of its content. What is
// replaced counts for none of the bounds. It does count for the first rule, which
// asks what is left; and by namespace, so that a change of tenant is no replacement.
//
// Deletions for which one of the first two rules holds are to be approved before
// anything of the unit's release is written: a canary says nothing about them.
package approval

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// Deletion is one object that a unit is to delete on a target. UID is that of the
// live object; empty where nobody knows whether there is one. Forget says that the object
// stays, and only leaves the inventory: who approves that approves no deletion.
type Deletion struct {
	object.UnitTarget
	object.ID
	UID    string
	Forget bool
}

// Object is one of a [Loss] that is to be deleted.
type Object struct {
	object.ID
	UID   string
	Found bool // after the state was lost, and not applied since
	Hook  bool // a Job that ran as a hook
}

// Loss is what a unit comes to delete on a target.
type Loss struct {
	object.UnitTarget
	// Stays says that the unit is still in the monorepo.
	Stays bool
	Have  int // objects of the unit on the target, Gone among them, without Made
	Gone  []Object
	// Remains are the objects that the unit will have there, without hooks.
	Remains []object.ID
	// Made counts by sort the objects that the unit gets there at the same time.
	Made map[Sort]int
	// Done is how many objects the unit has lost there already by its release.
	Done int
	// Later says that none of it is deleted while another unit has a problem, since it may belong to
	// that one. It counts for its own unit's release, and not among what the commit deletes.
	Later bool
	// Departed says that the cluster left the fleet: Gone is forgotten, and stays
	// in the cluster. Nothing else of the loss counts.
	Departed bool
}

// deletion is an object of the loss, as it is approved.
func (l *Loss) deletion(o *Object) Deletion {
	return Deletion{l.UnitTarget, o.ID, o.UID, l.Departed}
}

// Input is all that a commit comes to delete, in every wave.
type Input struct {
	Limits config.Guard
	Losses []Loss
	// Fleet is how many objects there are on all targets.
	Fleet int
	// Lost is how many objects were lost already by the commit without approval, and
	// LostBy are the units that lost some.
	Lost     int
	LostBy   map[config.UnitPath]bool
	Approved map[Deletion]bool
}

// Verdict says what waits.
type Verdict struct {
	// Held says why deletions wait for approval, of those that are not approved.
	Held map[Deletion]string
	// Withheld says why nothing of a unit's release is to be written before they
	// are approved.
	Withheld map[config.UnitPath]string
	// Ends are units whose release ends work that it may not end without approval,
	// be it approved or not.
	Ends map[config.UnitPath]bool
	// Together are units whose deletions are held because of what the commit deletes
	// in all, and so are one thing to approve.
	Together map[config.UnitPath]bool
}

// OnTarget stands in a reason of a deletion for the deletion's own target; another one is named.
const OnTarget = "on the target"

// Judge applies the rules. Of several that hold for a deletion, the reason is the
// first that says something about the object itself, else about its unit; and of those the
// one of the deletion's own target comes first.
func Judge(in Input) Verdict {
	v := Verdict{Held: map[Deletion]string{}, Withheld: map[config.UnitPath]string{}, Ends: map[config.UnitPath]bool{}, Together: map[config.UnitPath]bool{}}
	losses := slices.SortedFunc(slices.Values(in.Losses), func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Target, b.Target))
	})
	ends, many, losing := map[config.UnitPath]string{}, map[config.UnitPath]string{}, maps.Clone(in.LostBy)
	if losing == nil {
		losing = map[config.UnitPath]bool{}
	}
	lost := make([]int, len(losses))
	for i := range losses {
		l := &losses[i]
		if l.Departed {
			continue
		}
		lost[i] = l.lost(l.Gone)
		if l.Stays && lost[i] > 0 {
			losing[l.Unit] = true
		}
		if why := l.Ends(); why != "" && ends[l.Unit] == "" {
			ends[l.Unit], v.Ends[l.Unit] = why, true
		}
		if why := l.many(lost[i], in.Limits.Unit, l.named()); why != "" && many[l.Unit] == "" {
			many[l.Unit] = why
		}
	}
	spread := len(losing) > in.Limits.Units
	free, all := make([][]Object, len(losses)), in.Lost
	for i := range losses {
		l := &losses[i]
		if l.Departed {
			v.holdDeparted(l, in.Approved)
			continue
		}
		heavy, together := l.heavy(), spread && l.Stays && losing[l.Unit]
		before := ends[l.Unit]
		if together {
			before = cmp.Or(before, spreadText(in.Limits))
		}
		nearest := cmp.Or(l.ends(OnTarget), before, l.many(lost[i], in.Limits.Unit, OnTarget), many[l.Unit])
		for _, o := range l.Gone {
			deletion := l.deletion(&o)
			if in.Approved[deletion] {
				continue
			}
			why := cmp.Or(heavy[deletion], nearest)
			if why == "" {
				free[i] = append(free[i], o)
				continue
			}
			v.Held[deletion] = why
			if together {
				v.Together[l.Unit] = true
			}
			if before != "" {
				v.Withheld[l.Unit] = before
			}
		}
		if l.Later {
			free[i] = nil
		}
		all += l.lost(free[i])
	}
	if in.Limits.Fleet.Exceeded(all, in.Fleet+in.Lost) {
		v.holdFree(losses, free, fleetText(in.Limits))
	}
	return v
}

// holdDeparted holds what would be forgotten with its cluster.
func (v *Verdict) holdDeparted(l *Loss, approved map[Deletion]bool) {
	for i := range l.Gone {
		if deletion := l.deletion(&l.Gone[i]); !approved[deletion] {
			v.Held[deletion] = "its cluster left the fleet: it is forgotten, and stays as it is"
		}
	}
}

// holdFree holds what nothing nearer holds, of units that lose something of it.
func (v *Verdict) holdFree(losses []Loss, free [][]Object, why string) {
	for i := range losses {
		l := &losses[i]
		if l.lost(free[i]) == 0 {
			continue
		}
		v.Together[l.Unit] = true
		for _, o := range free[i] {
			v.Held[l.deletion(&o)] = why
		}
	}
}

// many says why the unit deletes too much on the target; empty when it does not.
func (l *Loss) many(lost int, limit config.DeletionLimit, where string) string {
	n, of := lost+l.Done, l.Have+l.Done
	switch {
	case lost == 0:
		return ""
	case !l.Stays && n > limit.Objects:
		return fmt.Sprintf("the unit deletes more than %s %s", count(limit.Objects), where)
	case l.Stays && limit.Exceeded(n, of):
		return fmt.Sprintf("the unit deletes more than %s or %d %% of what it has %s", count(limit.Objects), limit.Percent, where)
	}
	return ""
}

func spreadText(limits config.Guard) string {
	return fmt.Sprintf("the commit deletes objects of more than %d units that stay", limits.Units)
}

func fleetText(limits config.Guard) string {
	return fmt.Sprintf("the commit deletes more than %s or %d %% of what the fleet has", count(limits.Fleet.Objects), limits.Fleet.Percent)
}

func count(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// heavy says why objects take approval whatever else is deleted.
func (l *Loss) heavy() map[Deletion]string {
	held := map[Deletion]string{}
	var anchor, heavy *object.ID
	for i := range l.Gone {
		o := &l.Gone[i]
		switch weight := WeightOf(o.ID); {
		case weight != Light:
			held[l.deletion(o)] = fmt.Sprintf("deleting a %s needs approval", o.Kind)
			if weight == Anchor && (anchor == nil || o.Compare(*anchor) < 0) {
				anchor = &o.ID
			}
			if heavy == nil || o.Compare(*heavy) < 0 {
				heavy = &o.ID
			}
		case o.Found:
			held[l.deletion(o)] = "it was found when the inventory was rebuilt, and nobody applied it since"
		case l.Stays && isAddress(o.ID) && l.Made[SortOf(o.ID)] > 0:
			held[l.deletion(o)] = fmt.Sprintf("another %s comes in its place: whoever calls this one by its name finds nothing", o.Kind)
		}
	}
	why := ""
	switch {
	case anchor != nil:
		why = fmt.Sprintf("%s may need it, and deleting that needs approval", *anchor)
	case heavy != nil && !l.Stays: // else the unit would be gone before anybody was asked
		why = fmt.Sprintf("the unit goes with %s, and deleting that needs approval", *heavy)
	default:
		return held
	}
	for _, o := range l.Gone {
		if deletion := l.deletion(&o); held[deletion] == "" {
			held[deletion] = why
		}
	}
	return held
}
