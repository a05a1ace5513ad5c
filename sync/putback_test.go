// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestRollbackOfAReplacement: a release that was allowed to replace an object
// failed afterwards, and was stuck on its way back, because the earlier bundle
// did not allow it.
func TestRollbackOfAReplacement(t *testing.T) { simulated(t, testRollbackOfAReplacement) }

func testRollbackOfAReplacement(t *testing.T, w *world) {
	w.app("app", "1")
	objects := strings.NewReplacer("NS", w.tenant+"-c").Replace(`apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: grant, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: NS}
spec: {ports: [{port: 80}]}
`)
	w.onTwo("roles", objects)
	w.until("the first release", w.is("roles", 1, rollout.Done))
	was := w.get("dev-2/c", roleBindings, "grant").GetUID()

	objects = strings.ReplaceAll(objects, "metadata: {name: grant,", "metadata: {name: grant, annotations: {swell.sh/replace: allowed},")
	objects = strings.ReplaceAll(objects, "reader", "writer")
	objects = strings.ReplaceAll(objects, "spec: {ports", "spec: {clusterIP: 192.0.2.1, ports") // no server takes this one
	w.write("services/roles/objects.yaml", objects)
	w.commit()
	w.until("the way back", w.is("roles", 2, rollout.RolledBack))
	live := w.get("dev-2/c", roleBindings, "grant")
	if role, _, _ := unstructured.NestedString(live.Object, "roleRef", "name"); role != "reader" || live.GetUID() == was {
		t.Errorf("role %q, UID %s, which was %s: want the earlier role, made anew", role, live.GetUID(), was)
	}
}
