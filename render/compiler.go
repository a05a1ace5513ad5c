// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package render is the compiler: it turns the tree of one commit into a
// [Snapshot], the hard objects of every unit for every target, checked against
// the schemas of the target's Kubernetes version.
//
// It reads no clock, network, environment or cluster. The same tree gives the
// same bytes, whatever the commit, and whatever was rendered before.
package render

import (
	"fmt"
	"path"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
)

// Compiler renders the commits of one repository, one after another, and
// remembers what it rendered: a unit whose folder, defaults, kinds and fleet
// are unchanged is not rendered again. The zero value is ready. It is not safe
// for concurrent use; the snapshots it returns are.
type Compiler struct {
	repository *config.Repository
	kinds      *kindSet
	units      map[config.UnitPath]*rendered
	claims     claims
}

// rendered is what the compiler remembers of a unit.
type rendered struct {
	key  string // empty when it must be rendered again: a file could not be read
	unit *Unit
}

// Wants says which bundles of the last snapshot want an object in a cluster.
// Units with problems want what nobody knows.
func (c *Compiler) Wants(cluster string, id ObjectID) []Placed {
	var by []Placed
	for _, claim := range c.claims.wanted[claimKey{cluster, id}] {
		by = append(by, Placed{claim.unit, claim.target})
	}
	slices.SortFunc(by, comparePlaced)
	return by
}

// Snapshot renders a commit.
func (c *Compiler) Snapshot(commit config.Commit, tree config.Tree) *Snapshot {
	repository := config.Load(tree, c.repository)
	s := &Snapshot{Commit: commit, Repository: repository, Problems: slices.Clone(repository.Problems), Units: make(map[config.UnitPath]*Unit, len(repository.Units))}
	s.Problems = append(s.Problems, checkVersions(repository)...)
	s.Held = len(s.Problems) > 0
	if s.Held {
		// Nothing may be written from it anyway, and rendering against a
		// fleet that is not understood would only add noise.
		s.Problems = s.Problems.Sorted()
		s.Retry = s.Problems.Retry()
		return s
	}
	c.repository = repository
	c.loadKinds(repository)
	s.Problems = append(s.Problems, c.kinds.Problems...)
	c.render(repository, s)
	s.finish()
	return s
}

func checkVersions(r *config.Repository) config.Problems {
	var problems config.Problems
	for _, cluster := range r.Clusters {
		if _, err := schema.Kubernetes(cluster.Kubernetes); err != nil {
			problems = append(problems, config.Problem{Position: cluster.Position, Code: config.CodeFleet, Message: "spec.kubernetes: " + err.Error()})
		}
	}
	return problems
}

// kindSet is the kinds of one commit.
type kindSet struct {
	*kind.Kinds
	hash  string
	retry bool // a file could not be read
}

func (c *Compiler) loadKinds(r *config.Repository) {
	data, err := r.Tree.Hash(r.DataFolder)
	if err != nil {
		data = err.Error()
	}
	hash := r.KindsHash + data
	if c.kinds != nil && c.kinds.hash == hash && !c.kinds.retry {
		return
	}
	newest, err := schema.Kubernetes("")
	if err != nil {
		panic(err) // it is embedded
	}
	facts, problems := kind.LoadData(r.Tree, r.DataFolder)
	kinds := kind.LoadAll(r.Tree, r.Kinds, newest, facts)
	kinds.Problems = append(kinds.Problems, problems...).Sorted()
	c.kinds = &kindSet{Kinds: kinds, hash: hash, retry: kinds.Problems.Retry()}
}

// render renders the units that changed, on all cores, and takes over the
// others.
func (c *Compiler) render(r *config.Repository, s *Snapshot) {
	next := make(map[config.UnitPath]*rendered, len(r.Units))
	var changed []*config.Unit
	shared := r.FleetHash + c.kinds.hash
	for _, unit := range r.Units {
		key := unit.Hash + unit.Defaults.Hash + shared
		if known := c.units[unit.Path]; known != nil && known.key == key && !c.kinds.retry {
			next[unit.Path] = known
			continue
		}
		changed = append(changed, unit)
		next[unit.Path] = &rendered{key: key}
	}
	results := make([]*Unit, len(changed))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	places := newPlaces(r)
	for i, unit := range changed {
		group.Go(func() error {
			results[i] = renderUnit(r, c.kinds, unit, places)
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	for i, unit := range changed {
		next[unit.Path].unit = results[i]
		if c.kinds.retry || results[i].Problems.Retry() {
			next[unit.Path].key = ""
		}
	}
	c.claims.update(c.units, next)
	c.units = next
	s.Rendered = len(changed)
	for path, known := range next {
		s.Units[path] = known.unit
	}
	c.claims.contest(s)
}

// finish gathers the problems of the units. Units that only wait for a broken
// kind are counted, at the kind: its own problems are what there is to mend. A
// problem of Defaults stands there once, however many units it holds.
func (s *Snapshot) finish() {
	waiting := map[string]int{}
	shared := map[string]config.Problems{} // one for each unit, by their text
	for _, unit := range s.Units {
		if len(unit.Problems) == 0 {
			continue
		}
		for _, p := range unit.Problems {
			if p.Code == config.CodeKind {
				waiting[p.Via[0].File]++
				continue
			}
			if path.Base(p.File) == "swell.yaml" {
				shared[p.String()] = append(shared[p.String()], p)
				continue
			}
			s.Problems = append(s.Problems, p)
		}
	}
	for _, same := range shared {
		p := same[0]
		if len(same) > 1 {
			p.Message += fmt.Sprintf(" (holds %d units)", len(same))
			p.Unit = ""
		}
		s.Problems = append(s.Problems, p)
	}
	for folder, specs := range waiting {
		s.Problems = append(s.Problems, config.Problem{Position: config.Position{File: folder}, Code: config.CodeKind,
			Message: fmt.Sprintf("the kind does not load: its %d specs keep their last good bundles", specs)})
	}
	s.Problems = s.Problems.Sorted()
	s.Retry = s.Problems.Retry()
}
