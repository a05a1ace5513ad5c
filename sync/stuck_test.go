// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// withStuckSets has the simulated StatefulSets keep a pod that does not get ready.
func withStuckSets(w *world) {
	for _, c := range w.simulated {
		c.Ready.KeepsPods = true
	}
}

// database writes a unit with a StatefulSet on dev-2/c.
func (w *world) database(tag string) {
	w.Helper()
	objects := strings.NewReplacer("NS", w.tenant+"-c", "TAG", tag).Replace(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: NS}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: "registry.example.com/db:TAG"}]}
`)
	if w.unit("db") == nil {
		w.onTwo("db", objects)
		return
	}
	w.write("services/db/objects.yaml", objects)
	w.commit()
}

// deletedPods are what swell deleted of pods in dev-2.
func (w *world) deletedPods() (paths []string) {
	w.Helper()
	for _, e := range w.writesTo("dev-2") {
		if strings.HasPrefix(e, "delete ") && strings.Contains(e, "/pods/") {
			paths = append(paths, e)
		}
	}
	return paths
}

// TestAStatefulSetIsRolledBack: a StatefulSet whose new image cannot be pulled was never
// rolled back, because Kubernetes waits for the pod that has it. When Git has the earlier
// image again, the unit is done without anything being written.
func TestAStatefulSetIsRolledBack(t *testing.T) {
	simulatedWith(t, withStuckSets, testAStatefulSetIsRolledBack)
}

func testAStatefulSetIsRolledBack(t *testing.T, w *world) {
	w.database("1")
	w.until("the first release", w.is("db", 1, rollout.Done))
	w.database("broken")
	w.writesTo("dev-2")
	w.until("the rollback", w.is("db", 2, rollout.RolledBack))
	w.want("events", strings.Join(w.events("db", "deleted"), "\n"), "dev-2/c StatefulSet/"+w.tenant+
		"-c/db: pod db-0 of revision db-2, which never was ready and which it waited for to make pods of revision db-3")
	w.want("deletions", strings.Join(w.deletedPods(), "\n"), "delete /api/v1/namespaces/"+w.tenant+"-c/pods/db-0")
	w.database("1")
	w.until("the end of the rollback", w.is("db", 3, rollout.Done))
	w.want("deletions", strings.Join(w.writesTo("dev-2"), "\n"), "")
}

// TestACommitFreesAStatefulSet: a fixed image that came after a broken one was never there
// for the same reason.
func TestACommitFreesAStatefulSet(t *testing.T) {
	simulatedWith(t, withStuckSets, testACommitFreesAStatefulSet)
}

func testACommitFreesAStatefulSet(t *testing.T, w *world) {
	w.database("1")
	w.until("the first release", w.is("db", 1, rollout.Done))
	w.database("broken")
	w.until("the broken image", func() bool { return strings.Contains(w.unit("db").Targets["dev-2/c"].Reason, "ImagePullBackOff") })
	w.database("2")
	w.until("the second release", w.is("db", 3, rollout.Done))
	if n := len(w.events("db", "deleted")); n != 1 {
		t.Errorf("%d pods deleted", n)
	}
}

// TestAStuckPodStays: without the right to delete pods, and while a target is paused, the
// pod stays; the reason says so.
func TestAStuckPodStays(t *testing.T) { simulatedWith(t, withStuckSets, testAStuckPodStays) }

func testAStuckPodStays(t *testing.T, w *world) {
	var granted atomic.Bool
	w.intercept("dev-2", func(answer http.ResponseWriter, r *http.Request) bool {
		if granted.Load() || !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			return false
		}
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(answer, `{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
"status": {"allowed": false}}`)
		return true
	})
	w.database("1")
	w.until("the first release", w.is("db", 1, rollout.Done))
	w.database("broken")
	says := func(text string) func() bool {
		return func() bool { return strings.Contains(w.unit("db").Targets["dev-2/c"].Reason, text) }
	}
	w.until("the command", says("; pod db-0 keeps revision db-2; swell does not delete it: "+
		"it has no right to, see swell rbac --stuck-pods: kubectl delete pod db-0 -n "+w.tenant+"-c --context dev-2"))
	pause := order.Order{Verb: order.Pause, Scope: order.Scope{Unit: "services/db"}, Reason: "we look into it"}
	w.give(pause)
	granted.Store(true)
	w.until("the pause", says("; pod db-0 keeps revision db-2; swell does not delete it: paused"))
	w.want("deletions", strings.Join(w.deletedPods(), "\n"), "")
	pause.Verb = order.Resume
	w.give(pause)
	w.until("the rollback", w.is("db", 2, rollout.RolledBack))
	left, err := w.client("dev-2").Resource(pods).Namespace(w.tenant+"-c").List(w.Context(), metav1.ListOptions{})
	if w.must(err); len(left.Items) > 0 {
		t.Errorf("%d pods are there", len(left.Items))
	}
}
