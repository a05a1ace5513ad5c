// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/validation"
)

// broken adds a violation of a rule: what is wanted, and what there is.
func (c *checker) broken(value any, format string, args ...any) {
	want := fmt.Sprintf(format, args...)
	if c.secret {
		c.violation(document.CodeObject, "want %s", want)
		return
	}
	c.violation(document.CodeObject, "want %s, got %s", want, Describe(value))
}

func (c *checker) rules(r *Rules, value any) {
	if r.check != nil {
		for _, f := range r.check(value) {
			c.flaw(f, value)
		}
	}
	switch v := value.(type) {
	case string:
		if v == "" && r.orEmpty {
			return
		}
		c.text(r, v)
	case int64:
		c.number(r, value, float64(v))
	case float64:
		c.number(r, value, v)
	case []any:
		c.size(len(v), r.MinItems, r.MaxItems, "items")
	case map[string]any:
		c.size(len(v), r.MinProperties, r.MaxProperties, "fields")
	}
	if len(r.Enum) > 0 && !r.has(value) {
		c.enum(r, value)
		c.blocks()
	}
	c.junctors(r, value)
}

// flaw makes a violation of what a rule in code found below a value.
func (c *checker) flaw(f validation.Flaw, value any) {
	for _, s := range f.Path {
		switch s := s.(type) {
		case string:
			c.push(step{name: s})
			m, _ := value.(map[string]any)
			value = m[s]
		case int:
			c.push(step{index: s, isIndex: true})
			l, _ := value.([]any)
			if value = nil; s < len(l) {
				value = l[s]
			}
		}
	}
	switch {
	case f.Say != "":
		c.violation(document.CodeObject, "%s", f.Say)
	case f.Got:
		c.broken(value, "%s", f.Want)
	default:
		c.violation(document.CodeObject, "want %s", f.Want)
	}
	last := &c.found[len(c.found)-1]
	last.Missing, last.Modelled = f.Missing, true
	c.depth -= len(f.Path)
}

func (r *Rules) has(value any) bool {
	for _, e := range r.Enum {
		if equal(e, value) {
			return true
		}
	}
	return false
}

// enum says which values are wanted: all when they are few, else the nearest.
func (c *checker) enum(r *Rules, value any) {
	const most = 12
	var texts, quoted []string
	for _, e := range r.Enum {
		quoted = append(quoted, strings.TrimSpace(string(AppendJSON(nil, e))))
		if s, ok := e.(string); ok {
			texts = append(texts, s)
		}
	}
	if len(quoted) <= most {
		c.broken(value, "one of %s", strings.Join(quoted, ", "))
		return
	}
	hint := ""
	if s, ok := value.(string); ok && !c.secret {
		hint = document.DidYouMean(s, texts)
	}
	if c.secret {
		c.violation(document.CodeObject, "not one of the %d values that are known", len(quoted))
		return
	}
	c.violation(document.CodeObject, "%s is not one of the %d values that are known%s", Describe(value), len(quoted), hint)
}

func (c *checker) text(r *Rules, s string) {
	if r.MinLength != nil || r.MaxLength != nil {
		c.size(utf8.RuneCountInString(s), r.MinLength, r.MaxLength, "characters")
	}
	if r.Pattern != nil && !r.Pattern.MatchString(s) {
		c.broken(s, "a string that matches %s", document.Shorten(r.Pattern.String()))
	}
	if r.Format != "" && formats[r.Format] && !strfmt.Default.Validates(r.Format, s) {
		c.broken(s, "a string of the format %s", r.Format)
	}
}

func (c *checker) size(n int, least, most *int64, what string) {
	if least != nil && int64(n) < *least {
		c.violation(document.CodeObject, "want at least %d %s, got %d", *least, what, n)
	}
	if most != nil && int64(n) > *most {
		c.violation(document.CodeObject, "want at most %d %s, got %d", *most, what, n)
		c.blocks()
	}
}

// number compares as the API server does: an integer with what is left of a bound
// without its fraction.
func (c *checker) number(r *Rules, value any, f float64) {
	if r.never != "" {
		c.violation(document.CodeObject, "no number fits: %s", r.never)
		return
	}
	if r.Format == "int32" && (f < math.MinInt32 || f > math.MaxInt32) {
		c.broken(value, "a number of 32 bits")
	}
	i, whole := asInteger(value)
	if m := r.Minimum; m != nil {
		if below, equal := f < *m, f == *m; whole && (i < int64(*m) || r.ExclusiveMinimum && i == int64(*m)) || !whole && (below || r.ExclusiveMinimum && equal) {
			c.broken(value, "%s %s", map[bool]string{false: "at least", true: "more than"}[r.ExclusiveMinimum], number(*m))
		}
	}
	if m := r.Maximum; m != nil {
		if above, equal := f > *m, f == *m; whole && (i > int64(*m) || r.ExclusiveMaximum && i == int64(*m)) || !whole && (above || r.ExclusiveMaximum && equal) {
			c.broken(value, "%s %s", map[bool]string{false: "at most", true: "less than"}[r.ExclusiveMaximum], number(*m))
		}
	}
	switch m := r.MultipleOf; {
	case m == nil:
	case *m <= 0 || whole && *m < 1:
		c.violation(document.CodeObject, "no integer fits the multipleOf %s of the definition, which must be at least 1 for these", number(*m))
	case whole && i%int64(*m) != 0 || !whole && !isMultiple(f, *m):
		c.broken(value, "a multiple of %s", number(*m))
	}
}

// asInteger is a number without a fraction, as a reader of its JSON sees it.
func asInteger(value any) (i int64, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		const exact = 1 << 53
		return int64(v), v == math.Trunc(v) && math.Abs(v) <= exact
	}
	return 0, false
}

// isMultiple takes 0.3 for a multiple of 0.1, as the API server does.
func isMultiple(f, of float64) bool {
	q := f / of
	if of < 1 {
		q = 1 / of * f
	}
	return math.Abs(q-math.Round(q)) <= 1e-9*math.Max(1, math.Abs(q))
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// junctors checks allOf, anyOf, oneOf and not.
func (c *checker) junctors(r *Rules, value any) {
	for _, t := range r.AllOf {
		c.check(t, value)
	}
	if len(r.AnyOf) > 0 && c.fitting(r.AnyOf, value) == 0 {
		c.none("anyOf", r.AnyOf, value)
	}
	if len(r.OneOf) > 0 {
		switch n := c.fitting(r.OneOf, value); {
		case n == 0:
			c.none("oneOf", r.OneOf, value)
		case n > 1:
			c.violation(document.CodeObject, "fits %d alternatives of oneOf, want exactly one", n)
		}
	}
	if r.Not != nil && c.holds(r.Not, value) {
		c.violation(document.CodeObject, "is what the schema's not forbids")
	}
}

// fitting counts the types that a value fits.
func (c *checker) fitting(types []*Type, value any) (n int) {
	for _, t := range types {
		if c.holds(t, value) {
			n++
		}
	}
	return n
}

// holds says whether a value fits a type.
func (c *checker) holds(t *Type, value any) bool {
	sub := checker{secret: c.secret, quiet: true}
	sub.check(t, value)
	return len(sub.found) == 0
}

// none says why no alternative fits, for each of the first few.
func (c *checker) none(junctor string, alternatives []*Type, value any) {
	if c.quiet { // else each level of nesting would double the work
		c.violation(document.CodeObject, "fits no alternative of %s", junctor)
		return
	}
	const most = 4
	var reasons []string
	for _, t := range alternatives[:min(most, len(alternatives))] {
		sub := checker{secret: c.secret, quiet: true}
		sub.check(t, value)
		v := slices.MinFunc(sub.found, compareViolations)
		reason := v.Message
		if len(v.Path) > 0 {
			reason = PathText(v.Path) + ": " + reason
		}
		reasons = append(reasons, reason)
	}
	c.violation(document.CodeObject, "fits no alternative of %s (%s)", junctor, strings.Join(reasons, "; or "))
}

// formats are those that the API server enforces on custom resources in all
// supported versions; it ignores others. See supportedVersionedFormats in
// k8s.io/apiextensions-apiserver/pkg/apiserver/validation.
var formats = map[string]bool{"bsonobjectid": true, "uri": true, "email": true, "hostname": true, "ipv4": true, "ipv6": true, "cidr": true,
	"mac": true, "uuid": true, "uuid3": true, "uuid4": true, "uuid5": true, "isbn": true, "isbn10": true, "isbn13": true, "creditcard": true,
	"ssn": true, "hexcolor": true, "rgbcolor": true, "byte": true, "password": true, "date": true, "duration": true, "datetime": true, "date-time": true,
	"k8s-short-name": true, "k8s-long-name": true}

// maxDefaults bounds how many defaults are added to one object. No object of
// an honest definition comes near it.
const maxDefaults = 100_000

// defaulter makes values as the API server sees them once it has put in the
// defaults. Beyond maxDefaults it leaves them out.
type defaulter struct{ left int }

func withDefaults(t *Type, value any) any {
	if !t.defaults {
		return value
	}
	d := defaulter{left: maxDefaults}
	return d.add(t, value)
}

// add is the value with its defaults. The value itself is not changed.
func (d *defaulter) add(t *Type, value any) any {
	if t == nil || !t.defaults {
		return value
	}
	switch v := value.(type) {
	case []any:
		l := make([]any, len(v))
		for i, item := range v {
			l[i] = d.add(t.Elem, item)
		}
		return l
	case map[string]any:
		m := make(map[string]any, len(v))
		for name, item := range v {
			m[name] = d.add(t.Field(name), item)
		}
		for name, field := range t.Fields {
			value, there := m[name]
			if value == nil && !(there && field.Nullable) && field.Default != nil && d.left > 0 {
				d.left--
				m[name] = d.add(field, field.Default)
			}
		}
		return m
	}
	return value
}
