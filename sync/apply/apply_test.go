// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

func TestIdentityIsTheUIDOfKubeSystem(t *testing.T) {
	c, w := connect(t, Options{})
	got, err := c.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live, err := somebody(t).Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := string(live.GetUID()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(w.take()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

func TestApplyCreatesAndThenCostsNothing(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	objects := []*object.Object{configMap(t, ns, "a", "1"), configMap(t, ns, "b", "1")}
	first := c.bring(t.Context(), objects, nil)
	known := inventory(t, first)
	if diff := cmp.Diff([]Action{Created, Created}, actions(first)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 2}, w.methods()); diff != "" {
		t.Error(diff)
	}
	live, err := somebody(t).Resource(configMaps).Namespace(ns).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := live.GetManagedFields()[0]
	want := store.Entry{
		Unit: testUnit, Target: "dev-1", ID: objects[0].ID, Version: "v1",
		UID: string(live.GetUID()), Digest: objects[0].Digest,
		Fields: rawFields(&own), Fingerprint: fingerprint(rawFields(&own), own.Time.Time), Written: own.Time.UTC().Format("2006-01-02T15:04:05Z07:00"),
	}
	if diff := cmp.Diff(want, known[objects[0].ID]); diff != "" {
		t.Error(diff)
	}

	second := c.bring(t.Context(), objects, known)
	if diff := cmp.Diff([]Action{Unchanged, Unchanged}, actions(second)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(known, inventory(t, second)); diff != "" {
		t.Error(diff)
	}
	if got := w.take(); len(got) != 0 {
		t.Errorf("sent %v", got)
	}
}

func TestApplySendsOnePatchForAChange(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	known := inventory(t, c.bring(t.Context(), []*object.Object{configMap(t, ns, "a", "1"), configMap(t, ns, "b", "1")}, nil))
	w.take()
	objects := []*object.Object{configMap(t, ns, "a", "2"), configMap(t, ns, "b", "1")}
	got := c.bring(t.Context(), objects, known)
	if diff := cmp.Diff([]Action{Configured, Unchanged}, actions(got)); diff != "" {
		t.Error(diff)
	}
	want := []sent{{"PATCH", "/api/v1/namespaces/" + ns + "/configmaps/a", "fieldManager=swell&fieldValidation=Strict", acceptMeta}}
	if diff := cmp.Diff(want, w.take(), cmp.AllowUnexported(sent{})); diff != "" {
		t.Error(diff)
	}
	if got[0].Entry.Digest != objects[0].Digest || got[0].Entry.Unit != testUnit {
		t.Errorf("entry %+v", got[0].Entry)
	}
}

// The second change of a second leaves no trace in managedFields: an answer that is
// written in the next second does not make it none.
func TestApplySeesASecondChangeInASecond(t *testing.T) {
	slow := false
	cfg := apiServer(t)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if slow && err == nil {
				time.Sleep(time.Second)
				resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
			}
			return resp, err
		})
	})
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := space(t)
	applied(t, c, configMap(t, ns, "other", "1")) // what is asked once has been asked
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	known := inventory(t, c.bring(t.Context(), []*object.Object{configMap(t, ns, "a", "1")}, nil))
	slow = true
	got := c.bring(t.Context(), []*object.Object{configMap(t, ns, "a", "2")}, known)
	if diff := cmp.Diff([]Action{Configured}, actions(got)); diff != "" {
		t.Error(diff)
	}
}

// An entry without a digest is sent, and a server that has it all says so.
func TestApplyWithoutADigestFindsNothingChanged(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	objects := []*object.Object{configMap(t, space(t), "a", "1")}
	entry := applied(t, c, objects...)[0]
	w.take()
	doubtful := entry
	doubtful.Digest = ""
	// Within the second of the first apply it cannot be told.
	eventually(t, func() (bool, string) {
		got := c.bring(t.Context(), objects, map[object.ID]store.Entry{entry.ID: doubtful})
		if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]store.Entry{entry}, []store.Entry{got[0].Entry}); diff != "" {
			t.Error(diff)
		}
		return got[0].Action == Unchanged, string(got[0].Action)
	})
}

func TestApplyReportsEveryErrorAndGoesOn(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	got := c.bring(t.Context(), []*object.Object{
		newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}, dota: {a: b}}", ns),
		configMap(t, ns, "b", "1"),
		newObject(t, "{apiVersion: v1, kind: Service, metadata: {name: c, namespace: %s}, spec: {ports: [{port: 99999}]}}", ns),
		newObject(t, "{apiVersion: nope.example.com/v1, kind: Thing, metadata: {name: d, namespace: %s}}", ns),
		newObject(t, "{apiVersion: apps/v1, kind: Deploiment, metadata: {name: e, namespace: %s}}", ns),
		newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: f}}"),
		newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: ../secrets/g, namespace: %s}}", ns),
	}, nil)
	want := []string{
		"apply ConfigMap/" + ns + "/a: failed to create typed patch object (" + ns + "/a; /v1, Kind=ConfigMap): .dota: field not declared in schema",
		"",
		`apply Service/` + ns + `/c: Service "c" is invalid: [spec.ports[0].port: Invalid value: 99999: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: 99999: must be between 1 and 65535, inclusive]`,
		`apply Thing.nope.example.com/` + ns + `/d: the cluster has no kind "Thing" in nope.example.com/v1`,
		`apply Deploiment/` + ns + `/e: the cluster has no kind "Deploiment" in apps/v1`,
		`apply ConfigMap/f: has no namespace, and its kind needs one`,
		`apply ConfigMap/` + ns + `/../secrets/g: "../secrets/g" cannot stand in the path of a request`,
	}
	for i, r := range got {
		text := ""
		if r.Err != nil {
			text = r.Err.Error()
		}
		if diff := cmp.Diff(want[i], text); diff != "" {
			t.Error(diff)
		}
		if r.Err != nil && (!errors.Is(r.Err, ErrRefused) && !errors.Is(r.Err, ErrMissing) || r.Action != "" || r.Entry.Digest != "") {
			t.Errorf("result %+v", r)
		}
	}
	if got[1].Action != Created {
		t.Errorf("the good object was %s", got[1].Action)
	}
	if !errors.Is(got[3].Err, ErrNoKind) || !errors.Is(got[4].Err, ErrNoKind) {
		t.Errorf("unknown kinds are not ErrNoKind")
	}
}

// Only strict validation minds this one: an unknown field has no place in an
// apply anyway.
func TestApplyRefusesAKeyThatIsThereTwice(t *testing.T) {
	c, _ := connect(t, Options{})
	twice := *configMap(t, space(t), "a", "1")
	twice.JSON = bytes.Replace(twice.JSON, []byte(`"value":"1"`), []byte(`"value":"1","value":"2"`), 1)
	err := c.bring(t.Context(), []*object.Object{&twice}, nil)[0].Err
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), `key "value" already set`) {
		t.Errorf("got %v", err)
	}
}

// A refused change leaves the entry as it was: the server still holds that.
func TestApplyKeepsTheEntryOfARefusedObject(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	text := "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: %s}, spec: {ports: [{port: %d}]}}"
	entry := applied(t, c, newObject(t, text, ns, 80))[0]
	got := c.bring(t.Context(), []*object.Object{newObject(t, text, ns, 99999)}, map[object.ID]store.Entry{entry.ID: entry})
	if got[0].Err == nil {
		t.Fatal("applied")
	}
	if diff := cmp.Diff(entry, got[0].Entry); diff != "" {
		t.Error(diff)
	}
}

func TestApplyNamesThePolicyThatDenied(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	objects := []*object.Object{
		newObject(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'bad'", message: "bad is  not a name"}]
`, ns),
		newObject(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}
`, ns),
	}
	entries := applied(t, c, objects...)
	t.Cleanup(func() { c.Prune(context.Background(), entries) })
	bad := configMap(t, ns, "bad", "1")
	// The server takes a moment to put a policy into force.
	eventually(t, func() (bool, string) {
		err := c.bring(t.Context(), []*object.Object{bad}, nil)[0].Err
		if err == nil {
			c.Prune(t.Context(), applied(t, c, bad))
			return false, "not denied"
		}
		want := `apply ConfigMap/` + ns + `/bad: configmaps "bad" is forbidden: ValidatingAdmissionPolicy '` + ns +
			`' with binding '` + ns + `' denied request: bad is not a name`
		return err.Error() == want && errors.Is(err, ErrRefused), err.Error()
	})
}

func TestApplySkipsWhatNeedsARefusedNamespace(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	got := c.bring(t.Context(), []*object.Object{
		newObject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s-new}, spec: {finalisers: [x]}}", ns),
		configMap(t, ns+"-new", "a", "1"),
		configMap(t, ns, "b", "1"),
	}, nil)
	if diff := cmp.Diff([]Action{"", Skipped, Created}, actions(got)); diff != "" {
		t.Error(diff)
	}
	want := "apply ConfigMap/" + ns + "-new/a: skipped: Namespace/" + ns + "-new was not applied"
	if got[1].Err == nil || got[1].Err.Error() != want || !errors.Is(got[1].Err, ErrRefused) {
		t.Errorf("got %v, want %s", got[1].Err, want)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 2}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

func TestApplyNamespaceAndItsObjectsInOneBundle(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t) + "-new"
	objects := []*object.Object{newObject(t, "{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns)}
	for i := range 40 {
		objects = append(objects, configMap(t, ns, fmt.Sprintf("c%d", i), "1"))
	}
	discard(t, namespaces, "", ns)
	inventory(t, c.bring(t.Context(), objects, nil))
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: %[2]s, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[3]s}}}}}
`

const widget = "{apiVersion: %[1]s.example.com/v1, kind: Widget, metadata: {name: a, namespace: %[1]s}, spec: {%[2]s}}"

func TestApplyDefinitionAndItsObjectsInOneBundle(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	first := []*object.Object{newObject(t, widgets, ns, "Widget", "size: {type: string}"), newObject(t, widget, ns, "size: big")}
	results := c.bring(t.Context(), first, nil)
	known := inventory(t, results)
	if diff := cmp.Diff([]Action{Created, Created}, actions(results)); diff != "" {
		t.Error(diff)
	}
	if w.methods()["PATCH"] != 2 {
		t.Error("more than one PATCH an object")
	}

	// The server judges by the old form for a moment after the change.
	second := []*object.Object{
		newObject(t, widgets, ns, "Widget", "size: {type: string}, color: {type: string}"),
		newObject(t, widget, ns, "size: big, color: red"),
	}
	results = c.bring(t.Context(), second, known)
	inventory(t, results)
	if diff := cmp.Diff([]Action{Configured, Configured}, actions(results)); diff != "" {
		t.Error(diff)
	}
}

func TestApplySkipsObjectsOfARefusedDefinition(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	got := c.bring(t.Context(), []*object.Object{
		newObject(t, widgets, ns, "Widget", "size: {type: strung}"), newObject(t, widget, ns, "size: big"), configMap(t, ns, "a", "1"),
	}, nil)
	if diff := cmp.Diff([]Action{"", Skipped, Created}, actions(got)); diff != "" {
		t.Error(diff)
	}
	want := "CustomResourceDefinition/widgets." + ns + ".example.com was not applied"
	if got[1].Reason != want {
		t.Errorf("got %q, want %q", got[1].Reason, want)
	}
}

// The names of the second definition collide with the first one's, so it is
// stored but never established.
func TestApplySaysWhyADefinitionIsNotEstablished(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	collides := strings.Replace(widgets, "plural: widgets}", "plural: gadgets}", 1)
	collides = strings.Replace(collides, "name: widgets.", "name: gadgets.", 1)
	discard(t, crds, "", "widgets."+ns+".example.com")
	discard(t, crds, "", "gadgets."+ns+".example.com")
	applied(t, c, newObject(t, widgets, ns, "Widget", "size: {type: string}"))
	got := c.bring(t.Context(), []*object.Object{newObject(t, collides, ns, "Widget", "size: {type: string}"), configMap(t, ns, "a", "1")}, nil)
	want := "apply CustomResourceDefinition/gadgets." + ns + ".example.com: its names are not accepted: "
	if got[0].Err == nil || !strings.HasPrefix(got[0].Err.Error(), want) {
		t.Errorf("got %v, want %s", got[0].Err, want)
	}
	if got[1].Action != Created {
		t.Errorf("the other object was %q: %v", got[1].Action, got[1].Err)
	}
}

func TestApplyStopsWithItsContext(t *testing.T) {
	c, w := connect(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := c.bring(ctx, []*object.Object{configMap(t, "default", "a", "1")}, nil)
	if err := got[0].Err; !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	if n := len(w.take()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
