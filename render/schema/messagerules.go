// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// optionValidate is the number of buf.validate's options on fields and oneofs.
const optionValidate protoreflect.FieldNumber = 1159

// rules are those rules of buf.validate that JSON Schema can say. What it
// cannot is left to the decoder, so a value that breaks one of these rules is
// always refused there too. The zero value allows everything.
type rules struct {
	required bool
	// keywords of draft-07 that hold for the value, for a text when it is not
	// read from a file. Never "type", "enum" or "not".
	keywords map[string]any
	// allowed are the only values, denied are none, as text, int64, uint64 or
	// float64; enum values as numbers. Nil is no rule.
	allowed, denied []any
	// items are of a list's items or a map's values, keys of a map's keys.
	items, keys *rules
}

func rulesOf(m protoreflect.Message) rules {
	var r rules
	if m == nil {
		return r
	}
	if field := m.Descriptor().Fields().ByName("ignore"); field != nil && field.Kind() == protoreflect.EnumKind && m.Get(field).Enum() != 0 {
		return r // not for every value that can be written
	}
	if field := m.Descriptor().Fields().ByName("required"); field != nil && field.Kind() == protoreflect.BoolKind {
		r.required = m.Get(field).Bool()
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
		r.counts(typed, map[protoreflect.Name]string{"min_items": "minItems", "max_items": "maxItems", "unique": "uniqueItems"})
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

// counts takes over fields that mean the same as a keyword.
func (r *rules) counts(m protoreflect.Message, keywords map[protoreflect.Name]string) {
	for name, keyword := range keywords {
		field := m.Descriptor().Fields().ByName(name)
		if field != nil && m.Has(field) && !field.IsList() {
			r.keywords[keyword] = goValue(field, m.Get(field))
		}
	}
}

// bounds takes over those of a number. A lower bound above the upper one means
// all outside of them, which is left to the decoder.
func (r *rules) bounds(m protoreflect.Message) {
	bounds := rules{keywords: map[string]any{}}
	bounds.counts(m, map[protoreflect.Name]string{"gt": "exclusiveMinimum", "gte": "minimum", "lt": "exclusiveMaximum", "lte": "maximum"})
	lower, hasLower := firstOf(bounds.keywords, "exclusiveMinimum", "minimum")
	upper, hasUpper := firstOf(bounds.keywords, "exclusiveMaximum", "maximum")
	if hasLower && hasUpper && lower > upper {
		return
	}
	maps.Copy(r.keywords, bounds.keywords)
}

func firstOf(keywords map[string]any, names ...string) (float64, bool) {
	for _, name := range names {
		switch v := keywords[name].(type) {
		case int64:
			return float64(v), true
		case uint64:
			return float64(v), true
		case float64:
			return v, true
		}
	}
	return 0, false
}

// values takes over const, in and not_in.
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
		r.allowed = []any{goValue(field, m.Get(field))}
	}
}

// textFormats are well-known rules of texts and the format of draft-07 that says
// the same.
var textFormats = map[protoreflect.Name]string{
	"email": "email", "hostname": "hostname", "ipv4": "ipv4", "ipv6": "ipv6", "uri": "uri", "uri_ref": "uri-reference",
}

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
	if pattern := textField(m, "pattern"); pattern != "" && isPortable(pattern) {
		patterns = append(patterns, pattern)
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
	of := m.Descriptor().Oneofs().ByName("well_known")
	if of == nil {
		return
	}
	if field := m.WhichOneof(of); field != nil && isTrue(field, m.Get(field)) && textFormats[field.Name()] != "" {
		r.keywords["format"] = textFormats[field.Name()]
	}
}

// isPortable says whether a pattern of RE2, which rules are written in, means
// the same in JavaScript, which editors have.
func isPortable(pattern string) bool {
	if _, err := regexp.Compile(pattern); err != nil {
		return false
	}
	for _, only := range []string{`\A`, `\z`, `\Q`, `\C`, `\p`, `\P`, `\x{`, `\a`, "[["} {
		if strings.Contains(pattern, only) {
			return false
		}
	}
	return !strings.Contains(strings.ReplaceAll(pattern, "(?:", ""), "(?")
}

// goValue is a scalar as text, bool, int64, uint64 or float64; an enum's value
// is its number.
func goValue(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.EnumKind:
		return int64(v.Enum())
	case protoreflect.FloatKind, protoreflect.DoubleKind:
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
