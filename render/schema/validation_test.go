// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/schema"
)

var update = flag.Bool("update", false, "write what is found to testdata/validation.txt")

// TestObjectRules holds objects against all rules: a line of testdata/validation.txt is an
// object, the indented ones after it are what is wrong with it.
func TestObjectRules(t *testing.T) {
	const file = "testdata/validation.txt"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	cases := 0
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		got.WriteString(line)
		if strings.HasPrefix(line, "{") {
			cases++
			for _, wrong := range found(t, line) {
				got.WriteString("  " + wrong + "\n")
			}
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(content), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cases < 100 {
		t.Errorf("%d cases", cases)
	}
}

// found is what all versions that have its kind say of an object, which has to be the same.
func found(t *testing.T, text string) []string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var all [][]string
	for _, version := range schema.Versions() {
		set, err := schema.Kubernetes(version)
		if err != nil {
			t.Fatal(err)
		}
		kind := set.Kind(object["apiVersion"].(string), object["kind"].(string))
		if kind == nil && len(all) > 0 {
			continue // a newer kind
		}
		if kind == nil {
			t.Fatalf("%s: no such kind", text)
		}
		var lines []string
		for _, v := range schema.Check(kind.Type(), object) {
			lines = append(lines, strings.TrimPrefix(fmt.Sprintf("%s: %s", schema.PathText(v.Path), v.Message), ": "))
		}
		all = append(all, lines)
	}
	for _, other := range all[1:] {
		if !slices.Equal(all[0], other) {
			t.Errorf("%s: versions differ: %q and %q", text, all[0], other)
		}
	}
	return all[0]
}

// TestWrongTypes: a value of a type that nobody expects is told of elsewhere, and
// makes no rule panic, alone or twice in the same object.
func TestWrongTypes(t *testing.T) {
	content, err := os.ReadFile("testdata/validation.txt")
	if err != nil {
		t.Fatal(err)
	}
	set, err := schema.Kubernetes(schema.Versions()[0])
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		for _, odd := range []any{map[string]any{"a": int64(1)}, []any{int64(1)}, nil, int64(7), "x", true} {
			var whole map[string]any
			if err := yaml.Unmarshal([]byte(line), &whole); err != nil {
				t.Fatal(err)
			}
			kind := set.Kind(whole["apiVersion"].(string), whole["kind"].(string))
			replaced(whole, odd, func() {
				schema.Check(kind.Type(), whole)
				tried++
			})
			schema.Check(kind.Type(), filled(whole, odd).(map[string]any))
		}
	}
	if tried < 1000 {
		t.Errorf("%d tried", tried)
	}
}

// replaced puts odd in the place of each value below v in turn.
func replaced(v, odd any, try func()) {
	switch v := v.(type) {
	case map[string]any:
		for key, was := range v {
			replaced(was, odd, try)
			v[key] = odd
			try()
			v[key] = was
		}
	case []any:
		for i, was := range v {
			replaced(was, odd, try)
			v[i] = odd
			try()
			v[i] = was
		}
	}
}

// filled is v with odd in the place of every value that holds no others, and every
// item of a list twice.
func filled(v, odd any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, was := range v {
			m[key] = filled(was, odd)
		}
		return m
	case []any:
		var l []any
		for _, was := range v {
			l = append(l, filled(was, odd), filled(was, odd))
		}
		return l
	}
	return odd
}
