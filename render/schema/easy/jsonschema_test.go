// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package easy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/schema/easy"
	"github.com/swell-sh/swell/render/schema/schematest"
)

// compile checks a schema against draft-07 itself and compiles it.
func compile(t testing.TB, document map[string]any) *jsonschema.Schema {
	t.Helper()
	value, compiled, err := schematest.Compile(string(indented(t, document)))
	if err != nil {
		t.Fatal(err)
	}
	meta, err := jsonschema.NewCompiler().Compile("http://json-schema.org/draft-07/schema")
	if err != nil {
		t.Fatal(err)
	}
	if err := meta.Validate(value); err != nil {
		t.Fatalf("not draft-07: %v", err)
	}
	return compiled
}

// faults are the places, as JSON pointers, that a schema refuses; sorted.
func faults(t testing.TB, s *jsonschema.Schema, text string) []string {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		t.Fatal(err)
	}
	var invalid *jsonschema.ValidationError
	if err := s.Validate(value); err == nil {
		return nil
	} else if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	var places []string
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if place := "/" + strings.Join(e.InstanceLocation, "/"); len(e.Causes) == 0 && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	walk(invalid)
	slices.Sort(places)
	return places
}

// everythingSpecs are specs of everything.txtar, and where they are wrong; empty
// when they are not. somewhere: the validator gives wrong places for names of
// properties.
var everythingSpecs = []struct{ spec, want string }{
	{"text: x", ""},
	{"text: {fromFile: a.txt}", ""},
	{"text: {fromFil: a.txt}", "/spec/text"},
	{"text: 1", "/spec/text"},
	{"texd: x", "/spec"},
	{"override: {deployment: {update: []}}", ""},
	{"bytes: aGk=, bytesValue: {fromFile: x}, stringValue: {fromFile: x}", ""},
	{"int64: 9223372036854775807, uint64: '18446744073709551615'", ""},
	{"int64: x", "/spec/int64"},
	{"uint64: -1", "/spec/uint64"},
	{"int32: 2147483648", "/spec/int32"},
	{"uint32: -1", "/spec/uint32"},
	{"color: RED, colors: [1, BLUE], colorOf: {a: NONE}", ""},
	{"color: GREEN", "/spec/color"},
	{"colors: [3]", "/spec/colors/0"},
	{"in: a", ""},
	{"in: a, port: {name: x}", "/spec"},
	{"in: a, anything: 1", "/spec"},
	{"there: z", "/spec"},
	{"tree: {name: a, children: [{name: b, leaves: {x: {tree: {name: c}}}}]}", ""},
	{"tree: {children: [{children: [{nam: b}]}]}", "/spec/tree/children/0/children/0"},
	{"byNumber: {'1': {number: 2}}, byBool: {'true': 1}", ""},
	{"byNumber: {x: {number: 2}}", "somewhere"},
	{"duration: 1h30m, timestamp: '2006-01-02T15:04:05Z', value: [1], struct: {a: 1}, listValue: [a], empty: {}", ""},
	{"duration: 1d", "/spec/duration"},
	{"timestamp: yesterday", "/spec/timestamp"},
	{"old: {must: a, size: 1, level: LOW, item: [{name: a, hint: b}]}", ""},
	{"old: {size: 1}", "/spec/old"},
	{"edition: {must: x, closed: A}", ""},
	{"edition: {explicit: x}", "/spec/edition"},
	{"comment: for people", ""},
	{"choice: {fromFile: x}", ""},
	{"choice: c", "/spec/choice"},
	{"bounded: 9", ""},
	{"bounded: 10", "/spec/bounded"},
	{"big: '2'", ""},
	{"big: 3", "/spec/big"},
	{"few: []", "/spec/few"},
	{"few: [abcdef]", "/spec/few/0"},
	{"fewLabels: {abcde: x}", "somewhere"},
	{"notRed: BLUE", ""},
	{"notRed: 1", "/spec/notRed"},
}

func TestJSONSchema(t *testing.T) {
	k := easyOf(t, parse(t, "everything.txtar"))
	one := compile(t, k.JSONSchema())
	all := compile(t, easy.EditorSchema([]*easy.Schema{k}, config.OwnDocuments(), true))
	const head = "apiVersion: easy.example.com/v1\nkind: Everything\nmetadata: {name: a}\nspec: {%s}\n"
	for _, test := range everythingSpecs {
		spec := test.spec
		for _, must := range []string{"ruled: {fromFile: a}", "here: x", "choice: a", "bounded: 1", "big: 1", "few: [a]"} {
			if name, _, _ := strings.Cut(must, " "); !strings.HasPrefix(spec, name) {
				spec += ", " + must
			}
		}
		text := fmt.Sprintf(head, spec)
		want := []string(nil)
		if test.want != "" {
			want = []string{test.want}
		}
		for name, s := range map[string]*jsonschema.Schema{"one": one, "all": all} {
			got := faults(t, s, text)
			if test.want == "somewhere" && len(got) > 0 {
				continue
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, test.spec, diff)
			}
		}
	}
}

// TestEditorSchema holds whole documents of several kinds against one schema.
func TestEditorSchema(t *testing.T) {
	k := easyOf(t, parse(t, "small.txtar"))
	s := compile(t, easy.EditorSchema([]*easy.Schema{k}, config.OwnDocuments(), true))
	broken := compile(t, easy.EditorSchema([]*easy.Schema{k}, config.OwnDocuments(), false))
	for _, test := range []struct{ text, want string }{
		{"{apiVersion: example.com/v1, kind: Policy, metadata: {name: a}, spec: {text: x, override: x}}", ""},
		{"{apiVersion: example.com/v1, kind: Policy, metadata: {name: a}, spec: {override: {a: {}}}}", "/spec/override"},
		{"{apiVersion: example.com/v1, kind: Policy, metadata: {name: a}, spec: {text: {fromFile: x}}}", "/spec/text"},
		{"{apiVersion: example.com/v1, kind: Policy, metadata: {labels: {a: b}}}", "/metadata"},
		{"{apiVersion: example.com/v1, kind: Policy, metadata: {name: a, uid: b}}", "/metadata"},
		{"{apiVersion: example.com/v1, kind: Policy, metadata: {name: a}, status: {}}", "/"},
		{"{apiVersion: example.com/v1, kind: Polisy, metadata: {name: a}}", "/kind"},
		{"{apiVersion: apps/v1, kind: Deployment, spec: {replicsa: 1}}", ""},
		{"{apiVersion: swell.sh/v1, kind: Defaults, metadata: {name: a}, spec: {tenant: shop}}", ""},
		{"{apiVersion: swell.sh/v1, kind: Defaults, metadata: {name: a}, spec: {tenand: shop}}", "/spec"},
		{"{apiVersion: swell.sh/v1, kind: Defalts, metadata: {name: a}}", "/kind"},
		{"{apiVersion: swell.sh/v1, kind: Rollout, metadata: {name: a}, spec: {waves: [{name: a, soak: 1d}]}}", "/spec/waves/0/soak"},
	} {
		want := []string(nil)
		if test.want != "" {
			want = []string{test.want}
		}
		if diff := cmp.Diff(want, faults(t, s, test.text)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.text, diff)
		}
	}
	const other = "{apiVersion: example.com/v1, kind: Other, metadata: {name: a}}"
	if got := faults(t, broken, other); got != nil {
		t.Errorf("a kind that may be one that does not load: %v", got)
	}
}

func TestOnServer(t *testing.T) {
	k := easyOf(t, parse(t, "everything.txtar"))
	read := func(text string) (value map[string]any) {
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	const text = `{apiVersion: a, kind: b, metadata: {name: comment}, spec: {comment: x, text: y, unknown: {comment: z},
		ports: [{note: n, number: 1}], byNumber: {"1": {note: n, name: m}}, best: {note: n}, struct: {comment: kept}, labels: {comment: kept},
		old: {item: [{name: a, hint: b}]}}}`
	object := read(text)
	want := read(`{apiVersion: a, kind: b, metadata: {name: comment}, spec: {text: y, unknown: {comment: z},
		ports: [{number: 1}], byNumber: {"1": {name: m}}, best: {}, struct: {comment: kept}, labels: {comment: kept},
		old: {item: [{name: a}]}}}`)
	if diff := cmp.Diff(want, k.OnServer(object)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(read(text), object); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
}
