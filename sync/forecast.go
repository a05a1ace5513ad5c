// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Forecast is what a commit comes to do, wave by wave, if all goes well: every object is
// accepted and healthy, every gate says yes. It is made by the planner itself, on a copy of
// the state.
type Forecast struct {
	Commit config.Commit `json:"commit,omitempty"` // empty for a folder
	At     time.Time     `json:"at"`
	// Digest is of all bundles of the units that change, and of the deletions that wait
	// for approval: who approves it approves these and no others.
	Digest  object.Digest `json:"digest"`
	Authors []string      `json:"authors,omitempty"` // who do not approve it
	Refused string        `json:"refused,omitempty"` // why nothing is taken from it
	// Taken says that it is the commit that the daemon is at work on.
	Taken     bool               `json:"taken"`
	Units     []UnitForecast     `json:"units"` // in the order in which they are done
	Stays     []Staying          `json:"stays,omitempty"`
	Deletions []DeletionForecast `json:"deletions,omitempty"` // that wait for approval
	// LeftOut are the files in the folders of Units that nothing comes of.
	LeftOut []config.LeftOut `json:"leftOut,omitempty"`
	// Cut says that only the beginning was worked out, up to a time.
	Cut   bool      `json:"cut,omitempty"`
	Until time.Time `json:"until,omitzero"`
}

// UnitForecast is what becomes of a unit.
type UnitForecast struct {
	Unit    config.UnitPath `json:"unit"`
	Goes    Going           `json:"goes"`
	Tier    string          `json:"tier,omitempty"`
	Rollout string          `json:"rollout,omitempty"`
	// Withheld says what has to be approved before anything of it is written.
	Withheld string         `json:"withheld,omitempty"`
	Waves    []WaveForecast `json:"waves"`
	Done     time.Time      `json:"done,omitzero"`  // zero: it does not come to an end
	Left     string         `json:"left,omitempty"` // what it waits for in the end
}

// Going is how a unit takes part.
type Going string

const (
	Starts Going = "starts"
	GoesOn Going = "goes on" // with the release under way
	Leaves Going = "leaves"  // the unit is removed
)

// WaveForecast is what becomes of a wave of a unit.
type WaveForecast struct {
	Wave   string `json:"wave"`
	Cleans bool   `json:"cleans,omitempty"` // the unit leaves the targets
	// Targets are written from then on; Passed is the earliest end.
	Targets []config.TargetName `json:"targets,omitempty"`
	From    time.Time           `json:"from,omitzero"`
	Passed  time.Time           `json:"passed,omitzero"`
	Soak    string              `json:"soak,omitempty"`
	Gates   []GateForecast      `json:"gates,omitempty"`
	// Holds keep targets from being written now.
	Holds []rollout.Hold `json:"holds,omitempty"`
	// Silent are targets that do not answer now.
	Silent []config.TargetName `json:"silent,omitempty"`
}

// GateForecast is a gate that a wave comes to.
type GateForecast struct {
	Gate string `json:"gate"`
	At   string `json:"at"` // "start" or "end"
	// Digest is what is to be approved, By who may, all operators where it is empty, and
	// Not who may not.
	Digest object.Digest `json:"digest,omitempty"`
	By     []string      `json:"by,omitempty"`
	Not    []string      `json:"not,omitempty"`
	Text   string        `json:"text,omitempty"` // what it asks
	Ask    order.Ask     `json:"-"`              // of an approval
}

// Staying is a unit that stays as it is.
type Staying struct {
	Unit config.UnitPath `json:"unit"`
	Why  string          `json:"why"`
}

// DeletionForecast is deletions that wait for approval together.
type DeletionForecast struct {
	Digest    object.Digest    `json:"digest"`
	Unit      config.UnitPath  `json:"unit,omitempty"` // empty: of the whole fleet
	Deletions []store.Deletion `json:"deletions"`
}

// Approvals are the asks that the forecast names, each once.
func (f *Forecast) Approvals() (gates []GateForecast) {
	for _, u := range f.Units {
		for _, w := range u.Waves {
			for _, g := range w.Gates {
				if g.Digest != "" {
					gates = append(gates, g)
				}
			}
		}
	}
	return gates
}

// forecast is a Forecast under way.
type forecast struct {
	Forecast
	prospect
	now   time.Time
	plans []store.Plan
	// withheld are the units that wait for the approval of deletions.
	withheld map[config.UnitPath]string
	look     *rollout.Look
	comes    []config.UnitPath
	leaving  map[config.UnitPath][]config.Place // that units come to leave
	// concerns says which units the forecast tells of; nil: all.
	concerns func(config.UnitPath) bool
}

// foreseeFor is how long a forecast may take; what is beyond is left out.
const foreseeFor = 20 * time.Second

// run works the forecast out. The state is that at the end afterwards.
func (f *forecast) run(goOn func() bool) {
	w := f.wanted
	f.At, f.Authors, f.Units = f.now.UTC(), w.Authors, []UnitForecast{}
	if f.Refused = w.Refused(); f.Refused != "" {
		f.Digest = f.digest()
		return
	}
	f.look = f.state.Look(w.Bounds, w.Standing, f.now)
	silent := map[object.UnitTarget]bool{}
	f.leaving = map[config.UnitPath][]config.Place{}
	for _, path := range f.state.Paths(w) {
		if !f.tellsOf(path) || !f.state.Comes(path, w) {
			continue
		}
		f.comes = append(f.comes, path)
		u := f.state.Units[path]
		if u == nil {
			continue
		}
		for name, t := range u.Targets {
			silent[object.UnitTarget{Unit: path, Target: name}] = t.Trouble == rollout.TroubleUnreachable
			if w.FateOf(u, name) == rollout.Cleaned {
				f.leaving[path] = append(f.leaving[path], u.Place(name))
			}
		}
	}
	for _, p := range f.plans {
		f.Deletions = append(f.Deletions, DeletionForecast{p.Digest, p.Unit, p.Deletions})
	}
	f.Digest = f.digest()
	ahead := f.state.Foresee(w, f.now, goOn)
	if f.Cut = ahead.Cut; f.Cut {
		f.Until = ahead.Until
	}
	for _, path := range f.comes {
		f.Units = append(f.Units, f.unit(path, ahead.Courses[path], silent))
		if unit := f.snapshot.Units.Get(path); unit != nil {
			f.LeftOut = append(f.LeftOut, unit.LeftOut()...)
		}
	}
	for _, path := range f.state.Paths(w) {
		if _, comes := slices.BinarySearch(f.comes, path); comes || !f.tellsOf(path) || ahead.Cut && w.WhyFrozen(path) == "" {
			continue
		}
		if why := f.state.Left(path, w); why != "" {
			f.Stays = append(f.Stays, Staying{path, why})
		}
	}
	slices.SortStableFunc(f.Units, func(a, b UnitForecast) int { return first(&a).Compare(first(&b)) })
}

func (f *forecast) tellsOf(path config.UnitPath) bool { return f.concerns == nil || f.concerns(path) }

// first is when a unit is first written; those that never are come last.
func first(u *UnitForecast) time.Time {
	for i := range u.Waves {
		if from := u.Waves[i].From; !from.IsZero() {
			return from
		}
	}
	return time.Unix(1<<40, 0)
}

// digest is of what comes: the same commit has the same until one of its units is done, or
// something else is to be deleted.
func (f *forecast) digest() object.Digest {
	sum := sha256.New()
	part := func(texts ...string) {
		for _, text := range texts {
			fmt.Fprintf(sum, "%d %s\n", len(text), text)
		}
	}
	part("refused", f.Refused)
	for _, path := range f.comes {
		bundles := f.wanted.Bundles(path)
		part("unit", string(path))
		for _, name := range slices.Sorted(maps.Keys(bundles)) {
			part(string(name), string(bundles[name]))
		}
	}
	for _, d := range f.Deletions {
		part("deletions", string(d.Digest))
	}
	return object.Digest(hex.EncodeToString(sum.Sum(nil)))
}

// unit is what becomes of one that changes.
func (f *forecast) unit(path config.UnitPath, c *rollout.Course, silent map[object.UnitTarget]bool) UnitForecast {
	if c == nil {
		c = &rollout.Course{}
	}
	u := UnitForecast{Unit: path, Goes: GoesOn, Withheld: f.withheld[path], Waves: []WaveForecast{}, Done: c.Done, Left: f.state.Left(path, f.wanted)}
	if c.Started {
		u.Goes = Starts
	}
	spec, unit := c.Spec, f.wanted.Units[path]
	if unit == nil {
		u.Goes = Leaves
	} else if tiers := f.wanted.Bounds.Release.Tiers; unit.Tier < len(tiers) {
		u.Tier = tiers[unit.Tier]
	}
	switch {
	case spec != nil:
	case unit != nil:
		spec = unit.Rollout
	default:
		spec = &config.Rollout{}
	}
	u.Rollout = spec.Name
	if f.Cut { // it would go on
		u.Left = ""
	}
	for _, l := range c.Legs {
		w := WaveForecast{Cleans: l.Cleans, Targets: l.Targets, From: l.From, Passed: l.Passed, Wave: fmt.Sprint(l.Wave + 1)}
		if l.Wave >= 0 && l.Wave < len(spec.Waves) {
			describeWave(&w, &spec.Waves[l.Wave], l.Asks)
		}
		for _, name := range l.Targets {
			if silent[object.UnitTarget{Unit: path, Target: name}] {
				w.Silent = append(w.Silent, name)
			}
		}
		u.Waves = append(u.Waves, w)
	}
	f.hold(&u, spec)
	return u
}

func describeWave(w *WaveForecast, spec *config.Wave, asks []order.Ask) {
	w.Wave = spec.Name
	if w.Cleans {
		return
	}
	if spec.Soak > 0 {
		w.Soak = spec.Soak.String()
	}
	asks = slices.Clone(asks)
	for n := range spec.Gates {
		gate := &spec.Gates[n]
		g := GateForecast{Gate: gate.Word(), At: "end", Text: gateText(gate)}
		if gate.AtStart() {
			g.At = "start"
		}
		if gate.Approval != nil {
			i := slices.IndexFunc(asks, func(ask order.Ask) bool { return slices.Equal(ask.By, gate.Approval.By) })
			if i < 0 {
				continue // approved already, or nothing comes to it
			}
			g.Ask, g.Digest, g.By, g.Not = asks[i], asks[i].Digest, asks[i].By, asks[i].Authors
			asks = slices.Delete(asks, i, i+1)
		}
		w.Gates = append(w.Gates, g)
	}
}

// gateText is what a gate asks.
func gateText(g *config.Gate) string {
	switch {
	case g.Window != nil:
		return fmt.Sprintf("%s for %s", g.Window.Schedule, g.Window.Duration)
	case g.After != nil:
		return "after " + string(g.After.Unit)
	case g.HTTP != nil:
		return g.HTTP.Endpoint + g.HTTP.Path
	case g.Prometheus != nil:
		return g.Prometheus.Endpoint + ": " + g.Prometheus.Query
	case g.Job != nil:
		return "Job " + g.Job.Name
	}
	return ""
}

// hold adds what keeps the targets of a unit from being written now, and from being cleaned.
func (f *forecast) hold(u *UnitForecast, spec *config.Rollout) {
	for _, at := range f.wanted.Places(u.Unit) {
		is := f.state.Units[u.Unit]
		if is == nil || is.Targets[at.Target] == nil || at.Wave == "" {
			continue
		}
		i := u.wave(at.Wave, false)
		written := i >= 0 && slices.Contains(u.Waves[i].Targets, at.Target)
		if written || !is.Targets[at.Target].Holds(f.wanted.Units[u.Unit].Targets[at.Target].Digest) {
			u.hold(at, false, f.look.HoldOn(at, false))
		}
	}
	for _, left := range f.leaving[u.Unit] {
		u.hold(left, true, f.look.HoldOn(left, false))
	}
	number := func(w WaveForecast) int {
		n := slices.IndexFunc(spec.Waves, func(is config.Wave) bool { return is.Name == w.Wave })
		if w.Cleans {
			n += len(spec.Waves)
		}
		return n
	}
	slices.SortStableFunc(u.Waves, func(a, b WaveForecast) int { return number(a) - number(b) })
}

// hold adds what keeps a target from being written, or cleaned.
func (u *UnitForecast) hold(held config.Place, cleans bool, h rollout.Hold) {
	if h.Kind == "" {
		return
	}
	i := u.wave(held.Wave, cleans)
	if i < 0 {
		u.Waves = append(u.Waves, WaveForecast{Wave: held.Wave, Cleans: cleans})
		i = len(u.Waves) - 1
	}
	u.Waves[i].Holds = rollout.AddHold(u.Waves[i].Holds, h, held.Target)
}

// wave is the place of a wave among those of the unit; -1 where it is none of them.
func (u *UnitForecast) wave(name string, cleans bool) int {
	return slices.IndexFunc(u.Waves, func(w WaveForecast) bool { return w.Wave == name && w.Cleans == cleans })
}
