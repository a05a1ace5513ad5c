// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/validation"
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
	t := &Type{Form: scalars[name], zero: zeros[scalars[name]]}
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
	t.unset = unsetFields()[name]
	if !s.typesOnly {
		t.refine(name)
	}
	return t
}

// refine gives a type the rules that OpenAPI does not have.
func (t *Type) refine(name string) {
	rules, ok := validation.Of(name)
	if !ok {
		return
	}
	for field, rule := range rules.Fields {
		if t.Fields[field] != nil { // which this version has
			t.Fields[field] = t.Fields[field].with(rule)
		}
	}
	for _, field := range rules.Lenient {
		t.Fields[field] = t.Fields[field].withoutRules()
	}
	if len(rules.Optional) > 0 {
		t.Required = slices.DeleteFunc(slices.Clone(t.Required), func(field string) bool { return slices.Contains(rules.Optional, field) })
	}
	if rules.Name != nil {
		metadata := *t.Fields["metadata"]
		metadata.Fields = maps.Clone(metadata.Fields)
		metadata.Fields["name"] = metadata.Fields["name"].with(ofName(rules.Name))
		t.Fields["metadata"] = &metadata
	}
	if rules.Self != nil {
		*t = *t.with(rules.Self)
	}
}

// ofName leaves what is no name at all to the check of all names.
func ofName(rule validation.Rule) validation.Rule {
	return func(value any) validation.Flaws {
		if s, ok := value.(string); ok && !document.IsName(s) {
			return nil
		}
		return rule(value)
	}
}

// with is a type that a rule holds for as well.
func (t *Type) with(rule validation.Rule) *Type {
	narrowed, rules := *t, Rules{}
	if t.Rules != nil {
		rules = *t.Rules
	}
	rules.check = validation.Both(rules.check, rule)
	narrowed.Rules = &rules
	return &narrowed
}

// withoutRules is a type that does not refer to itself, and what is below it,
// without the rules in code.
func (t *Type) withoutRules() *Type {
	bare := *t
	if t.Rules != nil {
		rules := *t.Rules
		rules.check = nil
		bare.Rules = &rules
	}
	if t.Elem != nil {
		bare.Elem = t.Elem.withoutRules()
	}
	bare.Fields = maps.Clone(t.Fields)
	for name, field := range bare.Fields {
		bare.Fields[name] = field.withoutRules()
	}
	return &bare
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
	t.zero = zeros[t.Form]
	if schema.Default != nil {
		t.Default = schema.Default
	}
	return t
}

var (
	int32Rules = &Rules{Format: "int32"}
	timeRules  = &Rules{check: rfc3339}
)

func rfc3339(value any) validation.Flaws {
	s, ok := value.(string)
	if !ok {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, s); err != nil {
		return validation.Flaws{{Want: "a time like 2006-01-02T15:04:05Z", Got: true}}
	}
	return nil
}

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
