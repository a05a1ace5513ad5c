// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/store"
)

var (
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	policies     = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings     = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
)

const allowed = "annotations: {swell.sh/replace: allowed}"

// roleBinding has a namespace, a name, the role, and more metadata.
const roleBinding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[2]s, namespace: %[1]s, %[4]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[3]s}
`

// selecting is a Deployment whose selector is the last value.
const selecting = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, ` + allowed + `}
spec:
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[3]s}}
    spec: {containers: [{name: main, image: "registry.example.com/x:1"}]}
`

// live reads an object as somebody.
func liveOf(t *testing.T, resource schema.GroupVersionResource, ns, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := somebody(t).Resource(resource).Namespace(ns).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestReplaceAtOnce(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.apply("x", newObject(t, roleBinding, ns, "a", "reader", allowed))
	before := liveOf(t, roleBindings, ns, "a")
	w.take()
	same(t, []string{"RoleBinding recreated"}, outcomes(s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))))
	var methods []string
	for _, sent := range w.take() {
		methods = append(methods, sent.method)
		if dry := strings.Contains(sent.query, "dryRun=All"); dry != strings.Contains(sent.path, "/a-trial-") {
			t.Errorf("sent %+v", sent)
		}
	}
	same(t, []string{"PATCH", "GET", "PATCH", "DELETE", "GET", "PATCH"}, methods)
	after := liveOf(t, roleBindings, ns, "a")
	if role, _, _ := unstructured.NestedString(after.Object, "roleRef", "name"); role != "writer" || after.GetUID() == before.GetUID() {
		t.Errorf("got %v", after.Object)
	}
	w.take()
	same(t, []string{"RoleBinding unchanged"}, outcomes(s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))))
	if sent := w.take(); len(sent) > 0 {
		t.Errorf("sent %v", sent)
	}
	if got := s.apply("z", newObject(t, roleBinding, ns, "a", "reader", "")); got[0].Err == nil {
		t.Error("replaced because of the annotation of an earlier release, though that did not fail")
	}
}

func TestReplaceHasToBeAllowed(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.apply("x", newObject(t, roleBinding, ns, "a", "reader", ""))
	before := liveOf(t, roleBindings, ns, "a").GetUID()
	got := s.apply("y", newObject(t, roleBinding, ns, "a", "writer", ""))
	want := "apply RoleBinding/" + ns + "/a: roleRef cannot be changed (cannot change roleRef): revert it, give the object a new name " +
		"(with a hash of what changed in it), or let it be deleted and made anew with the annotation swell.sh/replace: allowed"
	if got[0].Err == nil || got[0].Err.Error() != want || !errors.Is(got[0].Err, ErrRefused) {
		t.Errorf("got %v, want %s", got[0].Err, want)
	}
	if after := liveOf(t, roleBindings, ns, "a").GetUID(); after != before {
		t.Error("replaced")
	}
}

// An object with pods is made anew when its old pods are gone.
func TestReplaceOfAWorkloadLeavesNoPodsBehind(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.toTheEnd("x", newObject(t, selecting, ns, "old", "old"))
	before := liveOf(t, deployments, ns, "web").GetUID()
	becomes(t, c, health.Health{State: health.Healthy}, newObject(t, selecting, ns, "old", "old"))
	got := s.toTheEnd("y", newObject(t, selecting, ns, "new", "new"))
	same(t, []string{"Deployment recreated"}, outcomes(got))
	if after := liveOf(t, deployments, ns, "web").GetUID(); after == before {
		t.Error("not replaced")
	}
	list, err := somebody(t).Resource(pods).Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=old"})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("%d old pods run beside the new ones, %v", len(list.Items), err)
	}
}

// The server would not take the new one: the old one stays.
func TestReplaceIsTriedOutFirst(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.apply("x", newObject(t, selecting, ns, "old", "old"))
	before := liveOf(t, deployments, ns, "web").GetUID()
	w.take()
	got := s.apply("y", newObject(t, selecting, ns, "new", "other"))
	want := "replace Deployment/" + ns + "/web: the old one stays, the server would not take the new one, which was tried out as \"web-trial-"
	if !errors.Is(got[0].Err, ErrRefused) || !strings.HasPrefix(got[0].Err.Error(), want) {
		t.Errorf("got %v, want %q", got[0].Err, want)
	}
	if after := liveOf(t, deployments, ns, "web"); after.GetUID() != before || w.methods()["DELETE"] != 0 {
		t.Error("deleted")
	}
}

// Whatever Git allows: never a claim, a volume, a namespace, a definition, nor a
// Secret.
func TestReplaceNeverTakesData(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	never := []string{"PersistentVolumeClaim class", "PersistentVolume source", "CustomResourceDefinition scope", "Secret type", "Secret marked immutable"}
	tried := 0
	for _, test := range immutables {
		if !slices.Contains(never, test.name) {
			continue
		}
		tried++
		text := strings.NewReplacer("NAME", "x", "NS", ns, "kind: Secret\nmetadata: {name: NAME,",
			"kind: Secret\nmetadata: {name: "+strings.ReplaceAll(strings.ToLower(test.name), " ", "-")+",").Replace(test.object)
		text = strings.Replace(text, "metadata: {name: ", "metadata: {"+allowed+", name: ", 1)
		one := newObject(t, "%s", strings.ReplaceAll(text, "X", test.old))
		entry := applied(t, c, one)[0]
		t.Cleanup(func() { removeAny(t, c, entry.ID, entry.Version) })
		w.take()
		got := c.bring(t.Context(), []*object.Object{newObject(t, "%s", strings.ReplaceAll(text, "X", test.new))}, map[object.ID]store.Entry{entry.ID: entry})[0]
		if !errors.Is(got.Err, ErrRefused) || !strings.Contains(got.Err.Error(), "it is not replaced: ") {
			t.Errorf("%s: got %v", test.name, got.Err)
		}
		same(t, map[string]int{"PATCH": 1, "GET": 1}, w.methods())
	}
	same(t, len(never), tried)
	for _, id := range []object.ID{{Kind: "Namespace", Name: "x"}, {Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.x"}} {
		if id.NeverReplaced() == "" {
			t.Errorf("%s may be replaced", id)
		}
	}
}

// Deleting the set would delete the claims of its pods.
func TestReplaceNeverTakesTheClaimsOfAStatefulSet(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	const set = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: %[1]s, ` + allowed + `}
spec:
  serviceName: %[2]s
  selector: {matchLabels: {app: db}}
  persistentVolumeClaimRetentionPolicy: {whenDeleted: %[3]s, whenScaled: Retain}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: "registry.example.com/x:1"}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
`
	s.apply("x", newObject(t, set, ns, "old", "Delete"))
	before := liveOf(t, statefulSets, ns, "db").GetUID()
	got := s.apply("y", newObject(t, set, ns, "new", "Delete"))
	if got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "it is not replaced: its claims would be deleted with it") {
		t.Errorf("got %v", got[0].Err)
	}
	if liveOf(t, statefulSets, ns, "db").GetUID() != before {
		t.Error("replaced")
	}
	s.apply("z", newObject(t, set, ns, "old", "Retain")) // that can be changed, and then the claims stay
	same(t, []string{"StatefulSet recreated"}, outcomes(s.toTheEnd("y", newObject(t, set, ns, "new", "Retain"))))
}

func TestReplaceHonoursWhatKeepsTheLiveObject(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	for i, change := range []string{
		`{"metadata":{"annotations":{"swell.sh/prune":"disabled"}}}`,
		`{"metadata":{"annotations":{"client.lifecycle.config.k8s.io/deletion":"detach"}}}`,
		`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"helm"}}}`,
	} {
		s := newState(t, c)
		name := string(rune('a' + i))
		s.apply("x", newObject(t, roleBinding, ns, name, "reader", allowed))
		maps := somebody(t).Resource(roleBindings).Namespace(ns)
		if _, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(change), metav1.PatchOptions{FieldManager: "kubectl"}); err != nil {
			t.Fatal(err)
		}
		got := s.apply("y", newObject(t, roleBinding, ns, name, "writer", allowed))
		if got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "it is not replaced: it is ") {
			t.Errorf("%s: got %v", change, got[0].Err)
		}
		if role, _, _ := unstructured.NestedString(liveOf(t, roleBindings, ns, name).Object, "roleRef", "name"); role != "reader" {
			t.Errorf("%s: replaced", change)
		}
	}
}

// A Service gives its addresses up before the new one can have them.
func TestReplaceOfAService(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	const service = "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: %s, " + allowed + "}, spec: {type: %s, clusterIP: %s, selector: {app: a}, ports: [{port: 80, nodePort: %s}]}}"
	// By itself the server gives ports below 30086 to nobody as long as others are free.
	s.apply("x", newObject(t, service, ns, "ClusterIP", "None", "null"))
	same(t, []string{"Service recreated"}, outcomes(s.apply("y", newObject(t, service, ns, "NodePort", "10.96.201.9", "30007"))))
	same(t, []string{"Service recreated"}, outcomes(s.apply("z", newObject(t, service, ns, "NodePort", "10.96.201.10", "30007"))))
	if port, _, _ := unstructured.NestedSlice(liveOf(t, services, ns, "a").Object, "spec", "ports"); port[0].(map[string]any)["nodePort"] != int64(30007) {
		t.Errorf("got %v", port)
	}
}

// deny makes an admission policy that lets only those objects be created that the
// CEL allows, and waits until the server knows it.
func deny(t *testing.T, ns, allows string, knows func() bool) {
	t.Helper()
	denyOn(t, "CREATE", ns, allows, knows)
}

func denyOn(t *testing.T, operation, ns, allows string, knows func() bool) {
	t.Helper()
	create(t, policies, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: `+ns+`}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [`+operation+`], resources: ["*"], scope: Namespaced}] # the selector of namespaces lets through all that is in none
  validations: [{expression: "`+allows+`", message: not today}]
`)
	create(t, bindings, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: `+ns+`}
spec: {policyName: `+ns+`, validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+ns+`}}}}
`)
	eventually(t, func() (bool, string) { return knows(), "the policy does not hold yet" })
}

// The new one passes the trial and is refused all the same: the old one comes
// back, and is ours as before.
func TestReplacePutsTheOldOneBack(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	old := newObject(t, roleBinding, ns, "a", "reader", allowed)
	s.apply("x", old)
	deny(t, ns, "!(object.metadata.name in ['a', 'probe'] && object.roleRef.name == 'writer')", func() bool {
		probe := newObject(t, roleBinding, ns, "probe", "writer", "")
		err := c.begin().tryOutAs(t.Context(), probe, probe.ID)
		return err != nil
	})
	before := liveOf(t, roleBindings, ns, "a")
	got := s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))
	if !errors.Is(got[0].Err, ErrRefused) || !strings.HasSuffix(got[0].Err.Error(), "denied request: not today; the old one was put back") {
		t.Errorf("got %v", got[0].Err)
	}
	after := liveOf(t, roleBindings, ns, "a")
	if role, _, _ := unstructured.NestedString(after.Object, "roleRef", "name"); role != "reader" || after.GetUID() == before.GetUID() {
		t.Errorf("got %v", after.Object)
	}
	same(t, string(after.GetUID()), s.known[old.ID].UID)
	same(t, owners(before), owners(after))
	s.apply("x", old) // as a rollback does
	same(t, owners(before), owners(liveOf(t, roleBindings, ns, "a")))
	same(t, []string{"RoleBinding deleted"}, outcomes(s.deletes(old.ID)))
}

// owners are who owns which fields, without times.
func owners(live *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	entries := live.GetManagedFields()
	for i := range entries {
		entries[i].Time = nil
	}
	return entries
}

// So do objects of other kinds, with what the server and others had set on them.
func TestReplacePutsBackWhatOthersSet(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	const service = "{apiVersion: v1, kind: Service, metadata: {name: %[2]s, namespace: %[1]s, " + allowed + ", labels: {value: %[3]s}}, spec: {clusterIP: %[4]s, selector: {app: a}, ports: [{port: 80}]}}"
	const config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %[1]s, " + allowed + ", labels: {value: %[2]s}}, immutable: true, data: {value: %[2]s}}"
	const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, labels: {value: %[2]s}, ` + allowed + `}
spec:
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec: {containers: [{name: main, image: "registry.example.com/x:1"}]}
`
	for _, test := range []struct {
		resource schema.GroupVersionResource
		old, new *object.Object
	}{
		{services, newObject(t, service, ns, "a", "old", "10.96.201.21"), newObject(t, service, ns, "a", "new", "10.96.201.22")},
		{configMaps, newObject(t, config, ns, "old"), newObject(t, config, ns, "new")},
		{deployments, newObject(t, web, ns, "old"), newObject(t, web, ns, "new")},
	} {
		s := newState(t, c)
		s.toTheEnd("x", test.old)
		if test.old.ID.Kind == "Deployment" {
			becomes(t, c, health.Health{State: health.Healthy}, test.old)
		}
		_, err := somebody(t).Resource(test.resource).Namespace(ns).Patch(t.Context(), test.old.ID.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"example.com/note":"kept"}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
		if err != nil {
			t.Fatal(err)
		}
		if test.resource == services { // from here on, for all of them
			deny(t, ns, "!(object.metadata.name in ['a', 'web', 'probe'] && 'labels' in object.metadata && 'value' in object.metadata.labels && object.metadata.labels.value == 'new')", func() bool {
				probe := newObject(t, service, ns, "probe", "new", "None")
				return c.begin().tryOutAs(t.Context(), probe, probe.ID) != nil
			})
		}
		before := liveOf(t, test.resource, ns, test.old.ID.Name)
		var got []Result
		eventually(t, func() (bool, string) {
			got = s.apply("y", test.new)
			return got[0].Err != nil, got[0].Reason
		})
		if !strings.HasSuffix(got[0].Err.Error(), "not today; the old one was put back") {
			t.Errorf("%s: %v", test.old.ID, got[0].Err)
		}
		after := liveOf(t, test.resource, ns, test.old.ID.Name)
		if after.GetUID() == before.GetUID() || after.GetAnnotations()["example.com/note"] != "kept" {
			t.Errorf("%s: got %v", test.old.ID, after.Object)
		}
		for _, field := range []string{"spec", "data"} {
			same(t, before.Object[field], after.Object[field])
		}
		s.toTheEnd("x", test.old)
		same(t, []string{test.old.ID.Kind + " deleted"}, outcomes(s.deletes(test.old.ID)))
	}
}

// The old one may be gone for good at any moment of an apply, here between the answer that it
// is terminating and the next look at it.
func TestReplacePutsBackWhatWentAtThisMoment(t *testing.T) {
	t.Parallel()
	ns := space(t)
	const config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %[1]s, finalizers: [example.com/slow], " + allowed + ", labels: {value: %[2]s}}, immutable: true, data: {value: %[2]s}}"
	goes := func() {
		_, err := somebody(t).Resource(configMaps).Namespace(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	var once sync.Once
	var armed atomic.Bool
	cfg := apiServer(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if armed.Load() && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/a") {
				once.Do(goes)
			}
			return next.RoundTrip(r)
		})
	})
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newState(t, c)
	s.toTheEnd("x", newObject(t, config, ns, "old"))
	deny(t, ns, "!(object.metadata.name in ['a', 'probe'] && 'labels' in object.metadata && 'value' in object.metadata.labels && object.metadata.labels.value == 'new')", func() bool {
		probe := newObject(t, strings.Replace(config, "name: a", "name: probe", 1), ns, "new")
		return c.begin().tryOutAs(t.Context(), probe, probe.ID) != nil
	})
	fresh := newObject(t, config, ns, "new")
	if got := s.apply("y", fresh); got[0].Waits == "" {
		t.Fatalf("with a finalizer: %+v", got[0])
	}
	armed.Store(true)
	got := s.apply("y", fresh)
	if text := errText(got[0].Err); !strings.HasSuffix(text, "not today; the old one was put back") {
		t.Errorf("got %q", text)
	}
	if value := liveOf(t, configMaps, ns, "a").GetLabels()["value"]; value != "old" {
		t.Errorf("value %q", value)
	}
	goes()
}

func TestReplaceWhenTheDeletionIsDenied(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	old := newObject(t, roleBinding, ns, "a", "reader", allowed)
	s.apply("x", old)
	create(t, roleBindings, string(newObject(t, roleBinding, ns, "probe", "reader", "").JSON))
	denyOn(t, "DELETE", ns, "!(oldObject.metadata.name in ['a', 'probe'])", func() bool {
		dryRun := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
		return somebody(t).Resource(roleBindings).Namespace(ns).Delete(t.Context(), "probe", dryRun) != nil
	})
	before := liveOf(t, roleBindings, ns, "a").GetUID()
	for range 2 {
		got := s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))
		if !errors.Is(got[0].Err, ErrRefused) || !strings.HasSuffix(got[0].Err.Error(), "denied request: not today") {
			t.Errorf("got %v", got[0].Err)
		}
	}
	if liveOf(t, roleBindings, ns, "a").GetUID() != before {
		t.Error("replaced")
	}
	same(t, []string{"RoleBinding configured"}, outcomes(s.apply("z", newObject(t, roleBinding, ns, "a", "reader", allowed+", labels: {a: b}"))))
}

// The process is killed between delete and create: the next pass, of another
// process, makes the new one.
func TestReplaceKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	ns := space(t)
	cfg := apiServer(t)
	var dead atomic.Bool
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if dead.Load() {
				return nil, syscall.ECONNREFUSED
			}
			if r.Method == http.MethodDelete {
				dead.Store(true)
			}
			return next.RoundTrip(r)
		})
	})
	for _, test := range []struct {
		name     string
		resource schema.GroupVersionResource
		old, new *object.Object
	}{
		{"a", roleBindings, newObject(t, roleBinding, ns, "a", "reader", allowed), newObject(t, roleBinding, ns, "a", "writer", allowed)},
		{"web", deployments, newObject(t, selecting, ns, "old", "old"), newObject(t, selecting, ns, "new", "new")},
	} {
		dead.Store(false)
		first, err := Connect(cfg, testRepository, Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := newState(t, first)
		s.apply("x", test.old)
		uid := liveOf(t, test.resource, ns, test.name).GetUID()
		s.apply("y", test.new)
		if !dead.Load() {
			t.Fatal("nothing was deleted")
		}
		second, _ := connect(t, Options{})
		again := newState(t, second)
		again.known = s.known
		again.toTheEnd("y", test.new)
		if after := liveOf(t, test.resource, ns, test.name); after.GetUID() == uid {
			t.Error("not replaced")
		}
		same(t, test.new.Digest, again.known[test.new.ID].Digest)
	}
}

// What holds the old object up is waited for over the passes of more than one
// process.
func TestReplaceWaitsForFinalizers(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.apply("x", newObject(t, roleBinding, ns, "a", "reader", allowed))
	finalizers := func(list string) {
		_, err := somebody(t).Resource(roleBindings).Namespace(ns).Patch(t.Context(), "a", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{FieldManager: "other"})
		if err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.com/wait"]`)
	w.take()
	for range 2 {
		got := s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))
		what := "replacement of RoleBinding/" + ns + "/a"
		same(t, []string{"RoleBinding skipped (" + what + ")"}, outcomes(got))
		same(t, "waits for "+what+": terminating, waits for example.com/wait", got[0].Reason)
	}
	same(t, 1, w.methods()["DELETE"])
	finalizers("null")
	same(t, []string{"RoleBinding recreated"}, outcomes(s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))))
}

// What Git dropped while it was being replaced is not put back by a later apply
// that is refused.
func TestReplaceEndsWithAPrune(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	s.apply("x", newObject(t, roleBinding, ns, "a", "reader", allowed))
	id := newObject(t, roleBinding, ns, "a", "reader", allowed).ID
	finalizers := func(list string) {
		_, err := somebody(t).Resource(roleBindings).Namespace(ns).Patch(t.Context(), "a", types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":`+list+`}}`), metav1.PatchOptions{FieldManager: "other"})
		if err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.com/wait"]`)
	same(t, []string{"RoleBinding skipped (replacement of RoleBinding/" + ns + "/a)"}, outcomes(s.apply("y", newObject(t, roleBinding, ns, "a", "writer", allowed))))
	finalizers("null")
	same(t, []string{"RoleBinding deleted"}, outcomes(s.deletes(id)))

	deny(t, ns, "object.roleRef.name != 'writer'", func() bool {
		probe := newObject(t, roleBinding, ns, "probe", "writer", "")
		return c.begin().tryOutAs(t.Context(), probe, probe.ID) != nil
	})
	got := s.apply("z", newObject(t, roleBinding, ns, "a", "writer", allowed))
	if !errors.Is(got[0].Err, ErrRefused) || strings.Contains(got[0].Err.Error(), "put back") {
		t.Errorf("got %v", got[0].Err)
	}
	if old, err := somebody(t).Resource(roleBindings).Namespace(ns).Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Errorf("an object that was to be gone is back: %v", old.Object)
	}
}

// What somebody else had, and is deleting, is not put back in the place of what
// the server did not take.
func TestReplacePutsNobodyElsesBack(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	const theirs = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, finalizers: [example.com/wait]}, immutable: true, data: {value: theirs}}"
	create(t, configMaps, strings.ReplaceAll(theirs, "%s", ns))
	id := object.ID{Kind: "ConfigMap", Namespace: ns, Name: "a"}
	remove(t, id)
	s := newState(t, c)
	ours := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/replace: allowed, swell.sh/adopt: take}}, immutable: true, data: {value: ours}}", ns)
	if got := s.apply("x", ours); got[0].Waits == "" {
		t.Fatalf("got %+v", got[0])
	}
	edit(t, id, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "other")
	deny(t, ns, "!(object.kind == 'ConfigMap' && object.data.value == 'ours')", func() bool {
		probe := configMap(t, ns, "probe", "ours")
		return c.begin().tryOutAs(t.Context(), probe, probe.ID) != nil
	})
	got := s.apply("x", ours)
	if !errors.Is(got[0].Err, ErrRefused) || exists(t, id) {
		t.Errorf("got %v; somebody's object is back: %t", got[0].Err, exists(t, id))
	}
}
