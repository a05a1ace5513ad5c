// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// openAPI is the part of an OpenAPI v3 schema that the embedded files use.
type openAPI struct {
	Ref                  string              `json:"$ref"`
	AllOf                []openAPI           `json:"allOf"`
	Type                 string              `json:"type"`
	Format               string              `json:"format"`
	Properties           map[string]*openAPI `json:"properties"`
	AdditionalProperties *openAPI            `json:"additionalProperties"`
	Items                *openAPI            `json:"items"`
	Required             []string            `json:"required"`
	ListType             string              `json:"x-kubernetes-list-type"`
	ListMapKeys          []string            `json:"x-kubernetes-list-map-keys"`
	Enum                 []any               `json:"enum"`
	Default              any                 `json:"default"`
}

// scalars are the named types that are written in a form of their own.
var scalars = map[string]Form{
	"io.k8s.apimachinery.pkg.api.resource.Quantity":   Quantity,
	"io.k8s.apimachinery.pkg.util.intstr.IntOrString": IntOrString,
}

func (s *Set) namedLocked(name string) *Type {
	if t := s.types[name]; t != nil {
		return t
	}
	t := &Type{Form: scalars[name]}
	s.types[name] = t // before its fields: a type may refer to itself
	raw, ok := s.raw[name]
	if !ok || t.Form != Any {
		return t
	}
	var schema openAPI
	if err := json.Unmarshal(raw, &schema); err != nil {
		panic(fmt.Sprintf("embedded schema %s: %v", name, err))
	}
	*t = *s.compileLocked(&schema)
	for field, rules := range sure[name] {
		t.narrow(field, rules)
	}
	if rules := sureNames[name]; rules != nil {
		metadata := *t.Fields["metadata"]
		metadata.Fields = maps.Clone(metadata.Fields)
		metadata.narrow("name", rules)
		t.Fields["metadata"] = &metadata
	}
	return t
}

// narrow gives a field rules in place of those that it has.
func (t *Type) narrow(field string, rules *Rules) {
	narrowed := *t.Fields[field]
	narrowed.Rules = rules
	t.Fields[field] = &narrowed
}

func (s *Set) compileLocked(schema *openAPI) *Type {
	const prefix = "#/components/schemas/"
	if schema.Ref != "" {
		return s.namedLocked(strings.TrimPrefix(schema.Ref, prefix))
	}
	if len(schema.AllOf) == 1 {
		return s.compileLocked(&schema.AllOf[0])
	}
	t := s.formLocked(schema)
	if schema.Default != nil {
		t.Default = schema.Default
	}
	return t
}

var (
	int32Rules = &Rules{Format: "int32"}
	timeRules  = &Rules{check: rfc3339}
)

func (s *Set) formLocked(schema *openAPI) *Type {
	switch schema.Type {
	case "object":
		switch {
		case schema.Properties != nil:
			t := &Type{Form: Object, Required: schema.Required, Fields: make(map[string]*Type, len(schema.Properties))}
			for name, field := range schema.Properties {
				t.Fields[name] = s.compileLocked(field)
			}
			return t
		case schema.AdditionalProperties != nil:
			return &Type{Form: Map, Elem: s.compileLocked(schema.AdditionalProperties)}
		}
		return &Type{Form: Map, Elem: &Type{}}
	case "array":
		t := &Type{Form: List, Elem: &Type{}, Set: schema.ListType == "set"}
		if schema.Items != nil {
			t.Elem = s.compileLocked(schema.Items)
		}
		if schema.ListType == "map" {
			t.Keys = schema.ListMapKeys
		}
		return t
	case "string":
		switch schema.Format {
		case "byte":
			return &Type{Form: Base64}
		case "int-or-string":
			return &Type{Form: IntOrString}
		case "date-time":
			return &Type{Form: String, Rules: timeRules}
		}
		if len(schema.Enum) > 0 {
			return &Type{Form: String, Rules: &Rules{Enum: schema.Enum, orEmpty: true}}
		}
		return &Type{Form: String}
	case "integer":
		if schema.Format == "int32" {
			return &Type{Form: Integer, Rules: int32Rules}
		}
		return &Type{Form: Integer}
	case "number":
		return &Type{Form: Number}
	case "boolean":
		return &Type{Form: Boolean}
	}
	return &Type{}
}
