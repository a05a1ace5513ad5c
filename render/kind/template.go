// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/bounds"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// template is a compiled part of an object: what it evaluates to is plain
// values, see [expression.value]. A part without expressions is shared by all
// objects and must not be changed.
type template interface {
	eval(scope *scope) (value any, present bool, err error)
}

// evalError is an error of an expression at its place in the kind.
type evalError struct {
	at  document.Position
	err error
}

func (e *evalError) Error() string { return e.err.Error() }
func (e *evalError) Unwrap() error { return e.err }

type static struct{ value any }

func (t static) eval(*scope) (any, bool, error) { return t.value, true, nil }

func (x *expression) eval(scope *scope) (any, bool, error) {
	return x.value(scope)
}

type mapping struct {
	keys   []string
	values []template
}

func (t *mapping) eval(scope *scope) (any, bool, error) {
	m := make(map[string]any, len(t.keys))
	for i, key := range t.keys {
		value, present, err := t.values[i].eval(scope)
		if err != nil {
			return nil, false, err
		}
		if present {
			m[key] = value
		}
	}
	return m, true, nil
}

type list struct{ items []template }

func (t *list) eval(scope *scope) (any, bool, error) {
	l := make([]any, 0, len(t.items))
	for _, item := range t.items {
		value, present, err := item.eval(scope)
		if err != nil {
			return nil, false, err
		}
		if present {
			l = append(l, value)
		}
	}
	return l, true, nil
}

// interpolation is a text with expressions in it: texts[0], expressions[0],
// texts[1] and so on.
type interpolation struct {
	texts       []string
	expressions []*expression
}

func (t *interpolation) eval(scope *scope) (any, bool, error) {
	var b strings.Builder
	for i, x := range t.expressions {
		b.WriteString(t.texts[i])
		value, present, err := x.value(scope)
		if err == nil && !present {
			err = fmt.Errorf("%q: absent, but it stands inside a string", x.text)
		}
		var s string
		if err == nil {
			s, err = text(value)
		}
		var unread *readError
		if err != nil && x.secret && !errors.As(err, &unread) {
			err = fmt.Errorf("%q: want a value that can stand inside a string", x.text)
		}
		if err != nil {
			return nil, false, &evalError{x.at, err}
		}
		if b.WriteString(s); b.Len() > bounds.Text {
			return nil, false, &evalError{x.at, bounds.ErrTooLarge}
		}
	}
	b.WriteString(t.texts[len(t.texts)-1])
	return b.String(), true, nil
}

// compiler makes a template and checks it against the hard schema on the way.
type compiler struct {
	*loader
	env   *environment
	where string
	path  []any
	// secret is set for an object of kind Secret: its values are in no message.
	secret bool
}

func (c *compiler) problemAt(n *yaml.Node, code document.Code, format string, args ...any) {
	path := c.where
	if len(c.path) > 0 {
		path = schema.PathText(append([]any{c.where}, c.path...))
		path = strings.Replace(path, fmt.Sprintf("[%q]", c.where), c.where, 1)
	}
	c.problems = append(c.problems, c.doc.Problem(n, code, "%s: %s", path, fmt.Sprintf(format, args...)))
}

func (c *compiler) below(step any, n *yaml.Node, t *schema.Type) template {
	c.path = append(c.path, step)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	return c.compile(n, t)
}

var anything = &schema.Type{}

func (c *compiler) compile(n *yaml.Node, t *schema.Type) template {
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(n, t)
	case yaml.SequenceNode:
		return c.list(n, t)
	}
	return c.scalar(n, t)
}

func (c *compiler) mapping(n *yaml.Node, t *schema.Type) template {
	if t.Form >= schema.String && t.Fields != nil { // a text that may stand in a file
		t = &schema.Type{Form: schema.Object, Fields: t.Fields}
	}
	if t.Form != schema.Any && t.Form != schema.Object && t.Form != schema.Map {
		c.problemAt(n, document.CodeType, "want %s, got a map", t.Form)
		return static{}
	}
	m := &mapping{}
	allStatic := true
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if strings.Contains(key.Value, "${") {
			c.problemAt(key, document.CodeKind, "%s: an expression cannot be a key: make the whole map one", key.Value)
			continue
		}
		field := t.Field(key.Value)
		if field == nil && t.Form == schema.Object {
			c.path = append(c.path, key.Value)
			c.problemAt(key, document.CodeUnknown, "unknown field%s", document.DidYouMean(key.Value, slices.Collect(maps.Keys(t.Fields))))
			c.path = c.path[:len(c.path)-1]
			continue
		}
		if field == nil {
			field = anything
		}
		compiled := c.below(key.Value, value, field)
		if _, ok := compiled.(static); !ok {
			allStatic = false
		}
		m.keys = append(m.keys, key.Value)
		m.values = append(m.values, compiled)
	}
	return flatten(m, allStatic)
}

func (c *compiler) list(n *yaml.Node, t *schema.Type) template {
	if t.Form != schema.Any && t.Form != schema.List {
		c.problemAt(n, document.CodeType, "want %s, got a list", t.Form)
		return static{}
	}
	elem := anything
	if t.Elem != nil {
		elem = t.Elem
	}
	l := &list{}
	allStatic := true
	for i, item := range n.Content {
		compiled := c.below(i, item, elem)
		if _, ok := compiled.(static); !ok {
			allStatic = false
		}
		l.items = append(l.items, compiled)
	}
	return flatten(l, allStatic)
}

// flatten evaluates a part without expressions once and for all.
func flatten(t template, allStatic bool) template {
	if !allStatic {
		return t
	}
	value, _, _ := t.eval(nil) // static parts do not fail
	return static{value}
}

func (c *compiler) scalar(n *yaml.Node, t *schema.Type) template {
	if n.Tag != "!!str" || !strings.Contains(n.Value, "${") {
		value, err := document.Scalar(n)
		if err == nil && value != nil && t.Form != schema.Any && !schema.Fits(t.Form, value) {
			err = fmt.Errorf("want %s, got %s", t.Form, schema.Describe(value))
		}
		if err != nil && c.secret {
			err = fmt.Errorf("want %s", t.Form)
		}
		if err != nil {
			c.problemAt(n, document.CodeType, "%s", err)
			return static{}
		}
		return c.constant(n, t, value)
	}
	texts, codes, err := splitExpressions(n.Value)
	if err != nil && c.secret {
		err = errors.New("an expression that is empty or not closed with }; a literal ${ is written $${")
	}
	if err != nil {
		c.problemAt(n, document.CodeKind, "%s", err)
		return static{}
	}
	if len(codes) == 0 {
		return c.constant(n, t, texts[0])
	}
	whole := len(codes) == 1 && texts[0] == "" && texts[1] == ""
	if !whole && t.Form != schema.Any && !schema.Fits(t.Form, "1") {
		c.problemAt(n, document.CodeType, "want %s, got a string with an expression in it", t.Form)
		return static{}
	}
	var expressions []*expression
	for _, code := range codes {
		x, err := c.expression(c.env, n, code)
		if err == nil {
			x.secret = c.secret
		}
		if err == nil && whole {
			err = x.fits(t)
		}
		if errors.Is(err, errSpoiled) {
			return static{}
		}
		if err != nil {
			c.problemAt(n, document.CodeKind, "%s", err)
			return static{}
		}
		expressions = append(expressions, x)
	}
	if whole {
		return expressions[0]
	}
	return &interpolation{texts: texts, expressions: expressions}
}

// constant is a scalar without expressions. What the schema says of it alone holds
// for every spec; what is missing beside it may come with an override.
func (c *compiler) constant(n *yaml.Node, t *schema.Type, value any) template {
	check := schema.Check
	if c.secret {
		check = schema.CheckSecret
	}
	for _, v := range check(t, value) {
		c.problemAt(n, v.Code, "%s", v.Message)
	}
	return static{value}
}

// splitExpressions takes a scalar apart: texts around and between its ${}
// expressions, always one more than there are expressions. $${ is a literal ${.
func splitExpressions(s string) (texts, codes []string, err error) {
	var current strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			current.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			end := expressionEnd(s, i+2)
			if end < 0 {
				return nil, nil, fmt.Errorf("%q: the expression is not closed with }", s[i:])
			}
			code := strings.TrimSpace(s[i+2 : end])
			if code == "" {
				return nil, nil, fmt.Errorf("%q: an empty expression; a literal ${ is written $${", s)
			}
			texts, codes = append(texts, current.String()), append(codes, code)
			current.Reset()
			i = end + 1
		default:
			current.WriteByte(s[i])
			i++
		}
	}
	return append(texts, current.String()), codes, nil
}

// expressionEnd finds the } that closes an expression, past the braces and
// quoted texts inside it; -1 when there is none.
func expressionEnd(s string, from int) int {
	depth := 0
	var quote byte
	for i := from; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '{':
			depth++
		case c == '}' && depth == 0:
			return i
		case c == '}':
			depth--
		}
	}
	return -1
}
