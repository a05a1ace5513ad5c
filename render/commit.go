// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/object"
)

// Commit renders single units of one commit, to get back the bundles of an
// earlier release. It is safe for concurrent use.
type Commit struct {
	// HealthRules are those of the commit; never nil.
	HealthRules HealthRules

	compiler Compiler
	pass     *pass
	units    map[config.UnitPath]*config.Unit

	mu       sync.Mutex
	defined  bool
	rendered map[config.UnitPath]*Unit
}

// NewCommit loads the tree of a commit, without rendering anything yet. What
// an earlier render left in the cache, which may be nil, is used. What programs say
// of its texts today refuses nothing, and neither do plain Secrets: it was released once. They are asked only to
// find what collectors left out.
func NewCommit(tree config.Tree, cache *cache.Cache, version string, checkers Checkers, charts Charts) (*Commit, error) {
	repository := config.Load(tree, nil)
	rules, problems := checkFleet(repository)
	if len(problems) > 0 {
		return nil, fmt.Errorf("the fleet's documents have problems: %w", problems)
	}
	for unit := range repository.Units() {
		if unit.Defaults.Problems.Retry() {
			return nil, fmt.Errorf("unit %s: %w", unit.Path, unit.Defaults.Problems)
		}
	}
	compiler := Compiler{Cache: cache, Version: version, Checkers: checkers, Charts: charts}
	c := compiler.commitOf(repository)
	c.HealthRules = rules
	return c, nil
}

// commitOf renders single units of a repository without a problem in its fleet, with the cache and
// the programs of the compiler.
func (c *Compiler) commitOf(repository *config.Repository) *Commit {
	commit := &Commit{compiler: Compiler{Cache: c.Cache, Version: c.Version, Checkers: c.Checkers, Charts: c.Charts, released: true},
		units: map[config.UnitPath]*config.Unit{}, rendered: map[config.UnitPath]*Unit{}}
	for unit := range repository.Units() {
		commit.units[unit.Path] = unit
	}
	commit.pass = commit.compiler.begin(repository, commit.compiler.rulesOf(repository, nil))
	return commit
}

// Unit is a unit of the commit, rendered; nil where there is none.
func (c *Commit) Unit(path config.UnitPath) (*Unit, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.units[path] == nil {
		return nil, nil
	}
	return c.unitLocked(path)
}

// Bundle returns the unit's bundle of that digest. It is an error when the
// commit does not give such a bundle, as can happen when another version of
// swell rendered it.
func (c *Commit) Bundle(path config.UnitPath, target config.TargetName, digest object.Digest) (*object.Bundle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.units[path] == nil {
		return nil, fmt.Errorf("unit %s: not in that commit", path)
	}
	if b := c.rememberedLocked(path, target, digest); b != nil {
		return b, nil
	}
	unit, err := c.unitLocked(path)
	if err != nil {
		return nil, err
	}
	on := unit.On(target)
	switch {
	case len(unit.Problems) > 0:
		return nil, fmt.Errorf("unit %s: has a problem in that commit: %s", path, unit.Problems[0])
	case on == nil || on.Digest == "":
		return nil, fmt.Errorf("unit %s: not on target %s in that commit", path, target)
	case on.Digest != digest:
		return nil, fmt.Errorf("unit %s on target %s: renders to %s instead of %s; was it rendered by another version of swell?",
			path, target, on.Digest.Short(), digest.Short())
	}
	return c.pass.world.bundle(unit, target)
}

// Tenant is the tenant that the unit belongs to in the commit, with no more than
// a name where the fleet has no document of it; nil when the unit is not in it.
func (c *Commit) Tenant(path config.UnitPath) *config.Tenant {
	unit := c.units[path]
	if unit == nil {
		return nil
	}
	if tenant := c.pass.world.repository.Tenants[unit.Defaults.Tenant]; tenant != nil {
		return tenant
	}
	return &config.Tenant{Name: unit.Defaults.Tenant}
}

// rememberedLocked looks for the bundle in the cache. The digest proves that it
// is the one.
func (c *Commit) rememberedLocked(path config.UnitPath, target config.TargetName, digest object.Digest) *object.Bundle {
	w, source := c.pass.world, c.units[path]
	e := &entry{source: source, placed: w.placed(source.Defaults).places}
	e.static = w.key(source, e.placed)
	for _, r := range w.traces(e.static, len(e.placed)) {
		unit := w.assemble(e, r)
		if on := unit.On(target); on == nil || on.Digest != digest {
			continue
		}
		packed, ok := w.cache.Get(unit.body)
		if !ok {
			continue
		}
		if b, err := decodeBundle(unit, packed, target); err == nil && b != nil {
			return b
		}
	}
	return nil
}

// defineLocked completes the world, once it can be read.
func (c *Commit) defineLocked() error {
	if c.defined {
		return nil
	}
	c.compiler = Compiler{Cache: c.compiler.Cache, Version: c.compiler.Version, Checkers: c.compiler.Checkers, Charts: c.compiler.Charts, released: true}
	before := c.pass.world
	c.pass = c.compiler.begin(before.repository, before.rules)
	w := c.pass.world
	c.pass.lookUp()
	w.define(c.pass)
	problems := slices.Concat(w.kinds.Problems, w.problems, w.hard.shared)
	switch {
	case problems.Retry():
		return fmt.Errorf("what units are rendered from could not be read: %w", problems.Sorted())
	case w.hard.unread:
		return errors.New("a file that may define custom resources could not be read")
	}
	c.defined = true
	return nil
}

// unitLocked renders a unit, once.
func (c *Commit) unitLocked(path config.UnitPath) (*Unit, error) {
	if known := c.rendered[path]; known != nil {
		return known, nil
	}
	if err := c.defineLocked(); err != nil {
		return nil, err
	}
	w := c.pass.world
	e := c.compiler.entries[path]
	c.pass.refresh(e)
	unit := w.assemble(e, e.result())
	if !unit.Problems.Retry() {
		c.rendered[path] = unit
	}
	return unit, nil
}
