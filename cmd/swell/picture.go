// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// picture is what swell watch shows at a moment.
type picture struct {
	rollouts []status.UnderWay // the worst first
	events   []store.Recorded  // the newest last
	note     string            // about the daemon that does not answer
	unknown  bool              // the daemon has not answered yet
	now      time.Time
	width    int // columns
	height   int // lines at most; 0 is any number
	color    bool
}

// mark is how the state of a target is drawn: without colours the letters differ.
type mark struct {
	letter byte
	color  string
}

const (
	colorGood = "\x1b[32m"
	colorBad  = "\x1b[31m"
	colorMove = "\x1b[36m"
	colorWait = "\x1b[33m"
)

var marks = map[status.Standing]mark{
	status.Healthy: {'+', colorGood}, status.Progressing: {'~', colorMove}, status.Pending: {'.', ""}, status.Failed: {'x', colorBad},
	status.Fight: {'!', colorBad}, status.Drifted: {'d', colorWait}, status.Unreachable: {'?', colorWait}, status.Unavailable: {'u', colorWait},
	status.Masked: {'m', colorWait}, status.Waiting: {'w', colorWait}, status.Leaving: {'-', colorMove}, status.Empty: {'e', colorWait},
	status.Degraded: {'g', colorBad}, status.Leftovers: {'l', colorWait},
}

// drawn are the states in the order of the legend, the worst first.
var drawn = []status.Standing{status.Failed, status.Degraded, status.Fight, status.Drifted, status.Unreachable, status.Unavailable,
	status.Masked, status.Leftovers, status.Waiting, status.Leaving, status.Empty, status.Pending, status.Progressing, status.Healthy}

func markOf(is status.Standing) mark {
	if m, ok := marks[is]; ok {
		return m
	}
	return mark{'o', ""}
}

// standingColor is that of the state of a unit.
func standingColor(is status.Standing) string {
	switch is {
	case status.Held, status.RollingBack, status.RolledBack, status.Failed, status.Fight, status.Quarantined,
		status.Stopped, status.Blocked:
		return colorBad
	case status.Done, status.Healthy:
		return colorGood
	case status.Progressing:
		return colorMove
	}
	return colorWait
}

const (
	// leastEvents and mostEvents are how many lines the events have.
	leastEvents, mostEvents = 3, 8
	// roomForLegend is the least height that has one.
	roomForLegend = 10
)

// lines draws the picture: no line is wider than it, and there are no more than fit.
func (p *picture) lines() []string {
	if p.width < narrowestPainted && p.color {
		plain := *p
		plain.color = false
		return plain.lines()
	}
	lines := p.head()
	legend, room, most := p.legend(), math.MaxInt, mostEvents
	if p.height > 0 {
		if p.height < roomForLegend {
			legend = nil
		}
		free := p.height - len(lines) - len(legend)
		if most = min(mostEvents, max(leastEvents, free-p.inFull(p.rollouts, free))); p.height < roomForLegend {
			most = 0
		}
		room = max(1, free-min(most, len(p.events)))
	}
	lines = slices.Concat(lines, p.units(room), legend, p.eventLines(most))
	if p.height > 0 && len(lines) > p.height {
		lines = lines[:p.height]
	}
	if !p.color {
		for i, line := range lines {
			lines[i] = shortened(line, p.width)
		}
	}
	return lines
}

// narrowestPainted is the least width that has colours.
const narrowestPainted = 20

// inFull returns how many lines units take with a line for each wave and all that they wait
// for. It counts no further than to one more than most.
func (p *picture) inFull(shown []status.UnderWay, most int) (n int) {
	for i := range shown {
		if n += 1 + len(shown[i].Cells) + len(p.waitLines(&shown[i])); n > most {
			return most + 1
		}
	}
	return n
}

// withWaits is [picture.inFull] without the waves.
func (p *picture) withWaits(shown []status.UnderWay, most int) (n int) {
	for i := range shown {
		if n += 1 + len(p.waitLines(&shown[i])); n > most {
			return most + 1
		}
	}
	return n
}

// waitIndent stands before what a unit waits for.
const waitIndent = "  "

// waitLines are all that a unit waits for, in as many lines as that takes.
func (p *picture) waitLines(u *status.UnderWay) (lines []string) {
	columns := p.width - len(waitIndent)
	if u.Waits == "" || columns < 1 {
		return nil
	}
	for _, line := range wrapped(u.Waits, columns) {
		lines = append(lines, p.painted(waitIndent+line, colorDim))
	}
	return lines
}

// wrapped folds a text, also within words that are longer than a line.
func wrapped(text string, columns int) (lines []string) {
	for _, line := range fold(visible(text), columns) {
		for cellWidth(line) > columns {
			head := fitting(line, columns)
			lines, line = append(lines, head), line[len(head):]
		}
		lines = append(lines, line)
	}
	return lines
}

// fitting is as much of a text as fits into so many columns, one character at least.
func fitting(text string, columns int) string {
	width := 0
	for i, r := range text {
		_, n := glyph(r, width)
		if width += n; width > columns && i > 0 {
			return text[:i]
		}
	}
	return text
}

// shortened is a text in so many columns at most.
func shortened(text string, columns int) string {
	text = visible(text)
	if cellWidth(text) <= columns {
		return text
	}
	var b strings.Builder
	at := 0
	for _, r := range text {
		shape, wide := glyph(r, at)
		if at+wide > columns-1 {
			break
		}
		b.WriteString(shape)
		at += wide
	}
	if columns > 0 {
		b.WriteString("…")
	}
	return b.String()
}

// pad is a text in exactly so many columns.
func pad(text string, columns int) string {
	text = shortened(text, columns)
	return text + strings.Repeat(" ", max(0, columns-cellWidth(text)))
}

func (p *picture) painted(text, color string) string {
	if !p.color || color == "" || text == "" {
		return text
	}
	return color + text + colorOff
}

func (p *picture) head() []string {
	counts := map[status.Standing]int{}
	for i := range p.rollouts {
		counts[p.rollouts[i].Status]++
	}
	text := document.Count(len(p.rollouts), "rollout") + " under way"
	switch {
	case p.unknown:
		text = "asking the daemon"
	case len(p.rollouts) == 0:
		text = "no rollout is under way"
	}
	if parts := countTexts(counts); len(parts) > 1 {
		text += ": " + strings.Join(parts, ", ")
	}
	clock := p.now.UTC().Format(clockLayout)
	lines := []string{p.painted(shortened(clock+"  "+text, p.width), colorPlace)}
	if p.note != "" {
		lines = append(lines, p.painted(shortened(p.note, p.width), colorMark))
	}
	return lines
}

// countTexts are "3 held", "12 progressing", the most common first.
func countTexts(counts map[status.Standing]int) (parts []string) {
	var all []status.Standing
	for is := range counts {
		all = append(all, is)
	}
	slices.SortFunc(all, func(a, b status.Standing) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(string(a), string(b)))
	})
	for _, is := range all {
		parts = append(parts, fmt.Sprintf("%d %s", counts[is], is))
	}
	return parts
}

// units are a line for each unit. Where there is room, each wave has a line of its own;
// where there is some, what the unit waits for has one. The last line says how many units
// are left out.
func (p *picture) units(room int) []string {
	shown, left := p.rollouts, 0
	if len(shown) > room {
		left = len(shown) - (room - 1)
		shown = shown[:room-1]
	}
	waves, whole, waits := p.inFull(shown, room) <= room, p.withWaits(shown, room) <= room, len(shown)*2 <= room
	names, words := p.columns(shown)
	var lines []string
	for i := range shown {
		u := &shown[i]
		rest := p.width - names - words - 2
		line := pad(string(u.Unit), names) + " " + p.painted(pad(string(u.Status), words), standingColor(u.Status)) + " "
		if waves {
			text := fmt.Sprintf("%s  %d/%d", waveText(u), u.Done, u.Targets)
			if !u.Since.IsZero() {
				text += "  since " + roundly(p.now.Sub(u.Since))
			}
			line += shortened(text, rest)
		} else {
			line += p.waves(u, rest)
		}
		lines = append(lines, strings.TrimRight(line, " "))
		if waves {
			lines = append(lines, p.waveLines(u)...)
		}
		switch {
		case whole:
			lines = append(lines, p.waitLines(u)...)
		case waits && u.Waits != "" && p.width > len(waitIndent):
			lines = append(lines, p.painted(waitIndent+shortened(u.Waits, p.width-len(waitIndent)), colorDim))
		}
	}
	if left > 0 {
		counts := map[status.Standing]int{}
		for i := range p.rollouts[len(shown):] {
			counts[p.rollouts[len(shown)+i].Status]++
		}
		lines = append(lines, shortened(fmt.Sprintf("and %d more: %s", left, strings.Join(countTexts(counts), ", ")), p.width))
	}
	return lines
}

// waveLines draw each wave of a unit in a line.
func (p *picture) waveLines(u *status.UnderWay) (lines []string) {
	names := 0
	for _, c := range u.Cells {
		names = max(names, cellWidth(visible(c.Wave)))
	}
	names = min(names, p.width/4)
	for i, c := range u.Cells {
		text, width := p.bar(c.States), len(c.States)
		if width > p.width-names-4 {
			text, width = p.counts(c.States)
		}
		if width > p.width-names-4 {
			text = shortened(fmt.Sprint(len(c.States)), max(0, p.width-names-4))
		}
		lead := "  "
		if u.WaveName != "" && i+1 == u.Wave {
			lead = "> "
		}
		lines = append(lines, strings.TrimRight(shortened(lead+pad(c.Wave, names), p.width)+" "+text, " "))
	}
	return lines
}

// columns are the widths of names and states: half of the width at most.
func (p *picture) columns(shown []status.UnderWay) (names, words int) {
	for i := range shown {
		names = max(names, cellWidth(visible(string(shown[i].Unit))))
		words = max(words, len(shown[i].Status))
	}
	names = max(1, min(names, p.width*3/10))
	return names, max(1, min(words, p.width*2/10))
}

// waves draws the targets of a unit, wave by wave: a letter for each target where they fit,
// else counts by state, else of all waves together.
func (p *picture) waves(u *status.UnderWay, columns int) string {
	width := max(0, len(u.Cells)-1)
	for _, c := range u.Cells {
		width += len(c.States)
	}
	if width <= columns {
		var parts []string
		for i, c := range u.Cells {
			parts = append(parts, p.inWave(u, i, p.bar(c.States)))
		}
		return strings.Join(parts, "|")
	}
	for _, named := range []bool{true, false} {
		if text, width := p.counted(u, named); width <= columns {
			return text
		}
	}
	var all []status.Standing
	for _, c := range u.Cells {
		all = append(all, c.States...)
	}
	if text, width := p.counts(all); width <= columns {
		return text
	}
	return shortened(fmt.Sprintf("%d/%d", u.Done, u.Targets), columns)
}

// inWave marks the wave that is under way, where there are colours.
func (p *picture) inWave(u *status.UnderWay, i int, text string) string {
	if !p.color || u.WaveName == "" || i+1 != u.Wave {
		return text
	}
	return colorPlace + text + colorOff
}

// bar has a letter for each target.
func (p *picture) bar(states []status.Standing) string {
	var b strings.Builder
	for from := 0; from < len(states); {
		to := from
		for to < len(states) && states[to] == states[from] {
			to++
		}
		m := markOf(states[from])
		b.WriteString(p.painted(strings.Repeat(string(m.letter), to-from), m.color))
		from = to
	}
	return b.String()
}

// counted has the counts of each wave, with the waves' names or without.
func (p *picture) counted(u *status.UnderWay, named bool) (text string, width int) {
	for i, c := range u.Cells {
		part, n := p.counts(c.States)
		if named {
			part, n = visible(c.Wave)+" "+part, n+cellWidth(visible(c.Wave))+1
		}
		if i > 0 {
			text, width = text+"|", width+1
		}
		text, width = text+part, width+n
	}
	return text, width
}

// counts are the numbers of targets by state: "250+ 3x 47.".
func (p *picture) counts(states []status.Standing) (text string, width int) {
	counts := map[status.Standing]int{}
	for _, is := range states {
		counts[is]++
	}
	for _, is := range drawn {
		n := counts[is]
		if n == 0 {
			continue
		}
		m := markOf(is)
		part := fmt.Sprintf("%d%c", n, m.letter)
		if width > 0 {
			text, width = text+" ", width+1
		}
		text, width = text+p.painted(part, m.color), width+len(part)
	}
	if width == 0 {
		return "0", 1
	}
	return text, width
}

// legend says what the letters mean that are in use.
func (p *picture) legend() []string {
	used := map[status.Standing]bool{}
	for i := range p.rollouts {
		for _, c := range p.rollouts[i].Cells {
			for _, is := range c.States {
				used[is] = true
			}
		}
	}
	var parts []string
	for _, is := range drawn {
		if used[is] {
			parts = append(parts, fmt.Sprintf("%c %s", markOf(is).letter, is))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{p.painted(shortened(strings.Join(parts, "  "), p.width), colorDim)}
}

// eventLines are the newest events.
func (p *picture) eventLines(most int) (lines []string) {
	for _, e := range p.events[max(0, len(p.events)-most):] {
		what := e.Kind
		if e.Text != "" {
			what += ": " + e.Text
		}
		var about []string
		for _, name := range []string{string(e.Unit), string(e.Target), e.Wave} {
			if name != "" {
				about = append(about, name)
			}
		}
		line := fmt.Sprintf("%s %s %s", e.Time.UTC().Format(clockLayout), strings.Join(about, " "), what)
		if p.height == 0 { // nobody scrolls a terminal away
			lines = append(lines, wrapped(line, p.width)...)
			continue
		}
		lines = append(lines, shortened(line, p.width))
	}
	return lines
}
