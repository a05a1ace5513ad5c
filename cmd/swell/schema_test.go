// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/schema/easy"
	"github.com/swell-sh/swell/render/schema/schematest"
)

const example = "../../testdata/monorepo"

func exampleKinds(t *testing.T) *easyKinds {
	t.Helper()
	var stderr strings.Builder
	kinds, err := (&repoFlags{in: ofProcess(), repo: example}).easyKinds(&stderr)
	if err != nil || len(kinds.broken) > 0 || len(kinds.picked) == 0 {
		t.Fatal(err, kinds, stderr.String())
	}
	return kinds
}

// documentsOf reads all documents of the example, with the texts of their
// files.
func documentsOf(t *testing.T, visit func(file string, doc *document.Document)) {
	t.Helper()
	err := filepath.WalkDir(example, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(name) != ".yaml" || slices.Contains(config.KustomizationFiles, e.Name()) ||
			strings.HasPrefix(name, filepath.Join(example, "data")+"/") {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		docs, problems := document.ReadDocuments(name, content)
		if len(problems) > 0 {
			return problems
		}
		for _, doc := range docs {
			visit(name, doc)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestExampleFitsEditorSchema: no document of the example is underlined, and a
// misspelt field of each is.
func TestExampleFitsEditorSchema(t *testing.T) {
	kinds := exampleKinds(t)
	text, err := indentJSON(easy.EditorSchema(slices.Concat(kinds.picked, kinds.own), config.OwnDocuments(), true))
	if err != nil {
		t.Fatal(err)
	}
	_, s, err := schematest.Compile(string(text))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{config.APIVersion: true}
	for _, e := range kinds.picked {
		known[e.APIVersion()] = true
	}
	checked := 0
	documentsOf(t, func(file string, doc *document.Document) {
		plain, problems := doc.Plain(doc.Node)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if err := s.Validate(plain); err != nil {
			t.Errorf("%s: %s %s: %v", file, doc.Kind, doc.Name, err)
		}
		spec, ok := plain.(map[string]any)["spec"].(map[string]any)
		if !ok || !known[doc.APIVersion] {
			return
		}
		checked++
		spec["misspelt"] = "x"
		var invalid *jsonschema.ValidationError
		if err := s.Validate(plain); !errors.As(err, &invalid) || !strings.Contains(fmt.Sprintf("%v", invalid), "at '/spec': additional properties 'misspelt' not allowed") {
			t.Errorf("%s: %s %s with a misspelt field: %v", file, doc.Kind, doc.Name, err)
		}
	})
	if checked < 10 {
		t.Errorf("only %d documents were checked", checked)
	}
}

// crdServer is a real API server.
type crdServer struct {
	*testing.T
	client dynamic.Interface
}

func newCRDServer(t *testing.T) *crdServer {
	t.Helper()
	cfg, err := shared.Clusters(t).Config("dev-3")
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &crdServer{t, client}
}

func (s *crdServer) apply(where dynamic.ResourceInterface, manager string, object map[string]any) (*unstructured.Unstructured, error) {
	s.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		s.Fatal(err)
	}
	name, _, _ := unstructured.NestedString(object, "metadata", "name")
	return where.Patch(s.Context(), name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: new(true), FieldValidation: metav1.FieldValidationStrict})
}

// define creates the kind's definition and waits until objects can be had.
func (s *crdServer) define(e *easy.Schema) dynamic.ResourceInterface {
	s.Helper()
	definitions := s.client.Resource(apischema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd := e.CRD()
	if _, err := s.apply(definitions, "test", crd); err != nil {
		s.Fatalf("%s: %v", e.Kind, err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Minute)
	defer cancel()
	events, err := definitions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + e.Plural + "." + e.Group})
	if err != nil {
		s.Fatal(err)
	}
	defer events.Stop()
	var last any
	for event := range events.ResultChan() {
		conditions, _, _ := unstructured.NestedSlice(event.Object.(*unstructured.Unstructured).Object, "status", "conditions")
		last = conditions
		true := map[string]bool{}
		for _, c := range conditions {
			condition := c.(map[string]any)
			true[condition["type"].(string)] = condition["status"] == "True"
		}
		if true["NonStructuralSchema"] {
			s.Fatalf("%s: %v", e.Kind, conditions)
		}
		if true["Established"] && true["NamesAccepted"] {
			return s.resource(e, crd)
		}
	}
	s.Fatalf("%s: not established: %v", e.Kind, last)
	return nil
}

// resource is where objects of the kind are; it waits until the server has it.
func (s *crdServer) resource(e *easy.Schema, crd map[string]any) dynamic.ResourceInterface {
	s.Helper()
	all := s.client.Resource(apischema.GroupVersionResource{Group: e.Group, Version: "v1", Resource: e.Plural})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(5 * time.Minute)
	for {
		_, err := all.List(s.Context(), metav1.ListOptions{})
		if err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-deadline:
			s.Fatalf("%s: %v", e.Kind, err)
		}
	}
	if scope, _, _ := unstructured.NestedString(crd, "spec", "scope"); scope == "Cluster" {
		return all
	}
	return all.Namespace("default")
}

// applyTwice applies an object, compares what the server has with it, and
// applies it again, which must change nothing.
func (s *crdServer) applyTwice(where dynamic.ResourceInterface, object map[string]any) {
	s.Helper()
	first, err := s.apply(where, "test", object)
	if err != nil {
		s.Fatalf("%v: %v", object["kind"], err)
	}
	if diff := cmp.Diff(plainOf(s.T, object["spec"]), plainOf(s.T, first.Object["spec"])); diff != "" {
		s.Errorf("%v: the server has another spec (-sent +has):\n%s", object["kind"], diff)
	}
	second, err := s.apply(where, "test", object)
	if err != nil {
		s.Fatalf("%v: %v", object["kind"], err)
	}
	if first.GetResourceVersion() == "" || first.GetResourceVersion() != second.GetResourceVersion() {
		s.Errorf("%v: resourceVersion %q, then %q", object["kind"], first.GetResourceVersion(), second.GetResourceVersion())
	}
}

func plainOf(t *testing.T, value any) (plain any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// TestExampleKindsOnAServer: a real API server takes the definitions of all
// kinds of the example, and a spec of each.
func TestExampleKindsOnAServer(t *testing.T) {
	t.Parallel()
	kinds := exampleKinds(t)
	specs := map[string]map[string]any{} // the first of each kind
	for _, e := range kinds.picked {
		envelope, err := document.Envelope(e.Message())
		if err != nil {
			t.Fatal(err)
		}
		documentsOf(t, func(file string, doc *document.Document) {
			name := e.APIVersion() + " " + e.Kind
			if specs[name] != nil || doc.APIVersion+" "+doc.Kind != name {
				return
			}
			read := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(file), name)) }
			message, problems := doc.Decode(envelope, document.Decoding{File: read, Lift: []string{"override"}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			var object map[string]any
			if err := json.Unmarshal(text, &object); err != nil {
				t.Fatal(err)
			}
			specs[name] = e.OnServer(object)
		})
	}
	s := newCRDServer(t)
	for _, e := range kinds.picked {
		spec := specs[e.APIVersion()+" "+e.Kind]
		if spec == nil {
			t.Errorf("no unit of the example has a %s", e.Kind)
			continue
		}
		s.applyTwice(s.define(e), spec)
	}
}

// TestEveryFormOnAServer: a real API server takes definitions with everything
// that a message can have, and holds what they say.
func TestEveryFormOnAServer(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("../../render/schema/easy/testdata/*.txtar")
	if err != nil || len(archives) < 2 {
		t.Fatal(archives, err)
	}
	s := newCRDServer(t)
	resources := map[string]dynamic.ResourceInterface{}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		e := easyOfArchive(t, archive)
		resources[e.Kind] = s.define(e)
	}
	s.immutableItem(resources["Costs"])
	where := resources["Everything"]
	everything := func(spec string) map[string]any {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte("apiVersion: easy.example.com/v1\nkind: Everything\nmetadata: {name: a}\nspec: "+spec), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	const whole = `{text: x, unknown: [a], best: {name: x, unknown: {a: b}}, bytes: aGk=, bool: true, int32: -1, uint32: 4294967295, int64: "9223372036854775807", uint64: 1, double: 1.5,
		color: PURPLE, colors: [0, RED], labels: {a: b}, byNumber: {"1": {name: x}}, byBool: {"true": 1}, duration: 1h30m,
		timestamp: "2006-01-02T15:04:05Z", value: [1, {a: b}], struct: {a: {b: c}}, listValue: [1, a, {}], any: {"@type": x}, empty: {}, mask: a,
		in: here, namespace: x, tree: {name: a, children: [{name: b, children: [{name: c}]}]}, trees: [{name: a, children: [{anything: 1}]}],
		old: {size: 1, item: [{name: a}]}, names: [a, b], byKeys: [{number: 53, protocol: TCP}, {number: 53, protocol: UDP}], region: sas,
		override: {deployment: {update: []}}, bounds: [{a: x}]}`
	s.applyTwice(where, everything(whole))
	// Another writer has its own items of a list with keys.
	both, err := s.apply(where, "other", everything(`{byKeys: [{number: 80, protocol: TCP, name: http}], names: [c]}`))
	if err != nil {
		t.Fatal(err)
	}
	keys, _, _ := unstructured.NestedSlice(both.Object, "spec", "byKeys")
	names, _, _ := unstructured.NestedStringSlice(both.Object, "spec", "names")
	if len(keys) != 3 || len(names) != 3 {
		t.Errorf("two writers: got byKeys %v and names %v", keys, names)
	}
	for _, test := range []struct{ from, to, want string }{
		{"namespace: x", "namespace: x, __way__out: 1", "at most one of namespace, __way__out may be set"},
		{"in: here", "in: here, anything: 1", "must validate one and only one schema"},
		{"bounds: [{a: x}]", "bounds: [{a: x, b: z}]", "at most one of a, b may be set"},
		{"region: sas", "region: vla", "region cannot be changed once it is set"},
		{"region: sas,", "", "region cannot be changed once it is set"},
		{"byKeys: [{number: 53, ", "byKeys: [{number: 53, protocol: UDP}, {number: 53, ", "duplicate entries for key"},
		{"bool: true", "bool: x", "expected boolean, got"},
	} {
		if !strings.Contains(whole, test.from) {
			t.Fatalf("%q: not in the spec", test.from)
		}
		_, err := s.apply(where, "test", everything(strings.Replace(whole, test.from, test.to, 1)))
		if err == nil || !strings.Contains(err.Error(), test.want) || !(apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err)) {
			t.Errorf("%s: got %v, want %q", test.to, err, test.want)
		}
	}
}

// immutableItem: a field of an item cannot change, while items
// come and go.
func (s *crdServer) immutableItem(where dynamic.ResourceInterface) {
	s.Helper()
	costs := func(items string) map[string]any {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte("apiVersion: easy.example.com/v1\nkind: Costs\nmetadata: {name: a}\nspec: {items: "+items+"}"), &object); err != nil {
			s.Fatal(err)
		}
		return object
	}
	s.applyTwice(where, costs("[{name: a, zone: x}, {name: b}]"))
	s.applyTwice(where, costs("[{name: c, zone: z}, {name: b, zone: v}, {name: a, zone: x}]"))
	_, err := s.apply(where, "test", costs("[{name: a, zone: z}]"))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "zone cannot be changed once it is set") {
		s.Errorf("a changed field of an item: %v", err)
	}
	s.applyTwice(where, costs("[{name: c, zone: z}]"))
	s.applyTwice(where, costs("[{name: a, zone: z}]"))
}

func easyOfArchive(t *testing.T, archive *txtar.Archive) *easy.Schema {
	t.Helper()
	file, problems := document.CompileProto(archive.Files[0].Name, func(name string) ([]byte, error) {
		if content, ok := easy.ProtoFile(name); ok {
			return content, nil
		}
		for _, f := range archive.Files {
			if f.Name == name {
				return f.Data, nil
			}
		}
		return nil, fs.ErrNotExist
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := easy.New(file.Messages().Get(0))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}
