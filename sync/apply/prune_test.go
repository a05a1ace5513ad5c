// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// pruned prunes one entry and checks what became of it; alive says whether the
// object must still be there.
func pruned(t *testing.T, c *Cluster, entry store.Entry, action Action, reason string, forget, alive bool) {
	t.Helper()
	got := c.Prune(t.Context(), []store.Entry{entry})[0]
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	want := Result{ID: entry.ID, Action: action, Reason: reason, Forget: forget, Entry: got.Entry}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if is := exists(t, entry.ID); is != alive {
		t.Errorf("object exists: %t, want %t", is, alive)
	}
}

// exists looks for a ConfigMap.
func exists(t *testing.T, id object.ID) bool {
	t.Helper()
	_, err := somebody(t).Resource(configMaps).Namespace(id.Namespace).Get(t.Context(), id.Name, metav1.GetOptions{})
	return err == nil
}

// edit patches a ConfigMap as somebody else.
func edit(t *testing.T, id object.ID, kind types.PatchType, patch, manager string) {
	t.Helper()
	maps := somebody(t).Resource(configMaps).Namespace(id.Namespace)
	if _, err := maps.Patch(t.Context(), id.Name, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, id object.ID) {
	t.Helper()
	err := somebody(t).Resource(configMaps).Namespace(id.Namespace).Delete(t.Context(), id.Name, metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPruneDeletesOurs(t *testing.T) {
	c, w := connect(t, Options{})
	entry := applied(t, c, configMap(t, space(t), "a", "1"))[0]
	w.take()
	pruned(t, c, entry, Deleted, "", true, false)
	if diff := cmp.Diff(map[string]int{"GET": 1, "DELETE": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	// It is gone now, and that is as good.
	pruned(t, c, entry, Deleted, "", true, false)
	if diff := cmp.Diff(map[string]int{"GET": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

func TestPruneLeavesARecreatedObject(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	entry := applied(t, c, o)[0]
	remove(t, entry.ID)
	applied(t, c, o) // even one that looks like ours in every other way
	pruned(t, c, entry, Skipped, "not ours: somebody deleted and recreated it", true, true)
}

// The object is recreated between our look at it and the delete.
func TestPruneDeletesWithAPrecondition(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	entry := applied(t, c, o)[0]
	remove(t, entry.ID)
	applied(t, c, o)
	call := c.begin()
	path := "/api/v1/namespaces/" + entry.ID.Namespace + "/configmaps/a"
	seen := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(entry.UID)}}
	got := call.delete(t.Context(), Result{ID: entry.ID, Entry: entry}, path, seen)
	if got.Action != Skipped || !got.Forget || got.Err != nil {
		t.Errorf("got %+v", got)
	}
	if !exists(t, entry.ID) {
		t.Error("deleted")
	}
}

func TestPruneNeedsOurLabelAndFields(t *testing.T) {
	c, _ := connect(t, Options{})
	reason := "not deleted: it lacks the label swell.sh/repository=shop or fields applied by swell, or somebody else set its label app.kubernetes.io/managed-by: delete it, or annotate it with client.lifecycle.config.k8s.io/deletion: detach"
	ns := space(t)

	unlabelled := applied(t, c, configMap(t, ns, "a", "1"))[0]
	edit(t, unlabelled.ID, types.MergePatchType, `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"helm"}}}`, "helm")
	pruned(t, c, unlabelled, Skipped, reason, false, true)

	edit(t, unlabelled.ID, types.MergePatchType, `{"metadata":{"annotations":{"client.lifecycle.config.k8s.io/deletion":"detach"}}}`, "kubectl")
	pruned(t, c, unlabelled, Skipped, "orphaned by the annotation client.lifecycle.config.k8s.io/deletion: detach", true, true)

	unowned := applied(t, c, configMap(t, ns, "b", "1"))[0]
	edit(t, unowned.ID, types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`, "other")
	pruned(t, c, unowned, Skipped, reason, false, true)
}

func TestPruneHonoursAnnotations(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	for _, test := range []struct {
		name, annotation, reason string
		forget                   bool
	}{
		{"a", `"swell.sh/prune":"disabled"`, "kept by the annotation swell.sh/prune: disabled", true},
		{"b", `"client.lifecycle.config.k8s.io/deletion":"detach"`, "orphaned by the annotation client.lifecycle.config.k8s.io/deletion: detach", true},
	} {
		entry := applied(t, c, configMap(t, ns, test.name, "1"))[0]
		edit(t, entry.ID, types.MergePatchType, `{"metadata":{"annotations":{`+test.annotation+`}}}`, "kubectl")
		pruned(t, c, entry, Skipped, test.reason, test.forget, true)
	}
}

// TestPruneMarksWhatOnlyGitKeeps: the annotation is put back, on the object that
// was applied and no other, so that nobody who finds our label takes it for ours
// to delete.
func TestPruneMarksWhatOnlyGitKeeps(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	entry := applied(t, c, newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/prune: disabled}}}", ns))[0]
	edit(t, entry.ID, types.MergePatchType, `{"metadata":{"annotations":{"swell.sh/prune":null}}}`, "kubectl")
	w.take()
	other := entry
	other.UID = "another"
	if r := c.CheckPrune(t.Context(), []store.Entry{other})[0]; !r.Forget || r.Reason != "not ours: somebody deleted and recreated it" {
		t.Errorf("made anew: got %+v", r)
	}
	for range 2 {
		if r := c.CheckPrune(t.Context(), []store.Entry{entry})[0]; r.Action != Skipped || !r.Forget || r.Err != nil || r.Reason != KeptText {
			t.Errorf("got %+v", r)
		}
	}
	if diff := cmp.Diff(map[string]int{"GET": 3, "PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	found, _, err := c.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found = in(found, ns); len(found) != 1 || !found[0].Keep {
		t.Errorf("found %+v", found)
	}
}

// An entry without a UID is an apply that was killed before it was recorded.
func TestPruneOfAnIntendedObject(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	intended := func(name string) store.Entry {
		return store.Entry{Unit: testUnit, Target: "dev-1", ID: object.ID{Kind: "ConfigMap", Namespace: ns, Name: name}, Version: "v1"}
	}
	never := "not ours: it was never applied by this unit"

	pruned(t, c, intended("never-written"), Deleted, "", true, false)

	applied(t, c, configMap(t, ns, "written", "1"))
	pruned(t, c, intended("written"), Deleted, "", true, false)

	applied(t, c, configMap(t, ns, "other-unit", "1"))
	other := intended("other-unit")
	other.Unit = "services/shop/other"
	pruned(t, c, other, Skipped, never, true, true)

	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+ns+"}}")
	pruned(t, c, intended("theirs"), Skipped, never, true, true)

	// A controller that copies labels and annotations makes no object ours.
	create(t, configMaps, `{apiVersion: v1, kind: ConfigMap, metadata: {name: copied, namespace: `+ns+
		`, labels: {app.kubernetes.io/managed-by: swell, swell.sh/repository: shop}, annotations: {swell.sh/unit: services/shop/cart}}}`)
	pruned(t, c, intended("copied"), Skipped, never, true, true)
}

func TestPruneWaitsForFinalizers(t *testing.T) {
	c, w := connect(t, Options{})
	entry := applied(t, c, configMap(t, space(t), "a", "1"))[0]
	edit(t, entry.ID, types.MergePatchType, `{"metadata":{"finalizers":["example.com/wait"]}}`, "other")
	w.take()
	pruned(t, c, entry, Deleted, "terminating, waits for example.com/wait", false, true)
	pruned(t, c, entry, Deleted, "terminating, waits for example.com/wait", false, true)
	if diff := cmp.Diff(map[string]int{"GET": 2, "DELETE": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	edit(t, entry.ID, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "other")
	pruned(t, c, entry, Deleted, "", true, false)
}

// TestPruneTellsWhatKeepsANamespace: its own conditions say which objects are left.
func TestPruneTellsWhatKeepsANamespace(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	entry := applied(t, c, newObject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s-kept}}", ns))[0]
	patch := func(body string, subresource ...string) {
		t.Helper()
		_, err := somebody(t).Resource(namespaces).Patch(t.Context(), entry.ID.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, subresource...)
		if err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"finalizers":["example.com/wait"]}}`)
	got := c.Prune(t.Context(), []store.Entry{entry})[0]
	if got.Action != Deleted || got.Forget {
		t.Fatalf("%+v", got)
	}
	const status = `{"status":{"conditions":[` +
		`{"type":"NamespaceContentRemaining","status":"True","reason":"SomeResourcesRemain",` +
		`"message":"Some resources are remaining: pods. has 3 resource instances"},` +
		`{"type":"NamespaceDeletionDiscoveryFailure","status":"False","reason":"ResourcesDiscovered","message":"All discovered"}]}}`
	patch(status, "status")
	const want = "terminating, waits for example.com/wait: Some resources are remaining: pods. has 3 resource instances"
	same(t, want, c.Prune(t.Context(), []store.Entry{entry})[0].Reason)
	patch(`{"metadata":{"finalizers":null}}`)
}

func TestPruneNeverDeletesSystemNamespaces(t *testing.T) {
	c, w := connect(t, Options{})
	var entries []store.Entry
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease", "kube-flannel"} {
		entries = append(entries, store.Entry{ID: object.ID{Kind: "Namespace", Name: name}, Version: "v1", UID: "x"})
	}
	for _, r := range c.Prune(t.Context(), entries) {
		if r.Action != Skipped || r.Err != nil {
			t.Errorf("%s: %+v", r.ID, r)
		}
	}
	if n := len(w.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestPruneGoesBackwards(t *testing.T) {
	c, w := connect(t, Options{Concurrency: 1})
	ns := space(t)
	discard(t, namespaces, "", ns+"-new")
	entries := applied(t, c,
		newObject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s-new}}", ns),
		newObject(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: %s-new}}", ns),
		configMap(t, ns+"-new", "a", "1"),
		newObject(t, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, namespace: %s-new}, spec: {maxUnavailable: 1, selector: {matchLabels: {a: b}}}}", ns),
	)
	w.take()
	results := c.Prune(t.Context(), entries)
	for _, r := range results {
		if r.Err != nil || r.Action != Deleted {
			t.Errorf("%+v", r)
		}
	}
	if results[0].Forget || results[0].Reason != "terminating" {
		t.Errorf("namespace: %+v", results[0])
	}
	var order []string
	for _, s := range w.take() {
		if s.method == "DELETE" {
			order = append(order, s.path[strings.LastIndex(s.path[:len(s.path)-len("/a")], "/")+1:])
		}
	}
	want := []string{"poddisruptionbudgets/a", "configmaps/a", "serviceaccounts/a", "namespaces/" + ns + "-new"}
	if !slices.Equal(order[:3], want[:3]) || !strings.HasSuffix(want[3], order[3]) {
		t.Errorf("got %v, want %v", order, want)
	}
}

// TestPruneGoesBackwardsByPhase: what was applied last goes first, whatever its
// kind, also where the phases are only known from the live objects.
func TestPruneGoesBackwardsByPhase(t *testing.T) {
	c, w := connect(t, Options{Concurrency: 1})
	for _, lost := range []bool{false, true} {
		ns := space(t)
		at := func(phase int, name string) *object.Object {
			o := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s, annotations: {swell.sh/phase: %q}}}", name, ns, strconv.Itoa(phase))
			o.Phase = phase
			return o
		}
		account := newObject(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: last, namespace: %s, annotations: {swell.sh/phase: '10'}}}", ns)
		account.Phase = 10
		entries := applied(t, c, at(1, "one"), configMap(t, ns, "zero", "1"), at(2, "two"), account)
		if lost {
			found, _, err := c.Survey(t.Context()) // kinds of other tests, on their way out, may be unknown
			if err != nil {
				t.Fatal(err)
			}
			entries = slices.DeleteFunc(found, func(e store.Entry) bool { return e.ID.Namespace != ns })
		}
		w.take()
		var order []string
		for _, r := range c.Prune(t.Context(), entries) {
			if r.Err != nil || r.Action != Deleted {
				t.Errorf("%+v", r)
			}
		}
		for _, s := range w.take() {
			if s.method == "DELETE" {
				order = append(order, path.Base(s.path))
			}
		}
		if want := []string{"last", "two", "one", "zero"}; !slices.Equal(order, want) {
			t.Errorf("lost %t: got %v, want %v", lost, order, want)
		}
	}
}

// The definition is pruned together with its object: nothing is left to look
// for after that, in whatever version it was.
func TestPruneOfAKindThatIsGone(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	entries := applied(t, c, newObject(t, widgets, ns, "Widget", "size: {type: string}"), newObject(t, widget, ns, "size: big"))
	moved := entries[1]
	moved.Version = "v1alpha1" // not served any more; the group has another one
	for _, r := range c.Prune(t.Context(), []store.Entry{entries[0], moved}) {
		if r.Err != nil || r.Action != Deleted {
			t.Errorf("%+v", r)
		}
	}
	eventually(t, func() (bool, string) { // c still remembers the kind
		r := c.Prune(t.Context(), entries[1:])[0]
		return r.Action == Deleted && r.Forget && r.Reason == "its kind is not served any more", r.Reason
	})
}

// A group whose server is down is unknown, and disturbs no other group.
func TestAggregatedAPIThatIsDown(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	group := ns + ".down.example.com"
	create(t, apiServices, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.`+group+`}
spec: {group: `+group+`, version: v1, groupPriorityMinimum: 1000, versionPriority: 10, insecureSkipTLSVerify: true,
  service: {name: nobody, namespace: `+ns+`}}
`)
	thing := newObject(t, "{apiVersion: %s/v1, kind: Thing, metadata: {name: a, namespace: %s}}", group, ns)
	results := c.bring(t.Context(), []*object.Object{thing, configMap(t, ns, "a", "1")}, nil)
	eventually(t, func() (bool, string) { // the server first has to find out
		results = c.bring(t.Context(), []*object.Object{thing, configMap(t, ns, "a", "1")}, nil)
		return !strings.Contains(results[0].Err.Error(), "no kind"), results[0].Err.Error()
	})
	if results[1].Err != nil {
		t.Error(results[1].Err)
	}
	entries := []store.Entry{
		{ID: thing.ID, Version: "v1", UID: "x", Digest: "x", Fingerprint: "x"},
		results[1].Entry,
	}
	edit(t, entries[1].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	swept, err := c.Sweep(t.Context(), entries, nil)
	if drifts := swept.Drifts; len(drifts) != 1 || drifts[0].Missing || err == nil || !strings.Contains(err.Error(), group) {
		t.Errorf("sweep: %v, %v", drifts, err)
	}
	if diff := cmp.Diff([]bool{false, true}, swept.Looked); diff != "" {
		t.Errorf("looked at: %s", diff)
	}
	gone := c.Prune(t.Context(), entries)
	if gone[0].Err == nil || gone[0].Forget || gone[0].Action != "" {
		t.Errorf("prune: %+v", gone[0])
	}
	if gone[1].Err != nil || gone[1].Action != Deleted {
		t.Errorf("prune: %+v", gone[1])
	}
}

func TestPruneStopsWithItsContext(t *testing.T) {
	c, _ := connect(t, Options{})
	entry := applied(t, c, configMap(t, space(t), "a", "1"))[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := c.Prune(ctx, []store.Entry{entry})[0]; got.Err == nil || got.Forget || got.Action != "" {
		t.Errorf("got %+v", got)
	}
	if !exists(t, entry.ID) {
		t.Error("deleted")
	}
}
