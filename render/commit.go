// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"sync"

	"github.com/swell-sh/swell/config"
)

// Commit renders single units of one commit, to get back the bundles of an
// earlier release. It is safe for concurrent use.
type Commit struct {
	repository *config.Repository
	kinds      *kindSet
	places     *places
	units      map[config.UnitPath]*config.Unit

	mu       sync.Mutex
	rendered map[config.UnitPath]*Unit
}

// NewCommit loads the tree of a commit, without rendering anything yet.
func NewCommit(tree config.Tree) (*Commit, error) {
	c := &Commit{repository: config.Load(tree, nil), units: map[config.UnitPath]*config.Unit{}, rendered: map[config.UnitPath]*Unit{}}
	if problems := append(c.repository.Problems, checkVersions(c.repository)...); len(problems) > 0 {
		return nil, fmt.Errorf("the fleet's documents have problems: %w", problems)
	}
	var compiler Compiler
	compiler.loadKinds(c.repository)
	c.kinds = compiler.kinds
	if c.kinds.retry {
		return nil, fmt.Errorf("the kinds could not be read: %w", c.kinds.Problems)
	}
	c.places = newPlaces(c.repository)
	for _, unit := range c.repository.Units {
		if unit.Defaults.Problems.Retry() {
			return nil, fmt.Errorf("unit %s: %w", unit.Path, unit.Defaults.Problems)
		}
		c.units[unit.Path] = unit
	}
	return c, nil
}

// Bundle renders the unit and returns its bundle of that digest. It is an
// error when the commit does not give such a bundle, as can happen when
// another version of swell rendered it.
func (c *Commit) Bundle(path config.UnitPath, target config.TargetName, digest Digest) (*Bundle, error) {
	unit := c.unit(path)
	switch {
	case unit == nil:
		return nil, fmt.Errorf("unit %s: not in that commit", path)
	case len(unit.Problems) > 0:
		return nil, fmt.Errorf("unit %s: has a problem in that commit: %s", path, unit.Problems[0])
	case unit.Bundles[target] == nil:
		return nil, fmt.Errorf("unit %s: not on target %s in that commit", path, target)
	case unit.Bundles[target].Digest != digest:
		return nil, fmt.Errorf("unit %s on target %s: renders to %s instead of %s; was it rendered by another version of swell?",
			path, target, unit.Bundles[target].Digest.Short(), digest.Short())
	}
	return unit.Bundles[target], nil
}

func (c *Commit) unit(path config.UnitPath) *Unit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.rendered[path]; known != nil {
		return known
	}
	unit := c.units[path]
	if unit == nil {
		return nil
	}
	rendered := renderUnit(c.repository, c.kinds, unit, c.places)
	if !rendered.Problems.Retry() {
		c.rendered[path] = rendered
	}
	return rendered
}
