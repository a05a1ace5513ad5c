// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// patch changes an object in dev-2 as somebody else.
func (w *world) patch(resource schema.GroupVersionResource, namespace, name, patch string) {
	w.Helper()
	_, err := w.client("dev-2").Resource(resource).Namespace(namespace).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	w.must(err)
}

// entry says whether the inventory has a ConfigMap of app on dev-2/c.
func (w *world) entry(name string) bool {
	w.Helper()
	inventory, err := w.store.Inventory("services/app", "dev-2/c")
	w.must(err)
	for id := range inventory {
		if id.Kind == "ConfigMap" && id.Name == name {
			return true
		}
	}
	return false
}

// TestFinalizerBlocksAPrune: the entry stays until the server says that the
// object is gone; what it waits for is shown; one DELETE is enough.
func TestFinalizerBlocksAPrune(t *testing.T) { simulated(t, testFinalizerBlocksAPrune) }

func testFinalizerBlocksAPrune(t *testing.T, w *world) {
	w.release()
	ns := w.tenant + "-c"
	w.patch(configMaps, ns, "one", `{"metadata":{"finalizers":["example.com/wait"]}}`)
	w.app("app", "1")
	w.commit()
	w.deletes()
	w.soaked("app", 2)
	w.until("the tombstone", func() bool { return strings.Contains(w.unit("app").Targets["dev-2/c"].Reason, "terminating") })
	w.want("what it waits for", w.unit("app").Targets["dev-2/c"].Reason, "ConfigMap/"+ns+"/one: terminating, waits for example.com/wait")
	w.idleOf("example.com/wait", func() bool { return w.entry("one") })
	if n := w.deletes(); n != 3 { // one for each target
		t.Errorf("%d DELETE requests, want 3", n)
	}
	if live := w.get("dev-2/c", configMaps, "one"); live == nil || len(live.GetFinalizers()) != 1 {
		t.Errorf("the finalizer was stripped: %v", live)
	}
	w.patch(configMaps, ns, "one", `{"metadata":{"finalizers":null}}`)
	w.until("the end", func() bool { return !w.entry("one") && w.unit("app").Targets["dev-2/c"].Reason == "" })
}

// idleOf makes passes over half an hour in which the reason on dev-2/c stays.
func (w *world) idleOf(reason string, ok func() bool) {
	w.Helper()
	for range 10 {
		w.pass()
		w.now = w.now.Add(3 * time.Minute)
		if is := w.unit("app").Targets["dev-2/c"].Reason; !strings.Contains(is, reason) || !ok() {
			w.Errorf("reason %q, want %q in it\n%s", is, reason, w.describe())
		}
	}
}

// TestDeniedDelete: admission denies a delete: that object stays, with the
// reason, and is tried again; the others go.
func TestDeniedDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app("app", "1", "one", "two")
	w.commit()
	w.release()
	ns := w.tenant + "-c"
	policies := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
	client := w.client("dev-2")
	for _, o := range []struct {
		resource schema.GroupVersionResource
		kind     string
		spec     map[string]any
	}{
		{policies, "ValidatingAdmissionPolicy", map[string]any{
			"failurePolicy": "Fail",
			"matchConstraints": map[string]any{
				"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": ns}},
				"resourceRules":     []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"DELETE"}, "resources": []any{"configmaps"}}},
			},
			"validations": []any{map[string]any{"expression": "oldObject.metadata.name != 'one'", "message": "one is not to be deleted"}},
		}},
		{bindings, "ValidatingAdmissionPolicyBinding", map[string]any{"policyName": ns, "validationActions": []any{"Deny"}}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": o.kind,
			"metadata": map[string]any{"name": ns}, "spec": o.spec}}
		_, err := client.Resource(o.resource).Create(t.Context(), object, metav1.CreateOptions{})
		w.must(err)
	}
	allow := func() error { return client.Resource(bindings).Delete(w.Context(), ns, metav1.DeleteOptions{}) }
	w.until("the policy", func() bool {
		err := client.Resource(configMaps).Namespace(ns).Delete(t.Context(), "one", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "one is not to be deleted")
	})
	w.app("app", "1")
	w.commit()
	w.soaked("app", 2)
	w.until("the other deletions", func() bool {
		return w.get("dev-2/c", configMaps, "two") == nil && w.get("dev-1/b", configMaps, "one") == nil
	})
	w.until("the refusal", func() bool { return w.unit("app").Targets["dev-2/c"].Reason != "" })
	w.idleOf("one is not to be deleted", func() bool { return w.entry("one") && w.get("dev-2/c", configMaps, "one") != nil })
	w.must(allow())
	w.until("the deletion", w.soon(func() bool { return w.get("dev-2/c", configMaps, "one") == nil && !w.entry("one") }))
}

// recreate makes somebody's ConfigMap that looks like ours in place of our own.
func (w *world) recreate(name string) (uid types.UID) {
	w.Helper()
	maps := w.client("dev-2").Resource(configMaps).Namespace(w.tenant + "-c")
	old, err := maps.Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	w.must(maps.Delete(w.Context(), name, metav1.DeleteOptions{}))
	anew := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	anew.SetLabels(old.GetLabels())
	anew.SetAnnotations(old.GetAnnotations())
	body, err := anew.MarshalJSON()
	w.must(err)
	made, err := maps.Patch(w.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "swell"})
	w.must(err)
	return made.GetUID()
}

// TestRecreatedBeforeADelete: object deleted and recreated by someone before our
// delete: it is another one, and stays.
func TestRecreatedBeforeADelete(t *testing.T) { simulated(t, testRecreatedBeforeADelete) }

func testRecreatedBeforeADelete(t *testing.T, w *world) {
	w.release()
	uid := w.recreate("one")
	w.app("app", "1")
	w.commit()
	w.soaked("app", 2)
	w.until("the end", func() bool { return !w.entry("one") })
	if live := w.get("dev-2/c", configMaps, "one"); live == nil || live.GetUID() != uid {
		t.Errorf("somebody's object: %v", live)
	}
}

// proxied calls before with every request to dev-2.
func (w *world) proxied(before func(*http.Request)) {
	w.stop()
	w.simulated["dev-2"].Fault = func(r *http.Request) (*http.Response, error) {
		before(r)
		return nil, nil
	}
	w.start()
}

// TestRecreatedWhileDeleting: the same between our look at the object and our
// DELETE.
func TestRecreatedWhileDeleting(t *testing.T) { simulated(t, testRecreatedWhileDeleting) }

func testRecreatedWhileDeleting(t *testing.T, w *world) {
	w.release()
	var once atomic.Bool
	uid := make(chan types.UID, 1)
	w.proxied(func(r *http.Request) {
		if r.Method == http.MethodDelete && once.CompareAndSwap(false, true) {
			uid <- w.recreate("one")
		}
	})
	w.app("app", "1")
	w.commit()
	w.soaked("app", 2)
	w.until("the end", func() bool { return !w.entry("one") })
	if live := w.get("dev-2/c", configMaps, "one"); live == nil || live.GetUID() != <-uid {
		t.Errorf("somebody's object: %v", live)
	}
}

// TestApprovedObjectChanges: what was approved changes between our look and our
// DELETE: it is not deleted, and takes approval again.
func TestApprovedObjectChanges(t *testing.T) { simulated(t, testApprovedObjectChanges) }

func testApprovedObjectChanges(t *testing.T, w *world) {
	ns := w.stateful()
	var armed atomic.Bool
	w.proxied(func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/persistentvolumeclaims/disk") && armed.CompareAndSwap(true, false) {
			w.patch(claims, ns, "disk", `{"metadata":{"annotations":{"example.com/in-use":"yes"}}}`)
		}
	})
	w.drop("data")
	armed.Store(true)
	w.approve(w.plan())
	w.until("the refusal", func() bool {
		plans := w.plans()
		return !armed.Load() && len(plans) == 1 && len(plans[0].Deletions) == 1 && plans[0].Deletions[0].Kind == "PersistentVolumeClaim"
	})
	w.until("the others", func() bool { return !w.exists(statefulSets, ns, "store") && !w.exists(configMaps, ns, "settings") })
	w.idle(time.Hour)
	if !w.exists(claims, ns, "disk") || !w.exists(namespaces, "", ns) {
		t.Errorf("the claim that changed, or the namespace that it is in, is gone\n%s", w.describe())
	}
	w.approve(w.plan())
	w.until("the end", w.soon(func() bool { return w.unit("data") == nil }))
}

// TestApprovedWorkloadChanges: what a StatefulSet may need stays with it when it is the one that
// changes between our look and our DELETE.
func TestApprovedWorkloadChanges(t *testing.T) { simulated(t, testApprovedWorkloadChanges) }

func testApprovedWorkloadChanges(t *testing.T, w *world) {
	ns := w.stateful()
	var armed atomic.Bool
	w.proxied(func(r *http.Request) {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/statefulsets/store") && armed.CompareAndSwap(true, false) {
			w.patch(statefulSets, ns, "store", `{"spec":{"replicas":3}}`)
		}
	})
	w.drop("data")
	armed.Store(true)
	w.approve(w.plan())
	w.until("the refusal", func() bool {
		plans, isWorkload := w.plans(), func(d store.Deletion) bool { return d.Kind == "StatefulSet" }
		return !armed.Load() && len(plans) == 1 && slices.ContainsFunc(plans[0].Deletions, isWorkload)
	})
	w.idle(time.Hour)
	for kind, stays := range map[string]bool{
		"StatefulSet": w.exists(statefulSets, ns, "store"), "ConfigMap": w.exists(configMaps, ns, "settings"),
		"PersistentVolumeClaim": w.exists(claims, ns, "disk"), "Namespace": w.exists(namespaces, "", ns),
	} {
		if !stays {
			t.Errorf("the %s is gone\n%s", kind, w.describe())
		}
	}
	w.approve(w.plan())
	w.until("the end", w.soon(func() bool { return w.unit("data") == nil }))
	if w.exists(statefulSets, ns, "store") || w.exists(claims, ns, "disk") || w.exists(configMaps, ns, "settings") {
		t.Errorf("something is left\n%s", w.describe())
	}
}

// TestNamespaceWithAKeptObject: the approval of a namespace does not reach what
// is marked to be kept in it.
func TestNamespaceWithAKeptObject(t *testing.T) { simulated(t, testNamespaceWithAKeptObject) }

func testNamespaceWithAKeptObject(t *testing.T, w *world) {
	ns := w.stateful()
	w.patch(claims, ns, "disk", `{"metadata":{"annotations":{"swell.sh/prune":"disabled"}}}`)
	w.drop("data")
	w.approve(w.plan())
	w.until("the others", func() bool { return !w.exists(statefulSets, ns, "store") && !w.exists(configMaps, ns, "settings") })
	w.idle(time.Hour)
	if !w.exists(claims, ns, "disk") || !w.exists(namespaces, "", ns) {
		t.Errorf("the claim that is to be kept, or the namespace that it is in, is gone\n%s", w.describe())
	}
	if reason := w.unit("data").Targets["dev-2/c"].Reason; !strings.Contains(reason, "Namespace/"+ns+" stays: PersistentVolumeClaim/"+ns+"/disk of unit services/data is in it") {
		t.Errorf("reason %q", reason)
	}
}

// TestNamespaceTerminates: a namespace that was approved to go waits for what
// others have in it; its entry stays that long.
func TestNamespaceTerminates(t *testing.T) { simulated(t, testNamespaceTerminates) }

func testNamespaceTerminates(t *testing.T, w *world) {
	ns := w.stateful()
	stuck := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "theirs", "finalizers": []any{"example.com/wait"}}}}
	_, err := w.client("dev-2").Resource(configMaps).Namespace(ns).Create(t.Context(), stuck, metav1.CreateOptions{})
	w.must(err)
	w.drop("data")
	w.approve(w.plan())
	w.until("the tombstone", func() bool {
		return strings.Contains(w.unit("data").Targets["dev-2/c"].Reason, "Namespace/"+ns+": terminating")
	})
	for range 10 {
		w.pass()
		w.now = w.now.Add(3 * time.Minute)
		inventory, err := w.store.Inventory("services/data", "dev-2/c")
		w.must(err)
		if inventory[object.ID{Kind: "Namespace", Name: ns}].UID == "" {
			t.Errorf("no entry while it terminates: %v", inventory)
		}
	}
	w.want("the rollout", string(w.unit("data").Rollout.Status), string(rollout.Progressing))
	w.patch(configMaps, ns, "theirs", `{"metadata":{"finalizers":null}}`)
	w.until("the end", w.soon(func() bool { return w.unit("data") == nil }))
}

// TestNamespaceWithADetachedObject: nor what was orphaned, which is in no
// inventory any more.
func TestNamespaceWithADetachedObject(t *testing.T) { simulated(t, testNamespaceWithADetachedObject) }

func testNamespaceWithADetachedObject(t *testing.T, w *world) {
	ns := w.stateful()
	w.patch(claims, ns, "disk", `{"metadata":{"annotations":{"client.lifecycle.config.k8s.io/deletion":"detach"}}}`)
	w.drop("data")
	w.approve(w.plan())
	w.until("the others", func() bool { return !w.exists(statefulSets, ns, "store") && !w.exists(configMaps, ns, "settings") })
	w.idle(time.Hour)
	if !w.exists(claims, ns, "disk") || !w.exists(namespaces, "", ns) {
		t.Errorf("the claim that was orphaned, or the namespace that it is in, is gone\n%s", w.describe())
	}
	w.must(w.client("dev-2").Resource(claims).Namespace(ns).Delete(t.Context(), "disk", metav1.DeleteOptions{}))
	w.until("the end", w.soon(func() bool { return w.unit("data") == nil }))
}

// TestNamespaceWithAnObjectOfAnotherMonorepo: nor what another monorepo has in it,
// or one that was applied before objects carried the name of theirs.
func TestNamespaceWithAnObjectOfAnotherMonorepo(t *testing.T) {
	for name, label := range map[string]string{"named": ",swell.sh/repository: elsewhere", "without a name": `,swell.sh/repository: ""`} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				ns := w.stateful()
				_, err := w.client("dev-2").Resource(configMaps).Namespace(ns).Patch(t.Context(), "theirs", types.ApplyPatchType, []byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs,
				labels: {app.kubernetes.io/managed-by: swell`+label+`}, annotations: {swell.sh/unit: services/theirs}}}`), metav1.PatchOptions{FieldManager: "swell"})
				w.must(err)
				w.drop("data")
				w.approve(w.plan())
				w.until("the decision", w.soon(func() bool {
					return !w.exists(namespaces, "", ns) || strings.Contains(w.unit("data").Targets["dev-2/c"].Reason, "Namespace/"+ns+" stays: ")
				}))
				if !w.exists(configMaps, ns, "theirs") || !w.exists(namespaces, "", ns) {
					t.Fatalf("the other monorepo's object, or the namespace that it is in, is gone\n%s", w.describe())
				}
				if reason := w.unit("data").Targets["dev-2/c"].Reason; !strings.Contains(reason, "Namespace/"+ns+" stays: ConfigMap/"+ns+"/theirs of unit services/theirs is in it") {
					t.Errorf("reason %q", reason)
				}
				w.must(w.client("dev-2").Resource(configMaps).Namespace(ns).Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
				w.until("the end", w.soon(func() bool { return w.unit("data") == nil }))
			})
		})
	}
}

// TestDefinitionWithAKeptObject: the same for a definition, which takes all its
// objects along.
func TestDefinitionWithAKeptObject(t *testing.T) { simulated(t, testDefinitionWithAKeptObject) }

func testDefinitionWithAKeptObject(t *testing.T, w *world) {
	group := w.tenant + ".example.com"
	w.onTwo("gears", strings.NewReplacer("GROUP", group, "NS", w.tenant+"-c").Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gearboxes.GROUP}
spec:
  group: GROUP
  names: {kind: Gearbox, plural: gearboxes, singular: gearbox}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {teeth: {type: integer}}}}}}}
---
apiVersion: GROUP/v1
kind: Gearbox
metadata: {name: kept, namespace: NS, annotations: {swell.sh/prune: disabled}}
spec: {teeth: 12}
---
apiVersion: GROUP/v1
kind: Gearbox
metadata: {name: other, namespace: NS}
spec: {teeth: 13}
`))
	gears := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "gearboxes"}
	w.drop("gears")
	plan := w.plan()
	if len(plan.Deletions) != 2 || plan.Deletions[0].Kind != "CustomResourceDefinition" || !w.exists(gears, w.tenant+"-c", "other") {
		t.Errorf("the plan: %v", plan.Deletions)
	}
	w.approve(plan)
	w.until("the other one", func() bool { return !w.exists(gears, w.tenant+"-c", "other") })
	w.idle(time.Hour)
	if !w.exists(gears, w.tenant+"-c", "kept") {
		t.Errorf("the object that is to be kept went with its definition\n%s", w.describe())
	}
	stays := fmt.Sprintf("CustomResourceDefinition/gearboxes.%s stays: Gearbox.%s/%s-c/kept of unit services/gears is one of its objects", group, group, w.tenant)
	if reason := w.unit("gears").Targets["dev-2/c"].Reason; !strings.Contains(reason, stays) {
		t.Errorf("reason %q, want %q in it", reason, stays)
	}
}

// TestDefinitionWaitsForAHook: a definition takes along what others have of its
// kind, so it goes when the hook that saves that has run, and not before.
func TestDefinitionWaitsForAHook(t *testing.T) { simulated(t, testDefinitionWaitsForAHook) }

func testDefinitionWaitsForAHook(t *testing.T, w *world) {
	group := w.tenant + ".example.com"
	w.onTwo("gears", strings.NewReplacer("GROUP", group, "NS", w.tenant+"-c").Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gearboxes.GROUP}
spec:
  group: GROUP
  names: {kind: Gearbox, plural: gearboxes, singular: gearbox}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: save, namespace: NS, annotations: {swell.sh/hook: before-delete}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/app:broken"}]
`))
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	w.drop("gears")
	w.approve(w.plan())
	w.until("the hook", func() bool {
		return strings.Contains(w.unit("gears").Targets["dev-2/c"].Reason, "waits for hook Job/"+w.tenant+"-c/save")
	})
	w.idle(time.Hour)
	if !w.exists(definitions, "", "gearboxes."+group) {
		t.Errorf("the definition went before the hook had run\n%s", w.describe())
	}
	w.must(w.client("dev-2").Resource(jobs).Namespace(w.tenant+"-c").Delete(t.Context(), "save", metav1.DeleteOptions{}))
	w.until("the end", w.soon(func() bool { return w.unit("gears") == nil }))
}

// TestNamespaceWithAnIntendedObject: nor what another unit may be about to make in
// it, also when the one that leaves never made something of its own there.
func TestNamespaceWithAnIntendedObject(t *testing.T) { simulated(t, testNamespaceWithAnIntendedObject) }

func testNamespaceWithAnIntendedObject(t *testing.T, w *world) {
	ns := w.tenant + "-data"
	own := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "}\n"
	// Only the server knows which addresses its Services may have.
	const refused = "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: %s}\nspec: {clusterIP: 192.0.2.1, ports: [{port: 80}]}\n"
	w.write("fleet/fleet.yaml", strings.NewReplacer("ring: canary}", "ring: canary, data: here}", "{name: c}", "{name: c, labels: {data: here}}", "- {name: rest,", "- {name: rest, maxFailures: 1,").Replace(fleetYAML))
	w.policy("data", "{placement: {topology: cell, match: {labels: {data: [here]}}}}")
	w.policy("other", "{placement: {match: {labels: {site: two}}}}")
	w.write("services/data/objects.yaml", own)
	w.commit()
	w.release()
	w.until("data", w.is("data", 1, rollout.Done))
	w.write("services/data/objects.yaml", own+fmt.Sprintf(refused, "never", ns))
	w.write("services/other/objects.yaml", fmt.Sprintf(refused, "intended", ns))
	w.commit()
	for _, unit := range []string{"data", "other"} {
		w.until("the refusal of "+unit, func() bool {
			u := w.unit(unit)
			return u != nil && strings.Contains(u.Rollout.Failure+u.Rollout.Reason, "failed to allocate IP")
		})
	}
	// As if the daemon had been killed when it was about to make it on dev-2/c.
	w.must(w.store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.Intend([]store.Entry{{Unit: "services/data", Target: "dev-2/c", Version: "v1",
			ID: object.ID{Kind: "Service", Namespace: ns, Name: "never"}}})
	}))
	w.drop("data")
	w.approve(w.plan())
	w.until("the decision", w.soon(func() bool {
		u := w.unit("data")
		return u == nil || !w.exists(namespaces, "", ns) || strings.Contains(u.Targets["dev-2/c"].Reason, "stays: ")
	}))
	if !w.exists(namespaces, "", ns) {
		t.Fatalf("the namespace that another unit is about to write to is gone\n%s", w.describe())
	}
	if reason := w.unit("data").Targets["dev-2/c"].Reason; !strings.Contains(reason, "Service/"+ns+"/intended of unit services/other is in it") {
		t.Errorf("reason %q", reason)
	}
}
