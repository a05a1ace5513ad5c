// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

func ignoring(kind string, fields ...string) config.IgnoreRule {
	return config.IgnoreRule{Kind: kind, Fields: fields}
}

func ignoredBy(rules ...config.IgnoreRule) Ignored {
	return func(store.Entry) []config.IgnoreRule { return rules }
}

func TestIgnoredFieldsAreSetOnceAndThenLeft(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	rule := ignoring("ConfigMap", "/data/theirs", "/metadata/annotations/example.com~1note")
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {example.com/note: '%[2]s'}}, data: {ours: '%[2]s', theirs: '%[2]s'}}"
	o := newObject(t, text, ns, "1")
	first := c.Apply(t.Context(), Work{Objects: []*object.Object{o}, Ignore: []config.IgnoreRule{rule}})[0]
	if first.Err != nil || first.Action != Created || first.Warnings != nil {
		t.Fatalf("%+v", first)
	}
	data := func() map[string]any {
		got := current(t, o)
		data := got.Object["data"].(map[string]any)
		data["note"] = got.GetAnnotations()["example.com/note"]
		return data
	}
	if diff := cmp.Diff(map[string]any{"ours": "1", "theirs": "1", "note": "1"}, data()); diff != "" {
		t.Error(diff)
	}
	// Another value in Git, and nobody who set one: the field is not ours, so it
	// neither changes nor goes.
	second := again(t, c, newObject(t, text, ns, "2"), first, rule)
	if second.Err != nil || second.Warnings != nil {
		t.Fatalf("%+v", second)
	}
	if diff := cmp.Diff(map[string]any{"ours": "2", "theirs": "1", "note": "1"}, data()); diff != "" {
		t.Error(diff)
	}
	// Somebody sets one: neither drift nor a conflict.
	mergeAs(t, "owner", o, `{"data":{"theirs":"x"},"metadata":{"annotations":{"example.com/note":null}}}`)
	if drifts := swept(t, c, []store.Entry{second.Entry}); drifts != nil {
		t.Error(drifts)
	}
	third := again(t, c, newObject(t, text, ns, "3"), second, rule)
	if third.Err != nil || third.Taken != nil {
		t.Fatalf("%+v", third)
	}
	if diff := cmp.Diff(map[string]any{"ours": "3", "theirs": "x", "note": ""}, data()); diff != "" {
		t.Error(diff)
	}
}

// A rule that comes when the field is ours already: what is there stays.
func TestIgnoredFieldsAreLetGoWhenARuleIsNew(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	first := one(t, c, newObject(t, scalable, ns, 3, "a"), "")
	rule := config.IgnoreRule{Kind: "Deployment", Object: "web", Fields: []string{"/spec/replicas", "/spec/template/spec/containers/0/image"}}
	r := again(t, c, newObject(t, scalable, ns, 1, "b"), first, rule)
	if r.Err != nil || r.Warnings != nil {
		t.Fatalf("%+v", r)
	}
	o := newObject(t, scalable, ns, 1, "b")
	if n := replicas(t, current(t, o).Object["spec"]); n != 3 {
		t.Errorf("%d replicas", n)
	}
	if got := mainImage(t, o); got != "a" {
		t.Errorf("image %q", got)
	}
	mergeAs(t, "vpa", o, `{"spec":{"replicas":4}}`)
	if drifts := swept(t, c, []store.Entry{r.Entry}); drifts != nil {
		t.Error(drifts)
	}
}

func mainImage(t *testing.T, o *object.Object) string {
	t.Helper()
	spec := current(t, o).Object["spec"].(map[string]any)
	for _, step := range []string{"template", "spec"} {
		spec = spec[step].(map[string]any)
	}
	image, _ := spec["containers"].([]any)[0].(map[string]any)["image"].(string)
	return image
}

// Until the next apply a new rule keeps the loss of its fields from being drift.
func TestIgnoredFieldsAreNoDrift(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	o := newObject(t, scalable, ns, 3, "a")
	first := one(t, c, o, "")
	mergeAs(t, "vpa", o, `{"spec":{"replicas":4}}`)
	mergeAs(t, "kubectl-edit", o, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"c"}]}}}}`)
	for _, test := range []struct {
		rules []config.IgnoreRule
		want  []string
	}{
		{nil, []string{"Deployment/web", "  .spec.replicas: vpa Update", `  .spec.template.spec.containers[name="main"].image: kubectl-edit Update`}},
		{[]config.IgnoreRule{ignoring("Deployment", "/spec/replicas")}, []string{"Deployment/web", `  .spec.template.spec.containers[name="main"].image: kubectl-edit Update`}},
		{[]config.IgnoreRule{ignoring("Deployment", "/spec/replicas", "/spec/template/spec/containers/name=main/image")}, nil},
		{[]config.IgnoreRule{ignoring("Deployment", "/spec")}, nil},
		{[]config.IgnoreRule{ignoring("StatefulSet", "/spec")}, []string{"Deployment/web", "  .spec.replicas: vpa Update", `  .spec.template.spec.containers[name="main"].image: kubectl-edit Update`}},
	} {
		if diff := cmp.Diff(test.want, sweptBut(t, c, []store.Entry{first.Entry}, ignoredBy(test.rules...))); diff != "" {
			t.Errorf("%v: %s", test.rules, diff)
		}
		_, drifts, err := c.Health(t.Context(), Work{Objects: []*object.Object{o}, Known: map[object.ID]store.Entry{o.ID: first.Entry}, Ignore: test.rules})
		if err != nil || (len(drifts) > 0) != (test.want != nil) {
			t.Errorf("%v: health says %v, %v", test.rules, drifts, err)
		}
	}
}

// An ignored field of an object that somebody else made is theirs.
func TestIgnoredFieldsAtFirstContact(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	applyAs(t, "other", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: theirs}}")
	r := c.Apply(t.Context(), Work{Objects: []*object.Object{o}, Ignore: []config.IgnoreRule{ignoring("ConfigMap", "/data/value")}})[0]
	if r.Err != nil || r.Adopted != "other (Apply)" {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(map[string]any{"value": "theirs"}, current(t, o).Object["data"]); diff != "" {
		t.Error(diff)
	}
}

// A deleted object is made anew with all its fields.
func TestIgnoredFieldsAreSetAgainWhenTheObjectWasDeleted(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	rule := ignoring("ConfigMap", "/data/value")
	first := c.Apply(t.Context(), Work{Objects: []*object.Object{o}, Ignore: []config.IgnoreRule{rule}})[0]
	discardNow(t, o)
	r := again(t, c, o, first, rule)
	if r.Err != nil || r.Action != Created {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(map[string]any{"value": "1"}, current(t, o).Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestPointers(t *testing.T) {
	const text = `{"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["p","q"],"":3}`
	for _, test := range []struct{ pointer, want string }{
		{"/a/b~1c", `{"":3,"a":{"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["p","q"]}`},
		{"/a/d~0e", `{"":3,"a":{"b/c":1},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["p","q"]}`},
		{"/list/1", `{"":3,"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"port":80}],"set":["p","q"]}`},
		{"/list/name=x/v", `{"":3,"a":{"b/c":1,"d~e":2},"list":[{"name":"x"},{"name":"y","v":2},{"port":80}],"set":["p","q"]}`},
		{"/list/port=80", `{"":3,"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2}],"set":["p","q"]}`},
		{"/set/0", `{"":3,"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["q"]}`},
		{"/", `{"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["p","q"]}`},
		{"/nothing/here", `{"":3,"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["p","q"]}`},
		{"/list/7/v", `{"":3,"a":{"b/c":1,"d~e":2},"list":[{"name":"x","v":1},{"name":"y","v":2},{"port":80}],"set":["p","q"]}`},
	} {
		got, err := json.Marshal(without(decoded(t, text), []pointer{config.PointerSegments(test.pointer)}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, string(got)); diff != "" {
			t.Errorf("%s: %s", test.pointer, diff)
		}
	}
	both, err := json.Marshal(without(decoded(t, `{"l":[1,2,3]}`), []pointer{{"l", "0"}, {"l", "1"}}))
	if err != nil || string(both) != `{"l":[3]}` {
		t.Errorf("got %s, %v", both, err)
	}
}

func TestPointersCoverManagedFields(t *testing.T) {
	object := decoded(t, `{"ports":[{"port":80},{"port":443,"protocol":"TCP"}],"set":["p","q"],"a":{"b":1}}`)
	key := func(port int64) fieldpath.PathElement {
		return fieldpath.PathElement{Key: fieldpath.KeyByFields("port", port, "protocol", "TCP")}
	}
	port443 := fieldpath.MakePathOrDie("ports", key(443), "protocol")
	port80 := fieldpath.MakePathOrDie("ports", key(80), "protocol")
	b := fieldpath.MakePathOrDie("a", "b")
	for _, test := range []struct {
		pointer string
		path    fieldpath.Path
		object  any
		want    bool
	}{
		{"/ports/1", port443, object, true},
		{"/ports/1", port80, object, false},
		{"/ports/0/protocol", port80, object, true}, // the key that Git leaves to the default
		{"/ports/1", port443, nil, false},           // an index of nothing
		{"/ports/port=443/protocol", port443, nil, true},
		{"/ports/port=80/protocol", port443, nil, false},
		{"/ports", port443, nil, true},
		{"/a/b/c", b, object, false}, // what holds more is not covered by less
		{"/a", b, nil, true},
		{"/b", b, nil, false},
	} {
		if got := covers([]pointer{config.PointerSegments(test.pointer)}, test.path, test.object); got != test.want {
			t.Errorf("%s and %s: got %v", test.pointer, test.path, got)
		}
	}
}
