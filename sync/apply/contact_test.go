// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

func unstructuredOf(t testing.TB, o *object.Object) *unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(o.JSON); err != nil {
		t.Fatal(err)
	}
	return &u
}

// resourceOf are the resources of the kinds that tests use.
var resourceOf = map[string]schema.GroupVersionResource{
	"ConfigMap": configMaps, "Deployment": deployments, "Secret": {Version: "v1", Resource: "secrets"},
	"HorizontalPodAutoscaler": {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
}

func current(t testing.TB, o *object.Object) *unstructured.Unstructured {
	t.Helper()
	got, err := theirs(t, o).Get(t.Context(), o.ID.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func theirs(t testing.TB, o *object.Object) dynamic.ResourceInterface {
	return somebody(t).Resource(resourceOf[o.ID.Kind]).Namespace(o.ID.Namespace)
}

// applyAs applies text as another manager, by force.
func applyAs(t testing.TB, manager string, o *object.Object, text string) {
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
func mergeAs(t testing.TB, manager string, o *object.Object, patch string, subresources ...string) {
	t.Helper()
	_, err := theirs(t, o).Patch(t.Context(), o.ID.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		t.Fatal(err)
	}
}

// discardNow deletes the live object.
func discardNow(t testing.TB, o *object.Object) {
	t.Helper()
	if err := theirs(t, o).Delete(t.Context(), o.ID.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// one brings a single object that the inventory does not know.
func one(t testing.TB, c *Cluster, o *object.Object, adopt config.Adoption) Result {
	t.Helper()
	return c.Apply(t.Context(), Work{Objects: []*object.Object{o}, Adopt: adopt})[0]
}

// again brings an object that the inventory knows as an earlier result left it.
func again(t testing.TB, c *Cluster, o *object.Object, before Result, ignore ...config.IgnoreRule) Result {
	t.Helper()
	known := inventory(t, []Result{before})
	entry := known[before.ID]
	entry.Digest = ""
	known[before.ID] = entry
	return c.Apply(t.Context(), Work{Objects: []*object.Object{o}, Known: known, Ignore: ignore})[0]
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// untouched fails the test when the live object was written meanwhile.
func untouched(t testing.TB, o *object.Object, do func()) {
	t.Helper()
	before := current(t, o).GetResourceVersion()
	do()
	if after := current(t, o).GetResourceVersion(); after != before {
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
	got := current(t, o)
	if diff := cmp.Diff(map[string]any{"value": "1", "other": "x"}, got.Object["data"]); diff != "" {
		t.Error(diff)
	}
	if r.Entry.UID != string(got.GetUID()) || got.GetLabels()[config.LabelManagedBy] != config.ManagedBy {
		t.Errorf("%+v", r.Entry)
	}
}

func TestContactIfSameRefusesWhatWouldChange(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	o := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}, data: {a: '1', b: '1', c: '1'}}", ns)
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
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := one(t, c, o, "")
	if r.Err == nil || !strings.Contains(r.Err.Error(), ".data.value by other (Apply)") {
		t.Errorf("got %v", r.Err)
	}
	if diff := cmp.Diff(map[string]any{"value": "theirs"}, current(t, o).Object["data"]); diff != "" {
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
		o := newObject(t, text, strings.ToLower(test.annotation), test.annotation)
		applyAs(t, "other", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: '"+o.ID.Name+"'}, data: {value: '2'}}")
		r := one(t, c, o, test.policy)
		if test.refused == "" && r.Err != nil || test.refused != "" && !strings.Contains(errText(r.Err), test.refused) {
			t.Errorf("%s: %v", test.annotation, r.Err)
		}
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
	if r.Err != nil || r.Adopted != "other (Apply)" || r.Entry.UID != string(current(t, o).GetUID()) {
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
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, annotations: {swell.sh/owned-annotations: 'example.com/*'}}, data: {value: '%s'}}"
	ns := space(t)
	first := one(t, c, newObject(t, text, ns, "1"), "")
	second := newObject(t, text, ns, "2")
	mergeAs(t, "other", second, `{"metadata":{"annotations":{"example.com/x":"1"}}}`)
	r := c.Apply(t.Context(), Work{Objects: []*object.Object{second}, Known: inventory(t, []Result{first})})[0]
	if r.Err == nil || !errors.Is(r.Err, ErrMissing) || r.Entry.UID == "" || r.Entry.Digest != "" {
		t.Errorf("%+v", r)
	}
	if diff := cmp.Diff(map[string]any{"value": "2"}, current(t, second).Object["data"]); diff != "" {
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
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := configMap(t, space(t), "a", "1")
	r := one(t, c, o, config.AdoptNever)
	if r.Err != nil || r.Adopted != "" || r.Entry.UID != string(current(t, o).GetUID()) || r.Entry.Digest != o.Digest {
		t.Errorf("%+v", r)
	}
}

// TestContactsAtOnce: several jobs come upon objects of one collection at the same time.
func TestContactsAtOnce(t *testing.T) {
	t.Parallel()
	var c contacts
	var finished sync.WaitGroup
	var key collection
	var reports atomic.Int32
	for n := range 8 {
		finished.Go(func() {
			for range 20 {
				if c.crowded(key) {
					reports.Add(1)
				}
				if !c.open(key) || c.recall(key, fmt.Sprint(n)) != nil {
					t.Error("nobody has listed it")
				}
			}
		})
	}
	finished.Wait()
	if got := reports.Load(); got != 8*20-contactLimit+1 {
		t.Errorf("%d were told that it is crowded, want all from the %dth on", got, contactLimit)
	}
}
