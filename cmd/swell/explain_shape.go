// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/schema"
	"github.com/swell-sh/swell/render/schema/easy"
)

// shape is what is told of a type, whichever schema it comes from.
type shape struct {
	typ      string // "a string", "a list of Port"
	doc      string // paragraphs, with an empty line between
	elements bool   // fields and values are those of the items of a list or a map
	// key tells types with fields apart, to notice one inside itself.
	key any
	// fields are made when they are asked for: a type may be inside itself.
	fields func() []field
	values []enumValue
	// closed is set for what is not shown as part of something larger.
	closed bool
}

// requiredNote is the note of a field that has to be there.
const requiredNote = "required"

type field struct {
	name, doc string
	note      string // "required", "only one of target"
	shape     shape
}

type enumValue struct{ name, doc string }

func (s *shape) allFields() []field {
	if s.fields == nil {
		return nil
	}
	return s.fields()
}

// wellKnownShapes are the messages that are written in a form of their own.
var wellKnownShapes = map[protoreflect.FullName]string{
	"google.protobuf.Duration": "a duration like 30s or 1h30m", "google.protobuf.Timestamp": "a time like 2006-01-02T15:04:05Z",
	"google.protobuf.Value": "anything", "google.protobuf.Struct": "a map of anything", "google.protobuf.ListValue": "a list of anything",
	"google.protobuf.DoubleValue": "a number", "google.protobuf.FloatValue": "a number", "google.protobuf.BoolValue": "true or false",
	"google.protobuf.Int64Value": "a 64-bit integer", "google.protobuf.UInt64Value": "a 64-bit integer from 0",
	"google.protobuf.Int32Value": "a 32-bit integer", "google.protobuf.UInt32Value": "a 32-bit integer from 0",
	"google.protobuf.StringValue": "a string", "google.protobuf.BytesValue": "bytes in base64",
	"google.protobuf.FieldMask": "paths of fields like a,b.c",
	"google.protobuf.Any":       "nothing: which message it holds is not known",
}

var scalarShapes = map[protoreflect.Kind]string{
	protoreflect.StringKind: "a string", protoreflect.BytesKind: "bytes in base64", protoreflect.BoolKind: "true or false",
	protoreflect.Int32Kind: "a 32-bit integer", protoreflect.Sint32Kind: "a 32-bit integer", protoreflect.Sfixed32Kind: "a 32-bit integer",
	protoreflect.Int64Kind: "a 64-bit integer", protoreflect.Sint64Kind: "a 64-bit integer", protoreflect.Sfixed64Kind: "a 64-bit integer",
	protoreflect.Uint32Kind: "a 32-bit integer from 0", protoreflect.Fixed32Kind: "a 32-bit integer from 0",
	protoreflect.Uint64Kind: "a 64-bit integer from 0", protoreflect.Fixed64Kind: "a 64-bit integer from 0",
	protoreflect.FloatKind: "a number", protoreflect.DoubleKind: "a number",
}

func messageShape(m protoreflect.MessageDescriptor) shape {
	if typ, ok := wellKnownShapes[m.FullName()]; ok {
		return shape{typ: typ}
	}
	if m.FullName() == "google.protobuf.Empty" { // Google's comment is for programmers
		return shape{typ: "an empty map", key: m.FullName(), fields: func() []field { return nil }}
	}
	return shape{typ: string(m.Name()), doc: comment(m), key: m.FullName(), fields: func() []field {
		fields := make([]field, m.Fields().Len())
		for i := range fields {
			f := m.Fields().Get(i)
			fields[i] = field{name: string(f.Name()), doc: fieldDoc(f), shape: fieldShape(f)}
			if easy.IsRequired(f) {
				fields[i].note = requiredNote
			}
			if oneof := f.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
				fields[i].note = "only one of " + string(oneof.Name())
			}
		}
		return fields
	}}
}

func fieldShape(f protoreflect.FieldDescriptor) shape {
	switch {
	case f.IsMap():
		s := fieldShape(f.MapValue())
		return s.in("a map of " + article(scalarShapes[f.MapKey().Kind()]) + " to " + article(s.typ))
	case f.IsList():
		s := singleShape(f)
		return s.in("a list of " + plural(s.typ))
	}
	return singleShape(f)
}

// in is the shape of a list or a map of s.
func (s shape) in(typ string) shape {
	s.typ, s.elements = typ, true
	return s
}

// article is a type's name without "a" in front.
func article(typ string) string { return strings.TrimPrefix(strings.TrimPrefix(typ, "a "), "an ") }

var countable = regexp.MustCompile(`^an? ((?:[0-9]+-bit |empty )?[a-z]+)`)

// plural is what many values of a type are called: strings of "a string". The
// name of a message or an enum stays as it is.
func plural(typ string) string {
	return countable.ReplaceAllStringFunc(typ, func(noun string) string {
		noun = article(noun)
		if stem, ok := strings.CutSuffix(noun, "y"); ok {
			return stem + "ies"
		}
		return noun + "s"
	})
}

func singleShape(f protoreflect.FieldDescriptor) shape {
	switch {
	case f.Message() != nil:
		return messageShape(f.Message())
	case f.Enum() != nil:
		s := shape{typ: string(f.Enum().Name()), doc: comment(f.Enum())}
		for i := range f.Enum().Values().Len() {
			v := f.Enum().Values().Get(i)
			s.values = append(s.values, enumValue{string(v.Name()), comment(v)})
		}
		return s
	}
	return shape{typ: scalarShapes[f.Kind()]}
}

// comment is what stands above a declaration in the .proto, or else behind it.
func comment(d protoreflect.Descriptor) string {
	at := d.ParentFile().SourceLocations().ByDescriptor(d)
	if at.LeadingComments != "" {
		return paragraphs(at.LeadingComments)
	}
	return paragraphs(at.TrailingComments)
}

// fieldDoc is the comment of a field, and what a name in it has to match.
func fieldDoc(f protoreflect.FieldDescriptor) string {
	switch matches := config.MatchesOf(f); matches {
	case "", config.MatchesNothing:
		return comment(f)
	default:
		return fmt.Sprintf("%s Has to match %s.", comment(f), matches)
	}
}

// kindDoc describes a kind: the comment of its message, or that at the top of
// the file.
func kindDoc(m protoreflect.MessageDescriptor) string {
	if doc := comment(m); doc != "" {
		return doc
	}
	const syntax = 12 // the field of FileDescriptorProto
	return paragraphs(m.ParentFile().SourceLocations().ByPath(protoreflect.SourcePath{syntax}).LeadingComments)
}

// documented is the shape of an envelope with the comments of the message that
// it was made of, which has the lines of a file.
func documented(whole shape, declared protoreflect.MessageDescriptor) shape {
	whole.doc = kindDoc(declared)
	inner := whole.fields
	whole.fields = func() []field {
		fields := inner()
		for i, f := range fields {
			if d := declared.Fields().ByName(protoreflect.Name(f.name)); d != nil && f.doc == "" {
				fields[i].doc = comment(d)
			}
		}
		return fields
	}
	return whole
}

// paragraphs joins the lines of a comment; empty lines stay.
func paragraphs(text string) string {
	var all []string
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r", ""), "\n\n") {
		lines := strings.Split(paragraph, "\n")
		if joined := strings.Join(strings.Fields(strings.Join(lines, " ")), " "); joined != "" {
			all = append(all, joined)
		}
	}
	return strings.Join(all, "\n\n")
}

// lazyHardShape is the shape of a kind of Kubernetes, whose type is put
// together only when it is asked for.
func lazyHardShape(k *schema.Kind) shape {
	return shape{typ: "a map", key: k, fields: func() []field { return hardFields(k.Type()) }}
}

func hardShape(t *schema.Type) shape {
	switch t.Form {
	case schema.Object:
		return shape{typ: "a map", key: t, fields: func() []field { return hardFields(t) }}
	case schema.Any, schema.Map:
		if len(t.Fields) > 0 {
			return shape{typ: "a map, also of fields that are not listed", key: t, fields: func() []field { return hardFields(t) }}
		}
		if t.Form == schema.Any {
			break
		}
		s := hardShape(t.Elem)
		return s.in("a map of string to " + article(s.typ))
	case schema.List:
		s := hardShape(t.Elem)
		typ := "a list of " + plural(s.typ)
		if len(t.Keys) > 0 {
			typ += ", told apart by " + strings.Join(t.Keys, ", ")
		}
		return s.in(typ)
	}
	return shape{typ: t.Form.String()}
}

func hardFields(t *schema.Type) []field {
	var fields []field
	for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
		f := field{name: name, shape: hardShape(t.Fields[name])}
		if slices.Contains(t.Required, name) {
			f.note = requiredNote
		}
		fields = append(fields, f)
	}
	return fields
}

// withOverride adds swell's own field to the spec of an easy kind: the patches
// of its objects by id. A field of that name in the message wins.
func withOverride(whole shape, objects []kind.Object, hard *schema.Set) shape {
	inner := whole.fields
	whole.fields = func() []field {
		fields := inner()
		for i, f := range fields {
			if f.name == "spec" {
				fields[i].shape = withOverrideField(f.shape, objects, hard)
			}
		}
		return fields
	}
	return whole
}

func withOverrideField(spec shape, objects []kind.Object, hard *schema.Set) shape {
	inner := spec.fields
	if inner == nil {
		return spec // a well-known type, which has no more fields
	}
	spec.fields = func() []field {
		fields := inner()
		if slices.ContainsFunc(fields, func(f field) bool { return f.name == kind.OverrideField }) {
			return fields
		}
		return append(fields, field{name: kind.OverrideField, shape: overrideShape(objects, hard),
			doc: "Patches of the objects that the spec stands for, by their ids. Each id holds update: a list of path and value. " +
				"A map as value is merged field by field, null removes, everything else replaces."})
	}
	return spec
}

func overrideShape(objects []kind.Object, hard *schema.Set) shape {
	return shape{typ: "a map by object id", closed: true, fields: func() []field {
		var fields []field
		for _, o := range objects {
			s := shape{typ: "update: a list of path and value"}
			if k := hard.Kind(o.APIVersion, o.Kind); k != nil {
				s.key, s.fields = k, func() []field { return hardFields(k.Type()) }
			}
			fields = append(fields, field{name: o.ID, shape: s,
				doc: fmt.Sprintf("Patches of the %s (%s). The fields below are what a path may start with.", o.Kind, o.APIVersion)})
		}
		return fields
	}}
}
