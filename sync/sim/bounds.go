// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
)

// where is what a Mask or a Window is about: all that has what is set.
type where struct{ unit, target string }

// has says whether a place is in it. A target is in its cluster.
func (a where) has(at place) bool {
	return config.Within(at.unit, a.unit) && (a.target == "" || a.target == at.target || a.target == clusterOf(at.target))
}

func clusterOf(target string) string {
	cluster, _, _ := strings.Cut(target, "/")
	return cluster
}

func (a where) String() string { return fmt.Sprintf("%q on %q", a.unit, a.target) }

func (a where) document() string {
	var parts []string
	if a.target != "" {
		parts = append(parts, fmt.Sprintf("targets: [%s]", a.target))
	}
	if a.unit != "" {
		parts = append(parts, fmt.Sprintf("units: [%s]", a.unit))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// someWhere is a target or a cluster, a unit, or one on the other.
func (w *world) someWhere() where {
	var a where
	n := w.rand.IntN(3)
	if units := w.git.head.units; n > 0 && len(units) > 0 {
		a.unit = units[w.rand.IntN(len(units))].path
	}
	if n < 2 {
		a.target = w.shape.clusters[w.rand.IntN(len(w.shape.clusters))]
		if cells := w.shape.cells[a.target]; w.rand.IntN(2) == 0 {
			a.target += "/" + cells[w.rand.IntN(len(cells))]
		}
	}
	return a
}

// changeBounds adds a Mask or a Window to a commit, or takes them away.
func (w *world) changeBounds(c *commit) string {
	masks := w.rand.IntN(3) > 0
	list := &c.windows
	if masks {
		list = &c.masks
	}
	if len(*list) > 0 && w.rand.IntN(3) > 0 {
		*list = nil
		return "no Masks, or no Windows"
	}
	a := w.someWhere()
	if a.unit != "" && c.unit(a.unit) == nil {
		return "nothing"
	}
	*list = append(slices.Clone(*list), a)
	return fmt.Sprintf("bounds %s, a Mask %t", a, masks)
}

// boundsFile has the Masks and the Windows of a commit.
func boundsFile(c *commit) string {
	var all []string
	for i, a := range c.masks {
		all = append(all, fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: m%d}\nspec: {where: %s}\n", i, a.document()))
	}
	for i, a := range c.windows {
		all = append(all, fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Window\nmetadata: {name: w%d}\nspec: {action: deny, schedule: %q, duration: 10m, where: %s}\n", i, "*/20 * * * *", a.document()))
	}
	return strings.Join(all, "---\n")
}

// shut says whether the Windows let nothing start at a time: the first ten minutes of
// each twenty.
func shut(at time.Time) bool { return at.UTC().Minute()%20 < 10 }

func (b budget) file() string {
	var parts []string
	if b.units > 0 {
		parts = append(parts, fmt.Sprintf("units: %d", b.units))
	}
	if b.unitsPerTarget > 0 {
		parts = append(parts, fmt.Sprintf("unitsPerTarget: %d", b.unitsPerTarget))
	}
	if b.failedUnits > 0 {
		parts = append(parts, fmt.Sprintf("failedUnits: %d", b.failedUnits-1))
	}
	return "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: sim}\nspec: {checks: {plainSecrets: pass}, release: {budget: {" + strings.Join(parts, ", ") + "}}}\n"
}

// toggleGadget adds a definition that nobody uses, or removes it.
func (w *world) toggleGadget(c *commit) string {
	const path = "services/gadget"
	if u := c.unit(path); u != nil {
		c.units = slices.DeleteFunc(c.units, func(other *unit) bool { return other == u })
		return "removes " + path
	}
	c.units = append(c.units, &unit{path: path, sort: "gadget"})
	return "adds " + path
}

// bad is the newest content of a unit that can only fail; nil where there is none.
func (g *git) bad(path string) *unit {
	for _, c := range slices.Backward(g.order) {
		if u := c.unit(path); u != nil && (u.broken || u.denied) {
			return u
		}
	}
	return nil
}
