// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
)

// Live returns how the fleet differs from one that has all of the newest commit. It belongs to the
// pass, as [Options.Observe] does.
func (d *Daemon) Live() (rollout.Now, error) {
	fleet, err := d.state.Now(slices.Clone(d.orders.standing))
	fleet.Clusters = append([]string{}, d.fleet.Names()...)
	for _, unit := range d.monorepo.broken {
		if d.state.Units[unit.Path] == nil {
			fleet.Unreleased = append(fleet.Unreleased, unit.Path)
		}
	}
	slices.Sort(fleet.Unreleased)
	return fleet, err
}

// standings are how the units that the change affects are now, where that is not as the base wants
// them. It is asked before the release is foreseen, which changes them.
func (p *preview) standings(w *rollout.Wanted, now time.Time) map[config.UnitPath]diff.Now {
	state := &rollout.State{Units: p.live}
	look := state.Look(w.Bounds, w.Standing, now)
	found := map[config.UnitPath]diff.Now{}
	for path, u := range p.live {
		unit := status.Of(u, status.Known{Look: look})
		if p.quarantined(path) != "" {
			unit.Status = status.Quarantined
		}
		if !p.concerned[path] || unit.Status == status.Done {
			continue
		}
		found[path] = diff.Now{Unit: path, Status: string(unit.Status), Text: sentences(standingText(&unit), p.behind(u))}
	}
	return found
}

// standingText says why a unit is not as it should be, for everybody who sees a pull request: without the
// daemon's own addresses and paths, and without how far a release is, which changes all the time.
func standingText(unit *status.Unit) string {
	switch unit.Status {
	case status.Progressing:
		return fmt.Sprintf("the release of %s is under way", unit.Commit.Short())
	case status.Unreachable, status.Unavailable:
		var names []config.TargetName
		for i := range unit.Targets {
			if t := &unit.Targets[i]; t.Status == unit.Status {
				names = append(names, t.Target)
			}
		}
		return fmt.Sprintf("%s: swell status says why", diff.Targets(names, fewTargets))
	}
	return unit.Reason
}

// behind says how many targets do not have what the base wants of the unit.
func (p *preview) behind(u *rollout.Unit) string {
	wanted := p.baseWanted.Units[u.Path]
	if wanted == nil {
		return ""
	}
	missing := 0
	for name, target := range wanted.Targets {
		if t := u.Targets[name]; target.Digest != "" && (t == nil || t.Applied != target.Digest) {
			missing++
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s do not have what the base brought: a release brings that, too",
		missing, document.Count(len(wanted.Targets), "target"))
}

// sentences are texts one after the other, those that are empty left out.
func sentences(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), ". ")
}

// tellNow says how units are now and what the release does there, as it was foreseen: those that the
// report names, and those that are blocked until the next commit.
func (p *preview) tellNow(report *diff.Report, found map[config.UnitPath]diff.Now, f *Forecast) (lines []diff.Now) {
	forecasts := map[config.UnitPath]*UnitForecast{}
	for i := range f.Units {
		u := &f.Units[i]
		forecasts[u.Unit] = u
		if line := heldNow(u); found[u.Unit].Status == "" && line.Status != "" {
			found[u.Unit] = line
		}
	}
	named := map[config.UnitPath]bool{}
	for _, path := range report.Units() {
		named[path] = true
	}
	for _, path := range report.Unknown {
		delete(named, path)
	}
	for _, path := range slices.Sorted(maps.Keys(found)) {
		line, released := found[path], forecasts[path] != nil && forecasts[path].Goes == Starts
		if !named[path] && !(released && line.Status == string(status.Blocked)) {
			continue
		}
		line.Text = sentences(line.Text, p.then(path, forecasts[path], f.At))
		lines = append(lines, line)
	}
	return lines
}

// heldWords say how units are that a mask or an order holds.
var heldWords = map[rollout.HoldKind]string{rollout.HeldByMask: "masked", rollout.HeldByPause: "paused", rollout.HeldByFreeze: "frozen"}

// heldNow says what keeps a release from targets of a unit now; the zero value for nothing.
func heldNow(u *UnitForecast) diff.Now {
	var hold rollout.Hold
	var targets []config.TargetName
	for i := range u.Waves {
		for _, h := range u.Waves[i].Holds {
			if hold.Kind == "" && heldWords[h.Kind] != "" {
				hold = h
			}
			if h.Kind == hold.Kind && h.Text == hold.Text {
				targets = append(targets, h.Targets...)
			}
		}
	}
	if hold.Kind == "" {
		return diff.Now{}
	}
	return diff.Now{Unit: u.Unit, Status: heldWords[hold.Kind], Text: hold.Text + " (" + diff.Targets(targets, fewTargets) + ")"}
}

// fewTargets is how many targets a line names.
const fewTargets = 5

// then says what a merge does to a unit. u is nil where it does nothing.
func (p *preview) then(path config.UnitPath, u *UnitForecast, now time.Time) string {
	writes := func(w WaveForecast) bool { return !w.From.IsZero() }
	switch why := p.quarantined(path); {
	case why != "":
		return "A merge releases nothing of it: " + why
	case u == nil:
		return "A merge releases nothing of it"
	case u.Goes == GoesOn:
		return "A merge begins no other release of it"
	case !slices.ContainsFunc(u.Waves, writes):
		return "A merge begins a release of it, which writes nothing before that is over"
	case u.Goes == Leaves:
		return "A merge begins to remove it"
	case first(u).After(now.Add(time.Minute)):
		return "A merge begins a release of it, which writes nothing before " + first(u).UTC().Format("Jan 2 15:04 MST")
	}
	return "A merge begins a release of it, from the first wave"
}
