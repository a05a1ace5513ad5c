// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package announce tells the forge how the releases of a commit get on: a commit status for
// each wave, and a comment on the pull request that was merged when its release failed. It
// decides nothing, and nothing that it does holds up a pass.
//
// # What is stored
//
// A folder with a file for each commit, COMMIT.json: what was told of it, see told. It may be
// deleted at any time; then what is under way is told once more.
package announce

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/rollout"
)

// Progress is how the releases of a commit stand. Its texts stay the same while nothing
// happens, so that they are told once.
type Progress struct {
	Commit config.Commit
	Waves  []Wave // in the order of rollouts
	Failed []Failure
	Over   bool // nothing of it is under way any more
}

// Wave is how a wave stands, over all units that the commit releases through one of its name.
type Wave struct {
	Name  string
	State forge.State
	Text  string
	// Count says how many of its units passed, or failed; empty where that is clear.
	Count string
}

// Failure is a unit whose release failed.
type Failure struct {
	Unit   config.UnitPath
	Wave   string
	Status rollout.Status
	Reason string // words of clusters among them
}

// maxWaves is how many waves of a commit are told of: each is a status.
const maxWaves = 10

// tally is what is known of a wave.
type tally struct {
	name                 string
	order                int
	units, passed, begun int
	removed              int // units that are still to leave targets of it
	failed               []Failure
	notReached           int
	soaks                time.Time // when the last soak under way ends
	approval             bool      // a gate waits for somebody
}

// Of is how the releases of commits stand: of those in known, and of those of which anything
// is under way. Only commits in known are Over.
func Of(state *rollout.State, known map[config.Commit]bool, now time.Time) map[config.Commit]*Progress {
	open := map[config.Commit]bool{}
	maps.Copy(open, known)
	for _, u := range state.Units {
		if r := u.Rollout; r.Status != rollout.Done && r.Commit != "" {
			open[r.Commit] = true
		}
	}
	by := map[config.Commit][]*rollout.Unit{}
	for _, u := range state.Units {
		if commit := u.Rollout.Commit; open[commit] {
			by[commit] = append(by[commit], u)
		}
	}
	all := map[config.Commit]*Progress{}
	for commit := range known {
		all[commit] = &Progress{Commit: commit, Over: true}
	}
	look := state.Look(rollout.Bounds{}, nil, now)
	for commit, units := range by {
		slices.SortFunc(units, func(a, b *rollout.Unit) int { return cmp.Compare(a.Path, b.Path) })
		all[commit] = progressOf(commit, units, look)
	}
	return all
}

func progressOf(commit config.Commit, units []*rollout.Unit, look *rollout.Look) *Progress {
	p := &Progress{Commit: commit, Over: true}
	waves := map[string]*tally{}
	for _, u := range units {
		if u.Rollout.Status == rollout.Progressing || u.Rollout.Status == rollout.RollingBack {
			p.Over = false
		}
		if f, failed := failureOf(u); failed {
			p.Failed = append(p.Failed, f)
		}
		looks := look.Waves(u)
		for i := range looks {
			w := &looks[i]
			if len(w.Targets) == 0 {
				continue
			}
			t := waves[w.Name]
			if t == nil {
				t = &tally{name: w.Name}
				waves[w.Name] = t
			}
			t.order = max(t.order, i)
			t.add(u, w)
		}
	}
	var sorted []*tally
	for _, t := range waves {
		sorted = append(sorted, t)
	}
	slices.SortFunc(sorted, func(a, b *tally) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.name, b.name)) })
	for _, t := range sorted[:min(len(sorted), maxWaves)] {
		p.Waves = append(p.Waves, t.wave())
	}
	return p
}

func failureOf(u *rollout.Unit) (Failure, bool) {
	r := u.Rollout
	switch r.Status {
	case rollout.Held, rollout.RollingBack, rollout.RolledBack:
		f := Failure{Unit: u.Path, Status: r.Status, Reason: cmp.Or(r.Failure, r.Reason)}
		if r.Wave < len(r.Spec.Waves) {
			f.Wave = r.Spec.Waves[r.Wave].Name
			f.Reason = strings.TrimPrefix(strings.TrimPrefix(f.Reason, "wave "+f.Wave+": "), "target ")
		}
		return f, true
	}
	return Failure{}, false
}

// add counts a unit.
func (t *tally) add(u *rollout.Unit, w *rollout.WaveLook) {
	t.units++
	switch w.Phase {
	case rollout.PhasePassed, rollout.PhaseCleaning, rollout.PhaseToClean:
		if leaves(u, w) {
			t.removed++
		} else {
			t.passed++
		}
	case rollout.PhaseNotReached:
		t.notReached++
	case rollout.PhaseHeld, rollout.PhaseGoesBack, rollout.PhaseBack:
		if f, failed := failureOf(u); failed && f.Wave == w.Name {
			t.failed = append(t.failed, f)
		} else {
			t.notReached++ // it was passed, and is put back with the rest
		}
	case rollout.PhaseUnderWay:
		t.begun++
		if w.SoakEnds.After(t.soaks) {
			t.soaks = w.SoakEnds
		}
		for _, g := range w.GateLook {
			t.approval = t.approval || g.State == rollout.GateWaits && g.Digest != ""
		}
	}
}

// leaves says that the unit is still to leave a target of the wave.
func leaves(u *rollout.Unit, w *rollout.WaveLook) bool {
	return slices.ContainsFunc(w.Targets, func(name config.TargetName) bool { return u.Targets[name].Wanted == "" })
}

// Texts of waves that are under way. They stay the same until something else is the case.
const (
	turnText     = "its turn has not come"
	approvalText = "waits for an approval"
	removesText  = "removes what is not wanted any more"
)

// wave puts it into words.
func (t *tally) wave() Wave {
	w := Wave{Name: t.name, State: forge.Pending}
	of := ""
	if t.units > 1 {
		of = fmt.Sprintf("%d of %d units passed", t.passed, t.units)
	}
	switch {
	case len(t.failed) > 0:
		f := t.failed[0]
		w.State = forge.Failure
		w.Text = fmt.Sprintf("%s: %s", f.Status, f.Reason)
		if t.units > 1 {
			w.Text, w.Count = fmt.Sprintf("%s %s", f.Unit, w.Text), fmt.Sprintf("%d of %d units failed", len(t.failed), t.units)
		}
	case t.passed == t.units:
		w.State, w.Text = forge.Success, "passed: "+document.Count(t.units, "unit")
	case t.removed > 0 && t.passed+t.removed == t.units:
		w.Text, w.Count = removesText, of
	case t.begun == 0 && t.notReached > 0 && t.passed+t.notReached == t.units:
		w.State, w.Text, w.Count = forge.Failure, "not reached", of
	case t.approval:
		w.Text, w.Count = approvalText, of
	case !t.soaks.IsZero():
		w.Text, w.Count = "soaks until "+t.soaks.UTC().Format("Jan 2 15:04 MST"), of
	case t.begun+t.passed > 0:
		w.Text, w.Count = "under way", of
	default:
		w.Text = turnText
	}
	return w
}
