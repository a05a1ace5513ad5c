// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// ofBase ends a message of a rule that the commit itself does not have.
const ofBase = ", by the rules that the change goes to"

// takeBase has the rules of the base judge what the compiler renders next, besides the
// commit's own: a change cannot allow itself anything. Its Tenants are asked where those
// of the commit are, see [world.judges].
func (c *Compiler) takeBase(r *config.Repository) (problems document.Problems) {
	if c.Base == nil {
		return nil
	}
	before := c.basePolicies
	c.basePolicies = nil
	if c.Base.PoliciesHash == r.PoliciesHash && c.Base.FactsHash == r.FactsHash {
		return nil
	}
	c.basePolicies = loadPolicies(c.Base, before)
	for _, p := range c.basePolicies.problems {
		p.Message += ofBase
		problems = append(problems, p)
	}
	return problems
}

// checksOf say what becomes of what checks find.
func (c *Compiler) checksOf(r *config.Repository) config.Checks {
	switch {
	case c.Checks != nil:
		return *c.Checks
	case c.Base != nil:
		return r.Checks.Stricter(c.Base.Checks)
	}
	return r.Checks
}

// checkersOf are the Checkers of a repository, and those of the base that it does not
// have in the same words.
func (c *Compiler) checkersOf(r *config.Repository) []*config.Checker {
	list := slices.Clone(r.Checkers)
	if c.Base == nil {
		return list
	}
	for _, each := range c.Base.Checkers {
		if !slices.ContainsFunc(r.Checkers, each.Same) {
			list = append(list, each)
		}
	}
	return list
}
