// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rollout"
)

// refused says why nothing is taken from a snapshot; repository is the name that
// the monorepo had, empty before the first commit.
func refused(s *render.Snapshot, repository string) string {
	if s.Held {
		return ofCommit(s.Commit, someProblems(s.Problems))
	}
	if name := s.Repository.Name; repository != "" && name != repository {
		return ofCommit(s.Commit, fmt.Sprintf("swell.yaml: metadata.name: was %s and is %s: all that was applied is marked with the old name: put it back",
			repository, name))
	}
	return ""
}

// ofCommit says once which commit a text is about; a folder is none.
func ofCommit(commit config.Commit, text string) string {
	if commit == "" {
		return text
	}
	about := "commit " + commit.Short() + ": "
	return about + strings.TrimPrefix(text, about)
}

// wantOf is what a snapshot wants of its units, and of those that there are.
func wantOf(s *render.Snapshot, there *rollout.State, before earlier, want func(*render.Unit) *rollout.WantedUnit) *rollout.Wanted {
	return wantOfUnits(s, s.Units.All(), s.Units.Len(), there, before, want)
}

// wantOfUnits is what a snapshot wants of about n units of its own, and of those that there
// are.
func wantOfUnits(s *render.Snapshot, units iter.Seq2[config.UnitPath, *render.Unit], n int, there *rollout.State, before earlier, want func(*render.Unit) *rollout.WantedUnit) *rollout.Wanted {
	w := &rollout.Wanted{Commit: s.Commit, Units: make(map[config.UnitPath]*rollout.WantedUnit, n), Clusters: clusterNames(s.Repository)}
	for path, unit := range units {
		switch {
		case !unit.Void:
			w.Units[path] = want(unit)
		case there.Units[path] != nil:
			w.Units[path] = &rollout.WantedUnit{Frozen: render.VoidText(unit)}
		}
	}
	for path, unit := range there.Units {
		if w.Units[path] != nil {
			continue
		}
		why := s.Repository.Kept(path)
		if why == "" {
			why = before.droppedOf(s, unit)
		}
		if why != "" {
			w.Units[path] = &rollout.WantedUnit{Frozen: why}
		}
	}
	return w
}

// clusterNames are the clusters of the fleet; never nil.
func clusterNames(r *config.Repository) map[string]bool {
	names := map[string]bool{}
	for _, c := range r.Clusters {
		names[c.Name] = true
	}
	return names
}

// keepRollouts returns the rollouts with those in place that are as they were:
// every commit decodes them anew.
func keepRollouts(was, is map[string]*config.Rollout) map[string]*config.Rollout {
	kept := maps.Clone(is)
	for name, spec := range was {
		if reflect.DeepEqual(spec, is[name]) {
			kept[name] = spec
		}
	}
	return kept
}

func wantUnit(unit *render.Unit, spec *config.Rollout, release config.Release) *rollout.WantedUnit {
	w := &rollout.WantedUnit{Rollout: spec, Tenant: unit.Tenant, Tier: release.TierOf(unit.Labels()), Adopt: unit.Policy.Adopt}
	if len(unit.Problems) > 0 {
		w.Frozen, w.Empty = someProblems(unit.Problems), unit.Empty()
		return w
	}
	w.Targets = make(map[config.TargetName]rollout.WantedTarget, len(unit.Placements))
	for _, on := range unit.Placements {
		w.Targets[on.Target.Name] = rollout.WantedTarget{Labels: on.Target.Labels, Digest: on.Digest, Objects: on.Objects}
		for _, need := range on.Needs {
			if need.Target != on.Target.Name {
				continue // of the whole cluster: the server's answer orders those
			}
			if w.Needs == nil {
				w.Needs = map[config.TargetName][]config.UnitPath{}
			}
			w.Needs[need.Target] = append(w.Needs[need.Target], need.Unit)
		}
	}
	return w
}

// someProblems is the first problem and how many more there are.
func someProblems(problems document.Problems) string {
	text := problems[0].String()
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", document.Count(more, "more problem"))
	}
	return text
}
