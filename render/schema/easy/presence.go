// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"regexp"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// fieldRules are the rules of a field as they hold in a document. unchecked says
// that those of buf.validate are ignored there. A field without presence, such
// as a list or an ordinary field of proto3, has its zero value where it is
// absent.
func fieldRules(f protoreflect.FieldDescriptor, unchecked bool) rules {
	if unchecked {
		return rules{always: true}
	}
	options := fieldOptionsOf(f)
	r := rulesOf(options.rules)
	if r.always {
		return r
	}
	if f.IsList() && wrapped(f) != f { // protovalidate 1.4.0 does not look at these
		delete(r.keywords, "minItems")
		delete(r.keywords, "maxItems")
		delete(r.keywords, "uniqueItems")
	}
	if options.rules != nil && !hasIgnore(options.rules) && inMessageOneof(f) {
		r.orZero = true
	}
	if f.HasPresence() {
		r.orZero = false // it is about the absent value
		return r
	}
	if r.required {
		r.nonZero, r.orZero = true, false
		r.refuseZero(f)
	}
	return r
}

func hasIgnore(m protoreflect.Message) bool {
	field := m.Descriptor().Fields().ByName("ignore")
	return field != nil && m.Has(field)
}

// IsRequired says whether the author of a spec must write a field.
func IsRequired(f protoreflect.FieldDescriptor) bool { return isRequired(f, false) }

// isRequired says whether the author of a spec must write the field: where it is
// required, or where the zero value of an absent one breaks a rule.
func isRequired(f protoreflect.FieldDescriptor, unchecked bool) bool {
	r := fieldRules(f, unchecked)
	switch {
	case f.Cardinality() == protoreflect.Required, document.IsRequired(f):
		return true
	case r.always:
		return false
	case r.required:
		return true
	}
	return !f.HasPresence() && !r.orZero && r.breaksZero(f)
}

// refuseZero adds that a value is not the zero value.
func (r *rules) refuseZero(f protoreflect.FieldDescriptor) {
	if r.keywords == nil {
		r.keywords = map[string]any{}
	}
	least := func(keyword string) { r.keywords[keyword] = max(sizeOf(r.keywords, keyword), 1) }
	switch {
	case f.IsMap():
		least("minProperties")
	case f.IsList():
		least("minItems")
	case form(f) == "text":
		least("minLength")
	case form(f) != "bytes":
		r.denied = append(slices.Clone(r.denied), zeroOf(f))
	}
}

// breaksZero says whether the zero value of a field breaks one of its rules.
func (r *rules) breaksZero(f protoreflect.FieldDescriptor) bool {
	switch {
	case f.IsMap():
		return sizeOf(r.keywords, "minProperties") > 0
	case f.IsList():
		return sizeOf(r.keywords, "minItems") > 0
	}
	return r.breaksZeroItem(f)
}

// breaksZeroItem is breaksZero of an item of a list, a value or a key of a map,
// or a single value.
func (r *rules) breaksZeroItem(f protoreflect.FieldDescriptor) bool {
	zero := zeroOf(f)
	switch {
	case zero == nil:
		return false
	case r.never, r.nonZero, r.allowed != nil && !slices.Contains(r.allowed, zero), slices.Contains(r.denied, zero):
		return true
	}
	if form(f) == "text" {
		return r.breaksEmpty()
	}
	for keyword, value := range r.keywords {
		order := compareNumbers(zero, value)
		switch {
		case keyword == "minimum" && order < 0, keyword == "exclusiveMinimum" && order <= 0,
			keyword == "maximum" && order > 0, keyword == "exclusiveMaximum" && order >= 0:
			return true
		}
	}
	return false
}

// breaksEmpty says whether the empty text breaks a rule of texts.
func (r *rules) breaksEmpty() bool {
	format, _ := r.keywords["format"].(string)
	if sizeOf(r.keywords, "minLength") > 0 || format != "" && format != "uri-reference" {
		return true
	}
	patterns := []any{r.keywords}
	if all, ok := r.keywords["allOf"].([]any); ok {
		patterns = append(patterns, all...)
	}
	return slices.ContainsFunc(patterns, func(s any) bool {
		keywords, _ := s.(map[string]any)
		pattern, _ := keywords["pattern"].(string)
		compiled, err := regexp.Compile(pattern)
		return err == nil && !compiled.MatchString("")
	})
}

// withoutZero are the rules for a schema that cannot except the zero value: only
// upper bounds of sizes where that breaks another rule and may be written.
func (r rules) withoutZero(f protoreflect.FieldDescriptor) rules {
	if !r.orZero {
		return r
	}
	upper := rules{orZero: true, items: r.items, keys: r.keys, keywords: map[string]any{}}
	for _, keyword := range []string{"maxLength", "maxItems", "maxProperties"} {
		if value := r.keywords[keyword]; value != nil {
			upper.keywords[keyword] = value
		}
	}
	return upper
}

// zeroOf is the zero value of a field, or of one of its items, as rules have it;
// nil for messages, bytes and what is written in another form.
func zeroOf(f protoreflect.FieldDescriptor) any {
	f = wrapped(f)
	switch form(f) {
	case "text":
		return ""
	case "boolean":
		return false
	case "int32", "int64", "enum":
		return int64(0)
	case "uint32", "uint64":
		return uint64(0)
	case "number":
		return float64(0)
	}
	return nil
}

// zeroSchema takes the zero value of a field alone.
func zeroSchema(f protoreflect.FieldDescriptor) map[string]any {
	switch {
	case f.IsMap():
		return map[string]any{"type": "object", "maxProperties": uint64(0)}
	case f.IsList():
		return map[string]any{"type": "array", "maxItems": uint64(0)}
	}
	return map[string]any{"enum": spellings(f, []any{zeroOf(f)})}
}

// inMessageOneof says whether a (buf.validate.message).oneof names the field:
// other rules do not hold for its zero value then.
func inMessageOneof(f protoreflect.FieldDescriptor) bool {
	found := false
	eachOption(f.ContainingMessage(), func(number protoreflect.FieldNumber, field protoreflect.FieldDescriptor, value protoreflect.Value) {
		if number != optionValidate || !isMessage(field) {
			return
		}
		for _, oneof := range messagesField(value.Message(), "oneof") {
			found = found || slices.Contains(textsField(oneof, "fields"), string(f.Name()))
		}
	})
	return found
}
