// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"strings"
)

// MergeType is the type of the kind's documents as far as merging needs it:
// fields, and the keys of lists. It has no rules and no required fields. It
// refers to itself where the message does. It must not be changed.
func (e *Easy) MergeType() *Type {
	e.mergeOnce.Do(func() {
		m := mergeTypes{definitions: e.clientDefinitions(), types: map[string]*Type{}}
		e.mergeType = m.named(e.definitionName(nil))
	})
	return e.mergeType
}

// MergeSchema is [OpenAPI] of the one kind, as JSON. It must not be changed.
func (e *Easy) MergeSchema() []byte {
	e.schemaOnce.Do(func() {
		text, err := json.Marshal(OpenAPI([]*Easy{e}, nil))
		if err != nil {
			panic(err) // plain values encode
		}
		e.mergeSchema = text
	})
	return e.mergeSchema
}

// mergeTypes makes types of the schemas that kustomize reads.
type mergeTypes struct {
	definitions map[string]any
	types       map[string]*Type
}

func (m *mergeTypes) named(name string) *Type {
	t := m.types[name]
	if t == nil {
		t = &Type{}
		m.types[name] = t // before its fields: a type may refer to itself
		*t = *m.of(m.definitions[name])
	}
	return t
}

func (m *mergeTypes) of(schema any) *Type {
	s, _ := schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return m.named(strings.TrimPrefix(ref, "#/definitions/"))
	}
	if items := s["items"]; items != nil {
		return &Type{Form: List, Elem: m.of(items), Keys: mergeKeys(s)}
	}
	t := &Type{}
	if properties, ok := s["properties"].(map[string]any); ok {
		t.Fields = make(map[string]*Type, len(properties))
		for name, property := range properties {
			t.Fields[name] = m.of(property)
		}
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		t.Form, t.Elem = Map, m.of(values)
	}
	return t
}

// mergeKeys are the keys of a list; none where it is replaced as a whole.
func mergeKeys(s map[string]any) (keys []string) {
	if several, ok := s["x-kubernetes-list-map-keys"].([]any); ok {
		for _, key := range several {
			keys = append(keys, key.(string))
		}
		return keys
	}
	if key, ok := s["x-kubernetes-patch-merge-key"].(string); ok {
		return []string{key}
	}
	return nil
}
