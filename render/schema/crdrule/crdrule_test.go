// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package crdrule

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// schemaOf is an object with one field, value.
func schemaOf(t testing.TB, value string) []byte {
	t.Helper()
	s := `{"type":"object","properties":{"value":` + value + `}}`
	if !json.Valid([]byte(s)) {
		t.Fatalf("no JSON: %s", s)
	}
	return []byte(s)
}

func compiled(t testing.TB, schema []byte) *Rules {
	t.Helper()
	if problems := Check(schema, "1.36"); len(problems) > 0 {
		t.Fatal(problems)
	}
	r, err := Compile(schema)
	if err != nil || r == nil {
		t.Fatal(r, err)
	}
	return r
}

// lists is a schema of fields with a rule each that is quadratic in the field's length.
func lists(fields, length int) []byte {
	texts := make([]string, fields)
	for i := range texts {
		texts[i] = fmt.Sprintf(`"f%02d":{"type":"array","maxItems":%d,"items":{"type":"integer"},"x-kubernetes-validations":[{"rule":"self.all(a, self.exists(b, b == a))"}]}`, i, length)
	}
	return []byte(`{"type":"object","properties":{` + strings.Join(texts, ",") + `}}`)
}

// TestBudget: above the budget of an object the last flaw says so, and it is the same
// each time, although rules before it are broken.
func TestBudget(t *testing.T) {
	r := compiled(t, lists(60, 300))
	items := make([]any, 300)
	for i := range items {
		items[i] = int64(i)
	}
	object := map[string]any{}
	for i := range 60 {
		object[fmt.Sprintf("f%02d", i)] = items
	}
	const budget = 1_000_000 // a tenth of a server's, which takes seconds
	found := r.within(budget, object)
	if len(found) != 1 || !strings.Contains(found[0].Detail, "running out of cost budget") {
		t.Fatalf("got %v, want one flaw about the budget", found)
	}
	if again := r.within(budget, object); !reflect.DeepEqual(found, again) {
		t.Errorf("got %v, then %v", found, again)
	}
}

// TestTooManyRules: a definition cannot make swell compile for ever.
func TestTooManyRules(t *testing.T) {
	rules := strings.Repeat(`{"rule":"self > 0"},`, maxRules)
	problems := Check(schemaOf(t, `{"type":"integer","x-kubernetes-validations":[`+rules+`{"rule":"self > 0"}]}`), "1.36")
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "more than 2000 rules") {
		t.Errorf("got %v", problems)
	}
}

// TestHostileRules: each ends soon, with a problem.
func TestHostileRules(t *testing.T) {
	for name, rule := range map[string]string{
		"deep":    strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000),
		"nested":  strings.Repeat("[", 300) + strings.Repeat("]", 300) + " == []",
		"long":    "self == 'x'" + strings.Repeat(" || self == 'x'", 20_000),
		"loops":   strings.Repeat("[1,2,3,4,5,6,7,8,9].all(a, ", 9) + "true" + strings.Repeat(")", 9),
		"growing": "self.replace('', self).replace('', self).replace('', self) == ''",
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(rule)
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			problems := Check(schemaOf(t, `{"type":"string","x-kubernetes-validations":[{"rule":`+string(text)+`}]}`), "1.36")
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if len(problems) == 0 {
				t.Error("no problem found")
			}
			for _, p := range problems {
				if len(p.Message) > 2000 {
					t.Errorf("a message of %d bytes", len(p.Message))
				}
			}
		})
	}
}

// TestTotalCost: rules that are each cheap enough, and not together.
func TestTotalCost(t *testing.T) {
	problems := Check(lists(20, 1200), "1.36")
	if len(problems) == 0 || !strings.Contains(problems[0].Message, "for entire OpenAPIv3 schema") {
		t.Errorf("got %v", problems)
	}
}

// TestStable: the compiler's name for the type of self differs each time, our text does not.
func TestStable(t *testing.T) {
	schema := schemaOf(t, `{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self > 1"}]}`)
	first := Check(schema, "1.36")
	if len(first) != 1 || !strings.Contains(first[0].Message, "found no matching overload for '_>_' applied to '(self, int)'") {
		t.Fatalf("got %v", first)
	}
	for range 5 {
		if again := Check(schema, "1.36"); !reflect.DeepEqual(first, again) {
			t.Fatalf("got %v, then %v", first, again)
		}
	}
}

// TestVersions: what came with a Kubernetes version is refused by those before it.
func TestVersions(t *testing.T) {
	schema := schemaOf(t, `{"type":"string","maxLength":9,"x-kubernetes-validations":[{"rule":"isSemver(self)"}]}`)
	if problems := Check(schema, "1.32"); len(problems) != 1 {
		t.Errorf("1.32: got %v, want a problem", problems)
	}
	if problems := Check(schema, "1.36"); len(problems) != 0 {
		t.Errorf("1.36: got %v", problems)
	}
}

// TestAtOnce: one set of rules is used by many at once.
func TestAtOnce(t *testing.T) {
	r := compiled(t, schemaOf(t, `{"type":"array","maxItems":9,"items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}}`))
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() {
			for range 50 {
				if found := r.Broken(map[string]any{"value": []any{int64(1), int64(0)}}); len(found) != 1 {
					t.Errorf("got %v", found)
				}
			}
		})
	}
	g.Wait()
}

func BenchmarkBroken(b *testing.B) {
	r := compiled(b, schemaOf(b, `{"type":"object","properties":{"min":{"type":"integer"},"max":{"type":"integer"},"name":{"type":"string","maxLength":63}},
		"x-kubernetes-validations":[{"rule":"self.min <= self.max"},{"rule":"self.name.matches('^[a-z]+$')"}]}`))
	object := map[string]any{"value": map[string]any{"min": int64(1), "max": int64(2), "name": "abc"}}
	b.ReportAllocs()
	for b.Loop() {
		if found := r.Broken(object); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

// BenchmarkCheck compiles one rule of a definition.
func BenchmarkCheck(b *testing.B) {
	schema := schemaOf(b, `{"type":"object","properties":{"min":{"type":"integer"},"max":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"self.min <= self.max"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if problems := Check(schema, "1.36"); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}
