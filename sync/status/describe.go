// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// Description is all that there is to say of a unit's rollout.
type Description struct {
	UnderWay
	Rollout Rollout  `json:"rollout"`
	Authors []string `json:"authors,omitempty"` // of what it brings
	// Blocked says why the newest commit is not released, and Deletions what waits for
	// approval.
	Blocked   string `json:"blocked,omitempty"`
	Deletions string `json:"deletions,omitempty"`
	WaveList  []Wave `json:"waveList"` // in order
	// Unpicked are the targets that no wave picks.
	Unpicked   []Target            `json:"unpicked,omitempty"`
	Debts      []Debt              `json:"debts,omitempty"`
	Quarantine []QuarantinedBundle `json:"quarantine,omitempty"`
	// Past are the rollouts that the unit can be put back to, the newest first.
	Past     []rollout.InPast `json:"past,omitempty"`
	Drift    []Drift          `json:"drift,omitempty"`
	Orders   order.Standing   `json:"orders,omitempty"` // in force, about the unit
	Commands []Command        `json:"commands,omitempty"`
	// Now is when this was so.
	Now time.Time `json:"now"`
}

// Wave is a wave of a rollout.
type Wave struct {
	Name    string             `json:"name"`
	Phase   rollout.Phase      `json:"phase"`
	Targets []Target           `json:"targets"` // by name
	Soak    *Soak              `json:"soak,omitempty"`
	Gates   []rollout.GateLook `json:"gates,omitempty"`
	Holds   []rollout.Hold     `json:"holds,omitempty"`
	Waits   string             `json:"waits,omitempty"` // what it waits for
	// Commands are what an operator can do about that.
	Commands []Command `json:"commands,omitempty"`
}

// Soak is how long a wave has to stay healthy.
type Soak struct {
	For  string    `json:"for"`           // like "10m0s"
	From time.Time `json:"from,omitzero"` // since when it soaks; zero when it does not
	Ends time.Time `json:"ends,omitzero"` // if nothing happens
}

// Debt is a target that a wave goes on without.
type Debt struct {
	Target config.TargetName `json:"target"`
	Why    string            `json:"why"`
	// Misses is the commit that it does not have, and Has the one that it has.
	Misses config.Commit `json:"misses,omitempty"`
	Has    config.Commit `json:"has,omitempty"`
	Since  time.Time     `json:"since,omitzero"`
}

// Command is what an operator can type.
type Command struct {
	Command string `json:"command"`
	Does    string `json:"does"`
}

// Describe describes a unit's rollout, by facts of which Look is not nil.
func Describe(u *rollout.Unit, known Known, standing order.Standing, now time.Time) Description {
	is, look := Of(u, known), known.Look
	d := Description{UnderWay: UnderWayOf(u, &is), Rollout: is.Rollout, Authors: u.Rollout.Authors, Blocked: u.Blocked, Deletions: u.Waiting, WaveList: []Wave{},
		Quarantine: is.Quarantine, Drift: is.Drift, Now: now.UTC()}
	if u.Pending != nil {
		d.Authors = u.Pending.Authors
	}
	on := map[config.TargetName]Target{}
	for _, t := range is.Targets {
		on[t.Target] = t
	}
	looks := look.Waves(u)
	for i := range looks {
		d.WaveList = append(d.WaveList, waveOf(u, &looks[i], i, looks, on))
	}
	for _, name := range u.Unpicked() {
		d.Unpicked = append(d.Unpicked, on[name])
	}
	d.Debts = debtsOf(u, look)
	d.Past = u.BackTo()
	for i := range standing {
		if o := &standing[i]; !o.Over(now) && o.Verb.EndVerb() != "" && concerns(o, u) {
			d.Orders = append(d.Orders, *o)
		}
	}
	d.Commands = commandsOf(u)
	return d
}

func concerns(o *order.Order, u *rollout.Unit) bool {
	for name := range u.Targets {
		if o.Scope.Has(u.Place(name)) {
			return true
		}
	}
	return false
}

func waveOf(u *rollout.Unit, look *rollout.WaveLook, i int, all []rollout.WaveLook, on map[config.TargetName]Target) Wave {
	w := Wave{Name: look.Name, Phase: look.Phase, Targets: []Target{}, Gates: look.GateLook, Holds: look.Holds}
	for _, name := range look.Targets {
		w.Targets = append(w.Targets, on[name])
	}
	if look.Soak > 0 {
		w.Soak = &Soak{For: look.Soak.String(), From: look.SoakFrom, Ends: look.SoakEnds}
	}
	w.Waits = waits(u, look, i, all)
	w.Commands = waveCommands(u, look)
	return w
}

// waits is what a wave waits for; empty when it is over. That of the wave under way is in
// the planner's words.
func waits(u *rollout.Unit, look *rollout.WaveLook, i int, all []rollout.WaveLook) string {
	r := u.Rollout
	switch look.Phase {
	case rollout.PhaseAhead:
		return fmt.Sprintf("wave %s is not passed yet", all[i-1].Name)
	case rollout.PhaseToClean:
		return fmt.Sprintf("wave %s is not cleaned yet", u.Rollout.Spec.Waves[u.Rollout.Wave].Name)
	case rollout.PhaseUnderWay, rollout.PhaseCleaning:
		for _, before := range []string{"cleaning wave ", "wave "} {
			if text, is := strings.CutPrefix(r.Reason, before+look.Name+": "); is {
				return text
			}
		}
		return r.Reason // of an earlier wave that came to life again
	case rollout.PhaseHeld, rollout.PhaseGoesBack, rollout.PhaseBack:
		if i == r.Wave {
			return strings.TrimPrefix(cmp.Or(r.Reason, r.Failure), "wave "+look.Name+": ")
		}
	}
	return ""
}

// waveCommands are what an operator can do about what a wave waits for.
func waveCommands(u *rollout.Unit, look *rollout.WaveLook) (all []Command) {
	add := func(does, format string, args ...any) {
		c := Command{fmt.Sprintf(format, args...), does}
		if !slices.ContainsFunc(all, func(is Command) bool { return is.Command == c.Command }) {
			all = append(all, c)
		}
	}
	for _, h := range look.Holds {
		if h.Order != nil {
			add("ends the "+string(h.Order.Verb), "%s", h.Order.EndCommand())
			if h.Order.Verb == order.Freeze {
				add("starts it all the same", "%s --for 2h --reason TEXT", order.Command("exempt", u.Path))
			}
		}
	}
	if look.Phase != rollout.PhaseUnderWay {
		return all
	}
	gates, reason, trouble := false, "", len(look.Failed) > 0
	for _, g := range look.GateLook {
		switch {
		case g.State == rollout.GateWaits && g.Digest != "":
			add("approves the start of the wave", "swell approve %s", g.Digest.Short())
		case g.State == rollout.GateWaits:
			gates, reason = true, " --reason TEXT"
		}
	}
	broken := slices.ContainsFunc(look.Holds, func(h rollout.Hold) bool { return h.Kind == rollout.HeldByBreaker })
	switch {
	case broken:
		add("releases it although other units failed on the commit", "%s", order.Command("promote", u.Path))
	case look.Unproved:
		add("goes on without these targets", "%s", order.Command("promote", u.Path))
	case !look.SoakEnds.IsZero():
		add("ends the soak and the gates of the wave", "%s%s", order.Command("promote", u.Path), reason)
	case gates:
		add("goes on whatever the gates say", "%s%s", order.Command("promote", u.Path), reason)
	}
	if trouble {
		add("tries what failed or waits again now", "%s", order.Command("retry", u.Path))
	}
	return all
}

// commandsOf are what an operator can do about the unit as a whole.
func commandsOf(u *rollout.Unit) (all []Command) {
	switch {
	case u.BlockedBy == rollout.ObstacleTurn:
		all = append(all, Command{order.Command("promote", u.Path), "releases it before its turn"})
	case u.BlockedBy == rollout.ObstacleQuarantine:
		all = append(all, Command{order.Command("quarantine clear", u.Path), "lets the bundles that failed be released again"})
	}
	if u.Waiting != "" {
		all = append(all, Command{"swell approve", "lists the deletions that wait"})
	}
	if u.Rollout.Status == rollout.Held && u.CanGoBack() {
		all = append(all, Command{order.Command("rollback", u.Path) + " --reason TEXT", "puts back what ran before"})
	}
	switch u.Rollout.Status {
	case rollout.Held, rollout.RolledBack, rollout.RollingBack:
		all = append(all, Command{order.Command("retry", u.Path), "begins the release again at its first wave"})
	}
	return all
}

// debtsOf are the targets that waves go on without.
func debtsOf(u *rollout.Unit, look *rollout.Look) (debts []Debt) {
	for _, name := range slices.Sorted(maps.Keys(u.Targets)) {
		t := u.Targets[name]
		if t.Holds(t.Wanted) || t.Wanted == "" && t.Applied == "" && !t.Dirty {
			continue
		}
		d := Debt{Target: name, Misses: u.Commits[t.Wanted], Has: u.Commits[t.Applied]}
		switch hold := look.HoldAt(u, name, false); {
		case t.Masked != "" && t.Applied == t.Wanted && !t.Dirty:
			continue // it has the release, and was not healthy with it: its wave says so
		case t.Masked != "":
			d.Why = t.Masked
			if hold.Order != nil {
				d.Since = hold.Order.At
			}
		case t.Excused:
			d.Why, d.Since = "it does not answer: "+t.Reason, t.BlindSince
		case t.Owes && t.Wanted != "": // a unit that leaves owes nothing
			d.Why = cmp.Or(t.Reason, "its wave was passed without it")
		default:
			continue
		}
		debts = append(debts, d)
	}
	return debts
}
