// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/store"
)

// TestOthers: objects of others in a Namespace are counted, and neither our own, nor those that
// the cluster makes, nor those that belong to another object.
func TestOthers(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	applied(t, c, configMap(t, ns, "ours", "1"))
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+ns+"}}")
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs-too, namespace: "+ns+"}}")
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: child, namespace: "+ns+
		", ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: a, uid: x, controller: true}]}}")
	counts, unknown, err := c.Others(t.Context(), object.ID{Kind: "Namespace", Name: ns})
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown %q, %v", unknown, err)
	}
	same(t, map[string]int{"ConfigMap": 2}, counts)
}

// TestOthersOfADefinition: of a definition all objects go with it, in whatever Namespace, and those
// of others are counted, once, however many versions of them are served. While it is stuck, its own
// condition says why.
func TestOthersOfADefinition(t *testing.T) {
	t.Parallel()
	server := simulator.New()
	c, err := Connect(server.Config(), testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	somebody, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	definition := newObject(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  conversion: {strategy: None}
  versions:
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`)
	widget := newObject(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: ours, namespace: default}}")
	entry := applied(t, c, definition, widget)[0]
	widgets := somebody.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	theirs := func(name, namespace string, owners ...any) {
		t.Helper()
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name, "ownerReferences": owners}}}
		if _, err := widgets.Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	theirs("a", "default")
	theirs("a", "kube-system")
	theirs("child", "default", map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "x", "controller": true})
	counts, unknown, err := c.Others(t.Context(), entry.ID)
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown %q, %v", unknown, err)
	}
	same(t, map[string]int{"Widget": 2}, counts)

	definitions := somebody.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	patch := func(body string, subresource ...string) {
		t.Helper()
		as := metav1.PatchOptions{}
		if _, err := definitions.Patch(t.Context(), entry.ID.Name, types.MergePatchType, []byte(body), as, subresource...); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"finalizers":["example.com/wait"]}}`)
	if r := c.Prune(t.Context(), []store.Entry{entry})[0]; r.Action != Deleted || r.Forget {
		t.Fatalf("%+v", r)
	}
	patch(`{"status":{"conditions":[{"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"accepted"},`+
		`{"type":"Terminating","status":"True","reason":"InstanceDeletionInProgress","message":"2 instances are left"}]}}`, "status")
	if r := c.Prune(t.Context(), []store.Entry{entry})[0]; !strings.HasSuffix(r.Reason, ": 2 instances are left") {
		t.Errorf("%+v", r)
	}
}
