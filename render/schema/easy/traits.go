// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import "google.golang.org/protobuf/reflect/protoreflect"

// Traits are what the options of a field say, beside the rules of its values.
type Traits struct {
	// ClientOnly says that servers do not know the field.
	ClientOnly bool
	// Immutable says that the field cannot be changed once it is set.
	Immutable bool
	// Keys tell the items of a list apart; none where it is replaced as a whole.
	Keys []string
	// Strategy is that of strategic merge patches; empty for none.
	Strategy string
}

// Traits are those of a field of the kind at a path of names with dots, like
// spec.ports.
func (e *Schema) Traits(path string, f protoreflect.FieldDescriptor) Traits {
	options := fieldOptionsOf(f)
	merge := e.mergeAt(path, f, options, func(int) {})
	return Traits{ClientOnly: options.clientOnly, Immutable: options.immutable, Keys: merge.keys, Strategy: merge.patch.strategy}
}

// ClusterScoped says whether objects of the kind are in no namespace.
func (e *Schema) ClusterScoped() bool { return e.names.cluster }

// Form says how a field's value, or an item of it, is written: message, text, bytes,
// int32, uint32, int64, uint64, number, boolean, enum, or for messages of
// google.protobuf duration, time, any (a Value), object (a Struct), list, mask or
// refused. That of a wrapper is the form of its value.
func Form(f protoreflect.FieldDescriptor) string { return form(f) }

// Wrapped is the field that a value is of: that of the wrapper, if it is one.
func Wrapped(f protoreflect.FieldDescriptor) protoreflect.FieldDescriptor { return wrapped(f) }
