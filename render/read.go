// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/swell-sh/swell/config"

// read is a file or folder that a unit depends on, and its hash at that time;
// an empty one when there was nothing of that name.
type read struct{ name, hash string }

func readsOf(tree config.Tree, names []string) []read {
	reads := make([]read, len(names))
	for i, name := range names {
		reads[i] = read{name, hashOf(tree, name)}
	}
	return reads
}

// unchanged says whether everything that was read is still the same.
func unchanged(tree config.Tree, reads []read) bool {
	for _, r := range reads {
		if hashOf(tree, r.name) != r.hash {
			return false
		}
	}
	return true
}

func hashOf(tree config.Tree, name string) string {
	hash, err := tree.Hash(name)
	if err != nil {
		return ""
	}
	return hash
}
