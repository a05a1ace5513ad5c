// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/swell-sh/swell/render/object"
)

// TestOthers: objects of others in a Namespace are counted, and neither our own, nor those that
// the cluster makes, nor those that belong to another object.
func TestOthers(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	applied(t, c, configMap(t, ns, "ours", "1"))
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs, namespace: "+ns+"}}")
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: theirs-too, namespace: "+ns+"}}")
	create(t, configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: child, namespace: "+ns+
		", ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: a, uid: x, controller: true}]}}")
	counts, unknown, err := c.Others(t.Context(), object.ID{Kind: "Namespace", Name: ns})
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown %q, %v", unknown, err)
	}
	same(t, map[string]int{"ConfigMap": 2}, counts)
}
