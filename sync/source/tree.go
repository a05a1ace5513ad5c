// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// Tree returns the files of a commit. It stays readable while the branch moves
// on, and for as long as the source is open and its repository has the commit.
//
// Symbolic links have the type [fs.ModeSymlink] and submodules
// [fs.ModeIrregular]; they are listed, and to read, list or hash one is an
// error. Names that Git would not check out are refused with the folder that
// holds them; to list a folder with an odd name gives the [config.OddName] and
// what can be read. Files have no time.
func (s *Source) Tree(commit config.Commit) (config.Tree, error) {
	root, err := s.root(commit)
	if err != nil {
		return nil, err
	}
	return &tree{s, root}, nil
}

// root returns the hash of a commit's root folder, which is there.
func (s *Source) root(commit config.Commit) (plumbing.Hash, error) {
	h, err := hashOf(commit)
	if err != nil {
		return h, err
	}
	c, err := s.objects.commit(h)
	if errors.Is(err, errMissing) {
		err = &message{config.ErrNoCommit.Error(), errors.Join(config.ErrNoCommit, err)}
	}
	if err == nil {
		_, err = s.folder(c.TreeHash)
	}
	if err != nil {
		return h, s.wrap("commit "+commit.Short(), err)
	}
	return c.TreeHash, nil
}

type tree struct {
	source *Source
	root   plumbing.Hash
}

var (
	_ config.LinkTree = (*tree)(nil)
	_ fs.StatFS       = (*tree)(nil)
)

// find walks from the root. It decodes the folders on the way, not the one found.
func (t *tree) find(op, name string) (*entry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	at := &entry{name: ".", hash: t.root, mode: fs.ModeDir | 0o555}
	if name == "." {
		return at, nil
	}
	for start := 0; start <= len(name); {
		end := start + strings.IndexByte(name[start:], '/')
		if end < start {
			end = len(name)
		}
		folder := path.Clean(name[:max(start-1, 0)])
		if at.mode.IsRegular() {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		if !at.mode.IsDir() {
			return nil, &fs.PathError{Op: op, Path: folder, Err: notReadable(at)}
		}
		f, err := t.source.folder(at.hash)
		if err != nil {
			return nil, &fs.PathError{Op: op, Path: folder, Err: err}
		}
		if at = f.find(name[start:end]); at == nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		start = end + 1
	}
	return at, nil
}

// Hash returns the hash that Git gives the file or folder. That a file is
// executable does not change it.
func (t *tree) Hash(name string) (string, error) {
	e, err := t.find("hash", name)
	if err != nil {
		return "", err
	}
	if !e.mode.IsDir() && !e.mode.IsRegular() {
		return "", &fs.PathError{Op: "hash", Path: name, Err: notReadable(e)}
	}
	return e.hash.String(), nil
}

func (t *tree) ReadFile(name string) ([]byte, error) {
	e, err := t.find("read", name)
	if err != nil {
		return nil, err
	}
	return t.content(e, name)
}

func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	e, err := t.find("readdir", name)
	if err != nil {
		return nil, err
	}
	return t.list(e, name)
}

func (t *tree) Stat(name string) (fs.FileInfo, error) {
	e, err := t.find("stat", name)
	if err != nil {
		return nil, err
	}
	return t.info(e, name)
}

func (t *tree) Open(name string) (fs.File, error) {
	e, err := t.find("open", name)
	if err != nil {
		return nil, err
	}
	if e.mode.IsDir() {
		entries, err := t.list(e, name)
		if err != nil {
			return nil, err
		}
		return &openFolder{tree: t, entry: e, path: name, rest: entries}, nil
	}
	return &openFile{tree: t, entry: e, path: name}, nil
}

// content returns the bytes of a file, for the caller to keep.
func (t *tree) content(e *entry, name string) ([]byte, error) {
	if !e.mode.IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: notReadable(e)}
	}
	obj, err := t.source.objects.read(e.hash, plumbing.BlobObject, config.MaxFileSize)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: t.source.note(err)}
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	defer r.Close()
	content := make([]byte, obj.Size())
	_, err = io.ReadFull(r, content)
	return content, err
}

func (t *tree) list(e *entry, name string) ([]fs.DirEntry, error) {
	if !e.mode.IsDir() {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fmt.Errorf("is %s, not a folder", e.kind())}
	}
	f, err := t.source.folder(e.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	entries := make([]fs.DirEntry, len(f.entries))
	for i := range f.entries {
		entries[i] = dirEntry{t, &f.entries[i]}
	}
	if f.odd != nil {
		return entries, &fs.PathError{Op: "readdir", Path: name, Err: f.odd}
	}
	return entries, nil
}

func (t *tree) info(e *entry, name string) (fs.FileInfo, error) {
	info := fileInfo{entry: e}
	if e.mode.IsRegular() || e.mode.Type() == fs.ModeSymlink {
		var err error
		if info.size, err = t.source.objects.size(e.hash); err != nil {
			return nil, &fs.PathError{Op: "stat", Path: name, Err: t.source.note(err)}
		}
	}
	return info, nil
}

func notReadable(e *entry) error { return document.Refusal("is " + e.kind()) }

type dirEntry struct {
	tree *tree
	*entry
}

func (d dirEntry) Name() string               { return d.name }
func (d dirEntry) IsDir() bool                { return d.mode.IsDir() }
func (d dirEntry) Type() fs.FileMode          { return d.mode.Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.tree.info(d.entry, d.name) }
func (d dirEntry) Hash() string               { return d.hash.String() } // of a folder or a file
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

type fileInfo struct {
	*entry
	size int64
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) String() string     { return fs.FormatFileInfo(i) }

// openFile reads its content at the first Read: most files are opened to be
// stated.
type openFile struct {
	tree *tree
	*entry
	path    string
	content *bytes.Reader
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.tree.info(f.entry, f.path) }
func (f *openFile) Close() error               { return nil }

func (f *openFile) Read(p []byte) (int, error) {
	if f.content == nil {
		content, err := f.tree.content(f.entry, f.path)
		if err != nil {
			return 0, err
		}
		f.content = bytes.NewReader(content)
	}
	return f.content.Read(p)
}

type openFolder struct {
	tree *tree
	*entry
	path string
	rest []fs.DirEntry
}

func (f *openFolder) Stat() (fs.FileInfo, error) { return f.tree.info(f.entry, f.path) }
func (f *openFolder) Close() error               { return nil }

func (f *openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.path, Err: notReadable(f.entry)}
}

func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.rest)
	} else if len(f.rest) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.rest))
	entries := f.rest[:n:n]
	f.rest = f.rest[n:]
	return entries, nil
}
