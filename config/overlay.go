// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/swell-sh/swell/config/document"
)

type layered struct {
	under, top Tree
	sorted     []string // what is replaced; nothing of it is inside another
}

// Overlay is a tree in which folders and files are those of another tree, and not there
// at all where that one does not have them. None of them may be inside another.
func Overlay(under, top Tree, replaced ...string) Tree {
	return &layered{under: under, top: top, sorted: slices.Sorted(slices.Values(replaced))}
}

// isReplaced says whether a name is of a replaced folder or below it.
func (o *layered) isReplaced(name string) bool {
	for at := name; ; at = path.Dir(at) {
		if _, found := slices.BinarySearch(o.sorted, at); found || at == "." {
			return found
		}
	}
}

// isAbove says whether a replaced folder is below the one of that name.
func (o *layered) isAbove(name string) bool {
	return name == "." || len(o.below(name)) > 0
}

// below is what is replaced below a folder.
func (o *layered) below(name string) []string {
	if name == "." {
		return o.sorted
	}
	first, _ := slices.BinarySearch(o.sorted, name+"/")
	end, _ := slices.BinarySearch(o.sorted, name+"0") // the character after /
	return o.sorted[first:end]
}

// of is the tree that holds a file.
func (o *layered) of(name string) Tree {
	if o.isReplaced(name) {
		return o.top
	}
	return o.under
}

func (o *layered) Open(name string) (fs.File, error) {
	f, err := o.of(name).Open(name)
	if errors.Is(err, fs.ErrNotExist) && o.isAbove(name) {
		return o.top.Open(name)
	}
	return f, err
}

func (o *layered) ReadFile(name string) ([]byte, error) { return o.of(name).ReadFile(name) }

func (o *layered) ReadDir(name string) ([]fs.DirEntry, error) {
	if !o.isAbove(name) {
		return o.of(name).ReadDir(name)
	}
	under, errUnder := o.under.ReadDir(name)
	top, errTop := o.top.ReadDir(name)
	odd, err := bothOf(errUnder, errTop)
	if err != nil {
		return nil, err
	}
	var entries []fs.DirEntry
	above := map[string]bool{} // folders of top in which something is replaced
	for _, e := range top {
		switch at := path.Join(name, e.Name()); {
		case o.isReplaced(at):
			entries = append(entries, e)
		case o.isAbove(at):
			above[e.Name()] = true
			entries = append(entries, unaddressed{e})
		}
	}
	for _, e := range under {
		switch at := path.Join(name, e.Name()); {
		case o.isReplaced(at) || above[e.Name()]:
		case o.isAbove(at):
			entries = append(entries, unaddressed{e})
		default:
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, odd
}

// bothOf takes the errors of reading a folder in both trees: odd are those that come with a
// result. A folder may be in one of the trees alone.
func bothOf(under, top error) (odd, err error) {
	isRead := func(err error) bool { return err == nil || document.IsOddName(err) }
	missing := func(err error) bool { return errors.Is(err, fs.ErrNotExist) }
	switch {
	case !isRead(under) && (!missing(under) || !isRead(top)):
		return nil, under
	case !isRead(top) && !missing(top):
		return nil, top
	}
	for _, one := range []error{under, top} {
		if document.IsOddName(one) {
			odd = errors.Join(odd, one)
		}
	}
	return odd, nil
}

// ReadLink implements [LinkTree].
func (o *layered) ReadLink(name string) (string, error) {
	if links, ok := o.of(name).(LinkTree); ok {
		return links.ReadLink(name)
	}
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

// Links implements [LinkTree].
func (o *layered) Links(folder string) ([]string, error) {
	trees := []Tree{o.of(folder)}
	if o.isAbove(folder) {
		trees = []Tree{o.under, o.top}
	}
	var all []string
	for _, tree := range trees {
		is, ok := tree.(LinkTree)
		if !ok {
			continue
		}
		links, err := is.Links(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, link := range links {
			if o.of(link) == tree {
				all = append(all, link)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

func (o *layered) Hash(name string) (string, error) {
	if !o.isAbove(name) {
		return o.of(name).Hash(name)
	}
	under, errUnder := o.under.Hash(name)
	top, errTop := o.top.Hash(name)
	odd, err := bothOf(errUnder, errTop)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s over %s\n", top, under)
	for _, replaced := range o.below(name) {
		fmt.Fprintf(sum, "%q\n", replaced)
	}
	return hex.EncodeToString(sum.Sum(nil)), odd
}
