// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync/source"
)

// place says where to look for a monorepo that a command names by a folder or
// by a Git revision.
type place struct {
	repo string // the folder of the Git repository for revisions
	path string // the monorepo's folder inside that repository

	cacheDir string // empty: the user's; none: no cache
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.repo, "repo", ".", "Git repository that revisions are looked up in")
	cmd.Flags().StringVar(&p.path, "path", "", "folder of the monorepo inside the Git repository (default: its root)")
}

// cacheFlag is for commands that use [place.compiler].
func (p *place) cacheFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.cacheDir, "cache", "", "folder that keeps what was rendered, to be faster the next time; none for no such folder (default: swell in the user's cache folder)")
}

// open finds the tree for a folder that holds a monorepo, or else for a Git
// revision. commit is empty for a folder.
func (p *place) open(name string) (tree config.Tree, commit config.Commit, err error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		if err := isMonorepo(name); err != nil {
			return nil, "", err
		}
		return config.Files(os.DirFS(name)), "", nil
	}
	src, err := source.OpenLocal(p.repo)
	if err != nil {
		return nil, "", fmt.Errorf("%q is no folder, and %w", name, err)
	}
	commit, err = src.Resolve(name)
	if err != nil {
		return nil, "", fmt.Errorf("%q is neither a folder nor a Git revision: %w", name, err)
	}
	tree, err = src.Tree(commit)
	if err != nil {
		return nil, "", err
	}
	dir := filepath.ToSlash(filepath.Clean(p.path))
	if p.path == "" {
		dir = "."
	}
	if _, err := fs.Stat(tree, filepath.ToSlash(filepath.Join(dir, "swell.yaml"))); err != nil {
		return nil, "", hinted{fmt.Errorf("%s: no swell.yaml in %q of this commit", commit.Short(), dir), "--path names the monorepo's folder inside the Git repository"}
	}
	return config.Sub(tree, dir), commit, nil
}

func isMonorepo(dir string) error {
	_, err := os.Stat(filepath.Join(dir, "swell.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return hinted{fmt.Errorf("%s: no swell.yaml here, so this is not the root of a monorepo", dir), "name the folder that holds swell.yaml with kind: Repository"}
	}
	return err
}

// snapshot renders what name means.
func (p *place) snapshot(compiler *render.Compiler, name string) (*render.Snapshot, error) {
	tree, commit, err := p.open(name)
	if err != nil {
		return nil, err
	}
	return compiler.Snapshot(commit, tree), nil
}

// cacheLimit is the size that a cache of rendered units may have, in bytes.
// 100,000 units take about 200 MB.
const cacheLimit = 1 << 30

// compiler makes a compiler with the cache that the flag names. Where the
// user's cannot be used, it remembers nothing from run to run.
func (p *place) compiler() (c *render.Compiler, done func(), err error) {
	c, done = &render.Compiler{Version: buildID()}, func() {}
	if p.cacheDir == "none" {
		return c, done, nil
	}
	dir := p.cacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return c, done, nil
		}
		dir = filepath.Join(user, "swell")
	}
	kept, err := cache.Open(dir, cacheLimit)
	switch {
	case err != nil && p.cacheDir != "":
		return nil, nil, hinted{fmt.Errorf("--cache: %w", err), "--cache none does without"}
	case err != nil:
		return c, done, nil
	}
	c.Cache = kept
	return c, func() { _ = kept.Close() }, nil // nothing is lost with it
}

// argument is the i-th argument, or the working tree where there is none: the
// current folder if it is a monorepo, else the one that --path names in it.
func (p *place) argument(args []string, i int) string {
	switch {
	case i < len(args):
		return args[i]
	case isMonorepo(p.repo) == nil:
		return p.repo
	}
	return filepath.Join(p.repo, p.path)
}

// folder is where the monorepo that name means stands inside its Git
// repository, with slashes; "." is the root, and a folder outside of Git.
func (p *place) folder(name string) string {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		return filepath.ToSlash(filepath.Clean(p.path)) // a revision
	}
	dir, err := filepath.Abs(name)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "."
	}
	for root := dir; ; root = filepath.Dir(root) {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			folder, err := filepath.Rel(root, dir)
			if err != nil {
				return "."
			}
			return filepath.ToSlash(folder)
		}
		if root == filepath.Dir(root) {
			return "."
		}
	}
}
