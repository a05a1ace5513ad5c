// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"google.golang.org/protobuf/reflect/protoreflect"
)

// IsRequired says whether (google.api.field_behavior) of a field has REQUIRED:
// it has to be written, with any value. In a oneof it means nothing, since
// another field may be set.
func IsRequired(f protoreflect.FieldDescriptor) bool {
	const required = 2 // FieldBehavior.REQUIRED
	if of := f.ContainingOneof(); of != nil && !of.IsSynthetic() {
		return false
	}
	found := false
	f.Options().ProtoReflect().Range(func(option protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if option.FullName() != "google.api.field_behavior" || !option.IsList() || option.Kind() != protoreflect.EnumKind {
			return true
		}
		for i := range value.List().Len() {
			found = found || value.List().Get(i).Enum() == required
		}
		return false
	})
	return found
}

// requiredFields are those of messages that have to be written.
func requiredFields(messages []protoreflect.MessageDescriptor) map[protoreflect.FullName][]protoreflect.FieldDescriptor {
	var required map[protoreflect.FullName][]protoreflect.FieldDescriptor
	for _, m := range messages {
		for i := range m.Fields().Len() {
			if f := m.Fields().Get(i); IsRequired(f) {
				if required == nil {
					required = map[protoreflect.FullName][]protoreflect.FieldDescriptor{}
				}
				required[m.FullName()] = append(required[m.FullName()], f)
			}
		}
	}
	return required
}

// written finds required fields that are not in the document. Null is as good
// as nothing.
func (c *ruleCheck) written(m protoreflect.Message, at []step) {
	if len(c.rules.required) == 0 {
		return
	}
	visit(m, at, func(m protoreflect.Message, at []step) {
		for _, f := range c.rules.required[m.Descriptor().FullName()] {
			path := append(at[:len(at):len(at)], step{key: string(f.Name())})
			if _, value := c.doc.find(path, false); value == nil || IsNull(value) {
				c.problem(path, false, "value is required")
			}
		}
	})
}
