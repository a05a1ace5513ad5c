// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"github.com/swell-sh/swell/config"
)

// maxCompared ends the comparison of trees whose folders hold each other many
// times over: a few kilobytes of Git can mean billions of files.
const maxCompared = 2 << 20

var errTooManyChanges = errors.New("more than 2,097,152 files and folders differ")

// Changed lists the files that differ between two commits, in their content,
// their type or their executable bit, sorted. Links and submodules count as
// files. A file that was moved is there under both names. An empty commit has
// no files.
//
// Folders of equal hash are not looked into, so this takes as long as the
// change is large.
func (s *Source) Changed(from, to config.Commit) ([]string, error) {
	var roots [2]*entry
	for i, commit := range []config.Commit{from, to} {
		if commit == "" {
			continue
		}
		root, err := s.root(commit)
		if err != nil {
			return nil, err
		}
		roots[i] = &entry{hash: root, mode: fs.ModeDir | 0o555}
	}
	d := difference{source: s}
	if err := d.compare(roots[0], roots[1], ""); err != nil {
		return nil, s.wrap("changed from "+from.Short()+" to "+to.Short(), err)
	}
	slices.Sort(d.paths)
	return slices.Compact(d.paths), nil
}

type difference struct {
	source   *Source
	paths    []string
	compared int
}

// compare adds what differs between two entries of one path; nil is none.
func (d *difference) compare(from, to *entry, path string) error {
	if from != nil && to != nil && from.hash == to.hash && from.mode == to.mode {
		return nil
	}
	a, err := d.open(from, path)
	if err != nil {
		return err
	}
	b, err := d.open(to, path)
	if err != nil {
		return err
	}
	if path != "" {
		path += "/"
	}
	for len(a) > 0 || len(b) > 0 {
		var x, y *entry
		var name string
		if len(b) == 0 || len(a) > 0 && a[0].name <= b[0].name {
			x, name = &a[0], a[0].name
		}
		if len(a) == 0 || len(b) > 0 && b[0].name <= a[0].name {
			y, name = &b[0], b[0].name
		}
		if x != nil {
			a = a[1:]
		}
		if y != nil {
			b = b[1:]
		}
		if err := d.compare(x, y, path+name); err != nil {
			return err
		}
	}
	return nil
}

// open returns the entries of a folder. Anything else is a changed file.
func (d *difference) open(e *entry, path string) ([]entry, error) {
	if e == nil {
		return nil, nil
	}
	if d.compared++; d.compared > maxCompared {
		return nil, errTooManyChanges
	}
	if !e.mode.IsDir() {
		d.paths = append(d.paths, path)
		return nil, nil
	}
	f, err := d.source.folder(e.hash)
	if err = cmp.Or(err, f.odd); err != nil {
		if path == "" {
			path = "."
		}
		return nil, &fs.PathError{Op: "readdir", Path: path, Err: err}
	}
	return f.entries, nil
}
