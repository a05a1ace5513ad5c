// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
)

// The bytes that forges take of a comment, with room for a marker: GitHub takes 65,536
// characters, GitLab a million. MinBytes is what the smallest comment needs.
const (
	MaxBytes = 60_000
	MinBytes = 4_000
)

const (
	maxLine  = 1_000 // bytes of a line of text; what is longer ends in dots
	maxCode  = 120   // bytes of code in a line
	maxNames = 5     // in a list
	tailRoom = 600   // bytes for what is not shown
	openRoom = 3_000 // bytes of changes that are shown unfolded
)

// Markdown is the change as a comment of at most so many bytes, at least [MinBytes]: the
// verdict first, then what is most dangerous. Where it would get longer, lines at the end of
// blocks and whole blocks are left out, and it says how many. Text of authors stands in code
// alone, so that it cannot end a block, address anybody or show a picture.
func (c *Change) Markdown(limit int) string {
	p := &page{limit: max(limit, MinBytes) - tailRoom}
	verdict, text := c.Verdict()
	mark := "swell:"
	if verdict == Bad {
		mark = "swell: :x:"
	}
	p.write("### %s %s\n", mark, text)
	p.head(c)
	p.lines("Problems", "text", c.problemLines(), p.room()/2)
	p.lines("Look at this first", "text", c.riskLines(maxNames), p.room()/3)
	p.lines("What API servers refuse", "diff", textOf((&diff.Report{Changes: c.of(diff.Refused)}).Write), p.room()/3)
	all := p.lines("What goes", "diff", c.goneLines(), p.room()/3)
	p.lines("What the change of kinds breaks", "text", c.impactLines(), p.room()/3)
	p.lines("What stays as it is", "text", textOf(c.stays().Write), p.room()/3)
	p.lines(diff.LaterTitle, "diff", c.laterLines((*diff.Report).WriteUnits), p.room()/3)
	p.lines(nowTitle, "text", c.nowLines(), p.room()/3)
	p.lines("How it is released, if all goes well", "text", c.releaseLines(), p.room()/2)
	p.groups(c.changing(all))
	p.lines("Problems that the base has, too", "text", linesOf(c.Before), p.room()/2)
	switch {
	case isLink(c.Link) && (p.cut || len(c.groups()) > 0):
		p.write("\n[All of it](<%s>)\n", c.Link)
	case p.cut && c.More != "":
		p.write("\nAll of it: %s\n", code(c.More))
	}
	return p.text.String()
}

// isLink says that a URL can stand in markdown.
func isLink(text string) bool {
	return (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) &&
		!strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("<>\\", r) })
}

// page is a page under way.
type page struct {
	text  strings.Builder
	limit int
	cut   bool // something was left out
}

func (p *page) room() int { return p.limit - p.text.Len() }

func (p *page) write(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

// head says what is compared, and what the reader has to know before all else.
func (p *page) head(c *Change) {
	if c.Base != "" {
		p.write("\n%s with the changes of %s\n", code(c.Base), code(c.Head))
	}
	if c.Aside != "" {
		p.write("\n**%s**\n", c.Aside)
	}
	if c.Fork {
		p.write("\n%s\n", forkText)
	}
	if len(c.Rules) > 0 {
		p.lines("It edits rules that judge changes. "+c.judges(), "text", c.Rules, p.room()/4)
	}
	if len(c.Both) > 0 {
		p.write("\n**Changed in the base, too**: %s. Of these the head's is shown; Git may see a conflict.\n", codes(c.Both))
	}
	if c.Report != nil && c.Report.Refused != "" {
		p.lines("Nothing is taken from it", "text", []string{c.Report.Refused}, p.room())
	}
}

// forkText is what is said of a change of another repository.
const forkText = "It comes from another repository: Checkers ran no program for it. Push its commits to a branch of this repository, and they do."

// problemLines are the problems, but for those that the change of kinds brings: these are
// told by what they break.
func (c *Change) problemLines() []string {
	broken := map[string]bool{}
	if c.Impact != nil {
		for _, problem := range c.Impact.Problems() {
			broken[problem.String()] = true
		}
	}
	return linesOf(slices.DeleteFunc(slices.Clone(c.Problems), func(p document.Problem) bool { return broken[p.String()] }))
}

// riskLines are what a person should look at first.
func (c *Change) riskLines(most int) []string {
	if c.Report == nil || c.Report.Refused != "" {
		return nil
	}
	return c.Report.Risks(most)
}

func linesOf(problems document.Problems) (lines []string) {
	for _, problem := range problems {
		lines = append(lines, fmt.Sprintf("%s (%s)", problem, problem.Code))
	}
	return lines
}

func (c *Change) impactLines() (lines []string) {
	if c.Impact == nil {
		return nil
	}
	for _, f := range c.Impact.Findings {
		lines = append(lines, f.WithPlace())
	}
	for _, b := range c.Impact.Broken {
		lines = append(lines, "breaks "+b.Text())
	}
	return lines
}

// nowTitle is that of the units that are not as the base wants them.
const nowTitle = "How units are now"

// laterLines are the changes that are released with the next commit.
func (c *Change) laterLines(write func(*diff.Report, io.Writer) error) []string {
	if c.Report == nil || c.Report.Later == nil {
		return nil
	}
	return textOf(func(w io.Writer) error { return write(c.Report.Later, w) })
}

func (c *Change) nowLines() []string {
	if c.Report == nil || c.Report.Refused != "" {
		return nil
	}
	return c.Report.NowLines()
}

// stays is a report of the units of which nothing is taken, or compared.
func (c *Change) stays() *diff.Report {
	if c.Report == nil || c.Report.Refused != "" {
		return &diff.Report{}
	}
	r := c.Report
	return &diff.Report{Unknown: r.Unknown, Mended: r.Mended, Kept: r.Kept, LeftOut: r.LeftOut, Idle: r.Idle}
}

// textOf are the lines that write writes.
func textOf(write func(io.Writer) error) []string {
	var b strings.Builder
	_ = write(&b) // to memory
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// lines writes a block of lines under a title, as many as there is room for. whole says that
// there is room for all.
func (p *page) lines(title, language string, lines []string, room int) (whole bool) {
	if len(lines) == 0 {
		return true
	}
	fitting, left := fit(lines, room-len(title)-20)
	if left > 0 {
		p.cut = true
	}
	p.write("\n**%s**\n\n%s", title, Fenced(language, fitting))
	if left > 0 {
		p.write("\nand %s more\n", document.Count(left, "line"))
	}
	return left == 0
}

// fit are the first of the lines that fit into a block of so many bytes, and how many do not.
func fit(lines []string, room int) (fitting []string, left int) {
	size, ticks := 2*len("```diff\n"), 0
	for i, line := range lines {
		line = document.Cut(document.Printable(line), maxLine)
		size, ticks = size+len(line)+1, max(ticks, longestTicks(line))
		if size+2*ticks > room {
			return fitting, len(lines) - i
		}
		fitting = append(fitting, line)
	}
	return fitting, 0
}

// Fenced is a block of lines that markdown leaves as they are: its fence is longer than any
// run of backticks in it.
func Fenced(language string, lines []string) string {
	ticks := 2
	for _, line := range lines {
		ticks = max(ticks, longestTicks(line))
	}
	fence := strings.Repeat("`", ticks+1)
	return fence + language + "\n" + strings.Join(lines, "\n") + "\n" + fence + "\n"
}

func longestTicks(text string) (longest int) {
	n := 0
	for _, r := range text {
		n++
		if r != '`' {
			n = 0
		}
		longest = max(longest, n)
	}
	return longest
}

// code is a text as code in a line, of little more than [maxCode] bytes: where it is mostly
// backticks, they are shown as apostrophes.
func code(text string) string {
	text = document.Cut(document.Printable(text), maxCode)
	if text == "" {
		text = " "
	}
	ticks := longestTicks(text)
	if ticks > 10 {
		text, ticks = strings.ReplaceAll(text, "`", "'"), 0
	}
	fence := strings.Repeat("`", ticks+1)
	if len(fence) > 1 || strings.HasPrefix(text, " ") {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// codes are the first of some names.
func codes(names []string) string {
	var all []string
	for _, name := range names[:min(len(names), maxNames)] {
		all = append(all, code(name))
	}
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all, ", "), more)
	}
	return strings.Join(all, ", ")
}

// leastCut is the room in which the first lines of a block are worth showing.
const leastCut = 500

// groups writes the changes, a block for units that change alike. Where there are few they
// are unfolded. The blocks that fit come first to the room; of the others the first lines are
// shown, as far as there is room left.
func (p *page) groups(all []*group) {
	if len(all) == 0 {
		return
	}
	p.write("\n**Changes**\n")
	blocks := make([]string, len(all))
	room := p.room()
	take := func(i int, block string) {
		if block != "" {
			blocks[i] = block
			room -= len(block) + len("\n<details open>")
		}
	}
	for i, g := range all {
		take(i, g.block(room-len("\n<details open>")))
	}
	cut, left := false, 0
	for i, g := range all {
		if blocks[i] == "" {
			cut = true
			take(i, g.begin(room-len("\n<details open>")))
		}
		if blocks[i] == "" {
			left += len(g.units)
		}
	}
	details := "<details>"
	if !cut && p.room()-room <= openRoom {
		details = "<details open>"
	}
	for _, block := range blocks {
		if block != "" {
			p.write("\n%s%s", details, block)
		}
	}
	if left > 0 {
		p.write("\nThe changes of %s are not shown.\n", document.Count(left, "unit"))
	}
	p.cut = p.cut || cut
}

const blockEnds = "\n\n\n</details>\n"

// block is a group behind its summary; empty where it takes more than so many bytes.
func (g *group) block(room int) string {
	if room <= 0 {
		return ""
	}
	summary := g.summary()
	fitting, left := fit(g.lines(), room-len(summary)-len(blockEnds))
	if left > 0 {
		return ""
	}
	return summary + "\n\n" + Fenced("diff", fitting) + "\n</details>\n"
}

// begin is the begin of a group that takes more than so many bytes; empty where that is not
// worth it.
func (g *group) begin(room int) string {
	if room < leastCut {
		return ""
	}
	summary := g.summary()
	fitting, left := fit(g.lines(), room-len(summary)-len(blockEnds)-len("\nand 1000000 more lines\n"))
	if len(fitting) < 3 { // the unit, an object, and what changes
		return ""
	}
	return summary + "\n\n" + Fenced("diff", fitting) + "\nand " + document.Count(left, "more line") + "\n\n</details>\n"
}

// summary names the group's first unit, how many are like it, and where.
func (g *group) summary() string {
	like := ""
	if more := len(g.units) - 1; more > 0 {
		like = fmt.Sprintf(" and %s like it", document.Count(more, "unit"))
	}
	return fmt.Sprintf("<summary>%s%s: %s on %s</summary>", htmlCode(string(g.units[0])), like, document.Count(g.objects, "object"), document.Count(len(g.targets), "target"))
}

// lines are the changes of the first unit, and the names of some others.
func (g *group) lines() []string {
	lines := textOf(g.first().WriteUnits)
	others := g.units[1:]
	if len(others) == 0 {
		return lines
	}
	lines = append(lines, "", likeFirst)
	for i, unit := range others {
		if i == maxNames {
			return append(lines, fmt.Sprintf("  and %d more", len(others)-i))
		}
		lines = append(lines, "  "+string(unit))
	}
	return lines
}

// likeFirst comes before the names of the units that change as the first of a group.
const likeFirst = "the same, but for names and targets, in"

// first is a report of the first unit.
func (g *group) first() *diff.Report {
	return &diff.Report{Changes: g.changes[0], Withheld: g.withheld}
}

// htmlCode is a text as code in HTML.
func htmlCode(text string) string {
	return "<code>" + html.EscapeString(document.Cut(document.Printable(text), 200)) + "</code>"
}
