// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"reflect"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// OnlyRules says that r changes nothing of base but what judges units and their releases: the
// documents of the fleet, but not which clusters there are, policies, schemas, facts and
// CODEOWNERS. Such a commit brings nothing that it lets in, so its rules count alone. It is false
// where a folder cannot be read.
func (r *Repository) OnlyRules(base *Repository) bool {
	if !slices.EqualFunc(r.Clusters, base.Clusters, (*Cluster).same) {
		return false // units may go elsewhere
	}
	m := merger{origin: base.Tree, base: base.Tree, head: r.Tree}
	if err := m.folder(".", true); err != nil {
		return false
	}
	return !slices.ContainsFunc(m.taken, func(file string) bool { return !r.isRule(file) || !base.isRule(file) })
}

// same says whether two clusters are the same to units, wherever they stand.
func (c *Cluster) same(other *Cluster) bool {
	now, before := *c, *other
	for _, each := range []*Cluster{&now, &before} {
		each.Position, each.KubernetesAt, each.tenantsAt = document.Position{}, document.Position{}, nil
	}
	return reflect.DeepEqual(now, before)
}

// isRule says whether a file, or all in a folder, judges units and is none of them.
func (r *Repository) isRule(file string) bool {
	l := &r.layout
	return slices.Contains(ownersFiles, file) || slices.ContainsFunc([]string{l.fleet, l.policies, l.schemas, l.facts},
		func(folder string) bool {
			return folder != "" && folder != "." && Within(file, path.Clean(folder))
		})
}

// Moved are the units that base has with another Tenant or Rollout, with their Defaults there. A nil
// base has none. It costs as much as the folders that differ hold.
func (r *Repository) Moved(base *Repository) map[UnitPath]*Defaults {
	if base == nil {
		return nil
	}
	moved := map[UnitPath]*Defaults{}
	changed, _ := r.Changes(base)
	for _, unit := range changed {
		before := base.Unit(unit.Path)
		if before != nil && (before.Defaults.Tenant != unit.Defaults.Tenant || before.Defaults.Rollout != unit.Defaults.Rollout) {
			moved[unit.Path] = before.Defaults
		}
	}
	return moved
}

// Rollouts are those by which releases of a commit begin.
type Rollouts struct {
	own      map[string]*Rollout
	fleet    []*Cluster             // of the commit
	base     *Repository            // nil: there is none
	moved    map[UnitPath]*Defaults // see [Repository.Moved]
	stricter map[[2]string]*Rollout
}

// NewRollouts are those of a commit that has own, and otherwise head. base is what the commit goes
// to; where it is nil, they are the commit's own.
func NewRollouts(own map[string]*Rollout, head, base *Repository) *Rollouts {
	return &Rollouts{own: own, fleet: head.Clusters, base: base, moved: head.Moved(base), stricter: map[[2]string]*Rollout{}}
}

// For is the Rollout by which a release of a unit begins whose commit names that one: the stricter
// of it and the one that the base names for the unit. It is the commit's own where the base has no
// such Rollout. nil is none.
func (r *Rollouts) For(unit UnitPath, name string) *Rollout {
	own := r.own[name]
	if own == nil || r.base == nil {
		return own
	}
	before := name
	if left := r.moved[unit]; left != nil {
		before = left.Rollout
	}
	pair := [2]string{before, name}
	if r.stricter[pair] == nil {
		r.stricter[pair] = own.Stricter(r.base.Rollouts[before]).in(r.fleet)
	}
	return r.stricter[pair]
}

// Stricter is the Rollout that lets through what both let through. Where both have the same waves,
// that is the stricter of each number, and the gates of both. Else it is base: neither is stricter
// in all. It is r itself where it is as strict as base, or base is nil.
func (r *Rollout) Stricter(base *Rollout) *Rollout {
	if base == nil {
		return r
	}
	if !slices.EqualFunc(r.Waves, base.Waves, Wave.picksLike) {
		return base
	}
	stricter := *r
	stricter.OnFailure, stricter.Unreachable = base.OnFailure, base.Unreachable
	stricter.FastRevert = r.FastRevert && base.FastRevert
	stricter.Waves = slices.Clone(r.Waves)
	for i := range stricter.Waves {
		stricter.Waves[i].tighten(&base.Waves[i])
	}
	if reflect.DeepEqual(stricter, *r) {
		return r
	}
	return &stricter
}

// in is the Rollout for a fleet that may have no targets for the first waves.
func (r *Rollout) in(fleet []*Cluster) *Rollout {
	vacant := r.vacantIn(fleet)
	if vacant == r.Vacant {
		return r
	}
	here := *r
	here.Vacant = vacant
	return &here
}

// picksLike says that both waves have the same name and pick the same targets.
func (w Wave) picksLike(other Wave) bool {
	return w.Name == other.Name && reflect.DeepEqual(w.Match, other.Match) && slices.Equal(w.Targets, other.Targets) &&
		w.Share == other.Share
}

// tighten has the wave be as strict as base in each of its numbers, and have its gates too. How
// long a target may take is no question of strictness.
func (w *Wave) tighten(base *Wave) {
	w.Soak = max(w.Soak, base.Soak)
	w.MaxConcurrent = lesserOf(w.MaxConcurrent, base.MaxConcurrent, true)
	w.MaxFailures = lesserOf(w.MaxFailures, base.MaxFailures, false)
	w.MaxObjects = lesserBound(w.MaxObjects, base.MaxObjects)
	w.Gates = slices.Clone(w.Gates)
	for _, gate := range base.Gates {
		if !slices.ContainsFunc(w.Gates, func(own Gate) bool { return reflect.DeepEqual(own, gate) }) {
			w.Gates = append(w.Gates, gate)
		}
	}
}

// lesserOf is the lesser of two amounts; base where one is a count and the other a percentage.
// isAll says that the zero Amount is no bound.
func lesserOf(own, base Amount, isAll bool) Amount {
	none := Amount{}
	switch {
	case own == none || base == none:
		if isAll == (own == none) {
			return base
		}
		return own
	case own.Percent > 0 && base.Percent > 0:
		return Amount{Percent: min(own.Percent, base.Percent)}
	case own.Percent == 0 && base.Percent == 0:
		return Amount{Count: min(own.Count, base.Count)}
	}
	return base
}

// lesserBound is the lesser of two bounds of which zero is none.
func lesserBound(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// Stricter is the budget that keeps both.
func (b Budget) Stricter(base Budget) Budget {
	failed := b.FailedUnits
	if failed == nil || base.FailedUnits != nil && *base.FailedUnits < *failed {
		failed = base.FailedUnits
	}
	return Budget{FailedUnits: failed, Units: lesserBound(b.Units, base.Units), UnitsPerTarget: lesserBound(b.UnitsPerTarget,
		base.UnitsPerTarget)}
}
