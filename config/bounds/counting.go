// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// uncounted is how many calls that read whole texts an expression may have
// without its cost being counted. Each takes what a copy of Text takes.
const uncounted = 8

// cheap are functions that take the same small time whatever they are given,
// when they are given scalars.
var cheap = map[string]bool{
	operators.Conditional: true, operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true,
	operators.Index: true, operators.OptIndex: true, operators.OptSelect: true, operators.Negate: true,
	operators.Subtract: true, operators.Multiply: true, operators.Divide: true, operators.Modulo: true,
	"size": true, "optional.of": true, "optional.none": true, "optional.ofNonZeroValue": true, "or": true, "orValue": true, "hasValue": true, "value": true,
	"int": true, "uint": true, "double": true, "bool": true, "dyn": true, "type": true,
}

// textual are functions that go over texts, or over what a conversion bounds.
var textual = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true, operators.Add: true, operators.In: true,
	"startsWith": true, "endsWith": true, "contains": true, "lowerAscii": true, "upperAscii": true, "trim": true, "substring": true, "charAt": true,
	"string": true, "bytes": true, "hash": true, "file": true, "@file": true, "@template": true, "json.encode": true, "yaml.encode": true,
	"duration": true, "timestamp": true, "base64.encode": true, "@matches": true, "base64.decode": true,
}

// Counts says whether an expression's cost must be counted while it is
// evaluated: when it has a loop, goes deep into values, or does more than a few
// calls that are not cheap. Counting takes about as long again as evaluating.
func Counts(checked *ast.AST) bool {
	must, calls := false, 0
	scalar := func(args ...ast.Expr) bool {
		for _, arg := range args {
			if !isScalar(checked.GetType(arg.ID())) {
				return false
			}
		}
		return true
	}
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			must = true
		case ast.CallKind:
			call := e.AsCall()
			switch name := call.FunctionName(); {
			case cheap[name]:
			case name == operators.In && len(call.Args()) == 2 && checked.GetType(call.Args()[1].ID()).Kind() == types.MapKind:
			case textual[name] && (operator(name) && !scalar(call.Args()...)):
				must = true
			case textual[name]:
				calls++
			default:
				must = true
			}
		}
	}))
	return must || calls > uncounted
}

// operator says whether the function is one that may go deep into values.
func operator(name string) bool {
	switch name {
	case operators.Equals, operators.NotEquals, operators.Add, operators.In:
		return true
	}
	return false
}

func isScalar(t *types.Type) bool {
	switch t.Kind() {
	case types.StringKind, types.BytesKind, types.IntKind, types.UintKind, types.DoubleKind, types.BoolKind, types.TimestampKind, types.DurationKind, types.NullTypeKind:
		return true
	}
	return false
}

// Counting is the options that make a program count its cost by what values hold, written
// out.
func Counting() []cel.ProgramOption {
	var trackers []cost.TrackerOption
	for _, overload := range []string{overloads.Equals, overloads.NotEquals, overloads.InList,
		"hash_dyn", "json_encode_dyn", "yaml_encode_dyn", "@template", "string_format", "list_flatten", "list_flatten_int"} {
		trackers = append(trackers, cost.OverloadTracker(overload, func(args []ref.Val, _ ref.Val) *uint64 {
			w, _ := weigh(args...)
			spent := uint64(w) + 1
			return &spent
		}))
	}
	return []cel.ProgramOption{
		cel.CostTrackerOptions(trackers...),
		cel.CostLimit(Cost),
		cel.CustomDecoratorV2(guardEquality),
	}
}

// equality compares with == or !=. CEL plans these two on its own, so they
// cannot be guarded as functions are.
type equality struct {
	interpreter.InterpretableCall
	left, right interpreter.InterpretableV2
}

func guardEquality(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || len(call.Args()) != 2 || call.Function() != operators.Equals && call.Function() != operators.NotEquals {
		return i, nil
	}
	return &equality{call, call.Args()[0], call.Args()[1]}, nil
}

// Exec implements [interpreter.InterpretableV2].
func (e *equality) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	left := e.left.Exec(frame)
	if types.IsUnknownOrError(left) {
		return left
	}
	right := e.right.Exec(frame)
	if types.IsUnknownOrError(right) {
		return right
	}
	if _, err := weigh(left, right); err != nil {
		return types.WrapErr(err)
	}
	result := types.Equal(left, right)
	if e.Function() == operators.NotEquals {
		result = types.Bool(result != types.True)
	}
	if costs := frame.CostTracker(); costs != nil {
		costs.EvalBinary(frame, e.ID(), e.InterpretableCall, left, right, result)
	}
	return result
}

// Eval implements [interpreter.Interpretable].
func (e *equality) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, e.Exec)
}
