// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/swell-sh/swell/config"
)

const draft07 = "http://json-schema.org/draft-07/schema#"

// JSONSchema is the strict draft-07 JSON Schema of the kind's specs, for
// editors: it takes what the decoder takes, but for fields that are written
// and left empty. It is the caller's to change.
func (e *Easy) JSONSchema() map[string]any {
	w := jsonWriter{fromFile: !e.forbids.fromFile, definitions: map[string]any{}}
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
func EditorSchema(kinds []*Easy, own []protoreflect.MessageDescriptor, complete bool) map[string]any {
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
			w.fromFile = !e.forbids.fromFile
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
	prefix      string // of the names of definitions
	definitions map[string]any
	fromFile    bool
}

// reference refers to a definition. Names have no slash.
func reference(name string) map[string]any {
	return map[string]any{"$ref": "#/definitions/" + name}
}

// easy is the schema of a whole spec of the kind.
func (w *jsonWriter) easy(e *Easy) map[string]any {
	s := map[string]any{"type": "object", "additionalProperties": false}
	properties := map[string]any{}
	s["properties"] = properties
	if spec := e.message.Fields().ByName("spec"); spec != nil && form(spec) == "message" {
		of := w.object(spec.Message())
		describe(of, spec)
		properties["spec"] = of
		if isRequired(spec) {
			s["required"] = []any{"spec"}
		}
	}
	e.addOverride(properties)
	w.envelope(s, e.APIVersion(), e.Kind)
	s["title"] = e.Kind
	if text := comment(e.message); text != "" {
		s["description"] = text
	}
	return s
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

// message refers to the schema of a message.
func (w *jsonWriter) message(m protoreflect.MessageDescriptor) map[string]any {
	name := w.prefix + string(m.FullName())
	if w.definitions[name] == nil {
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
	properties := map[string]any{}
	var required, all []any
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		properties[string(f.Name())] = w.field(f)
		if isRequired(f) {
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
			names = append(names, string(of.Fields().Get(j).Name()))
		}
		if must := oneofRequired(of); must || len(names) > 1 {
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
	r := rulesOf(options.rules)
	var s map[string]any
	switch {
	case f.IsMap():
		s = map[string]any{"type": "object", "additionalProperties": w.value(f.MapValue(), r.items)}
		if names := w.keys(f.MapKey(), r.keys); names != nil {
			s["propertyNames"] = names
		}
		maps.Copy(s, r.keywords)
	case f.IsList():
		s = map[string]any{"type": "array", "items": w.value(f, r.items)}
		maps.Copy(s, r.keywords)
	default:
		s = w.value(f, &r)
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
		about["default"] = defaultOf(f)
	}
	if s["$ref"] != nil && len(about) > 0 {
		s = map[string]any{"allOf": []any{s}} // draft-07 ignores what stands beside $ref
	}
	maps.Copy(s, about)
	return s
}

// defaultOf is the default of a field of proto2. Numbers that JSON has not are
// shown by their names.
func defaultOf(f protoreflect.FieldDescriptor) any {
	if f.Kind() == protoreflect.EnumKind {
		return string(f.DefaultEnumValue().Name())
	}
	v := goValue(f, f.Default())
	if number, ok := v.(float64); ok && (math.IsNaN(number) || math.IsInf(number, 0)) {
		return f.Default().String()
	}
	return v
}

// keys are the names that a map may have, nil for any.
func (w *jsonWriter) keys(f protoreflect.FieldDescriptor, r *rules) map[string]any {
	switch form(f) {
	case "text":
		if r != nil && (len(r.keywords) > 0 || r.allowed != nil || r.denied != nil) {
			return limited(map[string]any{}, f, r)
		}
		return nil
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
	for i := range values.Len() {
		if number := int64(values.Get(i).Number()); !slices.Contains(numbers, any(number)) {
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
	for _, value := range values {
		switch form(f) {
		case "enum":
			for i := range f.Enum().Values().Len() {
				if v := f.Enum().Values().Get(i); any(int64(v.Number())) == value {
					first = append(first, string(v.Name()))
				}
			}
			second = append(second, value)
		case "int64", "uint64":
			first, second = append(first, value), append(second, decimal(value))
		default:
			first = append(first, value)
		}
	}
	return append(first, second...)
}
