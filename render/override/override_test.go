// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema"
)

const object = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"replicas":1,
	"template":{"metadata":{"annotations":{"a.b/c":"1"}},"spec":{"containers":[{"name":"main","image":"i"},{"name":"side","image":"s"}]}}}}`

// run applies an override, as it stands below an object's id, to the object of
// a JSON text, and checks that the object itself is left alone.
func run(t testing.TB, text, before string) (map[string]any, []Touched, string) {
	t.Helper()
	docs, found := document.ReadDocuments("f.yaml", []byte("apiVersion: v1\nkind: K\noverride:\n  o:\n"+text))
	if len(found) > 0 {
		t.Fatal(found)
	}
	o, found := Read(docs[0], document.Lookup(docs[0].Node, "override"))
	if len(found) > 0 {
		return nil, nil, found.String()
	}
	in := parse(t, before)
	kept := deepCopy(in)
	hard := typeOf(t, in)
	got, found := Apply(in, hard, o.Of("o"))
	traced, touched, again := Trace(in, hard, o.Of("o"))
	if !reflect.DeepEqual(kept, any(in)) {
		t.Errorf("the object that came in was changed (-before +after):\n%s", cmp.Diff(kept, any(in)))
	}
	if diff := cmp.Diff(got, traced); diff != "" || found.String() != again.String() {
		t.Errorf("another result when it is traced (-untraced +traced):\n%s%s", diff, again)
	}
	return got, touched, found.String()
}

// parse reads JSON as rendered objects are: whole numbers are int64.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	docs, found := document.ReadDocuments("o.json", []byte(text))
	if len(found) > 0 {
		t.Fatal(found)
	}
	plain, found := docs[0].Plain(docs[0].Node)
	if len(found) > 0 {
		t.Fatal(found)
	}
	return plain.(map[string]any)
}

func typeOf(t testing.TB, object map[string]any) *schema.Type {
	t.Helper()
	set, err := schema.Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	k := set.Kind(object["apiVersion"].(string), object["kind"].(string))
	if k == nil {
		return nil
	}
	return k.Type()
}

func apply(t *testing.T, text string) (map[string]any, string) {
	t.Helper()
	got, _, problems := run(t, "    update:\n"+text, object)
	return got, problems
}

func TestApply(t *testing.T) {
	for _, c := range []struct{ name, override, path, want string }{
		{"scalar", "    - {path: spec.replicas, value: 3}", "spec replicas", `3`},
		{"merge", "    - {path: spec, value: {paused: true}}", "spec paused", `true`},
		{"a new field", "    - {path: spec.paused, value: true}", "spec paused", `true`},
		{"by filter", "    - {path: \"spec.template.spec.containers[?name=='side'].image\", value: t}",
			"spec template spec containers", `[{"image":"i","name":"main"},{"image":"t","name":"side"}]`},
		{"by index", "    - {path: 'spec.template.spec.containers[0].image', value: t}",
			"spec template spec containers", `[{"image":"t","name":"main"},{"image":"s","name":"side"}]`},
		{"from the end", "    - {path: 'spec.template.spec.containers[-1].image', value: t}",
			"spec template spec containers", `[{"image":"i","name":"main"},{"image":"t","name":"side"}]`},
		{"quoted name", `    - {path: 'spec.template.metadata.annotations."a.b/c"', value: "2"}`, "spec template metadata annotations", `{"a.b/c":"2"}`},
		{"null removes", "    - {path: spec.replicas, value: null}", "spec", `{"template":` + templateJSON + `}`},
		{"null in a merge removes", "    - {path: spec, value: {replicas: null}}", "spec", `{"template":` + templateJSON + `}`},
		{"null removes an item", "    - {path: 'spec.template.spec.containers[0]', value: null}", "spec template spec containers", `[{"image":"s","name":"side"}]`},
		{"null removes items by name", "    - {path: \"spec.template.spec.containers[?name=='side']\", value: null}", "spec template spec containers", `[{"image":"i","name":"main"}]`},
		{"a list is merged by its keys", "    - {path: spec.template.spec.containers, value: [{name: one}, {name: side, image: t}]}",
			"spec template spec containers", `[{"image":"i","name":"main"},{"image":"t","name":"side"},{"name":"one"}]`},
		{"a list without keys is replaced", "    - {path: \"spec.template.spec.containers[0]\", value: {args: [a, b]}}\n" +
			"    - {path: \"spec.template.spec.containers[0]\", value: {args: [c]}}",
			"spec template spec containers", `[{"args":["c"],"image":"i","name":"main"},{"image":"s","name":"side"}]`},
		{"one after another", "    - {path: spec.replicas, value: 3}\n    - {path: spec.replicas, value: 4}", "spec replicas", `4`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := apply(t, c.override)
			if problems != "" {
				t.Fatal(problems)
			}
			var at any = got
			for _, step := range strings.Fields(c.path) {
				at = at.(map[string]any)[step]
			}
			text, err := json.Marshal(at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const templateJSON = `{"metadata":{"annotations":{"a.b/c":"1"}},"spec":{"containers":[{"image":"i","name":"main"},{"image":"s","name":"side"}]}}`

func TestApplyProblems(t *testing.T) {
	for _, c := range []struct{ override, want string }{
		{"    - {path: spec.replcas.x, value: 1}", `f.yaml:6:14: spec.override.o: "spec.replcas.x" matches nothing: spec is there, but there is only replicas, template, did you mean "replicas"?`},
		{"    - {path: 'spec.template.spec.containers[2]', value: 1}", "the list there has 2 items"},
		{"    - {path: 'spec.replicas[0]', value: 1}", "spec.replicas is there, but it is a number and no list"},
		{"    - {path: kind, value: Job}", "kind: an override cannot change which object it is"},
		{"    - {path: metadata.namespace, value: other}", "metadata.namespace: an override cannot change"},
		{"    - {path: metadata, value: {name: other}}", "metadata.name: an override cannot change"},
		{"    - {path: 'a[?x==]', value: 1}", "no JMESPath"},
		{"    - {path: 'a b', value: 1}", `want . or [ before " b"`},
		{"    - {path: '', value: 1}", "empty: want a path"},
		{"    - {path: 'spec.template.spec.containers.\"\"', value: 1}", "want a name between the quotes"},
		{"    - {path: '\"\"', value: 1}", "want a name between the quotes"},
		{"    - {path: metadata, value: {name: {a: b}}}", "metadata.name: an override cannot change"},
		{"    - {path: kind, value: {a: b}}", "kind: an override cannot change"},
		{"    - {path: spec.template.metadata.annotations.\"a.b/c\".x, value: 1}", "it is a string and no map"},
		{"    - {path: \"spec.template.spec.containers[?image=='x']\", value: 1}", "the list there has 2 items"},
		{"    - {path: spec, value: 1, more: 1}\n  100%d-s:\n    update: {}", "spec.override.100%d-s: update: want a list"},
	} {
		if _, problems := apply(t, c.override); !strings.Contains(problems, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.override, problems, c.want)
		}
	}
}

// TestNoFilterInPathProblems: whether the object is a Secret is not known when
// a path is read, so no problem of a path shows what a filter compares with.
func TestNoFilterInPathProblems(t *testing.T) {
	for _, text := range []string{"data[?x=='hunter2'", "data[?x=='hunter2']]", "data[?x=='hunter2'].", "data[?x=='hunter2'] b", "data[?x==='hunter2']", "data[?x=='hunter2'].[0]",
		"data=='hunter2'", "data.x == `hunter2`", "data ['hunter2']", "data['hunter2']", "data[x=='hunter2']", "[?x=='hunter2']", "data[?x=='hunter2'](a)", "data[?x=='hunter2'] | [0]",
		"data.{a: 'hunter2'}", "data.'hunter2'", "data[?x==`hunter2`]", "data[?'hunter2'=='hunter2']", "data[?x=='" + strings.Repeat("hunter2", 200) + "']"} {
		_, err := parsePath(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.HasPrefix(text, "data") && !strings.Contains(err.Error(), "data") {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	_, problems := apply(t, "    - {path: \"data[?x=='hunter2'\", value: 1}")
	if want := `update[0].path: "data[...": the [ is never closed at "[..."`; !strings.Contains(problems, want) {
		t.Errorf("got %q, want %q", problems, want)
	}
}
