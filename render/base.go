// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

// ofBase ends a message of a rule that the commit itself does not have.
const ofBase = ", by the rules that the change goes to, which count until the next commit"

// ofLeft ends a message of a rule of a Tenant that the unit has no more.
const ofLeft = ", by the tenant that the unit comes from, which counts until the next commit"

// rules are what judges the units of a commit: its own rules, and those of what it goes
// to, because a change cannot allow itself anything. The Tenants of both are in their
// repositories, see [world.judges]. Nobody changes rules once they are made.
type rules struct {
	base *config.Repository // see [Compiler.Base]
	// left are the Tenants of the base that units come from which have another one now. They
	// judge these too.
	left       map[config.UnitPath]*config.Tenant
	treatments config.Checks // what becomes of what checks find
	checks     *checks
	policies   *policies // nil for a [Commit], whose objects were judged when it was released
	// basePolicies are those of what the change goes to, where they differ; else nil.
	basePolicies *policies
}

// judgesToo is the base, where its rules judge a commit too: where the commit changes more than
// rules. Else it is nil.
func (c *Compiler) judgesToo(r *config.Repository) *config.Repository {
	if c.Base == nil || r.OnlyRules(c.Base) {
		return nil
	}
	return c.Base
}

// rulesOf are those of a repository. What is as it was for the last commit is taken over.
func (c *Compiler) rulesOf(r, base *config.Repository) rules {
	var before rules
	if c.world != nil {
		before = c.world.rules
	}
	made := rules{base: base, left: leftTenants(r, base), treatments: c.checksOf(r, base)}
	var known []sourcedChecker
	if before.checks != nil {
		known = before.checks.all
	}
	made.checks = newChecks(made.treatments, checkersOf(r, base, known), c.Checkers, c.released)
	if c.released {
		return made
	}
	made.policies = loadPolicies(r, before.policies)
	if base != nil && (base.PoliciesHash != r.PoliciesHash || base.FactsHash != r.FactsHash) {
		made.basePolicies = loadPolicies(base, before.basePolicies)
	}
	return made
}

// leftTenants are the Tenants of base of the units that have another one in r.
func leftTenants(r, base *config.Repository) map[config.UnitPath]*config.Tenant {
	left := map[config.UnitPath]*config.Tenant{}
	for path, before := range r.Moved(base) {
		if t := base.Tenants[before.Tenant]; t != nil && r.Unit(path).Defaults.Tenant != t.Name {
			left[path] = t
		}
	}
	return left
}

// baseFleet is the address of the base's fleet, where its Tenants judge units too; else empty.
func (r *rules) baseFleet(own *config.Repository) string {
	if r.base == nil || r.base.FleetHash == own.FleetHash {
		return ""
	}
	return r.base.FleetHash
}

// problemsOfBase are those of its policies. They hold nothing by themselves.
func (r *rules) problemsOfBase() (problems document.Problems) {
	if r.basePolicies == nil {
		return nil
	}
	for _, p := range r.basePolicies.problems {
		p.Message += ofBase
		problems = append(problems, p)
	}
	return problems
}

// checksOf say what becomes of what checks find.
func (c *Compiler) checksOf(r, base *config.Repository) config.Checks {
	switch {
	case c.Checks != nil:
		return *c.Checks
	case base != nil:
		return r.Checks.Stricter(base.Checks)
	}
	return r.Checks
}

// sourcedChecker is a Checker with what stands beside it in its repository.
type sourcedChecker struct {
	*config.Checker
	schema *schemaFile // nil where it judges by none
	base   bool        // it is one of the base alone
}

// checkersOf are the Checkers of a repository, and those of the base that it does not
// have in the same words, or with the same schema. known are those of the commit before.
func checkersOf(r, base *config.Repository, known []sourcedChecker) (list []sourcedChecker) {
	for _, each := range r.Checkers {
		list = append(list, sourcedChecker{Checker: each, schema: readSchema(r.Tree, each, known)})
	}
	if base == nil {
		return list
	}
	own := list
	for _, each := range base.Checkers {
		schema := readSchema(base.Tree, each, known)
		same := func(o sourcedChecker) bool { return o.Same(each) && o.schema.at() == schema.at() }
		if !slices.ContainsFunc(own, same) {
			list = append(list, sourcedChecker{each, schema, true})
		}
	}
	return list
}
