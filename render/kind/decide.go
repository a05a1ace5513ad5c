// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// decided finds what the value of expressions is made of; below leads to a
// value inside it.
func (t *tracer) decided(o Origin, expressions []*expression, below []any) Origin {
	t.decides, t.constants, t.open = nil, nil, map[string]bool{}
	t.reads, t.lets = nil, map[string]bool{} // of what is asked
	for _, x := range expressions {
		if x != nil {
			t.decide(x, x.checked.NativeRep().Expr(), below)
		}
	}
	o.Decides, o.Asks, o.Constants = t.decides, t.reads, t.constants
	return o
}

// evaluate gives the value of a part of an expression; nil when it does not
// stand on its own. Unlike [expression.part] it takes what macros made.
func (t *tracer) evaluate(x *expression, e ast.Expr) ref.Val {
	whole := x.checked.NativeRep()
	message, err := ast.ToProto(ast.NewCheckedAST(ast.NewAST(e, whole.SourceInfo()), whole.TypeMap(), whole.ReferenceMap()))
	if err != nil {
		return nil
	}
	program, err := x.env.cel.Program(cel.CheckedExprToAst(message), x.env.options...)
	if err != nil {
		return nil
	}
	value, _, err := program.Eval(t.scope)
	if err != nil {
		return nil
	}
	return value
}

// decide follows a value, and below it the path, back to what it is made of.
func (t *tracer) decide(x *expression, e ast.Expr, below []any) {
	if root, path, keys := t.path(x, e); root != "" {
		for _, key := range keys {
			t.visit(x, key)
		}
		t.decideName(x, root, append(slices.Clip(path), below...))
		return
	}
	switch e.Kind() {
	case ast.LiteralKind:
		t.constant(x, e.AsLiteral())
	case ast.SelectKind:
		t.decide(x, e.AsSelect().Operand(), append([]any{e.AsSelect().FieldName()}, below...))
	case ast.CallKind:
		t.decideCall(x, e.AsCall(), below)
	case ast.ListKind:
		t.decideItems(x, e.AsList().Elements(), below)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			t.decideEntry(x, entry.AsMapEntry(), below)
		}
	case ast.StructKind:
		for _, entry := range e.AsStruct().Fields() {
			if field := entry.AsStructField(); len(below) == 0 || below[0] == field.Name() {
				t.decide(x, field.Value(), rest(below))
			}
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.LoopStep(), c.IterRange()} {
			t.decide(x, part, nil) // which turn made it is not known
		}
	}
}

func rest(below []any) []any { return below[min(1, len(below)):] }

func (t *tracer) decideItems(x *expression, items []ast.Expr, below []any) {
	if i, ok := first(below).(int); ok && i >= 0 && i < len(items) {
		items = items[i : i+1]
	}
	for _, item := range items {
		t.decide(x, item, rest(below))
	}
}

func first(below []any) any {
	if len(below) == 0 {
		return nil
	}
	return below[0]
}

func (t *tracer) decideEntry(x *expression, entry ast.MapEntry, below []any) {
	key := t.evaluate(x, entry.Key())
	switch {
	case len(below) == 0:
		t.decide(x, entry.Key(), nil)
	case key != nil && step(key.Value()) != below[0]:
		return
	}
	t.decide(x, entry.Value(), rest(below))
}

func (t *tracer) decideCall(x *expression, call ast.CallExpr, below []any) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Conditional:
		t.visit(x, args[0])
		switch t.evaluate(x, args[0]) {
		case types.True:
			args = args[1:2]
		case types.False:
			args = args[2:]
		default:
			args = args[1:]
		}
	case "or", "orValue":
		args = t.chosen(x, call)
	case "optional.of", "optional.ofNonZeroValue", "value":
		if call.IsMemberFunction() {
			args = []ast.Expr{call.Target()}
		}
	case operators.Add:
		if i, ok := first(below).(int); ok {
			t.decideSum(x, args, i, below)
			return
		}
	case fileFunction:
		if name := t.evaluate(x, args[1]); name != nil {
			t.decider("file", []any{keyText(name)})
		}
		return
	case templateFunction:
		name, _ := literal(args[0])
		t.decider("template", []any{name})
		args, below = args[1:2], nil
	default:
		if below = nil; call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
	}
	for _, arg := range args {
		t.decide(x, arg, below)
	}
}

// chosen is the side of an optional's or and orValue that was taken.
func (t *tracer) chosen(x *expression, call ast.CallExpr) []ast.Expr {
	if !call.IsMemberFunction() {
		return call.Args()
	}
	value := t.evaluate(x, call.Target())
	optional, ok := value.(*types.Optional)
	switch {
	case !ok:
		return append([]ast.Expr{call.Target()}, call.Args()...)
	case optional.HasValue():
		return []ast.Expr{call.Target()}
	}
	t.visit(x, call.Target())
	return call.Args()
}

// decideSum follows an item of two lists that are one behind the other.
func (t *tracer) decideSum(x *expression, args []ast.Expr, index int, below []any) {
	sized, ok := t.evaluate(x, args[0]).(traits.Lister)
	if !ok {
		t.decide(x, args[0], nil)
		t.decide(x, args[1], nil)
		return
	}
	if size := int(sized.Size().(types.Int)); index < size {
		t.decide(x, args[0], below)
	} else {
		t.decide(x, args[1], append([]any{index - size}, rest(below)...))
	}
}

// decideName follows a name to what it stands for.
func (t *tracer) decideName(x *expression, root string, path []any) {
	for i := range t.kind.lets {
		if let := &t.kind.lets[i]; let.name == root {
			t.once(root, func() { t.decide(&let.expression, let.checked.NativeRep().Expr(), path) })
			return
		}
	}
	if o := t.object; o.each != nil && root == o.eachName && x != o.each {
		t.once(root, func() { t.decide(o.each, o.each.checked.NativeRep().Expr(), nil) })
		return
	}
	if t.bound(root) {
		t.decider(root, path)
	}
}

// once does not follow a let that was followed: else lets that name each other
// twice take for ever.
func (t *tracer) once(name string, follow func()) {
	if !t.open[name] {
		t.open[name] = true
		follow()
	}
}

func (t *tracer) decider(from string, path []any) {
	same := func(r Read) bool { return r.From == from && slices.Equal(r.Path, path) }
	if !slices.ContainsFunc(t.decides, same) {
		t.decides = append(t.decides, Read{from, path})
	}
}

func (t *tracer) constant(x *expression, value ref.Val) {
	c := Constant{At: x.at, Expression: x.text}
	switch v := value.(type) {
	case types.String:
		c.Value = string(v)
	case types.Int:
		c.Value = int64(v)
	case types.Uint:
		c.Value = uint64(v)
	case types.Double:
		c.Value = float64(v)
	case types.Bool:
		c.Value = bool(v)
	}
	if !slices.Contains(t.constants, c) {
		t.constants = append(t.constants, c)
	}
}

// kept is the scope as it is now, for a look at it later.
func (s *scope) kept() *scope {
	kept := *s
	kept.bound = slices.Clone(s.bound)
	return &kept
}
