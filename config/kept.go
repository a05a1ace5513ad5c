// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
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
			return root.kept(string(unit))
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

// kept is Kept for a unit in the folder or below it.
func (f *folder) kept(unit string) string {
	around := []*folder{f} // from the outside in
	for f.path != unit {
		next, _, _ := strings.Cut(strings.TrimPrefix(unit, f.path+"/"), "/")
		if f = f.below(path.Join(f.path, next)); f == nil {
			return ""
		}
		around = append(around, f)
	}
	if f.unit == nil {
		return ""
	}
	const advice = "nothing is deleted; rename or remove the folder to remove the unit"
	for _, k := range f.kustomizations {
		if k.folder() == unit && k.component {
			return fmt.Sprintf("%s: the folder is a Component now, and so no unit: %s", k.file, advice)
		}
	}
	for i := len(around) - 2; i >= 0; i-- {
		all := usesOf(around[i].kustomizations)
		if k := all.baseFor(unit); k != nil {
			return fmt.Sprintf("%s:%d: names the folder, which makes it a base and no unit: %s", k.file, k.folders[unit], advice)
		}
		if k := all.materialFor(unit, true); k != nil {
			return fmt.Sprintf("%s: takes what is in the folder, which makes it no unit of its own: %s", k.file, advice)
		}
	}
	return ""
}
