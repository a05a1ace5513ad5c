// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/render/schema/easy"
)

// maxDepth is how deep messages are compared that hold each other in turns.
const maxDepth = 32

// message compares two messages at one place, and what is below. A pair is compared
// once: what it finds holds at every place.
func (c *comparison) message(was, is protoreflect.MessageDescriptor, path []string) {
	pair := [2]protoreflect.FullName{was.FullName(), is.FullName()}
	if c.seen[pair] || len(path) > maxDepth {
		return
	}
	c.seen[pair] = true
	if was.FullName() != is.FullName() {
		c.add(MessageRenamed, is, path, "was message %s, and is %s", was.FullName(), is.FullName())
	}
	renamed := c.renamed(was, is, path)
	for f := range fields(was) {
		below := within(path, f)
		switch now := is.Fields().ByName(f.Name()); {
		case now != nil:
			c.field(f, now, below)
		case renamed[f.Number()] == nil:
			c.removed(f, is, below)
		}
	}
	for f := range fields(is) {
		if was.Fields().ByName(f.Name()) == nil {
			c.added(f, was, within(path, f), renamed[f.Number()] == f)
		}
	}
	c.reserved(is, path, names(was.ReservedNames()), was.ReservedRanges(), is.ReservedNames(), func(number int32) bool {
		n := protoreflect.FieldNumber(number)
		return is.ReservedRanges().Has(n) || is.Fields().ByNumber(n) != nil
	}, func(name protoreflect.Name) bool { return is.Fields().ByName(name) != nil })
	c.oneofs(was, is, path)
	c.messageRules(was, is, path)
}

func fields(m protoreflect.MessageDescriptor) func(func(protoreflect.FieldDescriptor) bool) {
	return func(yield func(protoreflect.FieldDescriptor) bool) {
		for i := range m.Fields().Len() {
			if !yield(m.Fields().Get(i)) {
				return
			}
		}
	}
}

func within(path []string, f protoreflect.FieldDescriptor) []string {
	return append(slices.Clip(path), string(f.Name()))
}

// renamed finds the fields that have another name under the same number, by number.
// Where the kind spells fields otherwise than before, that is one finding.
func (c *comparison) renamed(was, is protoreflect.MessageDescriptor, path []string) map[protoreflect.FieldNumber]protoreflect.FieldDescriptor {
	found := map[protoreflect.FieldNumber]protoreflect.FieldDescriptor{}
	for f := range fields(was) {
		now := is.Fields().ByNumber(f.Number())
		if now == nil || is.Fields().ByName(f.Name()) != nil || was.Fields().ByName(now.Name()) != nil {
			continue
		}
		found[f.Number()] = now
		if c.was.JSONNames != c.is.JSONNames {
			c.at(FieldNamesChanged, c.is.FieldNamesAt, within(path, f), "documents wrote %q, and are to write %q", f.Name(), now.Name())
		} else {
			c.add(FieldRenamed, now, within(path, f), "field %d was %q, and is %q", f.Number(), f.Name(), now.Name())
		}
	}
	return found
}

func (c *comparison) removed(f protoreflect.FieldDescriptor, is protoreflect.MessageDescriptor, path []string) {
	c.add(FieldRemoved, is, path, "the field is not in message %s any more: documents that have it are refused", is.FullName())
	var missing []string
	if !is.ReservedNames().Has(f.Name()) {
		missing = append(missing, fmt.Sprintf("reserved %q;", f.Name()))
	}
	if !is.ReservedRanges().Has(f.Number()) {
		missing = append(missing, fmt.Sprintf("reserved %d;", f.Number()))
	}
	if len(missing) > 0 {
		c.add(FieldNotReserved, is, path, "the field was removed: write %s into message %s, so that nobody gives its name or number to another field", strings.Join(missing, " "), is.FullName())
	}
}

// added compares a new field with what the message was.
func (c *comparison) added(f protoreflect.FieldDescriptor, was protoreflect.MessageDescriptor, path []string, renamed bool) {
	if was.ReservedNames().Has(f.Name()) {
		c.add(ReservedReused, f, path, "the name %q was reserved", f.Name())
	}
	if was.ReservedRanges().Has(f.Number()) {
		c.add(ReservedReused, f, path, "the number %d was reserved", f.Number())
	}
	if len(path) == 2 && path[0] == "spec" && path[1] == "override" {
		c.add(OverrideTaken, f, path, "a field of the name override hides spec.override")
	}
	if !renamed && easy.IsRequired(f) {
		c.add(FieldRequired, f, path, "the field is new and required: documents without it are refused")
	}
}

// field compares two states of a field.
func (c *comparison) field(was, is protoreflect.FieldDescriptor, path []string) {
	if was.Number() != is.Number() {
		c.add(FieldNumberChanged, is, path, "the number was %d, and is %d", was.Number(), is.Number())
	}
	if was.JSONName() != is.JSONName() {
		c.add(FieldJSONNameChanged, is, path, "the name in JSON was %q, and is %q", was.JSONName(), is.JSONName())
	}
	c.oneof(was, is, path)
	if c.types(was, is, path) {
		c.presence(was, is, path)
		c.rules(was, is, path)
	}
	if easy.IsRequired(is) && !easy.IsRequired(was) {
		c.add(FieldRequired, is, path, "the field is required now: documents without it are refused")
	}
	c.traits(was, is, path)
	was, is = element(was), element(is)
	if easy.Form(was) == "message" && easy.Form(is) == "message" {
		c.message(was.Message(), is.Message(), path)
	}
	if w, i := easy.Wrapped(was).Enum(), easy.Wrapped(is).Enum(); w != nil && i != nil {
		c.enum(w, i, path)
	}
}

// element is the field that an item of a list, or a value of a map, is of.
func element(f protoreflect.FieldDescriptor) protoreflect.FieldDescriptor {
	if f.IsMap() {
		return f.MapValue()
	}
	return f
}

func (c *comparison) presence(was, is protoreflect.FieldDescriptor, path []string) {
	if was.IsList() || was.IsMap() {
		return
	}
	if was.HasPresence() != is.HasPresence() && (ofOneof(was) == nil) == (ofOneof(is) == nil) {
		says := map[bool]string{true: "told from an empty one", false: "the same as an empty one"}
		c.add(FieldPresence, is, path, "an absent field was %s, and is %s", says[was.HasPresence()], says[is.HasPresence()])
	}
	if was.Message() == nil && is.Message() == nil && defaultText(was) != defaultText(is) {
		c.add(FieldDefault, is, path, "the default was %s, and is %s", defaultText(was), defaultText(is))
	}
}

// defaultText is the value of a field that is not written.
func defaultText(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Kind() == protoreflect.EnumKind:
		number := f.Default().Enum()
		if v := f.Enum().Values().ByNumber(number); v != nil {
			return string(v.Name())
		}
		return fmt.Sprint(number)
	case f.Kind() == protoreflect.StringKind:
		return fmt.Sprintf("%q", f.Default().String())
	case f.Kind() == protoreflect.BytesKind:
		return fmt.Sprintf("%q", f.Default().Bytes())
	}
	return f.Default().String()
}

func (c *comparison) traits(was, is protoreflect.FieldDescriptor, path []string) {
	dotted := strings.Join(path, ".")
	before, after := c.was.Traits(dotted, was), c.is.Traits(dotted, is)
	if after.Immutable && !before.Immutable {
		c.add(FieldImmutable, is, path, "(swell.immutable) is new: servers refuse changes of the field")
	}
	if after.ClientOnly && !before.ClientOnly {
		c.add(FieldClientOnly, is, path, "only clients know the field now: servers drop it")
	}
	if !slices.Equal(before.Keys, after.Keys) {
		c.add(ListKeysChanged, is, path, "the items of the list %s, and %s", keysText("were", before.Keys), keysText("are", after.Keys))
	} else if before.Strategy != after.Strategy {
		c.add(MergeStrategy, is, path, "the merge strategy was %q, and is %q", before.Strategy, after.Strategy)
	}
}

func keysText(verb string, keys []string) string {
	if len(keys) == 0 {
		return verb + " replaced as a whole"
	}
	return verb + " told apart by " + strings.Join(keys, " and ")
}

// ofOneof is the oneof of a field that documents are to keep; nil for none.
func ofOneof(f protoreflect.FieldDescriptor) protoreflect.OneofDescriptor {
	if of := f.ContainingOneof(); of != nil && !of.IsSynthetic() {
		return of
	}
	return nil
}

// oneof compares the oneof that a field is in. Two fields that could be set together
// must not share one.
func (c *comparison) oneof(was, is protoreflect.FieldDescriptor, path []string) {
	before, after := ofOneof(was), ofOneof(is)
	if before != nil && left(before, is) {
		c.add(OneofLeft, is, path, "the field was in oneof %s with others that it may be set together with now", before.Name())
	}
	if after == nil {
		return
	}
	for i := range after.Fields().Len() {
		other := was.ContainingMessage().Fields().ByName(after.Fields().Get(i).Name())
		if other == nil || other == was || before != nil && ofOneof(other) == before {
			continue
		}
		c.add(OneofJoined, is, path, "the field is in oneof %s with %s now: documents with both are refused", after.Name(), other.Name())
		return
	}
}

// left says whether a field is not in the oneof any more that other fields of its oneof
// are in.
func left(before protoreflect.OneofDescriptor, is protoreflect.FieldDescriptor) bool {
	var others []protoreflect.FieldDescriptor // that are still there
	for i := range before.Fields().Len() {
		if now := is.ContainingMessage().Fields().ByName(before.Fields().Get(i).Name()); now != nil {
			others = append(others, now)
		}
	}
	for _, other := range others {
		if of := ofOneof(other); of != nil {
			return ofOneof(is) != of
		}
	}
	return len(others) > 1
}

// oneofs finds oneofs of which a field must be set now. One that is new, of new fields
// alone, counts too.
func (c *comparison) oneofs(was, is protoreflect.MessageDescriptor, path []string) {
	for i := range is.Oneofs().Len() {
		of := is.Oneofs().Get(i)
		if before := was.Oneofs().ByName(of.Name()); oneofRequired(of) && (before == nil || !oneofRequired(before)) {
			c.add(OneofRequired, of, path, "a field of oneof %s is required now: documents without one are refused", of.Name())
		}
	}
}

func oneofRequired(of protoreflect.OneofDescriptor) bool {
	rules, _ := protovalidate.ResolveOneofRules(of)
	return rules.GetRequired()
}

// enum compares the values of two enums.
func (c *comparison) enum(was, is protoreflect.EnumDescriptor, path []string) {
	pair := [2]protoreflect.FullName{was.FullName(), is.FullName()}
	if c.seen[pair] {
		return
	}
	c.seen[pair] = true
	for i := range was.Values().Len() {
		v := was.Values().Get(i)
		below := append(slices.Clip(path), string(v.Name()))
		now, same := is.Values().ByName(v.Name()), is.Values().ByNumber(v.Number())
		switch {
		case now != nil && now.Number() != v.Number():
			c.add(EnumValueRenumbered, now, below, "the number was %d, and is %d", v.Number(), now.Number())
		case now != nil:
		case same != nil && was.Values().ByName(same.Name()) == nil:
			c.add(EnumValueRenamed, same, below, "value %d was %q, and is %q", v.Number(), v.Name(), same.Name())
		default:
			c.add(EnumValueRemoved, is, below, "the value is not in enum %s any more: documents with it are refused", is.FullName())
		}
	}
	for i := range is.Values().Len() {
		v := is.Values().Get(i)
		below := append(slices.Clip(path), string(v.Name()))
		if was.Values().ByName(v.Name()) == nil && was.ReservedNames().Has(v.Name()) {
			c.add(ReservedReused, v, below, "the name %q was reserved", v.Name())
		}
		if was.Values().ByNumber(v.Number()) == nil && was.ReservedRanges().Has(v.Number()) {
			c.add(ReservedReused, v, below, "the number %d was reserved", v.Number())
		}
	}
	c.reserved(is, path, names(was.ReservedNames()), enumRanges{was.ReservedRanges()}, is.ReservedNames(), func(number int32) bool {
		n := protoreflect.EnumNumber(number)
		return is.ReservedRanges().Has(n) || is.Values().ByNumber(n) != nil
	}, func(name protoreflect.Name) bool { return is.Values().ByName(name) != nil })
}
