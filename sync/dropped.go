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
	if why := e.dropped(known, func(tree config.Tree) []config.LeftOut { return s.Dropped(unit, tree) }); why != "" {
		w.Frozen, w.Targets, w.Needs = why, nil, nil
	}
	return w
}

// droppedOf says why nothing of a unit that the snapshot does not have is deleted: see
// [render.Snapshot.DroppedOf].
func (e earlier) droppedOf(s *render.Snapshot, u *rollout.Unit) string {
	return e.dropped(u, func(tree config.Tree) []config.LeftOut { return s.DroppedOf(u.Path, tree) })
}

// dropped looks in the trees of the commits with the bundles that a unit is to have. Of a
// commit that is gone nobody can say any more which files there were.
func (e earlier) dropped(u *rollout.Unit, find func(config.Tree) []config.LeftOut) string {
	for _, commit := range commitsOf(u) {
		if tree, err := e(commit); err == nil {
			if dropped := find(tree); len(dropped) > 0 {
				return render.DroppedText(dropped)
			}
		}
	}
	return ""
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
