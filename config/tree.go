// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"crypto/sha1" // as Git has it
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"unicode/utf8"

	"github.com/swell-sh/swell/config/bounds"

	"github.com/swell-sh/swell/config/document"
)

// Tree is the files of one commit, or of a folder on disk, read-only. It also
// implements [fs.ReadDirFS] and [fs.ReadFileFS]. It is safe for concurrent use.
//
// ReadDir of a folder with an [OddName] in it returns that error and the
// entries that can be read.
type Tree interface {
	fs.ReadDirFS
	fs.ReadFileFS

	// Hash returns the content address of a file or folder ("." is the root).
	// That of a file is the one that Git gives a blob. Equal hashes of folders
	// mean equal names and contents, all the way down; two kinds of trees may
	// give equal folders different hashes. A missing name is an error that
	// wraps [fs.ErrNotExist]. An [OddName] may come with a hash, which is good.
	Hash(name string) (string, error)
}

// MaxFileSize is the largest file that is read from a monorepo, in bytes. An
// object over 1 MiB could not be stored by an API server anyway; the rest is
// room for several documents in one file.
const MaxFileSize = bounds.Text

// errTooLarge tells a file over [MaxFileSize] from one that cannot be read.
var errTooLarge = document.Refusal(fmt.Sprintf("larger than %d MiB", MaxFileSize>>20))

// Files gives any file system content addresses, by reading it on demand and
// remembering them. It must not change while in use. Folders named ".git" are
// left out. Symbolic links are listed but never followed: it is a [LinkTree].
func Files(fsys fs.FS) Tree {
	return &files{fsys: fsys, hashes: map[string]string{}, odd: map[string]error{}, links: map[string][]string{}}
}

type files struct {
	fsys fs.FS

	folders sync.Map // names of folders that were found to be no links and no submodules

	mu     sync.Mutex
	hashes map[string]string
	odd    map[string]error    // of the folders hashed that have an odd name in or below them
	links  map[string][]string // in and below the folders hashed that have some
}

// lstat looks at a file or folder. It is an error when a link stands on the
// way to it or in its place.
func (f *files) lstat(op, name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if dir := path.Dir(name); dir != "." {
		if _, known := f.folders.Load(dir); !known {
			info, err := f.lstat(op, dir)
			if err != nil {
				return nil, err
			}
			if !info.IsDir() {
				return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
			}
			if _, err := fs.Stat(f.fsys, path.Join(dir, ".git")); err == nil {
				return nil, &fs.PathError{Op: op, Path: name, Err: document.Refusal("in a submodule: a commit does not hold its content")}
			}
			f.folders.Store(dir, true)
		}
	}
	info, err := fs.Lstat(f.fsys, name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: op, Path: name, Err: document.Refusal("a " + irregular(info.Mode()) + ": only plain files and folders are read")}
	}
	return info, err
}

func (f *files) Open(name string) (fs.File, error) {
	if _, err := f.lstat("open", name); err != nil {
		return nil, err
	}
	return f.fsys.Open(name)
}

func (f *files) ReadFile(name string) ([]byte, error) {
	info, err := f.lstat("read", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: document.Refusal("a folder: want a file")}
	}
	if info.Size() > MaxFileSize {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errTooLarge}
	}
	return fs.ReadFile(f.fsys, name)
}

func (f *files) ReadDir(name string) ([]fs.DirEntry, error) {
	if _, err := f.lstat("readdir", name); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(f.fsys, name)
	if err != nil {
		return nil, err
	}
	var odd error
	kept := entries[:0]
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if !utf8.ValidString(e.Name()) { // as Git's trees are refused
			if odd == nil {
				odd = &fs.PathError{Op: "readdir", Path: name, Err: document.OddName{What: fmt.Sprintf("entry %q: name is not UTF-8", e.Name())}}
			}
			continue
		}
		if e.IsDir() { // of a link, what it leads to would be looked at
			if _, err := fs.Stat(f.fsys, path.Join(name, e.Name(), ".git")); err == nil {
				e = submodule{e}
			}
		}
		kept = append(kept, e)
	}
	return kept, odd
}

// submodule is a folder with a repository of its own. A commit does not hold
// its content, so a folder on disk must not either.
type submodule struct{ fs.DirEntry }

func (submodule) IsDir() bool       { return false }
func (submodule) Type() fs.FileMode { return fs.ModeIrregular }

func (f *files) Hash(name string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hashLocked(name)
}

func (f *files) hashLocked(name string) (string, error) {
	if h, ok := f.hashes[name]; ok {
		return h, f.odd[name]
	}
	info, err := f.lstat("hash", name)
	if err != nil {
		return "", err
	}
	var h string
	if info.IsDir() {
		h, err = f.hashFolderLocked(name)
	} else {
		h, err = f.hashFile(name, info)
	}
	if err != nil && !document.IsOddName(err) {
		return "", err
	}
	f.hashes[name] = h
	if err != nil {
		f.odd[name] = err
	}
	return h, err
}

func (f *files) hashFolderLocked(name string) (string, error) {
	sum := sha256.New()
	var links []string
	entries, odd := f.ReadDir(name)
	if odd != nil {
		if !document.IsOddName(odd) {
			return "", odd
		}
		fmt.Fprintf(sum, "odd %s\n", odd)
	}
	for _, e := range entries {
		h := e.Type().String() // where a link leads is not a part of it, see [followed]
		if e.IsDir() || e.Type().IsRegular() {
			var err error
			if h, err = f.hashLocked(path.Join(name, e.Name())); err != nil && !document.IsOddName(err) {
				return "", err
			}
			odd = cmp.Or(odd, err)
		}
		switch below := path.Join(name, e.Name()); {
		case e.Type() == fs.ModeSymlink:
			links = append(links, below)
		case e.IsDir():
			links = append(links, f.links[below]...)
		}
		links = links[:min(len(links), MaxLinks+1)]
		fmt.Fprintf(sum, "%s %q %s\n", e.Type(), e.Name(), h)
	}
	if len(links) > 0 {
		f.links[name] = links
	}
	return hex.EncodeToString(sum.Sum(nil)), odd
}

// ReadLink implements [LinkTree].
func (f *files) ReadLink(name string) (string, error) {
	if folder := path.Dir(name); folder != "." {
		if _, err := f.lstat("readlink", folder); err != nil {
			return "", err
		}
	}
	return fs.ReadLink(f.fsys, name)
}

// Links implements [LinkTree].
func (f *files) Links(folder string) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.hashLocked(folder); err != nil && !document.IsOddName(err) {
		return nil, err
	}
	links := f.links[folder]
	if len(links) > MaxLinks {
		return nil, &fs.PathError{Op: "links", Path: folder, Err: ErrLinks}
	}
	return links, nil
}

func (f *files) hashFile(name string, info fs.FileInfo) (string, error) {
	content, err := f.ReadFile(name)
	if errors.Is(err, errTooLarge) {
		return fmt.Sprintf("large %d %s", info.Size(), info.ModTime()), nil
	}
	if err != nil {
		return "", err
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", len(content))
	sum.Write(content)
	return hex.EncodeToString(sum.Sum(nil)), nil
}
