// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// row is what the state has of a unit: it is written before anything is begun, so what
// begins is seen there.
type row struct {
	raw     []byte
	Blocked string // why the newest commit is not released, as it says
	Rollout struct {
		ID       int
		Commit   string
		Release  string
		Status   rollout.Status
		Wave     int
		Removing bool
		Silence  bool
		Promoted bool

		StartedAt time.Time
	}
	Targets map[string]*rowTarget
}

type rowTarget struct {
	Wave            int
	Wanted, Applied string
	Dirty, Touched  bool
	Fast            bool // it has what it had before, and waits for no wave
	Masked, Trouble string
	Health          rollout.Health
	TriedAt         time.Time
	AppliedAt       time.Time
	Successor       string
	Gone            bool // nothing is written before somebody commits something
}

// readRows reads how the rollouts of units stand, and looks at what began since.
func (j *judge) readRows(p *process) {
	p.mu.Lock()
	is := [2]int{p.number, p.commits}
	p.mu.Unlock()
	defer func() { j.rowsAt = time.Since(j.world.begun) }()
	if j.rowsOf == is && j.rows != nil {
		return
	}
	j.endOver()
	raw, err := p.store.Units()
	if err != nil {
		j.objectf("state", "units: %v", err)
	}
	before, next := j.rows, make(map[string]*row, len(raw))
	for path, r := range before {
		if r.goesBack() || r.Rollout.Status == rollout.Held {
			j.wentBack[path] = j.elapsed
		}
	}
	for path, text := range raw {
		if was := before[string(path)]; was != nil && bytes.Equal(was.raw, text) {
			next[string(path)] = was
			continue
		}
		r := &row{raw: text}
		if err := json.Unmarshal(text, r); err != nil {
			j.objectf("state", "unit %s: %v", path, err)
		}
		next[string(path)] = r
	}
	j.rows, j.rowsOf = next, is
	j.readRollouts(next)
	if lineage := j.lineage[p.number]; before != nil && j.rowsIn == lineage {
		maps.DeleteFunc(j.rolloutSince, func(k rolloutKey, _ time.Duration) bool {
			return before[k.unit] != nil && next[k.unit] == nil // it left, and nobody remembers its releases
		})
		j.begins(p, before, next)
		j.unsaid(p, before, next)
	} else {
		j.rowsIn = lineage
	}
}

// dirtyNow are the places where a write is under way.
func (j *judge) dirtyNow() map[place]bool {
	all := map[place]bool{}
	for path, r := range j.rows {
		for name, t := range r.Targets {
			if t.Dirty {
				all[place{path, name}] = true
			}
		}
	}
	return all
}

func (r *row) goesBack() bool {
	return r.Rollout.Status == rollout.RollingBack || r.Rollout.Status == rollout.RolledBack
}

// inChange says that the target was written for a release, and is not healthy since.
func (r *row) inChange(t *rowTarget) bool {
	underway := t.Trouble != "failed" && t.Trouble != "unreachable" && t.Trouble != "unavailable" && t.Trouble != "deferred" && t.Masked == "" &&
		(t.Dirty || t.Wanted != "" && t.Applied == t.Wanted && t.Health != rollout.HealthGood)
	return underway && !t.TriedAt.IsZero() && !r.goesBack()
}

// isBehind says that what was begun on a target goes on only after one that waits for what
// others bring: that is of an earlier wave, and was masked meanwhile.
func (r *row) isBehind(t *rowTarget) bool {
	return (t.Dirty || t.Applied != t.Wanted) && !t.Fast && r.defers(t.Wave, t.Wanted == "")
}

// defers says that a wave before this one waits for what others bring.
func (r *row) defers(wave int, removing bool) bool {
	for _, t := range r.Targets {
		earlier := t.Wave < wave
		if removes := t.Wanted == ""; removes != removing {
			earlier = removing
		}
		if earlier && t.Wave >= 0 && t.Trouble == "deferred" && t.Masked == "" {
			return true
		}
	}
	return false
}

// inFlight says that the unit takes room: something of it is in change, or the wave under
// way was written. A wave with a target that waits for what others bring, or that does not get
// away, takes none; nor does a unit that is not there.
func (r *row) inFlight() bool {
	if r == nil {
		return false
	}
	written, waits := false, r.defers(r.Rollout.Wave, r.Rollout.Removing)
	for _, t := range r.Targets {
		if r.inChange(t) && !r.isBehind(t) {
			return true
		}
		if r.Rollout.Status == rollout.Progressing && t.Touched && t.Wave == r.Rollout.Wave {
			waits = waits || t.Trouble == "deferred" || t.Wanted == "" && t.Trouble != "" || t.Trouble == "unavailable" && t.Gone
			written = written || t.Wanted == t.Applied && !t.Dirty && !t.AppliedAt.Before(r.Rollout.StartedAt) || !t.TriedAt.IsZero()
		}
	}
	return written && !waits
}

// begins looks at the releases that began at a target between two commits of the state.
func (j *judge) begins(p *process, before, next map[string]*row) {
	for _, path := range sorted(next) {
		r, was := next[path], before[path]
		if r == was || r.goesBack() {
			continue
		}
		for _, name := range sorted(r.Targets) {
			t := r.Targets[name]
			known := was != nil && was.Rollout.ID == r.Rollout.ID && was.Targets[name] != nil && !was.Targets[name].TriedAt.IsZero()
			if known || t.TriedAt.IsZero() || !t.Dirty || was != nil && was.goesBack() {
				continue
			}
			j.begun(p, place{path, name}, r, t)
			j.gated(p, place{path, name}, r, t)
			j.room(place{path, name}, before, next)
		}
	}
}

// begun: nothing begins that a pause, a freeze, a Window or the commit's breaker keeps from it.
func (j *judge) begun(p *process, at place, r *row, t *rowTarget) {
	for _, g := range j.given {
		for verb, rule := range map[order.Verb]string{order.Pause: "what is paused is not written", order.Freeze: "nothing starts where it is frozen"} {
			if g.holds(verb, at, p) && g.taken && !g.left && g.takenAt < j.elapsed {
				j.objectf(rule, "%v begins in spite of %s", at, g)
			}
		}
	}
	for _, a := range j.windows {
		newest := j.known[p.number]
		if a.has(at) && newest != nil && (newest.held || slices.Contains(newest.windows, a)) && shut(t.TriedAt) {
			j.objectf("nothing starts outside of a window", "%v begins at %s in spite of Window %s", at, t.TriedAt, a)
		}
	}
}

// space is the unit with all namespaces.
const space = "services/space"

// awaited are the units that others wait for, which are let through in any case: the one
// with all namespaces, the one that gates wait for, with the kinds of its objects, what became of
// a unit that leaves, and, where a foundation leaves, those that have to leave it first.
func (s *shape) awaited(rows map[string]*row) map[string]bool {
	units, foundations := map[string]bool{space: true}, []string{space, "services/crd"}
	if s.hasAfter() {
		units["services/"+first], units["services/crd"] = true, true
		foundations = append(foundations, "services/"+first)
	}
	for _, r := range rows {
		for name, t := range r.Targets {
			if t.Successor != "" && t.Wanted == "" {
				units[t.Successor] = true
			}
			if !slices.ContainsFunc(foundations, func(path string) bool { return leaves(rows[path], name) }) {
				continue
			}
			for path, other := range rows {
				units[path] = units[path] || leaves(other, name)
			}
		}
	}
	return units
}

// leaves says that the commit does not want the unit on a target where it is.
func leaves(r *row, name string) bool {
	return r != nil && r.Targets[name] != nil && r.Targets[name].Wanted == ""
}

// room: budgets hold.
func (j *judge) room(at place, before, next map[string]*row) {
	r, b := next[at.unit], j.world.shape.budget
	failed, failedBefore, there, free := 0, 0, 0, j.world.shape.awaited(next)
	var flying []string
	for path, other := range next {
		was := before[path]
		if other.failedOn(r.Rollout.Commit) {
			failed++
		}
		if was.failedOn(r.Rollout.Commit) {
			failedBefore++
		}
		if free[path] {
			continue
		}
		if other.inFlight() && (was == nil || was.settledOrFlying()) && !other.wasMasked(was) {
			flying = append(flying, path)
		}
		if t := other.Targets[at.target]; t != nil && other.inChange(t) && !other.isBehind(t) && was.leads(at.target, t) {
			there++
		}
	}
	switch {
	case b.failedUnits > 0 && min(failed, failedBefore) > b.failedUnits-1 && !r.Rollout.Promoted:
		j.objectf("the commit breaker", "%v begins although %d units failed on commit %s", at, failed, r.Rollout.Commit)
	case b.unitsPerTarget > 0 && !free[at.unit] && there > b.unitsPerTarget:
		j.objectf("budgets hold", "%v begins, and %d units are in change there", at, there)
	case b.units > 0 && !free[at.unit] && len(flying) > b.units && !before[at.unit].inFlight() && !r.wasMasked(before[at.unit]):
		slices.Sort(flying)
		j.objectf("budgets hold", "%v begins, and %d units are in change: %v", at, len(flying), flying)
	}
}

// leads says that a target is in change for a release: it did not come back by itself from
// trouble, and it is not drift that is corrected from this moment on, which waits for no room.
func (r *row) leads(name string, next *rowTarget) bool {
	if r == nil || r.Targets[name] == nil {
		return true
	}
	t := r.Targets[name]
	return t.Trouble == "" && (r.inChange(t) || next.Applied != next.Wanted)
}

// settledOrFlying says that the unit did not come back by itself from trouble.
func (r *row) settledOrFlying() bool {
	for _, t := range r.Targets {
		if t.Trouble != "" {
			return false
		}
	}
	return true
}

// wasMasked says that a mask of the unit ended: a target that was in change then waits for no
// room.
func (r *row) wasMasked(before *row) bool {
	if before == nil {
		return false
	}
	for name, t := range r.Targets {
		earlier := before.Targets[name]
		if earlier != nil && earlier.Masked != "" && t.Masked == "" && !t.TriedAt.IsZero() {
			return true
		}
	}
	return false
}

func (r *row) failedOn(commit string) bool {
	return r != nil && r.Rollout.Commit == commit && !r.Rollout.Silence && r.Rollout.Release != "" && (r.goesBack() || r.Rollout.Status == rollout.Held)
}
