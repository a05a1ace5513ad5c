// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// checkNames finds entries of a folder that not every file system tells apart,
// or that people cannot: a problem for each, by its name.
func checkNames(dir string, entries []fs.DirEntry) map[string]document.Problem {
	var found map[string]document.Problem
	add := func(name, format string, args ...any) {
		if found == nil {
			found = map[string]document.Problem{}
		}
		found[name] = document.Problem{Position: document.Position{File: path.Join(dir, name)}, Code: document.CodeFile, Message: fmt.Sprintf(format, args...)}
	}
	first := make(map[string]string, len(entries)) // by the name in lower case
	for _, e := range entries {
		name := e.Name()
		if !document.IsPrintable(name) {
			add(name, "%q: a name with characters that do not show", name)
		}
		folded := strings.ToLower(name)
		if other, ok := first[folded]; ok {
			add(name, "%q: differs from %q in case only, which not every file system tells apart", name, other)
			add(other, "%q: differs from %q in case only, which not every file system tells apart", other, name)
			continue
		}
		first[folded] = name
	}
	return found
}

// with are the defaults with one more problem.
func (d *Defaults) with(p document.Problem) *Defaults {
	held := *d
	held.Problems = append(slices.Clip(held.Problems), p)
	held.Hash += "\x00" + p.String()
	return &held
}
