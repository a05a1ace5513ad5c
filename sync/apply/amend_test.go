// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// versions of gadgets: each as name, served, stored, and whether it has a field
// with a default.
type gadgetVersion struct {
	name                   string
	served, stored, preset bool
}

// gadgets makes or changes the definition of a group's gadgets as its owner
// would, and returns when the server goes by it.
func gadgets(t *testing.T, group string, versions ...gadgetVersion) {
	t.Helper()
	var texts []string
	for _, v := range versions {
		more := ""
		if v.preset {
			more = `,"mode":{"type":"string","default":"x"}`
		}
		texts = append(texts, fmt.Sprintf(`{"name":%q,"served":%v,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"string"}%s}}}}}}`,
			v.name, v.served, v.stored, more))
	}
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.%[1]s"},
		"spec":{"group":%[1]q,"scope":"Namespaced","names":{"kind":"Gadget","plural":"gadgets"},"versions":[%[2]s]}}`, group, strings.Join(texts, ","))
	force := true
	client := somebody(t)
	if _, err := client.Resource(crds).Patch(t.Context(), "gadgets."+group, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "owner", Force: &force}); err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		eventually(t, func() (bool, string) {
			_, err := client.Resource(gadgetsOf(group, v.name)).Namespace("default").List(t.Context(), metav1.ListOptions{})
			return (err == nil) == v.served, fmt.Sprint(v.name, ": ", err)
		})
	}
}

func gadgetsOf(group, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: "gadgets"}
}

// A definition that drops a version, with our object in it: the server refuses
// each apply over the managed fields.
func TestManagedFieldsOfADroppedVersionAreMigrated(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	group := ns + ".example.com"
	discard(t, crds, "", "gadgets."+group)
	gadgets(t, group, gadgetVersion{name: "v1beta1", served: true, stored: true}, gadgetVersion{name: "v1", served: true})
	text := "{apiVersion: %s/%s, kind: Gadget, metadata: {name: a, namespace: %s}, spec: {size: %s}}"
	first := one(t, c, newObject(t, text, group, "v1beta1", ns, "small"), "")
	if first.Err != nil {
		t.Fatal(first.Err)
	}
	gadgets(t, group, gadgetVersion{name: "v1", served: true, stored: true, preset: true}, gadgetVersion{name: "v1beta1", served: true})
	// The object is stored anew, as a migration of storage does, and then the
	// old version goes.
	client := somebody(t).Resource(gadgetsOf(group, "v1")).Namespace(ns)
	eventually(t, func() (bool, string) {
		_, err := client.Patch(t.Context(), "a", types.ApplyPatchType,
			fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":"Gadget","metadata":{"name":"a","labels":{"migrated":"yes"}}}`, group), metav1.PatchOptions{FieldManager: "migrator"})
		return err == nil, fmt.Sprint(err)
	})
	if _, err := somebody(t).Resource(crds).Patch(t.Context(), "gadgets."+group, types.MergePatchType, []byte(`{"status":{"storedVersions":["v1"]}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	gadgets(t, group, gadgetVersion{name: "v1", served: true, stored: true, preset: true})

	refused := func() error { // what an apply by anybody meets
		force := true
		_, err := client.Patch(t.Context(), "a", types.ApplyPatchType,
			fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"size":"big"}}`, group),
			metav1.PatchOptions{FieldManager: FieldManager, Force: &force, DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, func() (bool, string) {
		err := refused()
		return err != nil && strings.Contains(err.Error(), "request to convert CR to an invalid group/version"), fmt.Sprint(err)
	})
	w.take()
	r := again(t, c, newObject(t, text, group, "v1", ns, "big"), first)
	if r.Err != nil || r.Action != Configured {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 3, "GET": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	got, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"size": "big", "mode": "x"}, got.Object["spec"]); diff != "" {
		t.Error(diff)
	}
	for _, e := range got.GetManagedFields() {
		if e.APIVersion != group+"/v1" {
			t.Errorf("entry of %s in %s", e.Manager, e.APIVersion)
		}
	}
	// And so it stays: one request for the next change.
	if r = again(t, c, newObject(t, text, group, "v1", ns, "tiny"), r); r.Err != nil {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

// A version that lacks a field which the new one sets by default is as bad while
// it is served; also where the state was lost and the object is met anew.
func TestManagedFieldsOfAnOlderVersionAreMigrated(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	group := ns + ".example.com"
	discard(t, crds, "", "gadgets."+group)
	gadgets(t, group, gadgetVersion{name: "v1beta1", served: true, stored: true}, gadgetVersion{name: "v1", served: true})
	text := "{apiVersion: %s/%s, kind: Gadget, metadata: {name: %s, namespace: %s}, spec: {size: %s}}"
	known := one(t, c, newObject(t, text, group, "v1beta1", "a", ns, "small"), "")
	if lost := one(t, c, newObject(t, text, group, "v1beta1", "b", ns, "small"), ""); known.Err != nil || lost.Err != nil {
		t.Fatal(known.Err, lost.Err)
	}
	gadgets(t, group, gadgetVersion{name: "v1beta1", served: true}, gadgetVersion{name: "v1", served: true, stored: true, preset: true})
	client := somebody(t).Resource(gadgetsOf(group, "v1")).Namespace(ns)
	eventually(t, func() (bool, string) {
		_, err := client.Patch(t.Context(), "a", types.ApplyPatchType,
			fmt.Appendf(nil, `{"apiVersion":"%s/v1","kind":"Gadget","metadata":{"name":"a"},"spec":{"mode":"y"}}`, group),
			metav1.PatchOptions{FieldManager: "other", DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "field not declared in schema") && !strings.Contains(err.Error(), "typed patch"), fmt.Sprint(err)
	})
	if r := again(t, c, newObject(t, text, group, "v1", "a", ns, "big"), known); r.Err != nil || r.Action != Configured {
		t.Errorf("%+v", r)
	}
	if r := one(t, c, newObject(t, text, group, "v1", "b", ns, "big"), config.AdoptNever); r.Err != nil || r.Action != Configured {
		t.Errorf("%+v", r)
	}
	// But what is wrong with the object itself is said as it is.
	r := one(t, c, newObject(t, strings.Replace(text, "size:", "sise:", 1), group, "v1", "c", ns, "big"), "")
	if !strings.Contains(errText(r.Err), "failed to create typed patch object") {
		t.Errorf("got %v", r.Err)
	}
}

// Somebody writes between our look and our patch: what we send holds for what
// we saw, so we look again.
func TestAmendSeesEveryWriteInBetween(t *testing.T) {
	cfg := apiServer(t)
	o := configMap(t, space(t), "a", "1")
	var writes atomic.Int32
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.Header.Get("Content-Type"), "json-patch") && writes.Add(1) <= 2 {
				mergeAs(t, "controller", o, fmt.Sprintf(`{"data":{"n":"%d"}}`, writes.Load()))
			}
			return next.RoundTrip(r)
		})
	})
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	rule := ignoring("ConfigMap", "/data/value")
	r := c.Apply(t.Context(), Work{Objects: []*object.Object{o}, Ignore: []config.IgnoreRule{rule}})[0]
	if r.Err != nil || writes.Load() != 3 {
		t.Fatalf("%d patches of metadata, %+v", writes.Load(), r)
	}
	got := current(t, o)
	if diff := cmp.Diff([]string{"controller Update", "swell Apply"}, managers(got)); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(r.Entry.Fields, "f:value") {
		t.Errorf("still ours: %s", r.Entry.Fields)
	}
}

// What is to be removed goes in between: that is no error.
func TestAmendOfWhatHasGoneMeanwhile(t *testing.T) {
	cfg := apiServer(t)
	o := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/owned-annotations: 'example.com/*'}}}", space(t))
	var writes atomic.Int32
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.Header.Get("Content-Type"), "json-patch") && writes.Add(1) == 1 {
				mergeAs(t, "controller", o, `{"metadata":{"annotations":{"example.com/a":null}}}`)
			}
			return next.RoundTrip(r)
		})
	})
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := one(t, c, o, "")
	mergeAs(t, "controller", o, `{"metadata":{"annotations":{"example.com/a":"1","example.com/b":"1"}}}`)
	if r := again(t, c, o, first); r.Err != nil || writes.Load() != 2 {
		t.Errorf("%d patches of metadata, %+v", writes.Load(), r)
	}
	for key := range current(t, o).GetAnnotations() {
		if strings.HasPrefix(key, "example.com/") {
			t.Errorf("%s is still there", key)
		}
	}
}
