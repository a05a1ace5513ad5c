// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config"
)

// overlay is a tree in which some folders are those of another tree, and not
// there at all where the other one does not have them.
type overlay struct {
	under, top config.Tree
	replaced   []string // folders; none of them is inside another
}

// layOver replaces folders of a tree by those among the files.
func layOver(tree config.Tree, files []txtar.File, replaced ...string) (config.Tree, error) {
	top, err := txtar.FS(&txtar.Archive{Files: files})
	if err != nil {
		return nil, err
	}
	return &overlay{under: tree, top: config.Files(top), replaced: replaced}, nil
}

// isReplaced says whether a name is of a replaced folder or below it.
func (o *overlay) isReplaced(name string) bool {
	return slices.ContainsFunc(o.replaced, func(folder string) bool { return config.Within(name, folder) })
}

// isAbove says whether a replaced folder is below the one of that name.
func (o *overlay) isAbove(name string) bool {
	return name == "." || slices.ContainsFunc(o.replaced, func(folder string) bool { return strings.HasPrefix(folder, name+"/") })
}

// of is the tree that holds a file.
func (o *overlay) of(name string) config.Tree {
	if o.isReplaced(name) {
		return o.top
	}
	return o.under
}

func (o *overlay) Open(name string) (fs.File, error) { return o.of(name).Open(name) }

func (o *overlay) ReadFile(name string) ([]byte, error) { return o.of(name).ReadFile(name) }

func (o *overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	if !o.isAbove(name) {
		return o.of(name).ReadDir(name)
	}
	under, errUnder := o.under.ReadDir(name)
	top, errTop := o.top.ReadDir(name)
	if errUnder != nil && (errTop != nil || !errors.Is(errUnder, fs.ErrNotExist)) {
		return nil, errUnder
	}
	entries := slices.DeleteFunc(slices.Clone(under), func(e fs.DirEntry) bool {
		path := e.Name()
		if name != "." {
			path = name + "/" + e.Name()
		}
		return o.isReplaced(path) || slices.ContainsFunc(top, func(other fs.DirEntry) bool { return other.Name() == e.Name() })
	})
	entries = append(entries, top...)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (o *overlay) Hash(name string) (string, error) {
	if !o.isAbove(name) {
		return o.of(name).Hash(name)
	}
	under, errUnder := o.under.Hash(name)
	top, errTop := o.top.Hash(name)
	if errUnder != nil && (errTop != nil || !errors.Is(errUnder, fs.ErrNotExist)) {
		return "", errUnder
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s over %s", top, under))
	return hex.EncodeToString(sum[:]), nil
}
