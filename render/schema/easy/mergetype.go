// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy

import (
	"encoding/json"
	"strings"

	"github.com/swell-sh/swell/render/schema"
)

// MergeType is the type of the kind's documents as far as merging needs it:
// fields, and the keys of lists. It has no rules and no required fields. It
// refers to itself where the message does. It must not be changed.
func (e *Schema) MergeType() *schema.Type {
	e.mergeOnce.Do(func() {
		m := mergeTypes{definitions: e.clientDefinitions(), types: map[string]*schema.Type{}}
		e.mergeType = m.named(e.definitionName(nil))
	})
	return e.mergeType
}

// MergeSchema is [OpenAPI] of the one kind, as JSON. It must not be changed.
func (e *Schema) MergeSchema() []byte {
	e.schemaOnce.Do(func() {
		text, err := json.Marshal(OpenAPI([]*Schema{e}, nil))
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
	types       map[string]*schema.Type
}

func (m *mergeTypes) named(name string) *schema.Type {
	t := m.types[name]
	if t == nil {
		t = &schema.Type{}
		m.types[name] = t // before its fields: a type may refer to itself
		*t = *m.of(m.definitions[name])
	}
	return t
}

func (m *mergeTypes) of(written any) *schema.Type {
	s, _ := written.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		return m.named(strings.TrimPrefix(ref, "#/definitions/"))
	}
	if items := s["items"]; items != nil {
		return &schema.Type{Form: schema.List, Elem: m.of(items), Keys: mergeKeys(s)}
	}
	t := &schema.Type{}
	if properties, ok := s["properties"].(map[string]any); ok {
		t.Fields = make(map[string]*schema.Type, len(properties))
		for name, property := range properties {
			t.Fields[name] = m.of(property)
		}
	}
	if values, ok := s["additionalProperties"].(map[string]any); ok {
		t.Form, t.Elem = schema.Map, m.of(values)
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
