// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/sync/rollout"
)

// want is what the snapshot wants, in the words of package rollout. Units that
// did not change since the last snapshot keep their value.
func (d *Daemon) want() *rollout.Wanted {
	s := d.snapshot
	if s.Held {
		return &rollout.Wanted{Commit: s.Commit, Held: fmt.Sprintf("commit %s: %s", s.Commit.Short(), someProblems(s.Problems))}
	}
	if name := s.Repository.Name; d.repository != "" && name != d.repository {
		return &rollout.Wanted{Commit: s.Commit, Held: fmt.Sprintf("commit %s: swell.yaml: metadata.name: was %s and is %s: all that was applied is marked with the old name: put it back",
			s.Commit.Short(), d.repository, name)}
	}
	d.tenants, d.healthRules = s.Repository.Tenants, s.HealthRules
	w := &rollout.Wanted{Commit: s.Commit, AllowEmpty: d.AllowEmpty, Units: make(map[config.UnitPath]*rollout.WantedUnit, s.Units.Len()), Clusters: map[string]bool{}}
	for _, c := range s.Repository.Clusters {
		w.Clusters[c.Name] = true
	}
	d.rollouts = keepRollouts(d.rollouts, s.Repository.Rollouts)
	rollouts, before := d.rollouts, d.wantedFrom
	d.wantedFrom = make(map[*render.Unit]*rollout.WantedUnit, s.Units.Len())
	for path, unit := range s.Units.All() {
		known := before[unit]
		if spec := rollouts[unit.Rollout]; known == nil || known.Rollout != spec {
			known = wantUnit(unit, spec)
		}
		w.Units[path] = known
		d.wantedFrom[unit] = known
	}
	for path := range d.state.Units {
		if w.Units[path] == nil {
			if why := unlisted(s.Repository, path); why != "" {
				w.Units[path] = &rollout.WantedUnit{Frozen: why}
			}
		}
	}
	return w
}

// unlisted says why a unit that is not in the commit is not gone: swell.yaml
// does not name the folder any more that it is in, and it is still there. That
// is more often a mistake than a wish, and it would take a whole team's objects.
func unlisted(r *config.Repository, path config.UnitPath) string {
	for _, root := range r.Folders()[2:] {
		if strings.HasPrefix(string(path), root+"/") || string(path) == root {
			return ""
		}
	}
	_, err := r.Tree.Hash(string(path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return fmt.Sprintf("%s: %s", path, config.Cause(err))
	}
	return "swell.yaml names no folder of units any more that the unit is in, but it is still there: nothing is deleted; remove its folder to remove it"
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

func wantUnit(unit *render.Unit, spec *config.Rollout) *rollout.WantedUnit {
	w := &rollout.WantedUnit{Rollout: spec}
	if len(unit.Problems) > 0 {
		w.Frozen = someProblems(unit.Problems)
		return w
	}
	w.Targets = make(map[config.TargetName]rollout.WantedTarget, len(unit.Placements))
	for _, on := range unit.Placements {
		w.Targets[on.Target.Name] = rollout.WantedTarget{Labels: on.Target.Labels, Digest: on.Digest}
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
func someProblems(problems config.Problems) string {
	text := problems[0].String()
	if more := len(problems) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", diff.Count(more, "more problem"))
	}
	return text
}
