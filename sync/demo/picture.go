// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
)

// picture is a row for each unit, with a mark for each target, by clusters:
//
//	UNIT                sas-1  vla-1  STATUS
//	services/shop/cart  ++     +>     progressing
//	+ healthy  > progressing  . pending  ~ drifted  ! failed
type picture struct {
	targets []config.TargetName // sorted by cluster
	rows    []pictureRow
}

type pictureRow struct {
	unit   string
	status status.Standing
	marks  map[config.TargetName]status.Standing
}

func pictureOf(state *rollout.State) picture {
	var p picture
	seen := map[config.TargetName]bool{}
	for _, path := range slices.Sorted(maps.Keys(state.Units)) {
		is := status.Of(state.Units[path], status.Known{})
		row := pictureRow{string(path), is.Status, map[config.TargetName]status.Standing{}}
		for _, t := range is.Targets {
			row.marks[t.Target], seen[t.Target] = t.Status, true
		}
		p.rows = append(p.rows, row)
	}
	p.targets = slices.Sorted(maps.Keys(seen))
	return p
}

// marks are what a target's standing looks like, and its colour.
var marks = []struct {
	mark, color string
	standings   []status.Standing
}{
	{"+", "32", []status.Standing{status.Healthy}},
	{">", "33", []status.Standing{status.Progressing}},
	{".", "90", []status.Standing{status.Pending, status.Waiting, status.Leaving}},
	{"~", "35", []status.Standing{status.Drifted, status.Fight}},
	{"!", "31", nil}, // everything else
}

func markOf(s status.Standing) (mark, color string) {
	for _, m := range marks {
		if m.standings == nil || slices.Contains(m.standings, s) {
			return m.mark, m.color
		}
	}
	return "", ""
}

const pictureLegend = "  + healthy  > progressing  . pending  ~ drifted  ! failed"

// lines draws the picture in at most so many columns and lines. Where not all
// units fit, those that are done are left out first.
func (p picture) lines(width, height int, paint func(color, text string) string) []string {
	const around = 4 // an empty line, the head, what was left out, the legend
	if len(p.rows) == 0 || height <= around {
		return nil
	}
	rows := slices.Clone(p.rows)
	for i := len(rows) - 1; i >= 0 && len(rows) > height-around; i-- {
		if rows[i].status == status.Done {
			rows = slices.Delete(rows, i, i+1)
		}
	}
	rows = rows[:min(len(rows), height-around)]
	name := len("UNIT")
	for _, row := range rows {
		name = max(name, len(row.unit))
	}
	clusters, columns := p.clusters()
	room := width - len("  ") - columns - len(status.RollingBack) - 1
	name = max(8, min(name, room))
	lines := []string{"", cutTo(fmt.Sprintf("  %-*s  %s%s", name, "UNIT", clusters, "STATUS"), width)}
	for _, row := range rows {
		lines = append(lines, fmt.Sprintf("  %-*s  %s%s", name, endOf(row.unit, name), p.cells(row, paint), row.status))
	}
	if more := len(p.rows) - len(rows); more > 0 {
		lines = append(lines, fmt.Sprintf("  ... %d more", more))
	}
	return append(lines, cutTo(pictureLegend, width))
}

// clusters is the head above the marks, and how wide that and the gap before it
// are.
func (p picture) clusters() (head string, columns int) {
	for _, group := range p.groups() {
		head += fmt.Sprintf("%-*s", groupWidth(group), group[0].Cluster())
	}
	return head, len(head) + 2
}

func (p picture) cells(row pictureRow, paint func(color, text string) string) string {
	var b strings.Builder
	for _, group := range p.groups() {
		for _, target := range group {
			mark, color := " ", ""
			if is, ok := row.marks[target]; ok {
				mark, color = markOf(is)
				mark = paint(color, mark)
			}
			b.WriteString(mark)
		}
		b.WriteString(strings.Repeat(" ", groupWidth(group)-len(group)))
	}
	return b.String()
}

// groups are the targets of each cluster.
func (p picture) groups() [][]config.TargetName {
	var groups [][]config.TargetName
	for _, target := range p.targets {
		if last := len(groups) - 1; last >= 0 && groups[last][0].Cluster() == target.Cluster() {
			groups[last] = append(groups[last], target)
		} else {
			groups = append(groups, []config.TargetName{target})
		}
	}
	return groups
}

func groupWidth(group []config.TargetName) int {
	return max(len(group), len(group[0].Cluster())) + 2
}

// endOf is the end of a unit's path, where that is too long.
func endOf(path string, columns int) string {
	if len(path) <= columns {
		return path
	}
	return "..." + path[len(path)-columns+3:]
}

// cutTo cuts a text of single-width characters to so many columns.
func cutTo(text string, columns int) string {
	if len(text) <= columns {
		return text
	}
	return text[:max(0, columns-3)] + "..."
}
