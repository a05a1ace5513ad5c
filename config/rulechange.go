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

	"github.com/swell-sh/swell/config/document"
)

// RuleChanges name what differs in the rules by which two states of a monorepo judge
// and release their units, sorted: "Checker nginx", "CODEOWNERS", "HealthRules", "Mask night",
// "Rollout default (looser)", "Tenant shop", "Window friday", "allowedChanges", "budget", "checks",
// "facts", "policies", and "tenants of Cluster sas-1" for whom it takes.
func RuleChanges(base, head *Repository) (changed []string) {
	for name := range maps.Keys(merged(base.Tenants, head.Tenants)) {
		if !base.Tenants[name].same(head.Tenants[name]) {
			changed = append(changed, "Tenant "+name)
		}
	}
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
	changed = append(changed, changedIn("Mask", base.Masks, head.Masks, (*Mask).content)...)
	changed = append(changed, changedIn("Window", base.Windows, head.Windows, (*Window).content)...)
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

// changedIn are the documents of a kind that are not the same in two lists, by their contents.
func changedIn[T any](kind string, base, head []T, contentOf func(T) (name, text string)) (changed []string) {
	texts := map[string]string{}
	for _, each := range base {
		name, text := contentOf(each)
		texts[name] = text
	}
	for _, each := range head {
		name, text := contentOf(each)
		if before, known := texts[name]; !known || before != text {
			changed = append(changed, kind+" "+name)
		}
		delete(texts, name)
	}
	for name := range texts {
		changed = append(changed, kind+" "+name)
	}
	return changed
}

// content is the Mask's name, and all that it says.
func (m *Mask) content() (name, text string) { return m.Name, fmt.Sprintf("%q %+v", m.Reason, m.Where) }

// content is the Window's name, and all that it says.
func (w *Window) content() (name, text string) {
	return w.Name, fmt.Sprintf("%q %t %+v %+v", w.Reason, w.Deny, w.Where, w.Time)
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
