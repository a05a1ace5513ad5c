// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/swell-sh/swell/render/diff"
)

// writeFenced writes a title and a block of text that markdown leaves as it is.
func writeFenced(w io.Writer, title, language, text string) error {
	// The text may itself hold a fence: ours is longer than any in it.
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	_, err := fmt.Fprintf(w, "### swell: %s\n\n%s%s\n%s%s\n", title, fence, language, text, fence)
	return err
}

// maxMarkdown is how long the problems in a page may be, in bytes: GitHub takes comments
// of 65,536 characters.
const maxMarkdown = 60_000

// writeProblemMarkdown writes the problems as a comment or a summary of a job, one in a
// line. Very many are cut, and it says so.
func writeProblemMarkdown(w io.Writer, c *checked) error {
	if len(c.Problems) == 0 {
		_, err := fmt.Fprintf(w, "### swell: no problems\n\n%s\n", strings.TrimPrefix(c.summary(), "swell: "))
		return err
	}
	var text strings.Builder
	for i, p := range c.Problems {
		line := visible(fmt.Sprintf("%s: %s%s (%s)", p.Position, p.Text(), viaText(p), p.Code)) + "\n"
		if text.Len()+len(line) > maxMarkdown {
			fmt.Fprintf(&text, "and %s more: swell check shows all\n", diff.Count(len(c.Problems)-i, "problem"))
			break
		}
		text.WriteString(line)
	}
	return writeFenced(w, strings.TrimPrefix(c.summary(), "swell: "), "", text.String())
}
