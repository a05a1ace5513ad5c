// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/sync/store"
)

func TestOwnedAnnotationsAreOurs(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	text := `
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
  namespace: %s
  annotations:
    swell.sh/owned-annotations: lb.example.com/*, plain
    lb.example.com/network: ours
data: {value: "%s"}
`
	o := newObject(t, text, ns, "1")
	first := one(t, c, o, "")
	if first.Err != nil || first.Taken != nil {
		t.Fatalf("%+v", first)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	mergeAs(t, "cloud", o, `{"metadata":{"annotations":{"lb.example.com/network":"theirs","lb.example.com/extra":"x","plain":"x","other.example.com/id":"7"}}}`)
	want := []string{
		"ConfigMap/a",
		`  .metadata.annotations["lb.example.com/network"]: cloud Update`,
		`  .metadata.annotations["lb.example.com/extra"] added: cloud Update`,
		`  .metadata.annotations.plain added: cloud Update`,
	}
	if diff := cmp.Diff(want, swept(t, c, []store.Entry{first.Entry})); diff != "" {
		t.Error(diff)
	}
	r := again(t, c, o, first)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want = []string{
		".metadata.annotations.lb.example.com/network cloud (Update)",
		".metadata.annotations.plain cloud (Update)",
		`.metadata.annotations["lb.example.com/extra"] cloud (Update)`,
	}
	if diff := cmp.Diff(want, said(r.Taken)); diff != "" {
		t.Error(diff)
	}
	annotations := current(t, o).GetAnnotations()
	delete(annotations, "swell.sh/unit")
	delete(annotations, "swell.sh/owned-annotations")
	if diff := cmp.Diff(map[string]string{"lb.example.com/network": "ours", "other.example.com/id": "7"}, annotations); diff != "" {
		t.Error(diff)
	}
	if got := swept(t, c, []store.Entry{r.Entry}); got != nil {
		t.Error(got)
	}
	// One that was only added, by somebody who took none of our fields.
	mergeAs(t, "cloud", o, `{"metadata":{"annotations":{"lb.example.com/extra":"y"}}}`)
	want = []string{"ConfigMap/a", `  .metadata.annotations["lb.example.com/extra"] added: cloud Update`}
	if diff := cmp.Diff(want, swept(t, c, []store.Entry{r.Entry})); diff != "" {
		t.Error(diff)
	}
	w.take()
	if r = again(t, c, o, r); r.Err != nil || current(t, o).GetAnnotations()["lb.example.com/extra"] != "" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 2}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

func TestOwnedAnnotationsWantGlobs(t *testing.T) {
	c, w := connect(t, Options{})
	o := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/owned-annotations: 'lb[/*'}}}", space(t))
	r := one(t, c, o, "")
	if !strings.Contains(errText(r.Err), `annotation swell.sh/owned-annotations: "lb[/*" is no glob`) {
		t.Errorf("got %v", r.Err)
	}
	if n := len(w.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// An ignored annotation is its writer's, whatever the globs say.
func TestOwnedAnnotationsYieldToARule(t *testing.T) {
	c, _ := connect(t, Options{})
	rule := ignoring("ConfigMap", "/metadata/annotations/lb.example.com~1id")
	o := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/owned-annotations: 'lb.example.com/*'}}}", space(t))
	first := one(t, c, o, "")
	mergeAs(t, "cloud", o, `{"metadata":{"annotations":{"lb.example.com/id":"7","lb.example.com/x":"1"}}}`)
	want := []string{"ConfigMap/a", `  .metadata.annotations["lb.example.com/x"] added: cloud Update`}
	if diff := cmp.Diff(want, sweptBut(t, c, []store.Entry{first.Entry}, ignoredBy(rule))); diff != "" {
		t.Error(diff)
	}
	if r := again(t, c, o, first, rule); r.Err != nil {
		t.Fatal(r.Err)
	}
	annotations := current(t, o).GetAnnotations()
	if annotations["lb.example.com/id"] != "7" || annotations["lb.example.com/x"] != "" {
		t.Errorf("%v", annotations)
	}
}
