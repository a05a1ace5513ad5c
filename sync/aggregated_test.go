// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

const gadgetUnit = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}}
---
apiVersion: %[1]s.example.com/v1
kind: Gadget
metadata: {name: big, namespace: %[1]s-c}
spec: {size: big}
`

// breakGroup adds the unit gadget, has it released, and then makes the
// APIService of its group lead nowhere.
func (w *world) breakGroup(release func()) {
	w.policy("gadget", `{placement: {match: {labels: {site: two}}}}`)
	w.write("services/gadget/gadget.yaml", fmt.Sprintf(gadgetUnit, w.tenant))
	w.commit()
	release()
	w.until("the gadget", func() bool { u := w.unit("gadget"); return u != nil && u.Targets["dev-2/c"].Health == "healthy" })

	services, crds := w.client("dev-2").Resource(apiServices), w.client("dev-2").Resource(definitions)
	group := "v1." + w.tenant + ".example.com"
	_, err := services.Patch(w.Context(), group, types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},"spec":{"service":{"name":"nobody","namespace":%q},"insecureSkipTLSVerify":true}}`, w.tenant+"-c"), metav1.PatchOptions{})
	w.must(err)
	w.Cleanup(func() { // the test's own context has ended by then
		_ = services.Delete(context.Background(), group, metav1.DeleteOptions{})
		_ = crds.Delete(context.Background(), "gadgets."+w.tenant+".example.com", metav1.DeleteOptions{})
	})
	gadgets := w.client("dev-2").Resource(schema.GroupVersionResource{Group: w.tenant + ".example.com", Version: "v1", Resource: "gadgets"})
	deadline := time.Now().Add(w.longest())
	for {
		_, err := gadgets.Namespace(w.tenant+"-c").List(w.Context(), metav1.ListOptions{})
		if apierrors.IsServiceUnavailable(err) {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("the group is still served: %v", err)
		}
		pause(w.TB)
	}
}

// TestSweepWithAnAggregatedAPIDown: a group whose server is away. Its kinds are
// unknown, not gone, and the error says so; the other kinds are swept, the sweep
// counts as done, and the connection is not taken for lost.
func TestSweepWithAnAggregatedAPIDown(t *testing.T) {
	w := newWorld(t)
	w.breakGroup(func() {
		w.sweeping(config.Drift{})
		w.release()
		w.nextSweep()
	})
	w.edit("dev-2/c", configMaps, "one", data, "kubectl-edit")
	var said string
	w.until("the server to notice", func() bool {
		r := w.nextSweep()
		for _, err := range r.Errors {
			said = err.Error()
		}
		return said != ""
	})
	if !strings.HasPrefix(said, "sweep of cluster dev-2: sweep: ") || !strings.Contains(said, w.tenant+".example.com") {
		t.Errorf("errors %q", said)
	}
	w.until("the correction of the other object", func() bool { return w.image("dev-2/c", "one") == "registry.example.com/app:1" && w.drifts() == "" })
	for range 3 {
		r := w.nextSweep()
		if len(r.Drifts) > 0 || len(r.Errors) != 1 {
			t.Errorf("found %v, errors %v", r.Drifts, r.Errors)
		}
		for _, a := range r.Actions {
			if a.Kind != rollout.Check { // of the health of what was corrected
				t.Errorf("action %+v", a)
			}
		}
	}
	w.app("app", "2", "one") // the cluster is reachable all the time
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "2" })
	w.soaked("app", 2)
	if reason := w.unit("app").Targets["dev-2/c"].Reason; reason != "" {
		t.Errorf("reason %q", reason)
	}
}

// TestAnAggregatedAPIDownDisturbsNoOtherUnit: a unit whose kind is behind an
// API server that is away cannot be written. The cluster is not taken for lost
// because of it.
func TestAnAggregatedAPIDownDisturbsNoOtherUnit(t *testing.T) {
	w := newWorld(t)
	w.breakGroup(func() { w.release() })
	w.write("services/gadget/gadget.yaml", strings.ReplaceAll(fmt.Sprintf(gadgetUnit, w.tenant), "size: big}", "size: huge}"))
	w.commit()
	w.until("the refusal", func() bool { return w.unit("gadget").Targets["dev-2/c"].Trouble == rollout.TroubleUnreachable })
	before := w.unit("app").Rollout.ID
	for _, tag := range []string{"2", "3", "4"} {
		w.app("app", tag, "one")
		w.commit()
		w.until("the canary", func() bool {
			u := w.unit("app")
			return u.Rollout.ID > before && u.Targets["dev-1/a"].Health == rollout.HealthGood && u.Targets["dev-1/a"].Applied == u.Targets["dev-1/a"].Wanted
		})
		before++
		w.now = w.now.Add(10 * time.Minute) // the gadget is tried again as well
		for _, o := range w.until("the rollout", w.is("app", before, rollout.Done)) {
			if o.Unit == "services/app" && o.Result == rollout.Unreachable {
				t.Errorf("unreachable: %s", o.Reason)
			}
		}
	}
	if trouble := w.unit("gadget").Targets["dev-2/c"].Trouble; trouble != rollout.TroubleUnreachable {
		t.Errorf("the gadget is %q", trouble)
	}
}
