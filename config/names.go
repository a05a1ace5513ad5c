// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// Names admits names by patterns, in which * stands for any characters, also for none
// and for slashes. Those after a ! deny what they match, whatever the others say.
// Where no pattern admits anything by itself, all is admitted that none denies; so the
// zero value admits all.
type Names []string

// Admit says whether a name is admitted.
func (n Names) Admit(name string) bool {
	admitted, open := false, true
	for _, pattern := range n {
		if denied, ok := strings.CutPrefix(pattern, "!"); ok {
			if like(denied, name) {
				return false
			}
			continue
		}
		open = false
		admitted = admitted || like(pattern, name)
	}
	return admitted || open
}

// String is the list as a message shows it.
func (n Names) String() string { return strings.Join(n, ", ") }

// AnyLike says whether a pattern with stars matches one of the names.
func AnyLike(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return like(pattern, name) })
}

// like says whether a pattern with stars matches a whole name.
func like(pattern, name string) bool {
	first, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	for {
		part, more, starred := strings.Cut(rest, "*")
		if !starred {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}
