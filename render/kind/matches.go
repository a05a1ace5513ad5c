// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxMatching bounds the product of a text's length in bytes and a pattern's
// in instructions, which is how long matching takes.
const maxMatching = 1 << 20

// matching is the function matches, in place of CEL's: that one goes over any
// text with any pattern, and plans patterns that are literals on its own. Here
// a literal pattern is compiled when the kind is loaded.
func matching() []cel.EnvOption {
	patterns := &patterns{}
	expand := func(eh cel.MacroExprFactory, text, pattern ast.Expr) (ast.Expr, *cel.Error) {
		if written, ok := literal(pattern); ok {
			if _, err := patterns.compile(written); err != nil {
				return nil, eh.NewError(pattern.ID(), "matches: "+err.Error())
			}
		}
		return eh.NewCall(matchesFunction, text, pattern), nil
	}
	return []cel.EnvOption{
		cel.Function(matchesFunction, cel.Overload(matchesFunction+"_string", []*cel.Type{cel.StringType, cel.StringType}, cel.BoolType,
			cel.BinaryBinding(func(text, pattern ref.Val) ref.Val {
				return patterns.match(string(text.(types.String)), string(pattern.(types.String)))
			}))),
		cel.Macros(
			cel.ReceiverMacro("matches", 1, func(eh cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
				return expand(eh, target, args[0])
			}),
			cel.GlobalMacro("matches", 2, func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
				return expand(eh, args[0], args[1])
			}),
		),
	}
}

// patterns remembers the patterns of a kind that are literals.
type patterns struct{ compiled sync.Map } // by their text

type pattern struct {
	*regexp.Regexp
	instructions int
}

func (p *patterns) compile(text string) (pattern, error) {
	compiled, err := compilePattern(text)
	if err == nil {
		p.compiled.Store(text, compiled)
	}
	return compiled, err
}

func compilePattern(text string) (pattern, error) {
	const most = 1000 // characters of a pattern that is compiled
	if len(text) > most {
		return pattern{}, fmt.Errorf("a pattern of %d bytes: want at most %d", len(text), most)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, fmt.Errorf("not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return pattern{}, err
	}
	compiled, err := regexp.Compile(text)
	return pattern{compiled, len(program.Inst)}, err
}

func (p *patterns) match(text, written string) ref.Val {
	known, ok := p.compiled.Load(written)
	if !ok {
		compiled, err := compilePattern(written)
		if err != nil {
			return types.WrapErr(fmt.Errorf("matches: %w", err))
		}
		known = compiled
	}
	compiled := known.(pattern)
	if len(text)*compiled.instructions > maxMatching {
		return types.NewErr("matches: a string of %d bytes is too long for a pattern of %d steps", len(text), compiled.instructions)
	}
	return types.Bool(compiled.MatchString(text))
}
