// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// Every kind, however it is stored, is created by one request that would not
// have touched an object that is there, and is found to be ours without state.
func TestContactWithEveryKind(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	var objects []*object.Object
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: NS-x}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: NS}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: NS}, stringData: {a: b}}",
		"{apiVersion: v1, kind: Service, metadata: {name: a, namespace: NS}, spec: {type: NodePort, ports: [{port: 80}]}}",
		"{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: NS, hostPath: {path: /tmp/x}}}",
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, namespace: NS}, spec: {accessModes: [ReadWriteOnce], storageClassName: NS, resources: {requests: {storage: 1Gi}}}}",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: a, namespace: NS}, spec: {hard: {pods: '100'}}}",
		"{apiVersion: v1, kind: LimitRange, metadata: {name: a, namespace: NS}, spec: {limits: [{type: Container, default: {cpu: 100m}}]}}",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, namespace: NS}, spec: {serviceName: a, selector: {matchLabels: {a: s}}, template: {metadata: {labels: {a: s}}, spec: {containers: [{name: m, image: i}]}}}}",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, namespace: NS}, spec: {selector: {matchLabels: {a: d}}, template: {metadata: {labels: {a: d}}, spec: {containers: [{name: m, image: i}]}}}}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: NS}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: m, image: i}]}}}}",
		"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, namespace: NS}, spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: m, image: i}]}}}}}}",
		"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a, namespace: NS}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: a}}}",
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: NS}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: s}}}}",
		"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: NS}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NS}, subjects: [{kind: ServiceAccount, name: a, namespace: NS}]}",
		"{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: example.com/none}",
		"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 7}",
		"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a, namespace: NS}, spec: {holderIdentity: x}}",
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a, namespace: NS}, addressType: IPv4, endpoints: [{addresses: [10.1.2.3]}], ports: [{port: 80}]}",
		"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: NS}, spec: {matchingPrecedence: 9999, priorityLevelConfiguration: {name: global-default}}}",
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NS.example.com}, spec: {group: NS.example.com, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true, service: {name: a, namespace: NS}}}",
		"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: NS}, spec: {schedulingGates: [{name: example.com/never}], containers: [{name: m, image: i}]}}",
	} {
		objects = append(objects, newObject(t, "%s", strings.ReplaceAll(text, "NS", ns)))
	}
	var entries []store.Entry
	t.Cleanup(func() { c.Prune(context.Background(), entries) })
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil || r.Action != Created || r.Warnings != nil {
			t.Errorf("%s: %v, %s, %q", r.ID, r.Err, r.Action, r.Warnings)
		}
		r.Entry.Unit, r.Entry.Target = testUnit, "dev-1"
		entries = append(entries, r.Entry)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": len(objects)}, w.methods()); diff != "" {
		t.Error(diff)
	}
	for i, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil || r.Action != Configured && r.Action != Unchanged || r.Adopted != "" || r.Entry.UID != entries[i].UID {
			t.Errorf("%s: %v, %s", r.ID, r.Err, r.Action)
		}
	}
	known := map[object.ID]store.Entry{}
	for _, e := range entries {
		e.Digest = ""
		known[e.ID] = e
	}
	w.take()
	for _, r := range c.bring(t.Context(), objects, known) {
		if r.Err != nil || r.Taken != nil || r.Left != nil {
			t.Errorf("%s: %v, %v, %v", r.ID, r.Err, r.Taken, r.Left)
		}
	}
	if diff := cmp.Diff(map[string]int{"PATCH": len(objects)}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

// tests.md: state lost.
func TestContactStateLost(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	objects := make([]*object.Object, 200)
	for i := range objects {
		objects[i] = configMap(t, ns, fmt.Sprintf("c%d", i), "1")
	}
	entries := applied(t, c, objects...)
	if n := w.methods()["PATCH"]; n != len(objects) {
		t.Errorf("%d patches for %d new objects", n, len(objects))
	}
	c, w = connect(t, Options{})
	c.contacts.keep = time.Hour // on a slow machine too
	// Even where nothing may be adopted: these are ours.
	results := c.Apply(t.Context(), Work{Objects: objects, Adopt: config.AdoptNever})
	var again []store.Entry
	for _, r := range results {
		if r.Err != nil || r.Adopted != "" || r.Taken != nil {
			t.Fatalf("%+v", r)
		}
		again = append(again, r.Entry)
	}
	for i := range again {
		again[i].Unit, again[i].Target = testUnit, "dev-1"
	}
	if diff := cmp.Diff(entries, again); diff != "" {
		t.Error(diff)
	}
	lists, gets, patches := 0, 0, 0
	for _, s := range w.take() {
		switch {
		case s.accept == acceptMetaList:
			lists++
		case s.method == http.MethodGet:
			gets++
		default:
			patches++
		}
	}
	// Those that were under way before the list was in: one for each worker, and
	// the first few, which looked alone.
	if most := c.options.Concurrency + contactLimit - 1; lists != 1 || gets > most || patches > len(objects)+most {
		t.Errorf("%d lists, %d gets, %d patches", lists, gets, patches)
	}
}

// tests.md: RBAC cut. Who may not list looks at each object.
func TestContactWhereListingIsForbidden(t *testing.T) {
	ns := space(t)
	cfg := apiServer(t)
	for _, text := range []string{
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: %s}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, patch]}]}",
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: r, namespace: %s}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, name: nolist, apiGroup: rbac.authorization.k8s.io}]}",
	} {
		kind := map[bool]string{true: "rolebindings", false: "roles"}[strings.Contains(text, "RoleBinding,")]
		create(t, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: kind}, fmt.Sprintf(text, ns))
	}
	cfg.Impersonate.UserName = "nolist"
	w := &wire{}
	cfg.Wrap(w.wrap)
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.contacts.keep = time.Hour
	var objects []*object.Object
	for i := range 10 {
		objects = append(objects, configMap(t, ns, fmt.Sprintf("c%d", i), "1"))
		create(t, configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: %s}, data: {value: '1'}}", i, ns))
	}
	eventually(t, func() (bool, string) { // the authorizer takes a moment to see the binding
		r := c.bring(t.Context(), []*object.Object{configMap(t, ns, "probe", "1")}, nil)[0]
		return r.Err == nil, errText(r.Err)
	})
	w.take()
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil || r.Adopted == "" {
			t.Errorf("%+v", r)
		}
	}
	lists := 0
	for _, s := range w.take() {
		if s.accept == acceptMetaList {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("%d lists, want 1 that is refused", lists)
	}
}

// A quota whose status many creations fight over is no object in the way.
func TestContactUnderAQuota(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	applied(t, c, newObject(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: %s}, spec: {hard: {count/configmaps: '1000'}}}", ns))
	mergeQuota := []byte(`{"status":{"hard":{"count/configmaps":"1000"},"used":{"count/configmaps":"0"}}}`) // as its controller would
	quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	if _, err := somebody(t).Resource(quotas).Namespace(ns).Patch(t.Context(), "q", types.MergePatchType, mergeQuota, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	var objects []*object.Object
	for i := range 100 {
		objects = append(objects, configMap(t, ns, fmt.Sprintf("c%d", i), "1"))
	}
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil || r.Entry.UID == "" {
			t.Errorf("%+v", r)
		}
	}
}
