// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Wanted is what one commit wants, as far as decisions depend on it.
type Wanted struct {
	Commit config.Commit
	// Held says why nothing may be taken from the commit; empty: it may. Then
	// no rollout starts and nothing is deleted.
	Held string
	// AllowEmpty lets a commit without any unit remove all of them.
	AllowEmpty bool
	// Units are all units of the commit, those with problems too. A unit that
	// is not here, in a commit that is not held, is to be removed.
	Units map[config.UnitPath]*WantedUnit
	// Clusters are those of the fleet. A target of any other cluster that a
	// unit leaves is forgotten instead of cleaned: nobody says any more how to
	// reach it, and its objects stay. Nil: no cluster has left the fleet.
	Clusters map[string]bool
	// Bounds are those of the last fleet without a problem, also where the commit is held.
	Bounds
	// Standing are the orders of operators in force.
	Standing order.Standing
	// Authors are the operators who wrote what the commit brings: they do not approve
	// it.
	Authors []string
	// Unreleased are further ones, by unit: they wrote what did not come to be released, as
	// the unit had a problem.
	Unreleased map[config.UnitPath][]string
	// Withheld says of units why their release does not begin: it deletes what
	// somebody has to approve before anything is written.
	Withheld map[config.UnitPath]string
	// all are Units with what is on retired targets; nil while there are none.
	all     map[config.UnitPath]*WantedUnit
	retired []config.TargetName
	// Approved are units whose release ends workloads, with approval.
	Approved map[config.UnitPath]bool
	// Renamed says of places where a unit is new which unit had its objects there, that the
	// commit does not have any more. Nil: nobody has looked.
	Renamed map[object.UnitTarget]config.UnitPath
}

// Order makes orders the ones in force. Where they retire targets, units leave those,
// whatever the commit wants there. It reports whether other targets are retired than before.
func (w *Wanted) Order(standing order.Standing) (changed bool) {
	w.Standing = standing
	var retired []config.TargetName
	for _, o := range standing {
		if o.Verb == order.Retire && !slices.Contains(retired, o.Scope.Target) {
			retired = append(retired, o.Scope.Target)
		}
	}
	slices.Sort(retired)
	if slices.Equal(retired, w.retired) {
		return false
	}
	if w.all == nil {
		w.all = w.Units
	}
	w.retired, w.Units = retired, w.all
	if len(retired) == 0 {
		w.all = nil
		return true
	}
	w.Units = make(map[config.UnitPath]*WantedUnit, len(w.all))
	for path, unit := range w.all {
		w.Units[path] = unit.without(w.IsRetired)
	}
	return true
}

// IsRetired says whether units leave the target because an operator said so.
func (w *Wanted) IsRetired(name config.TargetName) bool {
	return len(w.retired) > 0 && (slices.Contains(w.retired, name) || slices.Contains(w.retired, config.TargetName(name.Cluster())))
}

// Present are the places that are not on retired targets.
func (w *Wanted) Present(places []object.UnitTarget) []object.UnitTarget {
	if len(w.retired) == 0 {
		return places
	}
	return slices.DeleteFunc(slices.Clone(places), func(at object.UnitTarget) bool { return w.IsRetired(at.Target) })
}

// without is the unit without some of its targets; the unit itself where it has none of
// them.
func (w *WantedUnit) without(gone func(config.TargetName) bool) *WantedUnit {
	kept := make(map[config.TargetName]WantedTarget, len(w.Targets))
	for name, t := range w.Targets {
		if !gone(name) {
			kept[name] = t
		}
	}
	if len(kept) == len(w.Targets) {
		return w
	}
	return &WantedUnit{Frozen: w.Frozen, Empty: w.Empty, Rollout: w.Rollout, Tenant: w.Tenant, Tier: w.Tier, Adopt: w.Adopt, Targets: kept, Needs: w.Needs, retired: true}
}

// Bounds are what the fleet's documents keep releases from. They are stored as JSON.
type Bounds struct {
	Masks   []Mask         `json:"masks,omitempty"`
	Windows []Window       `json:"windows,omitempty"`
	Release config.Release `json:"release"`
}

// Mask is a [config.Mask] without its place in a file.
type Mask struct {
	Name   string       `json:"name"`
	Reason string       `json:"reason,omitempty"`
	Where  config.Where `json:"where"`
}

// Window is a [config.Window] without its place in a file.
type Window struct {
	Name   string           `json:"name"`
	Reason string           `json:"reason,omitempty"`
	Deny   bool             `json:"deny,omitempty"`
	Where  config.Where     `json:"where"`
	Time   config.Timetable `json:"time"`
}

// WantedUnit has the bundles that a commit wants of one unit. It must not change after
// the first Decide. Pass the same value again for a unit that did not change: then its
// release is not computed again.
type WantedUnit struct {
	// Frozen says why nothing may be taken from the commit for this unit;
	// empty: it may. It should be the same text from commit to commit.
	Frozen string
	// Empty says that it is frozen because it renders to nothing.
	Empty bool
	// Rollout is the unit's own. A unit without one, or without waves, is
	// taken for frozen.
	Rollout *config.Rollout
	// Tenant whose unit it is, and its tier, see [config.Release.TierOf].
	Tenant string
	Tier   int
	// Targets are those of the unit's placement. A unit that is not frozen and
	// has none keeps its objects: a unit that renders to nothing deletes nothing.
	Targets map[config.TargetName]WantedTarget
	// Adopt is what the unit may do with objects of others.
	Adopt config.Adoption
	// Needs are the units that must be applied on a target before this one.
	Needs map[config.TargetName][]config.UnitPath

	retired bool // it leaves targets that the commit has it on
	release object.Digest
	names   []config.TargetName       // of Targets, sorted
	waves   map[config.TargetName]int // of Rollout, where it has shares
	same    *config.Rollout           // a copy of Rollout, for one
	needed  []config.UnitPath         // in Needs, once it was asked for; not nil then
}

// neededUnits are the units that this one needs on some target, in no order.
func (w *WantedUnit) neededUnits() []config.UnitPath {
	if w.needed != nil {
		return w.needed
	}
	w.needed = []config.UnitPath{}
	for _, paths := range w.Needs {
		for _, path := range paths {
			if !slices.Contains(w.needed, path) {
				w.needed = append(w.needed, path)
			}
		}
	}
	return w.needed
}

// Asks says whether a gate of the target's wave runs a Job of the unit there. Rollout is not nil.
func (w *WantedUnit) Asks(name config.TargetName, job string) bool {
	wave := w.waveOf(w.Rollout, name)
	isAsked := func(g config.Gate) bool { return g.Job != nil && g.Job.Name == job }
	return wave >= 0 && slices.ContainsFunc(w.Rollout.Waves[wave].Gates, isAsked)
}

// waveOf is the index of the target's wave in a rollout, or -1 when no wave picks it.
func (w *WantedUnit) waveOf(spec *config.Rollout, name config.TargetName) int {
	if !spec.IsRelative() {
		return spec.WaveOf(name, w.Targets[name].Labels)
	}
	waves := w.waves
	if spec != w.Rollout && spec != w.same {
		if !reflect.DeepEqual(spec, w.Rollout) {
			waves = w.wavesOf(spec) // the rollout was changed since
			if wave, ok := waves[name]; ok {
				return wave
			}
			return -1
		}
		w.same = spec
	}
	if waves == nil {
		waves = w.wavesOf(w.Rollout)
		w.waves = waves
	}
	if wave, ok := waves[name]; ok {
		return wave
	}
	return -1
}

func (w *WantedUnit) wavesOf(spec *config.Rollout) map[config.TargetName]int {
	return spec.WavesOf(w.sorted(), func(name config.TargetName) map[string]string { return w.Targets[name].Labels })
}

// sorted are the names of the targets.
func (w *WantedUnit) sorted() []config.TargetName {
	if w.names == nil {
		w.names = slices.Sorted(maps.Keys(w.Targets))
	}
	return w.names
}

// WantedTarget is the bundle that a unit wants on one target.
type WantedTarget struct {
	Labels map[string]string
	// Objects is how many the bundle has.
	Objects int
	// Digest of the bundle. Empty: the unit is placed here but rendered to
	// nothing, so whatever it has here stays.
	Digest object.Digest
}

// Release is the digest of the targets and their bundles: two commits with
// equal releases want the same of the unit.
func (w *WantedUnit) Release() object.Digest {
	if w.release == "" {
		w.release = releaseOf(w.sorted(), w.Targets)
	}
	return w.release
}

func releaseOf(names []config.TargetName, targets map[config.TargetName]WantedTarget) object.Digest {
	sum := sha256.New()
	var line []byte
	for _, name := range names {
		line = append(append(append(append(line[:0], name...), ' '), targets[name].Digest...), '\n')
		sum.Write(line)
	}
	return object.Digest(hex.EncodeToString(sum.Sum(nil)))
}

// gone is the release of a unit that is not there any more.
var gone = releaseOf(nil, nil)

// WhyFrozen says why nothing may be taken from the commit for a unit; empty: it may,
// or the unit is not in it.
func (w *Wanted) WhyFrozen(path config.UnitPath) string {
	if unit := w.Units[path]; unit != nil {
		return unit.frozen()
	}
	return ""
}

// frozen says why nothing may be taken for the unit.
func (w *WantedUnit) frozen() string {
	switch {
	case w.Frozen != "":
		return w.Frozen
	case w.Rollout == nil || len(w.Rollout.Waves) == 0:
		return "the unit has no rollout with waves"
	case w.empty():
		return "the unit renders to nothing on every target: nothing is deleted; remove its folder to remove it"
	}
	return ""
}

// obstacle is the kind of what frozen says.
func (w *WantedUnit) obstacle() Obstacle {
	if w.Frozen != "" && w.Empty || w.Frozen == "" && w.Rollout != nil && len(w.Rollout.Waves) > 0 && w.empty() {
		return ObstacleEmpty
	}
	return ""
}

func (w *WantedUnit) empty() bool {
	if w.retired && len(w.Targets) == 0 {
		return false // it leaves them all
	}
	for _, t := range w.Targets {
		if t.Digest != "" {
			return false
		}
	}
	return true
}
