// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// cells are the clusters and the cells of the fleet.
var cells = map[string][]string{"dev-1": {"a", "b"}, "dev-2": {"c"}}

// tenants makes the world one of two tenants: the world's own, whose account
// has rights in its own namespaces only, and another one. Swell's own account
// may impersonate, see who a cluster is, and keep Leases, and nothing else. The unit space is
// gone, the namespaces are there. It returns the users.
func (w *world) tenants() (swell, account string) {
	w.Helper()
	for cluster := range cells {
		role := w.tenant + "-impersonator"
		w.create(cluster, clusterRoles, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules:
- {apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}
- {apiGroups: [""], resources: [namespaces], resourceNames: [kube-system], verbs: [get]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
`, role)
		var token string
		swell, token = w.account(cluster, w.tenant+"-swell", role)
		account, _ = w.account(cluster, w.tenant, "")
		for _, cell := range append([]string{"other"}, cells[cluster]...) {
			w.create(cluster, namespaces, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-%s}\n", w.tenant, cell)
			if cell != "other" {
				w.bind(cluster, w.tenant+"-"+cell)
			}
		}
		file := filepath.Join(w.dir, "kubeconfig-"+cluster)
		w.place(file, w.kubeconfig(cluster, token))
		w.access[cluster] = config.ClusterAccess{Name: cluster, Kubeconfig: file, Context: cluster}
	}
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/space")))
	w.tenantDocuments(w.tenant)
	w.everyTenMinutes()
	w.stop()
	w.must(os.RemoveAll(filepath.Join(w.dir, "state")))
	return swell, account
}

// bind gives the tenant's account the rights of an administrator in a namespace.
func (w *world) bind(cluster, namespace string) {
	w.Helper()
	w.create(cluster, roleBindings, `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: %s, namespace: default}]
`, namespace, w.tenant)
}

// tenantDocuments writes the Tenants of the fleet; each has the account of its
// own name.
func (w *world) tenantDocuments(names ...string) {
	w.Helper()
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "apiVersion: swell.sh/v1\nkind: Tenant\nmetadata: {name: %s}\nspec: {serviceAccount: {namespace: default, name: %s}, clusterKinds: [\"*\", ClusterRoleBinding.rbac.authorization.k8s.io], podSecurity: privileged, clusterRoles: [cluster-admin], roles: [reader]}\n---\n", name, name)
	}
	w.write("fleet/tenants.yaml", b.String())
}

// impersonated looks that every request was made as the account, but for those
// of swell's own account that ask who the cluster is, keep its Lease and look for
// what swell has there, and counts the verbs.
func (w *world) impersonated(swell, account string) map[string]int {
	w.Helper()
	verbs := map[string]int{}
	for cluster := range cells {
		for _, e := range w.auditOf(cluster) {
			if !e.over() || !strings.Contains(e.User.Username, w.tenant) && !strings.Contains(e.ImpersonatedUser.Username, w.tenant) {
				continue
			}
			identity := e.Verb == "get" && e.ObjectRef.Resource == "namespaces" && e.ObjectRef.Name == "kube-system"
			lease := e.ObjectRef.Resource == "leases" && (e.ObjectRef.Name == "swell-"+w.tenant || e.Verb == "create")
			survey := e.ObjectRef.Resource == "" || e.Verb == "list" && strings.Contains(e.RequestURI, "swell.sh%2Frepository")
			own := e.ImpersonatedUser.Username == "" && (identity || lease || survey)
			switch {
			case e.User.Username != swell:
				w.Errorf("%s %s: made with the credentials of %q", e.Verb, e.RequestURI, e.User.Username)
			case !own && e.ImpersonatedUser.Username != account:
				w.Errorf("%s %s: made as %q, want %q", e.Verb, e.RequestURI, e.ImpersonatedUser.Username, account)
			case !own:
				verbs[e.Verb]++
			}
		}
	}
	return verbs
}

// TestTenantsAreImpersonated: every request of a tenant's units is made as its
// account, from the first apply to the last delete, also after the tenant has
// left the fleet; a unit that reaches into a foreign namespace gets the server's
// refusal, and the others go on.
func TestTenantsAreImpersonated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	swell, account := w.tenants()
	w.write("services/greedy/greedy.yaml", fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greedy, namespace: %s-other}\ndata: {a: b}\n", w.tenant))
	w.write("services/greedy/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: greedy}\nspec: {placement: {topology: cell, match: {labels: {ring: canary}}}}\n")
	w.commit()
	for cluster := range cells {
		w.auditOf(cluster)
	}
	w.start()
	w.soaked("app", 1)
	w.want("images", w.tags("app"), "1 1 1")
	target := w.unit("greedy").Targets["dev-1/a"]
	if target.Trouble != rollout.TroubleUnavailable || !strings.Contains(target.Reason, fmt.Sprintf("User %q cannot patch resource", account)) {
		t.Errorf("a unit in a foreign namespace: %q %q", target.Trouble, target.Reason)
	}
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/greedy")))
	verbs := w.impersonated(swell, account)
	if verbs["patch"] == 0 || verbs["get"] == 0 || verbs["watch"] == 0 {
		t.Errorf("a release sent %v", verbs)
	}

	// Drift.
	_, err := w.client("dev-1").Resource(deployments).Namespace(w.tenant+"-b").Patch(t.Context(), "app", types.MergePatchType,
		[]byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	w.must(err)
	w.must(w.client("dev-2").Resource(configMaps).Namespace(w.tenant+"-c").Delete(t.Context(), "one", metav1.DeleteOptions{}))
	w.now = w.now.Truncate(10 * time.Minute).Add(10 * time.Minute)
	r := w.pass()
	if len(r.Swept) != 2 || len(r.Drifts) != 2 {
		t.Errorf("swept %v, found %d drifts, errors %v; want two clusters and two drifts", r.Swept, len(r.Drifts), r.Errors)
	}
	w.until("the correction", func() bool {
		return !w.unit("app").Targets["dev-1/b"].Drifted && !w.unit("app").Targets["dev-2/c"].Drifted && w.get("dev-2/c", configMaps, "one") != nil
	})
	if verbs := w.impersonated(swell, account); verbs["list"] == 0 || verbs["patch"] == 0 {
		t.Errorf("drift and its correction sent %v", verbs)
	}

	// The tenant leaves, and its units with it, while the daemon is away.
	w.stop()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/app")))
	w.write("services/last/last.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: last}\nspec: {image: 'registry.example.com/app:1'}\n")
	w.write("services/last/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: last}\nspec: {tenant: stays}\n")
	w.tenantDocuments("stays")
	w.commit()
	w.start()
	w.until("the removal", func() bool { return w.unit("app") == nil })
	w.want("images", w.tags("app"), "  ")
	deletes := 0
	for cluster := range cells {
		for _, e := range w.auditOf(cluster) {
			if e.over() && e.Verb == "delete" && e.ResponseStatus.Code == 200 {
				deletes++
				w.want("who deleted "+e.RequestURI, e.ImpersonatedUser.Username, account)
			}
		}
	}
	if deletes != 6 {
		t.Errorf("%d deletes, want 6: a Deployment and a ConfigMap on three targets", deletes)
	}
}

// TestTenantOfAUnitChanges: what another tenant left is deleted as that one.
func TestTenantOfAUnitChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenants()
	next := w.tenant + "-next"
	for cluster, own := range cells {
		w.account(cluster, next, "")
		for _, cell := range own {
			namespace := next + "-" + cell
			w.create(cluster, namespaces, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
			w.create(cluster, roleBindings, `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: %s, namespace: default}]
`, namespace, next)
		}
	}
	w.commit()
	w.start()
	w.soaked("app", 1)
	before := w.tenant
	w.tenantDocuments(before, next)
	w.commit()
	w.pass() // the Tenant comes first: a change is judged by the rules it goes to
	w.write("services/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {topology: cell}}\n", next))
	w.commit()
	w.approvePlan() // the unit stays, and its workloads leave their namespaces
	w.soaked("app", 2)
	w.until("the end of what was left", func() bool { return w.tags("app") == "  " })
	w.tenant = next
	w.want("images in the new place", w.tags("app"), "1 1 1")
	w.tenant = before
	for name, target := range w.unit("app").Targets {
		if len(target.Tenants) != 1 || target.Tenants[0].Name != next {
			t.Errorf("%s: written by %v", name, target.Tenants)
		}
	}
}
