// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// earlier gives the tree of an earlier commit. It fails where the commit is gone.
type earlier func(config.Commit) (config.Tree, error)

// once asks for each tree one time.
func (e earlier) once() earlier {
	type answer struct {
		tree config.Tree
		err  error
	}
	known := map[config.Commit]answer{}
	return func(commit config.Commit) (config.Tree, error) {
		a, found := known[commit]
		if !found {
			a.tree, a.err = e(commit)
			known[commit] = a
		}
		return a.tree, a.err
	}
}

// wantUnit is what a snapshot wants of a unit. known is the unit's state, nil for none.
// Nothing is taken of a unit with files that gave it objects before, are still there and
// give none now: see [render.Snapshot.Dropped].
func (e earlier) wantUnit(s *render.Snapshot, unit *render.Unit, spec *config.Rollout, known *rollout.Unit) *rollout.WantedUnit {
	w := wantUnit(unit, spec, s.Repository.Release)
	if known == nil || w.Frozen != "" || !unit.MayDrop() || hasAll(known, w) {
		return w
	}
	for _, commit := range commitsOf(known) {
		tree, err := e(commit)
		if err != nil {
			continue // nobody can say any more which files there were
		}
		if dropped := s.Dropped(unit, tree); len(dropped) > 0 {
			w.Frozen, w.Targets, w.Needs = render.DroppedText(dropped), nil, nil
			break
		}
	}
	return w
}

// hasAll says whether the unit is to have already all that is wanted.
func hasAll(u *rollout.Unit, w *rollout.WantedUnit) bool {
	for name, t := range u.Targets {
		if wanted, ok := w.Targets[name]; !ok || wanted.Digest != t.Wanted {
			return false
		}
	}
	return len(u.Targets) == len(w.Targets)
}

// commitsOf are the commits with the bundles that a unit is to have.
func commitsOf(u *rollout.Unit) (commits []config.Commit) {
	for _, t := range u.Targets {
		if commit, known := u.Commits[t.Wanted]; known && !slices.Contains(commits, commit) {
			commits = append(commits, commit)
		}
	}
	slices.Sort(commits)
	return commits
}
