// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MatchesNothing says of a field of a document that protects that it holds no name or selector.
const MatchesNothing = "nothing"

// MatchesOf says what a name or a selector in a field of swell's own documents has to match, as its
// option in documents.proto does; empty where it says nothing.
func MatchesOf(field protoreflect.FieldDescriptor) string {
	text, _ := optionOf(field, "swell.v1.matches").(string)
	return text
}

// Protects says whether a message of swell's own documents keeps something from happening, as its
// option does; known is false where it has none.
func Protects(message protoreflect.MessageDescriptor) (protects, known bool) {
	protects, known = optionOf(message, "swell.v1.protects").(bool)
	return protects, known
}

// ProtectiveFields are the fields of all messages that protect, in the order of documents.proto. A
// message is not looked into where its field says what it matches.
func ProtectiveFields() (fields []protoreflect.FieldDescriptor) {
	seen := map[protoreflect.FullName]bool{}
	var add func(protoreflect.MessageDescriptor)
	add = func(m protoreflect.MessageDescriptor) {
		if seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			field := m.Fields().Get(i)
			fields = append(fields, field)
			if below := field.Message(); below != nil && MatchesOf(field) == "" && below.ParentFile() == m.ParentFile() {
				add(below)
			}
		}
	}
	for i := range documents().Len() {
		m := documents().Get(i)
		if protects, _ := Protects(m); !protects {
			continue
		}
		if spec := m.Fields().ByName("spec"); spec != nil {
			m = spec.Message()
		}
		add(m)
	}
	return fields
}

// optionOf is an option of a declaration; nil where it is not written.
func optionOf(declared protoreflect.Descriptor, name protoreflect.FullName) (value any) {
	declared.Options().ProtoReflect().Range(func(option protoreflect.FieldDescriptor, set protoreflect.Value) bool {
		if option.FullName() == name {
			value = set.Interface()
		}
		return value == nil
	})
	return value
}
