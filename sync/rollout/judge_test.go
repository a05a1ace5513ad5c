// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// judge keeps its own record of what was planned and what came of it, in
// elapsed time, and objects to plans that break an invariant. It forgets what
// the daemon forgets when it is killed, and looks at the state only for a
// unit's status and quarantine.
type judge struct {
	objection error
	elapsed   time.Duration // all steps of the clock forward
	offered   map[bundle]bool

	seen  map[object.UnitTarget]seen
	units map[config.UnitPath]seenUnit
}

// bundle is one that a commit offers to a place.
type bundle struct {
	object.UnitTarget
	digest object.Digest
	commit config.Commit
}

type seen struct {
	applied   object.Digest
	good      object.Digest
	writing   bool // planned and not known to be complete
	touched   bool // written since the last rollout that was done
	drifted   bool
	healthy   bool
	since     time.Duration // of healthy, or of not healthy
	checked   time.Duration
	tried     time.Duration
	hasTried  bool
	failed    bool
	surely    bool          // failed, whatever the clock said
	returned  time.Duration // when it was last back after it was away for long; zero: never
	cut       bool          // unreachable, or in trouble of its own
	blind     bool          // and nobody has known since how it is
	blinded   time.Duration
	correctly bool // the write under way corrects drift
	step      string
	stepped   time.Duration // when step was first waited for
}

type seenUnit struct {
	id         int
	status     Status
	spec       config.Rollout
	want       map[config.TargetName]object.Digest
	passed     map[string]bool
	quarantine map[object.Digest]bool
}

func newJudge() *judge {
	return &judge{offered: map[bundle]bool{}, seen: map[object.UnitTarget]seen{}, units: map[config.UnitPath]seenUnit{}}
}

func (j *judge) clone() *judge {
	c := *j
	c.seen = maps.Clone(j.seen)
	c.units = maps.Clone(j.units)
	for path, u := range c.units {
		u.passed, u.quarantine = maps.Clone(u.passed), maps.Clone(u.quarantine)
		c.units[path] = u
	}
	return &c
}

func (j *judge) objectf(format string, args ...any) {
	if j.objection == nil {
		j.objection = fmt.Errorf(format, args...)
	}
}

// offer notes what may be applied at all: invariant 2.
func (j *judge) offer(want *Wanted) {
	if want.Held != "" {
		return
	}
	for path, u := range want.Units {
		if u.Frozen != "" {
			continue
		}
		for name, t := range u.Targets {
			j.offered[bundle{object.UnitTarget{Unit: path, Target: name}, t.Digest, want.Commit}] = true
		}
	}
}

// plan looks at what Decide gave.
func (j *judge) plan(w *world) {
	j.transitions(w, w.plan.Transitions)
	planned := map[object.UnitTarget]bool{}
	for _, a := range w.plan.Actions {
		at := object.UnitTarget{Unit: a.Unit, Target: a.Target}
		if planned[at] {
			j.objectf("two actions for %v", at)
		}
		planned[at] = true
		j.action(w, a, j.units[a.Unit], j.seen[at])
	}
	j.concurrency(w.plan.Actions)
	for _, a := range w.plan.Actions {
		if a.Kind == Check {
			continue
		}
		at := object.UnitTarget{Unit: a.Unit, Target: a.Target}
		s := j.seen[at]
		s.writing, s.correctly = true, a.Why == WhyDrift
		// What a release that is done owes is changed for it, and put back if the next one fails.
		progressing := j.units[a.Unit].status == Progressing || w.state.Units[a.Unit].Targets[a.Target].Owes
		s.touched = s.touched || (a.Why == WhyRollout || a.Why == WhyRetry) && progressing
		if !s.hasTried && a.Why != WhyDrift {
			s.tried, s.hasTried = j.elapsed, true
		}
		j.seen[at] = s
	}
}

func (j *judge) action(w *world, a Action, u seenUnit, s seen) {
	at := object.UnitTarget{Unit: a.Unit, Target: a.Target}
	wanted := w.want.Units[a.Unit]
	unknown := w.want.Held != "" || wanted != nil && wanted.Frozen != ""
	if u.status == Held && (u.spec.OnFailure == config.Hold || a.Kind == Remove || a.Kind == Apply && a.Why != WhyDrift && (!s.touched || s.good != "")) {
		j.objectf("%v: action for a unit that is held: %+v", at, a)
	}
	if a.Kind != Remove && !j.offered[bundle{at, a.Digest, a.Commit}] {
		j.objectf("%v: commit %s never offered %s: %+v", at, a.Commit, a.Digest, a)
	}
	if a.Prune && unknown {
		j.objectf("%v: prune although nothing is known", at)
	}
	switch a.Kind {
	case Remove:
		if unknown {
			j.objectf("%v: removed although nothing is known", at)
		}
		if wanted != nil && wanted.Targets[a.Target].Digest != "" {
			j.objectf("%v: removed although the commit wants it", at)
		}
		j.before(a, u, len(u.spec.Waves))
	case Apply:
		switch a.Why {
		case WhyDrift:
			if !s.drifted || a.Digest != s.applied {
				j.objectf("%v: corrected to %s without drift from %s", at, a.Digest, s.applied)
			}
		case WhyRollback:
			if !s.touched || a.Digest != s.good {
				j.objectf("%v: rolled back to %s, but good is %s (touched: %v)", at, a.Digest, s.good, s.touched)
			}
		default:
			if a.Digest != u.want[a.Target] && !(s.drifted && a.Digest == s.applied) {
				j.objectf("%v: %s is not wanted", at, a.Digest)
			}
			if u.quarantine[a.Digest] && a.Digest != s.good {
				j.objectf("%v: %s is quarantined", at, a.Digest)
			}
			j.before(a, u, waveOf(&u.spec, a.Target))
			j.needs(w, a)
		}
	}
}

func waveOf(spec *config.Rollout, name config.TargetName) int {
	return spec.WaveOf(name, targets[name])
}

// before wants everything before the wave to be passed and still well:
// invariant 3. For a removal that is every wave.
func (j *judge) before(a Action, u seenUnit, wave int) {
	for i := range min(wave, len(u.spec.Waves)) {
		m := j.members(a.Unit, u, i)
		if m.size > 0 && !u.passed[u.spec.Waves[i].Name] {
			j.objectf("%s on %s is written before %s was passed", a.Unit, a.Target, u.spec.Waves[i].Name)
		}
		if m.open > 0 || m.debts-m.silent > m.tolerated {
			j.objectf("%s on %s is written while %s is not well: %+v", a.Unit, a.Target, u.spec.Waves[i].Name, m)
		}
	}
}

// members is the judge's own tally.
type members struct {
	size, open, debts, failed, tolerated, slots, underway int
	silent                                                int // debts that have the bundle and do not answer
	written                                               int
	healthySince, checked                                 time.Duration
}

func (j *judge) members(path config.UnitPath, u seenUnit, wave int) members {
	var m members
	for name, digest := range u.want {
		if waveOf(&u.spec, name) != wave {
			continue
		}
		s := j.seen[object.UnitTarget{Unit: path, Target: name}]
		m.size++
		if (s.writing || s.applied == digest && !s.healthy) && !s.failed && !s.cut {
			m.underway++
		}
		if s.failed && s.touched {
			m.failed++
		}
		switch {
		case s.failed || s.cut:
			m.debts++
			if s.cut && !s.failed && s.applied == digest && !s.writing && s.healthy && !s.drifted {
				m.silent++
			}
		case s.applied != digest || s.writing || s.drifted || !s.healthy:
			m.open++
		case s.touched:
			if m.written == 0 || s.checked < m.checked {
				m.checked = s.checked
			}
			m.healthySince = max(m.healthySince, s.since)
			m.written++
		}
	}
	spec := u.spec.Waves[wave]
	m.tolerated, m.slots = spec.MaxFailures.Of(m.size), m.size
	if spec.MaxFailures.Percent > 0 && m.size > 0 && m.tolerated == m.size {
		m.tolerated--
	}
	if spec.MaxConcurrent != (config.Amount{}) {
		m.slots = spec.MaxConcurrent.Of(m.size)
	}
	return m
}

func (j *judge) concurrency(actions []Action) {
	type wave struct {
		unit config.UnitPath
		wave int
	}
	fresh := map[wave]int{}
	for _, a := range actions {
		s, u := j.seen[object.UnitTarget{Unit: a.Unit, Target: a.Target}], j.units[a.Unit]
		if a.Kind != Apply || a.Why == WhyDrift || a.Why == WhyRollback {
			continue
		}
		if changed := s.writing || s.applied == a.Digest && !s.healthy; !changed {
			fresh[wave{a.Unit, waveOf(&u.spec, a.Target)}]++
		}
	}
	for at, n := range fresh {
		if m := j.members(at.unit, j.units[at.unit], at.wave); m.underway+n > m.slots {
			j.objectf("%s: %d targets of wave %d under way and %d more, %d allowed", at.unit, m.underway, at.wave, n, m.slots)
		}
	}
}

func (j *judge) needs(w *world, a Action) {
	u := w.state.Units[a.Unit]
	for _, need := range u.Targets[a.Target].Needs {
		n := w.state.Units[need]
		if n == nil || n.Targets[a.Target] == nil {
			continue
		}
		s := j.seen[object.UnitTarget{Unit: need, Target: a.Target}]
		if s.applied == "" || n.Rollout.Status == Progressing && s.applied != j.units[need].want[a.Target] && j.units[need].want[a.Target] != "" {
			j.objectf("%s on %s is written before %s", a.Unit, a.Target, need)
		}
	}
}

// transitions follows rollouts, and looks at whether each step is justified.
func (j *judge) transitions(w *world, all []Transition) {
	for _, tr := range all {
		u := j.units[tr.Unit]
		switch tr.Kind {
		case "started":
			u = j.started(w, tr, u)
		case "passed":
			u.passed[tr.Wave] = j.passed(tr, u)
		case "rolling back", "held":
			switch u.status {
			case Progressing:
				j.justified(w, tr, u)
			case RollingBack: // what there was to put back on is back
				u.status = RolledBack
				j.over(tr, u)
			}
			u.status = Status(tr.Kind)
			u.quarantine = maps.Clone(u.quarantine)
			for digest := range w.state.Units[tr.Unit].Quarantine {
				u.quarantine[digest] = true
			}
		case "retry":
			u.quarantine = map[object.Digest]bool{}
		case "resumed":
			if u.status != Held || u.spec.OnFailure == config.Hold {
				j.objectf("%s: %s resumes", tr.Unit, u.status)
			}
			u.status = Progressing
		case "rolled back", "done":
			u.status = Status(tr.Kind)
			if u.status == Done {
				j.well(tr, u)
			}
			j.over(tr, u)
		}
		j.units[tr.Unit] = u
	}
}

// well wants every wave of a rollout that is done to be well.
func (j *judge) well(tr Transition, u seenUnit) {
	for i := range u.spec.Waves {
		if m := j.members(tr.Unit, u, i); m.open > 0 || m.debts-m.silent > m.tolerated {
			j.objectf("%s is done while %s is not well: %+v", tr.Unit, u.spec.Waves[i].Name, m)
		}
	}
}

func (j *judge) started(w *world, tr Transition, old seenUnit) seenUnit {
	u := seenUnit{id: tr.Rollout, status: Progressing, spec: old.spec, want: map[config.TargetName]object.Digest{}, passed: map[string]bool{}, quarantine: old.quarantine}
	if u.quarantine == nil || tr.Rollout == 1 {
		u.quarantine = map[object.Digest]bool{}
	}
	if w.want.Held != "" {
		j.objectf("%s: a rollout starts from a commit that is held", tr.Unit)
	}
	if wanted := w.want.Units[tr.Unit]; wanted != nil {
		if wanted.Frozen != "" {
			j.objectf("%s: a rollout of a frozen unit starts", tr.Unit)
		}
		u.spec = *wanted.Rollout
		for name, t := range wanted.Targets {
			u.want[name] = t.Digest
		}
	}
	for at, s := range j.seen {
		if at.Unit == tr.Unit {
			s.failed, s.surely, s.cut, s.blind, s.hasTried = false, false, false, false, false
			if !s.healthy {
				s.since = j.elapsed
			}
			j.seen[at] = s
		}
	}
	return u
}

// passed looks at the first time that a wave is passed.
func (j *judge) passed(tr Transition, u seenUnit) bool {
	wave := 0
	for u.spec.Waves[wave].Name != tr.Wave {
		wave++
	}
	m := j.members(tr.Unit, u, wave)
	if m.size == 0 || u.passed[tr.Wave] {
		return u.passed[tr.Wave]
	}
	if m.open > 0 || m.debts > m.tolerated {
		j.objectf("%s: %s is passed, but %+v", tr.Unit, tr.Wave, m)
	}
	if soak := u.spec.Waves[wave].Soak; m.written > 0 && soak > 0 && m.checked-m.healthySince < soak {
		j.objectf("%s: %s is passed after a soak of %s, want %s", tr.Unit, tr.Wave, m.checked-m.healthySince, soak)
	}
	return true
}

// justified wants more failures in a wave that was passed, or in the first that is not, than
// it tolerates, and all that failed to be quarantined.
func (j *judge) justified(w *world, tr Transition, u seenUnit) {
	for i := range u.spec.Waves {
		m := j.members(tr.Unit, u, i)
		if m.size == 0 || u.passed[u.spec.Waves[i].Name] && m.failed <= m.tolerated {
			continue
		}
		if m.failed <= m.tolerated {
			j.objectf("%s: %s for %s: %+v", tr.Unit, tr.Kind, tr.Text, m)
		}
		for name, digest := range u.want {
			s := j.seen[object.UnitTarget{Unit: tr.Unit, Target: name}]
			_, put := w.state.Units[tr.Unit].Quarantine[digest]
			if waveOf(&u.spec, name) == i && s.surely && s.touched && s.good != digest && !put && tr.Kind == string(RollingBack) {
				j.objectf("%s: %s is not quarantined", tr.Unit, digest)
			}
		}
		return
	}
	j.objectf("%s: %s with every wave passed", tr.Unit, tr.Kind)
}

// over ends a rollout or a rollback: what is touched is settled.
func (j *judge) over(tr Transition, u seenUnit) {
	for at, s := range j.seen {
		if at.Unit != tr.Unit {
			continue
		}
		digest, wanted := u.want[at.Target]
		switch {
		case u.status == RolledBack && s.touched && s.good != "" && (s.applied != s.good || s.writing || !s.healthy):
			j.objectf("%v: rolled back, but %+v", at, s)
		case u.status == Done && wanted && s.applied == digest && !s.writing && s.healthy && !s.cut && !s.drifted:
			s.good = digest
		case u.status == Done && !wanted && s.applied == "" && !s.writing:
			s = seen{}
		}
		s.touched = s.touched && s.good == "" && tr.Kind == string(Held)
		s.hasTried = false
		j.seen[at] = s
	}
}

// outcome takes in what the state is about to record.
func (j *judge) outcome(o Outcome, u *Unit) {
	if u == nil || u.Targets[o.Target] == nil {
		return
	}
	const timeout = 5 * time.Minute
	at := object.UnitTarget{Unit: o.Unit, Target: o.Target}
	s, unit := j.seen[at], j.units[o.Unit]
	digest, wanted := unit.want[o.Target]
	if unit.status == RollingBack {
		digest, wanted = s.good, s.touched
	}
	about := wanted && o.Digest == digest || !wanted && o.Kind == Remove
	switch dark := o.Result == Unreachable || o.Result == Unavailable; {
	case o.Result == Drifted:
	case dark && !s.blind:
		s.blind, s.blinded = true, j.elapsed
	case !dark && s.blind:
		away := j.elapsed - s.blinded
		s.blind, s.tried, s.stepped = false, s.tried+away, s.stepped+away
		if !s.healthy {
			s.since += away
		}
		if away >= 30*time.Second && !s.recovers(j.elapsed, timeout) {
			s.returned = j.elapsed
		}
	}
	switch {
	case o.Result == Drifted:
		s.drifted = s.applied != ""
	case o.Result == Applied, o.Result == Removed:
		s.applied, s.writing, s.drifted, s.correctly = o.Digest, false, false, false
		s.healthy, s.since, s.failed, s.surely, s.cut = false, j.elapsed, false, false, false
	case o.Kind == Check && (o.Digest != s.applied || s.writing):
	case o.Result == Waiting:
		if s.step != o.Step {
			s.step, s.stepped = o.Step, j.elapsed
		}
		s.cut = s.cut && !about
		s.failed = s.failed || about && j.elapsed-s.stepped >= timeout
	case o.Kind == Apply && o.Result == Failed:
		if about {
			s.failed, s.surely = true, !s.recovers(j.elapsed, timeout)
		}
	case o.Result == Healthy:
		if !s.healthy {
			s.healthy, s.since = true, j.elapsed
		}
		s.checked, s.failed, s.surely, s.cut = j.elapsed, false, false, false
		if unit.status == Done && about && !s.drifted {
			s.good = s.applied
		}
	case o.Result == Unhealthy, o.Result == Failed:
		if s.healthy {
			s.healthy, s.since = false, j.elapsed
		}
		s.checked, s.cut = j.elapsed, false
		s.surely = s.surely || about && o.Result == Failed && !s.recovers(j.elapsed, timeout)
		s.failed = s.failed || about && (o.Result == Failed || j.elapsed-s.since >= timeout)
	case !about:
	case o.Result == Unreachable, o.Result == Unavailable:
		s.cut = true
	case o.Result == Refused, o.Result == Deferred && s.hasTried && j.elapsed-s.tried >= timeout:
		s.failed, s.surely = true, s.surely || o.Result == Refused
	default:
		s.cut = false
	}
	j.seen[at] = s
}

// recovers says that the target was away until lately: what fails now may be ill for that.
func (s *seen) recovers(now, timeout time.Duration) bool {
	return s.returned > 0 && now < s.returned+timeout
}

// disk wants what was stored to be all of the state.
func (j *judge) disk(w *world) {
	if len(w.disk) != len(w.state.Units) {
		j.objectf("%d units on disk, %d in memory", len(w.disk), len(w.state.Units))
	}
	for path, u := range w.state.Units {
		if !bytes.Equal(w.disk[path], marshal(w.t, u)) {
			j.objectf("%s changed unnoticed:\n%s\n%s", path, w.disk[path], marshal(w.t, u))
		}
	}
}

// atRest looks at what is left when there is nothing more to do: invariants 8
// and 9.
func (j *judge) atRest(w *world) error {
	before := reload(w.t, &w.state)
	for _, state := range []*State{&w.state, &before} {
		for range 2 {
			plan := state.Decide(w.want, w.now.Add(time.Hour))
			if kept, dropped := state.Changed(); len(plan.Actions)+len(kept)+len(dropped) > 0 {
				return fmt.Errorf("at rest, but %+v, %d units changed, dropped %s\n%s", plan, len(kept), dropped, w.dump())
			}
		}
	}
	for path, u := range w.state.Units {
		if u.Rollout.Status != Done {
			continue
		}
		wanted := w.want.Units[path]
		unknown := w.want.Held != "" || u.Blocked != "" || wanted == nil
		for name := range targets {
			if w.orphans[object.UnitTarget{Unit: path, Target: name}] {
				continue
			}
			l, digest := w.live[object.UnitTarget{Unit: path, Target: name}], j.units[path].want[name]
			if l == nil || unknown && digest == "" {
				l = &live{} // or a removal that has to wait
			}
			if l.digest != digest || l.mixed || l.drifted || l.leftovers && !unknown {
				return fmt.Errorf("%s on %s is done, but %+v, want %s", path, name, *l, digest)
			}
		}
	}
	return nil
}
