// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// said are changes as lines without times.
func said(changes []store.Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Field+" "+c.Author())
	}
	return lines
}

// tests.md: a person or controller changes our field.
func TestConflictWithAPersonIsTakenAndNamed(t *testing.T) {
	c, w := connect(t, Options{})
	ns := space(t)
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s}, data: {a: '1', b: '1', c: '%s'}}"
	first := one(t, c, newObject(t, text, ns, "1"), "")
	changed := newObject(t, text, ns, "2")
	mergeAs(t, "kubectl-edit", changed, `{"data":{"a":"theirs"}}`)
	applyAs(t, "other", changed, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: theirs}}")
	w.take()
	r := again(t, c, changed, first)
	if r.Err != nil || r.Action != Configured || r.Adopted != "" {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff([]string{".data.a kubectl-edit (Update)", ".data.b other (Apply)"}, said(r.Taken)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 2}, w.methods()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"a": "1", "b": "1", "c": "2"}, current(t, changed).Object["data"]); diff != "" {
		t.Error(diff)
	}
	// Nobody is in the way any more: one request, without force.
	third := again(t, c, newObject(t, text, ns, "3"), r)
	if third.Err != nil || third.Taken != nil {
		t.Errorf("%+v", third)
	}
	if diff := cmp.Diff(map[string]int{"PATCH": 1}, w.methods()); diff != "" {
		t.Error(diff)
	}
}

// TestRefusedTakesNothing: of a write that the server refused nothing is said to
// be taken from others, left to them or adopted.
func TestRefusedTakesNothing(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	first := one(t, c, newObject(t, scalable, ns, 2, "a"), "")
	o := newObject(t, strings.Replace(scalable, "replicas:", "minReadySeconds: -1\n  replicas:", 1), ns, 3, "b")
	mergeAs(t, "hpa", o, `{"spec":{"replicas":5}}`, "scale")
	mergeAs(t, "vim", o, `{"metadata":{"annotations":{"swell.sh/unit":"x"}}}`)
	r := again(t, c, o, first)
	if !errors.Is(r.Err, ErrRefused) || !strings.Contains(r.Err.Error(), "minReadySeconds") {
		t.Fatalf("%+v", r)
	}
	if r.Taken != nil || r.Left != nil || r.Adopted != "" || r.Warnings != nil {
		t.Errorf("taken %v, left %v, adopted %q, warnings %q", r.Taken, r.Left, r.Adopted, r.Warnings)
	}
	if unit := current(t, o).GetAnnotations()["swell.sh/unit"]; unit != "x" {
		t.Errorf("vim's annotation is %q", unit)
	}
}

// TestTakenWithoutAnAnswer: when the answer to a write by force is lost, nobody
// knows whether fields were taken. A warning says so, and names them.
func TestTakenWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	lost := inTheWay{http: func(w http.ResponseWriter, r *http.Request, forward http.Handler, _ int) {
		if r.URL.Query().Get("force") == "true" {
			afterwards(gatewayTimeout)(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	}}
	c, clear := lost.between(t)
	ns := space(t)
	first := one(t, c, configMap(t, ns, "a", "1"), "")
	o := configMap(t, ns, "a", "2")
	mergeAs(t, "vim", o, `{"data":{"value":"theirs"}}`)
	clear(false)
	r := again(t, c, o, first)
	if !errors.Is(r.Err, ErrUnreachable) || r.Taken != nil {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff([]string{"perhaps overwritten, the server's answer is unknown: .data.value: vim (Update)"}, r.Warnings); diff != "" {
		t.Error(diff)
	}
	if got := valueOf(liveConfigMap(t, o)); got != "2" {
		t.Errorf("the server has %q", got)
	}
}

const scalable = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "%[3]s"}
`

// replicas of a live Deployment.
func replicas(t *testing.T, spec any) int64 {
	t.Helper()
	n, ok := spec.(map[string]any)["replicas"].(int64)
	if !ok {
		t.Fatalf("no replicas in %v", spec)
	}
	return n
}

func TestConflictWithAnAutoscalerIsLeftToIt(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	first := one(t, c, newObject(t, scalable, ns, 2, "a"), "")
	o := newObject(t, scalable, ns, 2, "b")
	mergeAs(t, "hpa", o, `{"spec":{"replicas":5}}`, "scale")
	if got := swept(t, c, []store.Entry{first.Entry}); got != nil {
		t.Errorf("drift: %v", got)
	}
	mergeAs(t, "vim", o, `{"spec":{"minReadySeconds":7},"metadata":{"annotations":{"swell.sh/unit":"x"}}}`)
	if diff := cmp.Diff([]string{"Deployment/web", `  .metadata.annotations["swell.sh/unit"]: vim Update`}, swept(t, c, []store.Entry{first.Entry})); diff != "" {
		t.Error(diff)
	}

	r := again(t, c, o, first)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if diff := cmp.Diff([]string{".spec.replicas hpa (Update of scale)"}, said(r.Left)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`.metadata.annotations.swell.sh/unit vim (Update)`}, said(r.Taken)); diff != "" {
		t.Error(diff)
	}
	if n := replicas(t, current(t, o).Object["spec"]); n != 5 {
		t.Errorf("%d replicas", n)
	}
	if got := swept(t, c, []store.Entry{r.Entry}); got != nil {
		t.Errorf("drift: %v", got)
	}
	// It goes on so, with nothing else in the way.
	mergeAs(t, "hpa", o, `{"spec":{"replicas":6}}`, "scale")
	r = again(t, c, newObject(t, scalable, ns, 2, "c"), r)
	if r.Err != nil || r.Taken != nil || len(r.Left) != 1 {
		t.Errorf("%+v", r)
	}
	if n := replicas(t, current(t, o).Object["spec"]); n != 6 {
		t.Errorf("%d replicas", n)
	}
}

// What an autoscaler does to an object of somebody else is no reason to refuse
// the object, nor to take it.
func TestConflictWithAnAutoscalerAtFirstContact(t *testing.T) {
	t.Parallel()
	for _, adopt := range []config.Adoption{config.AdoptIfSame, config.AdoptTake} {
		c, _ := connect(t, Options{})
		o := newObject(t, scalable, space(t), 2, "a")
		bare := unstructuredOf(t, o)
		bare.SetLabels(nil)
		bare.SetAnnotations(nil)
		if _, err := theirs(t, o).Create(t.Context(), bare, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
			t.Fatal(err)
		}
		mergeAs(t, "hpa", o, `{"spec":{"replicas":5}}`, "scale")
		r := one(t, c, o, adopt)
		if r.Err != nil || r.Adopted != "kubectl-create (Update)" || r.Taken != nil {
			t.Fatalf("%s: %+v", adopt, r)
		}
		if diff := cmp.Diff([]string{".spec.replicas hpa (Update of scale)"}, said(r.Left)); diff != "" {
			t.Error(diff)
		}
		if n := replicas(t, current(t, o).Object["spec"]); n != 5 {
			t.Errorf("%s: %d replicas", adopt, n)
		}
	}
}

// The health of what an autoscaler changed is not held up by it.
func TestHealthTakesAnAutoscalerForNoDrift(t *testing.T) {
	c, _ := connect(t, Options{})
	o := newObject(t, scalable, space(t), 2, "a")
	known := inventory(t, []Result{one(t, c, o, "")})
	mergeAs(t, "hpa", o, `{"spec":{"replicas":5}}`, "scale")
	_, drifts, err := c.Health(t.Context(), Work{Objects: []*object.Object{o}, Known: known})
	if err != nil || drifts != nil {
		t.Errorf("%v, %v", drifts, err)
	}
}

func TestConflictTextIsRead(t *testing.T) {
	at := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	for text, want := range map[string]store.Change{
		`conflict with "other"`:                                                       {Manager: "other", Operation: "Apply"},
		`conflict with "kubectl-edit" using v1`:                                       {Manager: "kubectl-edit", Operation: "Update"},
		`conflict with "kubectl-edit" using apps/v1 at 2026-01-02T15:04:05Z`:          {Manager: "kubectl-edit", Operation: "Update", Time: at},
		`conflict with "hpa" with subresource "scale" using apps/v1`:                  {Manager: "hpa", Operation: "Update", Subresource: "scale"},
		`conflict with "a \"b\" using c" with subresource "status"`:                   {Manager: `a "b" using c`, Operation: "Apply", Subresource: "status"},
		`conflict with "x" with subresource "scale" using v1 at 2026-01-02T15:04:05Z`: {Manager: "x", Operation: "Update", Subresource: "scale", Time: at},
		`some other words`: {Manager: store.UnknownManager},
	} {
		want.Field = ".data.a"
		got := conflictOf(metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: text, Field: ".data.a"})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}
