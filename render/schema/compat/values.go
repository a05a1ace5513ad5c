// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// effect says which values of a rule of buf.validate refuse more.
type effect int

const (
	unknown effect = iota // only values tell
	least                 // larger ones
	most                  // smaller ones
	exact                 // every other one
	choice                // lists without a value that was in
	ban                   // lists with a value that was not in
	flag                  // true
	nothing               // none
)

// effects are those of the rules for values of all types. gt, gte, lt and lte are
// compared in pairs. Others, such as those that a monorepo defines, are unknown.
var effects = map[protoreflect.Name]effect{
	"min_len": least, "min_bytes": least, "min_items": least, "min_pairs": least,
	"max_len": most, "max_bytes": most, "max_items": most, "max_pairs": most,
	"len": exact, "len_bytes": exact, "const": exact, "pattern": exact, "prefix": exact, "suffix": exact,
	"contains": exact, "not_contains": exact, "well_known_regex": exact,
	"in": choice, "not_in": ban,
	"unique": flag, "finite": flag, "defined_only": flag, "strict": nothing, "example": nothing,
	"gt": nothing, "gte": nothing, "lt": nothing, "lte": nothing, "items": nothing, "keys": nothing, "values": nothing,
}

// rules compares the rules of buf.validate of a field whose values are written as before.
// That it is required is another finding.
func (c *comparison) rules(was, is protoreflect.FieldDescriptor, path []string) {
	before, _ := protovalidate.ResolveFieldRules(was)
	after, _ := protovalidate.ResolveFieldRules(is)
	(&values{comparison: c, field: is, path: path}).compare(before, after)
}

// values compares the rules of one field.
type values struct {
	*comparison
	field protoreflect.FieldDescriptor
	path  []string
	part  string // "items: " and the like
}

func (v *values) tightened(format string, args ...any) {
	v.add(RuleTightened, v.field, v.path, "%s%s", v.part, fmt.Sprintf(format, args...))
}

func (v *values) expression(format string, args ...any) {
	v.add(RuleExpression, v.field, v.path, "%s%s", v.part, fmt.Sprintf(format, args...))
}

// compare compares what may be said of a field, of items, of keys and of values.
func (v *values) compare(was, is *validate.FieldRules) {
	if is == nil || is.GetIgnore() == validate.Ignore_IGNORE_ALWAYS {
		return
	}
	if was == nil || was.GetIgnore() == validate.Ignore_IGNORE_ALWAYS {
		was = &validate.FieldRules{}
	} else if was.GetIgnore() == validate.Ignore_IGNORE_IF_ZERO_VALUE && is.GetIgnore() != was.GetIgnore() && !v.field.HasPresence() {
		v.tightened("ignore is not IGNORE_IF_ZERO_VALUE any more: the rules hold for an absent value too")
	}
	for _, text := range newExpressions(was, is) {
		v.expression("the expression is new: %s", text)
	}
	v.typed(typed(was), typed(is))
	v.below("items: ", was.GetRepeated().GetItems(), is.GetRepeated().GetItems())
	v.below("keys: ", was.GetMap().GetKeys(), is.GetMap().GetKeys())
	v.below("values: ", was.GetMap().GetValues(), is.GetMap().GetValues())
}

func (v *values) below(part string, was, is *validate.FieldRules) {
	nested := *v
	nested.part += part
	nested.compare(was, is)
	if is.GetRequired() && !was.GetRequired() {
		nested.tightened("required is new")
	}
}

// typed are the rules for the type of the field; empty ones of no type where there are
// none.
func typed(rules *validate.FieldRules) protoreflect.Message {
	m := rules.ProtoReflect()
	of := m.WhichOneof(m.Descriptor().Oneofs().ByName("type"))
	if of == nil || of.Message() == nil {
		return (&validate.BoolRules{}).ProtoReflect()
	}
	return m.Get(of).Message()
}

func (v *values) typed(was, is protoreflect.Message) {
	v.bounds(was, is)
	is.Range(func(f protoreflect.FieldDescriptor, now protoreflect.Value) bool {
		before, had := get(was, f.Name())
		v.one(f, before, now, had)
		return true
	})
	if unknown := is.GetUnknown(); len(unknown) > 0 && !bytes.Equal(unknown, was.GetUnknown()) {
		v.expression("a rule that the monorepo defines is new, or has another value")
	}
}

// get is a field of rules, which may be of another type.
func get(m protoreflect.Message, name protoreflect.Name) (value protoreflect.Value, ok bool) {
	f := m.Descriptor().Fields().ByName(name)
	if f == nil || !m.Has(f) {
		return value, false
	}
	return m.Get(f), true
}

// one compares one rule.
func (v *values) one(f protoreflect.FieldDescriptor, was, is protoreflect.Value, had bool) {
	text := func(value protoreflect.Value) string {
		if f.IsList() {
			return fmt.Sprintf("%q", texts(value.List()))
		}
		return fmt.Sprintf("%q", value.String())
	}
	changed := func() {
		if had {
			v.tightened("%s was %s, and is %s", f.Name(), text(was), text(is))
		} else {
			v.tightened("%s is new: %s", f.Name(), text(is))
		}
	}
	switch e := effects[f.Name()]; {
	case e == nothing:
	case f.ContainingOneof() != nil && f.ContainingOneof().Name() == "well_known" && f.Kind() == protoreflect.BoolKind, e == flag:
		if is.Bool() && !(had && was.Bool()) {
			v.tightened("%s is new", f.Name())
		}
	case e == least, e == most:
		if !had || e == least && compareValues(is, was) > 0 || e == most && compareValues(is, was) < 0 {
			changed()
		}
	case e == exact:
		if !had || !was.Equal(is) {
			changed()
		}
	case e == choice:
		if !had || slices.ContainsFunc(texts(was.List()), func(t string) bool { return !slices.Contains(texts(is.List()), t) }) {
			changed()
		}
	case e == ban:
		if !had || slices.ContainsFunc(texts(is.List()), func(t string) bool { return !slices.Contains(texts(was.List()), t) }) {
			changed()
		}
	case !had || !was.Equal(is):
		v.expression("%s is new, or has another value", f.Name())
	}
}

func texts(list protoreflect.List) []string {
	all := make([]string, list.Len())
	for i := range all {
		all[i] = list.Get(i).String()
	}
	return all
}

// bound is one end of the numbers that are good.
type bound struct {
	value     protoreflect.Value
	exclusive bool
	set       bool
}

func boundOf(m protoreflect.Message, exclusive, inclusive protoreflect.Name) bound {
	if value, ok := get(m, exclusive); ok {
		return bound{value, true, true}
	}
	value, ok := get(m, inclusive)
	return bound{value, false, ok}
}

// compare is above 0 where b is nearer to the upper end than a.
func (a bound) compare(b bound, side int) int {
	if c := compareValues(b.value, a.value); c != 0 {
		return c
	}
	switch {
	case a.exclusive == b.exclusive:
		return 0
	case b.exclusive:
		return side
	}
	return -side
}

// bounds compares gt, gte, lt and lte. A lower bound above the upper one means all
// outside of them.
func (v *values) bounds(was, is protoreflect.Message) {
	lower, upper := boundOf(was, "gt", "gte"), boundOf(was, "lt", "lte")
	least, most := boundOf(is, "gt", "gte"), boundOf(is, "lt", "lte")
	outside := func(lower, upper bound) bool {
		return lower.set && upper.set && compareValues(lower.value, upper.value) > 0
	}
	if outside(lower, upper) || outside(least, most) {
		same := func(a, b bound) bool {
			return a.set == b.set && (!a.set || a.exclusive == b.exclusive && a.value.Equal(b.value))
		}
		if !same(lower, least) || !same(upper, most) {
			v.expression("the bounds, of which the lower one is above the upper one, are others")
		}
		return
	}
	if least.set && (!lower.set || lower.compare(least, 1) > 0) {
		v.tightened("the lower bound %s", boundText(lower, least, "above", "at least"))
	}
	if most.set && (!upper.set || upper.compare(most, -1) < 0) {
		v.tightened("the upper bound %s", boundText(upper, most, "below", "at most"))
	}
}

func boundText(was, is bound, exclusive, inclusive string) string {
	text := func(b bound) string {
		if b.exclusive {
			return exclusive + " " + b.value.String()
		}
		return inclusive + " " + b.value.String()
	}
	if !was.set {
		return "is new: " + text(is)
	}
	return "was " + text(was) + ", and is " + text(is)
}

// compareValues compares two numbers, durations or times; 0 where one is something else.
func compareValues(a, b protoreflect.Value) int {
	switch x := a.Interface().(type) {
	case int32, int64:
		switch b.Interface().(type) {
		case int32, int64:
			return cmp.Compare(a.Int(), b.Int())
		}
	case uint32, uint64:
		switch b.Interface().(type) {
		case uint32, uint64:
			return cmp.Compare(a.Uint(), b.Uint())
		}
	case float32, float64:
		switch b.Interface().(type) {
		case float32, float64:
			return cmp.Compare(a.Float(), b.Float())
		}
	case protoreflect.Message:
		if y, ok := b.Interface().(protoreflect.Message); ok && y.Descriptor() == x.Descriptor() {
			fields := x.Descriptor().Fields()
			seconds, nanos := fields.ByName("seconds"), fields.ByName("nanos")
			return cmp.Or(cmp.Compare(x.Get(seconds).Int(), y.Get(seconds).Int()), cmp.Compare(x.Get(nanos).Int(), y.Get(nanos).Int()))
		}
	}
	return 0
}

// newExpressions are those that were not there.
func newExpressions(was, is withExpressions) (added []string) {
	known := expressions(was)
	return slices.DeleteFunc(expressions(is), func(text string) bool { return slices.Contains(known, text) })
}

// withExpressions are rules of a field or of a message.
type withExpressions interface {
	GetCel() []*validate.Rule
	GetCelExpression() []string
}

func expressions(rules withExpressions) []string {
	all := slices.Clone(rules.GetCelExpression())
	for _, rule := range rules.GetCel() {
		all = append(all, rule.GetExpression())
	}
	return all
}

// messageRules compares the rules of a message as a whole.
func (c *comparison) messageRules(was, is protoreflect.MessageDescriptor, path []string) {
	before, _ := protovalidate.ResolveMessageRules(was)
	after, _ := protovalidate.ResolveMessageRules(is)
	for _, text := range newExpressions(before, after) {
		c.add(RuleExpression, is, path, "the expression is new: %s", text)
	}
	for _, of := range after.GetOneof() {
		same := func(o *validate.MessageOneofRule) bool {
			return slices.Equal(o.GetFields(), of.GetFields()) && (o.GetRequired() || !of.GetRequired())
		}
		if !slices.ContainsFunc(before.GetOneof(), same) {
			c.add(RuleTightened, is, path, "oneof of %s is new, or required now", strings.Join(of.GetFields(), ", "))
		}
	}
}
