// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	gosync "sync"

	"golang.org/x/term"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
)

// narrator tells the story: as lines, and on a terminal with a live picture of
// units and targets below them.
type narrator struct {
	out   io.Writer
	live  bool // draw the picture
	color bool

	mu      gosync.Mutex // the daemon and the story both tell
	quiet   bool         // sum up instead of a line for each target
	drawn   int          // lines of the picture on the screen
	picture []string
	width   int    // of the picture, in columns
	last    string // what was told last, for a failure's message
}

func (n *narrator) title(text string) { n.tell("\n%s", n.paint("1", text)) }

func (n *narrator) line(format string, args ...any) { n.tell(format, args...) }

// tell writes lines above the picture.
func (n *narrator) tell(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = strings.TrimSpace(fmt.Sprintf(format, args...))
	n.clearLocked()
	fmt.Fprintf(n.out, format+"\n", args...)
	n.drawLocked()
}

func (n *narrator) lastWord() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

func (n *narrator) setQuiet(quiet bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.quiet = quiet
}

func (n *narrator) mark() string { return n.paint("32", "ok") }

func (n *narrator) paint(code, text string) string {
	if !n.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// narrate tells what a pass did.
func (n *narrator) narrate(r sync.Record, state *rollout.State) {
	n.mu.Lock()
	n.picture, n.width = picture(state, n.paint)
	quiet := n.quiet
	n.clearLocked()
	n.drawLocked()
	n.mu.Unlock()
	for _, p := range r.Problems {
		n.line("  problem   %s", p)
	}
	for _, err := range r.Errors {
		n.line("  error     %v", err)
	}
	if quiet {
		if wrote := r.Objects["created"] + r.Objects["configured"]; wrote > 0 {
			n.line("  applied   %s on %s", diff.Count(wrote, "object"), diff.Count(appliedTargets(r), "target"))
		}
	} else {
		for _, t := range r.Transitions {
			n.transition(t)
		}
	}
}

func appliedTargets(r sync.Record) int {
	targets := map[config.TargetName]bool{}
	for _, o := range r.Actions {
		if o.Kind == rollout.Apply {
			targets[o.Target] = true
		}
	}
	return len(targets)
}

func (n *narrator) transition(t rollout.Transition) {
	where := string(t.Unit)
	if t.Target != "" {
		where += " on " + string(t.Target)
	}
	if t.Wave != "" {
		where += " (wave " + t.Wave + ")"
	}
	n.line("  %-13s %s%s", t.Kind, where, prefixed(": ", t.Text))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// clearLocked removes the picture from the screen, drawLocked puts it there
// again.
func (n *narrator) clearLocked() {
	if n.drawn > 0 {
		fmt.Fprintf(n.out, "\x1b[%dA\x1b[J", n.drawn)
		n.drawn = 0
	}
}

func (n *narrator) drawLocked() {
	if !n.fitsLocked() {
		return
	}
	for _, line := range n.picture {
		fmt.Fprintln(n.out, line)
	}
	n.drawn = len(n.picture)
}

// fitsLocked says whether the picture can be drawn over: a terminal that wraps
// or scrolls it away would be left with the pieces.
func (n *narrator) fitsLocked() bool {
	f, ok := n.out.(*os.File)
	if !n.live || !ok || len(n.picture) == 0 {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && len(n.picture) < height && n.width < width
}

// picture shows units by rows and targets by columns, in the order of waves.
func picture(state *rollout.State, paint func(code, text string) string) (lines []string, width int) {
	waves := map[config.TargetName]int{}
	for _, unit := range state.Units {
		for name, t := range unit.Targets {
			waves[name] = t.Wave
		}
	}
	targets := slices.SortedFunc(maps.Keys(waves), func(a, b config.TargetName) int {
		if waves[a] != waves[b] {
			return waves[a] - waves[b]
		}
		return strings.Compare(string(a), string(b))
	})
	if len(targets) == 0 {
		return nil, 0
	}
	lines = []string{"", fmt.Sprintf("  %-32s", "")}
	for _, name := range targets {
		lines[1] += fmt.Sprintf(" %-11s", name)
	}
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		unit := state.Units[path]
		line := fmt.Sprintf("  %-32s", path)
		for _, name := range targets {
			line += " " + cell(unit.Targets[name], paint)
		}
		lines = append(lines, line+" "+string(unit.Rollout.Status))
	}
	return lines, len(lines[1]) + len(" rolling back")
}

// cell is the state of a unit on a target, in 11 columns.
func cell(t *rollout.Target, paint func(code, text string) string) string {
	switch {
	case t == nil:
		return fmt.Sprintf("%-11s", "")
	case t.Trouble != "":
		return paint("31", fmt.Sprintf("%-11s", t.Trouble))
	case t.Drifted:
		return paint("35", fmt.Sprintf("%-11s", "drifted"))
	case t.Applied != t.Wanted || t.Dirty:
		return paint("90", fmt.Sprintf("%-11s", "waiting"))
	case t.Health == rollout.HealthGood:
		return paint("32", fmt.Sprintf("%-11s", "healthy"))
	}
	return paint("33", fmt.Sprintf("%-11s", t.Health))
}
