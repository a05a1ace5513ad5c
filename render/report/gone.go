// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/diff"
)

// gone are the changes after which a cluster has an object no more, if only for a while, or
// swell no more.
func (c *Change) gone() []diff.Change { return c.of(append(slices.Clip(going), diff.Replaced)...) }

// goneLines are the same for a reader: a cluster that leaves in a few lines, and units that lose alike
// once.
func (c *Change) goneLines() (lines []string) {
	isForgotten := func(change diff.Change) bool { return change.Action == diff.Forgotten }
	all := c.gone()
	for _, name := range departing(all) {
		lines = append(lines, departure(name, all)...)
	}
	for _, g := range groupsOf(&diff.Report{Changes: slices.DeleteFunc(all, isForgotten)}) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, g.lines()...)
	}
	return lines
}

// departing are the clusters that leave the fleet, sorted.
func departing(changes []diff.Change) []string {
	names := map[string]bool{}
	for _, change := range changes {
		if change.Action != diff.Forgotten {
			continue
		}
		for _, target := range change.Targets {
			names[target.Cluster()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// departure says what stays in a cluster that leaves the fleet: how much, of what kinds, and of
// which units.
func departure(cluster string, changes []diff.Change) []string {
	kinds, units, total := map[string]int{}, map[config.UnitPath]bool{}, 0
	for _, change := range changes {
		kind, _, _ := strings.Cut(change.Object, "/")
		for _, target := range change.Targets {
			if change.Action == diff.Forgotten && target.Cluster() == cluster {
				kinds[kind]++
				units[change.Unit] = true
				total++
			}
		}
	}
	var counts, names []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		counts = append(counts, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		names = append(names, string(unit))
	}
	return []string{
		fmt.Sprintf("cluster %s leaves the fleet: %s of %s stay there, and are forgotten after approval",
			cluster, document.Count(total, "object"), document.Count(len(units), "unit")),
		"  " + strings.Join(counts, ", "),
		"  of " + document.Some(names, maxNames),
	}
}
