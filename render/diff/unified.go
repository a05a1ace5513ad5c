// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(,\d+)? \+\d+(,\d+)? @@`)

// Unified is the unified difference of two texts, as [udiff.Unified] writes it; empty where there is none. The
// library counts no equal lines between two changes of a hunk, so where the later hunks begin in the second
// text is counted here.
func Unified(fromName, toName, from, to string) string {
	lines := strings.SplitAfter(udiff.Unified(fromName, toName, from, to), "\n")
	added, hunks := 0, 0
	for i, line := range lines {
		switch m := hunkHead.FindStringSubmatch(line); {
		case m != nil:
			if hunks++; hunks > 1 {
				first, _ := strconv.Atoi(m[1]) // digits, and a line of the text
				lines[i] = fmt.Sprintf("@@ -%s%s +%d%s @@\n", m[1], m[2], first+added, m[3])
			}
		case hunks == 0: // the names
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			added--
		}
	}
	return strings.Join(lines, "")
}
