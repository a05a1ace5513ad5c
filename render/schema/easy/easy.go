// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package easy writes the message of an easy kind as schemas for other tools:
// CustomResourceDefinition, JSON Schema, OpenAPI. It checks documents only against
// the message's options for items of lists; the decoder checks their fields.
package easy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

// Schema is the schemas of an easy kind, made from its protobuf message: a server's
// CustomResourceDefinition, which is lenient so that it takes what it once
// took, and a client's JSON Schema and OpenAPI, which are strict. It is safe
// for concurrent use.
type Schema struct {
	Group    string // "easy.example.com"
	Kind     string // "Runtime"
	Singular string // "runtime"
	Plural   string // "runtimes"

	message  protoreflect.MessageDescriptor
	names    names
	forbids  prohibited
	problems document.Problems
	keyed    bool // a list of the message has keys

	mergeOnce   sync.Once
	mergeType   *schema.Type // see MergeType
	schemaOnce  sync.Once
	mergeSchema []byte // see MergeSchema
}

// New reads the options of a message that declares an easy kind. Group and
// Kind are empty when the message does not say them; then, or with any other
// problem, no schema can be made.
func New(message protoreflect.MessageDescriptor) (*Schema, document.Problems) {
	e := &Schema{message: message, forbids: forbiddenOf(message)}
	found := namesOf(message)
	if found == nil || found.group == "" || found.kind == "" {
		e.problem(message, "message %s: option (protoc_gen_crd.k8s_crd) with api_group and kind is missing", message.FullName())
		return e, e.problems
	}
	if isReserved(found.group) || !strings.Contains(found.group, ".") {
		e.problem(message, "message %s: api_group %q: want a domain of your own, like easy.example.com", message.FullName(), document.Shorten(found.group))
		return e, e.problems
	}
	e.names = *found
	e.Group, e.Kind = found.group, found.kind
	e.Singular, e.Plural = found.singular, found.plural
	if e.Singular == "" {
		e.Singular = strings.ToLower(e.Kind)
	}
	if e.Plural == "" {
		e.Plural = plural(strings.ToLower(e.Kind))
	}
	e.checkNames()
	if len(e.problems) == 0 {
		e.definition() // for its problems
		e.checkExamples()
	}
	return e, e.problems.Sorted()
}

// Own is the kind of that name that is part of swell. There is no CRD of it.
func Own(message protoreflect.MessageDescriptor, kind string) *Schema {
	return &Schema{message: message, Group: config.Group, Kind: kind}
}

// Written finds what keeps the schemas of the kind from being written, so that
// it does not keep those of others from it: one problem, at the message.
func (e *Schema) Written() (problems document.Problems) {
	file := e.message.ParentFile().Path()
	defer document.Recover(file, &problems)
	other := &Schema{message: e.message} // for its problems alone
	all := []*Schema{e}
	for what, schema := range map[string]any{"CustomResourceDefinition": e.CRD(), "JSON Schema": e.JSONSchema(), "OpenAPI": OpenAPI(all, nil), "editor's schema": EditorSchema(all, nil, true)} {
		if _, err := json.Marshal(schema); err != nil {
			other.problem(e.message, "message %s: its %s cannot be written: %s", e.message.FullName(), what, err)
		}
	}
	return other.problems.Sorted()
}

// APIVersion is what objects of the kind carry. The version is always v1.
func (e *Schema) APIVersion() string { return e.Group + "/v1" }

// Message is the message that declares the kind.
func (e *Schema) Message() protoreflect.MessageDescriptor { return e.message }

// OverrideForbidden says whether specs may have no spec.override; false for nil.
func (e *Schema) OverrideForbidden() bool { return e != nil && e.forbids.override }

// Overridable says whether specs may have spec.override: unless the kind forbids
// it, has a field of its own of that name, or a spec of a well-known type.
func (e *Schema) Overridable() bool {
	spec := e.message.Fields().ByName("spec")
	return !e.OverrideForbidden() && spec != nil && form(spec) == "message" && spec.Message().Fields().ByName("override") == nil
}

// FromFileForbidden says whether specs may not take texts from files; false for
// nil.
func (e *Schema) FromFileForbidden() bool { return e != nil && e.forbids.fromFile }

// problem is one at the place where d is declared.
func (e *Schema) problem(d protoreflect.Descriptor, format string, args ...any) {
	e.problems = append(e.problems, document.Problem{Position: document.DeclaredAt(d), Code: document.CodeKind, Message: fmt.Sprintf(format, args...)})
}

// checkNames checks what a server would refuse in the names of a kind.
func (e *Schema) checkNames() {
	fail := func(option, value, want string) {
		e.problem(e.message, "message %s: %s %q: want %s", e.message.FullName(), option, document.Shorten(value), want)
	}
	const label = "lower-case letters, digits and hyphens, 63 at most"
	if !document.IsName(e.Group) {
		fail("api_group", e.Group, "a domain of your own, like easy.example.com")
	}
	if !document.IsLabel(strings.ToLower(e.Kind)) || e.Kind[0] < 'A' || e.Kind[0] > 'Z' {
		fail("kind", e.Kind, "a name like Runtime")
	}
	for _, name := range []struct{ option, value string }{{"singular", e.Singular}, {"plural", e.Plural}} {
		if !document.IsLabel(name.value) {
			fail(name.option, name.value, label)
		}
	}
	for _, name := range e.names.short {
		if !document.IsLabel(name) {
			fail("short_names", name, label)
		}
	}
	for _, name := range e.names.categories {
		if !document.IsLabel(name) {
			fail("categories", name, label)
		}
	}
	for _, c := range e.names.columns {
		if c.name == "" || c.path == "" {
			fail("additional_columns", c.name, "a name and a json_path")
		}
		if c.typ == "" {
			fail("additional_columns", c.name, "a type of ColumnType")
		}
	}
}

// plural is the English plural of a kind in lower case, as most tools guess it.
func plural(singular string) string {
	ends := func(with ...string) bool {
		return slices.ContainsFunc(with, func(end string) bool { return strings.HasSuffix(singular, end) })
	}
	switch {
	case ends("s", "x", "z", "ch", "sh"):
		return singular + "es"
	case ends("y") && !ends("ay", "ey", "iy", "oy", "uy"):
		return strings.TrimSuffix(singular, "y") + "ies"
	}
	return singular + "s"
}

// OnServer is the object without the fields that only clients know. object is
// not changed; the result shares parts with it.
func (e *Schema) OnServer(object map[string]any) map[string]any {
	return commonFields(e.message, object)
}

func commonFields(message protoreflect.MessageDescriptor, object map[string]any) map[string]any {
	if isWellKnown(message) {
		return object
	}
	common := make(map[string]any, len(object))
	for name, value := range object {
		field := message.Fields().ByName(protoreflect.Name(name))
		switch {
		case field == nil:
			common[name] = value
		case !fieldOptionsOf(field).clientOnly:
			common[name] = commonValue(field, value)
		}
	}
	return common
}

func commonValue(field protoreflect.FieldDescriptor, value any) any {
	message := field.Message()
	if field.IsMap() {
		message = field.MapValue().Message()
	}
	if message == nil {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		if !field.IsMap() {
			return commonFields(message, v)
		}
		entries := make(map[string]any, len(v))
		for key, entry := range v {
			if m, ok := entry.(map[string]any); ok {
				entry = commonFields(message, m)
			}
			entries[key] = entry
		}
		return entries
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			if m, ok := item.(map[string]any); ok {
				item = commonFields(message, m)
			}
			items[i] = item
		}
		return items
	}
	return value
}
