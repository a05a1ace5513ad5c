// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
)

// commit makes a new commit out of the newest one.
func (w *world) commit() string {
	g := w.git
	next := &commit{held: g.head.held && w.rand.IntN(3) > 0, units: slices.Clone(g.head.units), masks: g.head.masks, windows: g.head.windows}
	text := ""
	for range pick(w.rand, 1, 1, 1, 2, 3) {
		text += w.change(next) + "; "
	}
	g.push(next)
	return next.id.Short() + " by " + next.author + " " + text
}

// takeBack kills the process while it writes, and commits what was there before.
func (w *world) takeBack() string {
	g := w.git
	if w.writtenTo() == "" || len(g.order) < 2 {
		return ""
	}
	before := g.order[len(g.order)-2]
	w.killNow()
	g.push(&commit{held: before.held, units: slices.Clone(before.units), masks: before.masks, windows: before.windows})
	return "killed, and " + g.head.id.Short() + " is as " + before.id.Short()
}

// alter replaces a unit by a changed copy.
func (c *commit) alter(u *unit, change func(*unit)) {
	next := *u
	next.configs = slices.Clone(u.configs)
	change(&next)
	c.units[slices.Index(c.units, u)] = &next
}

func (c *commit) apps() (all []*unit) {
	for _, u := range c.units {
		if u.sort == "app" {
			all = append(all, u)
		}
	}
	return all
}

// change makes one change in a commit.
func (w *world) change(c *commit) string {
	g, apps := w.git, c.apps()
	n := w.rand.IntN(100)
	switch {
	case n >= 92:
		return w.changeFleet(c, n)
	case n >= 88:
		return w.changeBounds(c)
	}
	if len(apps) == 0 || n >= 84 {
		if w.rand.IntN(3) == 0 {
			return w.toggleGadget(c)
		}
		if c.unit("services/crd") == nil {
			c.units = append(c.units, &unit{path: "services/crd", sort: "crd"})
			return "adds services/crd"
		}
		for i, name := range appNames {
			if !slices.ContainsFunc(c.units, func(u *unit) bool { return u.name == name }) {
				u := g.newApp(w.rand, i)
				c.units = append(c.units, u)
				return "adds " + u.path
			}
		}
		return "nothing"
	}
	if said := w.again(c); said != "" {
		return said
	}
	u := apps[w.rand.IntN(len(apps))]
	said := ""
	c.alter(u, func(next *unit) {
		fresh := func() { next.v, next.broken, next.denied, next.frozen = g.version(), false, false, false }
		switch {
		case n < 25:
			fresh()
			said = "content"
		case n < 32:
			fresh()
			next.broken, next.workload = true, true
			said = "a broken image"
		case n < 37:
			fresh()
			next.denied, next.workload = true, true
			said = "what admission denies"
		case n < 46:
			next.cv = g.version()
			said = "content of ConfigMaps"
		case n < 52:
			next.configs = append(next.configs, fmt.Sprintf("%s-c%d", u.name, 10+g.version()))
			said = "one more ConfigMap"
		case n < 58 && len(next.configs) > 1:
			next.configs = next.configs[1:]
			said = "one ConfigMap less"
		case n < 62:
			next.workload = !next.workload
			fresh()
			said = fmt.Sprintf("workload %t", next.workload)
		case n < 65:
			next.widget = !next.widget
			said = fmt.Sprintf("widget %t", next.widget)
		case n < 68:
			next.hook = w.shape.hookOf(next.name, pick(w.rand, "", "before", "after"))
			fresh()
			said = "hook " + next.hook
		case n < 70:
			next.hashed = !next.hashed
			said = fmt.Sprintf("hashed %t", next.hashed)
		case n < 72:
			next.secret = !next.secret
			said = fmt.Sprintf("secret %t", next.secret)
		case n < 76:
			next.frozen = !next.frozen
			said = fmt.Sprintf("frozen %t", next.frozen)
		case n < 79: // back to how it was in some earlier commit, best one that failed
			old := g.order[w.rand.IntN(len(g.order))].unit(u.path)
			if bad := g.bad(u.path); bad != nil && w.rand.IntN(2) == 0 {
				old = bad
			}
			if old != nil {
				*next = *old
				said = fmt.Sprintf("revert to %d", old.v)
			}
		}
	})
	if said != "" {
		return fmt.Sprintf("%s: %s", u.path, said)
	}
	return w.restructure(c, c.apps()[slices.Index(apps, u)], n)
}

// again brings what was rolled back once more, or takes it away so that it can come again;
// empty when it does neither.
func (w *world) again(c *commit) string {
	for _, path := range sorted(w.judge.turnedBack) {
		bad, is := w.judge.turnedBack[path], c.unit(path)
		if is == nil || w.rand.IntN(3) > 0 {
			continue
		}
		if is.v == bad.v && is.cv == bad.cv {
			c.alter(is, func(next *unit) { next.v, next.broken, next.denied = w.git.version(), false, false })
			return path + ": content"
		}
		c.alter(is, func(next *unit) { *next = *bad })
		return path + ": what failed"
	}
	return ""
}

// restructure removes, renames or moves.
func (w *world) restructure(c *commit, u *unit, n int) string {
	switch {
	case n < 81 && w.rand.IntN(4) == 0:
		c.units = slices.DeleteFunc(c.units, func(other *unit) bool { return other.sort == "crd" })
		return "removes services/crd"
	case n < 81:
		c.units = slices.DeleteFunc(c.units, func(other *unit) bool { return other == u })
		return "removes " + u.path
	case n < 83:
		path := "services/" + u.name
		if u.path == path {
			path += "-2"
		}
		c.alter(u, func(next *unit) { next.path = path })
		return "renames " + u.path
	}
	for _, other := range c.apps() {
		if other == u || len(u.configs) == 0 {
			continue
		}
		name := u.configs[len(u.configs)-1]
		if slices.Contains(other.configs, name) {
			continue
		}
		c.alter(u, func(next *unit) { next.configs = next.configs[:len(next.configs)-1] })
		c.alter(other, func(next *unit) { next.configs = append(next.configs, name) })
		return fmt.Sprintf("moves %s from %s to %s", name, u.path, other.path)
	}
	return "nothing"
}

// changeFleet changes what all units share, or the branch.
func (w *world) changeFleet(c *commit, n int) string {
	switch {
	case n < 95:
		c.held = !c.held
		return fmt.Sprintf("held %t", c.held)
	case n < 96: // the branch is set back
		old := w.git.order[w.rand.IntN(len(w.git.order))]
		c.units, c.held, c.masks, c.windows = slices.Clone(old.units), old.held, old.masks, old.windows
		return "back to " + old.id.Short()
	case n < 97: // and what was there is gone
		for _, old := range w.git.order {
			if w.rand.IntN(2) == 0 {
				w.git.lost[old.id] = true
			}
		}
		return "history rewritten"
	}
	for _, u := range c.apps() { // as a change of a kind does
		c.alter(u, func(next *unit) {
			if next.hashed = false; len(next.configs) > 1 && n < 99 {
				next.configs = next.configs[:1]
			}
			next.cv = w.git.version()
		})
	}
	return "all apps"
}
