// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// Releases tell a compiler what units were released with.
type Releases struct {
	Commits func(config.UnitPath) config.Commit // of the newest releases, see [render.Releases]
	Load    func(config.Commit) (*render.Commit, error)
}

// Newest is the commit of the unit's newest release.
func (r Releases) Newest(path config.UnitPath) config.Commit { return r.Commits(path) }

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

// newestOf tells the newest release of each unit that began, by a state.
func newestOf(state *rollout.State) func(config.UnitPath) config.Commit {
	return func(path config.UnitPath) config.Commit {
		if u := state.Units[path]; u != nil {
			return u.Rollout.Commit
		}
		return ""
	}
}
