// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	gitindex "github.com/go-git/go-git/v5/plumbing/format/index"
)

// Tracked are those of some files that Git tracks in the work tree that they stand in: what they
// say may be from a commit that was checked out, whoever wrote it. Paths are absolute. Of a work
// tree whose index cannot be read all are.
func Tracked(files []string) (tracked []string) {
	known := map[string]map[string]bool{} // by the root of a work tree
	for _, file := range files {
		root := workTree(filepath.Dir(file))
		if root == "" {
			continue
		}
		names, read := known[root]
		if !read {
			names = indexed(root)
			known[root] = names
		}
		name, err := filepath.Rel(root, file)
		if err != nil || names == nil || names[filepath.ToSlash(name)] {
			tracked = append(tracked, file)
		}
	}
	return slices.Compact(tracked)
}

// workTree is the root of the work tree that a folder is in; empty where there is none.
func workTree(dir string) string {
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			return root
		}
		if root == filepath.Dir(root) {
			return ""
		}
	}
}

// indexed are the names in the index of a work tree; nil where it cannot be read.
func indexed(root string) map[string]bool {
	repo, err := openRepository(filepath.Join(root, ".git"))
	if err != nil {
		return nil
	}
	file, err := os.Open(filepath.Join(repo.gitDir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]bool{} // nothing was added yet
	}
	if err != nil {
		return nil
	}
	defer file.Close()
	var all gitindex.Index
	// With index.skipHash, which scalar sets, Git writes no checksum.
	if err := gitindex.NewDecoder(bufio.NewReader(file)).Decode(&all); err != nil && !errors.Is(err, gitindex.ErrInvalidChecksum) {
		return nil
	}
	names := make(map[string]bool, len(all.Entries))
	for _, e := range all.Entries {
		names[e.Name] = true
	}
	return names
}
