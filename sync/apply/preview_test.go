// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/simulator"
)

// TestPreview: what an apply would do is said, nothing is done, and the content
// of a Secret is not asked for.
func TestPreview(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {password: %s}\n"
	was := []*object.Object{
		configMap(t, ns, "same", "1"), configMap(t, ns, "other", "1"), newObject(t, deployment, ns, "web", "1"),
		newObject(t, secret, "kept", ns, "hunter2"), newObject(t, secret, "moved", ns, "hunter2"), configMap(t, ns, "left", "1"),
	}
	applied(t, c, was...)
	becomes(t, c, health.Health{State: health.Healthy}, was[2]) // until then others write it
	eventually(t, func() (bool, string) {                       // the times of managed fields have whole seconds
		meta, err := c.begin().getMeta(t.Context(), "Secret/moved", "/api/v1/namespaces/"+ns+"/secrets/moved")
		if err != nil {
			return false, err.Error()
		}
		return time.Since(entryTime(ownEntry(meta))) > 2*time.Second, "the second is not over"
	})
	w.take()
	is := []*object.Object{
		was[0], configMap(t, ns, "other", "2"), newObject(t, deployment, ns, "web", "2"),
		was[3], newObject(t, secret, "moved", ns, "hunter3"),
		configMap(t, ns, "new", "1"),
		newObject(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-later}\n", ns), configMap(t, ns+"-later", "in-it", "1"),
		configMap(t, ns+"-never", "lost", "1"),
		newObject(t, "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: x, namespace: %s}\n", ns),
		configMap(t, ns, "left", "2"),
		newObject(t, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: bad, namespace: %s}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {}}\n", ns),
	}
	got := c.Preview(t.Context(), Work{Objects: is, Ignore: []config.IgnoreRule{{Kind: "ConfigMap", Object: "left", Fields: []string{"/data/value"}}}})
	for i, want := range []Action{Unchanged, Configured, Configured, Unchanged, Configured, Created, Created, Created, "", "", Unchanged, ""} {
		if got[i].Action != want || (want == "") != (got[i].Err != nil) || got[i].ID != is[i].ID {
			t.Errorf("%s: %q, %v, want %q", is[i].ID, got[i].Action, got[i].Err, want)
		}
	}
	for _, s := range w.all {
		if strings.Contains(s.path, "/secrets/") && !strings.Contains(s.accept, "PartialObjectMetadata") {
			t.Errorf("%s %s asks for more than metadata", s.method, s.path)
		}
		if s.method != "GET" && !strings.Contains(s.query, "dryRun=All") {
			t.Errorf("%s %s?%s writes", s.method, s.path, s.query)
		}
	}
	web := got[2]
	if !strings.Contains(string(web.Live.JSON), "web:1") || !strings.Contains(string(web.Applied.JSON), "web:2") || strings.Contains(string(web.Applied.JSON), "managedFields") {
		t.Errorf("live %s\napplied %s", web.Live.JSON, web.Applied.JSON)
	}
	if got[7].Unproved == "" || got[4].Live != nil || got[4].Applied != nil {
		t.Errorf("%+v\n%+v", got[7], got[4])
	}
	if !errors.Is(got[9].Err, ErrNoKind) || !strings.Contains(got[8].Err.Error(), "not found") || !errors.Is(got[11].Err, ErrRefused) {
		t.Errorf("%v\n%v\n%v", got[8].Err, got[9].Err, got[11].Err)
	}
}

// TestPreviewWhileSomebodyWrites: what an autoscaler does between the look at an
// object and its dry run is not taken for what an apply would do. Nobody else
// writes an object of this kind.
func TestPreviewWhileSomebodyWrites(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	scales := strings.Replace(widgets, "    storage: true\n", "    storage: true\n    subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}\n", 1)
	web := newObject(t, widget, ns, "size: big")
	applied(t, c, newObject(t, scales, ns, "Widget", "size: {type: string}, replicas: {type: integer}"), web)
	scale := func(n int) {
		_, err := somebody(t).Resource(schema.GroupVersionResource{Group: ns + ".example.com", Version: "v1", Resource: "widgets"}).Namespace(ns).
			Patch(t.Context(), "a", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n), metav1.PatchOptions{FieldManager: "hpa"}, "scale")
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := apiServer(t)
	writes := 1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && writes > 0 {
				writes--
				scale(3 + writes)
			}
			return next.RoundTrip(r)
		})
	})
	busy, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := busy.Preview(t.Context(), Work{Objects: []*object.Object{web}})[0]; got.Action != Unchanged || got.Err != nil {
		t.Errorf("%q, %v; live %+v, applied %+v", got.Action, got.Err, got.Live, got.Applied)
	}
	writes = maxReads
	if got := busy.Preview(t.Context(), Work{Objects: []*object.Object{web}})[0]; got.Err == nil || !strings.Contains(got.Err.Error(), "somebody writes it all the time") {
		t.Errorf("%q, %v", got.Action, got.Err)
	}
}

// TestPreviewOfRefusals: what an apply would be refused is not told as a change,
// and a field that cannot be changed is named as an apply names it.
func TestPreviewOfRefusals(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	const foreign = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, annotations: {%s}}\ndata: {value: \"%s\"}\n"
	var objects []*object.Object
	for _, name := range []string{"same", "other", "helm", "taken"} {
		o, helm := configMap(t, ns, name, "1"), "note: x"
		if name == "helm" {
			helm = "meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: " + ns
		}
		value := map[bool]string{true: "1", false: "2"}[name == "same" || name == "helm"]
		applyAs(t, "kubectl", o, fmt.Sprintf(foreign, name, ns, helm, value))
		if name == "taken" {
			o = newObject(t, foreign, name, ns, "swell.sh/adopt: take", "1")
		}
		objects = append(objects, o)
	}
	unlabelled := configMap(t, ns, "unlabelled", "1")
	free, fixed := newObject(t, roleBinding, ns, "free", "reader", allowed), newObject(t, roleBinding, ns, "fixed", "reader", "")
	applied(t, c, unlabelled, free, fixed)
	mergeAs(t, "kubectl", unlabelled, `{"metadata":{"labels":null}}`)
	objects = append(objects, unlabelled, newObject(t, roleBinding, ns, "free", "writer", allowed), newObject(t, roleBinding, ns, "fixed", "writer", ""))

	got := c.Preview(t.Context(), Work{Objects: objects})
	for i, want := range []string{
		"configured", `it is there already, with other values: .data.value by kubectl (Apply): to take it over,`,
		"it is there already and belongs to Helm release " + ns + "/shop: to take it over,", "configured",
		"configured", "created", "roleRef cannot be changed (cannot change roleRef): revert it,",
	} {
		if said := string(got[i].Action) + errText(got[i].Err); !strings.Contains(said, want) {
			t.Errorf("%s: %s, want %s", got[i].ID, said, want)
		}
	}
	for _, i := range []int{0, 3} {
		if got := c.Preview(t.Context(), Work{Objects: objects[i : i+1], Adopt: config.AdoptNever})[0]; (got.Err == nil) == (i == 0) {
			t.Errorf("%s with adopt never: %v", got.ID, got.Err)
		}
	}
}

// TestPreviewOfHooks: one that ran for the bundle is no change, and another
// bundle runs it anew.
func TestPreviewOfHooks(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	ns := space(t)
	s := newState(t, c)
	before, last := hookJob(t, ns, "migrate", object.HookBefore, "1", ""), hookJob(t, ns, "dump", object.HookBeforeDelete, "1", "")
	s.toTheEnd("x", before, last)
	changed := hookJob(t, ns, "migrate", object.HookBefore, "2", "")
	for _, test := range []struct {
		bundle object.Digest
		hook   *object.Object
		want   Action
	}{{"x", before, Unchanged}, {"x", last, Unchanged}, {"y", before, Created}, {"y", changed, Created}, {"y", last, Unchanged}} {
		if got := c.Preview(t.Context(), Work{Objects: []*object.Object{test.hook}, Bundle: test.bundle})[0]; got.Action != test.want || got.Err != nil {
			t.Errorf("%s of bundle %s: %q, %v, want %q", got.ID, test.bundle, got.Action, got.Err, test.want)
		}
	}
}

// TestPreviewOfWhatIsKept: what an apply would not delete to make it anew is refused in a
// preview, too.
func TestPreviewOfWhatIsKept(t *testing.T) {
	t.Parallel()
	cluster := simulator.New()
	c := identified(t, Options{}, cluster.RoundTrip)
	const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: default, annotations: {swell.sh/replace: allowed, swell.sh/prune: %[2]s}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[3]s}
`
	kept := "it is not replaced: it is kept by the annotation swell.sh/prune: disabled"
	for prune, want := range map[string]string{"enabled": "", "disabled": kept} {
		if r := newState(t, c).apply("x", newObject(t, binding, prune, prune, "reader"))[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
		changed := newObject(t, binding, prune, prune, "writer")
		switch got := c.Preview(t.Context(), Work{Objects: []*object.Object{changed}})[0]; {
		case want == "" && (got.Err != nil || got.Unproved != "it is deleted and made anew"):
			t.Errorf("%s: %+v", prune, got)
		case want != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), want)):
			t.Errorf("%s: %+v", prune, got)
		}
	}
}
