// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"math"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// optionValidate is the number of buf.validate's options on fields and oneofs.
const optionValidate protoreflect.FieldNumber = 1159

// rules are those rules of buf.validate that JSON Schema can say. What it
// cannot is left to the decoder, so a value that breaks one of these rules is
// always refused there too. The zero value allows everything.
type rules struct {
	required bool
	// always is IGNORE_ALWAYS: nothing is asked of the value, nor of the messages
	// in it. The rest is empty then.
	always bool
	// orZero is IGNORE_IF_ZERO_VALUE: the type's zero value breaks no rule.
	orZero bool
	// nonZero is set where the zero value cannot be told from an absent field,
	// and the field is required.
	nonZero bool
	// never is set where no value that can be written keeps the rules.
	never bool
	// keywords of draft-07 that hold for the value, for a text when it is not
	// read from a file. Never "type", "enum" or "not".
	keywords map[string]any
	// allowed are the only values, denied are none, as text, bool, int64, uint64
	// or finite float64; enum values as numbers. Nil is no rule.
	allowed, denied []any
	// items are of a list's items or a map's values, keys of a map's keys.
	items, keys *rules
}

// Numbers of buf.validate.Ignore.
const (
	ignoreIfZero protoreflect.EnumNumber = 1
	ignoreAlways protoreflect.EnumNumber = 3
)

// rulesOf are the rules in a (buf.validate.field), or in one of its parts for
// items, keys or values; m may be nil.
func rulesOf(m protoreflect.Message) rules {
	var r rules
	if m == nil {
		return r
	}
	if field := m.Descriptor().Fields().ByName("ignore"); field != nil && field.Kind() == protoreflect.EnumKind && !field.IsList() {
		switch m.Get(field).Enum() {
		case ignoreIfZero:
			r.orZero = true
		case ignoreAlways:
			return rules{always: true}
		}
	}
	if field := m.Descriptor().Fields().ByName("required"); field != nil {
		r.required = isTrue(field, m.Get(field))
	}
	of := m.Descriptor().Oneofs().ByName("type")
	if of == nil {
		return r
	}
	field := m.WhichOneof(of)
	if field == nil || !isMessage(field) {
		return r
	}
	typed := m.Get(field).Message()
	r.keywords = map[string]any{}
	switch field.Name() {
	case "string":
		r.text(typed)
	case "repeated":
		r.counts(typed, map[protoreflect.Name]string{"min_items": "minItems", "max_items": "maxItems"})
		if unique := typed.Descriptor().Fields().ByName("unique"); unique != nil && isTrue(unique, typed.Get(unique)) {
			r.keywords["uniqueItems"] = true
		}
		r.items = nested(typed, "items")
	case "map":
		r.counts(typed, map[protoreflect.Name]string{"min_pairs": "minProperties", "max_pairs": "maxProperties"})
		r.items, r.keys = nested(typed, "values"), nested(typed, "keys")
	case "bytes", "any", "duration", "timestamp", "field_mask":
		return r // written otherwise than they are compared
	default:
		r.bounds(typed)
	}
	r.values(typed)
	return r
}

func nested(m protoreflect.Message, name protoreflect.Name) *rules {
	field := m.Descriptor().Fields().ByName(name)
	if field == nil || !isMessage(field) || !m.Has(field) {
		return nil
	}
	r := rulesOf(m.Get(field).Message())
	return &r
}

// maxCount is more than any document has of anything. A larger bound does not
// fit the integers of some readers of schemas.
const maxCount = math.MaxInt32

// counts takes over bounds of sizes that mean the same as a keyword.
func (r *rules) counts(m protoreflect.Message, keywords map[protoreflect.Name]string) {
	for name, keyword := range keywords {
		field := m.Descriptor().Fields().ByName(name)
		if field == nil || field.Kind() != protoreflect.Uint64Kind || field.IsList() || !m.Has(field) {
			continue
		}
		switch count := m.Get(field).Uint(); {
		case count <= maxCount:
			r.keywords[keyword] = count
		case strings.HasPrefix(keyword, "min"):
			r.keywords[keyword] = uint64(maxCount)
		}
	}
}

// textFormats are well-known rules of texts and the format of draft-07 that says
// the same.
var textFormats = map[string]string{
	"hostname": "hostname", "ipv4": "ipv4", "uri": "uri", "uri_ref": "uri-reference",
}

// email is what protovalidate takes for an address, as HTML defines it; readers
// of the format of that name differ.
const email = "^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$"

func (r *rules) text(m protoreflect.Message) {
	r.counts(m, map[protoreflect.Name]string{"min_len": "minLength", "max_len": "maxLength"})
	r.counts(m, map[protoreflect.Name]string{"len": "minLength"})
	r.counts(m, map[protoreflect.Name]string{"len": "maxLength"})
	var patterns []any
	for _, p := range []struct {
		name          protoreflect.Name
		before, after string
	}{{"prefix", "^", ""}, {"suffix", "", "$"}, {"contains", "", ""}} {
		if text := textField(m, p.name); text != "" {
			patterns = append(patterns, p.before+regexp.QuoteMeta(text)+p.after)
		}
	}
	if pattern, ok := portable(textField(m, "pattern")); ok {
		patterns = append(patterns, pattern)
	}
	known := ""
	if of := m.Descriptor().Oneofs().ByName("well_known"); of != nil {
		if field := m.WhichOneof(of); field != nil && isTrue(field, m.Get(field)) {
			known = string(field.Name())
		}
	}
	switch {
	case known == "email":
		patterns = append(patterns, email)
	case known == "ipv6": // with a zone too, which the format has not
		r.keywords["anyOf"] = []any{map[string]any{"format": "ipv6"}, map[string]any{"pattern": "^[0-9a-fA-F:.]+%"}}
		r.keywords["minLength"] = max(uint64(1), sizeOf(r.keywords, "minLength"))
	case textFormats[known] != "":
		r.keywords["format"] = textFormats[known]
	}
	switch len(patterns) {
	case 0:
	case 1:
		r.keywords["pattern"] = patterns[0]
	default:
		all := make([]any, len(patterns))
		for i, pattern := range patterns {
			all[i] = map[string]any{"pattern": pattern}
		}
		r.keywords["allOf"] = all
	}
}

// sizeOf is the number of a keyword about sizes; 0 where there is none.
func sizeOf(keywords map[string]any, name string) uint64 {
	n, _ := keywords[name].(uint64)
	return n
}

// goValue is a scalar as text, bool, int64, uint64 or float64, the last in its
// shortest form; an enum's value is its number.
func goValue(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.EnumKind:
		return int64(v.Enum())
	case protoreflect.FloatKind:
		return document.Shortest(float32(v.Float()))
	case protoreflect.DoubleKind:
		return v.Float()
	}
	switch v := v.Interface().(type) {
	case int32:
		return int64(v)
	case uint32:
		return uint64(v)
	default:
		return v
	}
}

// oneofRequired says whether (buf.validate.oneof).required is set.
func oneofRequired(of protoreflect.OneofDescriptor) bool {
	required := false
	eachOption(of, func(number protoreflect.FieldNumber, field protoreflect.FieldDescriptor, value protoreflect.Value) {
		if number != optionValidate || !isMessage(field) {
			return
		}
		m := value.Message()
		if field := m.Descriptor().Fields().ByName("required"); field != nil {
			required = isTrue(field, m.Get(field))
		}
	})
	return required
}
