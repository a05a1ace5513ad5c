// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
)

// orderUnit is a Deployment on dev-2/c whose container has variables of which
// one needs the other: to server-side apply the order of such a list is no field.
const orderUnit = `apiVersion: apps/v1
kind: Deployment
metadata: {name: order, namespace: %s-c}
spec:
  replicas: 1
  selector: {matchLabels: {app: order}}
  template:
    metadata: {labels: {app: order}}
    spec:
      containers:
      - {name: main, image: "registry.example.com/order:1", env: [{name: FIRST, value: a}, {name: SECOND, value: $(FIRST)}], resources: {requests: {cpu: "0.1", memory: 1024Mi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: %[1]s-c}
stringData: {password: hunter2}
`

// withOrder adds that unit, releases it and returns a daemon that goes through
// n objects a minute in each cluster.
func (w *world) withOrder(n int) {
	w.policy("order", `{placement: {match: {labels: {site: two}}}}`)
	w.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+w.tenant+"}\nspec: {checks: {plainSecrets: pass}}\n")
	w.write("services/order/order.yaml", fmt.Sprintf(orderUnit, w.tenant))
	w.commit()
	w.drift = config.Drift{Deep: n}
	w.stop()
	w.start()
	w.release()
	w.until("order", func() bool { u := w.unit("order"); return u != nil && u.Targets["dev-2/c"].Health == "healthy" })
}

// variables are the names of the container's variables in their order.
func (w *world) variables() string {
	containers, _, err := unstructured.NestedSlice(w.get("dev-2/c", deployments, "order").Object, "spec", "template", "spec", "containers")
	w.must(err)
	var names []string
	for _, v := range containers[0].(map[string]any)["env"].([]any) {
		names = append(names, v.(map[string]any)["name"].(string))
	}
	return strings.Join(names, " ")
}

// shuffle puts the variables into another order.
func (w *world) shuffle(names ...string) {
	env := map[string]string{"FIRST": `{"name":"FIRST","value":"a"}`, "SECOND": `{"name":"SECOND","value":"$(FIRST)"}`}
	w.edit("dev-2/c", deployments, "order", fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/env","value":[%s,%s]}]`, env[names[0]], env[names[1]]), "shuffler")
}

// TestDeepSweep: a list in another order, which no managed field shows, is found
// and put back. Nothing is written where nothing differs, and no Secret is read.
func TestDeepSweep(t *testing.T) { simulated(t, testDeepSweep) }

func testDeepSweep(t *testing.T, w *world) {
	w.withOrder(6)
	round := func() (patched int) { // each object is looked at once at least
		w.audit()
		for range 12 {
			w.now = w.now.Add(10 * time.Second)
			w.pass()
		}
		for _, event := range w.audit() {
			dry := strings.Contains(event.RequestURI, "dryRun=All")
			switch {
			case event.ObjectRef.Resource == "secrets":
				t.Errorf("%s %s", event.Verb, event.RequestURI)
			case event.Verb == "patch" && !dry:
				patched++
			case event.Verb == "watch", strings.Contains(event.RequestURI, "limit=1"), event.ObjectRef.Resource == "pods", event.ObjectRef.Resource == "events": // for health
			case event.Verb != "patch" && event.Verb != "get":
				t.Errorf("%s %s", event.Verb, event.RequestURI)
			}
		}
		return patched
	}
	if n := round(); n != 0 {
		t.Errorf("%d PATCHes where nothing differs", n)
	}
	w.want("drift", w.drifts(), "")
	w.shuffle("SECOND", "FIRST")
	w.want("variables", w.variables(), "SECOND FIRST")
	if n := round(); n != 1 {
		t.Errorf("%d PATCHes, want one correction", n)
	}
	w.until("the correction", func() bool { return w.drifts() == "" })
	w.want("variables", w.variables(), "FIRST SECOND")
	if events := w.events("order", "drifted"); len(events) != 1 || !strings.Contains(events[0], `.spec.template.spec.containers[name="main"].env`) {
		t.Errorf("events %q", events)
	}
}

// TestDeepSweepIsReportedByMode: what it finds is drift like other drift, and
// another look that cannot see it does not make it go away; it goes when the
// list is put back.
func TestDeepSweepIsReportedByMode(t *testing.T) { simulated(t, testDeepSweepIsReportedByMode) }

func testDeepSweepIsReportedByMode(t *testing.T, w *world) {
	w.withOrder(6000)
	w.policy("order", `{placement: {match: {labels: {site: two}}}, drift: [{mode: report}]}`)
	w.commit()
	w.pass()
	w.shuffle("SECOND", "FIRST")
	deep := func() { w.now = w.now.Add(10 * time.Second); w.pass() }
	w.until("the report", func() bool { deep(); return w.drifts() != "" })
	want := `dev-2/c Deployment/order report .spec.template.spec.containers[name="main"].env=unknown`
	w.want("drift", w.drifts(), want)
	w.sweeping(w.drift)
	w.pass()
	w.nextSweep()
	w.want("drift after a sweep", w.drifts(), want)
	w.want("variables", w.variables(), "SECOND FIRST")
	w.shuffle("FIRST", "SECOND")
	w.until("the end", func() bool { deep(); return w.drifts() == "" })
	if events := w.events("order", "restored"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
}

// TestDeepSweepGoesOnAfterARestart where it was.
func TestDeepSweepGoesOnAfterARestart(t *testing.T) { simulated(t, testDeepSweepGoesOnAfterARestart) }

func testDeepSweepGoesOnAfterARestart(t *testing.T, w *world) {
	w.withOrder(6)
	w.audit()
	for range 8 {
		w.stop()
		w.start()
		w.now = w.now.Add(10 * time.Second)
		w.pass()
	}
	looked := map[string]int{}
	for _, event := range w.audit() {
		if strings.Contains(event.RequestURI, "dryRun=All") && event.ObjectRef.Namespace != "" {
			looked[event.ObjectRef.Namespace+"/"+event.ObjectRef.Name]++
		}
	}
	for _, name := range []string{"c/app", "c/order", "c/one", "a/app", "b/one"} {
		if looked[w.tenant+"-"+name] == 0 {
			t.Errorf("%s was not looked at: %v", name, looked)
		}
	}
}

var webhooks = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}

// mutate registers a real webhook that changes the ConfigMaps of a target
// whenever they are written; value is what it writes the n-th time.
func (w *world) mutate(target string, value func(n int32) string) {
	cluster, cell, _ := strings.Cut(target, "/")
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		patch := admissionv1.PatchTypeJSONPatch
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, PatchType: &patch,
			Patch: fmt.Appendf(nil, `[{"op":"replace","path":"/data/image","value":%q}]`, value(calls.Add(1)))}
		rw.Header().Set("Content-Type", "application/json")
		json.NewEncoder(rw).Encode(review)
	}))
	w.Cleanup(server.Close)
	url, none, equivalent := server.URL, admission.SideEffectClassNone, admission.Equivalent
	hook := &admission.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: w.tenant},
		Webhooks: []admission.MutatingWebhook{{
			Name: "mutate.example.com", SideEffects: &none, MatchPolicy: &equivalent, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admission.WebhookClientConfig{URL: &url,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.tenant + "-" + cell}},
			ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/managed-by": "swell"}},
			Rules: []admission.RuleWithOperations{{Operations: []admission.OperationType{admission.Create, admission.Update},
				Rule: admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}},
		}},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hook)
	w.must(err)
	client := w.client(cluster).Resource(webhooks)
	_, err = client.Create(w.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	w.must(err)
	w.Cleanup(func() { // the test's own context has ended by then
		_ = client.Delete(context.Background(), w.tenant, metav1.DeleteOptions{})
	})
	// It is in force when it changes something that it did not change before.
	probe := func() string {
		object := &unstructured.Unstructured{}
		object.SetAPIVersion("v1")
		object.SetKind("ConfigMap")
		object.SetGenerateName("probe-")
		object.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "swell"})
		object.Object["data"] = map[string]any{"image": "probe"}
		made, err := w.client(cluster).Resource(configMaps).Namespace(w.tenant+"-"+cell).Create(w.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		w.must(err)
		return made.Object["data"].(map[string]any)["image"].(string)
	}
	deadline := time.Now().Add(w.longest())
	for probe() == "probe" {
		if time.Now().After(deadline) {
			w.Fatalf("the webhook is not called within %s", w.longest())
		}
		pause(w.TB)
	}
}

// TestMutationLoop: a webhook changes our field at each apply, to the same value
// or to another one each time. Sending it again is no help, so that is not
// done: it is found by the deep sweep, named, and left.
func TestMutationLoop(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]func(int32) string{
		"the same":      func(int32) string { return "mutated" },
		"each time new": func(n int32) string { return fmt.Sprintf("mutated %d", n) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.drift = config.Drift{Deep: 6000, Watch: true}
			w.stop()
			w.start()
			w.release()
			w.mutate("dev-1/b", value)
			w.app("app", "2", "one")
			w.commit()
			w.soaked("app", 2)
			deep := func() { w.now = w.now.Add(10 * time.Second); w.pass() }
			w.until("the finding", func() bool { deep(); return w.drifts() != "" })
			want := "dev-1/b ConfigMap/one fight .data.image=admission"
			w.want("drift", w.drifts(), want)
			told := len(w.events("app", "fight"))
			w.audit()
			for range 20 {
				deep()
				pause(t)
			}
			looks := 0
			for _, event := range w.audit() {
				dry := strings.Contains(event.RequestURI, "dryRun=All")
				if dry {
					looks++
				}
				if event.Verb == "patch" && !dry {
					t.Errorf("sent again: %s", event.RequestURI)
				}
			}
			if looks < 20 {
				t.Errorf("%d looks, want each object looked at each time", looks)
			}
			w.want("drift", w.drifts(), want)
			if events := w.events("app", "fight"); len(events) != told || !strings.Contains(events[told-1], "fight with admission over .data.image") {
				t.Errorf("events %q", events)
			}
			w.want("status", string(w.unit("app").Rollout.Status), "done")
		})
	}
}
