// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/swell-sh/swell/config/document"
)

// selection says which folders hold units, as spec.units of a Repository does: patterns
// of paths from the root, in which * stands for a part of a name and ** for any folders.
// A folder is taken with all that is below it, unless a pattern after a ! leaves it out.
type selection struct {
	take, leave []string
	// reserved are the folders that hold something else.
	reserved []string
}

// selectionOf reads spec.units. It returns the folders to begin at as well: what stands
// before the first star of each pattern, none of them within another one.
func (in *reading) selectionOf(patterns []string) (s selection, roots []string) {
	for i, pattern := range patterns {
		text, leaves := strings.CutPrefix(pattern, "!")
		if text != path.Clean(text) || path.IsAbs(text) || text == ".." || strings.HasPrefix(text, "../") || !doublestar.ValidatePattern(text) {
			in.at("spec", "units", i).problem(document.CodeType, "%q: want a folder relative to the root, like %q, or a pattern of folders, like %q or %q", document.Shorten(pattern), "services", "teams/*/services", "!services/old")
			continue
		}
		if leaves {
			s.leave = append(s.leave, text)
			continue
		}
		s.take = append(s.take, text)
		root, _ := doublestar.SplitPattern(text)
		if !isPattern(text) {
			root = text
		}
		roots = append(roots, root)
	}
	return s, roots
}

// isPattern says whether a path stands for others than itself.
func isPattern(text string) bool { return text == "." || strings.ContainsAny(text, `*?[{\`) }

// outermost are the folders that are within no other one of them, each once.
func outermost(folders []string) (all []string) {
	for i, folder := range folders {
		inner := slices.ContainsFunc(folders, func(other string) bool { return other != folder && Within(folder, other) })
		if !inner && !slices.Contains(folders[:i], folder) {
			all = append(all, folder)
		}
	}
	return all
}

// takes says whether the patterns take a folder by its own path.
func (s *selection) takes(folder string) bool {
	return slices.ContainsFunc(s.take, func(pattern string) bool { return pattern == "." || matches(pattern, folder) })
}

// leaves says why a file or folder is left out; empty when it is not.
func (s *selection) leaves(name string) string {
	for _, pattern := range s.leave {
		if matches(pattern, name) {
			return fmt.Sprintf("%s leaves it out: spec.units has %q", SettingsFile, "!"+pattern)
		}
	}
	return ""
}

// matches says whether a whole path is like a pattern that is known to be valid.
func matches(pattern, name string) bool {
	ok, _ := doublestar.Match(pattern, name)
	return ok
}
