// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// RuleChange is a rule by which a monorepo judges or releases its units, and that two states of it
// do not have in the same words.
type RuleChange struct {
	// Name is the rule, with what became of it: "Rollout default (looser)", "Mask night (new)",
	// "Tenant shop (removed)", "move from Tenant shop to Tenant pay"; or "CODEOWNERS", "HealthRules",
	// "allowedChanges", "budget", "checks", "facts", "policies", "tenants of Cluster sas-1".
	Name string
	// Fields are those that changed: "waves[canary].soak: 60s -> 0s". Nil where they are not told.
	Fields []string
	// Units are those that it concerns, sorted. Nil where that is not known; empty for none.
	Units []UnitPath
}

// String is the change in a line, with the first of its fields and units.
func (c RuleChange) String() string {
	text := c.Name
	if len(c.Fields) > 0 {
		text += ": " + document.SomeTexts(c.Fields, 5)
	}
	if c.Units == nil {
		return text
	}
	if len(c.Units) == 0 {
		return text + "; it is about no unit"
	}
	names := make([]string, 0, len(c.Units))
	for _, unit := range c.Units[:min(len(c.Units), 4)] {
		names = append(names, document.Printable(string(unit)))
	}
	first := strings.Join(names[:min(len(names), 3)], ", ")
	if more := len(c.Units) - 3; more > 0 {
		first += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s; it is about %s: %s", text, document.Count(len(c.Units), "unit"), first)
}

// RuleLines are changes as lines of text.
func RuleLines(changes []RuleChange) (lines []string) {
	for _, c := range changes {
		lines = append(lines, c.String())
	}
	return lines
}

// RuleChanges are what differs in the rules by which two states of a monorepo judge and release
// their units, sorted by name. A unit that moves to another Tenant or Rollout is among them.
func RuleChanges(base, head *Repository) []RuleChange {
	c := &ruleComparison{base: base, head: head, places: map[placeScope][]Place{}}
	c.compareTenants()
	c.compareCheckers()
	c.compareReleases()
	c.compareWheres()
	c.compareMoves()
	c.comparePolicies()
	for name, differ := range map[string]bool{
		"HealthRules": !slices.EqualFunc(base.HealthRules, head.HealthRules, (*HealthRule).same),
		"facts":       base.layout.facts != head.layout.facts || !SameFiles(base.Tree, head.Tree, head.layout.facts),
	} {
		if differ {
			c.add(RuleChange{Name: name})
		}
	}
	slices.SortFunc(c.changed, func(a, b RuleChange) int { return strings.Compare(a.Name, b.Name) })
	return c.changed
}

// ruleComparison is two states of a monorepo that are compared.
type ruleComparison struct {
	base, head *Repository
	changed    []RuleChange
	places     map[placeScope][]Place // of head, see [ruleComparison.placesOf]
}

func (c *ruleComparison) add(change RuleChange) { c.changed = append(c.changed, change) }

// addDocument adds a document of the fleet that differs; one of the two is nil where it is not
// there.
func (c *ruleComparison) addDocument(name string, before, now *document.Document, units []UnitPath) {
	switch {
	case before == nil:
		name += " (new)"
	case now == nil:
		name += " (removed)"
	}
	c.add(RuleChange{Name: name, Fields: changedFields(plainOf(before, "spec"), plainOf(now, "spec")), Units: units})
}

func (c *ruleComparison) compareTenants() {
	for name := range merged(c.base.Tenants, c.head.Tenants) {
		before, now := c.base.Tenants[name], c.head.Tenants[name]
		if !before.same(now) {
			ofTenant := func(unit *Unit) bool { return unit.Defaults.Tenant == name }
			c.addDocument("Tenant "+name, before.document(), now.document(), c.unitsWhere(ofTenant))
		}
	}
	for _, cluster := range c.head.Clusters {
		i := slices.IndexFunc(c.base.Clusters, func(was *Cluster) bool { return was.Name == cluster.Name })
		if i >= 0 && !slices.Equal(c.base.Clusters[i].Tenants, cluster.Tenants) {
			fields := changedFields(anyList(c.base.Clusters[i].Tenants), anyList(cluster.Tenants))
			c.add(RuleChange{Name: "tenants of Cluster " + cluster.Name, Fields: fields})
		}
	}
	areRead := c.base.Owners.File != "" && c.head.Owners.File != "" // not where no Tenant asks, or the fleet has problems
	if areRead && c.base.Owners.hash != c.head.Owners.hash {
		c.add(RuleChange{Name: "CODEOWNERS", Fields: changedFields(c.base.Owners.rules(), c.head.Owners.rules()), Units: c.unitsOfOwners()})
	}
}

func (c *ruleComparison) compareCheckers() {
	names := map[string]bool{}
	for _, list := range [][2][]*Checker{{c.base.Checkers, c.head.Checkers}, {c.head.Checkers, c.base.Checkers}} {
		for _, each := range list[0] {
			if !slices.ContainsFunc(list[1], each.Same) || !sameSchema(each, c.base.Tree, c.head.Tree) {
				names[each.Name] = true
			}
		}
	}
	for name := range names {
		c.addDocument("Checker "+name, checkerDocument(c.base.Checkers, name), checkerDocument(c.head.Checkers, name), nil)
		if change := &c.changed[len(c.changed)-1]; len(change.Fields) == 0 {
			change.Fields = []string{"the file of its schema has changed"}
		}
	}
}

// compareReleases compares Rollouts, the budget and what becomes of what checks find.
func (c *ruleComparison) compareReleases() {
	for name := range merged(c.base.Rollouts, c.head.Rollouts) {
		before, now := c.base.Rollouts[name], c.head.Rollouts[name]
		if !before.same(now) {
			byRollout := func(unit *Unit) bool { return unit.Defaults.Rollout == name }
			text := "Rollout " + name + looserText(now != nil && now.Stricter(before) != now)
			c.addDocument(text, c.base.rolloutDocument(name), c.head.rolloutDocument(name), c.unitsWhere(byRollout))
		}
	}
	settings := func(path ...string) []string {
		path = append([]string{"spec"}, path...)
		return changedFields(plainOf(c.base.settings(), path...), plainOf(c.head.settings(), path...))
	}
	if before, now := c.base.Release.Budget, c.head.Release.Budget; !reflect.DeepEqual(before, now) {
		name := "budget" + looserText(!reflect.DeepEqual(now.Stricter(before), now))
		c.add(RuleChange{Name: name, Fields: settings("release", "budget"), Units: c.unitsWhere(func(*Unit) bool { return true })})
	}
	if !slices.EqualFunc(c.base.AllowedChanges, c.head.AllowedChanges, sameAllowed) {
		c.add(RuleChange{Name: "allowedChanges", Fields: settings("checks", "allowedChanges")})
	}
	if c.base.Checks != c.head.Checks {
		fields := slices.DeleteFunc(settings("checks"), func(field string) bool { return strings.HasPrefix(field, "allowedChanges") })
		c.add(RuleChange{Name: "checks", Fields: fields})
	}
}

// compareWheres compares Masks and Windows.
func (c *ruleComparison) compareWheres() {
	beforeMasks, masks := byName(c.base.Masks, (*Mask).name), byName(c.head.Masks, (*Mask).name)
	for name := range merged(beforeMasks, masks) {
		if before, now := beforeMasks[name], masks[name]; !before.same(now) {
			c.addDocument("Mask "+name, before.document(), now.document(), c.unitsIn(before.where(), now.where(), false))
		}
	}
	beforeWindows, windows := byName(c.base.Windows, (*Window).name), byName(c.head.Windows, (*Window).name)
	for name := range merged(beforeWindows, windows) {
		if before, now := beforeWindows[name], windows[name]; !before.same(now) {
			isOther := before == nil || now == nil || before.Deny != now.Deny || before.Time != now.Time
			c.addDocument("Window "+name, before.document(), now.document(), c.unitsIn(before.where(), now.where(), isOther))
		}
	}
}

// comparePolicies compares the documents of the folder of policies, whatever files they stand in.
func (c *ruleComparison) comparePolicies() {
	if c.base.layout.policies == c.head.layout.policies && SameFiles(c.base.Tree, c.head.Tree, c.head.layout.policies) {
		return
	}
	var fields []string
	before, now := c.base.policyDocuments(), c.head.policyDocuments()
	for _, name := range slices.Sorted(maps.Keys(merged(before, now))) {
		was, is := before[name], now[name]
		switch {
		case was == nil:
			fields = append(fields, name+" (new)")
		case is == nil:
			fields = append(fields, name+" (removed)")
		default:
			for _, field := range changedFields(was, is) {
				fields = append(fields, name+": "+field)
			}
		}
	}
	c.add(RuleChange{Name: "policies", Fields: fields})
}

// compareMoves finds units that have another Tenant or Rollout than they had.
func (c *ruleComparison) compareMoves() {
	type move struct{ kind, from, to string }
	moved := map[move][]UnitPath{}
	for path, before := range c.head.Moved(c.base) {
		now := c.head.Unit(path).Defaults
		for _, m := range []move{{"Tenant", before.Tenant, now.Tenant}, {"Rollout", before.Rollout, now.Rollout}} {
			if m.from != m.to {
				moved[m] = append(moved[m], path)
			}
		}
	}
	for m, units := range moved {
		slices.Sort(units)
		name := func(name string) string {
			if name == "" {
				return "no " + m.kind
			}
			return m.kind + " " + document.Shorten(name)
		}
		c.add(RuleChange{Name: fmt.Sprintf("move from %s to %s", name(m.from), name(m.to)), Units: units})
	}
}

// looserText says of a Rollout or budget that it is looser than it was: see [Rollout.Stricter].
func looserText(isLooser bool) string {
	if isLooser {
		return " (looser)"
	}
	return ""
}

func byName[T any](list []T, nameOf func(T) string) map[string]T {
	named := make(map[string]T, len(list))
	for _, each := range list {
		named[nameOf(each)] = each
	}
	return named
}

// SameFiles says whether a folder, which need not be there, has the same files in two trees.
// Folders of two sorts of trees may be the same although their own hashes differ.
func SameFiles(base, head Tree, folder string) bool {
	was, lost := base.Hash(folder)
	is, missing := head.Hash(folder)
	return lost == nil && missing == nil && was == is || slices.Equal(filesOf(base, folder), filesOf(head, folder))
}

// filesOf are the names and hashes of all files of a folder.
func filesOf(tree Tree, folder string) (all []string) {
	_ = fs.WalkDir(tree, folder, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil: // what cannot be read is a problem of the snapshot
			all = append(all, name+" "+err.Error())
			return nil
		case e.IsDir():
			return nil
		}
		hash, err := tree.Hash(name)
		if err != nil {
			hash = err.Error()
		}
		all = append(all, path.Clean(name)+" "+hash)
		return nil
	})
	return all
}

func merged[T any](a, b map[string]T) map[string]T {
	both := map[string]T{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// sameBut says whether two documents say the same, wherever they stand.
func sameBut[T any](a, b T, place func(*T) *document.Position) bool {
	*place(&a), *place(&b) = document.Position{}, document.Position{}
	return reflect.DeepEqual(a, b)
}

// same says whether two tenants say the same; either may be nil.
func (t *Tenant) same(other *Tenant) bool {
	if t == nil || other == nil {
		return t == other
	}
	a, b := *t, *other
	a.doc, b.doc = nil, nil
	return sameBut(a, b, func(t *Tenant) *document.Position { return &t.Position })
}

// same says whether two Rollouts release alike; either may be nil.
func (r *Rollout) same(other *Rollout) bool {
	if r == nil || other == nil {
		return r == other
	}
	return sameBut(*r, *other, func(r *Rollout) *document.Position { return &r.Position })
}

// same says whether two Masks say the same; either may be nil.
func (m *Mask) same(other *Mask) bool {
	if m == nil || other == nil {
		return m == other
	}
	return m.Reason == other.Reason && reflect.DeepEqual(m.Where, other.Where)
}

// same says whether two Windows say the same; either may be nil.
func (w *Window) same(other *Window) bool {
	if w == nil || other == nil {
		return w == other
	}
	sameTime := w.Deny == other.Deny && w.Time == other.Time
	return sameTime && w.Reason == other.Reason && reflect.DeepEqual(w.Where, other.Where)
}

// same says whether two rules say the same.
func (r *HealthRule) same(other *HealthRule) bool {
	return r.Group == other.Group && r.Kind == other.Kind && r.Healthy.Text == other.Healthy.Text && r.Failed.Text == other.Failed.Text && r.Reason.Text == other.Reason.Text
}

// Same says whether two Checkers say the same, wherever they stand.
func (c *Checker) Same(other *Checker) bool {
	a, b := *c, *other
	a.doc, b.doc = nil, nil
	return sameBut(a, b, func(c *Checker) *document.Position { return &c.Position })
}

// sameSchema says whether the schema that a Checker judges by is the same in both trees.
// A Checker that judges by none has the same.
func sameSchema(c *Checker, base, head Tree) bool {
	if c.Schema == "" {
		return true
	}
	before, lost := base.Hash(c.Schema)
	after, missing := head.Hash(c.Schema)
	return before == after && (lost == nil) == (missing == nil)
}

func sameAllowed(a, b AllowedChange) bool {
	return a.Rule == b.Rule && a.At == b.At && a.Reason == b.Reason
}
