// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestTypesOfIntOrString: with any other keyword beside the types that an int-or-string may
// say again, whether that says nothing or something, we decide as the API server's own code.
// It reads anything as items; we want a schema there.
func TestTypesOfIntOrString(t *testing.T) {
	taken := 0
	for _, key := range []string{"$ref", "$schema", "additionalItems", "additionalProperties", "allOf", "anyOf", "default", "definitions", "dependencies", "description", "enum",
		"example", "exclusiveMaximum", "exclusiveMinimum", "externalDocs", "format", "id", "maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength",
		"minProperties", "minimum", "multipleOf", "not", "nullable", "oneOf", "pattern", "patternProperties", "properties", "required", "title", "type", "uniqueItems",
		"x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type",
		"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"} {
		for _, value := range []any{nil, false, true, "", "a", 0.0, 1.0, []any{}, map[string]any{}} {
			for i := range 2 {
				alternatives := []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}
				alternatives[i].(map[string]any)[key] = value
				schema := map[string]any{"x-kubernetes-int-or-string": true, "anyOf": alternatives}
				want, decoded := serverTakes(t, schema)
				if !decoded {
					continue // of another form
				}
				if want {
					taken++
				}
				d := &definition{}
				d.typ(schema, false)
				if got := len(d.violations) == 0; got != want {
					t.Errorf("%s: %#v in %d: we take it: %v, the API server: %v; %v", key, value, i, got, want, d.violations)
				}
			}
		}
	}
	if taken < 40 {
		t.Errorf("only %d were taken", taken)
	}
}

// serverTakes says whether the API server takes a schema as a structural one, and whether it
// can decode it.
func serverTakes(t *testing.T, schema map[string]any) (takes, decoded bool) {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &v1); err != nil {
		return false, false
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &internal, nil); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", text, err))
	}
	s, err := structural.NewStructural(&internal)
	if err != nil {
		return false, true
	}
	root := &structural.Structural{Generic: structural.Generic{Type: "object"}, Properties: map[string]structural.Structural{"x": *s}}
	return len(structural.ValidateStructural(field.NewPath("x"), root)) == 0, true
}
