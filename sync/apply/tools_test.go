// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
)

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
	t.Parallel()
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

// TestPruneLeavesWhatAToolTookBack: an object that another tool claimed after swell
// applied it is not deleted, and forgotten. A mark that is no claim, or that stands in
// Git, changes nothing.
func TestPruneLeavesWhatAToolTookBack(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, Options{})
	for _, test := range claimed {
		if strings.HasPrefix(test.metadata, "ownerReferences") {
			continue
		}
		ns := space(t)
		o := configMap(t, ns, "a", "1")
		r := one(t, c, o, "")
		applyAs(t, "tool", o, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+strings.ReplaceAll(strings.ReplaceAll(test.metadata, "app.kubernetes.io/managed-by: Helm", "x: 'y'"), "NS", ns)+"}, data: {value: '1'}}")
		if test.by == "" {
			pruned(t, c, r.Entry, Deleted, "", true, false)
			continue
		}
		pruned(t, c, r.Entry, Skipped, "not ours any more: it belongs to "+test.by, true, true)
	}
	o := newObject(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: %s, labels: {argocd.argoproj.io/instance: shop}}}", space(t))
	pruned(t, c, one(t, c, o, "").Entry, Deleted, "", true, false)
}
