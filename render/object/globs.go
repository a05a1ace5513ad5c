// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Globs are patterns of [path.Match]: a "*" stands for anything but a slash.
type Globs []string

// ParseGlobs reads patterns that are separated by commas.
func ParseGlobs(text string) (Globs, error) {
	var all Globs
	for glob := range strings.SplitSeq(text, ",") {
		if glob = strings.TrimSpace(glob); glob == "" {
			continue
		}
		if _, err := path.Match(glob, ""); err != nil {
			return nil, fmt.Errorf("%q is no glob, want one like %q", document.Shorten(glob), "lb.example.com/*")
		}
		all = append(all, glob)
	}
	return all, nil
}

// Match says whether a key matches one of them.
func (g Globs) Match(key string) bool {
	return slices.ContainsFunc(g, func(glob string) bool {
		ok, _ := path.Match(glob, key)
		return ok
	})
}
