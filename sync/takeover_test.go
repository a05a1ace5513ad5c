// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/fluxtest"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/testdata/built"
)

// overlays is a repository of the common form: a base, and an overlay for each cluster.
var overlays = map[string]string{
	"apps/base/web/kustomization.yaml": "resources: [namespace.yaml, web.yaml]\n",
	"apps/base/web/namespace.yaml":     "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS}\n",
	"apps/base/web/web.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: "registry.example.com/web:1", ports: [{containerPort: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: NS}
data: {a: "1", b: "1"}
`,
	"apps/dev-1/kustomization.yaml": "resources: [../base/web]\npatches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: NS}, data: {cluster: one}}'\n",
	"apps/dev-2/kustomization.yaml": "resources: [../base/web]\n",
}

// migrated is what is looked at while objects go from one tool to another.
var migrated = map[string]schema.GroupVersionResource{
	"Namespace": {Version: "v1", Resource: "namespaces"}, "Deployment": deployments,
	"Service": {Version: "v1", Resource: "services"}, "ConfigMap": configMaps,
}

// seen is what must be the same before and after: which object it is, and what it says.
func (w *world) seen(cluster, ns string) map[string]string {
	w.Helper()
	all := map[string]string{}
	for kind, resource := range migrated {
		client := w.client(cluster).Resource(resource)
		get := client.Get
		name := ns
		if kind != "Namespace" {
			get, name = client.Namespace(ns).Get, "web"
		}
		o, err := get(w.Context(), name, metav1.GetOptions{})
		w.must(err)
		content := maps.Clone(o.Object)
		delete(content, "metadata")
		delete(content, "status")
		all[kind] = fmt.Sprint(o.GetUID(), o.GetDeletionTimestamp(), content)
	}
	// A new annotation is a new generation of a Deployment, but no new pods.
	sets, err := w.client(cluster).Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}).Namespace(ns).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	for _, set := range sets.Items {
		all["ReplicaSet"] += string(set.GetUID()) + " "
	}
	return all
}

// managersOf are the marks and the managers that the objects have, each once.
func (w *world) managersOf(cluster, ns string) string {
	w.Helper()
	all := map[string]bool{}
	for kind, resource := range migrated {
		client := w.client(cluster).Resource(resource)
		get := client.Get
		name := ns
		if kind != "Namespace" {
			get, name = client.Namespace(ns).Get, "web"
		}
		o, err := get(w.Context(), name, metav1.GetOptions{})
		w.must(err)
		for key := range o.GetLabels() {
			if strings.Contains(key, "fluxcd.io") || strings.HasPrefix(key, "swell.sh") {
				all[key] = true
			}
		}
		for key := range o.GetAnnotations() {
			if strings.Contains(key, "argoproj.io") || strings.Contains(key, "last-applied") {
				all[key] = true
			}
		}
		for _, e := range o.GetManagedFields() {
			if e.Subresource == "" && e.Manager != "kube-controller-manager" {
				all[e.Manager] = true
			}
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// inForce says whether both units are done.
func (w *world) inForce(rollouts int) func() bool {
	return func() bool {
		for _, path := range []string{"apps/dev-1", "apps/dev-2"} {
			if u := w.daemon.State().Units[config.UnitPath(path)]; u == nil || u.Rollout.ID < rollouts || u.Rollout.Status != rollout.Done {
				return false
			}
		}
		return true
	}
}

// migration is two clusters whose objects go from another tool to swell and back.
type migration struct {
	*world
	ns     string
	before map[string]map[string]string // by cluster, as [world.seen]
}

var migrationSites = map[string]string{"dev-1": "one", "dev-2": "two"}

// newMigration writes the repository, without anything of swell.
func newMigration(t *testing.T) *migration {
	m := &migration{world: newWorldOn(t, realClusters(t)), before: map[string]map[string]string{}}
	m.ns = m.tenant
	for name, content := range overlays {
		m.write(name, strings.ReplaceAll(content, "NS", m.ns))
	}
	m.must(os.RemoveAll(filepath.Join(m.repo(), "services")))
	m.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+m.tenant+"}\nspec: {units: [apps]}\n")
	return m
}

// same compares all objects with what they were before swell came.
func (m *migration) same(when string) {
	m.Helper()
	for cluster, was := range m.before {
		if diff := cmp.Diff(was, m.seen(cluster, m.ns)); diff != "" {
			m.Fatalf("%s, on %s (-before +after):\n%s", when, cluster, diff)
		}
	}
}

// defaults writes the Defaults of each cluster's overlay.
func (m *migration) defaults(spec map[string]string) {
	for cluster, site := range migrationSites {
		m.write("apps/"+cluster+"/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: it}\nspec: {"+spec[cluster]+"placement: {topology: cluster, match: {labels: {site: "+site+"}}}}\n")
	}
}

// takeOver has swell take all over, and looks.
func (m *migration) takeOver() {
	m.write("apps/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: apps}\nspec: {adopt: take}\n")
	m.defaults(map[string]string{"dev-1": "prune: keep, "})
	m.commit()
	m.start()
	m.until("swell has taken over", m.inForce(1))
	m.same("taken over")
	for cluster := range m.before {
		m.want("the owners by swell", m.managersOf(cluster, m.ns), "swell swell.sh/repository swell.sh/unit")
	}
}

// release has swell give the units up, and looks.
func (m *migration) release() {
	m.defaults(map[string]string{"dev-1": "unit: false, prune: keep, ", "dev-2": "unit: false, prune: keep, "})
	m.app("../services/other", "1") // a commit without any unit is refused
	m.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+m.tenant+"}\nspec: {units: [apps, services]}\n")
	m.write("services/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: "+m.tenant+", placement: {topology: cell}}\n")
	m.write("services/space/space.yaml", spaceUnit)
	m.commit()
	m.until("swell has let go", func() bool {
		u := m.daemon.State().Units
		return u["apps/dev-1"] == nil && u["apps/dev-2"] == nil
	})
	m.same("let go of")
	left, err := m.store.Inventories("apps")
	m.must(err)
	if len(left)+len(m.plans()) > 0 {
		m.Errorf("still in the inventory: %v, plans %v", left, m.plans())
	}
}

// TestTakeOverFromFlux: two clusters go from the real kustomize-controller of Flux to swell
// and back. Nothing is deleted, made anew or changed at any moment, also not when the
// Kustomization that pruned is deleted after that, nor when swell lets go of its units.
func TestTakeOverFromFlux(t *testing.T) {
	binary := built.Program(t, "kustomize-controller")
	m := newMigration(t)
	flux := map[string]*fluxtest.Flux{}
	kustomization := func(cluster string) {
		flux[cluster].Kustomization("apps", map[string]any{"interval": "1m", "path": "./apps/" + cluster, "prune": true, "wait": true, "timeout": "1m",
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "fleet"}})
	}
	for cluster := range migrationSites {
		flux[cluster] = fluxtest.Start(t, binary, m.clusters, cluster)
		flux[cluster].Publish("fleet", m.repo(), "1")
		kustomization(cluster)
		flux[cluster].Reconcile("apps")
		m.before[cluster] = m.seen(cluster, m.ns)
		m.want("the owners by Flux", m.managersOf(cluster, m.ns), "kustomize-controller kustomize.toolkit.fluxcd.io/name kustomize.toolkit.fluxcd.io/namespace")
		flux[cluster].Suspend("apps", true)
	}
	m.takeOver()
	for cluster := range migrationSites {
		flux[cluster].Delete("apps") // it prunes, and is suspended
	}
	m.same("without the Kustomization")

	// And back: on dev-1 Flux applies first, on dev-2 swell lets go first.
	kustomization("dev-1")
	flux["dev-1"].Reconcile("apps")
	m.same("applied by Flux again")
	m.release()
	kustomization("dev-2")
	for cluster := range migrationSites {
		flux[cluster].Reconcile("apps")
		if owners := m.managersOf(cluster, m.ns); !strings.Contains(owners, "kustomize.toolkit.fluxcd.io/name") {
			t.Errorf("%s: the owners by Flux again: %s", cluster, owners)
		}
	}
	m.same("with Flux again")
}
