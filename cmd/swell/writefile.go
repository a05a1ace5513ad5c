// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/tools/txtar"

	"github.com/swell-sh/swell/config/document"
)

// folderInto is a folder that files are written into.
type folderInto struct {
	root  *os.Root
	below string // from the root
	shown string // as people call it
}

// openInto opens a folder, which need not be there yet. Below the monorepo no link may
// lead out of the monorepo. Any other folder is the user's own choice.
func openInto(in *invocation, monorepo, folder string) (*folderInto, error) {
	from, err := in.absolute(monorepo)
	if err != nil {
		return nil, err
	}
	to, err := in.absolute(folder)
	if err != nil {
		return nil, err
	}
	into := &folderInto{shown: folder}
	base := monorepo
	if into.below, err = filepath.Rel(from, to); err != nil || !filepath.IsLocal(into.below) {
		base, into.below = folder, "."
		if err := os.MkdirAll(in.path(folder), 0o755); err != nil {
			return nil, in.named(err)
		}
	}
	into.root, err = os.OpenRoot(in.path(base))
	return into, in.named(err)
}

func (f *folderInto) read(name string) ([]byte, error) {
	return f.root.ReadFile(filepath.Join(f.below, name))
}

// write writes a file, and says so when that changed it.
func (f *folderInto) write(stderr io.Writer, name string, content []byte) error {
	shown := filepath.Join(f.shown, name)
	if before, err := f.read(name); err == nil && bytes.Equal(before, content) {
		fmt.Fprintf(stderr, "swell: %s unchanged\n", shown)
		return nil
	}
	if err := f.root.MkdirAll(f.below, 0o755); err != nil {
		return err
	}
	if err := replaceFile(f.root, filepath.Join(f.below, name), content); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "swell: %s written\n", shown)
	return nil
}

// writeMissing writes files into a folder, by their paths in it. It never touches what is
// there: when one of the files is, none is written, and after an error only what was
// written is removed. Links that lead out of the folder are not followed.
func writeMissing(dir string, files []txtar.File) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var there []string
	for _, f := range files {
		if _, err := root.Lstat(filepath.FromSlash(f.Name)); err == nil {
			there = append(there, f.Name)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("%s: there already, nothing was written", document.Some(there, 5))
	}
	var made []string // in the order of making
	defer func() {
		if err != nil {
			for _, name := range slices.Backward(made) {
				_ = root.Remove(name)
			}
		}
	}()
	for _, f := range files {
		name := filepath.FromSlash(f.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		made = append(made, name)
		_, err = file.Write(f.Data)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// replaceFile makes a file, or puts content in the place of what it has, all
// of it or nothing.
func replaceFile(root *os.Root, name string, content []byte) error {
	mode := fs.FileMode(0o644)
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return &fs.PathError{Op: "write", Path: name, Err: errors.New("a link or something else that is no plain file")}
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	temporary := filepath.Join(filepath.Dir(name), ".swell-"+rand.Text())
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer root.Remove(temporary) // fails once it is renamed
	_, err = file.Write(content)
	if info != nil { // whatever the umask
		err = errors.Join(err, file.Chmod(mode))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return root.Rename(temporary, name)
}
