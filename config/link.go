// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swell-sh/swell/config/document"
)

// LinkTree is a [Tree] that tells where its symbolic links lead. It follows none.
type LinkTree interface {
	Tree
	// ReadLink is the text of a link; an error where the name is that of none.
	ReadLink(name string) (string, error)
	// Links are the paths of the links in a folder and below it, sorted. More than
	// [MaxLinks] are an error.
	Links(folder string) ([]string, error)
}

// MaxLinks is how many symbolic links may stand in the folder of a unit. Of folders with more in
// them and below it is not known where these lead.
const MaxLinks = 10_000

// ErrLinks is the error of a folder with more than [MaxLinks] in it and below.
var ErrLinks = document.Refusal(fmt.Sprintf("more than %d symbolic links in it", MaxLinks))

// maxHops is how many links may lead from one to another.
const maxHops = 8

// maxTarget is the length of the text of a link, in bytes.
const maxTarget = 1000

// followed is a tree in which links to files are followed where units stand. A file has
// the address and the content of what its link leads to. The address of a folder covers
// what the links in it lead to, so a unit is rendered again when that changes.
//
// Links are listed as such. Links to folders are not followed: a folder would be a unit, a
// base or a part of a chart under two names.
type followed struct {
	LinkTree
	roots    []string // where units stand
	reserved []string // folders with something else
}

// following is a tree with its links followed where units stand, if it has any.
func following(tree Tree, roots, reserved []string) Tree {
	if links, ok := tree.(LinkTree); ok {
		return &followed{LinkTree: links, roots: roots, reserved: reserved}
	}
	return tree
}

// RealPath is the path of the file that is read under a name: of a link that is followed
// what it leads to, of all else the name.
func RealPath(tree Tree, name string) string {
	if f, ok := tree.(*followed); ok {
		if to, err := f.target(name); err == nil && to != "" {
			return to
		}
	}
	return name
}

// follows says whether a link of that name is followed: not one in a folder of rules,
// which its owners alone are to change.
func (f *followed) follows(name string) bool {
	within := func(folder string) bool { return Within(name, folder) }
	return slices.ContainsFunc(f.roots, within) && !slices.Contains(f.roots, name) && !slices.ContainsFunc(f.reserved, within) && path.Base(name) != SettingsFile
}

// target is the path of the file that a link leads to; empty where the name is that of no
// link that is followed.
func (f *followed) target(name string) (string, error) {
	text, err := f.LinkTree.ReadLink(name)
	if err != nil || !f.follows(name) {
		return "", nil
	}
	refuse := func(why string) error {
		return &fs.PathError{Op: "follow", Path: name, Err: document.Refusal(fmt.Sprintf("a symbolic link to %q: %s", document.Shorten(text), why))}
	}
	at, next := name, text
	for hops := 0; err == nil; hops++ {
		var why string
		if hops == maxHops {
			return "", refuse(fmt.Sprintf("it leads in a circle, or over more than %d links", maxHops))
		}
		if at != name && !f.follows(at) {
			return "", refuse("it leads there over a link that is not followed")
		}
		if at, why = linkTarget(at, next); why != "" {
			return "", refuse(why)
		}
		next, err = f.LinkTree.ReadLink(at) // an error: it is no link any more
	}
	info, err := fs.Stat(f.LinkTree, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", refuse("there is no such file in the monorepo")
	case err != nil && document.MayPass(err):
		return "", err
	case err != nil:
		return "", refuse(document.Cause(err).Error())
	case info.IsDir():
		return "", refuse("links to files are followed, links to folders are not: name the folder where it is needed, for example in a kustomization")
	}
	return at, nil
}

// linkTarget is the path that the text of a link at a path leads to, or why it is refused.
func linkTarget(at, text string) (target, why string) {
	target = path.Join(path.Dir(at), text)
	isGit := func(step string) bool { return strings.EqualFold(step, ".git") }
	switch {
	case text == "" || len(text) > maxTarget || strings.ContainsAny(text, "\x00\\") || !utf8.ValidString(text):
		return "", "want the path of a file"
	case path.IsAbs(text):
		return "", "an absolute path: want one relative to the link"
	case !fs.ValidPath(target):
		return "", "it leads out of the monorepo"
	case slices.ContainsFunc(strings.Split(target, "/"), isGit):
		return "", "it leads into the store of Git"
	}
	return target, ""
}

func (f *followed) Open(name string) (fs.File, error) {
	switch to, err := f.target(name); {
	case err != nil:
		return nil, err
	case to != "":
		return f.LinkTree.Open(to)
	}
	return f.LinkTree.Open(name)
}

func (f *followed) ReadFile(name string) ([]byte, error) {
	content, err := f.LinkTree.ReadFile(name)
	if err == nil {
		return content, nil
	}
	switch to, wrong := f.target(name); {
	case wrong != nil:
		return nil, wrong
	case to != "":
		return f.LinkTree.ReadFile(to)
	}
	return nil, err
}

func (f *followed) Hash(name string) (string, error) {
	hash, err := f.LinkTree.Hash(name)
	if err != nil && !document.IsOddName(err) {
		switch to, wrong := f.target(name); {
		case wrong != nil:
			return "", wrong
		case to != "":
			return f.LinkTree.Hash(to)
		}
		return "", err
	}
	covering, wrong := f.covering(name, hash)
	if wrong != nil {
		return "", wrong
	}
	return covering, err
}

// covering is the hash of a folder, or of a file, that covers what links in it lead to. That of a
// folder with more links than are followed covers the whole tree.
func (f *followed) covering(name, hash string) (string, error) {
	links, err := f.LinkTree.Links(name)
	if errors.Is(err, ErrLinks) {
		all, err := f.LinkTree.Hash(".")
		return hash + " in " + all, ignoreOddNames(err)
	}
	if err != nil {
		return "", err
	}
	links = slices.DeleteFunc(slices.Clone(links), func(link string) bool { return !f.follows(link) })
	if len(links) == 0 {
		return hash, nil
	}
	sum := sha256.New()
	fmt.Fprintln(sum, hash)
	for _, link := range links {
		to, err := f.target(link)
		found := ""
		if err == nil {
			found, err = f.LinkTree.Hash(to)
		}
		if err != nil && document.MayPass(err) {
			return "", err
		}
		fmt.Fprintf(sum, "%q %q %s %v\n", link, to, found, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ignoreOddNames is an error, but for that of names, which a hash covers too.
func ignoreOddNames(err error) error {
	if document.IsOddName(err) {
		return nil
	}
	return err
}

// ReadDir lists links as links, with what tells the addresses of folders.
func (f *followed) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.LinkTree.ReadDir(name)
	for i, e := range entries {
		known, ok := e.(interface{ Hash() string })
		if !ok || e.Type().IsRegular() {
			continue
		}
		covered := e.Type().Type() != fs.ModeSymlink
		if covered && e.IsDir() {
			hash, err := f.covering(path.Join(name, e.Name()), known.Hash())
			covered = err == nil && hash == known.Hash()
		}
		if !covered {
			entries[i] = unaddressed{e}
		}
	}
	return entries, err
}

// unaddressed is an entry whose address the tree must be asked for.
type unaddressed struct{ fs.DirEntry }

// LinksToFile says whether an entry of a tree is a link to a file, which is as good as one.
func LinksToFile(tree Tree, name string, e fs.DirEntry) bool {
	if e.Type() != fs.ModeSymlink {
		return false
	}
	_, err := tree.Hash(name)
	return err == nil
}
