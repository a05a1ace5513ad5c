// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/store"
)

// TestForbiddenKindIsUnknown: access rules that leave out one kind. It is said
// so and reported as nothing; the other kinds are swept.
func TestForbiddenKindIsUnknown(t *testing.T) {
	admin, _ := connect(t, Options{})
	ns := space(t)
	entries := applied(t, admin, configMap(t, ns, "a", "1"), newObject(t, deployment, ns, "web", "1"))
	create(t, clusterRoles, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+ns+`}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {nonResourceURLs: ["/api*"], verbs: [get]}
`)
	create(t, clusterRoleBindings, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: `+ns+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+ns+`}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: `+ns+`}]
`)
	cfg := apiServer(t)
	cfg.Impersonate.UserName = ns
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	edit(t, entries[0].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	apps := somebody(t).Resource(deployments).Namespace(ns)
	if err := apps.Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var found Swept
	eventually(t, func() (bool, string) { // until the rules are in force
		found, err = c.Sweep(t.Context(), entries, nil)
		return err != nil && !strings.Contains(err.Error(), "configmaps"), "forbidden"
	})
	if err == nil || !strings.Contains(err.Error(), `sweep: list Deployment.apps: deployments.apps is forbidden: User "`+ns+`" cannot list resource`) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]bool{true, false}, found.Looked); diff != "" {
		t.Error(diff)
	}
	if len(found.Drifts) != 1 || found.Drifts[0].Entry.ID != entries[0].ID || found.Lost {
		t.Errorf("found %+v", found)
	}
	if _, listed := found.Lists[kindOf(entries[1].ID, "v1")]; listed {
		t.Error("a list that was refused can be watched from")
	}
	if found, err := c.SweepFew(t.Context(), entries, nil); err == nil || len(found.Drifts) != 1 {
		t.Errorf("looked at: %+v, %v", found.Drifts, err)
	}
}

// TestWhatOthersAddIsNotOurs: finalizers, owners, labels, annotations and
// fields that we do not set.
func TestWhatOthersAddIsNotOurs(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c, configMap(t, ns, "a", "1"), newObject(t, deployment, ns, "web", "1"))
	// One that is there: else the garbage collector deletes the object, and that is drift.
	owner := `{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"` + entries[1].UID + `"}`
	edit(t, entries[0].ID, types.MergePatchType, `{"metadata":{"finalizers":["example.com/hold"],"ownerReferences":[`+owner+`],"labels":{"a":"b"},"annotations":{"c":"d"}},"data":{"more":"x"}}`, "controller")
	t.Cleanup(func() {
		_, _ = somebody(t).Resource(configMaps).Namespace(ns).Patch(context.Background(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	if _, err := somebody(t).Resource(deployments).Namespace(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{FieldManager: "x"}); err != nil {
		t.Fatal(err)
	}
	if got := swept(t, c, entries); got != nil {
		t.Error(got)
	}
}

// TestAllFieldsTaken: nothing of ours is left in an object that is still there.
func TestAllFieldsTaken(t *testing.T) {
	c, _ := connect(t, Options{})
	entry := applied(t, c, configMap(t, space(t), "a", "1"))[0]
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app.kubernetes.io/managed-by":"other","swell.sh/repository":"other"},"annotations":{"swell.sh/unit":"other"}},"data":{"value":"2"}}`
	force := true
	if _, err := somebody(t).Resource(configMaps).Namespace(entry.ID.Namespace).Patch(t.Context(), "a", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "other", Force: &force}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ConfigMap/a",
		"  .data.value: other Apply",
		`  .metadata.annotations["swell.sh/unit"]: other Apply`,
		`  .metadata.labels["app.kubernetes.io/managed-by"]: other Apply`,
		`  .metadata.labels["swell.sh/repository"]: other Apply`,
	}
	if diff := cmp.Diff(want, swept(t, c, []store.Entry{entry})); diff != "" {
		t.Error(diff)
	}
}

// wires are connections that can be cut.
type wires struct {
	mu  sync.Mutex
	all []net.Conn
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all = append(w.all, conn)
	}
	return conn, err
}

func (w *wires) cut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.all)
	for _, conn := range w.all {
		conn.Close()
	}
	w.all = nil
	return n
}

// TestWatchSurvivesACutConnection: what happened while the connection was cut
// is seen after it.
func TestWatchSurvivesACutConnection(t *testing.T) {
	t.Parallel()
	var w wires
	cfg := apiServer(t)
	cfg.Dial = w.dial
	c, err := Connect(cfg, testRepository, Options{Silence: time.Hour}) // a slow server's is left for a new one
	if err != nil {
		t.Fatal(err)
	}
	ns := space(t)
	entries := applied(t, c, configMap(t, ns, "a", "1"), configMap(t, ns, "b", "1"))
	lines := watched(t, c, ns, kindOf(entries[0].ID, "v1"), entries)
	edit(t, entries[0].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	next(t, lines, "a gone=false differs=true")
	if w.cut() == 0 {
		t.Fatal("nothing to cut")
	}
	edit(t, entries[1].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	next(t, lines, "b gone=false differs=true")
	if n := w.cut(); n != 1 {
		t.Errorf("%d new connections", n)
	}
}

// TestIsLost: somebody else's page is no sign of life of the API server; its own
// word, whatever it is about, is one.
func TestIsLost(t *testing.T) {
	t.Parallel()
	page := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) { answer(w, 503, "text/html", "<html>busy") })
	away := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Audit-Id", "x") // as the aggregator answers
		answer(w, 503, "text/plain", "service unavailable")
	})
	nobody, said := applyOne(t, page).Err, applyOne(t, away).Err
	discovered := on("apply", configMap(t, "shop", "a", "1").ID, said)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"page":       {nobody, true},
		"aggregator": {said, false},
		"on its way": {discovered, false},
		"joined":     {errors.Join(said, fmt.Errorf("sweep: %w", nobody)), true},
		"none":       {errors.Join(said, discovered, nil), false},
		"nil":        {nil, false},
	} {
		if got := IsLost(c.err); got != c.want {
			t.Errorf("%s: got %t for %v", name, got, c.err)
		}
	}
}
