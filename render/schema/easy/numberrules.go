// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"cmp"
	"math"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// bounds takes over those of a number. JSON has no infinities and no NaN, and no
// spec can hold them: a bound that every number keeps is left out, and one that
// none keeps means that the field cannot be set. A lower bound above the upper
// one means all outside of them, which is left to the decoder.
func (r *rules) bounds(m protoreflect.Message) {
	lower, least := bound(m, map[protoreflect.Name]string{"gt": "exclusiveMinimum", "gte": "minimum"})
	upper, most := bound(m, map[protoreflect.Name]string{"lt": "exclusiveMaximum", "lte": "maximum"})
	switch {
	case isNaN(least) || isNaN(most): // nothing is above or below it
	case lower != "" && upper != "" && compareNumbers(least, most) > 0:
	case isInf(least, 1) || isInf(most, -1):
		r.never = true
	default:
		if lower != "" && !isInf(least, -1) {
			r.keywords[lower] = least
		}
		if upper != "" && !isInf(most, 1) {
			r.keywords[upper] = most
		}
	}
}

// bound is the one that is set of several fields, and the keyword for it; empty
// when none is.
func bound(m protoreflect.Message, keywords map[protoreflect.Name]string) (keyword string, value any) {
	for name, keyword := range keywords {
		field := m.Descriptor().Fields().ByName(name)
		if field == nil || field.IsList() || field.Message() != nil || !m.Has(field) {
			continue
		}
		switch value := goValue(field, m.Get(field)).(type) {
		case int64, uint64, float64:
			return keyword, value
		}
	}
	return "", nil
}

// compareNumbers compares two numbers of one type.
func compareNumbers(a, b any) int {
	switch a := a.(type) {
	case int64:
		b, _ := b.(int64)
		return cmp.Compare(a, b)
	case uint64:
		b, _ := b.(uint64)
		return cmp.Compare(a, b)
	case float64:
		b, _ := b.(float64)
		return cmp.Compare(a, b)
	}
	return 0
}

func isNaN(value any) bool {
	number, ok := value.(float64)
	return ok && math.IsNaN(number)
}

// isInf is [math.IsInf] of a value that may be none.
func isInf(value any, sign int) bool {
	number, ok := value.(float64)
	return ok && math.IsInf(number, sign)
}

// values takes over const, in and not_in, without what JSON has no number for.
func (r *rules) values(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	list := func(name protoreflect.Name) []any {
		field := fields.ByName(name)
		if field == nil || !field.IsList() || field.Message() != nil {
			return nil
		}
		var all []any
		for i := range m.Get(field).List().Len() {
			all = append(all, goValue(field, m.Get(field).List().Get(i)))
		}
		return all
	}
	r.allowed, r.denied = list("in"), list("not_in")
	if field := fields.ByName("const"); field != nil && m.Has(field) && !field.IsList() && field.Message() == nil {
		fixed := goValue(field, m.Get(field))
		if r.allowed != nil && !slices.Contains(r.allowed, fixed) {
			r.never = true
		}
		r.allowed = []any{fixed}
	}
	unwritable := func(value any) bool { return isNaN(value) || isInf(value, 0) }
	some := len(r.allowed) > 0
	r.allowed = slices.DeleteFunc(r.allowed, unwritable)
	r.denied = slices.DeleteFunc(r.denied, unwritable)
	if len(r.denied) == 0 {
		r.denied = nil
	}
	if some && len(r.allowed) == 0 {
		r.never, r.allowed = true, nil
	}
}
