// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	jmespath "github.com/jmespath-community/go-jmespath"
	"pgregory.net/rapid"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/rapidtest"
	"github.com/swell-sh/swell/render/schema"
)

var names = []string{"a", "b", "name", "x-y", "é", "q\"t"}

// value draws something that JSON can hold.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		form := rapid.IntRange(0, 5).Draw(t, "form")
		if depth == 0 {
			form %= 4
		}
		switch form {
		case 0:
			return rapid.Int64Range(-9, 9).Draw(t, "int")
		case 1:
			return rapid.Bool().Draw(t, "bool")
		case 2, 3:
			return rapid.SampledFrom([]string{"u", "v", "main"}).Draw(t, "text")
		case 4:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
		}
		return mapping(depth-1).Draw(t, "mapping")
	})
}

func mapping(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		m := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID).Draw(t, "names") {
			m[name] = value(depth).Draw(t, name)
		}
		return m
	})
}

// pathInto draws a path that leads somewhere in the value: names, indexes and
// at most one [*], which is the last step but names.
func pathInto(t *rapid.T, value any) string {
	text, starred := "spec", false
	for {
		switch v := value.(type) {
		case map[string]any:
			if starred || len(v) == 0 || rapid.IntRange(0, 4).Draw(t, "stop") == 0 {
				return text
			}
			name := rapid.SampledFrom(present(v)).Draw(t, "name")
			quoted, _ := json.Marshal(name)
			text, value = text+"."+string(quoted), v[name]
		case []any:
			if starred || len(v) == 0 {
				return text
			}
			i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				text += fmt.Sprintf("[%d]", i)
			case 1:
				text += fmt.Sprintf("[%d]", i-len(v))
			case 2:
				text, starred = text+"[*]", true
			}
			value = v[i]
		default:
			return text
		}
	}
}

// single is an override with one operation.
func single(t fataler, verb, path string, value any) *Override {
	item := map[string]any{"path": path}
	if verb != verbRemove {
		item["value"] = value
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "K", "override": map[string]any{"o": map[string]any{verb: []any{item}}}})
	if err != nil {
		t.Fatal(err)
	}
	docs, found := document.ReadDocuments("f.json", text)
	if len(found) > 0 {
		t.Fatal(found)
	}
	o, found := Read(docs[0], document.Lookup(docs[0].Node, "override"))
	if len(found) > 0 {
		t.Fatalf("%s: %s", path, found)
	}
	return o.Of("o")
}

// TestPropertySet: what was set at a path is what the JMESPath library finds
// there, what was removed it does not find, and an update of nothing changes
// nothing.
func TestPropertySet(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(rt *rapid.T) {
		object := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"}, "spec": mapping(3).Draw(rt, "spec")}
		kept := deepCopy(object)
		path := pathInto(rt, object["spec"])
		want := value(2).Draw(rt, "value")
		got, problems := Apply(object, nil, single(t, verbSet, path, want))
		if len(problems) > 0 {
			rt.Fatalf("set %s: %s", path, problems)
		}
		found := search(rt, path, got)
		all := []any{found}
		if strings.HasSuffix(path, "[*]") {
			all = found.([]any)
		}
		for _, one := range all {
			if !reflect.DeepEqual(one, plainJSON(rt, want)) {
				rt.Fatalf("set %s to %v: found %v", path, want, one)
			}
		}
		if same, problems := Apply(object, nil, single(t, verbUpdate, "@", map[string]any{}), single(t, verbUpdate, "spec", map[string]any{})); len(problems) > 0 || !reflect.DeepEqual(kept, any(same)) {
			rt.Fatalf("an update of nothing: %v, %v", same, problems)
		}
		if !strings.HasSuffix(path, "]") {
			less, problems := Apply(object, nil, single(t, verbRemove, path, nil))
			if len(problems) > 0 {
				rt.Fatalf("remove %s: %s", path, problems)
			}
			if found := search(rt, path, less); found != nil {
				rt.Fatalf("remove %s: found %v", path, found)
			}
		}
		if !reflect.DeepEqual(kept, any(object)) {
			rt.Fatalf("the object that came in was changed: %v", object)
		}
	})
}

// TestPropertyTrace: whatever differs from the object that came in is at or
// below a place that is said to be touched.
func TestPropertyTrace(t *testing.T) {
	rapidtest.Check(t, 100, 200*time.Millisecond, func(rt *rapid.T) {
		object := map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"}, "spec": mapping(3).Draw(rt, "spec")}
		path := pathInto(rt, object["spec"])
		verb := rapid.SampledFrom([]string{verbSet, verbUpdate}).Draw(rt, "verb")
		got, touched, problems := Trace(object, nil, single(t, verb, path, value(2).Draw(rt, "value")))
		if len(problems) > 0 {
			rt.Fatal(problems)
		}
		for _, place := range differences(nil, object, got) {
			if !slices.ContainsFunc(touched, func(one Touched) bool { return isBelow(place, one.Path) }) {
				rt.Fatalf("%s %s: %s differs, touched are %v", verb, path, schema.PathText(place), touched)
			}
		}
	})
}

func isBelow(path, above []any) bool {
	return len(path) >= len(above) && slices.Equal(path[:len(above)], above)
}

// differences are the paths of leaves of b that a does not have.
func differences(path []any, a, b any) [][]any {
	var all [][]any
	switch b := b.(type) {
	case map[string]any:
		other, ok := a.(map[string]any)
		if !ok {
			return [][]any{path}
		}
		for _, name := range present(b) {
			all = append(all, differences(append(slices.Clone(path), name), other[name], b[name])...)
		}
		return all
	case []any:
		other, ok := a.([]any)
		if !ok || len(other) != len(b) {
			return [][]any{path}
		}
		for i := range b {
			all = append(all, differences(append(slices.Clone(path), i), other[i], b[i])...)
		}
		return all
	}
	if a != b {
		all = append(all, path)
	}
	return all
}

type fataler interface {
	Fatal(...any)
	Fatalf(string, ...any)
}

func search(t fataler, path string, object any) any {
	found, err := jmespath.Search(path, plainJSON(t, object))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// plainJSON is a value as encoding/json reads it.
func plainJSON(t fataler, value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	return plain
}

// FuzzPath: a path that is accepted is JMESPath, reads back as what it was, and
// can be walked on any object.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"a", "a.b", `a."b.c"`, "a[0]", "a[-1].b", "a[?b=='c'].d", "a[99999999999999999999]", `a."`, "@", "@.a", "*", "a.*", "a[*]", "a[1:2:3]",
		"a[?b==`1` && contains(c, 'd') || !(e)]", "a[?b[?c]]", "a[?sort(@)[0]=='x']", "a[]", "a | b", "f(a)", "a.[b]", "a[?'", "a[?`]`]", "spec.items[?name=='a' && v<`2`].v", strings.Repeat("\x80", maxPath+1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := parsePath(text)
		if err != nil {
			return
		}
		if _, err := jmespath.NewParser().Parse(text); err != nil {
			t.Errorf("%q is no JMESPath: %v", text, err)
		}
		again, err := parsePath("@." + steps.text(false))
		if len(steps) > 0 && (err != nil || again.text(false) != steps.text(false)) {
			t.Errorf("%q became %q, then %q, %v", text, steps.text(false), again.text(false), err)
		}
		op := operation{verb: verbSet, path: steps, value: "v", at: &yaml.Node{}}
		if op.misuse() == "" {
			Apply(parse(t, widget), nil, &Override{doc: &document.Document{File: "f"}, operations: []operation{op}})
		}
	})
}

// FuzzApply: any override of any document, read and applied: no panic, the
// same result twice, the object that came in unchanged, a small result.
func FuzzApply(f *testing.F) {
	for _, seed := range []string{
		"update: [{path: spec, value: {containers: [{name: main, image: x}]}}]",
		"set: [{path: 'spec.containers[*].env', value: []}]\nremove: [\"spec.containers[?name=='main'].ports\"]",
		"append: [{path: spec.containers, value: {name: a}}]\npatch: [{op: copy, from: /spec, path: /spec/containers/-}]",
		"patch: [{op: move, from: /spec/containers/0, path: /spec/containers/1}, {op: test, path: /kind, value: Pod}]",
		"remove: ['@.metadata.labels.a', 'spec.containers[-1]', 'spec.containers[:1]', 'spec.*']",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		content := []byte("apiVersion: v1\nkind: K\noverride:\n  o:\n    " + strings.ReplaceAll(text, "\n", "\n    "))
		docs, problems := document.ReadDocuments("f", content)
		if len(problems) > 0 || len(docs) == 0 {
			return
		}
		o, problems := Read(docs[0], document.Lookup(docs[0].Node, "override"))
		if len(problems) > 0 {
			return
		}
		in := parse(t, pod)
		kept := deepCopy(in)
		hard := typeOf(t, in)
		got, found := Apply(in, hard, o.Of("o"))
		again, touched, foundAgain := Trace(in, hard, o.Of("o"))
		if !reflect.DeepEqual(got, again) || found.String() != foundAgain.String() {
			t.Errorf("twice is not the same: %s\n%s", found, foundAgain)
		}
		if !reflect.DeepEqual(any(in), kept) {
			t.Errorf("the object that came in was changed: %v", in)
		}
		if len(found) > 0 {
			return
		}
		if size := len(schema.AppendJSON(nil, got)); size > 2*maxWork {
			t.Errorf("%d bytes came out", size)
		}
		for _, one := range touched {
			if _, ok := at(got, one.Path); ok == one.Removed {
				t.Errorf("%s: there %t, removed %t", schema.PathText(one.Path), ok, one.Removed)
			}
		}
	})
}

// at finds the value at a path.
func at(value any, path []any) (any, bool) {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			name, _ := step.(string)
			next, ok := v[name]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, ok := step.(int)
			if !ok || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}
