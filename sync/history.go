// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"io/fs"
	"iter"

	"github.com/swell-sh/swell/config"
)

// Commits are those of a repository: a [source.Source].
type Commits interface {
	Tree(commit config.Commit) (config.Tree, error)
	// Between are the commits of the branch after from up to to, the newest first; to alone where
	// from is not on the way.
	Between(from, to config.Commit) ([]config.Commit, error)
}

// history is what commits have in the monorepo's folder.
type history struct {
	commits Commits
	path    string // of the folder in the repository
}

func (h history) tree(commit config.Commit) (config.Tree, error) {
	tree, err := h.commits.Tree(commit)
	if err != nil {
		return nil, err
	}
	return config.Sub(tree, h.path), nil
}

// lastTaken is what the commit has that a daemon took last; nil where it took none. Where that
// cannot be read any more, the newest commit stands for it, so that a restart holds nothing that
// was in force.
func (h history) lastTaken(commit config.Commit, newest config.Tree) config.Tree {
	if commit == "" {
		return nil
	}
	tree, err := h.tree(commit)
	if err == nil {
		_, err = fs.Stat(tree, config.SettingsFile) // the monorepo may have been in another folder
	}
	if err != nil {
		return newest
	}
	return tree
}

// repository is what the documents of a commit say, as what another one goes to; nil where there
// is no commit, or it cannot be read, or has problems: then its rules judge nothing.
func (h history) repository(commit config.Commit) *config.Repository {
	if commit == "" {
		return nil
	}
	tree, err := h.tree(commit)
	if err != nil {
		return nil
	}
	if r := config.Load(tree, nil); len(r.Problems) == 0 {
		return r
	}
	return nil
}

// between are the trees that the branch had on its way from one commit to another one, without
// those of the two, the newest first. They end at one that cannot be read, which is nil.
func (h history) between(from, to config.Commit) iter.Seq[config.Tree] {
	return func(yield func(config.Tree) bool) {
		if from == "" {
			return
		}
		way, err := h.commits.Between(from, to)
		if err != nil {
			yield(nil)
			return
		}
		for _, commit := range way[1:] {
			tree, err := h.tree(commit)
			if err != nil {
				tree = nil
			}
			if !yield(tree) || tree == nil {
				return
			}
		}
	}
}
