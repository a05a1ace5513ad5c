// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config/document"
)

// isWellKnown says whether a message has a form of its own in YAML.
func isWellKnown(m protoreflect.MessageDescriptor) bool {
	return m.ParentFile().Package() == "google.protobuf" && wellKnown[m.Name()] != ""
}

// wellKnown are the messages of google.protobuf with a form of their own, and
// which one: the wrappers are their value.
var wellKnown = map[protoreflect.Name]string{
	"Duration": "duration", "Timestamp": "time", "Value": "any", "Struct": "object", "ListValue": "list", "Any": "refused",
	"FieldMask":   "mask",
	"DoubleValue": "wrapper", "FloatValue": "wrapper", "Int64Value": "wrapper", "UInt64Value": "wrapper", "Int32Value": "wrapper",
	"UInt32Value": "wrapper", "BoolValue": "wrapper", "StringValue": "wrapper", "BytesValue": "wrapper",
}

// wrapped is the field that a value is of: that of the wrapper, if it is one.
func wrapped(f protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if m := f.Message(); m != nil && isWellKnown(m) && wellKnown[m.Name()] == "wrapper" {
		return m.Fields().ByName("value")
	}
	return f
}

// form says how a field's value is written: "message", a word of wellKnown, or
// one of text, bytes, int32, uint32, int64, uint64, number, boolean, enum. For
// a list it is that of the items; a map has none.
func form(f protoreflect.FieldDescriptor) string {
	f = wrapped(f)
	if m := f.Message(); m != nil {
		if isWellKnown(m) {
			return wellKnown[m.Name()]
		}
		return "message"
	}
	switch f.Kind() {
	case protoreflect.StringKind:
		return "text"
	case protoreflect.BytesKind:
		return "bytes"
	case protoreflect.BoolKind:
		return "boolean"
	case protoreflect.EnumKind:
		return "enum"
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return "number"
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return "int64"
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return "uint64"
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return "uint32"
	}
	return "int32"
}

// comment is what the .proto says of a descriptor, without the marks.
func comment(d protoreflect.Descriptor) string {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	text := at.LeadingComments
	if strings.TrimSpace(text) == "" {
		text = at.TrailingComments
	}
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "*"))
		if !strings.HasPrefix(line, "buf:lint:") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// describe puts the comment of a field, else that of its message, at a schema.
func describe(schema map[string]any, f protoreflect.FieldDescriptor) {
	text := comment(f)
	if text == "" && f.Message() != nil && !f.IsMap() && !isWellKnown(f.Message()) {
		text = comment(f.Message())
	}
	if text != "" {
		schema["description"] = text
	}
}

// examples are the values of the option example. The error is that of the
// first one that cannot be read.
func examples(f protoreflect.FieldDescriptor, texts []string) (values []any, err error) {
	for _, text := range texts {
		var value any = text
		if form(f) != "text" || f.IsList() || f.IsMap() {
			if value, err = plainExample(text); err != nil {
				return nil, fmt.Errorf("%q: want a value in YAML: %w", document.Shorten(text), err)
			}
		}
		values = append(values, value)
	}
	return values, nil
}

// plainExample reads one value as the decoder reads a spec, so that JSON can
// hold it.
func plainExample(text string) (any, error) {
	docs, problems := document.ReadValues("", []byte(text))
	if len(problems) > 0 {
		return nil, errors.New(problems[0].Message)
	}
	if len(docs) != 1 {
		return nil, fmt.Errorf("there are %d", len(docs))
	}
	value, problems := docs[0].Plain(docs[0].Node)
	switch {
	case len(problems) > 0:
		return nil, errors.New(problems[0].Message)
	case value == nil:
		return nil, errors.New("it is null")
	}
	return value, nil
}

// checkExamples reads all examples of the kind's messages.
func (e *Schema) checkExamples() {
	eachMessage(e.message, map[protoreflect.FullName]bool{}, func(m protoreflect.MessageDescriptor) {
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			if _, err := examples(f, fieldOptionsOf(f).examples); err != nil {
				e.problem(f, "%s: (swell.example) %s", f.FullName(), err)
			}
		}
	})
}

// eachMessage visits a message and those of its fields, each once.
func eachMessage(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool, visit func(protoreflect.MessageDescriptor)) {
	if seen[m.FullName()] || isWellKnown(m) {
		return
	}
	seen[m.FullName()] = true
	if !m.IsMapEntry() {
		visit(m)
	}
	for i := range m.Fields().Len() {
		if below := m.Fields().Get(i).Message(); below != nil {
			eachMessage(below, seen, visit)
		}
	}
}

// atMostOne are the keywords that allow one of the fields to be there; with
// required, one must.
func atMostOne(fields []string, required bool) []any {
	one := make([]any, len(fields))
	for i, name := range fields {
		one[i] = map[string]any{"required": []any{name}}
	}
	if required {
		return one
	}
	return append(one, map[string]any{"not": map[string]any{"anyOf": one[:len(one):len(one)]}})
}
