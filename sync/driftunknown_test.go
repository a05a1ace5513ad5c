// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

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

// TestSweepWithAnAggregatedAPIDown: a group whose server is away. Its kinds are
// unknown, not gone, and the error says so; the other kinds are swept, the sweep
// counts as done, and the connection is not taken for lost.
func TestSweepWithAnAggregatedAPIDown(t *testing.T) {
	w := newWorld(t)
	w.policy("gadget", `{placement: {match: {labels: {site: two}}}}`)
	w.write("services/gadget/gadget.yaml", fmt.Sprintf(gadgetUnit, w.tenant))
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.until("the gadget", func() bool { u := w.unit("gadget"); return u != nil && u.Targets["dev-2/c"].Health == "healthy" })
	w.nextSweep()

	// The group's own APIService is made to lead nowhere.
	services, crds := w.client("dev-2").Resource(apiServices), w.client("dev-2").Resource(definitions)
	group := "v1." + w.tenant + ".example.com"
	_, err := services.Patch(t.Context(), group, types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},"spec":{"service":{"name":"nobody","namespace":%q},"insecureSkipTLSVerify":true}}`, w.tenant+"-c"), metav1.PatchOptions{})
	w.must(err)
	w.Cleanup(func() { // the test's own context has ended by then
		_ = services.Delete(context.Background(), group, metav1.DeleteOptions{})
		_ = crds.Delete(context.Background(), "gadgets."+w.tenant+".example.com", metav1.DeleteOptions{})
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
