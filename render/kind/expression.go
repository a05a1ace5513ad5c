// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types/ref"

	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// expression is one compiled CEL expression.
type expression struct {
	text    string
	name    string // when the expression is just a name
	at      document.Position
	typ     *cel.Type
	program cel.Program
	counted bool // its cost is known after each evaluation
	secret  bool // in an object of kind Secret: no value of it is in a message
	env     *environment
	checked *cel.Ast
}

// compile checks and plans an expression. The error is one line, with the
// column inside the expression where CEL knows it.
func (e *environment) compile(text string, at document.Position) (*expression, error) {
	checked, issues := e.cel.Compile(text)
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		message, _, _ := strings.Cut(first.Message, "\n")
		return nil, fmt.Errorf("%q: %s", text, strings.TrimSpace(message))
	}
	if err := errors.Join(e.checkData(checked.NativeRep()), checkZones(checked.NativeRep())); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	options := append(slices.Clip(e.options), cel.EvalOptions(cel.OptOptimize))
	counted := bounds.Counts(checked.NativeRep())
	if counted {
		options = append(options, bounds.Counting()...)
	}
	program, err := e.cel.Program(checked, options...)
	if err != nil {
		return nil, fmt.Errorf("%q: %s", text, oneLine(err))
	}
	x := &expression{text: text, at: at, typ: checked.OutputType(), program: program, counted: counted, env: e, checked: checked}
	if e.names[text] {
		x.name = text
	}
	return x, nil
}

// checkData finds files of data that do not exist. A file that is asked for
// with ? or has() may be missing.
func (e *environment) checkData(checked *ast.AST) error {
	var err error
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		var operand ast.Expr
		var name string
		switch x.Kind() {
		case ast.SelectKind:
			if !x.AsSelect().IsTestOnly() {
				operand, name = x.AsSelect().Operand(), x.AsSelect().FieldName()
			}
		case ast.CallKind:
			if call := x.AsCall(); call.FunctionName() == operators.Index {
				operand = call.Args()[0]
				name, _ = literal(call.Args()[1])
			}
		}
		if name == "" || operand.Kind() != ast.IdentKind || operand.AsIdent() != "data" || slices.Contains(e.files, name) || err != nil {
			return
		}
		err = fmt.Errorf("data.%s: no such file of data%s", document.Shorten(name), document.DidYouMean(name, e.files))
	}))
	return err
}

func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// run evaluates the expression.
func (x *expression) run(scope *scope) (ref.Val, error) {
	result, details, err := x.program.Eval(scope)
	if err == nil && x.counted {
		err = scope.spend(bounds.Spent(details))
	}
	if err != nil {
		return nil, &evalError{x.at, x.explain(scope, err)}
	}
	return result, nil
}

// explain is the error of an evaluation with the expression before it.
func (x *expression) explain(scope *scope, err error) error {
	var unread *readError
	if x.secret && !errors.As(err, &unread) {
		return fmt.Errorf("%q: cannot be evaluated for this spec; why is not said, since it may show what the Secret holds", x.text)
	}
	reason := oneLine(err)
	switch {
	case bounds.Exceeded(err):
		reason = fmt.Sprintf("takes more than %d steps", bounds.Cost)
	case strings.HasPrefix(reason, "no such key: "):
		reason += x.missing(scope, strings.TrimPrefix(reason, "no such key: "))
	}
	for _, shape := range []string{"no such key", "unsupported index type", "no such overload"} {
		if strings.Contains(reason, shape) {
			reason = cmp.Or(x.misread(scope), reason)
		}
	}
	return &explained{fmt.Sprintf("%q: %s", x.text, reason), err}
}

// explained is an error in other words.
type explained struct {
	text  string
	cause error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.cause }

func (x *expression) wantBool() error {
	if x.typ.Kind() != cel.BoolKind && x.typ.Kind() != cel.DynKind {
		return fmt.Errorf("%q: want a bool, got %s", x.text, x.typ)
	}
	return nil
}

// itemType is what `each` binds: a list's item or a map's key; nothing for an
// optional that is absent.
func (x *expression) itemType() (*cel.Type, error) {
	switch x.typ.Kind() {
	case cel.ListKind, cel.MapKind:
		return x.typ.Parameters()[0], nil
	case cel.DynKind:
		return cel.DynType, nil
	case cel.OpaqueKind:
		if isOptional(x.typ) {
			return (&expression{text: x.text, typ: x.typ.Parameters()[0]}).itemType()
		}
	}
	return nil, fmt.Errorf("%q: want a list or a map, got %s", x.text, x.typ)
}

// fits says whether results of the expression can have a form. What is only
// known at run time is checked there.
func (x *expression) fits(t *schema.Type) error {
	if typ := mismatch(x.typ, t); typ != nil {
		return fmt.Errorf("%q: want %s, got %s", x.text, t.Form, typ)
	}
	return nil
}

func isOptional(typ *cel.Type) bool {
	return typ.Kind() == cel.OpaqueKind && typ.TypeName() == "optional_type"
}

func mismatch(typ *cel.Type, t *schema.Type) *cel.Type {
	if t == nil || t.Form == schema.Any {
		return nil
	}
	if isOptional(typ) {
		return mismatch(typ.Parameters()[0], t)
	}
	var ok bool
	switch typ.Kind() {
	case cel.StringKind, cel.TimestampKind, cel.DurationKind:
		ok = t.Form == schema.String || t.Form == schema.IntOrString || t.Form == schema.Quantity || t.Form == schema.Base64
	case cel.BytesKind:
		ok = t.Form == schema.Base64 || t.Form == schema.String
	case cel.IntKind, cel.UintKind:
		ok = t.Form == schema.Integer || t.Form == schema.Number || t.Form == schema.IntOrString || t.Form == schema.Quantity
	case cel.DoubleKind:
		ok = t.Form == schema.Number || t.Form == schema.Quantity
	case cel.BoolKind:
		ok = t.Form == schema.Boolean
	case cel.ListKind:
		if t.Form == schema.List {
			return mismatch(typ.Parameters()[0], t.Elem)
		}
	case cel.MapKind:
		if t.Form == schema.Map {
			return mismatch(typ.Parameters()[1], t.Elem)
		}
		ok = t.Form == schema.Object || t.Form >= schema.String && t.Fields != nil
	case cel.StructKind:
		ok = t.Form == schema.Map || t.Form == schema.Object
	default: // dyn, null, errors: known only at run time
		ok = true
	}
	if ok {
		return nil
	}
	return typ
}

// value evaluates the expression to plain values: map[string]any, []any,
// string, int64, float64, bool, nil. An absent optional is not present.
func (x *expression) value(scope *scope) (value any, present bool, err error) {
	if x.name != "" {
		value, present, err = scope.plain(x.name)
	} else {
		var result ref.Val
		if result, err = x.run(scope); err != nil {
			return nil, false, err
		}
		value, present, err = scope.convert(result)
	}
	if err != nil {
		return nil, false, &evalError{x.at, fmt.Errorf("%q: %w", x.text, err)}
	}
	return value, present, nil
}

// text is a value inside a longer string.
func text(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		if size := math.Abs(v); size == 0 || size >= 1e-6 && size < 1e21 {
			return strconv.FormatFloat(v, 'f', -1, 64), nil // as in JSON that people write
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("want a value that can stand inside a string, got %s", schema.Describe(value))
}
