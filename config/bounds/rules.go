// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"errors"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// HasLoop says whether an expression goes over a list or a map. Without one, it
// is bounded by its own length times that of its value, as long as it cannot make
// texts longer, which [Growth] sees to.
func HasLoop(parsed *cel.Ast) bool {
	found := false
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		found = found || e.Kind() == ast.ComprehensionKind
	}))
	return found
}

// Growth finds what may make long texts of short ones in a rule. The zero value is
// ready.
type Growth struct{ inFormat map[int64]bool }

// Check looks at one expression of the rule, the outer ones first.
func (g *Growth) Check(e ast.Expr) error {
	if e.Kind() != ast.CallKind {
		return nil
	}
	if e.AsCall().FunctionName() != "format" {
		return growingCall(e.AsCall())
	}
	if g.inFormat[e.ID()] {
		return errors.New("format: a format inside another one may grow without end")
	}
	if g.inFormat == nil {
		g.inFormat = map[int64]bool{}
	}
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(below ast.Expr) {
		g.inFormat[below.ID()] = g.inFormat[below.ID()] || below.ID() != e.ID()
	}))
	return nil
}

func growingCall(call ast.CallExpr) error {
	args := call.Args()
	switch call.FunctionName() {
	case "replace":
		if len(args) < 2 {
			return nil
		}
		from, to := Literal(args[0]), Literal(args[1])
		if from == nil || to == nil || *from == "" || len(*to) > len(*from) {
			return errors.New("replace: want literal strings, and the new one not longer than the old one")
		}
	case "join":
		if len(args) == 1 && (Literal(args[0]) == nil || len(*Literal(args[0])) > 16) {
			return errors.New("join: want a separator that is a literal string of at most 16 bytes")
		}
	case "strings.quote":
		return errors.New("strings.quote: not in rules, it may grow without end")
	}
	return nil
}

// Literal is a text that is written out in an expression; nil for all else.
func Literal(e ast.Expr) *string {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	text, ok := e.AsLiteral().(types.String)
	if !ok {
		return nil
	}
	return (*string)(&text)
}

// CountRules makes the program of a rule count what it takes, and end it above
// [Cost].
func CountRules() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CostLimit(Cost), cel.CostTracking(ruleEstimator{})}
}

// ruleEstimator counts a call as one step and the texts it goes through.
type ruleEstimator struct{}

func (ruleEstimator) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	for _, v := range append(args[:len(args):len(args)], result) {
		switch v := v.(type) {
		case types.String:
			cost += uint64(len(v)) / 10
		case types.Bytes:
			cost += uint64(len(v)) / 10
		case traits.Lister:
			if function != "size" && function != "_[_]" {
				cost += uint64(v.Size().(types.Int))
			}
		}
	}
	return &cost
}
