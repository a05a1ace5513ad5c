// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// Merge is base with what changed from origin to head, file by file: lines of one file that
// both sides changed are not put together, and no renames are looked for. both are the files
// that changed in base, too, in another way, sorted; those of head stand. Folders are not read
// where their hashes tell that nothing changed in them, or nothing in base.
func Merge(origin, base, head Tree) (merged Tree, both []string, err error) {
	m := merger{origin: origin, base: base, head: head}
	if err := m.folder(".", true); err != nil {
		return nil, nil, err
	}
	slices.Sort(m.both)
	return Overlay(base, head, m.taken...), m.both, nil
}

// merger is a [Merge] under way.
type merger struct {
	origin, base, head Tree
	taken              []string // of head
	both               []string
}

// folder merges what is in a folder. inOrigin says whether origin has a folder there too; else
// it has nothing below that name.
func (m *merger) folder(dir string, inOrigin bool) error {
	names := map[string]bool{}
	trees := []Tree{m.head}
	if inOrigin {
		trees = append(trees, m.origin)
	}
	for _, tree := range trees {
		entries, err := tree.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !document.IsOddName(err) {
			return err
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := m.path(path.Join(dir, name), inOrigin); err != nil {
			return err
		}
	}
	return nil
}

func (m *merger) path(name string, inOrigin bool) error {
	var is [3]entry
	for i, tree := range []Tree{m.origin, m.base, m.head} {
		if i == 0 && !inOrigin {
			continue
		}
		var err error
		if is[i], err = entryOf(tree, name); err != nil {
			return err
		}
	}
	origin, base, head := is[0], is[1], is[2]
	switch {
	case head == origin, head == base:
	case base == origin:
		m.taken = append(m.taken, name)
	case base.isFolder() && head.isFolder():
		return m.folder(name, origin.folder)
	default:
		m.taken, m.both = append(m.taken, name), append(m.both, name)
	}
	return nil
}

// entry is what a tree has under a name; the zero value is nothing.
type entry struct {
	folder bool
	hash   string // the text of a link; for what has no hash, the reason
}

// isFolder says whether it is a folder, or one without anything in it, which no commit has.
func (e entry) isFolder() bool { return e.folder || e == entry{} }

func entryOf(tree Tree, name string) (entry, error) {
	if links, ok := tree.(LinkTree); ok {
		if to, err := links.ReadLink(name); err == nil {
			return entry{hash: "link " + to}, nil
		}
	}
	hash, err := tree.Hash(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return entry{}, nil
	case err != nil && document.MayPass(err):
		return entry{}, err
	case err != nil && hash == "":
		return entry{hash: "refused " + err.Error()}, nil
	}
	info, err := fs.Stat(tree, name)
	if err != nil {
		return entry{}, err
	}
	return entry{folder: info.IsDir(), hash: hash}, nil
}
