// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	standing "github.com/swell-sh/swell/sync/status"
)

// pods has a workload's controller say how many of its pods are there.
func (w *world) pods(target, name string, available bool) {
	w.Helper()
	cluster, cell, _ := strings.Cut(target, "/")
	counts, condition := `"readyReplicas":1,"availableReplicas":1,"unavailableReplicas":null`, "True"
	if !available {
		counts, condition = `"readyReplicas":null,"availableReplicas":null,"unavailableReplicas":1`, "False"
	}
	patch := `{"status":{` + counts + `,"conditions":[{"type":"Available","status":"` + condition + `"},` +
		`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`
	as := metav1.PatchOptions{FieldManager: "kube-controller-manager"}
	_, err := w.client(cluster).Resource(deployments).Namespace(w.tenant+"-"+cell).
		Patch(w.Context(), name, types.MergePatchType, []byte(patch), as, "status")
	w.must(err)
}

// status is what verbs show of a unit, and standing the word for it.
func (w *world) status(unit string) standing.Unit {
	w.Helper()
	drifts, err := w.store.Drifts()
	w.must(err)
	return standing.Of(w.unit(unit), standing.Known{Drifts: drifts})
}

func (w *world) standing(unit string) standing.Standing {
	w.Helper()
	found := w.status(unit)
	return found.Status
}

// TestACanaryThatGetsIllAfterItsSoak: the rest had the release, and soaked, while all pods
// of the canary were down; then it was done.
func TestACanaryThatGetsIllAfterItsSoak(t *testing.T) {
	simulated(t, testACanaryThatGetsIllAfterItsSoak)
}

func testACanaryThatGetsIllAfterItsSoak(t *testing.T, w *world) {
	w.waves("  - {name: canary, match: {labels: {ring: canary}}, soak: 10m, timeout: 1m}\n" +
		"  - {name: one, match: {labels: {site: one}}, soak: 10m, timeout: 1m}\n  - {name: rest, timeout: 1m}\n")
	w.commit()
	w.until("the first wave", w.canary("app", 1))
	for _, target := range []config.TargetName{"dev-1/b", "dev-2/c"} {
		w.now = w.now.Add(10 * time.Minute)
		w.until("the next wave", func() bool { return w.unit("app").Targets[target].Health == rollout.HealthGood })
	}
	w.until("the end", w.is("app", 1, rollout.Done))
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the second wave", func() bool { return w.tag("dev-1/b", "app") == "2" && w.resting() })
	w.pods("dev-1/a", "app", false)
	w.until("the look", func() bool { return w.unit("app").Targets["dev-1/a"].Health != rollout.HealthGood })
	w.now = w.now.Add(10 * time.Minute) // the soak of the second wave is over, and the canary has been ill for long
	w.until("the way back", func() bool { return w.unit("app").Rollout.Status == rollout.RollingBack })
	w.until("what ran before", func() bool { return w.tags("app") == "1 1 1" })
	if failure := w.unit("app").Rollout.Failure; !strings.HasPrefix(failure, "wave canary: target dev-1/a: not healthy within 1m0s: ") {
		t.Errorf("the failure is %q", failure)
	}
}

// TestIllAfterARelease: a unit whose pods were all down after its release was done, for as
// long as nobody released anything. A dip is no illness, and a healthy unit costs nothing.
func TestIllAfterARelease(t *testing.T) {
	for name, drift := range map[string]config.Drift{"watched": {Watch: true}, "swept": {}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				look := func() { w.now = w.now.Add(time.Minute); w.pass() }
				if drift.Watch {
					w.watching()
				} else {
					w.sweeping(drift)
					w.release()
					w.nextSweep()
					look = func() { w.nextSweep(); w.pass() }
				}
				testIllAfterARelease(t, w, look)
			})
		})
	}
}

func testIllAfterARelease(t *testing.T, w *world, look func()) {
	for range 3 {
		look()
	}
	w.audit()
	look()
	look()
	for request := range w.requests() {
		if strings.Contains(request, "get deployments") {
			t.Errorf("nothing happened, and there was a request: %s", request)
		}
	}
	stands := func(want standing.Standing) func() bool {
		return func() bool { look(); return w.standing("app") == want }
	}
	w.pods("dev-1/b", "app", false)
	w.until("the look", func() bool { look(); return w.unit("app").Targets["dev-1/b"].Health != rollout.HealthGood })
	if w.unit("app").Targets["dev-1/b"].Trouble == "" {
		w.want("status of a dip", string(w.standing("app")), string(standing.Done))
	}
	w.until("the illness", stands(standing.Degraded))
	w.want("release", string(w.unit("app").Rollout.Status), string(rollout.Done))
	w.want("images", w.tags("app"), "1 1 1")
	reason := w.unit("app").Rollout.Reason
	if !strings.HasPrefix(reason, "target dev-1/b: ") || !strings.HasSuffix(reason, "0 of 1 replicas available") {
		t.Errorf("the reason is %q", reason)
	}
	w.pods("dev-1/b", "app", true)
	w.until("the recovery", stands(standing.Done))
	var reported []string
	for _, kind := range []string{"degraded", "recovered", "unhealthy"} {
		for _, text := range w.events("app", kind) {
			reported = append(reported, kind+" "+strings.Fields(text)[0])
		}
	}
	slices.Sort(reported)
	if diff := cmp.Diff([]string{"degraded dev-1/b", "recovered dev-1/b"}, reported); diff != "" {
		t.Error(diff)
	}
}
