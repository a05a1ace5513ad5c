// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kept identifies a line of the baseline.
type kept struct{ rule, file string }

// baseline is the number of findings by rule and file.
type baseline map[kept]int

const baselineHead = "# Findings of deploy/style that are left: number, rule, file. Only go run ./deploy/style -lower\n" +
	"# writes it, and only when no rule has more of them in all than before.\n"

func parseBaseline(text string) (baseline, error) {
	b := baseline{}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var number int
		var k kept
		if _, err := fmt.Sscanf(line, "%d %s %s", &number, &k.rule, &k.file); err != nil {
			return nil, fmt.Errorf("line %d: want NUMBER RULE FILE: %w", i+1, err)
		}
		b[k] = number
	}
	return b, nil
}

// text returns what [parseBaseline] reads, by rule, then by file.
func (b baseline) text() string {
	all := slices.SortedFunc(maps.Keys(b), func(x, y kept) int {
		return cmp.Or(cmp.Compare(x.rule, y.rule), cmp.Compare(x.file, y.file))
	})
	text := baselineHead
	for _, k := range all {
		text += fmt.Sprintf("%d %s %s\n", b[k], k.rule, k.file)
	}
	return text
}

func count(findings []finding) baseline {
	b := baseline{}
	for _, f := range findings {
		b[kept{f.rule, f.file}]++
	}
	return b
}

// totals returns the numbers by rule.
func (b baseline) totals() map[string]int {
	all := map[string]int{}
	for k, number := range b {
		all[k.rule] += number
	}
	return all
}

// compare returns the findings of files that have more than their baseline, for the rules
// that have more in all; and by how many each rule rose or fell in all.
func compare(base baseline, findings []finding) (above []finding, risen, fallen []string) {
	now := count(findings)
	before, after := base.totals(), now.totals()
	for _, f := range findings {
		if k := (kept{f.rule, f.file}); after[f.rule] > before[f.rule] && now[k] > base[k] {
			above = append(above, f)
		}
	}
	for _, rule := range []string{"columns", "comments", "names"} {
		switch more := after[rule] - before[rule]; {
		case more > 0:
			risen = append(risen, fmt.Sprintf("%s by %d", rule, more))
		case more < 0:
			fallen = append(fallen, fmt.Sprintf("%s by %d", rule, -more))
		}
	}
	return above, risen, fallen
}
