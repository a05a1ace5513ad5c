// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
)

// what kind of thing a render read.
type what byte

const (
	readKind       what = 'K' // "apiVersion kind" of a document: the easy kind of that name, or that there is none
	readClaim      what = 'E' // "group kind plural" of a definition: the easy kind that has these names, or that there is none
	readHard       what = 'H' // see [hardName]: a hard kind that is not Kubernetes' own, or that there is none
	readNamed      what = 'N' // a kind's name without its group: what overrides of Defaults find under it
	readFile       what = 'F' // a file of the tree, by its path
	readFolder     what = 'L' // a folder with all that is in it
	readData       what = 'D' // a value of the data files, by its path as [dataName] has it
	readMapping    what = 'M' // that there is a mapping in the data files, by its path
	readChecks     what = 'P' // a kind's name: what Checkers ask about objects of it; empty: of which kinds they ask
	readCollection what = 'C' // the documents that a kind collects, see [collection.String]
	readSpace      what = 'S' // what judges the objects of a namespace, see [spaceName]
	readServed     what = 'V' // the versions and kinds that schemas have, of all clusters of a unit, see [places.clustersOf]
	readUnjudged   what = 'U' // that no policy was asked, as in a [Commit]
	readYAML       what = 'Y' // whether ambiguous values are refused, see [config.Repository.StrictYAML]
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
	case readKind, readNamed, readFile, readFolder, readData, readMapping, readChecks, readUnjudged, readYAML, readServed:
		return true
	case readSpace:
		return strings.Count(r.name, " ") == 1
	case readClaim:
		return strings.Count(r.name, " ") == 2
	case readHard: // nobody has looked at what a document says its kind is
		return strings.Count(r.name, " ") >= 2
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
	known map[named]bool // what is in the list; nil while it is short
}

type named struct {
	what what
	name string
}

// fewReads is as many as are gone through one by one. Most renders read fewer.
const fewReads = 16

func (r *recorder) has(what what, name string) bool {
	if r.known != nil {
		return r.known[named{what, name}]
	}
	return slices.ContainsFunc(r.list, func(known read) bool { return known.what == what && known.name == name })
}

func (r *recorder) note(what what, name string) {
	if !r.has(what, name) {
		r.add(read{what, name, r.world.hash(what, name)})
	}
}

func (r *recorder) add(added read) {
	r.list = append(r.list, added)
	if r.known != nil {
		r.known[named{added.what, added.name}] = true
	} else if len(r.list) > fewReads {
		r.known = make(map[named]bool, 2*len(r.list))
		for _, known := range r.list {
			r.known[named{known.what, known.name}] = true
		}
	}
}

// noteData notes a value of the data files, or only that there is a mapping,
// unless something above it was read as a whole.
func (r *recorder) noteData(path []string, there bool) {
	name := dataName(path)
	for i := range len(name) {
		if name[i] == 0 && r.has(readData, name[:i]) {
			return
		}
	}
	switch {
	case !there:
		r.note(readData, name)
	case !r.has(readData, name):
		r.note(readMapping, name)
	}
}

// Keys may hold any character.
var escape, unescape = strings.NewReplacer("\x00", "\x01a", "\x01", "\x01b"), strings.NewReplacer("\x01a", "\x00", "\x01b", "\x01")

// dataName is a path in the data files as the name of a read: NUL and a key for
// each step. That of what is above a value is the beginning of the value's.
func dataName(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteByte(0)
		b.WriteString(escape.Replace(key))
	}
	return b.String()
}

func dataPath(name string) []string {
	path := strings.Split(name, "\x00")[1:]
	for i, key := range path {
		path[i] = unescape.Replace(key)
	}
	return path
}

func (r *recorder) reads() reads {
	slices.SortFunc(r.list, func(a, b read) int { return cmp.Or(cmp.Compare(a.what, b.what), cmp.Compare(a.name, b.name)) })
	return r.list
}

// unchanged says whether everything is still as it was read.
func (rs reads) unchanged(w *world) bool { return rs.inputsUnchanged(w) && rs.filesUnchanged(w) }

// inputsUnchanged says so of everything but the files and what judges, see
// [world.judgedSo].
func (rs reads) inputsUnchanged(w *world) bool {
	for _, r := range rs {
		if r.what != readFile && r.what != readFolder && r.what != readSpace && w.hash(r.what, r.name) != r.hash {
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
		if (r.what == readFile || r.what == readFolder) && !config.Within(r.name, string(unit)) {
			return true
		}
	}
	return false
}
