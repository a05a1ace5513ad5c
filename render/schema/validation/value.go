// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// object is a field that is a mapping; nil where there is none.
func object(m map[string]any, key string) map[string]any {
	below, _ := m[key].(map[string]any)
	return below
}

// list is a field that is a list; nil where there is none.
func list(m map[string]any, key string) []any {
	below, _ := m[key].([]any)
	return below
}

// text is a field that is a text; empty where there is none.
func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// isTrue says whether a field is the boolean true.
func isTrue(m map[string]any, key string) bool { return m[key] == true }

// whole is the value of an integer; ok is false for what is none.
func whole(value any) (n int64, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return 0, false
}

// integer is a field that is an integer, else the default.
func integer(m map[string]any, key string, byDefault int64) int64 {
	if n, ok := whole(m[key]); ok {
		return n
	}
	return byDefault
}

// quantity reads a resource.Quantity; ok is false for what is none.
func quantity(value any) (q resource.Quantity, ok bool) {
	var s string
	switch v := value.(type) {
	case string:
		s = v
	case int64:
		return *resource.NewQuantity(v, resource.DecimalSI), true
	case float64:
		s = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return q, false
	}
	q, err := ParseQuantity(s)
	return q, err == nil
}

// ParseQuantity reads a resource.Quantity. One with an exponent of more than three digits is
// an error: Kubernetes' own parser writes all its zeros out, which takes it minutes for
// 1e-99999999. API servers keep nothing below 1e-9 or above 2^63-1.
func ParseQuantity(s string) (resource.Quantity, error) {
	if at := strings.LastIndexAny(s, "eE"); at >= 0 && len(strings.TrimLeft(s[at+1:], "+-0")) > 3 {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(s)
}

// isNegative says whether a value is a quantity below zero, without reading one
// that has no sign.
func isNegative(value any) bool {
	switch v := value.(type) {
	case int64:
		return v < 0
	case float64:
		return v < 0
	case string:
		if !strings.HasPrefix(v, "-") {
			return false
		}
		q, ok := quantity(v)
		return ok && q.Sign() < 0
	}
	return false
}

// same says whether two values are the same text, number or truth value. Lists and
// mappings are the same as nothing: Go panics when it compares them.
func same(a, b any) bool {
	switch a.(type) {
	case string, int64, float64, bool:
		return a == b
	}
	return false
}

// exceeds says whether one quantity is more than another.
func exceeds(a, b any) bool {
	if same(a, b) {
		return false
	}
	x, ok := quantity(a)
	if !ok {
		return false
	}
	y, ok := quantity(b)
	return ok && x.Cmp(y) > 0
}

// oneOf checks that exactly one of some fields is there.
func oneOf(m map[string]any, fields []string, what string) Flaws {
	if first, second := firstTwo(m, fields); second != "" {
		return say("only one " + what + ": remove it or " + first).at(second)
	} else if first == "" {
		return say("want one of " + strings.Join(fields, ", "))
	}
	return nil
}

// atMostOne checks that at most one of some fields is there.
func atMostOne(m map[string]any, fields []string, what string) Flaws {
	if first, second := firstTwo(m, fields); second != "" {
		return say("only one " + what + ": remove it or " + first).at(second)
	}
	return nil
}

// firstTwo are the first two of some fields that are there.
func firstTwo(m map[string]any, fields []string) (first, second string) {
	for _, field := range fields {
		if m[field] == nil {
			continue
		}
		if first != "" {
			return first, field
		}
		first = field
	}
	return first, ""
}

// mapping makes a rule of a function for mappings.
func mapping(check func(m map[string]any) Flaws) Rule {
	return func(value any) Flaws {
		if m, ok := value.(map[string]any); ok {
			return check(m)
		}
		return nil
	}
}

// texts makes a rule of a function for texts, which says what is wanted of one;
// empty when it is good.
func texts(check func(s string) string) Rule {
	return func(value any) Flaws {
		if s, ok := value.(string); ok {
			if text := check(s); text != "" {
				return want(text)
			}
		}
		return nil
	}
}

// except makes a rule that holds for all values but one.
func except(but string, rule Rule) Rule {
	return func(value any) Flaws {
		if value == but {
			return nil
		}
		return rule(value)
	}
}

// each makes a rule for lists of one for their items.
func each(rule Rule) Rule {
	return func(value any) (found Flaws) {
		l, _ := value.([]any)
		for i, item := range l {
			if f := rule(item); f != nil {
				found = append(found, f.item(i)...)
			}
		}
		return found
	}
}

// between makes a rule for integers.
func between(least, most int64) Rule {
	return func(value any) Flaws {
		n, ok := whole(value)
		switch {
		case !ok || n >= least && n <= most:
			return nil
		case most >= math.MaxInt32:
			return want("at least " + strconv.FormatInt(least, 10))
		}
		return want("a number from " + strconv.FormatInt(least, 10) + " to " + strconv.FormatInt(most, 10))
	}
}

// some makes a rule for lists and mappings that need something in them.
func some(what string) Rule {
	return func(value any) Flaws {
		switch v := value.(type) {
		case []any:
			if len(v) == 0 {
				return say("want at least one " + what)
			}
		case map[string]any:
			if len(v) == 0 {
				return say("want at least one " + what)
			}
		}
		return nil
	}
}

// atMost makes a rule for the number of a list's items.
func atMost(n int, what string) Rule {
	return func(value any) Flaws {
		if l, ok := value.([]any); ok && len(l) > n {
			return say("want at most " + strconv.Itoa(n) + " " + what + ", got " + strconv.Itoa(len(l)))
		}
		return nil
	}
}

var (
	count       = between(0, math.MaxInt64)
	positive    = between(1, math.MaxInt64)
	port        = between(1, 65535)
	portOrNone  = between(0, 65535)
	notNegative = Rule(func(value any) Flaws {
		if isNegative(value) {
			return want("at least 0")
		}
		return nil
	})
	// nonEmpty is for a text that has to say something.
	nonEmpty = texts(func(s string) string {
		if s == "" {
			return "a string that is not empty"
		}
		return ""
	})
)

// every makes one rule of several.
func every(rules ...Rule) Rule {
	return func(value any) (found Flaws) {
		for _, rule := range rules {
			if f := rule(value); f != nil {
				found = append(found, f...)
			}
		}
		return found
	}
}

// percentage reads "25%"; ok is false for what is none.
func percentage(value any) (n int64, ok bool) {
	s, _ := value.(string)
	digits, isPercent := strings.CutSuffix(s, "%")
	if !isPercent || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	return n, true
}

// share is a count or a percentage, at most 100.
func share(value any) Flaws { return shareUpTo(value, 100) }

// anyShare is a count or a percentage of any size.
func anyShare(value any) Flaws { return shareUpTo(value, math.MaxInt64) }

func shareUpTo(value any, most int64) Flaws {
	if n, ok := whole(value); ok {
		if n < 0 {
			return want("at least 0")
		}
		return nil
	}
	if _, ok := value.(string); !ok {
		return nil
	}
	n, ok := percentage(value)
	if !ok {
		return want("a number, or a percentage like \"25%\"")
	}
	if n > most {
		return want("at most 100%")
	}
	return nil
}

// isZero says whether a count or a percentage is none.
func isZero(value any) bool {
	if n, ok := whole(value); ok {
		return n == 0
	}
	n, ok := percentage(value)
	return ok && n == 0
}

// oneText makes a rule for texts of which only some are known.
func oneText(known ...string) Rule {
	wanted := "one of " + strings.Join(known, ", ")
	return texts(func(s string) string { return unless(slices.Contains(known, s), wanted) })
}

// onlyOnce finds items whose field has the text that an item before them has.
func onlyOnce(field, advice string) Rule {
	return func(v any) (found Flaws) {
		l, _ := v.([]any)
		seen := map[string]bool{}
		for i, item := range l {
			m, _ := item.(map[string]any)
			value := text(m, field)
			if value != "" && seen[value] {
				found = append(found, say(advice).at(field).item(i)...)
			}
			seen[value] = true
		}
		return found
	}
}
