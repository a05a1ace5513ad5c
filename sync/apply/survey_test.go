// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/sync/store"
)

// in are the entries of one test's namespaces and definitions.
func in(entries []store.Entry, ns string) []store.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e store.Entry) bool {
		return !strings.HasPrefix(e.ID.Namespace, ns) && !strings.Contains(e.ID.Name, ns)
	})
}

// TestSurvey: what is ours is found, of all kinds, by metadata alone; a
// controller's copies of our labels are not.
func TestSurvey(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	wanted := applied(t, c, newObject(t, widgets, ns, "Widget", "size: {type: string}"), newObject(t, widget, ns, "size: big"),
		configMap(t, ns, "a", "1"),
		newObject(t, "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: %s}, stringData: {password: hunter2}}", ns),
		newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: keep, namespace: %s, annotations: {swell.sh/prune: disabled}}}", ns))
	create(t, configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: copied, namespace: `+ns+
		`, labels: {app.kubernetes.io/managed-by: swell, swell.sh/repository: shop}, annotations: {swell.sh/unit: services/shop/cart}}}`)
	unlabelled := applied(t, c, configMap(t, ns, "unlabelled", "1"))[0]
	edit(t, unlabelled.ID, types.MergePatchType, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"helm"}}}`, "helm")
	var entries []store.Entry
	eventually(t, func() (bool, string) { // kinds of other tests may be on their way out
		w.take()
		var unknown []string
		var err error
		if entries, unknown, err = c.Survey(t.Context()); err != nil {
			t.Fatal(err)
		}
		return len(unknown) == 0, "unknown: " + strings.Join(unknown, ", ")
	})
	for i := range wanted {
		wanted[i].Target, wanted[i].Digest, wanted[i].Found = "", "", true
	}
	slices.SortFunc(wanted, func(a, b store.Entry) int { return a.ID.Compare(b.ID) })
	if diff := cmp.Diff(wanted, in(entries, ns)); diff != "" {
		t.Error(diff)
	}
	lists := 0
	for _, s := range w.take() {
		if s.method != "GET" {
			t.Errorf("sent %s %s", s.method, s.path)
		}
		if strings.Contains(s.query, "labelSelector") {
			lists++
			if s.accept != acceptMetaList {
				t.Errorf("GET %s accepts %q", s.path, s.accept)
			}
		}
	}
	if lists < 30 {
		t.Errorf("only %d lists", lists)
	}
}

// TestSurveyWithoutRights: kinds that may not be listed are unknown, the others
// are found.
func TestSurveyWithoutRights(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	wanted := applied(t, c, configMap(t, ns, "a", "1"))
	create(t, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: `+ns+`}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]}`)
	create(t, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: `+ns+`}, subjects: [{kind: User, name: `+ns+
			`, apiGroup: rbac.authorization.k8s.io}], roleRef: {kind: ClusterRole, name: `+ns+`, apiGroup: rbac.authorization.k8s.io}}`)
	cfg := apiServer(t)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: ns}
	limited, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() (bool, string) { // the authorizer has to see the role first
		entries, unknown, err := limited.Survey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(unknown, "Secret") || !slices.Contains(unknown, "Deployment.apps") {
			t.Fatalf("unknown are %v", unknown)
		}
		return len(in(entries, ns)) == 1 && in(entries, ns)[0].UID == wanted[0].UID && !slices.Contains(unknown, "ConfigMap"), strings.Join(unknown, ", ")
	})
}

// TestSurveyOfAClusterThatIsGone: no answer is no empty cluster.
func TestSurveyOfAClusterThatIsGone(t *testing.T) {
	c, err := Connect(&rest.Config{Host: "https://127.0.0.1:1"}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if entries, unknown, err := c.Survey(t.Context()); err == nil {
		t.Errorf("got %v, %v", entries, unknown)
	}
}

// TestLook: it deletes nothing, and says what a deletion would come upon.
func TestLook(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c, configMap(t, ns, "a", "1"), configMap(t, ns, "gone", "1"), configMap(t, ns, "detached", "1"))
	remove(t, entries[1].ID)
	edit(t, entries[2].ID, types.MergePatchType, `{"metadata":{"annotations":{"client.lifecycle.config.k8s.io/deletion":"detach"}}}`, "kubectl")
	w.take()
	results := c.CheckPrune(t.Context(), entries)
	if diff := cmp.Diff(map[string]int{"GET": 3}, w.methods()); diff != "" {
		t.Error(diff)
	}
	if r := results[0]; r.Err != nil || r.Forget || r.Reason != "" || !exists(t, r.ID) {
		t.Errorf("one that would be deleted: %+v", r)
	}
	if r := results[1]; r.Err != nil || !r.Forget || r.Action != Deleted {
		t.Errorf("one that is gone: %+v", r)
	}
	if r := results[2]; r.Err != nil || !r.Forget || r.Action != Skipped {
		t.Errorf("one that is orphaned: %+v", r)
	}
}

// TestHeavyObjectThatChanges: what was looked at is what is deleted.
func TestHeavyObjectThatChanges(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t) + "-heavy"
	discard(t, namespaces, "", ns)
	entries := applied(t, c, newObject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns), configMap(t, ns, "a", "1"))
	stale := func(id store.Entry, path string) Result {
		call := c.begin()
		live, err := call.getMeta(t.Context(), id.ID.String(), path)
		if err != nil {
			t.Fatal(err)
		}
		resource := somebody(t).Resource(map[string]schema.GroupVersionResource{"Namespace": namespaces, "ConfigMap": configMaps}[id.ID.Kind]).Namespace(id.ID.Namespace)
		if _, err := resource.Patch(t.Context(), id.ID.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"x":"y"}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		return call.delete(t.Context(), Result{ID: id.ID, Entry: id}, path, live)
	}
	if r := stale(entries[0], "/api/v1/namespaces/"+ns); r.Err != nil || !r.Changed || r.Forget || r.Action != Skipped {
		t.Errorf("a namespace that changed: %+v", r)
	}
	live, err := somebody(t).Resource(namespaces).Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil || live.GetDeletionTimestamp() != nil {
		t.Errorf("it is being deleted: %v, %v", live, err)
	}
	if r := stale(entries[1], "/api/v1/namespaces/"+ns+"/configmaps/a"); r.Err != nil || r.Changed || r.Action != Deleted {
		t.Errorf("a ConfigMap that changed: %+v", r)
	}
	if r := c.Prune(t.Context(), entries[:1])[0]; r.Err != nil || r.Action != Deleted {
		t.Errorf("the namespace as it is now: %+v", r)
	}
}
