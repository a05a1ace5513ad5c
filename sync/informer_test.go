// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/rollout"
)

// externalJob is a unit of the canary with a Job that no controller of the
// cluster touches: it is complete when the test says so.
func (w *world) externalJob() {
	w.Helper()
	w.canaryOnly("slow")
	w.write("services/slow/job.yaml", fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: slow, namespace: %s-a}
spec:
  managedBy: tests.example.com/nobody
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/app:1"}]
`, w.tenant))
	w.commit()
}

// completes writes that the Job is complete, or that it is not.
func (w *world) completes(done bool) {
	w.Helper()
	status := "null"
	if done {
		status = `{"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:04:06Z","succeeded":1,"uncountedTerminatedPods":{},"conditions":[
			{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-02T03:04:06Z"},
			{"type":"Complete","status":"True","lastTransitionTime":"2026-01-02T03:04:06Z"}]}`
	}
	_, err := w.client("dev-1").Resource(jobs).Namespace(w.tenant+"-a").Patch(w.Context(), "slow", types.MergePatchType,
		[]byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
	w.must(err)
}

func (w *world) slow() *rollout.Target {
	if u := w.unit("slow"); u != nil && u.Targets["dev-1/a"] != nil {
		return u.Targets["dev-1/a"]
	}
	return &rollout.Target{}
}

// still makes passes until ok, while the clock stands still: nothing that is due
// in intervals is ever due.
func (w *world) still(what string, ok func() bool) {
	w.Helper()
	deadline := time.Now().Add(w.longest())
	for !ok() {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within %s\n%s", what, w.longest(), w.describe())
		}
		if r := w.pass(); len(r.Actions) == 0 {
			pause(w.TB)
		}
	}
}

func (w *world) heard() bool {
	return w.daemon.State().IsWatched(object.UnitTarget{Unit: "services/slow", Target: "dev-1/a"})
}

// TestHealthIsHeard: what becomes healthy is seen although no look is due, a
// soak asks nothing as long as nothing happens, and starts again when something does.
func TestHealthIsHeard(t *testing.T) { simulated(t, testHealthIsHeard) }

func testHealthIsHeard(t *testing.T, w *world) {
	w.externalJob()
	w.until("somebody who listens", func() bool { return w.slow().Health == rollout.HealthProgressing && w.heard() })
	w.audit()
	for range 5 { // the watch begins, and may have the Job looked at
		w.pass()
		pause(t)
	}
	w.now = w.now.Add(300 * time.Millisecond) // the pause between two looks
	w.completes(true)
	w.still("health", func() bool { return w.slow().Health == rollout.HealthGood })
	w.now = w.now.Add(300 * time.Millisecond)
	w.audit()

	// The soak takes 10 minutes, and the longest pause between two looks is 5.
	for range 9 {
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	if n := w.requests()["get jobs"]; n > 3 {
		t.Errorf("%d looks at a Job during nine minutes of its soak", n)
	}
	w.now = w.now.Add(300 * time.Millisecond)
	since := w.slow().Since
	w.must(w.client("dev-1").Resource(jobs).Namespace(w.tenant+"-a").Delete(t.Context(), "slow", metav1.DeleteOptions{}))
	w.still("the loss", func() bool { return w.slow().Health != rollout.HealthGood || w.slow().Since.After(since) })
}

// TestHealthIsAskedForWhereNobodyListens: where a kind may be read and not
// watched, looks in intervals see the same.
func TestHealthIsAskedForWhereNobodyListens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.until("the namespace", func() bool { return w.get("dev-1/a", configMaps, "one") != nil })
	w.readOnly("dev-1")
	w.stop()
	w.start()
	w.externalJob()
	w.until("the Job", func() bool { return w.slow().Health == rollout.HealthProgressing })
	for range 5 {
		w.now = w.now.Add(2 * time.Second)
		w.pass()
		pause(t)
	}
	if w.heard() {
		t.Fatal("heard although nothing may be watched")
	}
	w.completes(true)
	w.until("health", func() bool { return w.slow().Health == rollout.HealthGood })
}

// readOnly takes the right to watch Jobs from the daemon in a cluster.
func (w *world) readOnly(cluster string) {
	w.Helper()
	role := w.tenant + "-no-watch"
	w.create(cluster, clusterRoles, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, create, update, patch, delete]}
`, role)
	_, token := w.account(cluster, w.tenant+"-swell", role)
	file := filepath.Join(w.dir, "kubeconfig-"+cluster)
	w.place(file, w.kubeconfig(cluster, token))
	w.access[cluster] = config.ClusterAccess{Name: cluster, Kubeconfig: file, Context: cluster}
}
