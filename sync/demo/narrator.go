// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	gosync "sync"

	"golang.org/x/term"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
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
	picture picture
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
	n.picture = pictureOf(state)
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
			n.line("  applied   %s on %s", document.Count(wrote, "object"), document.Count(appliedTargets(r), "target"))
		}
	} else {
		for _, t := range summed(r.Transitions) {
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

// summed has one line for many units that are blocked, or not any more, at once.
func summed(all []rollout.Transition) []rollout.Transition {
	const most = 2 // of one kind
	count := map[string]int{}
	for _, t := range all {
		count[t.Kind]++
	}
	var told []rollout.Transition
	for _, t := range all {
		n := count[t.Kind]
		many := n > most && (t.Kind == "blocked" || t.Kind == "unblocked")
		switch {
		case many && n > 0:
			t.Unit += config.UnitPath(fmt.Sprintf(" and %d more", n-1))
			count[t.Kind] = -1
		case count[t.Kind] < 0:
			continue
		}
		told = append(told, t)
	}
	return told
}

func (n *narrator) transition(t rollout.Transition) {
	where := string(t.Unit)
	switch {
	case where == "" && t.Target == "":
		where = "everything"
	case where == "":
		where = string(t.Target)
	case t.Target != "":
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
	f, ok := n.out.(*os.File)
	if !n.live || !ok {
		return
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return
	}
	lines := n.picture.lines(width, height-1, n.paint)
	for _, line := range lines {
		fmt.Fprintln(n.out, line)
	}
	n.drawn = len(lines)
}
