// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"maps"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// Releases tell a compiler what units were released with. Both functions are set.
type Releases struct {
	Units func(config.UnitPath) render.Release
	Load  func(config.Commit) (*render.Commit, error)
}

// Newest is the newest release of a unit.
func (r Releases) Newest(path config.UnitPath) render.Release { return r.Units(path) }

// Commit is an earlier commit; nil where it cannot be rendered any more.
func (r Releases) Commit(commit config.Commit) (*render.Commit, error) {
	c, err := r.Load(commit)
	var problems document.Problems
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, config.ErrNoCommit), errors.As(err, &problems) && !problems.Retry():
		return nil, nil
	}
	return nil, err
}

// releasesOf are those of a state.
func releasesOf(state *rollout.State, compiler *render.Compiler, tree func(config.Commit) (config.Tree, error)) Releases {
	return Releases{
		Units: func(path config.UnitPath) render.Release {
			if u := state.Units[path]; u != nil {
				return releaseOf(u)
			}
			return render.Release{}
		},
		Load: loading(compiler, tree),
	}
}

func releaseOf(u *rollout.Unit) render.Release {
	commit, bundles := u.Released()
	return render.Release{Commit: commit, Bundles: bundles}
}

// loading loads commits to be rendered as the compiler renders: without waiting for charts and programs that
// take long, where it does not.
func loading(compiler *render.Compiler, tree func(config.Commit) (config.Tree, error)) func(config.Commit) (*render.Commit, error) {
	return func(commit config.Commit) (*render.Commit, error) {
		files, err := tree(commit)
		if err != nil {
			return nil, err
		}
		return render.NewCommit(files, compiler.Cache, compiler.Version, compiler.Checkers, compiler.Charts)
	}
}

// Differing are the releases of units that do not have what the newest commit wants.
type Differing map[config.UnitPath]render.Release

// DifferingNow are those in a fleet.
func DifferingNow(now rollout.Now) (Differing, error) {
	units, err := now.Decode()
	if err != nil {
		return nil, err
	}
	differing := Differing{}
	for path, u := range units {
		differing[path] = releaseOf(u)
	}
	for _, path := range now.Unreleased {
		differing[path] = render.Release{}
	}
	return differing, nil
}

// Equal says whether units differ in the same way.
func (d Differing) Equal(other Differing) bool { return maps.EqualFunc(d, other, render.Release.Equal) }

// From are the releases of a fleet that has all of a commit but for what differs. base is that commit; nil while it
// is made.
func (d Differing) From(base *render.Snapshot, compiler *render.Compiler, tree func(config.Commit) (config.Tree, error)) Releases {
	return Releases{
		Units: func(path config.UnitPath) render.Release {
			if release, differs := d[path]; differs {
				return release
			}
			if base == nil {
				return render.Release{Same: true}
			}
			return base.Release(path)
		},
		Load: loading(compiler, tree),
	}
}
