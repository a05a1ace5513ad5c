// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/swell-sh/swell/config"
)

// Violation is one place where a value does not fit its type.
type Violation struct {
	// Path leads to the place; its elements are string keys and int indexes.
	Path    []any
	Code    config.Code
	Message string
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
			case strings.ContainsAny(s, `./[]"' `):
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
// fields, items of keyed lists that share a key. It returns every violation,
// in the order of sorted keys.
//
// The values of a Secret are in no message.
func Check(t *Type, value any) []Violation {
	c := checker{}
	if m, ok := value.(map[string]any); ok && m["kind"] == "Secret" {
		c.secret = true
	}
	c.check(t, value)
	return c.violations
}

type checker struct {
	path       []any
	secret     bool
	violations []Violation
}

func (c *checker) violation(code config.Code, format string, args ...any) {
	c.violations = append(c.violations, Violation{Path: slices.Clone(c.path), Code: code, Message: fmt.Sprintf(format, args...)})
}

func (c *checker) check(t *Type, value any) {
	if value == nil {
		return // as if it were not there, as for the API server
	}
	switch t.Form {
	case Any:
		return
	case Object:
		if m, ok := value.(map[string]any); ok {
			c.object(t, m)
			return
		}
	case Map:
		if m, ok := value.(map[string]any); ok {
			c.mapping(t, m)
			return
		}
	case List:
		if l, ok := value.([]any); ok {
			c.list(t, l)
			return
		}
	default:
		if Fits(t.Form, value) {
			return
		}
		if m, ok := value.(map[string]any); ok && t.Fields != nil {
			c.object(t, m)
			return
		}
	}
	if c.secret {
		c.violation(config.CodeType, "want %s", t.Form)
		return
	}
	c.violation(config.CodeType, "want %s, got %s", t.Form, Describe(value))
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
	slices.Sort(unknown)
	for _, name := range unknown {
		c.path = append(c.path, name)
		c.violation(config.CodeUnknown, "unknown field%s", config.DidYouMean(name, slices.Collect(maps.Keys(t.Fields))))
		c.path = c.path[:len(c.path)-1]
	}
	for _, name := range t.Required {
		if m[name] == nil {
			c.violation(config.CodeObject, "%s: missing", name)
		}
	}
}

// below checks a value one step down. Scalars, most of an object, take no
// path with them unless they are wrong.
func (c *checker) below(name string, t *Type, value any) {
	if t.Form >= String && Fits(t.Form, value) {
		return
	}
	c.path = append(c.path, name)
	c.check(t, value)
	c.path = c.path[:len(c.path)-1]
}

func (c *checker) mapping(t *Type, m map[string]any) {
	for name, value := range m {
		c.below(name, t.Elem, value)
	}
}

func (c *checker) list(t *Type, l []any) {
	for i, item := range l {
		c.path = append(c.path, i)
		if item == nil {
			c.violation(config.CodeType, "an empty item: want a value, or no item at all")
		}
		c.check(t.Elem, item)
		c.path = c.path[:len(c.path)-1]
	}
	if len(t.Keys) == 0 || len(l) < 2 {
		return
	}
	first := make(map[string]int, len(l))
	for i, item := range l {
		key, ok := itemKey(t.Keys, item)
		if !ok {
			continue
		}
		if j, seen := first[key]; seen {
			c.path = append(c.path, i)
			c.violation(config.CodeDuplicate, "same %s as item %d", key, j)
			c.path = c.path[:len(c.path)-1]
			continue
		}
		first[key] = i
	}
}

// itemKey is what tells an item of a keyed list apart, as text. An item
// without any of the keys has none.
func itemKey(keys []string, item any) (string, bool) {
	m, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	var parts []string
	for _, key := range keys {
		switch value := m[key]; {
		case value != nil:
			parts = append(parts, fmt.Sprintf("%s %v", key, value))
		case key == "protocol":
			parts = append(parts, "protocol TCP") // the API server's default
		default:
			return "", false
		}
	}
	return strings.Join(parts, ", "), true
}

// suffixes of a resource.Quantity, but for an exponent.
var suffixes = map[string]bool{"": true, "n": true, "u": true, "m": true, "k": true, "M": true, "G": true, "T": true, "P": true, "E": true,
	"Ki": true, "Mi": true, "Gi": true, "Ti": true, "Pi": true, "Ei": true}

// isQuantity says whether s is a resource.Quantity: a decimal number with a
// suffix or an exponent.
func isQuantity(s string) bool {
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
	if digits == 0 {
		return false
	}
	if suffixes[s[i:]] {
		return true
	}
	if s[i] != 'e' && s[i] != 'E' {
		return false
	}
	_, err := strconv.Atoi(s[i+1:])
	return err == nil
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
		return "a mapping"
	case []any:
		return "a list"
	case string:
		if len(v) > 60 {
			v = strings.ToValidUTF8(v[:60], "") + "..."
		}
		return fmt.Sprintf("the text %q", v)
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("the number %v", value)
}
