// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// RuleChanges name what differs in the rules by which two states of a monorepo judge
// and release their units, sorted: "Checker nginx", "CODEOWNERS", "HealthRules", "Mask night",
// "Rollout default (looser)", "Tenant shop", "Window friday", "allowedChanges", "budget", "checks",
// "facts", "policies", and "tenants of Cluster sas-1" for whom it takes.
func RuleChanges(base, head *Repository) (changed []string) {
	changed = append(changed, changedIn("Tenant", base.Tenants, head.Tenants, (*Tenant).same)...)
	for _, c := range head.Clusters {
		i := slices.IndexFunc(base.Clusters, func(was *Cluster) bool { return was.Name == c.Name })
		if i >= 0 && !slices.Equal(base.Clusters[i].Tenants, c.Tenants) {
			changed = append(changed, "tenants of Cluster "+c.Name)
		}
	}
	if base.Owners.hash != head.Owners.hash {
		changed = append(changed, "CODEOWNERS")
	}
	for _, list := range [][2][]*Checker{{base.Checkers, head.Checkers}, {head.Checkers, base.Checkers}} {
		for _, each := range list[0] {
			if !slices.ContainsFunc(list[1], each.Same) || !sameSchema(each, base.Tree, head.Tree) {
				changed = append(changed, "Checker "+each.Name)
			}
		}
	}
	for name := range maps.Keys(merged(base.Rollouts, head.Rollouts)) {
		before, now := base.Rollouts[name], head.Rollouts[name]
		if !before.same(now) {
			changed = append(changed, "Rollout "+name+looserText(now != nil && now.Stricter(before) != now))
		}
	}
	if before, now := base.Release.Budget, head.Release.Budget; !reflect.DeepEqual(before, now) {
		changed = append(changed, "budget"+looserText(!reflect.DeepEqual(now.Stricter(before), now)))
	}
	masks, windows := func(m *Mask) string { return m.Name }, func(w *Window) string { return w.Name }
	changed = append(changed, changedIn("Mask", byName(base.Masks, masks), byName(head.Masks, masks), (*Mask).same)...)
	changed = append(changed, changedIn("Window", byName(base.Windows, windows), byName(head.Windows, windows), (*Window).same)...)
	for name, differ := range map[string]bool{
		"allowedChanges": !slices.EqualFunc(base.AllowedChanges, head.AllowedChanges, sameAllowed), "checks": base.Checks != head.Checks,
		"HealthRules": !slices.EqualFunc(base.HealthRules, head.HealthRules, (*HealthRule).same),
		"facts":       base.layout.facts != head.layout.facts || !SameFiles(base.Tree, head.Tree, head.layout.facts),
		"policies":    base.layout.policies != head.layout.policies || !SameFiles(base.Tree, head.Tree, head.layout.policies),
	} {
		if differ {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// looserText says of a Rollout or budget that it is looser than it was: see [Rollout.Stricter].
func looserText(isLooser bool) string {
	if isLooser {
		return " (looser)"
	}
	return ""
}

// changedIn are the documents of a kind that are not the same in two states, by their names. One
// of the two that are compared may be the zero value: the document is not there.
func changedIn[T any](kind string, base, head map[string]T, same func(T, T) bool) (changed []string) {
	for name := range merged(base, head) {
		if !same(base[name], head[name]) {
			changed = append(changed, kind+" "+name)
		}
	}
	return changed
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
	return sameBut(*t, *other, func(t *Tenant) *document.Position { return &t.Position })
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
	was, lost := base.Hash(c.Schema)
	is, missing := head.Hash(c.Schema)
	return was == is && (lost == nil) == (missing == nil)
}

func sameAllowed(a, b AllowedChange) bool {
	return a.Rule == b.Rule && a.At == b.At && a.Reason == b.Reason
}
