// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Keywords of structural schemas.
const (
	keepUnknown = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
	listType    = "x-kubernetes-list-type"
	listKeys    = "x-kubernetes-list-map-keys"
	mapType     = "x-kubernetes-map-type"
	embedded    = "x-kubernetes-embedded-resource"
	expressed   = "x-kubernetes-validations"
)

// maxSchemaDepth is how deep schemas are compared.
const maxSchemaDepth = 100

// place is where two schemas stand: at in the definition, and path in an object.
type place struct {
	*definitions
	at   []any
	path []string
}

func (p place) found(rule Rule, keyword string, format string, args ...any) {
	at := p.at
	if keyword != "" {
		at = append(slices.Clip(at), keyword)
	}
	p.add(rule, p.is.At(at...), p.path, format, args...)
}

func (p place) below(step string, at ...any) place {
	p.at = append(slices.Clip(p.at), at...)
	if step != "" {
		p.path = append(slices.Clip(p.path), step)
	}
	return p
}

// schema compares two schemas at one place, and all below.
func (d *definitions) schema(was, is map[string]any, at []any, path []string) {
	place{d, at, path}.compare(was, is)
}

func (p place) compare(was, is map[string]any) {
	if len(p.at) > 2*maxSchemaDepth {
		return
	}
	if !takes(typeOf(was), typeOf(is)) {
		p.found(CRDTypeChanged, "type", "was %s, and is %s", typeOf(was), typeOf(is))
		return
	}
	if isTrue(was, keepUnknown) && !isTrue(is, keepUnknown) {
		p.found(CRDUnknownFields, "", "%s is gone: fields that the schema does not know are pruned", keepUnknown)
	}
	p.values(was, is)
	p.lists(was, is)
	if typeOf(is) == "anything" {
		return // whatever is below is kept as it is
	}
	p.fields(was, is)
	if before, after := mapping(was, "items"), mapping(is, "items"); before != nil && after != nil {
		p.below("", "items").compare(before, after)
	}
}

// typeOf is what a schema takes.
func typeOf(s map[string]any) string {
	switch {
	case isTrue(s, intOrString):
		return "an integer or a string"
	case text(s, "type") == "":
		return "anything"
	}
	return text(s, "type")
}

// takes says whether all values of one type are of another one.
func takes(was, is string) bool {
	switch {
	case was == is, is == "anything", was == "integer" && is == "number":
		return true
	}
	return (was == "integer" || was == "string") && is == "an integer or a string"
}

// fields compares what is in an object.
func (p place) fields(was, is map[string]any) {
	before, after := mapping(was, "properties"), mapping(is, "properties")
	others, _ := is["additionalProperties"].(map[string]any)
	open := is["additionalProperties"] == true || isTrue(is, keepUnknown)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		field, _ := before[name].(map[string]any)
		switch now, there := after[name].(map[string]any); {
		case there:
			p.below(name, "properties", name).compare(field, now)
		case others != nil:
			p.below(name, "additionalProperties").compare(field, others)
		case !open:
			p.below(name, "properties").found(CRDFieldRemoved, "", "the field is not in the schema any more: a server drops it without a word")
		}
	}
	values, _ := was["additionalProperties"].(map[string]any)
	switch {
	case values != nil && others != nil:
		p.below("", "additionalProperties").compare(values, others)
	case (values != nil || was["additionalProperties"] == true) && others == nil && !open:
		p.found(CRDTypeChanged, "", "was a map with any keys, and is an object: other keys are dropped")
	}
	required := list(is, "required")
	if isTrue(is, embedded) && !isTrue(was, embedded) {
		required = append(slices.Clip(required), "apiVersion", "kind")
	}
	for _, name := range required {
		if !slices.Contains(list(was, "required"), name) {
			p.below(fmt.Sprint(name)).found(CRDRequired, "required", "the field is required now: objects without it are refused")
		}
	}
}

// lists compares how lists and maps are merged.
func (p place) lists(was, is map[string]any) {
	const atomic, granular = "atomic", "granular"
	if before, after := or(text(was, listType), atomic), or(text(is, listType), atomic); before != after {
		p.found(CRDListChanged, listType, "the list was %s, and is %s", before, after)
	} else if !reflect.DeepEqual(was[listKeys], is[listKeys]) {
		p.found(CRDListChanged, listKeys, "the items were told apart by %s, and are by %s", compact(was[listKeys]), compact(is[listKeys]))
	}
	if before, after := or(text(was, mapType), granular), or(text(is, mapType), granular); before != after {
		p.found(CRDListChanged, mapType, "the map was %s, and is %s", before, after)
	}
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

func compact(value any) string {
	if value == nil {
		return "nothing"
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return document.Shorten(string(encoded))
}

// values compares what is asked of values.
func (p place) values(was, is map[string]any) {
	if isTrue(was, "nullable") && !isTrue(is, "nullable") {
		p.found(CRDNullable, "", "null is no value any more")
	}
	if before, had := was["default"]; had && !reflect.DeepEqual(before, is["default"]) {
		p.found(CRDDefault, "default", "the default was %s, and is %s", compact(before), compact(is["default"]))
	}
	if enum := list(is, "enum"); len(enum) > 0 {
		switch before := list(was, "enum"); {
		case len(before) == 0:
			p.found(CRDEnum, "enum", "only these values are taken now: %s", compact(enum))
		default:
			for _, value := range before {
				if !slices.ContainsFunc(enum, func(v any) bool { return reflect.DeepEqual(v, value) }) {
					p.found(CRDEnum, "enum", "the value %s is not taken any more", compact(value))
				}
			}
		}
	}
	for _, name := range []string{"pattern", "format"} {
		if before, after := text(was, name), text(is, name); after != "" && before != after {
			p.found(map[string]Rule{"pattern": CRDPattern, "format": CRDFormat}[name], name, "the %s was %s, and is %q", name, or(quoted(before), "not there"), after)
		}
	}
	p.bounds(was, is)
	p.expressions(was, is)
	for _, name := range []string{"allOf", "anyOf", "oneOf", "not"} {
		if is[name] != nil && !reflect.DeepEqual(was[name], is[name]) {
			p.found(CRDExpression, name, "%s is new, or another one", name)
		}
	}
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

func (p place) bounds(was, is map[string]any) {
	for _, name := range []string{"minimum", "minLength", "minItems", "minProperties", "maximum", "maxLength", "maxItems", "maxProperties"} {
		after, set := number(is, name)
		before, had := number(was, name)
		if !set {
			continue
		}
		exclusive := map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[name]
		excludes := exclusive != "" && isTrue(is, exclusive) && !isTrue(was, exclusive) && before == after
		switch {
		case !had:
			p.found(CRDBound, name, "%s is new: %s", name, compact(is[name]))
		case strings.HasPrefix(name, "min") && after > before, strings.HasPrefix(name, "max") && after < before:
			p.found(CRDBound, name, "%s was %s, and is %s", name, compact(was[name]), compact(is[name]))
		case excludes:
			p.found(CRDBound, exclusive, "%s itself is not taken any more", compact(is[name]))
		}
	}
	if after, set := number(is, "multipleOf"); set {
		if before, had := number(was, "multipleOf"); !had || before != after {
			p.found(CRDBound, "multipleOf", "multipleOf is new, or another number: %s", compact(is["multipleOf"]))
		}
	}
}

func number(s map[string]any, name string) (float64, bool) {
	switch v := s[name].(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// expressions finds rules in CEL that are new.
func (p place) expressions(was, is map[string]any) {
	rules := func(s map[string]any) (all []string) {
		for _, item := range list(s, expressed) {
			m, _ := item.(map[string]any)
			all = append(all, text(m, "rule"))
		}
		return all
	}
	known := rules(was)
	for i, rule := range rules(is) {
		if !slices.Contains(known, rule) {
			p.below("", expressed, i).found(CRDExpression, "rule", "the expression is new: %s", document.Shorten(rule))
		}
	}
}
