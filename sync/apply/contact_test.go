// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
)

func unstructuredOf(t testing.TB, o *render.Object) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(o.JSON); err != nil {
		t.Fatal(err)
	}
	return &u
}

// resourceOf are the resources of the kinds that tests use.
var resourceOf = map[string]schema.GroupVersionResource{"ConfigMap": configMaps, "Deployment": deployments}

func live(t testing.TB, o *render.Object) *unstructured.Unstructured {
	t.Helper()
	got, err := theirs(t, o).Get(t.Context(), o.ID.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func theirs(t testing.TB, o *render.Object) dynamic.ResourceInterface {
	return somebody(t).Resource(resourceOf[o.ID.Kind]).Namespace(o.ID.Namespace)
}

// applyAs applies text as another manager, by force.
func applyAs(t testing.TB, manager string, o *render.Object, text string) {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	force := true
	_, err = theirs(t, o).Patch(t.Context(), o.ID.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: &force})
	if err != nil {
		t.Fatal(err)
	}
}

// mergeAs changes an object as somebody who does not apply, kubectl edit for one.
func mergeAs(t testing.TB, manager string, o *render.Object, patch string, subresources ...string) {
	t.Helper()
	_, err := theirs(t, o).Patch(t.Context(), o.ID.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// discardNow deletes the live object.
func discardNow(t testing.TB, o *render.Object) {
	t.Helper()
	if err := theirs(t, o).Delete(t.Context(), o.ID.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// one brings a single object that the inventory does not know.
func one(t testing.TB, c *Cluster, o *render.Object, adopt config.Adoption) Result {
	t.Helper()
	return c.Apply(t.Context(), Work{Objects: []*render.Object{o}, Adopt: adopt})[0]
}

// again brings an object that the inventory knows as an earlier result left it.
func again(t testing.TB, c *Cluster, o *render.Object, before Result, ignore ...config.IgnoreRule) Result {
	t.Helper()
	known := inventory(t, []Result{before})
	entry := known[before.ID]
	entry.Digest = ""
	known[before.ID] = entry
	return c.Apply(t.Context(), Work{Objects: []*render.Object{o}, Known: known, Ignore: ignore})[0]
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// untouched fails the test when the live object was written meanwhile.
func untouched(t testing.TB, o *render.Object, do func()) {
	t.Helper()
	before := live(t, o).GetResourceVersion()
	do()
	if after := live(t, o).GetResourceVersion(); after != before {
		t.Errorf("%s was written", o.ID)
	}
}

func TestContactNewObjectCostsOneRequest(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	for _, adopt := range []config.Adoption{"", config.AdoptNever, config.AdoptIfSame, config.AdoptTake} {
		r := one(t, c, configMap(t, ns, "a"+strings.ToLower(string(adopt)), "1"), adopt)
		if r.Err != nil || r.Action != Created {
			t.Errorf("%s: %+v", adopt, r)
		}
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 4}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

func TestContactNeverRefusesAndNamesTheMaker(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	bare := unstructuredOf(t, o)
	bare.SetLabels(nil)
	bare.SetAnnotations(nil)
	if _, err := theirs(t, o).Create(t.Context(), bare, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
	untouched(t, o, func() {
		r := one(t, c, o, config.AdoptNever)
		want := "apply " + o.ID.String() + ": it is there already, made by kubectl-create (Update), and nothing may be adopted: " + howToTake
		if diff := cmp.Diff(want, errText(r.Err)); diff != "" {
			t.Error(diff)
		}
		if !errors.Is(r.Err, ErrRefused) || r.Entry.UID != "" {
			t.Errorf("%+v", r)
		}
	})
}

func TestContactIfSameAdoptsWhatIsTheSame(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	o := configMap(t, ns, "a", "1")
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+ns+"}, data: {value: '1', other: x}}")
	r := one(t, c, o, "")
	if r.Err != nil || r.Action != Configured || !strings.Contains(r.Adopted, "(Update)") || r.Taken != nil {
		t.Fatalf("%+v", r)
	}
	got := live(t, o)
	if diff := cmp.Diff(map[string]any{"value": "1", "other": "x"}, got.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if r.Entry.UID != string(got.GetUID()) || got.GetLabels()[render.LabelManagedBy] != render.ManagedBy {
		t.Errorf("%+v", r.Entry)
	}
}

func TestContactIfSameRefusesWhatWouldChange(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	o := object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}, data: {a: '1', b: '1', c: '1'}}", ns)
	applyAs(t, "other", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '2', c: '1'}}")
	mergeAs(t, "kubectl-edit", o, `{"data":{"b":"2"}}`)
	untouched(t, o, func() {
		want := "apply " + o.ID.String() + ": it is there already, with other values: .data.a by other (Apply), .data.b by kubectl-edit (Update): " + howToTake
		for range 2 {
			r := one(t, c, o, config.AdoptIfSame)
			if diff := cmp.Diff(want, errText(r.Err)); diff != "" {
				t.Error(diff)
			}
			if !errors.Is(r.Err, ErrRefused) || r.Entry.UID != "" || r.Action != "" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// An object that was made while we were about to create ours is a conflict, and
// is not overwritten.
func TestContactSomebodyMakesItInBetween(t *testing.T) {
	cfg := apiServer(t)
	o := configMap(t, space(t), "a", "ours")
	var once sync.Once
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				once.Do(func() {
					applyAs(t, "other", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: theirs}}")
				})
			}
			return next.RoundTrip(r)
		})
	})
	c, err := Connect(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := one(t, c, o, "")
	if r.Err == nil || !strings.Contains(r.Err.Error(), ".data.value by other (Apply)") {
		t.Errorf("got %v", r.Err)
	}
	if diff := cmp.Diff(map[string]any{"value": "theirs"}, live(t, o).Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func TestContactAnnotationWinsOverThePolicy(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: '%s', namespace: " + ns + ", annotations: {swell.sh/adopt: '%s'}}, data: {value: '1'}}"
	for _, test := range []struct {
		annotation string
		policy     config.Adoption
		refused    string
	}{
		{"never", config.AdoptTake, "nothing may be adopted"},
		{"ifSame", config.AdoptTake, "with other values"},
		{"take", config.AdoptNever, ""},
		{"yes", config.AdoptTake, `annotation swell.sh/adopt: want never, ifSame or take, got "yes"`},
	} {
		o := object(t, text, strings.ToLower(test.annotation), test.annotation)
		applyAs(t, "other", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: '"+o.ID.Name+"'}, data: {value: '2'}}")
		r := one(t, c, o, test.policy)
		if test.refused == "" && r.Err != nil || test.refused != "" && !strings.Contains(errText(r.Err), test.refused) {
			t.Errorf("%s: %v", test.annotation, r.Err)
		}
	}
}

// What other deployment tools put on their objects.
var claimed = []struct{ metadata, by string }{
	{"labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}", "Flux Kustomization flux-system/apps"},
	{"labels: {helm.toolkit.fluxcd.io/name: cart, helm.toolkit.fluxcd.io/namespace: shop}, annotations: {meta.helm.sh/release-name: shop-cart, meta.helm.sh/release-namespace: shop}",
		"Flux HelmRelease shop/cart"},
	{"annotations: {argocd.argoproj.io/tracking-id: 'shop:/ConfigMap:NS/a'}", "Argo CD application shop"},
	{"labels: {argocd.argoproj.io/instance: shop}", "Argo CD application shop"},
	{"labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: cart, meta.helm.sh/release-namespace: shop}", "Helm release shop/cart"},
	{"labels: {kapp.k14s.io/app: '1700000000', kapp.k14s.io/association: v1.abc}", "kapp app 1700000000"},
	{"annotations: {configmanagement.gke.io/managed: enabled, configsync.gke.io/resource-id: _configmap_NS_a, configsync.gke.io/manager: ':root'}", "Config Sync :root"},
	{"annotations: {configmanagement.gke.io/managed: enabled}", "Config Sync"},
	{"ownerReferences: [{apiVersion: v1, kind: Thing, name: boss, uid: '1', controller: true}]", "its controller, Thing boss"},
	// Marks that do not count.
	{"annotations: {argocd.argoproj.io/tracking-id: 'shop:/ConfigMap:NS/b'}", ""},
	{"labels: {app.kubernetes.io/instance: shop}", ""},
	{"annotations: {configmanagement.gke.io/managed: disabled}", ""},
	{"annotations: {configmanagement.gke.io/managed: enabled, configsync.gke.io/resource-id: _configmap_NS_b}", ""},
}

func TestContactRefusesObjectsOfOtherTools(t *testing.T) {
	c, _ := connect(t, Options{})
	for _, test := range claimed {
		ns := space(t)
		o := configMap(t, ns, "a", "1")
		metadata := strings.ReplaceAll(test.metadata, "NS", ns)
		create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: "+ns+", "+metadata+"}, data: {value: '1'}}")
		r := one(t, c, o, config.AdoptIfSame)
		want := ""
		if test.by != "" {
			want = "apply " + o.ID.String() + ": it is there already and belongs to " + test.by + ": " + howToTake
		}
		if diff := cmp.Diff(want, errText(r.Err)); diff != "" {
			t.Errorf("%s: %s", test.metadata, diff)
		}
		if r = one(t, c, o, config.AdoptTake); r.Err != nil {
			t.Errorf("%s: %v", test.metadata, r.Err)
		}
	}
}

// An Argo CD that tracks by the common label is told by its field manager.
func TestContactKnowsArgoCDByItsManager(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	applyAs(t, "argocd-controller", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app.kubernetes.io/instance: shop}}, data: {value: '1'}}")
	if r := one(t, c, o, ""); !strings.Contains(errText(r.Err), "belongs to Argo CD application shop") {
		t.Errorf("got %v", r.Err)
	}
}

// managers of an object, without those that only read.
func managers(o *unstructured.Unstructured) []string {
	var names []string
	for _, e := range o.GetManagedFields() {
		names = append(names, e.Manager+" "+string(e.Operation))
	}
	slices.Sort(names)
	return names
}

func TestContactTakeCleansTheTool(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: " + ns + "}, data: {%s}}"
	o := object(t, text, "same: '1', changed: ours, dropped: '1'")
	applyAs(t, "kustomize-controller", o, `{apiVersion: v1, kind: ConfigMap,
 metadata: {name: a, labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux, team: x}},
 data: {same: '1', changed: theirs, dropped: '1', alone: '1'}}`)
	mergeAs(t, "kubectl-client-side-apply", o, `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"data":{"edited":"1"}}`)
	mergeAs(t, "some-controller", o, `{"data":{"controlled":"1"}}`)
	w.take()

	r := one(t, c, o, config.AdoptTake)
	if r.Err != nil || r.Action != Configured || r.Adopted != "Flux Kustomization flux/apps" {
		t.Fatalf("%+v", r)
	}
	var taken []string
	for _, change := range r.Taken {
		taken = append(taken, change.Field+" "+change.who())
	}
	if diff := cmp.Diff([]string{".data.changed kustomize-controller (Apply)"}, taken); diff != "" {
		t.Error(diff)
	}
	want := []string{"stays as it was before the take-over, for Git does not say: .data.alone, .data.edited, .metadata.labels.team"}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
	got := live(t, o)
	if diff := cmp.Diff([]string{"some-controller Update", "swell Apply"}, managers(got)); diff != "" {
		t.Error(diff)
	}
	if got.GetLabels()["kustomize.toolkit.fluxcd.io/name"] != "" || got.GetAnnotations()[lastApplied] != "" || got.GetLabels()["team"] != "x" {
		t.Errorf("labels %v, annotations %v", got.GetLabels(), got.GetAnnotations())
	}
	all := map[string]any{"same": "1", "changed": "ours", "dropped": "1", "alone": "1", "edited": "1", "controlled": "1"}
	if diff := cmp.Diff(all, got.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if drifts := swept(t, c, []store.Entry{r.Entry}); drifts != nil {
		t.Error(drifts)
	}

	// A field that Git drops now goes, although the tool had set it too.
	w.take()
	r = again(t, c, object(t, text, "same: '1', changed: ours"), r)
	if r.Err != nil || r.Taken != nil {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
	delete(all, "dropped")
	if diff := cmp.Diff(all, live(t, o).Object["data"]); diff != "" {
		t.Error(diff)
	}
}

// A take-over that was cut short after the apply is finished by the next one.
func TestContactTakeIsFinishedAfterACut(t *testing.T) {
	c, _ := connect(t, Options{})
	o := configMap(t, space(t), "a", "1")
	applyAs(t, "helm", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {meta.helm.sh/release-name: x}}, data: {value: '2'}}")
	applyAs(t, FieldManager, o, string(o.JSON)) // as far as it got
	if r := one(t, c, o, config.AdoptTake); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := live(t, o)
	if diff := cmp.Diff([]string{"swell Apply"}, managers(got)); diff != "" {
		t.Error(diff)
	}
	if got.GetAnnotations()["meta.helm.sh/release-name"] != "" {
		t.Error("still Helm's by its annotations")
	}
}

// tests.md: state lost.
func TestContactStateLost(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	objects := make([]*render.Object, 200)
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
	if most := 16 + 16; lists != 1 || gets > most || patches > len(objects)+most {
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
	c, err := Connect(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.contacts.keep = time.Hour
	var objects []*render.Object
	for i := range 10 {
		objects = append(objects, configMap(t, ns, fmt.Sprintf("c%d", i), "1"))
		create(t, configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d, namespace: %s}, data: {value: '1'}}", i, ns))
	}
	eventually(t, func() (bool, string) { // the authorizer takes a moment to see the binding
		r := c.bring(t.Context(), []*render.Object{configMap(t, ns, "probe", "1")}, nil)[0]
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

// tests.md: object deleted and recreated by someone, here before our apply.
func TestContactRecreatedBySomebodyIsFirstContact(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	o := configMap(t, ns, "a", "1")
	first := one(t, c, o, "")
	recreate := func(value string) {
		discardNow(t, o)
		applyAs(t, "other", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: '"+value+"'}}")
	}
	// With other values, the same ones, and none at all.
	recreate("theirs")
	untouched(t, o, func() {
		if r := again(t, c, o, first); !strings.Contains(errText(r.Err), "with other values: .data.value by other (Apply)") || r.Entry.UID != first.Entry.UID {
			t.Errorf("%+v", r)
		}
	})
	recreate("1")
	r := again(t, c, o, first)
	if r.Err != nil || r.Adopted != "other (Apply)" || r.Entry.UID != string(live(t, o).GetUID()) {
		t.Errorf("%+v", r)
	}
	discardNow(t, o)
	if r = again(t, c, o, first); r.Err != nil || r.Action != Created || r.Entry.UID == first.Entry.UID {
		t.Errorf("%+v", r)
	}
}

// What was written before the last request was refused is not forgotten: a
// bundle put back to what the inventory says would not be sent.
func TestContactRefusedAfterTheWriteLeavesTheDigestOpen(t *testing.T) {
	cfg := apiServer(t)
	refuse := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.Header.Get("Content-Type"), "json-patch") {
				r.URL.Path = "/api/v1/namespaces/nobody-made-this/configmaps/a"
			}
			return next.RoundTrip(r)
		})
	}
	cfg.Wrap(refuse)
	c, err := Connect(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/owned-annotations: 'example.com/*'}}, data: {value: '%s'}}"
	ns := space(t)
	first := one(t, c, object(t, text, ns, "1"), "")
	second := object(t, text, ns, "2")
	mergeAs(t, "other", second, `{"metadata":{"annotations":{"example.com/x":"1"}}}`)
	r := c.Apply(t.Context(), Work{Objects: []*render.Object{second}, Known: inventory(t, []Result{first})})[0]
	if r.Err == nil || !errors.Is(r.Err, ErrRefused) || r.Entry.UID == "" || r.Entry.Digest != "" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(map[string]any{"value": "2"}, live(t, second).Object["data"]); diff != "" {
		t.Error(diff)
	}
}

// Every kind, however it is stored, is created by one request that would not
// have touched an object that is there, and is found to be ours without state.
func TestContactWithEveryKind(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	var objects []*render.Object
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
		objects = append(objects, object(t, "%s", strings.ReplaceAll(text, "NS", ns)))
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
	known := map[render.ObjectID]store.Entry{}
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

// tests.md: 504 after the write went through. The next attempt finds the object
// there, and finds that it is ours.
func TestContactCreatedBehindAGatewayTimeout(t *testing.T) {
	cfg := apiServer(t)
	var once sync.Once
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && r.Method == http.MethodPatch {
				once.Do(func() { resp.StatusCode = http.StatusGatewayTimeout })
			}
			return resp, err
		})
	})
	c, err := Connect(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := configMap(t, space(t), "a", "1")
	r := one(t, c, o, config.AdoptNever)
	if r.Err != nil || r.Adopted != "" || r.Entry.UID != string(live(t, o).GetUID()) || r.Entry.Digest != o.Digest {
		t.Errorf("%+v", r)
	}
}

// A quota whose status many creations fight over is no object in the way.
func TestContactUnderAQuota(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	applied(t, c, object(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: %s}, spec: {hard: {count/configmaps: '1000'}}}", ns))
	mergeQuota := []byte(`{"status":{"hard":{"count/configmaps":"1000"},"used":{"count/configmaps":"0"}}}`) // as its controller would
	quotas := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	if _, err := somebody(t).Resource(quotas).Namespace(ns).Patch(t.Context(), "q", types.MergePatchType, mergeQuota, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	var objects []*render.Object
	for i := range 100 {
		objects = append(objects, configMap(t, ns, fmt.Sprintf("c%d", i), "1"))
	}
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil || r.Entry.UID == "" {
			t.Errorf("%+v", r)
		}
	}
}
