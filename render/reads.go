// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema"
)

// what kind of thing a render read.
type what byte

const (
	readKind       what = 'K' // "apiVersion kind" of a document: the easy kind of that name, or that there is none
	readHard       what = 'H' // "version apiVersion kind": a hard kind that is not Kubernetes' own, or that there is none
	readNamed      what = 'N' // a kind's name without its group: what overrides of Defaults find under it
	readFile       what = 'F' // a file of the tree, by its path
	readFolder     what = 'L' // a folder with all that is in it
	readData       what = 'D' // a value of the data files, by its path
	readCollection what = 'C' // the documents that a kind collects, see [collection.String]
)

// read is one thing that a render read besides what its static key covers, and
// the address of what it found. A result holds for as long as everything that
// was read has the same address.
type read struct {
	what what
	name string
	hash string // empty: it was not there
}

// valid says whether a read can be looked up again.
func (r read) valid() bool {
	switch r.what {
	case readKind, readNamed, readFile, readFolder, readData:
		return true
	case readHard:
		version, _, _ := strings.Cut(r.name, " ")
		_, err := schema.Kubernetes(version)
		return err == nil
	case readCollection:
		return strings.Count(r.name, " ") == 4
	}
	return false
}

// reads are sorted, without repetitions.
type reads []read

// recorder gathers what a render reads.
type recorder struct {
	world *world
	list  []read
}

func (r *recorder) note(what what, name string) {
	for _, known := range r.list {
		if known.what == what && known.name == name {
			return
		}
	}
	r.list = append(r.list, read{what, name, r.world.hash(what, name)})
}

func (r *recorder) reads() reads {
	slices.SortFunc(r.list, func(a, b read) int { return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.name, b.name)) })
	return r.list
}

// unchanged says whether everything is still as it was read.
func (rs reads) unchanged(w *world) bool {
	for _, r := range rs {
		if w.hash(r.what, r.name) != r.hash {
			return false
		}
	}
	return true
}

// filesUnchanged says so of the files alone.
func (rs reads) filesUnchanged(w *world) bool {
	for _, r := range rs {
		if (r.what == readFile || r.what == readFolder) && w.hash(r.what, r.name) != r.hash {
			return false
		}
	}
	return true
}

// elsewhere says whether a file was read that is not in the unit's folder or
// below it.
func (rs reads) elsewhere(unit config.UnitPath) bool {
	for _, r := range rs {
		if (r.what == readFile || r.what == readFolder) && r.name != string(unit) && !strings.HasPrefix(r.name, string(unit)+"/") {
			return true
		}
	}
	return false
}
