// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package bounds limits the cost of a monorepo's expressions: those of kinds and of
// HealthRules, which swell evaluates, and the rules of a .proto, which protovalidate
// evaluates without any bound. It counts, and measures no time, so a verdict does
// not depend on the machine.
//
// CEL ends, but late: it checks its own cost limit after a call, when the memory is
// already used, and it takes a value with shared parts for a small one. So the
// arguments of each call are checked before the call, and a value counts as large as
// it is when written out.
package bounds

import (
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
)

const (
	// Rule is the length in bytes of a rule of a .proto, and of an expression of a
	// HealthRule.
	Rule = 4096
	// Text is the length in bytes of a text that an expression makes, and of a file
	// of the monorepo.
	Text = 8 << 20
	// Parts is how many values a value may hold, written out, and a document with
	// its aliases. An object of 1 MiB, the most an API server stores, has fewer.
	Parts = 500_000
	// Cost bounds one evaluation of an expression in CEL's unit, about one for each
	// step or for ten bytes of text; what it allows takes a tenth of a second.
	Cost = 1_000_000
	// RulesCost bounds all rules with loops of a spec.
	RulesCost = 10_000_000
	// SpecCost bounds the steps of one spec on one target, in CEL's unit: those of
	// expressions that are counted, of template files and of reading files, and
	// one for each let, object and item.
	SpecCost = 4_000_000
	// Range is the longest lists.range.
	Range = 100_000

	// product bounds calls that compare each of one argument with each of
	// another.
	product = 1 << 24
)

// ErrTooLarge is the error of a value above [Text] or [Parts].
var ErrTooLarge = fmt.Errorf("a value of more than %d MiB of text or %d parts, written out", Text>>20, Parts)

// Exceeded says whether an evaluation ended because it took more than [Cost].
func Exceeded(err error) bool {
	return err != nil && strings.Contains(err.Error(), "actual cost limit exceeded")
}

// Spent is what an evaluation took, in CEL's unit; 0 when it was not counted.
func Spent(details *cel.EvalDetails) uint64 {
	if details == nil || details.ActualCost() == nil {
		return 0
	}
	return *details.ActualCost()
}
