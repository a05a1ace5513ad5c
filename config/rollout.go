// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
)

// Rollout says in which waves a change reaches the targets of a unit.
type Rollout struct {
	Position document.Position
	Name     string
	// Waves in order; never empty. A target belongs to the first one that
	// picks it.
	Waves []Wave
	// Vacant is how many of the first waves no target of the fleet may be in; mostly 0. A canary that
	// lost its label, or left, would else be no canary any more, and nobody would notice: see
	// [Rollout.WavesOf].
	Vacant      int
	OnFailure   OnFailure
	Unreachable Unreachable
	// FastRevert lets a target go back to a bundle that it had, healthy, without its
	// wave's turn, gates and soak.
	FastRevert bool
}

// OnFailure is what happens to a unit whose wave failed.
type OnFailure string

const (
	// Rollback puts the last good bundles back on the targets that this
	// rollout touched. It is the default.
	Rollback OnFailure = "rollback"
	// Hold stops and leaves everything as it is.
	Hold OnFailure = "hold"
)

// Unreachable says what a target that does not answer is to its wave. The zero value
// waits for it.
type Unreachable struct {
	Policy UnreachablePolicy
	// Limit is the most targets of a unit that are excused at a time.
	Limit Amount
	// After is how long a target has not answered before it is excused or holds the
	// rollout.
	After time.Duration
}

// UnreachablePolicy is what a target that does not answer is to its wave.
type UnreachablePolicy string

const (
	// WaitForUnreachable has it count against [Wave.MaxFailures], and never fail the
	// rollout.
	WaitForUnreachable UnreachablePolicy = "wait"
	// ExcuseUnreachable has the wave go on without it.
	ExcuseUnreachable UnreachablePolicy = "excuse"
	// HoldForUnreachable has the rollout held until it answers.
	HoldForUnreachable UnreachablePolicy = "hold"
)

// What [Unreachable] has where nothing is written: a share that a single site of a large
// fleet does not exceed, and a time that a restart of an API server stays below.
var (
	defaultExcused      = Amount{Percent: 10}
	defaultExcusedAfter = time.Minute
)

// Wave is one step of a rollout.
type Wave struct {
	Name string
	// Match, Targets and Share pick the targets, of those that no earlier wave has:
	// with these labels, with these names or in clusters with them, and of both a
	// percentage. Zero values pick all.
	Match   Match
	Targets []TargetName
	Share   int
	// Soak is how long every target of the wave must have been healthy
	// without a break before the next wave starts. Zero is no wait.
	Soak time.Duration
	// MaxConcurrent is how many targets are changed and not yet healthy at
	// any time. The zero Amount is all of them.
	MaxConcurrent Amount
	// MaxObjects is how many objects the bundles of those targets have together, unless
	// it is one target. Zero is no bound.
	MaxObjects int
	// MaxFailures is how many targets may fail before the wave has failed.
	// The zero Amount is none.
	MaxFailures Amount
	// Timeout is how long a target may take from applied to healthy before it
	// counts as failed. [DefaultHealthTimeout] where none is written.
	Timeout time.Duration
	// Gates are what must hold besides health, in the order written.
	Gates []Gate
}

// DefaultHealthTimeout is the time a target gets to become healthy: half of
// the progressDeadlineSeconds that Kubernetes gives a Deployment by default,
// so that a wave notices before the Deployment controller gives up.
const DefaultHealthTimeout = 5 * time.Minute

// Amount is a number of targets, or a share of the wave's targets.
type Amount struct {
	Count   int // used when Percent is zero
	Percent int // 0-100
}

// Of is the amount out of n targets, at most n. A share is rounded down, but
// is at least one target when it is not zero per cent.
func (a Amount) Of(n int) int {
	if a.Percent > 0 {
		return min(n, max(1, n*a.Percent/100))
	}
	return min(n, a.Count)
}

// Match picks targets by their labels: every key must be there with one of its
// values. An empty Match picks everything.
type Match struct {
	Labels map[string][]string
}

// First is the first label by its key, as it is written, and its first value; empty where there is none.
func (m Match) First() (label, value string) {
	if len(m.Labels) == 0 {
		return "", ""
	}
	key := slices.Min(slices.Collect(maps.Keys(m.Labels)))
	values := m.Labels[key]
	return key + ": " + document.Shorten(strings.Join(values, ", ")), values[0]
}

// Matches says whether a target with these labels is picked.
func (m Match) Matches(labels map[string]string) bool {
	for key, values := range m.Labels {
		got, ok := labels[key]
		if !ok || !slices.Contains(values, got) {
			return false
		}
	}
	return true
}

// takesAll says that the wave leaves no target to later ones.
func (w *Wave) takesAll() bool {
	return len(w.Match.Labels) == 0 && len(w.Targets) == 0 && (w.Share == 0 || w.Share == 100)
}

// may says whether the wave picks a target with this name and these labels when its
// share is all.
func (w *Wave) may(name TargetName, labels map[string]string) bool {
	return w.Match.Matches(labels) && (len(w.Targets) == 0 || name.in(w.Targets))
}

// in says whether names have the target, or its cluster.
func (t TargetName) in(names []TargetName) bool {
	return slices.Contains(names, t) || slices.Contains(names, TargetName(t.Cluster()))
}

// WaveOf is the index of the first wave that may pick a target with this name and these
// labels, or -1 when none does. Where [Rollout.IsRelative], see [Rollout.WavesOf].
func (r *Rollout) WaveOf(name TargetName, labels map[string]string) int {
	return slices.IndexFunc(r.Waves, func(w Wave) bool { return w.may(name, labels) })
}

// IsRelative says whether a target's wave depends on the other targets of the unit.
func (r *Rollout) IsRelative() bool {
	return r.Vacant > 0 || slices.ContainsFunc(r.Waves, func(w Wave) bool { return w.Share > 0 && w.Share < 100 })
}

// vacantIn is how many of the first waves no target of a fleet may be in; 0 where all of them are vacant.
func (r *Rollout) vacantIn(fleet []*Cluster) int {
	for i := range r.Waves {
		w := &r.Waves[i]
		for _, c := range fleet {
			if slices.ContainsFunc(c.everyTarget(), func(t Target) bool { return w.may(t.Name, t.Labels) }) {
				return i
			}
		}
	}
	return 0
}

// WavesOf is the index of the wave of each of the targets that a unit is on; a target that
// no wave picks is not in it. A share is of the targets that are left, so it depends on
// all of them. Where the first waves are vacant, the first target stands in: it is in the first wave.
func (r *Rollout) WavesOf(targets []TargetName, labels func(TargetName) map[string]string) map[TargetName]int {
	waves := make(map[TargetName]int, len(targets))
	left := slices.Clone(targets)
	for i := range r.Waves {
		w := &r.Waves[i]
		var picked, rest []TargetName
		for _, name := range left {
			if w.may(name, labels(name)) {
				picked = append(picked, name)
			} else {
				rest = append(rest, name)
			}
		}
		if w.Share > 0 && w.Share < 100 && len(picked) > 0 {
			taken := r.sample(w, picked)
			rest, picked = append(rest, picked[taken:]...), picked[:taken]
		}
		for _, name := range picked {
			waves[name] = i
		}
		left = rest
	}
	if r.Vacant > 0 && len(waves) > 0 {
		waves[firstOf(waves)] = 0
	}
	return waves
}

// firstOf is the first target of the first wave that has any.
func firstOf(waves map[TargetName]int) TargetName {
	return slices.MinFunc(slices.Collect(maps.Keys(waves)), func(a, b TargetName) int {
		return cmp.Or(cmp.Compare(waves[a], waves[b]), cmp.Compare(a, b))
	})
}

// sample sorts names so that the wave's share of them comes first, and returns how many
// that is. They are chosen by a hash of the names of rollout, wave and target: the same
// ones for all units with the same targets, and with one target more or less the same
// ones but for one.
func (r *Rollout) sample(w *Wave, names []TargetName) int {
	type hashed struct {
		hash uint64
		name TargetName
	}
	all := make([]hashed, len(names))
	for i, name := range names {
		sum := sha256.Sum256([]byte(r.Name + "\x00" + w.Name + "\x00" + string(name)))
		all[i] = hashed{binary.BigEndian.Uint64(sum[:]), name}
	}
	slices.SortFunc(all, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.name, b.name)) })
	for i := range all {
		names[i] = all[i].name
	}
	return Amount{Percent: w.Share}.Of(len(names))
}

// Release says how a commit that changes many units is released. The zero value sets no
// order and no bounds.
type Release struct {
	// Tiers are values of the units' label [TierLabel], the first to be released first.
	Tiers  []string
	Budget Budget
}

// TierLabel is the label of units that says which tier of [Release.Tiers] they are in.
const TierLabel = "tier"

// TierOf is the index of the tier of a unit with these labels; that of a unit in none is
// after all others.
func (r *Release) TierOf(labels map[string]string) int {
	if i := slices.Index(r.Tiers, labels[TierLabel]); i >= 0 {
		return i
	}
	return len(r.Tiers)
}

// Budget bounds what is in change at a time.
type Budget struct {
	// FailedUnits is how many units may fail on a commit before nothing more of it is
	// released; nil is no bound.
	FailedUnits *int
	// Units is how many units of the fleet may have a release under way, and
	// UnitsPerTarget how many may be in change on one target; 0 is no bound.
	Units, UnitsPerTarget int
}

// Counts says that the budget bounds how many units are in change.
func (b *Budget) Counts() bool { return b.Units > 0 || b.UnitsPerTarget > 0 }

// HasAfter says whether a gate of some wave waits for another unit.
func (r *Rollout) HasAfter() bool {
	return slices.ContainsFunc(r.Waves, func(w Wave) bool {
		return slices.ContainsFunc(w.Gates, func(g Gate) bool { return g.After != nil })
	})
}
