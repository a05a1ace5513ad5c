// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"reflect"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/swell-sh/swell/config/document"
)

// dataReads is which files of data the expressions of a kind read.
type dataReads struct {
	files map[string]bool // by name
	whole bool            // any file: its name is known only when an expression runs
}

func (r *dataReads) any() bool { return r.whole || len(r.files) > 0 }

// note adds what an expression reads.
func (r *dataReads) note(checked *ast.AST) {
	named := map[int64]bool{} // uses of data with the name of a file; they come after that
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		operand, name := member(x)
		switch {
		case name != "" && isData(operand):
			if named[operand.ID()] = true; r.files == nil {
				r.files = map[string]bool{}
			}
			r.files[name] = true
		case isData(x) && !named[x.ID()]:
			r.whole = true
		}
	}))
}

func isData(x ast.Expr) bool { return x.Kind() == ast.IdentKind && x.AsIdent() == "data" }

// member takes a select, or an index that is written out, apart. The name is empty
// when it is neither.
func member(x ast.Expr) (operand ast.Expr, name string) {
	switch x.Kind() {
	case ast.SelectKind:
		return x.AsSelect().Operand(), x.AsSelect().FieldName()
	case ast.CallKind:
		switch call := x.AsCall(); call.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			name, _ = literal(call.Args()[1])
			return call.Args()[0], name
		}
	}
	return nil, ""
}

// broken are the files with a problem among those that are read, sorted.
func (d *Data) broken(reads *dataReads) (files []string) {
	if d == nil {
		return nil
	}
	for file, name := range d.problems {
		if reads.whole || reads.files[name] || name == "" && reads.any() {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

// misread says which value of data in an expression is not the map that it is
// read as, and where that value is written; empty when there is none.
func (x *expression) misread(scope *scope) (found string) {
	ast.PreOrderVisit(x.checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found != "" {
			return
		}
		operand, key := x.memberOf(scope, e)
		f := x.factOf(scope, operand)
		if key == "" || f == nil || f.below != nil {
			return
		}
		scope.place.inputs.tellLines(f.at.File)
		found = fmt.Sprintf("%s is %s (%s), want a map with %s", dataText(f.path), describe(f.value), f.at, document.Shorten(key))
	}))
	return found
}

// DataOf names the value of data that a value of a rendered object was taken from
// as it is, and where that stands: "data.images.nginx (data/images.yaml:3:8)".
// It is empty when there is none, or more than one. The value may be one of a Secret:
// the name ends before the first key that may be a value itself.
func (s *Spec) DataOf(place *Place, o Origin, value any) string {
	var from *fact
	for _, r := range o.Decides {
		if r.From != "data" {
			continue
		}
		f := s.kind.data.nearest(r.Path).holding(value)
		if f == nil || f.at.File == "" {
			continue
		}
		if from != nil {
			return ""
		}
		from = f
	}
	if from == nil {
		return ""
	}
	place.inputs.tellLines(from.at.File)
	shown := from.path
	if i := slices.IndexFunc(shown, func(key string) bool { return !document.PlainKey(key) }); i >= 0 {
		shown = shown[:i]
	}
	return fmt.Sprintf("%s (%s)", dataText(shown), from.at)
}

// nearest is the fact at a path, or the one above it where the path goes on into a
// list.
func (d *Data) nearest(path []any) *fact {
	f := d.facts()
	for _, key := range path {
		below := f.below[fmt.Sprint(key)]
		if below == nil {
			break
		}
		f = below
	}
	return f
}

// holding is the one fact in f that is the value, or the list that holds it; nil
// when there is none.
func (f *fact) holding(value any) (found *fact) {
	switch items, _ := f.value.([]any); {
	case reflect.DeepEqual(f.value, value), contains(items, value):
		return f
	}
	for _, key := range f.keys {
		in := f.below[key].holding(value)
		if in != nil && found != nil {
			return f // several
		}
		if in != nil {
			found = in
		}
	}
	return found
}

func contains(items []any, value any) bool {
	return slices.ContainsFunc(items, func(item any) bool {
		inner, _ := item.([]any)
		return reflect.DeepEqual(item, value) || contains(inner, value)
	})
}

// memberOf is [member], with an index that is a string only when it is evaluated.
func (x *expression) memberOf(scope *scope, e ast.Expr) (operand ast.Expr, key string) {
	operand, key = member(e)
	if key == "" && operand != nil {
		if value, _ := x.part(scope, e.AsCall().Args()[1]); value != nil {
			if text, ok := value.(types.String); ok {
				key = string(text)
			}
		}
	}
	return operand, key
}

// factOf is the value of data that an expression names, key by key; nil when it is
// none.
func (x *expression) factOf(scope *scope, e ast.Expr) *fact {
	if e == nil {
		return nil
	}
	if isData(e) {
		return scope.data.facts()
	}
	operand, key := x.memberOf(scope, e)
	if f := x.factOf(scope, operand); f != nil {
		return f.below[key]
	}
	return nil
}

// dataText is how expressions name the value at a path of data.
func dataText(path []string) string {
	text := "data"
	for _, key := range path {
		if dataName.MatchString(key) {
			text += "." + document.Shorten(key)
		} else {
			text += fmt.Sprintf("[%q]", document.Shorten(key))
		}
	}
	return text
}
