// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config/rapidtest"
)

// converter is the check that server-side apply makes, over the same OpenAPI.
func converter(t testing.TB, set *Set) managedfields.TypeConverter {
	t.Helper()
	models := map[string]*spec.Schema{}
	for name, raw := range set.raw {
		var s spec.Schema
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "#/components/schemas/", "#/definitions/")), &s); err != nil {
			t.Fatal(err)
		}
		models[name] = &s
	}
	for name, kind := range set.kinds {
		apiVersion, kindName, _ := strings.Cut(name, " ")
		group, version, ok := strings.Cut(apiVersion, "/")
		if !ok {
			group, version = "", apiVersion
		}
		s := models[kind.name]
		gvks, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
		s.AddExtension("x-kubernetes-group-version-kind", append(gvks, map[string]any{"group": group, "version": version, "kind": kindName}))
	}
	c, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// accepts says whether server-side apply takes an object.
func accepts(c managedfields.TypeConverter, object map[string]any) error {
	_, err := c.ObjectToTyped(&unstructured.Unstructured{Object: object})
	return err
}

// TestServerSideApply makes objects of every kind and holds our verdict
// against that of server-side apply: good ones, and each with one mistake.
func TestServerSideApply(t *testing.T) {
	set, err := read(Versions()[0])
	if err != nil {
		t.Fatal(err)
	}
	set.typesOnly = true // what else an API server refuses comes after that
	c := converter(t, set)
	names := slices.Sorted(maps.Keys(set.kinds))
	mistakes := map[string]int{}
	rapidtest.Check(t, 100, 500*time.Millisecond, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "kind")
		kind := set.kinds[name]
		object := generate(t, kind.Type(), 7).(map[string]any)
		apiVersion, kindName, _ := strings.Cut(name, " ")
		object["apiVersion"], object["kind"] = apiVersion, kindName
		if found := Check(kind.Type(), object); len(found) > 0 {
			t.Fatalf("a good object: %v\n%s", found, AppendJSON(nil, object))
		}
		if err := accepts(c, object); err != nil {
			t.Fatalf("server-side apply on a good object: %v\n%s", err, AppendJSON(nil, object))
		}
		where, mistake := spoil(t, kind.Type(), object)
		if where == nil {
			return // nothing in it that can be spoilt
		}
		mistakes[mistake]++
		found := Check(kind.Type(), object)
		if len(found) == 0 {
			t.Fatalf("%s: %s: nothing found\n%s", PathText(where), mistake, AppendJSON(nil, object))
		}
		if accepts(c, object) == nil {
			t.Fatalf("%s: %s: server-side apply takes it, we say %v\n%s", PathText(where), mistake, found, AppendJSON(nil, object))
		}
		if got := PathText(found[0].Path); !strings.HasPrefix(got, PathText(where)) {
			t.Fatalf("%s: %s: found at %s: %s", PathText(where), mistake, got, found[0].Message)
		}
	})
	if len(mistakes) < 3 {
		t.Errorf("mistakes made: %v, want each of the 3 sorts", mistakes)
	}
}

// generate makes a value of a type, with most of its fields down to a depth.
func generate(t *rapid.T, typ *Type, depth int) any {
	switch typ.Form {
	case Object:
		m := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(typ.Fields)) {
			required := slices.Contains(typ.Required, name)
			if required || depth > 0 && rapid.IntRange(0, 3).Draw(t, name) > 0 {
				m[name] = generate(t, typ.Fields[name], depth-1)
			}
		}
		return m
	case Map:
		if typ.Elem.Form == Any && typ.Fields == nil {
			return map[string]any{"x": "y"}
		}
		return map[string]any{"x": generate(t, typ.Elem, depth-1)}
	case List:
		if depth <= 0 {
			return []any{}
		}
		item := generate(t, typ.Elem, depth-1)
		for _, key := range typ.Keys {
			if m := item.(map[string]any); m[key] == nil {
				m[key] = generate(t, typ.Elem.Fields[key], 0)
			}
		}
		return []any{item}
	case Integer, Number, IntOrString:
		return int64(rapid.IntRange(1, 9).Draw(t, "number"))
	case Boolean:
		return rapid.Bool().Draw(t, "boolean")
	case Quantity:
		return rapid.SampledFrom([]any{"1Gi", "500m", int64(3)}).Draw(t, "quantity")
	case Base64:
		return "eA=="
	case String:
		switch {
		case typ.Rules != nil && len(typ.Rules.Enum) > 0:
			return rapid.SampledFrom(typ.Rules.Enum).Draw(t, "enum")
		case typ.Rules != nil && typ.Rules.check != nil:
			for _, text := range []string{"x", "2026-01-02T15:04:05.000000Z", "@daily"} {
				if len(typ.Rules.check(text)) == 0 {
					return text
				}
			}
			t.Fatal("no text is good for a rule in code")
		}
		return "x"
	}
	return "x"
}

// spoil makes one mistake somewhere in an object, of a sort that server-side
// apply finds as well: an unknown field, a mapping in place of a scalar, an
// item twice.
func spoil(t *rapid.T, typ *Type, object map[string]any) (where []any, mistake string) {
	type place struct {
		path  []any
		spoil func()
		what  string
	}
	var places []place
	var visit func(path []any, typ *Type, value any)
	visit = func(path []any, typ *Type, value any) {
		switch v := value.(type) {
		case map[string]any:
			if typ.Form == Object {
				misspelt := slices.Concat(path, []any{"misspelt"})
				places = append(places, place{misspelt, func() { v["misspelt"] = "x" }, "an unknown field"})
			}
			for _, name := range slices.Sorted(maps.Keys(v)) {
				field := typ.Fields[name]
				if field == nil {
					field = typ.Elem
				}
				if field == nil {
					continue
				}
				below := slices.Concat(path, []any{name})
				if len(path) == 0 && (name == "apiVersion" || name == "kind") {
					continue
				}
				if field.Form == String || field.Form == Boolean || field.Form == Integer {
					places = append(places, place{below, func() { v[name] = map[string]any{"a": "b"} }, "a map"})
				}
				if l, ok := v[name].([]any); ok && len(l) > 0 && (len(field.Keys) > 0 || field.Set) {
					twice := slices.Concat(below, []any{len(l)})
					places = append(places, place{twice, func() { v[name] = append(l, l[0]) }, "an item twice"})
				}
				visit(below, field, v[name])
			}
		case []any:
			for i, item := range v {
				visit(slices.Concat(path, []any{i}), typ.Elem, item)
			}
		}
	}
	visit(nil, typ, object)
	if len(places) == 0 {
		return nil, ""
	}
	var sorts []string // each as often as the others, however few places it has
	for _, p := range places {
		if !slices.Contains(sorts, p.what) {
			sorts = append(sorts, p.what)
		}
	}
	sort := rapid.SampledFrom(sorts).Draw(t, "sort")
	places = slices.DeleteFunc(places, func(p place) bool { return p.what != sort })
	p := rapid.SampledFrom(places).Draw(t, "mistake")
	p.spoil()
	return p.path, p.what
}

// TestRules makes schemas and values and holds our verdict against that of
// the validator that API servers use for custom resources.
func TestRules(t *testing.T) {
	verdicts := map[bool]int{}
	rapidtest.Check(t, 100, 500*time.Millisecond, func(t *rapid.T) {
		schema := randomSchema(t, 3)
		d := definition{}
		typ := d.typ(schema, false)
		if len(d.violations) > 0 {
			t.Fatalf("%s: %v", AppendJSON(nil, schema), d.violations)
		}
		var real spec.Schema
		if err := json.Unmarshal(AppendJSON(nil, schema), &real); err != nil {
			t.Fatal(err)
		}
		for range 8 {
			value := randomValue(t, schema)
			found := Check(typ, value)
			result := validate.NewSchemaValidator(&real, nil, "", strfmt.Default).Validate(value)
			if (len(found) == 0) != result.IsValid() {
				t.Fatalf("schema %s\nvalue %s\nwe say %v\nthe API server says %v", AppendJSON(nil, schema), AppendJSON(nil, value), found, result.Errors)
			}
			verdicts[len(found) == 0]++
		}
	})
	if verdicts[true] < 50 || verdicts[false] < 50 {
		t.Errorf("verdicts %v: want many of both", verdicts)
	}
}

var fieldNames = []string{"a", "b", "c"}

func randomSchema(t *rapid.T, depth int) map[string]any {
	kinds := []string{"string", "integer", "number", "boolean"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "array", "map")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "type")
	s := map[string]any{"type": kind}
	switch kind {
	case "object":
		fields := map[string]any{}
		for _, name := range fieldNames {
			fields[name] = randomSchema(t, depth-1)
		}
		s["properties"] = fields
	case "map":
		s["type"] = "object"
		s["additionalProperties"] = randomSchema(t, depth-1)
	case "array":
		s["items"] = randomSchema(t, depth-1)
	}
	randomRules(t, s, s, depth)
	return s
}

// randomRules adds value validations, those of outer's type mostly.
func randomRules(t *rapid.T, s, outer map[string]any, depth int) {
	some := func() bool { return rapid.IntRange(0, 3).Draw(t, "some") == 0 }
	rare := func() bool { return rapid.IntRange(0, 15).Draw(t, "rare") == 0 }
	add := func(name string, values ...any) {
		if some() {
			s[name] = rapid.SampledFrom(values).Draw(t, name)
		}
	}
	switch outer["type"] {
	case "string":
		add("enum", []any{"x", "yy"}, []any{"x", "1.2.3.4"})
		add("pattern", "^x", "y", "[0-9]+$")
		add("minLength", int64(1), int64(2))
		add("maxLength", int64(2), int64(7))
		add("format", "ipv4", "date-time", "uuid", "email", "byte", "duration", "hostname", "date", "uri", "cidr")
	case "integer", "number":
		add("minimum", int64(1), int64(2), 0.5)
		add("maximum", int64(4), int64(3), 2.5)
		add("exclusiveMinimum", true)
		add("exclusiveMaximum", true)
		add("multipleOf", int64(2), int64(1), 0.5, 1.5)
		if s["type"] == "integer" {
			add("format", "int32")
		}
		if s["minimum"] == nil {
			delete(s, "exclusiveMinimum")
		}
		if s["maximum"] == nil {
			delete(s, "exclusiveMaximum")
		}
	case "array":
		add("minItems", int64(1))
		add("maxItems", int64(1), int64(2))
	case "object":
		add("minProperties", int64(1), int64(2))
		add("maxProperties", int64(1), int64(2))
		add("required", []any{"a"}, []any{"a", "b"})
	}
	if depth == 0 {
		return
	}
	for _, junctor := range []string{"allOf", "anyOf", "oneOf"} {
		if rare() {
			s[junctor] = []any{randomNested(t, outer, depth-1), randomNested(t, outer, depth-1)}
		}
	}
	if rare() {
		s["not"] = randomNested(t, outer, depth-1)
	}
}

func randomNested(t *rapid.T, outer map[string]any, depth int) map[string]any {
	s := map[string]any{}
	if fields, ok := outer["properties"].(map[string]any); ok {
		name := rapid.SampledFrom(fieldNames).Draw(t, "field")
		s["properties"] = map[string]any{name: randomNested(t, fields[name].(map[string]any), max(depth-1, 0))}
	}
	if items, ok := outer["items"].(map[string]any); ok {
		s["items"] = randomNested(t, items, max(depth-1, 0))
	}
	randomRules(t, s, outer, depth)
	return s
}

var randomScalars = []any{"", "x", "yy", "x1", "1.2.3.4", "2026-01-02T15:04:05Z", "2026-01-02", "eA==", "3s", "10.0.0.0/8", "a@b.c",
	"https://x/", "7ba7b810-9dad-11d1-80b4-00c04fd430c8", "long long text", int64(0), int64(1), int64(2), int64(4), int64(5), int64(1 << 40), 1.5, 2.5, true, false}

// randomValue is mostly of the schema's type, and has its fields only, since
// unknown ones are pruned and not validated.
func randomValue(t *rapid.T, s map[string]any) any {
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return rapid.SampledFrom(randomScalars).Draw(t, "scalar")
	}
	switch s["type"] {
	case "object":
		m := map[string]any{}
		fields, _ := s["properties"].(map[string]any)
		for _, name := range fieldNames {
			field, ok := fields[name].(map[string]any)
			if !ok {
				field = s["additionalProperties"].(map[string]any)
			}
			if rapid.Bool().Draw(t, "has") {
				m[name] = randomValue(t, field)
			}
		}
		return m
	case "array":
		l := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			l = append(l, randomValue(t, s["items"].(map[string]any)))
		}
		return l
	}
	var fitting []any
	for _, v := range randomScalars {
		if kind := fmt.Sprintf("%T", v); strings.HasPrefix(kind, map[string]string{"string": "string", "integer": "int64", "number": "float64", "boolean": "bool"}[s["type"].(string)]) {
			fitting = append(fitting, v)
		}
	}
	return rapid.SampledFrom(fitting).Draw(t, "scalar")
}
