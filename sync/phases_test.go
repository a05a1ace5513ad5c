// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/rollout"
)

var (
	jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// steps is a unit of plain objects on dev-1/a alone: a hook with an image tag
// and a deadline in seconds, a ConfigMap with a value, a Deployment with an image
// tag, and another ConfigMap.
func (w *world) steps(hookTag, deadline, tag, value string) {
	w.Helper()
	w.canaryOnly("steps")
	w.write("services/steps/objects.yaml", strings.NewReplacer("NS", w.tenant+"-a", "HOOK", hookTag, "DEADLINE", deadline, "TAG", tag, "VALUE", value).Replace(`
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: NS, annotations: {swell.sh/hook: before}}
spec:
  ttlSecondsAfterFinished: 3600
  activeDeadlineSeconds: DEADLINE
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/app:HOOK"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: NS}
data: {value: "VALUE"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: steps, namespace: NS, annotations: {swell.sh/phase: "1"}}
spec:
  selector: {matchLabels: {app: steps}}
  template:
    metadata: {labels: {app: steps}}
    spec:
      containers: [{name: main, image: "registry.example.com/app:TAG"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: last, namespace: NS, annotations: {swell.sh/phase: "2"}}
data: {value: "VALUE"}
`))
}

func (w *world) canaryOnly(unit string) {
	w.write("services/"+unit+"/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: %s}\n"+
		"spec: {placement: {topology: cell, match: {labels: {ring: [canary]}}}}\n", unit))
}

// value is that of a ConfigMap of the canary; "" without one.
func (w *world) value(name string) string {
	w.Helper()
	object := w.get("dev-1/a", configMaps, name)
	if object == nil {
		return ""
	}
	value, _, err := unstructured.NestedString(object.Object, "data", "value")
	w.must(err)
	return value
}

// complete lets the pods of a Job of the canary come to a good end.
func (w *world) complete(name string) {
	w.Helper()
	namespace := w.client("dev-1").Resource(pods).Namespace(w.tenant + "-a")
	w.until("the pods of "+name, func() bool {
		job := w.get("dev-1/a", jobs, name)
		if job == nil {
			return false
		}
		list, err := namespace.List(w.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/controller-uid=" + string(job.GetUID())})
		w.must(err)
		for _, pod := range list.Items {
			_, err := namespace.Patch(w.Context(), pod.GetName(), types.StrategicMergePatchType,
				[]byte(`{"spec":{"containers":[{"name":"main","image":"registry.example.com/app:good"}]}}`), metav1.PatchOptions{})
			w.must(err)
		}
		return len(list.Items) > 0
	})
}

func (w *world) reasonHas(unit, text string) func() bool {
	return func() bool { return w.unit(unit) != nil && strings.Contains(w.unit(unit).Rollout.Reason, text) }
}

// TestPhases: a bundle is brought step by step over many passes and a restart; a
// step that does not end turns the rollout back, by the same steps.
func TestPhases(t *testing.T) { simulated(t, testPhases) }

func testPhases(t *testing.T, w *world) {
	w.steps("broken", "600", "broken", "1")
	w.commit()
	w.until("the hook", w.reasonHas("steps", "waits for hook Job/"+w.tenant+"-a/migrate: not complete"))
	w.want("the objects behind the hook", w.value("first")+w.value("last"), "")
	w.stop()
	w.start()
	w.complete("migrate")
	w.until("the first phase", w.reasonHas("steps", "waits for phase 1: Deployment/"+w.tenant+"-a/steps: "))
	w.want("the phase before", w.value("first"), "1")
	w.want("the phase behind", w.value("last"), "")

	w.steps("1", "600", "1", "2") // the way out of it is a better commit
	w.commit()
	w.soaked("steps", 2)
	w.want("all phases", w.value("first")+w.value("last"), "22")

	w.steps("1", "600", "broken", "3")
	w.commit()
	w.until("the first phase", w.reasonHas("steps", "waits for phase 1: Deployment/"+w.tenant+"-a/steps: "))
	w.want("values", w.value("first")+w.value("last"), "32")
	w.now = w.now.Add(time.Minute)
	w.until("the rollback", w.is("steps", 3, rollout.RolledBack))
	w.want("values", w.value("first")+w.value("last"), "22")
	if why := w.unit("steps").Rollout.Failure; !strings.Contains(why, "not past phase 1 within 1m0s: waits for phase 1: ") {
		t.Errorf("failed with %q", why)
	}
	for range 3 {
		w.now = w.now.Add(time.Hour)
		for _, a := range w.pass().Actions {
			if a.Kind != rollout.Check {
				t.Errorf("a pass over nothing changed: %+v", a)
			}
		}
	}
}

// TestHookFails: it fails the wave at once, and the bundle before, whose hook
// runs again, is put back.
func TestHookFails(t *testing.T) { simulated(t, testHookFails) }

func testHookFails(t *testing.T, w *world) {
	w.steps("1", "600", "1", "1")
	w.commit()
	w.soaked("steps", 1)
	w.steps("broken", "1", "1", "2")
	w.commit()
	w.until("the rollback", w.is("steps", 2, rollout.RolledBack))
	if why := w.unit("steps").Rollout.Failure; !strings.Contains(why, "migrate: the hook failed: ") {
		t.Errorf("failed with %q", why)
	}
	w.want("values", w.value("first")+w.value("last"), "11")
}

// successor is a unit on dev-1/a alone whose objects carry a hash in their names:
// one with data, and the hook that is to run before that is deleted.
func (w *world) successor(hash string) {
	w.canaryOnly("store")
	w.write("services/store/objects.yaml", strings.NewReplacer("NS", w.tenant+"-a", "HASH", hash).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: data-HASH, namespace: NS}
data: {value: "HASH"}
---
apiVersion: batch/v1
kind: Job
metadata: {name: drain-HASH, namespace: NS, annotations: {swell.sh/hook: before-delete}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/app:broken"}]
`))
}

// TestBeforeDelete: what a successor takes the place of, and what a unit leaves
// when it is removed, is deleted when the hook beside it has run, not before.
func TestBeforeDelete(t *testing.T) { simulated(t, testBeforeDelete) }

func testBeforeDelete(t *testing.T, w *world) {
	w.successor("1")
	w.commit()
	w.soaked("store", 1)
	w.successor("2")
	w.commit()
	drains := func(name string) func() bool {
		return func() bool {
			suspended, _, _ := unstructured.NestedBool(w.get("dev-1/a", jobs, name).Object, "spec", "suspend")
			return !suspended
		}
	}
	w.until("the hook", drains("drain-1"))
	for range 3 {
		w.now = w.now.Add(time.Second)
		w.pass()
	}
	w.want("data", w.value("data-1")+w.value("data-2"), "12")
	w.want("the hook of the successor runs", fmt.Sprint(drains("drain-2")()), "false")
	w.complete("drain-1")
	w.until("the end of the old one", func() bool { return w.value("data-1") == "" && w.get("dev-1/a", jobs, "drain-1") == nil })
	w.soaked("store", 2)

	w.git("rm", "-r", "--quiet", "services/store")
	w.commit()
	w.until("the hook", drains("drain-2"))
	for range 3 {
		w.now = w.now.Add(time.Second)
		w.pass()
	}
	w.want("data", w.value("data-2"), "2")
	if u := w.unit("store"); u == nil || !strings.Contains(u.Rollout.Reason, "waits for hook Job/"+w.tenant+"-a/drain-2") {
		t.Errorf("the reason does not name the hook: %s", w.describe())
	}
	w.complete("drain-2")
	w.until("the end of the unit", func() bool { return w.unit("store") == nil })
	w.want("data", w.value("data-2"), "")
}

// reporting has drift of the unit of steps reported, and not corrected.
func (w *world) reporting() {
	w.policy("steps", `{placement: {topology: cell, match: {labels: {ring: [canary]}}}, drift: [{mode: report}]}`)
}

// TestAHookThatIsGoneIsNoIllness: a hook that ran may go by its time to live,
// whatever is done about drift.
func TestAHookThatIsGoneIsNoIllness(t *testing.T) { simulated(t, testAHookThatIsGoneIsNoIllness) }

func testAHookThatIsGoneIsNoIllness(t *testing.T, w *world) {
	w.steps("1", "600", "1", "1")
	w.reporting()
	w.commit()
	w.until("the canary", w.canary("steps", 1))
	w.must(w.client("dev-1").Resource(jobs).Namespace(w.tenant+"-a").Delete(t.Context(), "migrate", metav1.DeleteOptions{}))
	w.until("the end of the Job", func() bool { return w.get("dev-1/a", jobs, "migrate") == nil })
	for range 5 { // the soak lasts for 10 m
		w.now = w.now.Add(time.Minute)
		w.pass()
		if target := w.unit("steps").Targets["dev-1/a"]; target.Health != rollout.HealthGood {
			t.Fatalf("%s: %s", target.Health, target.Reason)
		}
	}
}

// TestPhasesLeaveReportedDrift: the next phase waits for an object that somebody
// edited, and that does not change in Git. The edit stays, as it would without
// phases.
func TestPhasesLeaveReportedDrift(t *testing.T) { simulated(t, testPhasesLeaveReportedDrift) }

func testPhasesLeaveReportedDrift(t *testing.T, w *world) {
	w.steps("1", "600", "1", "1")
	w.reporting()
	w.commit()
	w.soaked("steps", 1)
	w.edit("dev-1/a", deployments, "steps", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:by-hand"}]`, "kubectl-edit")
	w.steps("1", "600", "1", "2")
	w.reporting()
	w.commit()
	w.soaked("steps", 2)
	w.want("the last phase", w.value("last"), "2")
	w.want("what is only to be reported", w.tag("dev-1/a", "steps"), "by-hand")
}
