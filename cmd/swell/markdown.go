// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/report"
)

// writeProblemMarkdown writes the problems as a comment or a summary of a job, one in a
// line. Very many are cut, and it says so.
func writeProblemMarkdown(w io.Writer, c *checked) error {
	if len(c.Problems) == 0 {
		_, err := fmt.Fprintf(w, "### swell: no problems\n\n%s\n", strings.TrimPrefix(c.summary(), "swell: "))
		return err
	}
	var lines []string
	size := 0
	for i, p := range c.Problems {
		line := visible(fmt.Sprintf("%s: %s%s (%s)", p.Position, p.Text(), viaText(p), p.Code))
		if size += len(line) + 1; size > report.MaxBytes {
			lines = append(lines, fmt.Sprintf("and %s more: swell check shows all", document.Count(len(c.Problems)-i, "problem")))
			break
		}
		lines = append(lines, line)
	}
	_, err := fmt.Fprintf(w, "### %s\n\n%s", c.summary(), report.Fenced("", lines))
	return err
}
