// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
)

const draft07 = "http://json-schema.org/draft-07/schema#"

// JSONSchema is the strict draft-07 JSON Schema of the kind's specs, for
// editors: it takes what the decoder takes, but for fields that are written
// and left empty. It is the caller's to change.
func (e *Schema) JSONSchema() map[string]any {
	w := jsonWriter{kind: e, fromFile: !e.forbids.fromFile, definitions: map[string]any{}}
	s := w.easy(e)
	s["$schema"] = draft07
	if len(w.definitions) > 0 {
		s["definitions"] = w.definitions
	}
	return s
}

// EditorSchema is one JSON Schema for files that hold documents of many kinds,
// as the folders of a monorepo do: each document is looked at by its
// apiVersion and kind. own are the messages of swell's own documents. Documents
// of other apiVersions pass. With complete, a kind that is in none of the two
// lists is refused under an apiVersion that is.
func EditorSchema(kinds []*Schema, own []protoreflect.MessageDescriptor, complete bool) map[string]any {
	definitions := map[string]any{}
	known := map[string][]any{} // kinds by apiVersion
	var all []any
	add := func(apiVersion, kind string, write func(w *jsonWriter) map[string]any) {
		name := strings.ReplaceAll(apiVersion, "/", ".") + "." + kind
		definitions[name] = write(&jsonWriter{prefix: name + ".", definitions: definitions})
		known[apiVersion] = append(known[apiVersion], kind)
		all = append(all, map[string]any{"if": is(apiVersion, kind), "then": reference(name)})
	}
	for _, e := range kinds {
		add(e.APIVersion(), e.Kind, func(w *jsonWriter) map[string]any {
			w.kind, w.fromFile = e, !e.forbids.fromFile
			return w.easy(e)
		})
	}
	for _, m := range own {
		add(config.APIVersion, string(m.Name()), func(w *jsonWriter) map[string]any {
			s := w.object(m)
			w.envelope(s, config.APIVersion, string(m.Name()))
			if text := comment(m); text != "" {
				s["description"] = text
			}
			return s
		})
	}
	for _, apiVersion := range slices.Sorted(maps.Keys(known)) {
		if !complete && apiVersion != config.APIVersion {
			continue
		}
		all = append(all, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"apiVersion": map[string]any{"const": apiVersion}}, "required": []any{"apiVersion"}},
			"then": map[string]any{"properties": map[string]any{"kind": map[string]any{"enum": known[apiVersion]}}},
		})
	}
	return map[string]any{"$schema": draft07, "title": "Documents of the monorepo", "definitions": definitions, "allOf": all}
}

// is holds for documents of one kind.
func is(apiVersion, kind string) map[string]any {
	return map[string]any{
		"properties": map[string]any{"apiVersion": map[string]any{"const": apiVersion}, "kind": map[string]any{"const": kind}},
		"required":   []any{"apiVersion", "kind"},
	}
}

// jsonWriter writes messages as JSON Schemas that refer to each other.
type jsonWriter struct {
	kind        *Schema // nil for swell's own documents
	prefix      string  // of the names of definitions
	definitions map[string]any
	fromFile    bool
	unchecked   bool // inside what rules are ignored of
}

// reference refers to a definition. Names have no slash.
func reference(name string) map[string]any {
	return map[string]any{"$ref": "#/definitions/" + name}
}

// easy is the schema of a whole spec of the kind.
func (w *jsonWriter) easy(e *Schema) map[string]any {
	s := w.fields(e.message, document.WrittenFields(e.message), func(f protoreflect.FieldDescriptor) map[string]any {
		if f.Name() != "spec" || form(f) != "message" {
			return w.field(f)
		}
		wasUnchecked := w.unchecked
		w.unchecked = fieldRules(f, false).always
		defer func() { w.unchecked = wasUnchecked }()
		of := w.object(f.Message())
		describe(of, f)
		return of
	})
	properties := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	if emptyBreaks(e.message.Fields().ByName("spec")) && !slices.Contains(required, any("spec")) {
		s["required"] = append(required, "spec") // none is an empty one
	}
	e.addOverride(properties)
	w.envelope(s, e.APIVersion(), e.Kind)
	s["title"] = e.Kind
	if text := comment(e.message); text != "" {
		s["description"] = text
	}
	return s
}

// emptyBreaks says whether an empty message in the field breaks a rule of
// presence.
func emptyBreaks(f protoreflect.FieldDescriptor) bool {
	if f == nil || form(f) != "message" {
		return false
	}
	unchecked := fieldRules(f, false).always
	m := f.Message()
	for i := range m.Fields().Len() {
		if isRequired(m.Fields().Get(i), unchecked) {
			return true
		}
	}
	for i := range m.Oneofs().Len() {
		if !unchecked && oneofRequired(m.Oneofs().Get(i)) {
			return true
		}
	}
	return false
}

// envelope lays apiVersion, kind and metadata around a document.
func (w *jsonWriter) envelope(s map[string]any, apiVersion, kind string) {
	properties := s["properties"].(map[string]any)
	texts := func(what string) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}, "description": what}
	}
	properties["apiVersion"] = map[string]any{"const": apiVersion}
	properties["kind"] = map[string]any{"const": kind}
	properties["metadata"] = map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"name"},
		"properties": map[string]any{
			"name":      map[string]any{"type": "string", "minLength": 1},
			"namespace": map[string]any{"type": "string"},
			"labels":    texts("Labels of the document."), "annotations": texts("Annotations of the document."),
		},
	}
	required, _ := s["required"].([]any)
	s["required"] = append([]any{"apiVersion", "kind", "metadata"}, required...)
}

// message refers to the schema of a message; unchecked is without rules, there
// and below.
func (w *jsonWriter) message(m protoreflect.MessageDescriptor, unchecked bool) map[string]any {
	name := w.prefix + string(m.FullName())
	if unchecked {
		name += ".unchecked"
	}
	if w.definitions[name] == nil {
		wasUnchecked := w.unchecked
		w.unchecked = unchecked
		defer func() { w.unchecked = wasUnchecked }()
		w.definitions[name] = map[string]any{} // it may refer to itself
		s := w.object(m)
		if text := comment(m); text != "" {
			s["description"] = text
		}
		w.definitions[name] = s
	}
	return reference(name)
}

func (w *jsonWriter) object(m protoreflect.MessageDescriptor) map[string]any {
	all := make([]protoreflect.FieldDescriptor, m.Fields().Len())
	for i := range all {
		all[i] = m.Fields().Get(i)
	}
	return w.fields(m, all, w.field)
}

// fields is the schema of some of a message's fields; write is that of one.
func (w *jsonWriter) fields(m protoreflect.MessageDescriptor, fields []protoreflect.FieldDescriptor, write func(protoreflect.FieldDescriptor) map[string]any) map[string]any {
	properties := map[string]any{}
	var required, all []any
	for _, f := range fields {
		properties[string(f.Name())] = write(f)
		if isRequired(f, w.unchecked) {
			required = append(required, string(f.Name()))
		}
	}
	for i := range m.Oneofs().Len() {
		of := m.Oneofs().Get(i)
		if of.IsSynthetic() {
			continue
		}
		var names []string
		for j := range of.Fields().Len() {
			if f := of.Fields().Get(j); slices.Contains(fields, f) {
				names = append(names, string(f.Name()))
			}
		}
		if len(names) == 0 {
			continue
		}
		if must := oneofRequired(of) && !w.unchecked; must || len(names) > 1 {
			all = append(all, map[string]any{"oneOf": atMostOne(names, must)})
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	if len(all) > 0 {
		s["allOf"] = all
	}
	return s
}

func (w *jsonWriter) field(f protoreflect.FieldDescriptor) map[string]any {
	options := fieldOptionsOf(f)
	r := fieldRules(f, w.unchecked)
	wasUnchecked := w.unchecked
	w.unchecked = w.unchecked || r.always
	defer func() { w.unchecked = wasUnchecked }()
	var s map[string]any
	switch {
	case f.IsMap():
		s = map[string]any{"type": "object", "additionalProperties": w.item(f.MapValue(), r.items)}
		if names := w.keys(f.MapKey(), r.keys); names != nil {
			s["propertyNames"] = names
		}
		maps.Copy(s, r.keywords)
	case f.IsList():
		s = map[string]any{"type": "array", "items": w.keyed(f, w.item(f, r.items))}
		maps.Copy(s, r.keywords)
	default:
		s = w.value(f, &r)
	}
	if r.orZero && r.breaksZero(f) {
		s = map[string]any{"anyOf": []any{zeroSchema(f), s}}
	}
	about := map[string]any{}
	describe(about, f)
	if values, _ := examples(f, options.examples); len(values) > 0 {
		about["examples"] = values
	}
	if options.secret {
		about["writeOnly"] = true
	}
	if f.HasDefault() && !f.IsList() && f.Kind() != protoreflect.BytesKind {
		if value := defaultOf(f); value != nil {
			about["default"] = value
		}
	}
	if s["$ref"] != nil && len(about) > 0 {
		s = map[string]any{"allOf": []any{s}} // draft-07 ignores what stands beside $ref
	}
	maps.Copy(s, about)
	return s
}

// item is the schema of an item of a list or a value of a map.
func (w *jsonWriter) item(f protoreflect.FieldDescriptor, r *rules) map[string]any {
	switch {
	case r == nil || !r.orZero:
		return w.value(f, r)
	case form(f) == "message": // one whose fields have their zero values is not checked either
		return w.message(f.Message(), true)
	}
	s := w.value(f, r)
	if r.breaksZeroItem(f) {
		return map[string]any{"anyOf": []any{map[string]any{"enum": spellings(f, []any{zeroOf(f)})}, s}}
	}
	return s
}

// defaultOf is the default of a field of proto2; nil for a number that JSON has
// not.
func defaultOf(f protoreflect.FieldDescriptor) any {
	if f.Kind() == protoreflect.EnumKind {
		return string(f.DefaultEnumValue().Name())
	}
	v := goValue(f, f.Default())
	if isNaN(v) || isInf(v, 0) {
		return nil
	}
	return v
}

// keys are the names that a map may have, nil for any.
func (w *jsonWriter) keys(f protoreflect.FieldDescriptor, r *rules) map[string]any {
	switch form(f) {
	case "text":
		if r == nil || len(r.keywords) == 0 && r.allowed == nil && r.denied == nil && !r.never {
			return nil
		}
		s := limited(map[string]any{}, f, r)
		if r.orZero && r.breaksZeroItem(f) {
			return map[string]any{"anyOf": []any{map[string]any{"const": ""}, s}}
		}
		return s
	case "boolean":
		return map[string]any{"enum": []any{"true", "false"}}
	case "uint32", "uint64":
		return map[string]any{"pattern": "^" + unsigned + "$"}
	}
	return map[string]any{"pattern": "^[-+]?" + unsigned + "$"}
}

// limited adds the rules of a value to its schema.
func limited(s map[string]any, f protoreflect.FieldDescriptor, r *rules) map[string]any {
	maps.Copy(s, r.keywords)
	if values := choices(f, r); values != nil {
		s["enum"] = values
	}
	if values := spellings(f, r.denied); values != nil {
		s["not"] = map[string]any{"enum": values}
	}
	if r.never {
		s["not"] = map[string]any{}
	}
	return s
}

// choices are the only values of a field, as they may be written; nil when
// there are others.
func choices(f protoreflect.FieldDescriptor, r *rules) []any {
	if r.allowed != nil {
		return spellings(f, r.allowed)
	}
	if form(f) != "enum" {
		return nil
	}
	var numbers []any
	values := f.Enum().Values()
	seen := make(map[int64]bool, values.Len())
	for i := range values.Len() {
		if number := int64(values.Get(i).Number()); !seen[number] {
			seen[number] = true
			numbers = append(numbers, number)
		}
	}
	return spellings(f, numbers)
}

// spellings are all ways to write some values of a field: enums by their names
// and then by number, 64-bit integers as a number or a text.
func spellings(f protoreflect.FieldDescriptor, values []any) []any {
	f = wrapped(f)
	var first, second []any
	names, seen := enumNames(f), map[any]bool{}
	for _, value := range values {
		if seen[value] {
			continue // JSON Schema wants each once
		}
		seen[value] = true
		switch form(f) {
		case "enum":
			first, second = append(first, names[value]...), append(second, value)
		case "int64", "uint64":
			first, second = append(first, value), append(second, decimal(value))
		default:
			first = append(first, value)
		}
	}
	return append(first, second...)
}

// enumNames are the names of an enum's numbers, which are int64; nil for a
// field of another type.
func enumNames(f protoreflect.FieldDescriptor) map[any][]any {
	if f.Enum() == nil {
		return nil
	}
	names := map[any][]any{}
	for i := range f.Enum().Values().Len() {
		v := f.Enum().Values().Get(i)
		names[int64(v.Number())] = append(names[int64(v.Number())], string(v.Name()))
	}
	return names
}
