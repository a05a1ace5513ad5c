// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Write writes the report for people: the risks first, then all. Lines that
// begin with + and - are added and removed, so that it can be shown as a diff, and those
// that begin with ! tell of a risk. Of many targets it names some.
func (r *Report) Write(w io.Writer) error { return r.writeWhole(w, mostTargets) }

// WriteAll is [Report.Write] with the names of all targets.
func (r *Report) WriteAll(w io.Writer) error { return r.writeWhole(w, math.MaxInt) }

// WriteUnits is [Report.Write] without the risks at the begin, and WriteAllUnits the same of
// [Report.WriteAll].
func (r *Report) WriteUnits(w io.Writer) error { return r.write(w, mostTargets) }

func (r *Report) WriteAllUnits(w io.Writer) error { return r.write(w, math.MaxInt) }

// mostTargets is how many targets are named in a list.
const mostTargets = 8

func (r *Report) writeWhole(w io.Writer, most int) error {
	risks := r.Risks(most)
	if len(risks) == 0 {
		return r.write(w, most)
	}
	if _, err := fmt.Fprintf(w, "look at this first:\n  %s\n\n", strings.Join(risks, "\n  ")); err != nil {
		return err
	}
	return r.write(w, most)
}

// write names so many of the targets of each list.
func (r *Report) write(w io.Writer, most int) error {
	if r.Refused != "" {
		_, err := fmt.Fprintf(w, "nothing is taken from it: %s\n", r.Refused)
		return err
	}
	var b strings.Builder
	var unit config.UnitPath
	withheld, told := map[config.UnitPath][]Kept{}, map[string]bool{}
	for _, k := range r.Withheld {
		withheld[k.Unit] = append(withheld[k.Unit], k)
		told[string(k.Unit)+": "+k.Reason] = true
	}
	now := map[config.UnitPath]string{}
	for _, line := range r.Now {
		now[line.Unit] = line.line()
	}
	for i, c := range r.Changes {
		if c.Unit != unit {
			if unit != "" {
				b.WriteByte('\n')
			}
			unit = c.Unit
			fmt.Fprintf(&b, "%s\n", visible(unit))
			if now[unit] != "" {
				fmt.Fprintf(&b, "  %s\n", now[unit])
				delete(now, unit)
			}
			for _, k := range withheld[unit] {
				on := ""
				if len(k.Targets) > 0 {
					on = " on " + Targets(k.Targets, most)
				}
				fmt.Fprintf(&b, "  nothing is written%s before deletions are approved: %s\n", on, k.Reason)
			}
			writeMoved(&b, r.Changes[i:], most)
		}
		if c.Action == Moved {
			continue
		}
		fmt.Fprintf(&b, "  %s %s on %s\n", actionText(c.Action), c.Object, Targets(c.Targets, most))
		if c.Reason != "" && !told[string(unit)+": "+c.Reason] && (i == 0 || !alike(&r.Changes[i-1], &r.Changes[i])) {
			fmt.Fprintf(&b, "    %s\n", c.Reason)
		}
		if c.Along != "" {
			fmt.Fprintf(&b, "    %s\n", c.Along)
		}
		if c.Action == Configured && len(c.Fields) == 0 && c.Reason == "" {
			b.WriteString("    only the order of a list\n")
		}
		if c.Restart != nil {
			fmt.Fprintf(&b, "    %s\n", c.Restart.text())
		}
		for _, risk := range c.Risks {
			somewhere := ""
			if len(risk.Targets) < len(c.Targets) {
				somewhere = " on " + Targets(risk.Targets, most)
			}
			fmt.Fprintf(&b, "    ! %s%s\n", risk.Text, somewhere)
		}
		for _, f := range c.Fields {
			f.write(&b)
		}
		c.writeContent(&b, most)
	}
	rest := b.Len()
	for _, path := range r.Unknown {
		fmt.Fprintf(&b, "%s\n  not compared: it has problems\n", visible(path))
	}
	for _, path := range r.Mended {
		fmt.Fprintf(&b, "%s\n  mended: there is nothing to compare it with\n", visible(path))
	}
	for _, kept := range r.Kept {
		on := ""
		if len(kept.Targets) > 0 {
			on = " on " + Targets(kept.Targets, most)
		}
		fmt.Fprintf(&b, "%s\n  kept as it is%s: %s\n", visible(kept.Unit), on, kept.Reason)
	}
	for i := range r.Now {
		if path := r.Now[i].Unit; now[path] != "" {
			fmt.Fprintf(&b, "%s\n  %s\n", visible(path), now[path])
		}
	}
	for _, left := range r.LeftOut {
		fmt.Fprintf(&b, "%s\n  left out: %s\n", document.Printable(left.Path), left.Why)
	}
	for _, line := range r.Idle {
		fmt.Fprintf(&b, "%s\n  it matched before the change\n", document.Printable(line))
	}
	if r.Later != nil {
		fmt.Fprintf(&b, "\n%s:\n\n", LaterTitle)
		if err := r.Later.write(&b, most); err != nil {
			return err
		}
	}
	text := b.String()
	if 0 < rest && rest < len(text) {
		text = text[:rest] + "\n" + text[rest:]
	}
	_, err := io.WriteString(w, text)
	return err
}

// LaterTitle is what [Report.Later] is called.
const LaterTitle = "Held by the rules of the base alone: the next commit releases it, whatever that is about"

// line says how the unit is.
func (n *Now) line() string { return fmt.Sprintf("now %s: %s", n.Status, n.Text) }

// NowLines say how the units are that head has something else of, a line for those of which the same is
// said.
func (r *Report) NowLines() (lines []string) {
	var texts []string
	units := map[string][]string{}
	for i := range r.Now {
		text := r.Now[i].line()
		if units[text] == nil {
			texts = append(texts, text)
		}
		units[text] = append(units[text], visible(r.Now[i].Unit))
	}
	for _, text := range texts {
		lines = append(lines, fmt.Sprintf("%s: %s", document.Some(units[text], mostTargets), text))
	}
	return lines
}

// Unreached are the clusters that the daemon cannot reach, and that units are placed in.
func (r *Report) Unreached() []Joining {
	return slices.DeleteFunc(slices.Clone(r.Joining), func(j Joining) bool { return !j.Unreached })
}

// nowCounts counts the units by how they are: "2 units held now".
func (r *Report) nowCounts() string {
	var words []string
	count := map[string]int{}
	for i := range r.Now {
		word := r.Now[i].Status
		if count[word]++; count[word] == 1 {
			words = append(words, word)
		}
	}
	text := ""
	for _, word := range words {
		text += fmt.Sprintf("; %s %s now", document.Count(count[word], "unit"), word)
	}
	return text
}

// writeMoved tells of the objects that the first unit of changes has from others, those from one unit
// on the same targets in one line.
func writeMoved(b *strings.Builder, changes []Change, most int) {
	var heads, lists []string
	objects := map[string][]string{}
	for _, c := range changes {
		if c.Unit != changes[0].Unit {
			break
		}
		if c.Action != Moved {
			continue
		}
		head, list := c.Reason, Targets(c.Targets, most)
		if objects[head+list] == nil {
			heads, lists = append(heads, head), append(lists, list)
		}
		objects[head+list] = append(objects[head+list], c.Object)
	}
	for i, head := range heads {
		fmt.Fprintf(b, "  moved %s on %s\n    %s\n", document.Some(objects[head+lists[i]], most), lists[i], head)
	}
}

// alike tells whether the reason of the first is read as that of the second, in the next line,
// too.
func alike(a, b *Change) bool {
	return a.Unit == b.Unit && a.Action == b.Action && a.Reason == b.Reason && a.Along == "" && len(a.Fields)+len(b.Fields) == 0
}

// visible is a path in a line: a folder may have a name with line breaks.
func visible(path config.UnitPath) string { return document.Printable(string(path)) }

// Summary counts in one line: "3 objects in 1 unit on 4 targets: 2 created, 1
// configured"; "no changes" when there are none.
func (r *Report) Summary() string {
	units, targets := map[config.UnitPath]bool{}, map[config.TargetName]bool{}
	count := map[Action]int{}
	total := 0
	for _, c := range r.Changes {
		units[c.Unit] = true
		for _, t := range c.Targets {
			targets[t] = true
			count[c.Action]++
			total++
		}
	}
	unknown := ""
	if len(r.Unknown) > 0 {
		unknown = fmt.Sprintf("; %s not compared", document.Count(len(r.Unknown), "unit"))
	}
	if len(r.Mended) > 0 {
		unknown += fmt.Sprintf("; %s mended", document.Count(len(r.Mended), "unit"))
	}
	if len(r.Kept) > 0 {
		unknown += fmt.Sprintf("; %s kept as it is", document.Count(len(r.Kept), "unit"))
	}
	unknown += r.nowCounts()
	if n := len(r.Unreached()); n > 0 {
		unknown += fmt.Sprintf("; %s without a kubeconfig", document.Count(n, "cluster"))
	}
	if len(r.LeftOut) > 0 {
		unknown += fmt.Sprintf("; %s left out", document.Count(len(r.LeftOut), "path"))
	}
	if n := len(r.Idle); n == 1 {
		unknown += "; 1 name in the fleet's documents matches nothing any more"
	} else if n > 1 {
		unknown += fmt.Sprintf("; %d names in the fleet's documents match nothing any more", n)
	}
	if total == 0 {
		return "no changes" + unknown
	}
	var parts []string
	for _, action := range []Action{Created, Configured, Moved, Refused, Replaced, Deleted, Held, Released, Forgotten, Left, Skipped} {
		if count[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[action], actionText(action)))
		}
	}
	return fmt.Sprintf("%s in %s on %s: %s", document.Count(total, "object"), document.Count(len(units), "unit"), document.Count(len(targets), "target"), strings.Join(parts, ", ")) + unknown
}

// actionText is an action in the past tense, or what happens instead of it.
func actionText(a Action) string {
	switch a {
	case Held:
		return "deleted after approval"
	case Left:
		return "left for now"
	}
	return string(a)
}

// Targets counts targets and names so many of them: "target a", "2 targets: a, b".
func Targets(targets []config.TargetName, most int) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = string(t)
	}
	if len(names) == 1 {
		return "target " + names[0]
	}
	return fmt.Sprintf("%d targets: %s", len(names), document.Some(names, most))
}

func (f Field) write(b *strings.Builder) {
	from, to := valueText(f.From), valueText(f.To)
	if strings.Contains(from, "\n") || strings.Contains(to, "\n") {
		fmt.Fprintf(b, "      %s:\n", document.Printable(f.Path))
		if from == to {
			b.WriteString("        what differs may be a secret\n")
			return
		}
		for i, line := range strings.Split(strings.TrimSuffix(Unified("", "", from, to), "\n"), "\n") {
			if i < 2 && (strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++")) {
				continue // names of files, there are none
			}
			fmt.Fprintf(b, "        %s\n", line)
		}
		return
	}
	if f.From != nil {
		fmt.Fprintf(b, "    - %s: %s\n", document.Printable(f.Path), from)
	}
	if f.To != nil {
		fmt.Fprintf(b, "    + %s: %s\n", document.Printable(f.Path), to)
	}
}

func valueText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it came out of JSON
	}
	return string(text)
}
