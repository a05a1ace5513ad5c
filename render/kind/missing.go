// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/swell-sh/swell/config/document"
)

// missing says where a key is missing and what is there instead: " in
// self.spec.replicas; there are myt, vla". CEL names the key alone. It is empty
// where that cannot be found out, as for a name bound inside the expression.
func (x *expression) missing(scope *scope, key string) string {
	var found string
	ast.PostOrderVisit(x.checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found != "" {
			return
		}
		operand, index, field := keyed(e)
		if operand == nil || index == nil && field != key {
			return
		}
		mapping, where := x.part(scope, operand)
		looked := ref.Val(types.String(key))
		if index != nil {
			looked, _ = x.part(scope, index)
		}
		m, ok := mapping.(traits.Mapper)
		if !ok || looked == nil || keyText(looked) != key {
			return
		}
		if _, has := m.Find(looked); !has {
			found = " in " + where + "; " + there(m)
		}
	}))
	return found
}

// keyed takes a select or an index apart: what is looked into, and the key,
// which is an expression or a field.
func keyed(e ast.Expr) (operand, index ast.Expr, field string) {
	switch e.Kind() {
	case ast.SelectKind:
		return e.AsSelect().Operand(), nil, e.AsSelect().FieldName()
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index {
			return call.Args()[0], call.Args()[1], ""
		}
	}
	return nil, nil, ""
}

// part evaluates a part of the expression again and gives its text; nil when
// it does not stand on its own.
func (x *expression) part(scope *scope, e ast.Expr) (ref.Val, string) {
	text, err := cel.ExprToString(e, x.checked.NativeRep().SourceInfo())
	if err != nil {
		return nil, ""
	}
	part, err := x.env.compile(text, x.at)
	if err != nil {
		return nil, ""
	}
	value, _, err := part.program.Eval(scope)
	if err != nil {
		return nil, ""
	}
	return value, text
}

// there lists the keys of a map, the first few of many.
func there(m traits.Mapper) string {
	const few = 12
	keys := sortedKeys(m)
	var names []string
	for _, key := range keys[:min(len(keys), few)] {
		names = append(names, document.Shorten(keyText(key)))
	}
	switch {
	case len(keys) == 0:
		return "there are none"
	case len(keys) > few:
		names = append(names, "...")
	case len(keys) == 1:
		return "there is " + names[0]
	}
	return "there are " + strings.Join(names, ", ")
}
