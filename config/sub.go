// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"path"
	"strings"
)

// Sub is the tree of a folder inside a tree; "" and "." are the tree itself.
func Sub(tree Tree, dir string) Tree {
	if dir == "" || dir == "." {
		return tree
	}
	if links, ok := tree.(LinkTree); ok {
		return linkSub{sub{tree, dir}, links}
	}
	return sub{tree, dir}
}

// linkSub is the same of a tree that tells where its links lead.
type linkSub struct {
	sub
	links LinkTree
}

func (s linkSub) ReadLink(name string) (string, error) {
	full, err := s.name("readlink", name)
	if err != nil {
		return "", err
	}
	return s.links.ReadLink(full)
}

func (s linkSub) Links(folder string) ([]string, error) {
	full, err := s.name("links", folder)
	if err != nil {
		return nil, err
	}
	links, err := s.links.Links(full)
	below := make([]string, len(links))
	for i, link := range links {
		below[i] = strings.TrimPrefix(link, s.dir+"/")
	}
	return below, err
}

type sub struct {
	tree Tree
	dir  string
}

func (s sub) name(op, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return path.Join(s.dir, name), nil
}

func (s sub) Open(name string) (fs.File, error) {
	full, err := s.name("open", name)
	if err != nil {
		return nil, err
	}
	return s.tree.Open(full)
}

func (s sub) ReadFile(name string) ([]byte, error) {
	full, err := s.name("read", name)
	if err != nil {
		return nil, err
	}
	return s.tree.ReadFile(full)
}

func (s sub) ReadDir(name string) ([]fs.DirEntry, error) {
	full, err := s.name("readdir", name)
	if err != nil {
		return nil, err
	}
	return s.tree.ReadDir(full)
}

func (s sub) Hash(name string) (string, error) {
	full, err := s.name("hash", name)
	if err != nil {
		return "", err
	}
	return s.tree.Hash(full)
}
