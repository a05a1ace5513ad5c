// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Kept says why a unit that is none of [Repository.Units] is not gone; empty when it
// is gone. When another file turns a unit into something else, that is more often a
// mistake than a wish, and removing the unit would delete its objects. So only the
// removal of its folder removes the unit.
func (r *Repository) Kept(unit UnitPath) string {
	for _, root := range r.roots {
		if Within(string(unit), root.path) {
			return root.kept(string(unit), r.bases)
		}
	}
	_, err := r.Tree.Hash(string(unit))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("%s: %s", unit, document.Cause(err))
	}
	return "swell.yaml names no folder of units any more that the unit is in, but it is still there: nothing is deleted; remove its folder to remove it"
}

// Orphans says whether the objects of a unit stay in the clusters, and belong to nobody,
// when Git no longer has them: the nearest Defaults of the folders on its path that are
// there say prune: keep, also where the folder itself is gone. With unit: false in the
// folder, that is the unit as a whole. Where it cannot be read what they say, nothing may
// be deleted.
func (r *Repository) Orphans(unit UnitPath) bool {
	if known, ok := r.orphans.Load(unit); ok {
		return known.(bool)
	}
	keeps, dir := false, "."
	for part := range strings.SplitSeq(string(unit), "/") {
		dir = path.Join(dir, part)
		file := path.Join(dir, SettingsFile)
		if file == SettingsFile { // a unit at the root: that is the Repository
			continue
		}
		content, err := r.Tree.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		d := Defaults{Keeps: keeps, Policy: &Policy{}}
		if err != nil || len(d.mergeFile(file, content)) > 0 {
			keeps = true
			break
		}
		keeps = d.Keeps
	}
	r.orphans.Store(unit, keeps)
	return keeps
}

// released says whether a folder's Defaults give up the unit in it.
func (f *folder) released() bool {
	return f.unit.Declared != nil && !*f.unit.Declared && f.unit.Defaults.Keeps
}

const keptAdvice = "nothing is deleted; rename or remove the folder to remove the unit"

// kept is Kept for a unit in the folder or below it.
func (f *folder) kept(unit string, named *bases) string {
	around := []*folder{f} // from the outside in
	for f.path != unit {
		next, _, _ := strings.Cut(strings.TrimPrefix(unit, f.path+"/"), "/")
		sub := path.Join(f.path, next)
		if i := slices.IndexFunc(f.left, func(left LeftOut) bool { return left.Path == sub }); i >= 0 {
			return sub + ": " + f.left[i].Why + ": " + keptAdvice
		}
		if f = f.below(sub); f == nil {
			return ""
		}
		around = append(around, f)
	}
	switch {
	case f.unit == nil && len(f.left) > 0: // what it held may be among that
		return f.left[0].Path + ": " + f.left[0].Why + ": " + keptAdvice
	case f.unit == nil, f.released():
		return ""
	}
	for _, k := range f.kustomizations {
		if k.folder() == unit && k.component {
			return fmt.Sprintf("%s: the folder is a Component now, and so no unit: %s", k.file, keptAdvice)
		}
	}
	if why := named.kept(f.unit); why != "" {
		return why
	}
	for i := len(around) - 2; i >= 0; i-- {
		all := usesOf(around[i].kustomizations)
		if k := all.materialFor(unit, true); k != nil {
			return fmt.Sprintf("%s: takes what is in the folder, which makes it no unit of its own: %s", k.file, keptAdvice)
		}
	}
	return ""
}
