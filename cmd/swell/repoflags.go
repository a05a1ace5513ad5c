// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync/checker"
	"github.com/swell-sh/swell/sync/helm"
	"github.com/swell-sh/swell/sync/source"
)

// repoFlags say where to look for a monorepo that a command names by a folder or
// by a Git revision. The folder may be any one inside the monorepo.
type repoFlags struct {
	in   *invocation
	repo string // the folder that revisions are looked up from
	path string // the monorepo's folder inside that Git repository; empty: found

	cacheDir string // empty: the user's; none: no cache
	checkers string // the file of programs; empty: the user's
	verbose  bool   // say which programs run
	progress *checkerProgress
	judges   *checker.Runner // what the last compiler runs
}

// open finds the tree for a folder inside a monorepo, or else for a Git revision.
// commit is empty for a folder.
func (p *repoFlags) open(name string) (tree config.Tree, commit config.Commit, err error) {
	if p.in.isFolder(name) {
		root, err := p.in.findMonorepo(name)
		if err != nil {
			return nil, "", err
		}
		return config.Files(os.DirFS(p.in.path(root))), "", nil
	}
	if p.path != "" && name == filepath.Join(p.in.gitRoot(p.repo), p.path) {
		return nil, "", fmt.Errorf("--path %q: no such folder in %s", p.path, p.in.gitRoot(p.repo))
	}
	src, err := source.OpenLocal(p.in.path(p.repo))
	if err != nil {
		return nil, "", p.in.noFolder(name, err)
	}
	return p.revision(src, name)
}

// revision finds the tree for a Git revision.
func (p *repoFlags) revision(src *source.Source, name string) (tree config.Tree, commit config.Commit, err error) {
	commit, err = src.Resolve(name)
	if err != nil {
		return nil, "", p.in.noFolder(name, err)
	}
	tree, err = src.Tree(commit)
	if err != nil {
		return nil, "", err
	}
	dir := p.folder(name)
	switch _, err := fs.ReadFile(tree, path.Join(dir, repositoryFile)); {
	case source.IsDamage(err):
		return nil, "", hinted{err, "a clone made with --filter lacks files: git fetch --refetch --no-filter brings them"}
	case err != nil:
		return nil, "", hinted{noMonorepo(fmt.Sprintf("%s: no %s in %q of this commit", commit.Short(), repositoryFile, dir)), "--path names the monorepo's folder inside the Git repository"}
	}
	return config.Sub(tree, dir), commit, nil
}

// merge is head as a merge into base would make it: base, and what changed in head since the
// two parted. Where head is an earlier state of base, where their histories never met, or where
// one of them is no state of the Git repository, it is head itself.
type merge struct {
	tree    config.Tree
	commit  config.Commit
	both    []string // paths that changed in base, too
	earlier bool     // head is an earlier state of base
}

func (p *repoFlags) merged(base, head string) (m merge, err error) {
	if m.tree, m.commit, err = p.open(head); err != nil || p.in.isFolder(base) {
		return m, err
	}
	src, err := source.OpenLocal(p.in.path(p.repo))
	if err != nil {
		return m, err
	}
	at := m.commit
	if at == "" { // a folder: what is in it comes after HEAD, where it is one of this repository
		if p.in.gitRoot(head) != p.in.gitRoot(p.repo) {
			return m, nil
		}
		if at, err = src.Resolve("HEAD"); err != nil {
			return m, nil // nothing is committed yet
		}
	}
	now, into, err := p.revision(src, base)
	if err != nil {
		return m, err
	}
	parted, err := src.MergeBase(into, at)
	switch {
	case errors.Is(err, source.ErrShallow):
		return m, hinted{err, "fetch the history: git fetch --unshallow; in a job, fetch-depth: 0 of actions/checkout, or GIT_DEPTH: 0 in GitLab"}
	case errors.Is(err, source.ErrUnrelated), err == nil && (parted == into || parted == at && m.commit != ""):
		m.earlier = err == nil && parted != into
		return m, nil
	case err != nil:
		return m, err
	}
	was, _, err := p.revision(src, string(parted))
	var newer noMonorepo
	switch {
	case errors.As(err, &newer): // both have got it since
		return m, nil
	case err != nil:
		return m, err
	}
	m.tree, m.both, err = config.Merge(was, now, m.tree)
	return m, err
}

// noMonorepo is the error for a commit without a monorepo.
type noMonorepo string

func (e noMonorepo) Error() string { return string(e) }

// noFolder is the error for a name that is no folder; why is why it is no Git
// revision either.
func (in *invocation) noFolder(name string, why error) error {
	const hint = "name a folder of the monorepo or a Git revision; `git branch --all` lists the branches, and `git fetch` brings those of the remote"
	switch _, err := os.Stat(in.path(name)); {
	case err == nil:
		return hinted{fmt.Errorf("%s: a file, want a folder or a Git revision", name), hint}
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return in.named(err)
	case errors.Is(why, source.ErrNoRevision):
		return hinted{fmt.Errorf("%s: no such folder, branch, tag or commit%s", name, in.nearFolder(name)), hint}
	}
	return hinted{fmt.Errorf("%s: no such folder%s, and as a Git revision: %w", name, in.nearFolder(name), why), hint}
}

// nearFolder suggests a folder that stands beside one that is not there.
func (in *invocation) nearFolder(name string) string {
	dir, base := filepath.Split(filepath.Clean(name))
	entries, err := os.ReadDir(in.path(cmp.Or(dir, ".")))
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	suggestion := document.DidYouMean(base, names)
	if err != nil || !strings.HasPrefix(suggestion, ", did you mean") {
		return "" // or a list of all of them
	}
	return suggestion
}

func (in *invocation) isFolder(name string) bool {
	info, err := os.Stat(in.path(name))
	return err == nil && info.IsDir()
}

// repositoryFile is at the root of a monorepo. Folders below it may have one with
// their Defaults.
const repositoryFile = "swell.yaml"

var repositoryKind = regexp.MustCompile(`(?m)^\s*["']?kind["']?\s*:\s*["']?Repository\b`)

// findMonorepo is the root of the monorepo that a folder is in: the nearest one
// at or above it whose swell.yaml is a Repository. Where none says so, because it
// has a mistake, it is the highest one with a swell.yaml. The search ends at the
// root of the Git repository.
func (in *invocation) findMonorepo(folder string) (string, error) {
	abs, err := in.absolute(folder)
	if err != nil {
		return "", err
	}
	highest := ""
	for at, up := abs, folder; ; at, up = filepath.Dir(at), filepath.Join(up, "..") {
		content, err := os.ReadFile(filepath.Join(at, repositoryFile))
		switch {
		case err == nil && repositoryKind.Match(content):
			return up, nil
		case err == nil:
			highest = up
		case at == abs && !errors.Is(err, fs.ErrNotExist):
			return "", err // further up it is somebody else's
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || at == filepath.Dir(at) {
			break
		}
	}
	if highest == "" {
		return "", hinted{fmt.Errorf("%s: no monorepo: neither this folder nor one above it has a %s of kind Repository", folder, repositoryFile),
			"name a folder of the monorepo, or change into it"}
	}
	return highest, nil
}

// snapshot renders what name means.
func (p *repoFlags) snapshot(ctx context.Context, compiler *render.Compiler, name string) (*render.Snapshot, error) {
	tree, commit, err := p.open(name)
	if err != nil {
		return nil, err
	}
	return p.compile(ctx, compiler, commit, tree)
}

// accepted renders what name means as a commit that was taken: documents of its fleet that match
// nothing any more are no problem of it, see [render.Snapshot.Idle].
func (p *repoFlags) accepted(ctx context.Context, compiler *render.Compiler, name string) (*render.Snapshot, error) {
	tree, commit, err := p.open(name)
	if err != nil {
		return nil, err
	}
	return p.compiled(ctx, compiler.Accepted(commit, tree))
}

// compile renders a tree.
func (p *repoFlags) compile(ctx context.Context, compiler *render.Compiler, commit config.Commit, tree config.Tree) (*render.Snapshot, error) {
	return p.compiled(ctx, compiler.Snapshot(commit, tree))
}

// compiled is a snapshot that was just made. After an interruption, what programs would have
// said of it is missing.
func (p *repoFlags) compiled(ctx context.Context, s *render.Snapshot) (*render.Snapshot, error) {
	p.progress.end()
	return s, ctx.Err()
}

// cacheLimit is the size that a cache of rendered units may have, in bytes.
// 100,000 units take about 200 MB.
const cacheLimit = 1 << 30

// compiler makes a compiler with the cache and the programs that the flags name.
func (p *repoFlags) compiler(cmd *cobra.Command) (c *render.Compiler, done func(), err error) {
	kept, err := p.openCache()
	if err != nil {
		return nil, nil, err
	}
	runner, err := p.runner(kept, cmd.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	done = func() {
		if kept != nil {
			_ = kept.Close() // nothing is lost with it
		}
	}
	p.judges = runner
	charts := &helm.Renderer{Sandbox: runner.Sandbox}
	return &render.Compiler{Version: buildID(), Cache: kept, Checkers: runner.Until(cmd.Context()), Charts: charts}, done, nil
}

// openCache opens the cache that the flag names. Where the user's cannot be used, there
// is none.
func (p *repoFlags) openCache() (*cache.Cache, error) {
	if p.cacheDir == "none" {
		return nil, nil
	}
	dir := p.cacheDir
	if dir == "" {
		if p.in.cacheDir == "" {
			return nil, nil
		}
		dir = filepath.Join(p.in.cacheDir, "swell")
	}
	kept, err := cache.Open(p.in.path(dir), cacheLimit)
	switch {
	case err != nil && p.cacheDir != "":
		return nil, hinted{fmt.Errorf("--cache: %w", p.in.named(err)), "--cache none runs without a cache"}
	case err != nil:
		return nil, nil
	}
	return kept, nil
}

// argument is the i-th argument, or the working tree where there is none: the
// monorepo that the current folder is in, or the one that --path names.
func (p *repoFlags) argument(args []string, i int) string {
	switch {
	case i < len(args):
		return args[i]
	case p.path != "":
		return filepath.Join(p.in.gitRoot(p.repo), p.path)
	}
	if root, err := p.in.findMonorepo(p.repo); err == nil {
		return root
	}
	return p.repo
}

// units is what --unit and the i-th argument say of which units are meant: a
// unit, or a folder of units, from the monorepo's root; empty is all. A value that
// begins with a dot is a path from the current folder.
func (p *repoFlags) units(unit string, args []string, i int) string {
	named := unit
	switch {
	case unit == "" && i < len(args) && p.in.isFolder(args[i]):
		named = args[i]
	case unit == "" || unit[0] != '.':
		return unitNamed(unit)
	}
	root, err := p.in.findMonorepo(p.argument(args, i))
	if err != nil {
		return unitNamed(unit)
	}
	below, err := p.in.relative(root, named)
	switch {
	case err != nil || !filepath.IsLocal(below):
		return unitNamed(unit)
	case below == ".":
		return ""
	}
	return filepath.ToSlash(below)
}

// relative is the path from one folder to another, without links.
func (in *invocation) relative(from, to string) (string, error) {
	from, err := in.realPath(from)
	if err != nil {
		return "", err
	}
	if to, err = in.realPath(to); err != nil {
		return "", err
	}
	return filepath.Rel(from, to)
}

func (in *invocation) realPath(name string) (string, error) {
	name, err := in.absolute(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		return name, nil
	}
	return real, err
}

// gitRoot is the folder with .git at or above a folder, or else that folder.
func (in *invocation) gitRoot(folder string) string {
	abs, err := in.realPath(folder)
	if err != nil {
		return folder
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return folder
		}
	}
}

// folder is where the monorepo that name means stands inside its Git
// repository, with slashes; "." is the root, and a folder outside of Git.
func (p *repoFlags) folder(name string) string {
	from := name
	if !p.in.isFolder(name) { // a revision
		if p.path != "" {
			return path.Clean(filepath.ToSlash(p.path))
		}
		from = p.repo
	}
	root, err := p.in.findMonorepo(from)
	if err != nil {
		return "."
	}
	below, err := p.in.relative(p.in.gitRoot(root), root)
	if err != nil || !filepath.IsLocal(below) {
		return "."
	}
	return filepath.ToSlash(below)
}
