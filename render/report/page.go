// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
)

// maxPage is how many bytes a page may have, but for the end of the block that it comes to.
const maxPage = 16 << 20

const pageHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>%s: swell</title>
<style>
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif }
body { max-width: 70em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
.bad { color: #b3261e } @media (prefers-color-scheme: dark) { .bad { color: #ff8a80 } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .7em; border: 1px solid #8884; border-radius: .3em; font-size: .85em }
summary { cursor: pointer; padding: .2em 0 }
</style>
`

// Page is all of the change as a page of HTML, which loads nothing and runs nothing. The title
// is what it is about, and link where that is shown; empty: nowhere.
func (c *Change) Page(title, link string) string {
	w := &htmlPage{}
	w.write(pageHead, html.EscapeString(title))
	if isLink(link) {
		title = fmt.Sprintf(`<a href="%s">%s</a>`, html.EscapeString(link), html.EscapeString(title))
	} else {
		title = html.EscapeString(title)
	}
	w.write("<p>%s</p>\n", title)
	verdict, text := c.Verdict()
	class := ""
	if verdict == Bad {
		class = ` class="bad"`
	}
	w.write("<h1%s>%s</h1>\n", class, html.EscapeString(text))
	if c.Base != "" {
		w.write("<p>%s with the changes of %s</p>\n", htmlCode(c.Base), htmlCode(c.Head))
	}
	if c.Aside != "" {
		w.write("<p><strong>%s</strong></p>\n", html.EscapeString(c.Aside))
	}
	if c.Fork {
		w.write("<p>%s</p>\n", html.EscapeString(forkText))
	}
	w.lines("It edits rules that judge changes. "+c.judges(), c.Rules)
	w.lines("Changed in the base, too: the head's is shown, and Git may see a conflict", c.Both)
	if c.Report != nil && c.Report.Refused != "" {
		w.lines("Nothing is taken from it", []string{c.Report.Refused})
	}
	w.lines("Problems", c.problemLines())
	w.lines("Look at this first", c.riskLines(math.MaxInt))
	w.lines("What API servers refuse", textOf((&diff.Report{Changes: c.of(diff.Refused)}).WriteAll))
	w.lines("What goes", textOf((&diff.Report{Changes: c.gone()}).WriteAll))
	w.lines("What the change of kinds breaks", c.impactLines())
	w.lines("What stays as it is", textOf(c.stays().WriteAll))
	w.lines(diff.LaterTitle, c.laterLines((*diff.Report).WriteAllUnits))
	w.lines(nowTitle, c.nowLines())
	w.lines("How it is released, if all goes well", c.releaseLines())
	w.groups(c.changing(true))
	w.lines("Problems that the base has, too", linesOf(c.Before))
	return w.text.String()
}

type htmlPage struct{ text strings.Builder }

func (w *htmlPage) write(format string, args ...any) { fmt.Fprintf(&w.text, format, args...) }

// lines writes lines under a title, those that there is room for.
func (w *htmlPage) lines(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	w.write("<h2>%s</h2>\n", html.EscapeString(title))
	w.block(lines)
}

func (w *htmlPage) block(lines []string) {
	w.text.WriteString("<pre>")
	for i, line := range lines {
		if w.text.Len() > maxPage {
			w.write("and %s more\n", document.Count(len(lines)-i, "line"))
			break
		}
		w.text.WriteString(html.EscapeString(document.Printable(line)) + "\n")
	}
	w.text.WriteString("</pre>\n")
}

func (w *htmlPage) groups(all []*group) {
	if len(all) == 0 {
		return
	}
	w.write("<h2>Changes</h2>\n")
	for i, g := range all {
		if w.text.Len() > maxPage {
			left := 0
			for _, rest := range all[i:] {
				left += len(rest.units)
			}
			w.write("<p>The changes of %s are not shown.</p>\n", document.Count(left, "unit"))
			return
		}
		w.write("<details open>%s\n", g.summary())
		w.block(g.allLines())
		w.write("</details>\n")
	}
}

// allLines are the changes of the first unit, and the names of the others with their targets.
func (g *group) allLines() []string {
	lines := textOf(g.first().WriteAllUnits)
	if len(g.units) == 1 {
		return lines
	}
	lines = append(lines, "", likeFirst)
	for i, unit := range g.units[1:] {
		lines = append(lines, fmt.Sprintf("  %s on %s", unit, diff.Targets(targetsOf(g.changes[i+1]), math.MaxInt)))
	}
	return lines
}

// targetsOf are the targets of changes, sorted.
func targetsOf(changes []diff.Change) (targets []config.TargetName) {
	for _, change := range changes {
		targets = append(targets, change.Targets...)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}
