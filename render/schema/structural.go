// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/crdrule"
	"github.com/swell-sh/swell/render/schema/validation"
)

// maxDepth bounds how deep a schema may be nested. Those in use stay below 40.
const maxDepth = 100

// definition compiles the schemas of one CustomResourceDefinition. What it
// refuses, an API server refuses: the rules are those of structural schemas in
// k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go.
type definition struct {
	path       []any
	violations []Violation
	metadata   *Type // of every object
	patterns   int   // instructions of all patterns so far
}

func (d *definition) problem(code document.Code, format string, args ...any) {
	d.violations = append(d.violations, Violation{Path: slices.Clone(d.path), Code: code, Message: fmt.Sprintf(format, args...)})
}

// at runs a function one or more steps down.
func (d *definition) at(f func(), steps ...any) {
	n := len(d.path)
	d.path = append(d.path, steps...)
	f()
	d.path = d.path[:n]
}

func (d *definition) problemAt(step any, code document.Code, format string, args ...any) {
	d.at(func() { d.problem(code, format, args...) }, step)
}

// get reads a field of a mapping; the zero value when it is absent or of
// another type, which is a problem.
func get[T any](d *definition, m map[string]any, name string) T {
	var zero T
	value := m[name]
	if value == nil {
		return zero
	}
	typed, ok := value.(T)
	if !ok {
		want := map[string]string{"string": "a string", "bool": "true or false", "[]interface {}": "a list", "map[string]interface {}": "a map"}[fmt.Sprintf("%T", zero)]
		d.problemAt(name, document.CodeType, "want %s, got %s", want, Describe(value))
	}
	return typed
}

// forms are the values of type; those of an object are told apart further.
var forms = map[string]Form{"object": Object, "array": List, "string": String, "integer": Integer, "number": Number, "boolean": Boolean}

// forbidden are keywords of JSON Schema that a structural schema must not have.
var forbidden = []string{"$ref", "$schema", "definitions", "dependencies", "patternProperties", "additionalItems", "id"}

// typ compiles a schema. Root is that of a whole object.
func (d *definition) typ(s map[string]any, root bool) *Type {
	if len(d.path) > 2*maxDepth {
		d.problem(document.CodeObject, "nested too deep, want at most %d levels", maxDepth)
		return &Type{}
	}
	for _, key := range forbidden {
		if m, ok := s[key].(map[string]any); s[key] != nil && !(ok && len(m) == 0) {
			d.problemAt(key, document.CodeObject, "not allowed in the schema of a custom resource: remove it")
		}
	}
	t := &Type{Nullable: get[bool](d, s, "nullable")}
	name := get[string](d, s, "type")
	open := get[bool](d, s, "x-kubernetes-preserve-unknown-fields")
	if s["x-kubernetes-preserve-unknown-fields"] == false {
		d.problemAt("x-kubernetes-preserve-unknown-fields", document.CodeObject, "want true, or no such field")
	}
	if s["x-kubernetes-embedded-resource"] == true && name != "object" {
		d.problemAt("x-kubernetes-embedded-resource", document.CodeObject, "only for type: object")
	}
	if s["x-kubernetes-list-type"] != nil && name != "array" {
		d.problemAt("x-kubernetes-list-type", document.CodeObject, "only for type: array")
	}
	if keys, _ := s["x-kubernetes-list-map-keys"].([]any); len(keys) > 0 && name != "array" {
		d.problemAt("x-kubernetes-list-map-keys", document.CodeObject, "only for type: array")
	}
	if s["x-kubernetes-map-type"] != nil && name != "object" {
		d.problemAt("x-kubernetes-map-type", document.CodeObject, "only for type: object")
	}
	if mapType := get[string](d, s, "x-kubernetes-map-type"); mapType != "" && mapType != "atomic" && mapType != "granular" {
		d.problemAt("x-kubernetes-map-type", document.CodeObject, "want one of atomic, granular, got %q", document.Shorten(mapType))
	}
	switch form, known := forms[name]; {
	case get[bool](d, s, "x-kubernetes-int-or-string"):
		t.Form = IntOrString
	case name == "" && open: // Any
	case name == "":
		d.problem(document.CodeObject, "type: missing, a structural schema says it everywhere")
	case !known:
		d.problemAt("type", document.CodeType, "%q: no such type%s", document.Shorten(name), document.DidYouMean(name, slices.Collect(maps.Keys(forms))))
	case root && form != Object:
		d.problemAt("type", document.CodeType, "want object for a whole object, got %q", name)
	default:
		t.Form = form
	}
	d.inside(t, s, root, open)
	t.Rules = d.valueRules(s, s, root, true)
	if t.Rules != nil && t.Rules.Format == "int32" && t.Form != Integer {
		t.Rules.Format = "" // ignored there
	}
	if t.Rules != nil && t.Form == Integer {
		t.Rules.never = t.Rules.noInteger()
	}
	if t.Form != Any && s["x-kubernetes-embedded-resource"] == true {
		*t = *t.with(validation.Embedded)
	}
	t.Required = d.names(s, "required")
	for _, name := range []string{"apiVersion", "kind"} {
		if embedded := t.Form != Any && s["x-kubernetes-embedded-resource"] == true; embedded && !slices.Contains(t.Required, name) {
			t.Required = append(t.Required, name)
		}
	}
	t.Default = d.defaultOf(t, s)
	t.defaults = t.hasDefaults()
	return t
}

// inside compiles what is below a mapping or a list.
func (d *definition) inside(t *Type, s map[string]any, root, open bool) {
	properties := get[map[string]any](d, s, "properties")
	if len(properties) > 0 {
		t.Fields = make(map[string]*Type, len(properties))
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		d.at(func() { t.Fields[name] = d.sub(properties[name], root && name == "metadata") }, "properties", name)
	}
	switch t.Form {
	case Object:
		d.object(t, s, root, open)
	case List:
		d.array(t, s)
	}
	for _, key := range []string{"items", "additionalProperties"} { // they mean nothing in another type, and are looked at
		if below, ok := s[key].(map[string]any); ok && (key == "items") != (t.Form == List) && (key == "items" || t.Form != Map) {
			d.at(func() { d.typ(below, false) }, key)
		}
	}
}

// sub compiles a schema that stands at the present path. What the schema says
// about the metadata of a whole object narrows the type of every metadata.
func (d *definition) sub(value any, metadata bool) *Type {
	s, ok := value.(map[string]any)
	if !ok {
		d.problem(document.CodeType, "want a schema, got %s", Describe(value))
		return &Type{}
	}
	t := d.typ(s, false)
	if !metadata {
		return t
	}
	if s["type"] != "object" {
		d.problemAt("type", document.CodeType, "want object for metadata")
	}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		nothing := s[key] == false || s[key] == "" // as if it were not there
		if key != "type" && key != "properties" && key != "default" && !nothing {
			d.problemAt(key, document.CodeObject, "only the properties name and generateName of metadata can be restricted: remove it")
		}
	}
	narrow := *d.metadata
	narrow.Fields = maps.Clone(d.metadata.Fields)
	for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
		if name != "name" && name != "generateName" {
			d.at(func() {
				d.problem(document.CodeObject, "only name and generateName of metadata can be restricted: remove it")
			}, "properties", name)
			continue
		}
		narrow.Fields[name] = t.Fields[name]
	}
	return &narrow
}

// object tells apart what type object can mean: fields, any keys, or both.
func (d *definition) object(t *Type, s map[string]any, root, open bool) {
	additional := s["additionalProperties"]
	embedded := get[bool](d, s, "x-kubernetes-embedded-resource")
	switch a := additional.(type) {
	case nil:
	case bool:
		open = open || a
	case map[string]any:
		d.at(func() { t.Elem = d.typ(a, false) }, "additionalProperties")
	default:
		d.problemAt("additionalProperties", document.CodeType, "want a schema, got %s", Describe(additional))
	}
	switch {
	case additional != nil && root:
		d.problemAt("additionalProperties", document.CodeObject, "not allowed for a whole object: remove it")
	case additional != nil && embedded:
		d.problemAt("additionalProperties", document.CodeObject, "not allowed beside x-kubernetes-embedded-resource: remove it")
	case additional != nil && additional != true && len(t.Fields) > 0:
		d.problemAt("additionalProperties", document.CodeObject, "not allowed beside properties: remove one of them")
	case embedded && !open && len(t.Fields) == 0:
		d.problem(document.CodeObject, "properties: missing, an x-kubernetes-embedded-resource has them or x-kubernetes-preserve-unknown-fields")
	}
	switch {
	case t.Elem != nil:
		t.Form = Map
	case open:
		t.Form, t.Elem = Map, &Type{}
	case t.Fields == nil:
		t.Fields = map[string]*Type{}
	}
	if root || embedded {
		d.anyObject(t, embedded)
	}
}

// anyObject adds what every object of Kubernetes has.
func (d *definition) anyObject(t *Type, embedded bool) {
	if t.Fields == nil {
		t.Fields = map[string]*Type{}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if given := t.Fields[name]; given == nil {
			t.Fields[name] = &Type{Form: String}
		} else if given.Form != String {
			d.at(func() { d.problem(document.CodeType, "want type string, got another") }, "properties", name)
		}
	}
	if t.Fields["metadata"] == nil || embedded {
		t.Fields["metadata"] = d.metadata
	}
}

func (d *definition) array(t *Type, s map[string]any) {
	t.Elem = &Type{}
	items := get[map[string]any](d, s, "items")
	if items == nil {
		d.problem(document.CodeObject, "items: missing, every list says of what")
		return
	}
	d.at(func() { t.Elem = d.typ(items, false) }, "items")
	keys := d.names(s, "x-kubernetes-list-map-keys")
	switch listType := get[string](d, s, "x-kubernetes-list-type"); listType {
	case "", "atomic":
		if len(keys) > 0 {
			d.problemAt("x-kubernetes-list-map-keys", document.CodeObject, "only for x-kubernetes-list-type: map")
		}
	case "set":
		t.Set = true
		d.notNullable(items)
		if form := splitForm(items); form != "" {
			d.problemAt("items", document.CodeObject, "want %s: atomic for the items of a set, which are compared as a whole", form)
		}
	case "map":
		t.Keys = keys
		d.notNullable(items)
		d.keys(t)
		if slices.Sort(keys); len(slices.Compact(keys)) < len(t.Keys) {
			d.problemAt("x-kubernetes-list-map-keys", document.CodeDuplicate, "want each key once")
		}
	default:
		d.problemAt("x-kubernetes-list-type", document.CodeObject, "want one of atomic, map, set, got %q", document.Shorten(listType))
	}
}

// notNullable checks the items of a set or of a keyed list.
func (d *definition) notNullable(items map[string]any) {
	if items["nullable"] == true {
		d.at(func() {
			d.problemAt("nullable", document.CodeObject, "not allowed for the items of a set or of a keyed list: remove it")
		}, "items")
	}
}

// splitForm is the keyword by which the items of a set, lists or objects, have to say that
// they are one value; empty where they do or are scalars.
func splitForm(items map[string]any) string {
	switch items["type"] {
	case "array":
		if form := items["x-kubernetes-list-type"]; form != nil && form != "atomic" {
			return "x-kubernetes-list-type"
		}
	case "object":
		if items["x-kubernetes-map-type"] != "atomic" {
			return "x-kubernetes-map-type"
		}
	}
	return ""
}

// keys checks the keys of a keyed list: fields of its items, scalars, and such
// as are always there.
func (d *definition) keys(t *Type) {
	if len(t.Keys) == 0 {
		d.problem(document.CodeObject, "x-kubernetes-list-map-keys: missing")
	}
	for i, key := range t.Keys {
		d.at(func() {
			field := t.Elem.Fields[key]
			switch {
			case field == nil:
				d.problem(document.CodeReference, "%q: the items have no such field%s", document.Shorten(key), document.DidYouMean(key, slices.Collect(maps.Keys(t.Elem.Fields))))
			case field.Form < String:
				d.problem(document.CodeObject, "%q: want a scalar, it is %s", document.Shorten(key), field.Form)
			case field.Nullable:
				d.problem(document.CodeObject, "%q: it may not be null: remove nullable there", document.Shorten(key))
			case field.Default == nil && !slices.Contains(t.Elem.Required, key):
				d.problem(document.CodeObject, "%q: want it required or with a default", document.Shorten(key))
			}
		}, "x-kubernetes-list-map-keys", i)
	}
}

// names reads a list of texts.
func (d *definition) names(s map[string]any, field string) (names []string) {
	for i, item := range get[[]any](d, s, field) {
		name, ok := item.(string)
		if !ok {
			d.at(func() { d.problem(document.CodeType, "want a string, got %s", Describe(item)) }, field, i)
			continue
		}
		names = append(names, name)
	}
	return names
}

func (d *definition) defaultOf(t *Type, s map[string]any) any {
	value := s["default"]
	if value == nil {
		return nil
	}
	bare := *t
	bare.defaults = false // the server does not add the defaults below before it looks at one
	for _, v := range Check(&bare, value) {
		v.Path = slices.Concat(d.path, []any{"default"}, v.Path)
		d.violations = append(d.violations, v)
	}
	return value
}

func (t *Type) hasDefaults() bool {
	if t.Elem != nil && t.Elem.defaults {
		return true
	}
	for _, field := range t.Fields {
		if field.defaults || field.Default != nil {
			return true
		}
	}
	return false
}

// valueRules compiles the value validations of a schema; nil when it has none.
// Outer is the structural schema that they belong to. typed says that an anyOf may say
// which types of JSON there are, see [isIntOrString].
func (d *definition) valueRules(s, outer map[string]any, root, typed bool) *Rules {
	r := &Rules{
		Enum: get[[]any](d, s, "enum"), Format: get[string](d, s, "format"),
		MinLength: d.count(s, "minLength"), MaxLength: d.count(s, "maxLength"),
		MinItems: d.count(s, "minItems"), MaxItems: d.count(s, "maxItems"),
		MinProperties: d.count(s, "minProperties"), MaxProperties: d.count(s, "maxProperties"),
		Minimum: d.number(s, "minimum"), Maximum: d.number(s, "maximum"), MultipleOf: d.number(s, "multipleOf"),
		ExclusiveMinimum: get[bool](d, s, "exclusiveMinimum"), ExclusiveMaximum: get[bool](d, s, "exclusiveMaximum"),
	}
	r.Pattern = d.pattern(s)
	if get[bool](d, s, "uniqueItems") {
		d.problemAt("uniqueItems", document.CodeObject, "not allowed, write x-kubernetes-list-type: set")
	}
	r.AllOf = d.alternatives(s, outer, "allOf", root, typed)
	switch {
	case !typed || !isIntOrString(s["anyOf"]):
		r.AnyOf = d.alternatives(s, outer, "anyOf", root, false)
	case outer["x-kubernetes-int-or-string"] != true: // else each value fits
		r.AnyOf = intOrString
	}
	r.OneOf = d.alternatives(s, outer, "oneOf", root, false)
	if not := get[map[string]any](d, s, "not"); not != nil {
		d.at(func() { r.Not = d.nested(not, outer, root, false) }, "not")
	}
	get[[]any](d, s, crdrule.Keyword)
	if r.isZero() {
		return nil
	}
	return r
}

// maxPatterns bounds the patterns of a definition, in instructions: (a{10}){100}
// is 1000 of them. Those in use stay below a tenth of it.
const maxPatterns = 1 << 20

func (d *definition) pattern(s map[string]any) *regexp.Regexp {
	pattern := get[string](d, s, "pattern")
	if pattern == "" || d.patterns > maxPatterns {
		return nil
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		d.problemAt("pattern", document.CodeObject, "%q: %s", document.Shorten(pattern), err)
		return nil
	}
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			d.patterns += len(program.Inst)
		}
	}
	if d.patterns > maxPatterns {
		d.problemAt("pattern", document.CodeObject, "the patterns up to here are too large to compile")
	}
	return compiled
}

func (r *Rules) isZero() bool {
	formatted := formats[r.Format] || r.Format == "int32"
	return len(r.Enum)+len(r.AllOf)+len(r.AnyOf)+len(r.OneOf) == 0 && r.Not == nil && r.Pattern == nil && !formatted &&
		r.MinLength == nil && r.MaxLength == nil && r.MinItems == nil && r.MaxItems == nil && r.MinProperties == nil && r.MaxProperties == nil &&
		r.Minimum == nil && r.Maximum == nil && r.MultipleOf == nil
}

// intOrString is what [isIntOrString] says.
var intOrString = []*Type{{Form: Integer}, {Form: String}}

// noInteger says why the API server refuses each integer; empty when it does not.
func (r *Rules) noInteger() string {
	for _, bound := range []struct {
		name  string
		value *float64
	}{{"minimum", r.Minimum}, {"maximum", r.Maximum}, {"multipleOf", r.MultipleOf}} {
		v := bound.value
		switch {
		case v == nil:
		case *v != math.Trunc(*v) || math.Abs(*v) > math.MaxInt64:
			return fmt.Sprintf("%s %s of the definition is no integer", bound.name, number(*v))
		case r.Format == "int32" && (*v < math.MinInt32 || *v > math.MaxInt32):
			return fmt.Sprintf("%s %s of the definition is no number of 32 bits", bound.name, number(*v))
		}
	}
	return ""
}

// isIntOrString says whether an anyOf is the one that says with types what
// x-kubernetes-int-or-string does. They are allowed nowhere else: only directly in a
// structural schema, and in the first of its allOf.
func isIntOrString(anyOf any) bool {
	list, _ := anyOf.([]any)
	if len(list) != 2 {
		return false
	}
	for i, name := range []string{"integer", "string"} {
		s, _ := list[i].(map[string]any)
		if s["type"] != name {
			return false
		}
		for key, value := range s {
			if key != "type" && !saysNothing(key, value) {
				return false
			}
		}
	}
	return true
}

// saysNothing says whether the API server reads a schema alike without a keyword, see
// newNestedValueValidation of its package schema.
func saysNothing(key string, value any) bool {
	switch key {
	case "definitions", "dependencies", "patternProperties":
		m, ok := value.(map[string]any)
		return value == nil || ok && len(m) == 0
	case "enum", "allOf", "anyOf", "oneOf":
		list, ok := value.([]any)
		return value == nil || ok && len(list) == 0
	case "title", "description", "format", "pattern", "$ref", "$schema", "id":
		return value == nil || value == ""
	case "nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum", "additionalProperties", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string":
		return value == nil || value == false
	}
	return value == nil
}

func (d *definition) alternatives(s, outer map[string]any, junctor string, root, typed bool) (types []*Type) {
	for i, item := range get[[]any](d, s, junctor) {
		d.at(func() {
			sub, ok := item.(map[string]any)
			if !ok {
				d.problem(document.CodeType, "want a schema, got %s", Describe(item))
				return
			}
			types = append(types, d.nested(sub, outer, root, typed && i == 0))
		}, junctor, i)
	}
	return types
}

// structure are keywords that only stand outside of allOf, anyOf, oneOf and
// not.
var structure = []string{"type", "additionalProperties", "default", "title", "description", "nullable", "x-kubernetes-preserve-unknown-fields",
	"x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
	"x-kubernetes-validations"}

// isUnset says whether a value is the same as none for an API server.
func isUnset(value any) bool {
	list, isList := value.([]any)
	return value == nil || value == false || value == "" || isList && len(list) == 0
}

// nested compiles a schema inside allOf, anyOf, oneOf or not: a type without
// form.
func (d *definition) nested(s, outer map[string]any, root, typed bool) *Type {
	if len(d.path) > 2*maxDepth {
		d.problem(document.CodeObject, "nested too deep, want at most %d levels", maxDepth)
		return &Type{}
	}
	for _, key := range structure {
		if value := s[key]; !isUnset(value) || key == "default" && value != nil {
			d.problemAt(key, document.CodeObject, "not allowed inside allOf, anyOf, oneOf and not: say it outside")
		}
	}
	t := &Type{Required: d.names(s, "required")}
	fields := get[map[string]any](d, s, "properties")
	outerFields, _ := outer["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		d.at(func() {
			if root && outerFields[name] == nil {
				d.problem(document.CodeObject, "not in the properties outside: say there what it is")
			}
			if t.Fields == nil {
				t.Fields = map[string]*Type{}
			}
			t.Fields[name] = d.nestedSub(fields[name], outerFields[name], root)
		}, "properties", name)
	}
	if items := s["items"]; items != nil {
		d.at(func() { t.Elem = d.nestedSub(items, outer["items"], root) }, "items")
	}
	if t.Rules = d.valueRules(s, outer, root, typed); t.Rules != nil && t.Rules.Format == "int32" {
		t.Rules.Format = "" // ignored without a type
	}
	return t
}

func (d *definition) nestedSub(value, outer any, root bool) *Type {
	s, ok := value.(map[string]any)
	if !ok {
		d.problem(document.CodeType, "want a schema, got %s", Describe(value))
		return &Type{}
	}
	o, _ := outer.(map[string]any)
	return d.nested(s, o, root, false)
}

// count reads a size.
func (d *definition) count(s map[string]any, name string) *int64 {
	n := d.number(s, name)
	switch {
	case n == nil:
		return nil
	case math.Abs(*n) > math.MaxInt64/2 || *n != math.Trunc(*n):
		d.problemAt(name, document.CodeObject, "want a whole number, got %s", number(*n))
		return nil
	}
	i := int64(*n)
	return &i
}

func (d *definition) number(s map[string]any, name string) *float64 {
	switch v := s[name].(type) {
	case nil:
		return nil
	case int64:
		f := float64(v)
		return &f
	case float64:
		return &v
	default:
		d.problemAt(name, document.CodeType, "want a number, got %s", Describe(v))
		return nil
	}
}
