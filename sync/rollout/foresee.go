// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
)

// Foresight is what [State.Foresee] saw.
type Foresight struct {
	// Courses are those of the units that something was done for.
	Courses map[config.UnitPath]*Course
	// Until is the time that it came to. Cut says that it was given up there, before all
	// was done that would be.
	Until time.Time
	Cut   bool
}

// Course is the way of a unit's rollout.
type Course struct {
	Started bool      // anew; else it goes on with the one under way
	Done    time.Time // when it was done; zero: it was not
	Legs    []Leg     // in order of time
	// Spec is the rollout that it follows.
	Spec *config.Rollout
}

// Leg is the part of a wave in a [Course].
type Leg struct {
	Wave   int
	Cleans bool // the unit leaves its targets
	// From is the first write, or when an approval was asked for; zero: there was none.
	// Passed is when the wave was passed; zero: it was not.
	From, Passed time.Time
	Targets      []config.TargetName // that were written, sorted
	Asks         []order.Ask         // approvals that it takes
}

// Foresee carries the commit out in a fleet in which all goes well: objects are accepted,
// healthy at once and stay so, gates say yes when they are asked, and who may approve a
// wave does so at once. Time goes by as fast as soaks, windows and orders let it. Masks,
// pauses and freezes hold as they are. The state is that at the end, so it must be a copy.
// It goes on until goOn says no.
func (s *State) Foresee(want *Wanted, now time.Time, goOn func() bool) Foresight {
	f := &foresight{state: s, want: want.patient(), now: instant(now), ends: instant(now).Add(horizon), Foresight: Foresight{Courses: map[config.UnitPath]*Course{}}}
	s.notices = notices{steady: true}
	s.makePatient()
	for f.step() {
		if !goOn() {
			f.Cut = true
			break
		}
	}
	f.Until = f.now
	for _, c := range f.Courses {
		for i := range c.Legs {
			slices.Sort(c.Legs[i].Targets)
		}
	}
	return f.Foresight
}

// foresight is one Foresee under way.
type foresight struct {
	Foresight
	state *State
	want  *Wanted
	now   time.Time
	ends  time.Time              // it looks no further
	asked map[object.Digest]bool // approvals that were given
}

// horizon is how far it looks: what comes later than in a year is not worth a word.
const horizon = 366 * 24 * time.Hour

// step makes one pass, and reports whether there is more to see.
func (f *foresight) step() bool {
	plan, passed := f.state.Decide(f.want, f.now), f.now
	for _, tr := range plan.Transitions {
		f.see(&tr)
	}
	for _, a := range plan.Actions {
		f.act(a)
	}
	for _, q := range plan.Questions {
		f.state.Answer(Answer{Question: q, Kind: Yes}, f.now)
	}
	approved := f.approve(plan.Transitions)
	switch {
	case approved, len(plan.Actions)+len(plan.Questions) > 0:
		return true
	case plan.Wake.IsZero(), plan.Wake.After(f.ends):
		return false
	}
	f.now = plan.Wake
	if !f.now.After(passed) { // nothing came of it
		f.now = passed.Add(time.Second)
	}
	return true
}

func (f *foresight) course(path config.UnitPath) *Course {
	if f.Courses[path] == nil {
		f.Courses[path] = &Course{Spec: &f.state.Units[path].Rollout.Spec}
	}
	return f.Courses[path]
}

// leg is that of a wave, which is made when it is not the last one.
func (c *Course) leg(wave int, cleans bool) *Leg {
	if i := slices.IndexFunc(c.Legs, func(l Leg) bool { return l.Wave == wave && l.Cleans == cleans }); i >= 0 {
		return &c.Legs[i]
	}
	c.Legs = append(c.Legs, Leg{Wave: wave, Cleans: cleans})
	return &c.Legs[len(c.Legs)-1]
}

// see takes in a transition that a pass made. The unit may have left the state by now.
func (f *foresight) see(tr *Transition) {
	u, c := f.state.Units[tr.Unit], f.Courses[tr.Unit]
	switch {
	case tr.Kind == "started" && u != nil:
		f.Courses[tr.Unit] = &Course{Started: true, Spec: &u.Rollout.Spec}
	case tr.Kind == "done" && c != nil:
		c.Done = tr.Time
	case (tr.Kind == kindPassed || tr.Kind == kindCleaned) && (c != nil || u != nil):
		c = f.course(tr.Unit)
		i := slices.IndexFunc(c.Spec.Waves, func(w config.Wave) bool { return w.Name == tr.Wave })
		c.leg(i, tr.Kind == kindCleaned).Passed = tr.Time
	}
}

// act has an action succeed.
func (f *foresight) act(a Action) {
	if a.Kind == Apply || a.Kind == Remove {
		l := f.course(a.Unit).leg(f.state.Units[a.Unit].Targets[a.Target].Wave, a.Kind == Remove)
		if l.From.IsZero() {
			l.From = f.now
		}
		if !slices.Contains(l.Targets, a.Target) {
			l.Targets = append(l.Targets, a.Target)
		}
	}
	o := Outcome{Action: a, Pruned: a.Prune, Result: Healthy}
	switch a.Kind {
	case Apply:
		o.Result = Applied
	case Remove:
		o.Result = Removed
	}
	f.state.Record(o, f.now)
}

// approve gives the approvals that waves wait for, where somebody may.
func (f *foresight) approve(seen []Transition) (given bool) {
	if f.asked != nil && !slices.ContainsFunc(seen, func(tr Transition) bool { return tr.Kind == "waiting" }) {
		return false
	}
	if f.asked == nil { // the first time, there is what waited before
		f.asked = map[object.Digest]bool{}
	}
	standing := slices.Clone(f.want.Standing)
	for _, ask := range f.state.Asks() {
		if f.asked[ask.Digest] {
			continue
		}
		f.asked[ask.Digest] = true
		u := f.state.Units[ask.Unit]
		l := f.course(ask.Unit).leg(slices.IndexFunc(u.Rollout.Spec.Waves, func(w config.Wave) bool { return w.Name == ask.Wave }), false)
		l.Asks = append(l.Asks, ask)
		if by := approver(&ask); by != "" {
			standing, given = append(standing, order.Order{Verb: order.Approve, By: by, At: f.now, Digest: ask.Digest}), true
		}
	}
	if given {
		f.want.Order(standing)
	}
	return given
}

// approver is somebody who may approve; empty for nobody.
func approver(ask *order.Ask) string {
	const anybody = "somebody who may" // no user has a name with spaces
	for _, by := range ask.By {
		if !slices.Contains(ask.Authors, by) {
			return by
		}
	}
	if len(ask.By) > 0 {
		return ""
	}
	return anybody
}

// patient is the same commit, the queries of which are asked as rarely as their soaks
// allow.
func (w *Wanted) patient() *Wanted {
	quick := *w
	specs := map[*config.Rollout]*config.Rollout{}
	for path, unit := range w.Units {
		if unit.Rollout == nil || !hasQueries(unit.Rollout) {
			continue
		}
		if len(specs) == 0 {
			quick.Units = maps.Clone(w.Units)
		}
		if specs[unit.Rollout] == nil {
			spec := patient(unit.Rollout)
			specs[unit.Rollout] = &spec
		}
		u := *unit
		u.Rollout = specs[unit.Rollout]
		quick.Units[path] = &u
	}
	quick.all = nil // what retired targets hide is hidden already
	return &quick
}

func (s *State) makePatient() {
	for _, u := range s.Units {
		if hasQueries(&u.Rollout.Spec) {
			u.Rollout.Spec = patient(&u.Rollout.Spec)
		}
	}
}

func hasQueries(spec *config.Rollout) bool {
	for i := range spec.Waves {
		if slices.ContainsFunc(spec.Waves[i].Gates, func(g config.Gate) bool { return g.Prometheus != nil }) {
			return true
		}
	}
	return false
}

func patient(spec *config.Rollout) config.Rollout {
	quick := *spec
	quick.Waves = slices.Clone(spec.Waves)
	for i := range quick.Waves {
		w := &quick.Waves[i]
		w.Gates = slices.Clone(w.Gates)
		for n := range w.Gates {
			if gate := w.Gates[n].Prometheus; gate != nil {
				rare := *gate
				rare.Every = max(gate.Every, w.Soak)
				w.Gates[n].Prometheus = &rare
			}
		}
	}
	return quick
}

// Comes says whether the commit changes something of a unit, or goes on to: its release has
// not begun, or is not done. A unit of which nothing is taken does not.
func (s *State) Comes(path config.UnitPath, w *Wanted) bool {
	u, unit := s.Units[path], w.Units[path]
	switch {
	case w.Refused() != "", unit != nil && unit.frozen() != "", unit == nil && u == nil:
		return false
	case u == nil:
		return true
	case u.InQuarantineFor(w) != "":
		return false
	case !u.Begun(w):
		return true
	}
	return u.Rollout.Status == Progressing
}

// Bundles are what the commit brings of a unit, by target.
func (w *Wanted) Bundles(path config.UnitPath) map[config.TargetName]object.Digest {
	bundles := map[config.TargetName]object.Digest{}
	if unit := w.Units[path]; unit != nil {
		for name, t := range unit.Targets {
			bundles[name] = t.Digest
		}
	}
	return bundles
}

// Places are where the commit has a bundle of a unit, by target; a target that no wave
// picks has a place without a wave.
func (w *Wanted) Places(path config.UnitPath) (places []config.Place) {
	unit := w.Units[path]
	if unit == nil || unit.frozen() != "" {
		return nil
	}
	for _, name := range unit.sorted() {
		t := unit.Targets[name]
		if t.Digest == "" {
			continue
		}
		at := config.Place{Unit: path, Tenant: unit.Tenant, Target: name, Labels: t.Labels}
		if i := unit.waveOf(unit.Rollout, name); i >= 0 {
			at.Wave = unit.Rollout.Waves[i].Name
		}
		places = append(places, at)
	}
	return places
}

// Paths are the units that there are, or that the commit has, sorted.
func (s *State) Paths(w *Wanted) []config.UnitPath {
	paths := slices.AppendSeq(slices.Collect(maps.Keys(s.Units)), maps.Keys(w.Units))
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Left says why a unit is not where the commit wants it; empty when it is.
func (s *State) Left(path config.UnitPath, w *Wanted) string {
	u, unit := s.Units[path], w.Units[path]
	switch {
	case u == nil && unit != nil:
		return cmp.Or(unit.frozen(), "its release does not begin")
	case u == nil:
		return ""
	case u.Blocked != "":
		return u.Blocked
	case u.Rollout.Status == Done && u.Rollout.Reason == "":
		return ""
	}
	return cmp.Or(u.Rollout.Reason, string(u.Rollout.Status))
}
