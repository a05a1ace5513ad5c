// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/validation"
)

// Violation is one place where a value does not fit its type.
type Violation struct {
	// Path leads to the place; its elements are string keys and int indexes.
	Path    []any
	Code    document.Code
	Message string
	// Missing is the field of the value at Path that has to be there and is
	// not; empty where something else is wrong.
	Missing string
	// Blocks says that an API server evaluates no rules of x-kubernetes-validations
	// because of it.
	Blocks bool
	// Modelled says that the rule is swell's model of one that is in no schema.
	Modelled bool
}

// PathText is the path as people write it: spec.containers[0].image.
func PathText(path []any) string {
	var b strings.Builder
	for i, s := range path {
		switch s := s.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			switch {
			case strings.ContainsAny(s, `./[]()"' `):
				fmt.Fprintf(&b, "[%q]", s)
			case i > 0:
				b.WriteString("." + s)
			default:
				b.WriteString(s)
			}
		}
	}
	return b.String()
}

// Check holds a value, made of map[string]any, []any, string, int64, float64,
// bool and nil, against a type: unknown fields, wrong types, missing required
// fields, broken rules, items of keyed lists that share a key. It returns every
// violation, in the order of their paths and messages. A value without any
// costs no allocation, unless the type has defaults.
//
// The values of what is or may be a Secret are in no message.
func Check(t *Type, value any) []Violation {
	m, _ := value.(map[string]any)
	kind, ok := m["kind"].(string)
	return check(t, value, ok && config.MaySecret(kind))
}

// CheckSecret is [Check] with no value in any message.
func CheckSecret(t *Type, value any) []Violation { return check(t, value, true) }

func check(t *Type, value any, secret bool) []Violation {
	c := checker{secret: secret}
	c.check(t, withDefaults(t, value))
	if len(c.found) > 1 {
		slices.SortFunc(c.found, compareViolations)
	}
	return c.found
}

func compareViolations(a, b Violation) int {
	return cmp.Or(comparePaths(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
}

// comparePaths puts what is above first, then goes by index and by key.
func comparePaths(a, b []any) int {
	return slices.CompareFunc(a, b, func(x, y any) int {
		i, isIndex := x.(int)
		j, both := y.(int)
		if isIndex && both {
			return cmp.Compare(i, j)
		}
		return cmp.Compare(fmt.Sprint(x), fmt.Sprint(y))
	})
}

// step is one step of a path: a key, or an index when name is empty and
// isIndex is set. Unlike an element of Violation.Path it needs no allocation.
type step struct {
	name    string
	index   int
	isIndex bool
}

// checker stays on the stack: it has no pointer to itself.
type checker struct {
	room   [16]step // the path's first steps: objects are seldom deeper
	deeper []step
	depth  int
	secret bool
	quiet  bool // only whether there is a violation is wanted, not each reason
	found  []Violation
}

func (c *checker) push(s step) {
	if c.depth < len(c.room) {
		c.room[c.depth] = s
	} else {
		c.deeper = append(c.deeper[:c.depth-len(c.room)], s)
	}
	c.depth++
}

func (c *checker) pop() { c.depth-- }

func (c *checker) violation(code document.Code, format string, args ...any) {
	path := make([]any, c.depth)
	for i := range path {
		s := step{}
		if i < len(c.room) {
			s = c.room[i]
		} else {
			s = c.deeper[i-len(c.room)]
		}
		if path[i] = s.name; s.isIndex {
			path[i] = s.index
		}
	}
	c.found = append(c.found, Violation{Path: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

// blocks marks the last violation.
func (c *checker) blocks() { c.found[len(c.found)-1].Blocks = true }

// violationBelow is a violation one step down.
func (c *checker) violationBelow(s step, code document.Code, format string, args ...any) {
	c.push(s)
	c.violation(code, format, args...)
	c.pop()
}

func (c *checker) check(t *Type, value any) {
	if value == nil {
		if r := t.Rules; t.Nullable && r != nil && len(r.Enum) > 0 && !r.has(nil) {
			c.enum(r, nil)
		}
		return // else as if it were not there, see [WithoutNulls]
	}
	if !c.form(t, value) {
		if c.secret {
			c.violation(document.CodeType, "want %s", t.Form)
		} else {
			c.violation(document.CodeType, "want %s, got %s", t.Form, Describe(value))
		}
		c.blocks()
		return
	}
	if t.Rules != nil {
		c.rules(t.Rules, value)
	}
}

// form checks what t.Form says and what is inside the value. It returns false
// when the value is of another form.
func (c *checker) form(t *Type, value any) bool {
	m, isMap := value.(map[string]any)
	l, isList := value.([]any)
	switch t.Form {
	case Any:
		if isMap {
			c.mapping(t, m)
		} else if isList && t.Elem != nil {
			c.list(t, l)
		}
		return true
	case Object:
		if isMap {
			c.object(t, m)
		}
		return isMap
	case Map:
		if isMap {
			c.mapping(t, m)
		}
		return isMap
	case List:
		if isList {
			c.list(t, l)
		}
		return isList
	}
	if isMap && t.Fields != nil {
		c.object(t, m)
		return true
	}
	return Fits(t.Form, value)
}

func (c *checker) object(t *Type, m map[string]any) {
	var unknown []string
	for name, value := range m {
		field := t.Fields[name]
		if field == nil {
			unknown = append(unknown, name)
			continue
		}
		c.below(name, field, value)
	}
	for _, name := range unknown {
		c.violationBelow(step{name: name}, document.CodeUnknown, "unknown field%s", document.DidYouMean(name, slices.Collect(maps.Keys(t.Fields))))
	}
	c.required(t, m)
}

func (c *checker) required(t *Type, m map[string]any) {
	for _, name := range t.Required {
		value, there := m[name]
		if field := t.Fields[name]; value == nil && !(there && field != nil && field.Nullable) {
			c.violation(document.CodeObject, "%s: missing", name)
			c.found[len(c.found)-1].Missing = name
			c.blocks()
		}
	}
}

// below checks a value one step down. Scalars, most of an object, take no
// path with them unless they are wrong.
func (c *checker) below(name string, t *Type, value any) {
	if t.Rules == nil && t.Form >= String && Fits(t.Form, value) {
		return
	}
	c.push(step{name: name})
	c.check(t, value)
	c.pop()
}

func (c *checker) mapping(t *Type, m map[string]any) {
	for name, value := range m {
		if field := t.Field(name); field != nil {
			c.below(name, field, value)
		}
	}
	c.required(t, m)
}

func (c *checker) list(t *Type, l []any) {
	for i, item := range l {
		c.push(step{index: i, isIndex: true})
		if item == nil && (!t.Elem.takesNull() || t.tellsItemsApart()) {
			c.violation(document.CodeType, "an empty item: want a value, or no item at all")
			c.blocks()
		}
		c.check(t.Elem, item)
		c.pop()
	}
	if len(t.Keys) > 0 {
		c.keyed(t, l)
	}
	if t.Set {
		c.unique(l)
	}
}

// suffixes of a resource.Quantity, but for an exponent.
var suffixes = map[string]bool{"": true, "n": true, "u": true, "m": true, "k": true, "M": true, "G": true, "T": true, "P": true, "E": true,
	"Ki": true, "Mi": true, "Gi": true, "Ti": true, "Pi": true, "Ei": true}

// isQuantity says whether s is a resource.Quantity. What looks like none is left to its own
// parser, which takes odd ones, such as "Ti" for 0.
func isQuantity(s string) bool {
	if isUsualQuantity(s) {
		return true
	}
	_, err := validation.ParseQuantity(s)
	return err == nil
}

// isUsualQuantity says whether s is a decimal number with a suffix.
func isUsualQuantity(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	digits, i := 0, 0
	for dot := false; i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' && !dot); i++ {
		if s[i] == '.' {
			dot = true
		} else {
			digits++
		}
	}
	return digits > 0 && suffixes[s[i:]]
}

// Fits says whether a scalar value is of a form. Nil never is.
func Fits(form Form, value any) bool {
	switch v := value.(type) {
	case string:
		switch form {
		case String, IntOrString:
			return true
		case Quantity:
			return isQuantity(v)
		case Base64:
			_, err := base64.StdEncoding.DecodeString(v)
			return err == nil
		}
	case int64:
		return form == Integer || form == Number || form == IntOrString || form == Quantity
	case float64:
		const exact = 1 << 53 // up to here a JSON number without a fraction is that integer
		whole := v == math.Trunc(v) && math.Abs(v) <= exact
		return form == Number || form == Quantity || whole && (form == Integer || form == IntOrString)
	case bool:
		return form == Boolean
	}
	return false
}

// Describe says what a value is, for "want ..., got ...".
func Describe(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		if len(v) > 60 {
			v = strings.ToValidUTF8(v[:60], "") + "..."
		}
		return fmt.Sprintf("the string %q", v)
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("the number %v", value)
}
