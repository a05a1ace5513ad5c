// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
)

// What an expression may take. CEL ends, but not soon: its own cost limit is
// looked at after a call, when the memory is gone already, and it takes a value
// whose parts are shared for a small one. So each call is held to what it is
// given, and what is counted is what a value holds when it is written out.
const (
	// maxText is the length in bytes of a text that an expression makes.
	maxText = config.MaxFileSize
	// maxNodes is how many values a value may hold, written out.
	maxNodes = 500_000
	// maxCost bounds one expression in CEL's unit, about one for each step;
	// what it allows takes a tenth of a second.
	maxCost = 1_000_000
	// maxRange is the longest lists.range.
	maxRange = 100_000
	// maxProduct bounds calls that compare each of one argument with each of
	// another.
	maxProduct = 1 << 24
)

var errTooLarge = fmt.Errorf("a value of more than %d MiB of text or %d parts, written out", maxText>>20, maxNodes)

// uncounted is how many calls that read whole texts an expression may have
// without its cost being counted. Each takes what a copy of maxText takes.
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

// textual are functions that go over texts, or over what [conversion] bounds.
var textual = map[string]bool{
	operators.Equals: true, operators.NotEquals: true, operators.Less: true, operators.LessEquals: true,
	operators.Greater: true, operators.GreaterEquals: true, operators.Add: true, operators.In: true,
	"startsWith": true, "endsWith": true, "contains": true, "lowerAscii": true, "upperAscii": true, "trim": true, "substring": true, "charAt": true,
	"string": true, "bytes": true, "hash": true, "file": true, fileFunction: true, templateFunction: true, "json.encode": true, "yaml.encode": true,
	"duration": true, "timestamp": true, "base64.encode": true, matchesFunction: true, "base64.decode": true,
}

// counts says whether an expression's cost must be counted while it is
// evaluated: when it has a loop, goes deep into values, or does more than a few
// calls that are not cheap. Counting takes about as long again as evaluating.
func counts(checked *ast.AST) bool {
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

// weight is what a value holds, written out: one for each part and one for
// each 64 bytes of text.
type weight struct{ left int }

// weigh is the weight of values, or an error as soon as it is above maxNodes.
func weigh(values ...ref.Val) (int, error) {
	w := weight{left: maxNodes}
	for _, v := range values {
		if !w.add(v) {
			return maxNodes, errTooLarge
		}
	}
	return maxNodes - w.left, nil
}

func (w *weight) spend(text int) bool {
	w.left -= 1 + text/64
	return w.left >= 0
}

func (w *weight) add(v ref.Val) bool {
	switch v := v.(type) {
	case types.String:
		return w.spend(len(v))
	case types.Bytes:
		return w.spend(len(v))
	case *facts:
		v.noted(v.path) // the weight decides what comes out
		return w.native(v.value)
	case *types.Optional:
		return w.spend(0) && (!v.HasValue() || w.add(v.GetValue()))
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			if !w.add(key) || !w.add(v.Get(key)) {
				return false
			}
		}
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			if !w.add(it.Next()) {
				return false
			}
		}
	default:
		if message, ok := v.Value().(proto.Message); ok {
			return w.message(message.ProtoReflect())
		}
	}
	return w.spend(0)
}

func (w *weight) native(value any) bool {
	switch v := value.(type) {
	case string:
		return w.spend(len(v))
	case []any:
		for _, item := range v {
			if !w.native(item) {
				return false
			}
		}
	case map[string]any:
		for key, item := range v {
			if !w.spend(len(key)) || !w.native(item) {
				return false
			}
		}
	}
	return w.spend(0)
}

func (w *weight) message(m protoreflect.Message) bool {
	ok := w.spend(0)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsList():
			for i := range value.List().Len() {
				ok = ok && w.proto(value.List().Get(i))
			}
		case field.IsMap():
			value.Map().Range(func(key protoreflect.MapKey, item protoreflect.Value) bool {
				ok = ok && w.spend(len(key.String())) && w.proto(item)
				return ok
			})
		default:
			ok = ok && w.proto(value)
		}
		return ok
	})
	return ok
}

func (w *weight) proto(value protoreflect.Value) bool {
	switch v := value.Interface().(type) {
	case string:
		return w.spend(len(v))
	case []byte:
		return w.spend(len(v))
	case protoreflect.Message:
		return w.message(v)
	}
	return w.spend(0)
}

// checkBound holds a value that is bound to a name to what an expression may
// make. A part of the spec itself is as long as its file.
func checkBound(v ref.Val) error {
	switch v := v.(type) {
	case types.String:
		if len(v) > maxText {
			return errTooLarge
		}
		return nil
	case types.Bytes:
		if len(v) > maxText {
			return errTooLarge
		}
		return nil
	case types.Int, types.Bool, types.Uint, types.Double, types.Null, types.Timestamp, types.Duration, *facts:
		return nil
	}
	switch v.Value().(type) {
	case proto.Message, protoreflect.List, protoreflect.Map:
		return nil
	}
	_, err := weigh(v)
	return err
}

// guards are calls that are looked at before they are made, by the function's
// name: their time or their result is not in proportion to what CEL counts.
var guards = map[string]func(args []ref.Val) error{
	operators.Add:           guardAdd,
	operators.In:            deep,
	"distinct":              guardPairs,
	"hasOnly":               guardPairs,
	"hasAny":                guardPairs,
	"hasAll":                guardPairs,
	"hasExactly":            guardPairs,
	"flatten":               deep,
	"sort":                  deep,
	"format":                deep,
	"join":                  guardJoin,
	"replace":               guardReplace,
	"split":                 guardSplit,
	"indexOf":               guardSearch,
	"lastIndexOf":           guardSearch,
	"strings.quote":         deep,
	"base64.encode":         deep,
	"reverse":               deep,
	"@sortByAssociatedKeys": deep,
}

// deep holds what a call goes over to what is allowed.
func deep(args []ref.Val) error {
	if len(args) == 2 {
		if _, isMap := args[1].(traits.Mapper); isMap {
			return nil // looked up by a key, which is a scalar
		}
	}
	_, err := weigh(args...)
	return err
}

func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Lister:
		size, _ := v.Size().(types.Int)
		return int(size)
	}
	return 0
}

func guardAdd(args []ref.Val) error {
	most := maxText
	if _, isList := args[0].(traits.Lister); isList {
		most = maxNodes
	}
	if len(args) == 2 && length(args[0])+length(args[1]) > most {
		return errTooLarge
	}
	return nil
}

// guardPairs is for calls that compare all items with all others.
func guardPairs(args []ref.Val) error {
	total := 1
	for _, arg := range args {
		w, err := weigh(arg)
		if err != nil {
			return err
		}
		total *= w
	}
	if len(args) == 1 {
		total *= length(args[0])
	}
	if total > maxProduct {
		return errors.New("lists that are too long to compare each item with each other")
	}
	return nil
}

func guardJoin(args []ref.Val) error {
	list, ok := args[0].(traits.Lister)
	if !ok || length(list) > maxNodes {
		return errTooLarge
	}
	total := 0
	for it := list.Iterator(); it.HasNext() == types.True; {
		total += length(it.Next())
	}
	if len(args) == 2 {
		total += length(list) * length(args[1])
	}
	if total > maxText {
		return errTooLarge
	}
	return nil
}

func guardReplace(args []ref.Val) error {
	if len(args) < 3 {
		return nil
	}
	text, _ := args[0].(types.String)
	old, _ := args[1].(types.String)
	if len(text)+strings.Count(string(text), string(old))*(length(args[2])-len(old)) > maxText {
		return errTooLarge
	}
	return nil
}

func guardSplit(args []ref.Val) error {
	text, _ := args[0].(types.String)
	separator, _ := args[1].(types.String)
	if strings.Count(string(text), string(separator)) > maxNodes {
		return errTooLarge
	}
	return nil
}

func guardSearch(args []ref.Val) error {
	if length(args[0])*length(args[1]) > maxProduct {
		return errors.New("strings that are too long to search one in the other")
	}
	return nil
}

// guarded are the functions of an environment with their guards before them.
func guarded(env *cel.Env) (cel.ProgramOption, error) {
	var all []*functions.Overload
	for name, guard := range guards {
		declared := env.Functions()[name]
		if declared == nil {
			return nil, fmt.Errorf("function %s: unknown to CEL", name)
		}
		bindings, err := declared.Bindings()
		if err != nil {
			return nil, err
		}
		for _, b := range bindings {
			all = append(all, guardOne(*b, guard))
		}
	}
	//lint:ignore SA1019 a binding of CEL's own can be replaced in no other way: declaring it again is an error
	return cel.Functions(all...), nil
}

func guardOne(b functions.Overload, guard func([]ref.Val) error) *functions.Overload {
	if unary := b.Unary; unary != nil {
		b.Unary = func(arg ref.Val) ref.Val {
			if err := guard([]ref.Val{arg}); err != nil {
				return types.WrapErr(err)
			}
			return unary(arg)
		}
	}
	if binary := b.Binary; binary != nil {
		b.Binary = func(x, y ref.Val) ref.Val {
			if err := guard([]ref.Val{x, y}); err != nil {
				return types.WrapErr(err)
			}
			return binary(x, y)
		}
	}
	if variadic := b.Function; variadic != nil {
		b.Function = func(args ...ref.Val) ref.Val {
			if err := guard(args); err != nil {
				return types.WrapErr(err)
			}
			return variadic(args...)
		}
	}
	return &b
}

// countingOptions make a program count its cost by what values hold, written
// out.
func countingOptions() []cel.ProgramOption {
	var trackers []cost.TrackerOption
	for _, overload := range []string{overloads.Equals, overloads.NotEquals, overloads.InList,
		"hash_dyn", "json_encode_dyn", "yaml_encode_dyn", templateFunction, "string_format", "list_flatten", "list_flatten_int"} {
		trackers = append(trackers, cost.OverloadTracker(overload, func(args []ref.Val, _ ref.Val) *uint64 {
			w, _ := weigh(args...)
			spent := uint64(w) + 1
			return &spent
		}))
	}
	return []cel.ProgramOption{
		cel.CostTrackerOptions(trackers...),
		cel.CostLimit(maxCost),
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
