// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// noUnits is what holds a commit without units, unless that was allowed.
const noUnits = "the commit has no units at all: nothing is deleted; swell run --dangerous-allow-empty would bring the fleet to that"

// Refused says why nothing may be taken from the commit; empty: it may.
func (w *Wanted) Refused() string {
	if w.Held == "" && len(w.Units) == 0 && !w.AllowEmpty {
		return noUnits
	}
	return w.Held
}

// Known says whether the wish of the commit for the unit is known, also when it wants
// nothing. Only then may objects of the unit be deleted.
func (w *Wanted) Known(path config.UnitPath) bool {
	unit := w.Units[path]
	return w.Refused() == "" && (unit == nil || unit.frozen() == "")
}

// Fate is what the commit's release of a unit does with the objects that the unit has
// on a target.
type Fate int

const (
	// Stays: nothing is written or deleted, because the wish of the commit is not
	// known, the unit renders to nothing, or no wave picks the target.
	Stays Fate = iota
	// Brought: the bundle is applied, then objects that it does not have are deleted.
	Brought
	// Cleaned: the unit leaves the target, and its objects there are deleted.
	Cleaned
	// Forgotten: the cluster left the fleet. The objects stay there, and in the inventory
	// until that is approved to be forgotten.
	Forgotten
)

// ForgottenText is the text on objects that are [Forgotten].
const ForgottenText = "its cluster left the fleet; its objects stay as they are"

// FateOf is the fate of the unit's objects on the target.
func (w *Wanted) FateOf(u *Unit, name config.TargetName) Fate {
	fate, _ := w.fates(u)(name)
	return fate
}

// fates is [Wanted.FateOf] for the targets of one unit, with the wave of one that is
// brought; else -1.
func (w *Wanted) fates(u *Unit) func(config.TargetName) (Fate, int) {
	refused, known, unit, spec := w.Refused() != "", w.Known(u.Path), w.Units[u.Path], &u.Rollout.Spec
	if unit != nil && known && u.Rollout.Release != unit.Release() {
		spec = unit.Rollout
	}
	return func(name config.TargetName) (Fate, int) {
		switch {
		case !refused && w.Clusters != nil && !w.Clusters[name.Cluster()]:
			return Forgotten, -1
		case !known:
			return Stays, -1
		case unit == nil:
			return Cleaned, -1
		}
		switch want, placed := unit.Targets[name]; {
		case !placed:
			return Cleaned, -1
		case want.Digest == "":
			return Stays, -1
		}
		if wave := unit.waveOf(spec, name); wave >= 0 {
			return Brought, wave
		}
		return Stays, -1
	}
}

// Begun says that the unit's rollout is the release that the commit wants.
func (u *Unit) Begun(w *Wanted) bool {
	if unit := w.Units[u.Path]; unit != nil {
		return u.Rollout.Release == unit.Release()
	}
	return u.Rollout.Release == gone
}

// Deletes says whether the commit's release of the unit will delete objects on the
// target, in this wave or a later one. The release may not have begun. A release with a
// quarantined bundle does not begin, and deletes nothing.
func (u *Unit) Deletes(name config.TargetName, w *Wanted) bool {
	t, unit, begun := u.Targets[name], w.Units[u.Path], u.Begun(w)
	if t == nil || t.nothing() || !begun && unit != nil && u.quarantined(unit) != "" {
		return false
	}
	var want object.Digest
	switch w.FateOf(u, name) {
	case Brought:
		want = unit.Targets[name].Digest
	case Cleaned:
	default:
		return false
	}
	if t.Wanted != want {
		return !begun // else it was put back
	}
	return want == "" || !t.applied() || t.Leftovers
}

// Settled says that the last Decide found nothing to do and nothing to wait for in the
// commit's release of the unit: the unit then deletes nothing.
func (u *Unit) Settled(w *Wanted) bool { return u.settled && u.over && u.Begun(w) }

// Starts lists the units whose release the next Decide begins unless it is
// withheld, sorted: of those that there are, and that stay.
func (s *State) Starts(w *Wanted) []config.UnitPath {
	if w.Refused() != "" {
		return nil
	}
	var paths []config.UnitPath
	for path, u := range s.Units {
		if unit := w.Units[path]; unit != nil && unit.frozen() == "" && u.Rollout.Release != unit.Release() && u.quarantined(unit) == "" {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// Holds says that the target has the bundle, and is healthy with it.
func (t *Target) Holds(digest object.Digest) bool { return t.Wanted == digest && t.done() }

// Soaking says that every target of the unit is as the rollout wants it, and
// that it is not over all the same: a soak has to end, or the next Decide ends it.
func (u *Unit) Soaking() bool {
	for _, t := range u.list() {
		if !t.done() {
			return false
		}
	}
	return u.Rollout.Status == Progressing || u.Rollout.Status == RollingBack
}

// Await notes what of the unit waits for approval; empty is nothing. A unit
// that is not there any more waits for nothing.
func (s *State) Await(path config.UnitPath, text string, now time.Time) []Transition {
	u := s.Units[path]
	if u == nil || u.Waiting == text {
		return nil
	}
	u.Waiting = text
	s.touch(path)
	if text == "" {
		return nil
	}
	return []Transition{u.transition(instant(now), "", "waiting", text)}
}

// Nudge makes the unit's postponed work on its targets due at once: deletions, and
// objects that the server could not take.
func (s *State) Nudge(path config.UnitPath) {
	u := s.Units[path]
	if u == nil {
		return
	}
	for _, t := range u.list() {
		if t.Leftovers || t.Wanted == "" || t.Trouble == TroubleDeferred || t.Trouble == TroubleUnavailable {
			t.Attempts, t.RetryAt = 0, time.Time{}
			if t.Leftovers {
				t.CheckedAt = time.Time{}
			}
			s.touch(path)
		}
	}
}

// Adopt makes the unit look after objects on a target that were found there
// after the state was lost, and that the commit does not want: a target that
// the unit is not placed on is one that it leaves. A unit that there is none of
// is made, so that it can leave.
func (s *State) Adopt(path config.UnitPath, name config.TargetName, commit config.Commit, now time.Time) {
	s.fleet = nil // its cluster may have left it meanwhile
	u := s.Units[path]
	if u == nil {
		spec := config.Rollout{Name: "default", Waves: []config.Wave{{Name: "all"}}}
		u = &Unit{Path: path, Rollout: &Rollout{ID: 1, Commit: commit, Status: Done, Spec: spec, StartedAt: instant(now), FinishedAt: instant(now)}}
		if s.Units == nil {
			s.Units = map[config.UnitPath]*Unit{}
		}
		s.Units[path] = u
	}
	if u.Targets == nil {
		u.Targets = map[config.TargetName]*Target{}
	}
	if t := u.Targets[name]; t != nil {
		t.Leftovers, t.Dirty = true, t.Dirty || t.nothing() // a release that had not come there yet
	} else {
		u.put(name, &Target{Wave: len(u.Rollout.Spec.Waves) - 1, Dirty: true})
	}
	s.touch(path)
	s.Nudge(path)
}
