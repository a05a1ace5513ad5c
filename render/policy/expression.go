// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	cel "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	celtypes "github.com/google/cel-go/common/types"
	admission "k8s.io/api/admissionregistration/v1"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	servercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// expression is one CEL expression of a policy.
type expression struct {
	name, text string
	returns    []*cel.Type
	// asks is what the expression asks for that nobody knows before the request is
	// sent; empty when all of it is known.
	asks string
	// field is the path of the object's field that the expression is about; empty
	// when it is about several, or none.
	field []any
}

func (e *expression) GetName() string          { return e.name }
func (e *expression) GetExpression() string    { return e.text }
func (e *expression) ReturnTypes() []*cel.Type { return e.returns }

// expressions compiles those of one policy.
type expressions struct {
	*compilation
	compiler *plugin.CompositedCompiler
	params   bool
	sees     bool              // an expression asks for namespaceObject
	unknown  map[string]string // what variables ask for that nobody knows, by their names
}

// withoutVariables compiles for all policies that have none: to make a compiler takes
// longer than to compile.
var withoutVariables = sync.OnceValue(newCompiler)

func newCompiler() *plugin.CompositedCompiler {
	env, err := metered()
	if err != nil {
		panic(err) // there is no input
	}
	compiler, err := plugin.NewCompositedCompiler(env)
	if err != nil {
		panic(err) // there is no input
	}
	return compiler
}

func (c *compilation) expressions(params *admission.ParamKind, variables []admission.Variable) *expressions {
	e := &expressions{compilation: c, params: params != nil, unknown: map[string]string{}}
	if len(variables) == 0 {
		e.compiler = withoutVariables()
		return e
	}
	e.compiler = newCompiler()
	e.variables(variables)
	return e
}

// add compiles an expression; a mistake is a flaw.
func (e *expressions) add(x *expression, authorizer bool, path ...any) plugin.CompilationResult {
	options := plugin.OptionalVariableDeclarations{HasParams: e.params, HasAuthorizer: authorizer}
	var result plugin.CompilationResult
	if x.name != "" && path[1] == "variables" {
		result = e.compiler.CompileAndStoreVariable(x, options, environment.StoredExpressions)
	} else {
		result = e.compiler.CompileCELExpression(x, options, environment.StoredExpressions)
	}
	if result.Error != nil {
		e.wrong(result.Error, path)
		return result
	}
	x.asks, x.field = e.about(x.text)
	return result
}

// wrong is the flaw of an expression that does not compile.
func (e *expressions) wrong(err *servercel.Error, path []any) {
	var compile *servercel.CompilationError
	if !errors.As(err.Cause, &compile) || len(compile.Issues.Errors()) == 0 {
		e.flaw(path, "%s", err.Detail)
		return
	}
	for _, issue := range compile.Issues.Errors() {
		e.flaws = append(e.flaws, Flaw{Document: e.at, Path: path, Line: issue.Location.Line(), Column: issue.Location.Column() + 1, Message: issue.Message})
	}
}

// variables are compiled in order: each may use those before it.
func (e *expressions) variables(list []admission.Variable) {
	for i, v := range list {
		x := &expression{name: v.Name, text: v.Expression, returns: []*cel.Type{cel.AnyType, cel.DynType}}
		e.add(x, true, "spec", "variables", i, "expression")
		e.unknown[v.Name] = x.asks
	}
}

// mutations compiles expressions that change objects. They are not evaluated.
func (e *expressions) mutations(list []admission.Mutation) {
	options := plugin.OptionalVariableDeclarations{HasParams: e.params, HasAuthorizer: true, HasPatchTypes: true}
	compile := func(text string, returns []*cel.Type, path ...any) {
		x := &expression{text: text, returns: returns}
		if result := e.compiler.CompileCELExpression(x, options, environment.StoredExpressions); result.Error != nil {
			e.wrong(result.Error, path)
		}
	}
	for i, m := range list {
		switch {
		case m.PatchType == admission.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			compile(m.ApplyConfiguration.Expression, configuration, "spec", "mutations", i, "applyConfiguration", "expression")
		case m.PatchType == admission.PatchTypeJSONPatch && m.JSONPatch != nil:
			compile(m.JSONPatch.Expression, patches, "spec", "mutations", i, "jsonPatch", "expression")
		}
	}
}

// about finds what an expression asks for that is not known, and the field of the
// object that it is about.
func (e *expressions) about(text string) (asks string, field []any) {
	env, err := e.compiler.Env(environment.StoredExpressions)
	if err != nil {
		panic(err) // it has just compiled the expression
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return "", nil
	}
	var fields [][]any
	walk(parsed.NativeRep().Expr(), func(root string, path []any) {
		switch {
		case root == "object":
			fields = append(fields, path)
		case root == "namespaceObject":
			e.sees = true
		case root == "authorizer":
			asks = "authorizer"
		case root == "request" && len(path) > 0 && (path[0] == "userInfo" || path[0] == "uid"):
			asks = fmt.Sprintf("request.%s", path[0])
		case root == "variables" && len(path) > 0:
			if name, _ := path[0].(string); e.unknown[name] != "" {
				asks = e.unknown[name]
			}
		}
	})
	return asks, common(fields)
}

// common is what all paths begin with.
func common(paths [][]any) []any {
	if len(paths) == 0 {
		return nil
	}
	first := paths[0]
	for _, path := range paths[1:] {
		n := 0
		for n < min(len(first), len(path)) && first[n] == path[n] {
			n++
		}
		first = first[:n]
	}
	return first
}

// walk finds the variables of an expression, each with the fields that are selected
// of it.
func walk(e ast.Expr, found func(root string, path []any)) {
	var path []any
	below := e
	for {
		switch below.Kind() {
		case ast.IdentKind:
			slices.Reverse(path)
			found(strings.TrimPrefix(below.AsIdent(), "."), path)
			return
		case ast.SelectKind:
			path = append(path, below.AsSelect().FieldName())
			below = below.AsSelect().Operand()
			continue
		case ast.CallKind:
			call := below.AsCall()
			if step, ok := indexOf(call); ok {
				path = append(path, step)
				below = call.Args()[0]
				continue
			}
		}
		break
	}
	for _, part := range parts(below) {
		walk(part, found)
	}
}

// indexOf is the step that object.metadata.labels['app'] or object?.spec takes.
func indexOf(call ast.CallExpr) (step any, ok bool) {
	switch call.FunctionName() {
	case "_[_]", "_?._", "_[?_]":
	default:
		return nil, false
	}
	if key := call.Args()[1]; key.Kind() == ast.LiteralKind {
		switch v := key.AsLiteral().(type) {
		case celtypes.String:
			return string(v), true
		case celtypes.Int:
			return int(v), true
		}
	}
	return nil, false
}

// parts are the expressions that one is made of.
func parts(e ast.Expr) (list []ast.Expr) {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			list = append(list, call.Target())
		}
		return append(list, call.Args()...)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			list = append(list, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, f := range e.AsStruct().Fields() {
			list = append(list, f.AsStructField().Value())
		}
	}
	return list
}
