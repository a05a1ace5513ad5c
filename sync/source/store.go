// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// ours is how a store's description begins.
const ours = "swell object store"

const (
	objectsDir = "objects"
	anewDir    = "objects.new" // of a clone that is to replace objects
	oldDir     = "objects.old" // of the one replaced, for a moment
)

// makeStore makes dir an empty store, or clears what a killed process left in
// the one that is there. Anything else is left alone.
func makeStore(dir string) error {
	if err := checkOurs(dir); err != nil {
		return err
	}
	at := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o700)); err != nil { // the repository may be private
		return err
	}
	for _, file := range []struct{ name, content string }{
		{"description", ours + ": may be deleted when nothing runs, and is then cloned again\n"}, // first, see checkOurs
		{"config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"},
		{"HEAD", "ref: refs/heads/main\n"},
	} {
		if _, err := os.Stat(at(file.name)); err == nil {
			continue
		}
		if err := writeFile(at(file.name), file.content); err != nil {
			return err
		}
	}
	if _, err := os.Stat(at(objectsDir)); errors.Is(err, fs.ErrNotExist) {
		// Killed between the two renames of replaceObjects.
		if err := os.Rename(at(anewDir), at(objectsDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(at(objectsDir, "pack"), 0o700), os.MkdirAll(at("refs", "heads"), 0o700)); err != nil {
		return err
	}
	for _, left := range []string{tmpPrefix + "*", objectsDir + "/pack/" + tmpPrefix + "*", anewDir, oldDir} {
		paths, err := fs.Glob(os.DirFS(dir), left)
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := os.RemoveAll(at(path)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOurs refuses a folder that holds anything but a store, or the beginning
// of one.
func checkOurs(dir string) error {
	names, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line, err := readLine(filepath.Join(dir, "description"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name.Name(), tmpPrefix) && !strings.HasPrefix(line, ours) {
			return fmt.Errorf("%s: holds something else than an object store of swell", dir)
		}
	}
	return nil
}

// replaceObjects puts what a clone anew has fetched in the place of what was
// there. makeStore completes it.
func replaceObjects(dir string) error {
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.RemoveAll(at(oldDir)); err != nil {
		return err
	}
	if err := os.Rename(at(objectsDir), at(oldDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(at(anewDir), at(objectsDir)); err != nil {
		return err
	}
	return os.RemoveAll(at(oldDir))
}

// accepted are the commits that were followed, as HEAD and packed-refs of the
// store say. With no dir they are kept in memory only.
type accepted struct {
	dir      string
	branches map[plumbing.ReferenceName]plumbing.Hash
	head     string // "ref: refs/heads/main", or a hash
}

// readAccepted fails when what is there cannot be read: taken for an empty
// store, it would accept whatever the next commit is.
func readAccepted(dir string) (accepted, error) {
	head, err := readLine(filepath.Join(dir, "HEAD"))
	if err != nil {
		return accepted{}, err
	}
	branches, err := readPackedRefs(dir)
	return accepted{dir: dir, branches: branches, head: head}, err
}

// last returns the commit accepted last of a branch, or of whatever HEAD was
// when branch is empty. It is zero when there is none.
func (a *accepted) last(branch string) plumbing.Hash {
	if branch != "" {
		return a.branches[plumbing.NewBranchReferenceName(branch)]
	}
	if name, ok := strings.CutPrefix(a.head, "ref: "); ok {
		return a.branches[plumbing.ReferenceName(name)]
	}
	return plumbing.NewHash(a.head)
}

// accept records that name, a branch or a HEAD without one, is at h.
func (a *accepted) accept(name plumbing.ReferenceName, h plumbing.Hash) error {
	head := "ref: " + name.String()
	if name == plumbing.HEAD {
		head = h.String()
	} else if a.branches[name] != h {
		branches := maps.Clone(a.branches)
		if branches == nil {
			branches = map[plumbing.ReferenceName]plumbing.Hash{}
		}
		branches[name] = h
		if err := a.writeBranches(branches); err != nil {
			return err
		}
		a.branches = branches
	}
	if a.head == head {
		return nil
	}
	if err := a.writeHead(head); err != nil {
		return err
	}
	a.head = head
	return nil
}

// save writes what was accepted once more.
func (a *accepted) save() error {
	if a.head == "" {
		return nil
	}
	return errors.Join(a.writeBranches(a.branches), a.writeHead(a.head))
}

func (a *accepted) writeBranches(branches map[plumbing.ReferenceName]plumbing.Hash) error {
	if a.dir == "" {
		return nil
	}
	content := "# pack-refs with: sorted \n"
	for _, name := range slices.Sorted(maps.Keys(branches)) {
		content += branches[name].String() + " " + name.String() + "\n"
	}
	return writeFile(filepath.Join(a.dir, "packed-refs"), content)
}

func (a *accepted) writeHead(head string) error {
	if a.dir == "" {
		return nil
	}
	return writeFile(filepath.Join(a.dir, "HEAD"), head+"\n")
}

// tmpPrefix begins the names of unfinished files, as Git's own do.
const tmpPrefix = "tmp_"

// writeFile replaces a file in one step, so that a reader or a crash finds the
// old content or the new.
func writeFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), tmpPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.WriteString(content); err != nil {
		return errors.Join(err, f.Close())
	}
	return keep(f, path, 0o644)
}

// keep gives a finished temporary file its name, once its content is on disk.
func keep(f *os.File, path string, mode fs.FileMode) error {
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
