// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/gate/gatetest"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// sitesYAML is three clusters with a cell each, and a wave each: dev-1/a, dev-2/b, dev-3/c.
const sitesYAML = `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-1, labels: {site: one, ring: canary}}
spec: {cells: [{name: a}]}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-2, labels: {site: two}}
spec: {cells: [{name: b}]}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-3, labels: {site: three}}
spec: {cells: [{name: c}]}
---
apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec:
  waves:
  - {name: canary, match: {labels: {ring: canary}}, soak: 10m, timeout: 1m}
  - {name: second, match: {labels: {site: two}}, timeout: 1m}
  - {name: third, timeout: 1m}
`

// newSites is a world on three real clusters, whose daemon is not started yet.
func newSites(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return sitesOn(t)
}

func sitesOn(t testing.TB) *world {
	t.Helper()
	clusters := realClusters(t)
	w := newWorldOn(t, clusters)
	w.access["dev-3"] = config.ClusterAccess{Name: "dev-3", Kubeconfig: clusters.Kubeconfig, Context: "dev-3"}
	w.write("fleet/fleet.yaml", sitesYAML)
	w.commit()
	return w
}

// sites are what an app runs in the three clusters.
func (w *world) sites(name string) string {
	w.Helper()
	return strings.Join([]string{w.tag("dev-1/a", name), w.tag("dev-2/b", name), w.tag("dev-3/c", name)}, " ")
}

// waits makes passes until the app waits for a text, and holds that the clusters run what
// they ran.
func (w *world) waits(text, runs string) {
	w.Helper()
	w.until(text, w.reasonHas("app", text))
	w.want("while it waits for "+text, w.sites("app"), runs)
}

// smoke is a gate's Job with an image tag, in the template of an app.
const smoke = `  - id: smoke
    when: self.metadata.name == 'app'
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: smoke, namespace: "${ns}", annotations: {swell.sh/hook: gate}}
      spec:
        activeDeadlineSeconds: %d
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: "registry.example.com/smoke:%s"}]
`

// TestEachGate: every gate fails or waits first, and then passes, on real API servers and
// with a real Prometheus. Nothing is written to a wave before its gates let it.
func TestEachGate(t *testing.T) {
	w := newSites(t)
	var errorRate, signedOff atomic.Bool
	errorRate.Store(true)
	server := gatetest.Prometheus(t, func() string {
		return fmt.Sprintf("errors{app=\"app\"} %d\n", map[bool]int{true: 1, false: 0}[errorRate.Load()])
	})
	ci := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if !signedOff.Load() {
			http.Error(answer, "not signed off", http.StatusForbidden)
		}
	}))
	t.Cleanup(ci.Close)
	w.endpoints = map[string]config.Endpoint{"prom": {URL: server}, "ci": {URL: ci.URL}}
	w.app("first", "1", "first")
	w.write("services/first/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: first}\nspec: {rollout: plain}\n")
	head, waves, _ := strings.Cut(sitesYAML, "  waves:\n")
	_, fleet, _ := strings.Cut(head, "kind: Rollout")
	w.write("fleet/plain.yaml", "apiVersion: swell.sh/v1\nkind: Rollout"+strings.Replace(fleet, "default", "plain", 1)+"  waves:\n"+strings.Replace(waves, "soak: 10m, ", "", 1))
	w.commit()
	w.start()
	w.release()

	w.write("fleet/fleet.yaml", head+`  waves:
  - name: canary
    match: {labels: {ring: canary}}
    soak: 10m
    timeout: 1m
    gates:
    - prometheus: {endpoint: prom, query: "errors{app='${name}'}", atMost: 0.5, every: 10s}
    - job: {name: smoke}
  - name: second
    match: {labels: {site: two}}
    timeout: 1m
    gates: [{approval: {}}, {after: {unit: services/first}}]
  - name: third
    timeout: 1m
    gates: [{window: {schedule: "0 8 * * *", duration: 1h}}, {http: {endpoint: ci, path: "/ok?unit=${unit}", at: start, every: 10s}}]
`)
	release := func(tag, image string, deadline int) {
		w.app("app", tag, "one")
		w.write("kinds/app/kind.yaml", appKind+fmt.Sprintf(smoke, deadline, image))
		w.commit()
	}
	// Those at the end of a wave turn the release back.
	release("2", "1", 60)
	w.until("the rollback for prometheus", w.is("app", 2, rollout.RolledBack))
	if why := w.unit("app").Rollout.Failure; !strings.Contains(why, "wave canary: gate prometheus: errors{app='app'} is 1, above 0.5") {
		t.Errorf("failed with %q", why)
	}
	w.want("after the rollback for prometheus", w.sites("app"), "1 1 1")
	errorRate.Store(false)
	w.calm(server)
	release("3", "broken", 1)
	w.until("the canary", w.canary("app", 3))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the rollback for the Job", w.is("app", 3, rollout.RolledBack))
	if why := w.unit("app").Rollout.Failure; !strings.Contains(why, "gate job: Job smoke on target dev-1/a: ") {
		t.Errorf("failed with %q", why)
	}
	w.want("after the rollback for the Job", w.sites("app"), "1 1 1")

	// Those at the start of a wave hold it.
	w.app("first", "4", "first")
	w.give(order.Order{Verb: order.Pause, Scope: order.Scope{Unit: "services/first"}})
	release("4", "1", 60)
	w.until("the canary", w.canary("app", 4))
	w.now = w.now.Add(10 * time.Minute)
	w.waits("gate approval of wave second: swell approve ", "4 1 1")
	asks := w.daemon.State().Asks()
	if len(asks) != 1 {
		t.Fatalf("%d approvals are asked for", len(asks))
	}
	w.give(order.Order{Verb: order.Approve, Digest: asks[0].Digest})
	w.waits("gate after of wave second: unit services/first", "4 1 1")
	w.give(order.Order{Verb: order.Resume, Scope: order.Scope{Unit: "services/first"}})
	w.waits("gate window of wave third: the window opens at "+w.now.Format("2006-01-02")+"T08:00:00Z", "4 4 1")
	w.want("what first runs", w.tag("dev-2/b", "first"), "4")
	w.now = w.now.Truncate(24 * time.Hour).Add(8 * time.Hour)
	w.waits("gate http of wave third: endpoint ci: 403 Forbidden: not signed off", "4 4 1")
	signedOff.Store(true)
	w.now = w.now.Add(10 * time.Second)
	w.until("the release", w.is("app", 4, rollout.Done))
	w.want("at the end", w.sites("app"), "4 4 4")
}

// calm waits until Prometheus has seen that there are no errors.
func (w *world) calm(server string) {
	w.Helper()
	for deadline := time.Now().Add(w.longest()); ; pause(w.TB) {
		answer, err := http.Get(server + "/api/v1/query?query=errors")
		if err == nil {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if strings.Contains(string(body), `,"0"]`) {
				return
			}
		}
		if time.Now().After(deadline) {
			w.Fatalf("Prometheus has errors still: %v", err)
		}
	}
}

// storeKind has an object whose name changes with its content and that is immutable, one
// that is immutable and stays, and a Deployment that is ill in dev-2 with the tag bad.
const storeKind = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: app}
spec:
  message: test.App
  let:
  - {name: ns, value: "unit.tenant + '-' + target.cell"}
  - {name: name, value: self.metadata.name}
  - {name: settings, value: "name + '-' + hash(self.spec.image)"}
  objects:
  - id: settings
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${settings}", namespace: "${ns}"}
      immutable: true
      data: {image: "${self.spec.image}"}
  - id: fixed
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${name}-fixed", namespace: "${ns}"}
      immutable: true
      data: {fixed: "yes"}
  - id: service
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${name}", namespace: "${ns}"}
      spec: {selector: {app: "${name}"}, ports: [{port: 80}]}
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${name}", namespace: "${ns}"}
      spec:
        replicas: 1
        selector: {matchLabels: {app: "${name}"}}
        template:
          metadata: {labels: {app: "${name}"}}
          spec:
            containers: [{name: main, image: "${self.spec.image.endsWith(':bad') && target.cell == 'b' ? 'registry.example.com/app:broken' : self.spec.image}"}]
            volumes: [{name: settings, configMap: {name: "${settings}"}}]
`

var siteKinds = []schema.GroupVersionResource{deployments, configMaps, namespaces, {Version: "v1", Resource: "services"}}

// holdings are all objects of the monorepo in the three clusters, by cluster, kind and name: without
// what differs between two objects that were made alike, and their resourceVersions.
func (w *world) holdings() (objects map[string]string, versions map[string]string) {
	w.Helper()
	objects, versions = map[string]string{}, map[string]string{}
	for cluster := range w.access {
		client := w.client(cluster)
		for _, resource := range siteKinds {
			list, err := client.Resource(resource).List(w.Context(), metav1.ListOptions{LabelSelector: "swell.sh/repository=" + w.tenant})
			w.must(err)
			for i := range list.Items {
				o := &list.Items[i]
				name := strings.Join([]string{cluster, o.GetKind(), o.GetNamespace(), o.GetName()}, " ")
				versions[name] = o.GetResourceVersion()
				annotations := o.GetAnnotations()
				delete(annotations, "deployment.kubernetes.io/revision") // of the controller
				o.SetAnnotations(annotations)
				for _, field := range [][]string{{"status"}, {"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
					{"metadata", "generation"}, {"metadata", "managedFields"}} {
					unstructured.RemoveNestedField(o.Object, field...)
				}
				text, err := json.Marshal(o)
				w.must(err)
				objects[name] = string(text)
			}
		}
	}
	return objects, versions
}

// TestRollbackPutsAllBack: a change is well in the first wave and ill in the second. What
// the clusters hold after the rollback is what they held before, immutable objects and
// those with a hash in their name too. Nothing else was written, of whatever unit.
func TestRollbackPutsAllBack(t *testing.T) {
	w := newSites(t)
	w.write("kinds/app/kind.yaml", storeKind)
	w.app("other", "1")
	w.commit()
	w.start()
	w.release()
	w.until("the other unit", w.is("other", 1, rollout.Done))
	before, versions := w.holdings()

	w.app("app", "bad")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the second wave", func() bool { return w.sites("app") == "bad broken 1" })
	w.until("its illness", w.reasonHas("app", "ImagePullBackOff"))
	w.now = w.now.Add(time.Minute)
	w.until("the rollback", w.is("app", 2, rollout.RolledBack))
	after, now := w.holdings()
	for name := range maps.Keys(before) {
		if after[name] != before[name] {
			t.Errorf("%s:\n%s", name, cmp.Diff(before[name], after[name]))
		}
	}
	touched := func(name string) bool { // by the release
		return !strings.HasPrefix(name, "dev-3 ") && (strings.Contains(name, " ConfigMap "+w.tenant) && strings.Contains(name, " app-") && !strings.HasSuffix(name, "-fixed") ||
			strings.Contains(name, " Deployment ") && strings.HasSuffix(name, " app"))
	}
	for name := range now {
		if _, was := before[name]; !was && !touched(name) {
			t.Errorf("%s was made", name)
		} else if was && now[name] != versions[name] && !touched(name) {
			t.Errorf("%s was written: resourceVersion %s, was %s", name, now[name], versions[name])
		}
	}

	w.app("app", "1") // what the bad release leaves goes with the commit that takes it back
	w.commit()
	w.until("the revert", w.is("app", 3, rollout.Done))
	w.until("the end of what is left", w.soon(func() bool {
		objects, _ := w.holdings()
		return len(objects) == len(before)
	}))
	if after, _ := w.holdings(); !maps.Equal(before, after) {
		t.Error(cmp.Diff(before, after))
	}
}

// TestMaskWhileTheNetworkIsCut: a site is cut off, masked, and comes back. Until the mask
// is gone its API server sees no write, not even of the Lease; then the site catches up
// through the gate of its wave.
func TestMaskWhileTheNetworkIsCut(t *testing.T) {
	w := newSites(t)
	var ready atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(answer, "being checked", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(site.Close)
	w.endpoints = map[string]config.Endpoint{"site": {URL: site.URL}}
	file := filepath.Join(w.dir, "dev-3.yaml")
	line, err := devcluster.Connect(w.clusters.Kubeconfig, "dev-3", file)
	w.must(err)
	t.Cleanup(line.Close)
	w.access["dev-3"] = config.ClusterAccess{Name: "dev-3", Kubeconfig: file, Context: "dev-3"}
	w.times = fleet.LeaseTimes{Duration: time.Minute, Renew: 500 * time.Millisecond}
	w.start()
	w.release()
	w.write("fleet/fleet.yaml", strings.Replace(sitesYAML, "{name: third, timeout: 1m}", "{name: third, soak: 5m, timeout: 1m, gates: [{http: {endpoint: site, at: start, every: 10s}}]}", 1))
	w.commit()
	w.pass()

	line.Cut()
	w.give(order.Order{Verb: order.Mask, Scope: order.Scope{Target: "dev-3"}, Reason: "no power"})
	w.pass()
	w.auditOf("dev-3")
	lease := func() string {
		o, err := w.client("dev-3").Resource(leases).Namespace("kube-system").Get(t.Context(), "swell-"+w.tenant, metav1.GetOptions{})
		w.must(err)
		return o.GetResourceVersion()
	}
	leaseWas := lease()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the release without the site", w.is("app", 2, rollout.Done))
	w.want("without the site", w.sites("app"), "2 2 1")
	if why := w.unit("app").Rollout.Reason; why != "1 of 3 targets owe it, dev-3/c is masked by ann: no power" {
		t.Errorf("the debt is %q", why)
	}
	w.must(os.Remove(filepath.Join(w.repo(), "services/app/app.yaml"))) // whatever comes in the meantime
	w.app("app", "3", "two")
	w.commit()
	w.until("the canary", w.canary("app", 3))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the next release without the site", w.is("app", 3, rollout.Done))
	line.Mend()
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); pause(t) { // a cluster is asked every 2 s whether it is back
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	if texts := w.written("dev-3", ""); len(texts) > 0 || lease() != leaseWas {
		t.Errorf("written to a masked cluster: %q, and the Lease %t", texts, lease() != leaseWas)
	}

	w.give(order.Order{Verb: order.Unmask, Scope: order.Scope{Target: "dev-3"}})
	w.waits("gate http of wave third: endpoint site: 503 Service Unavailable: being checked", "3 3 1")
	if texts := w.written("dev-3", w.tenant+"-c"); len(texts) > 0 {
		t.Errorf("written before the gate said yes: %q", texts)
	}
	ready.Store(true)
	w.now = w.now.Add(10 * time.Second)
	w.until("the return", func() bool { return w.sites("app") == "3 3 3" })
	w.until("the soak", w.reasonHas("app", "soak"))
	if w.is("app", 3, rollout.Done)() {
		t.Error("it is done without the soak of the wave")
	}
	w.now = w.now.Add(5 * time.Minute)
	w.until("the end", func() bool { return w.is("app", 3, rollout.Done)() && w.unit("app").Rollout.Reason == "" })
	w.until("what the site still had", w.soon(func() bool { return w.get("dev-3/c", configMaps, "one") == nil }))
}
