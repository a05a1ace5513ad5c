// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
)

// Traced is where one rendered object comes from.
type Traced struct {
	ID     string
	Origin Origin // of the object as a whole: what its when and each say
	// Leaves are the scalars of the template that went into the object, in the
	// template's order. One that gave a mapping or a list stands for all below
	// its path.
	Leaves []Leaf
}

// Leaf is the leaf at a path into the object, or above it; nil when there is none.
func (t *Traced) Leaf(path []any) *Leaf {
	var best *Leaf
	for i := range t.Leaves {
		at := t.Leaves[i].Path
		if len(at) <= len(path) && slices.Equal(at, path[:len(at)]) && (best == nil || len(at) > len(best.Path)) {
			best = &t.Leaves[i]
		}
	}
	return best
}

// Leaf is a place in an object and what it comes from.
type Leaf struct {
	Path []any // string keys and int indexes into the object
	Origin

	below func(path []any) Origin // nil for what is written out
}

// Below is the origin of one value of a leaf that gave a mapping or a list:
// path leads to it from the leaf. The reads are those of the leaf.
func (l *Leaf) Below(path []any) Origin {
	if l.below == nil || len(path) == 0 {
		return l.Origin
	}
	return l.below(path)
}

// Origin is a place in a kind and what is read there.
type Origin struct {
	At          document.Position
	Expressions []string // none for what is written out
	// Reads are in the order of the expressions, without repetitions. What a
	// `let` reads is read by the expression that names it.
	Reads []Read
	// Decides are the reads that the value is made of, Constants what it is made
	// of besides. Asks are the reads of the conditions and the keys on the way;
	// of a condition only the side that was taken counts.
	Decides, Asks []Read
	Constants     []Constant
}

// Constant is a value written out in an expression.
type Constant struct {
	At         document.Position // of the expression
	Expression string
	Value      any // string, int64, uint64, float64, bool or nil
}

// Read is one value that an expression looks at.
type Read struct {
	// From is self, unit, target, data, file, template or the name of a
	// collection.
	From string
	// Path leads to the value: under self from the document, like spec,
	// replicas, sas; for a file or a template, its name. It ends early where a key is only
	// known inside a loop.
	Path []any
}

// Trace renders the spec as [Spec.Render] does and tells where each object
// comes from, in the same order. Which keys are read is found with the values
// of this render; both sides of a condition count as read. A kind in Go has no
// template: its leaves stand at the spec.
func (s *Spec) Trace(place *Place) ([]Traced, document.Problems) {
	if s.kind.native != nil {
		return s.traceGo(place)
	}
	r := s.renderer(new(Budget), place)
	var traced []Traced
	r.each = func(o *object) {
		t := tracer{scope: r.scope, kind: s.kind, doc: o.at.File, object: o}
		traced = append(traced, Traced{ID: o.id, Origin: t.origin(o.at, o.each, o.when)})
		t.walk(o.template, o.node, nil)
		traced[len(traced)-1].Leaves = t.leaves
	}
	r.render()
	return traced, r.problems
}

type tracer struct {
	scope  *scope
	kind   *Kind
	object *object
	doc    string // the kind's file
	leaves []Leaf
	reads  []Read
	lets   map[string]bool // whose reads are there already

	decides   []Read
	constants []Constant
	open      map[string]bool // lets and each that decide already
}

func (t *tracer) origin(at document.Position, expressions ...*expression) Origin {
	t.reads, t.lets = nil, map[string]bool{}
	o := Origin{At: at}
	for _, x := range expressions {
		if x != nil {
			o.Expressions = append(o.Expressions, x.text)
			t.expression(x)
		}
	}
	o.Reads = t.reads
	return t.decided(o, expressions, nil)
}

// leaf adds a leaf of expressions.
func (t *tracer) leaf(path []any, at document.Position, expressions ...*expression) {
	leaf := Leaf{Path: path, Origin: t.origin(at, expressions...)}
	later := tracer{scope: t.scope.kept(), kind: t.kind, doc: t.doc, object: t.object}
	leaf.below = func(path []any) Origin {
		return later.decided(leaf.Origin, expressions, path)
	}
	t.leaves = append(t.leaves, leaf)
}

func (t *tracer) walk(part template, n *yaml.Node, path []any) {
	at := document.Position{File: t.doc, Line: n.Line, Column: n.Column}
	switch part := part.(type) {
	case *mapping:
		for i, key := range part.keys {
			if _, present, _ := part.values[i].eval(t.scope); present {
				t.walk(part.values[i], valueNode(n, key), append(slices.Clip(path), key))
			}
		}
	case *list:
		index := 0 // items that are absent are left out
		for i, item := range part.items {
			if _, present, _ := item.eval(t.scope); present {
				t.walk(item, n.Content[i], append(slices.Clip(path), index))
				index++
			}
		}
	case *expression:
		t.leaf(path, at, part)
	case *interpolation:
		t.leaf(path, at, part.expressions...)
	default:
		t.written(n, path)
	}
}

// written adds the scalars of a part without expressions.
func (t *tracer) written(n *yaml.Node, path []any) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			t.written(n.Content[i+1], append(slices.Clip(path), n.Content[i].Value))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			t.written(item, append(slices.Clip(path), i))
		}
	default:
		t.leaves = append(t.leaves, Leaf{Path: path, Origin: Origin{At: document.Position{File: t.doc, Line: n.Line, Column: n.Column}}})
	}
}

func (t *tracer) add(from string, path []any) {
	same := func(r Read) bool { return r.From == from && slices.Equal(r.Path, path) }
	if !slices.ContainsFunc(t.reads, same) {
		t.reads = append(t.reads, Read{from, path})
	}
}

func (t *tracer) expression(x *expression) { t.visit(x, x.checked.NativeRep().Expr()) }

// visit goes over an expression from the outside, so that a path is found
// whole before its parts.
func (t *tracer) visit(x *expression, e ast.Expr) {
	if root, path, keys := t.path(x, e); root != "" {
		t.name(x, root, path)
		for _, key := range keys {
			t.visit(x, key)
		}
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		t.visit(x, e.AsSelect().Operand())
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case fileFunction:
			if name, _ := x.part(t.scope, call.Args()[1]); name != nil {
				t.add("file", []any{keyText(name)})
			}
			t.visit(x, call.Args()[1])
			return
		case templateFunction:
			name, _ := literal(call.Args()[0])
			t.add("template", []any{name})
			t.visit(x, call.Args()[1])
			return
		}
		if call.IsMemberFunction() {
			t.visit(x, call.Target())
		}
		for _, arg := range call.Args() {
			t.visit(x, arg)
		}
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			t.visit(x, item)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			t.visit(x, entry.AsMapEntry().Key())
			t.visit(x, entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, entry := range e.AsStruct().Fields() {
			t.visit(x, entry.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			t.visit(x, part)
		}
	}
}

// name adds what a name stands for: itself, or what its let or each reads.
func (t *tracer) name(x *expression, root string, path []any) {
	for i := range t.kind.lets {
		if let := &t.kind.lets[i]; let.name == root {
			if !t.lets[root] { // else lets that name each other twice take for ever
				t.lets[root] = true
				t.expression(&let.expression)
			}
			return
		}
	}
	switch {
	case t.object.each != nil && root == t.object.eachName && x != t.object.each:
		t.expression(t.object.each)
	case t.bound(root):
		t.add(root, path)
	}
}

// bound says whether the name is one that swell binds.
func (t *tracer) bound(root string) bool {
	return root == "self" || root == "unit" || root == "target" || root == "data" ||
		slices.ContainsFunc(t.kind.collections, func(c *Collection) bool { return c.Name == root })
}

// path takes a chain of fields and indexes apart: the name that it starts
// with, the path from there as far as it is known, and the expressions that
// stand for keys in it. The name is empty when it is no such chain.
func (t *tracer) path(x *expression, e ast.Expr) (root string, path []any, keys []ast.Expr) {
	path, ended := []any{}, false
	var take func(e ast.Expr) bool
	take = func(e ast.Expr) bool {
		switch e.Kind() {
		case ast.IdentKind:
			root = e.AsIdent()
			return true
		case ast.SelectKind:
			if !take(e.AsSelect().Operand()) {
				return false
			}
			if !ended {
				path = append(path, e.AsSelect().FieldName())
			}
			return true
		case ast.CallKind:
			call := e.AsCall()
			if name := call.FunctionName(); name != operators.Index && name != operators.OptIndex && name != operators.OptSelect || !take(call.Args()[0]) {
				return false
			}
			key := call.Args()[1]
			if _, ok := literal(key); !ok {
				keys = append(keys, key)
			}
			value, _ := x.part(t.scope, key)
			if ended = ended || value == nil; !ended {
				path = append(path, step(value.Value()))
			}
			return true
		}
		return false
	}
	if !take(e) {
		return "", nil, nil
	}
	return root, path, keys
}

// step is a key as a step of a path: an index of a list, or the text of a key.
func step(key any) any {
	switch key := key.(type) {
	case string:
		return key
	case int64:
		return int(key)
	}
	return fmt.Sprint(key)
}
