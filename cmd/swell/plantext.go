// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// planWriter writes a forecast for people.
type planWriter struct {
	f     *sync.Forecast
	all   bool
	brief bool // without digests and times of day: of a fleet that nobody knows
	width int
	// indent is that of all lines.
	indent int
	text   strings.Builder
}

func (w *planWriter) write(out io.Writer) error {
	f := w.f
	if !w.brief {
		w.head()
	}
	if f.Refused == "" {
		for _, g := range courses(f.Units, w.all) {
			w.course(g)
		}
		if !w.brief {
			w.stays()
			w.leftOut()
			w.deletions()
			w.commands()
		}
	}
	_, err := io.WriteString(out, w.text.String())
	return err
}

func (w *planWriter) line(indent int, format string, args ...any) {
	text := visible(fmt.Sprintf(format, args...))
	indent += w.indent
	for i, part := range fold(text, w.width-indent-2) {
		if i == 1 {
			indent += 2
		}
		w.text.WriteString(strings.Repeat(" ", indent) + part + "\n")
	}
}

func (w *planWriter) head() {
	f, by := w.f, ""
	if len(f.Authors) > 0 {
		by = " by " + strings.Join(f.Authors, ", ")
	}
	w.line(0, "plan %s of commit %s%s", f.Digest.Short(), f.Commit.Short(), by)
	switch {
	case f.Refused != "":
		w.line(0, "nothing is taken from it: %s", f.Refused)
	case len(f.Units) == 0:
		w.line(0, "nothing would change")
	}
	if f.Cut {
		w.line(0, "only the beginning was worked out, up to %s", fullTime(f.Until))
	}
}

// courseGroup is units that go the same way, at about the same times.
type courseGroup struct {
	first *sync.UnitForecast
	times []time.Time // of the first
	units []config.UnitPath
}

// sameTime is within how much units go at the same time: the cells of one release do not become
// healthy at the same moment. The times of the first of them are shown.
const sameTime = time.Minute

// courses are units by their way, in the order of the first of each.
func courses(units []sync.UnitForecast, each bool) (all []*courseGroup) {
	groups := map[string][]*courseGroup{} // by the way that they go
	for i := range units {
		u := &units[i]
		way, times := wayOf(u)
		known := slices.IndexFunc(groups[way], func(g *courseGroup) bool { return slices.EqualFunc(g.times, times, near) })
		if each || known < 0 {
			g := &courseGroup{u, times, []config.UnitPath{u.Unit}}
			groups[way], all = append(groups[way], g), append(all, g)
			continue
		}
		same := groups[way][known]
		same.units = append(same.units, u.Unit)
	}
	return all
}

func near(a, b time.Time) bool { return a.IsZero() == b.IsZero() && a.Sub(b).Abs() < sameTime }

// wayOf is the way that a unit goes: all that the forecast says of it but names, digests and
// times; and these times.
func wayOf(u *sync.UnitForecast) (way string, times []time.Time) {
	plain := *u
	plain.Unit = ""
	plain.Left = strings.ReplaceAll(u.Left, string(u.Unit), "")
	take := func(t *time.Time) {
		times = append(times, *t)
		*t = time.Time{}
	}
	take(&plain.Done)
	plain.Waves = slices.Clone(u.Waves)
	for i := range plain.Waves {
		v := &plain.Waves[i]
		take(&v.From)
		take(&v.Passed)
		v.Gates = slices.Clone(v.Gates)
		for n := range v.Gates {
			v.Gates[n].Digest = ""
		}
	}
	key, err := json.Marshal(plain)
	if err != nil {
		return string(u.Unit), times // it is alone
	}
	return string(key), times
}

func (w *planWriter) course(g *courseGroup) {
	u := g.first
	names := make([]string, len(g.units))
	for i, path := range g.units {
		names[i] = string(path)
	}
	slices.Sort(names)
	text := names[0]
	if len(names) > 1 {
		text = fmt.Sprintf("%d units, %s", len(names), document.Some(names, namedTargets))
	}
	goes := string(u.Goes)
	if len(names) > 1 {
		goes = map[sync.Going]string{sync.Starts: "start", sync.GoesOn: "go on", sync.Leaves: "leave"}[u.Goes]
	}
	text += ": " + goes
	if u.Tier != "" {
		text += ", tier " + u.Tier
	}
	if u.Rollout != "" {
		text += ", rollout " + u.Rollout
	}
	w.line(0, "%s", text)
	switch {
	case u.Withheld != "" && w.brief: // why stands above
		w.line(2, "not before deletions are approved")
	case u.Withheld != "":
		w.line(2, "not before deletions are approved: %s", u.Withheld)
	}
	for i := range u.Waves {
		w.wave(&u.Waves[i])
	}
	switch {
	case u.Left != "" && u.Done.IsZero():
		w.line(2, "then waits: %s", u.Left)
	case u.Left != "":
		w.line(2, "done at the earliest %s, but: %s", w.when(u.Done), u.Left)
	case !u.Done.IsZero():
		w.line(2, "done at the earliest %s", w.when(u.Done))
	}
}

func (w *planWriter) wave(v *sync.WaveForecast) {
	verb := "wave"
	if v.Cleans {
		verb = "cleans wave"
	}
	text := fmt.Sprintf("%s %s", verb, v.Wave)
	if !v.From.IsZero() {
		text += " " + w.when(v.From)
	}
	if len(v.Targets) > 0 {
		text += ": " + someTargets(v.Targets, w.all)
	}
	if v.Soak != "" && len(v.Targets) > 0 {
		whole, _ := time.ParseDuration(v.Soak) // we wrote it
		text += ", soaks " + roundly(whole)
	}
	w.line(2, "%s", text)
	for i := range v.Gates {
		w.gate(&v.Gates[i])
	}
	for i := range v.Holds {
		h := &v.Holds[i]
		w.line(4, "%s: %s (%s)%s", h.Kind, h.Text, someTargets(h.Targets, w.all), effect(h.Kind))
	}
	if len(v.Silent) > 0 {
		w.line(4, "no answer now from %s", someTargets(v.Silent, w.all))
	}
}

// effect is what a hold does to a release.
func effect(kind rollout.HoldKind) string {
	switch kind {
	case rollout.HeldByMask:
		return ": waves go on without, and they catch up when it ends"
	case rollout.HeldByPause:
		return ": nothing is written before it ends"
	}
	return ": nothing starts before that"
}

func (w *planWriter) gate(g *sync.GateForecast) {
	text := fmt.Sprintf("gate %s at the %s", g.Gate, g.At)
	if g.Text != "" {
		text += ": " + g.Text
	}
	if g.Gate == "approval" {
		text += ": " + mayApprove(g.By, g.Not)
	}
	w.line(4, "%s", text)
}

// when is a time from now on.
func (w *planWriter) when(at time.Time) string {
	in := at.Sub(w.f.At)
	switch {
	case in < time.Second:
		return "now"
	case w.brief:
		return "after " + roundly(in)
	}
	return fmt.Sprintf("%s (in %s)", shortTime(at, w.f.At), roundly(in))
}

func (w *planWriter) stays() {
	if len(w.f.Stays) > 0 {
		w.line(0, "stays as it is:")
	}
	for _, s := range w.f.Stays {
		w.line(2, "%s: %s", s.Unit, s.Why)
	}
}

// fewLeftOut is how many files that are left out a plan names.
const fewLeftOut = 10

func (w *planWriter) leftOut() {
	files := w.f.LeftOut
	if len(files) > 0 {
		w.line(0, "left out, of the folders of these units:")
	}
	for i, file := range files {
		if i == fewLeftOut && !w.all {
			w.line(2, "and %d more: --all lists them", len(files)-i)
			return
		}
		w.line(2, "%s: %s", file.Path, file.Why)
	}
}

func (w *planWriter) deletions() {
	if len(w.f.Deletions) > 0 {
		w.line(0, "deletions that wait for approval:")
	}
	for _, d := range w.f.Deletions {
		reasons := map[string]bool{}
		for _, one := range d.Deletions {
			reasons[one.Why] = true
		}
		more := ""
		if n := len(reasons) - 1; n > 0 {
			more = fmt.Sprintf(" (and %s)", document.Count(n, "other reason"))
		}
		forgets := store.Forgets(d.Deletions)
		text := planText(len(d.Deletions), d.Unit, forgets)
		if forgets == "" { // else the text is the reason
			text += ": " + d.Deletions[0].Why + more
		}
		w.line(2, "plan %s: %s", d.Digest.Short(), text)
	}
}

func (w *planWriter) commands() {
	deletions := 0
	for _, d := range w.f.Deletions {
		if store.Forgets(d.Deletions) == "" {
			deletions += len(d.Deletions)
		}
	}
	gates := len(w.f.Approvals())
	switch {
	case gates+deletions == 0 || w.f.Cut:
	case deletions > 0 && !w.f.Taken:
		w.line(0, "deletions can be approved when the daemon is at work on the commit")
	default:
		rev := ""
		if !w.f.Taken { // the plan of the branch is another one
			rev = " " + w.f.Commit.Short()
		}
		w.line(0, "-> swell approve --plan %s%s: approves %s", w.f.Digest.Short(), rev, approvedText(gates, deletions))
	}
}

// approvedText counts approvals.
func approvedText(gates, deletions int) string {
	var parts []string
	if gates > 0 {
		parts = append(parts, document.Count(gates, "gate"))
	}
	if deletions > 0 {
		parts = append(parts, document.Count(deletions, "deletion"))
	}
	return strings.Join(parts, " and ")
}

// hasPrefixFold says whether digits are the beginning of a digest.
func hasPrefixFold(digest, digits string) bool {
	return strings.HasPrefix(digest, strings.ToLower(digits))
}
