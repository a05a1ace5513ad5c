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
	"sync"
)

// Tree is the files of one commit, or of a folder on disk, read-only. It also
// implements [fs.ReadDirFS] and [fs.ReadFileFS]. It is safe for concurrent use.
type Tree interface {
	fs.ReadDirFS
	fs.ReadFileFS

	// Hash returns the content address of a file or folder ("." is the root).
	// Equal hashes from trees of one source mean equal names and contents,
	// all the way down; hashes of different sources must not be compared.
	// A missing name is an error that wraps [fs.ErrNotExist].
	Hash(name string) (string, error)
}

// MaxFileSize is the largest file that is read from a monorepo, in bytes. An
// object over 1 MiB could not be stored by an API server anyway; the rest is
// room for several documents in one file.
const MaxFileSize = 8 << 20

// Refusal is the error for what a tree holds but does not give out, such as a
// symbolic link. Reading again gives the same, as it does for a missing file;
// any other error may pass.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// mayPass says whether reading again may go well.
func mayPass(err error) bool {
	var refusal Refusal
	return !errors.As(err, &refusal) && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid)
}

// errTooLarge tells a file over [MaxFileSize] from one that cannot be read.
var errTooLarge = Refusal(fmt.Sprintf("larger than %d MiB", MaxFileSize>>20))

// Files gives any file system content addresses, by reading it on demand and
// remembering them. It must not change while in use. Folders named ".git" are
// left out. Symbolic links are listed but never followed.
func Files(fsys fs.FS) Tree { return &files{fsys: fsys, hashes: map[string]string{}} }

type files struct {
	fsys fs.FS

	folders sync.Map // names of folders that were found to be no links

	mu     sync.Mutex
	hashes map[string]string
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
			f.folders.Store(dir, true)
		}
	}
	info, err := fs.Lstat(f.fsys, name)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: op, Path: name, Err: Refusal("a " + irregular(info.Mode()) + ": only plain files and folders are read")}
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
		return nil, &fs.PathError{Op: "read", Path: name, Err: Refusal("a folder: want a file")}
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
	kept := entries[:0]
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		if _, err := fs.Stat(f.fsys, path.Join(name, e.Name(), ".git")); err == nil && e.IsDir() {
			e = submodule{e}
		}
		kept = append(kept, e)
	}
	return kept, nil
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
		return h, nil
	}
	info, err := f.lstat("hash", name)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if info.IsDir() {
		entries, err := f.ReadDir(name)
		if err != nil {
			return "", err
		}
		for _, e := range entries {
			h := e.Type().String() // a link's own name stands for it: links are refused later, by name
			if e.IsDir() || e.Type().IsRegular() {
				if h, err = f.hashLocked(path.Join(name, e.Name())); err != nil {
					return "", err
				}
			}
			fmt.Fprintf(sum, "%s %q %s\n", e.Type(), e.Name(), h)
		}
	} else {
		content, err := f.ReadFile(name)
		switch {
		case errors.Is(err, errTooLarge):
			fmt.Fprintf(sum, "large %d %s", info.Size(), info.ModTime())
		case err != nil:
			return "", err
		}
		sum.Write(content)
	}
	h := hex.EncodeToString(sum.Sum(nil))
	f.hashes[name] = h
	return h, nil
}
