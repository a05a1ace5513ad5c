// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// optionSecret is the number of (swell.secret) in swell/options.proto, by which
// it is known whichever file declared it.
const optionSecret protoreflect.FieldNumber = 57303

// IsSecret says whether values of the field must be in no message: it is marked
// debug_redact or (swell.secret).
func IsSecret(field protoreflect.FieldDescriptor) bool {
	options, ok := field.Options().(*descriptorpb.FieldOptions)
	if !ok {
		return false
	}
	secret := options.GetDebugRedact()
	options.ProtoReflect().Range(func(option protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if option.Number() == optionSecret && option.Kind() == protoreflect.BoolKind && !option.IsList() {
			secret = secret || value.Bool()
		}
		return true
	})
	return secret
}

// HasSecrets says whether a field of the message, or below it, is marked as
// secret.
func HasSecrets(message protoreflect.MessageDescriptor) bool {
	seen := map[protoreflect.FullName]bool{}
	var has func(m protoreflect.MessageDescriptor) bool
	has = func(m protoreflect.MessageDescriptor) bool {
		if m == nil || seen[m.FullName()] {
			return false
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			field := m.Fields().Get(i)
			if IsSecret(field) || has(field.Message()) {
				return true
			}
		}
		return false
	}
	return has(message)
}

// FieldNames are the names of all fields of a message and below it, as JSON has
// them, each once.
func FieldNames(message protoreflect.MessageDescriptor) (names []string) {
	seen := map[protoreflect.FullName]bool{}
	var gather func(m protoreflect.MessageDescriptor)
	gather = func(m protoreflect.MessageDescriptor) {
		if m == nil || seen[m.FullName()] {
			return
		}
		seen[m.FullName()] = true
		for i := range m.Fields().Len() {
			names = append(names, m.Fields().Get(i).JSONName())
			gather(m.Fields().Get(i).Message())
		}
	}
	gather(message)
	slices.Sort(names)
	return slices.Compact(names)
}

// shownKey is a key that no schema knows, as a message may show it: one that
// is a value in the wrong place is not.
func shownKey(key string, value *yaml.Node) string {
	if strings.ContainsAny(key, ": \t\n=") && (value == nil || IsNull(value)) || looksRandom(key) || len(key) > LongestName {
		return Redacted
	}
	return key
}

// PlainKey says whether a key may be shown where values are secrets. A value
// that was written in its place mostly shows: `password:x` without a space is
// a key, and so is a URL.
func PlainKey(key string) bool {
	const longestKey = 64
	return plainKey.MatchString(key) && len(key) <= longestKey && !looksRandom(key)
}

// plainKey is what keys of a Secret look like.
var plainKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)

// looksRandom says whether letters and digits take turns in a word more often
// than in names that people think up.
func looksRandom(text string) bool {
	const most, long = 3, 16 // turns; a word without them
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == '-' || r == '.' || r == '_' }) {
		turns, digits := 0, 0
		for i := range len(word) {
			digit := word[i] >= '0' && word[i] <= '9'
			if digit {
				digits++
			}
			if i > 0 && digit != (word[i-1] >= '0' && word[i-1] <= '9') {
				turns++
			}
		}
		if turns > most || digits > 2 && len(word) >= long {
			return true
		}
	}
	return false
}

// Redacted stands for what is not shown because it may be a secret.
const Redacted = "(secret)"
