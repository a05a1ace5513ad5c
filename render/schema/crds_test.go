// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/swell-sh/swell/config/document"
)

// parsed reads the one document of a text, as the compiler does.
func parsed(t testing.TB, text []byte) map[string]any {
	t.Helper()
	docs, problems := document.ReadDocuments("x.yaml", text)
	if len(problems) > 0 || len(docs) != 1 {
		t.Fatalf("%d documents, %v\n%s", len(docs), problems, text)
	}
	value, problems := docs[0].Plain(docs[0].Node)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return value.(map[string]any)
}

// widgets is a definition with a bit of everything.
func widgets(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/widgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// written is a definition of a test.
type written struct {
	Name   string
	Object map[string]any
	Live   bool
}

// problem is what is wrong with the definition of an index.
type problem struct {
	CRD int
	Violation
}

// join is [Set.With], and all that is wrong with the definitions.
func join(s *Set, crds ...written) (*Set, []problem) {
	var definitions []*Definition
	var problems []problem
	for i, c := range crds {
		d := s.Define(c.Name, AppendJSON(nil, c.Object), c.Live)
		definitions = append(definitions, d)
		if c.Live && len(d.Violations()) > 0 && len(d.unchecked().Violations()) == 0 {
			continue // it is used all the same
		}
		for _, v := range d.Violations() {
			problems = append(problems, problem{i, v})
		}
	}
	return s.With(definitions), problems
}

func with(t testing.TB, crds ...written) *Set {
	t.Helper()
	base, err := Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	set, problems := join(base, crds...)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return set
}

// TestCustomResource holds widgets and gauges, good and bad, against their definitions.
// The first lines of each are what is found, none for nothing.
func TestCustomResource(t *testing.T) {
	for _, name := range []string{"widgets", "gauges", "routes"} {
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		crd := parsed(t, text)
		set := with(t, written{Name: name + ".yaml", Object: crd})
		if found := Check(set.Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition").Type(), crd); len(found) > 0 {
			t.Error(found)
		}
		archive, err := txtar.ParseFile("testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			t.Run(name+"/"+f.Name, func(t *testing.T) { customResource(t, set, f.Data) })
		}
	}
}

func customResource(t *testing.T, set *Set, text []byte) {
	var want []string
	for line := range strings.Lines(string(text)) {
		if text, ok := strings.CutPrefix(line, "# "); ok {
			want = append(want, strings.TrimSpace(text))
		}
	}
	object := parsed(t, text)
	kind := set.Kind(object["apiVersion"].(string), object["kind"].(string))
	if kind == nil {
		t.Fatal("no such kind")
	}
	before := string(AppendJSON(nil, object))
	var got []string
	for _, v := range kind.Check(object, false) {
		got = append(got, PathText(v.Path)+": "+v.Message)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if after := string(AppendJSON(nil, object)); after != before {
		t.Errorf("Check changed the object to %s", after)
	}
}

// TestNoRulesNoAllocation: an object costs nothing more because others have rules.
func TestNoRulesNoAllocation(t *testing.T) {
	set := with(t, written{Name: "widgets.yaml", Object: parsed(t, widgets(t))})
	object := parsed(t, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {a: b}\n"))
	kind := set.Kind("v1", "ConfigMap")
	kind.Check(object, false)
	if n := testing.AllocsPerRun(100, func() { kind.Check(object, false) }); n > 0 {
		t.Errorf("%v allocations for a good object", n)
	}
}

// BenchmarkCustomResource holds an object against a definition with rules.
func BenchmarkCustomResource(b *testing.B) {
	text, err := os.ReadFile("testdata/gauges.yaml")
	if err != nil {
		b.Fatal(err)
	}
	archive, err := txtar.ParseFile("testdata/gauges.txtar")
	if err != nil {
		b.Fatal(err)
	}
	object := parsed(b, archive.Files[0].Data)
	kind := with(b, written{Name: "gauges.yaml", Object: parsed(b, text)}).Kind("shop.example.com/v1", "Gauge")
	b.ReportAllocs()
	for b.Loop() {
		if found := kind.Check(object, false); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

// BenchmarkDefinition compiles a definition with rules for the first time.
func BenchmarkDefinition(b *testing.B) {
	text, err := os.ReadFile("testdata/gauges.yaml")
	if err != nil {
		b.Fatal(err)
	}
	crd := parsed(b, text)
	base, err := Kubernetes("")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		base.compiled.problems = nil
		if _, problems := join(base, written{Name: "gauges.yaml", Object: crd}); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// TestBrokenDefinitions makes one mistake at a time in the definition.
func TestBrokenDefinitions(t *testing.T) {
	base, err := Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	good := string(widgets(t))
	for _, c := range []struct{ old, new, want string }{
		{"name: widgets.shop.example.com", "name: widget.shop.example.com", `metadata.name: want "widgets.shop.example.com", the plural and the group`},
		{"group: shop.example.com", "group: shop", `spec.group: "shop": want a domain with a dot in it`},
		{"group: shop.example.com", "group: shop.k8s.io", `metadata.annotations["api-approved.kubernetes.io"]: missing, group shop.k8s.io belongs to Kubernetes: write the URL of the approval, or unapproved and why`},
		{"plural: widgets", "plural: Widgets", `spec.names.plural: "Widgets": want at most 63 letters, digits and -, a letter first`},
		{"kind: Widget,", "kind: \"\",", `spec.names.kind: "": want at most 63 letters, digits and -, a letter first`},
		{"scope: Namespaced", "scope: namespaced", `spec.scope: want Namespaced or Cluster, got "namespaced"`},
		{"scope: Namespaced", "scope: Namespaced\n  preserveUnknownFields: true", "spec.preserveUnknownFields: not allowed in apiextensions.k8s.io/v1: write x-kubernetes-preserve-unknown-fields: true in the schema"},
		{"storage: true", "storage: false", "spec.versions: want exactly one with storage: true, got 0"},
		{"name: v1beta1", "name: v1", `spec.versions[1].name: "v1": a version of that name stands before`},
		{"image: {type: string", "image: {description: an image", `spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.image: type: missing, a structural schema says it everywhere`},
		{"image: {type: string", "image: {type: text", `spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.image.type: "text": no such type`},
		{"image: {type: string", "image: {$ref: '#/x', type: string", `spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.image.$ref: not allowed in the schema of a custom resource: remove it`},
		{`pattern: "^[a-z]`, `pattern: "(^[a-z]`, "image.pattern: \"(^[a-z][a-z0-9./:-]*$\": error parsing regexp: missing closing ): `(^[a-z][a-z0-9./:-]*$`"},
		{"- {required: [size]}", "- {required: [size], type: object}", `oneOf[0].type: not allowed inside allOf, anyOf, oneOf and not: say it outside`},
		{"x-kubernetes-list-map-keys: [name]", "x-kubernetes-list-map-keys: [nmae]", `ports.x-kubernetes-list-map-keys[0]: "nmae": the items have no such field, did you mean "name"?`},
		{"required: [name, port]", "required: [port]", `ports.x-kubernetes-list-map-keys[0]: "name": want it required or with a default`},
		{"default: 3", "default: many", `spec.properties.replicas.default: want an integer, got the string "many"`},
		{"default: 3", "default: 300", `spec.properties.replicas.default: want at most 9, got the number 300`},
		{"x-kubernetes-list-type: set, maxItems: 3, items: {type: string}", "x-kubernetes-list-type: set, maxItems: 3, items: {type: object}", `zones.items: want x-kubernetes-map-type: atomic for the items of a set`},
		{"x-kubernetes-list-type: set, maxItems: 3, items: {type: string}", "x-kubernetes-list-type: set, maxItems: 3, items: {type: array, x-kubernetes-list-type: set, items: {type: string}}", `zones.items: want x-kubernetes-list-type: atomic for the items of a set`},
		{"image: {type: string", "image: {x-kubernetes-list-map-keys: [a], type: string", `image.x-kubernetes-list-map-keys: only for type: array`},
		{"image: {type: string", "image: {x-kubernetes-map-type: atomic, type: string", `image.x-kubernetes-map-type: only for type: object`},
		{"items: {type: string}", "items: {type: string, nullable: true}", `zones.items.nullable: not allowed for the items of a set or of a keyed list`},
		{"items: {type: string}", "uniqueItems: true", `zones: items: missing, every list says of what`},
		{"items: {type: string}", "items: {type: string}, uniqueItems: true", `zones.uniqueItems: not allowed, write x-kubernetes-list-type: set`},
		{"labels: {type: object, additionalProperties", "labels: {type: object, properties: {a: {type: string}}, additionalProperties", `labels.additionalProperties: not allowed beside properties: remove one of them`},
		{"maxLength: 20", "pattern: x}, labels: {type: object", `metadata.properties.labels: only name and generateName of metadata can be restricted: remove it`},
		{"rule: self.min <= self.max", "rule: self.min <= ", `rule: "self.min <=": 1:12: Syntax error`},
		{"rule: self.min <= self.max", "rule: self.min <= self.mox", `x-kubernetes-validations[0].rule: "self.min <= self.mox": 1:17: undefined field 'mox'`},
		{"rule: self.min <= self.max", "rule: self.min", `x-kubernetes-validations[0].rule: "self.min": cel expression must evaluate to a bool`},
		{"rule: self.min <= self.max", "{rule: self.min <= self.max, messageExpression: self.min}", `x-kubernetes-validations[0].messageExpression: "self.min": messageExpression must evaluate to a string`},
		{"rule: self.min <= self.max", "{rule: self.min <= self.max, reason: Bad}", `x-kubernetes-validations[0].reason: want one of FieldValueRequired, FieldValueForbidden, FieldValueInvalid, FieldValueDuplicate, got "Bad"`},
		{"rule: self.min <= self.max", "{rule: self.min <= self.max, fieldPath: .mid}", `x-kubernetes-validations[0].fieldPath: ".mid": not the path of a field: does not refer to a valid field`},
		{"rule: self.min <= self.max", "{rule: self.min <= self.max, optionalOldSelf: true}", `x-kubernetes-validations[0].optionalOldSelf: may not be set if oldSelf is not used in rule`},
		{"notes: {type: array, ", "notes: {type: array, x-kubernetes-validations: [{rule: 'self.all(a, self.all(b, a == b))'}], ", `notes.x-kubernetes-validations[0].rule: estimated rule cost exceeds budget by factor of more than 100x`},
		{"rule: self.min <= self.max", "message: x", `x-kubernetes-validations[0]: rule: missing`},
		{"disk:\n", "disk:\n                default: {}\n                x-kubernetes-validations: [{rule: has(self.size), message: say the size}]\n", `disk.default: fits no alternative of oneOf`},
		{"{min: {type: number, multipleOf: 0.5}", "{min: {type: number, multipleOf: 0.5, default: 7.5, x-kubernetes-validations: [{rule: self < 7.0, message: too much}]}", `range.properties.min.default: Invalid value: too much`},
		{"openAPIV3Schema:", "openAPIV3:", `spec.versions[0].schema: openAPIV3Schema: missing, every version has its schema`},
	} {
		if strings.Count(good, c.old) == 0 {
			t.Fatalf("%q is not in the definition", c.old)
		}
		text := strings.Replace(good, c.old, c.new, 1)
		set, problems := join(base, written{Name: "widgets.yaml", Object: parsed(t, []byte(text))})
		if !slices.ContainsFunc(problems, func(p problem) bool { return strings.Contains(PathText(p.Path)+": "+p.Message, c.want) }) {
			t.Errorf("%q to %q: got %v, want %s", c.old, c.new, problems, c.want)
		}
		if set.Kind("shop.example.com/v1", "Widget") != nil {
			t.Errorf("%q to %q: the kind is there", c.old, c.new)
		}
		set, problems = join(base, written{Name: "the facts of cluster sas-1", Object: parsed(t, []byte(text)), Live: true})
		kind := set.Kind("shop.example.com/v1", "Widget")
		if (kind == nil) != (len(problems) > 0) {
			t.Errorf("%q to %q in a cluster: kind %v, problems %v", c.old, c.new, kind, problems)
		}
		if inSchema := strings.Contains(c.want, "openAPIV3Schema") || !strings.Contains(c.want, "spec.") && !strings.Contains(c.want, "metadata."); kind == nil && inSchema {
			t.Errorf("%q to %q in a cluster: no kind; %v", c.old, c.new, problems)
		}
		if kind != nil && (!strings.Contains(kind.Deprecation(), "not checked beyond its metadata: swell cannot use the definition in the facts of cluster sas-1") ||
			len(Check(kind.Type(), map[string]any{"apiVersion": "shop.example.com/v1", "kind": "Widget", "spec": "anything"})) > 0) {
			t.Errorf("%q to %q in a cluster: %q, or the kind checks something", c.old, c.new, kind.Deprecation())
		}
	}
}

// TestDefinedTwice: the first of two definitions of one kind is meant, and none of a kind of
// Kubernetes.
func TestDefinedTwice(t *testing.T) {
	base, err := Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	widget := parsed(t, widgets(t))
	other := parsed(t, bytes.ReplaceAll(widgets(t), []byte("widgets"), []byte("gadgets")))
	deployment := parsed(t, []byte(strings.NewReplacer("shop.example.com", "apps.k8s.io", "kind: Widget", "kind: Deployment",
		"{name: widgets", "{annotations: {api-approved.kubernetes.io: unapproved}, name: widgets").Replace(string(widgets(t)))))
	group := deployment["spec"].(map[string]any)
	group["group"] = "networking.k8s.io"
	group["names"].(map[string]any)["kind"] = "Ingress"
	deployment["metadata"].(map[string]any)["name"] = "widgets.networking.k8s.io"
	set, problems := join(base, written{Name: "a.yaml", Object: widget}, written{Name: "b.yaml", Object: other}, written{Name: "c.yaml", Object: deployment})
	var got []string
	for _, p := range problems {
		got = append(got, fmt.Sprintf("%d %s: %s: %s", p.CRD, PathText(p.Path), p.Code, p.Message))
	}
	want := []string{
		"2 spec.names: SW1010: kind Ingress of group networking.k8s.io is defined by Kubernetes itself already",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	broken, _ := join(base, written{Name: "a.yaml", Object: parsed(t, bytes.Replace(widgets(t), []byte("type: object"), []byte("type: text"), 1))})
	if got, want := broken.Instead("shop.example.com/v1", "Widget"), " (its definition in a.yaml has a problem)"; got != want {
		t.Errorf("a kind of a broken definition: got %q, want %q", got, want)
	}
	if set.Kind("shop.example.com/v1", "Widget") == nil || set.Kind("networking.k8s.io/v1", "Ingress") != base.Kind("networking.k8s.io/v1", "Ingress") {
		t.Error("the first definition or the kind of Kubernetes is gone")
	}
}

func TestHash(t *testing.T) {
	widget := parsed(t, widgets(t))
	gadget := parsed(t, []byte(strings.NewReplacer("widgets", "gadgets", "kind: Widget", "kind: Gadget").Replace(string(widgets(t)))))
	changed := parsed(t, bytes.Replace(widgets(t), []byte("default: 3"), []byte("default: 4"), 1))
	a, b := written{Name: "a.yaml", Object: widget}, written{Name: "b.yaml", Object: gadget}
	both, alone, other := with(t, a, b), with(t, a), with(t, written{Name: "a.yaml", Object: changed}, b)
	of := func(s *Set, kind string) string { return s.Kind("shop.example.com/v1", kind).Hash() }
	if of(both, "Widget") != of(alone, "Widget") || of(both, "Gadget") != of(other, "Gadget") {
		t.Error("a kind's hash changes with the definition of another")
	}
	if of(both, "Widget") == of(other, "Widget") {
		t.Error("a kind's hash does not change with its own definition")
	}
	if both.Kind("v1", "Pod").Hash() != alone.Kind("v1", "Pod").Hash() {
		t.Error("the hash of Pod changes with definitions")
	}
}

func TestInstead(t *testing.T) {
	set := with(t, written{Name: "widgets.yaml", Object: parsed(t, widgets(t))})
	for name, want := range map[string]string{
		"policy/v1beta1 PodDisruptionBudget":   `, did you mean "policy/v1 PodDisruptionBudget"?`,
		"extensions/v1beta1 Ingress":           `, did you mean "networking.k8s.io/v1 Ingress"?`,
		"policy/v1beta1 PodSecurityPolicy":     "; removed in Kubernetes 1.25, Pod Security Admission takes its place",
		"shop.example.com/v1alpha1 Widget":     ` (this version is not served), did you mean "shop.example.com/v1 Widget" or "shop.example.com/v1beta1 Widget"?`,
		"shop.example.com/v1 Wigdet":           "",
		"apps/v1 Deployment":                   "",
		"flowcontrol.example.com/v1 Something": "",
	} {
		apiVersion, kind, _ := strings.Cut(name, " ")
		if got := set.Instead(apiVersion, kind); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestHostileDefinitions: schemas that are small and ask for much work.
func TestHostileDefinitions(t *testing.T) {
	d := definition{}
	nested := map[string]any{"required": []any{"a"}}
	for range 60 {
		nested = map[string]any{"anyOf": []any{nested}}
	}
	nested["type"], nested["properties"] = "object", map[string]any{"a": map[string]any{"type": "string"}}
	if found := Check(d.typ(nested, false), map[string]any{}); len(found) != 1 {
		t.Errorf("anyOf in anyOf: got %v, want one violation", found)
	}
	deep := map[string]any{"type": "string"}
	for range 10_000 {
		deep = map[string]any{"type": "array", "items": deep}
	}
	d = definition{}
	if d.typ(deep, false); len(d.violations) != 1 {
		t.Errorf("a deep schema: got %d problems, want one", len(d.violations))
	}
	patterns := map[string]any{}
	for i := range 300 {
		patterns[fmt.Sprint("p", i)] = map[string]any{"type": "string", "pattern": strings.Repeat("(a{10}){100}", 20)}
	}
	d = definition{}
	if d.typ(map[string]any{"type": "object", "properties": patterns}, false); len(d.violations) != 1 {
		t.Errorf("large patterns: got %d problems, want one", len(d.violations))
	}
	field := map[string]any{"type": "string", "default": "x"}
	for range 4 {
		below := map[string]any{}
		for i := range 4 {
			below[fmt.Sprint(i)] = field
		}
		field = map[string]any{"type": "object", "default": map[string]any{}, "properties": below}
	}
	d = definition{}
	list := d.typ(map[string]any{"type": "array", "items": field}, false)
	objects := make([]any, 2000) // of 340 defaults each
	for i := range objects {
		objects[i] = map[string]any{}
	}
	limited := defaulter{left: maxDefaults}
	limited.add(list, objects)
	if found := Check(list, objects); len(found) > 0 || limited.left != 0 {
		t.Errorf("defaults in defaults: got %v, %d left, want all used up", found, limited.left)
	}
}

// FuzzCRD reads any text as definitions of custom resources, and then as one
// of them.
func FuzzCRD(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	base, err := Kubernetes("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		docs, _ := document.ReadDocuments("x.yaml", text)
		var crds []written
		for _, doc := range docs {
			value, problems := doc.Plain(doc.Node)
			if object, ok := value.(map[string]any); ok && len(problems) == 0 {
				crds = append(crds, written{Name: "x.yaml", Object: object})
			}
		}
		set, problems := join(base, crds...)
		again, same := join(base, crds...)
		if diff := cmp.Diff(problems, same); diff != "" || len(set.kinds) != len(again.kinds) {
			t.Fatalf("twice the same, and not the same (-first +second):\n%s", diff)
		}
		for name, kind := range set.kinds {
			if base.kinds[name] != nil {
				continue
			}
			for _, crd := range crds {
				first, second := Check(kind.Type(), crd.Object), Check(kind.Type(), crd.Object)
				if diff := cmp.Diff(first, second); diff != "" {
					t.Fatalf("%s (-first +second):\n%s", name, diff)
				}
			}
		}
	})
}

// TestMetadataThatSaysNothing: a false or an empty text in the schema of metadata is what
// a server takes for nothing, and a number is not.
func TestMetadataThatSaysNothing(t *testing.T) {
	base, err := Kubernetes("")
	if err != nil {
		t.Fatal(err)
	}
	const metadata = "properties: {name: {type: string, maxLength: 20}}"
	for added, want := range map[string]int{"exclusiveMaximum: false": 0, `format: ""`: 0, "exclusiveMaximum: true": 1, "minProperties: 0": 1} {
		text := strings.Replace(string(widgets(t)), metadata, metadata+"\n            "+added, 1)
		if _, problems := join(base, written{Name: "widgets.yaml", Object: parsed(t, []byte(text))}); len(problems) != want {
			t.Errorf("%s: got %v, want %d", added, problems, want)
		}
	}
}
