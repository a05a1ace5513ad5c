// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// waves replaces the waves of the fleet's rollout.
func (w *world) waves(lines string) {
	w.Helper()
	head, _, _ := strings.Cut(fleetYAML, "  waves:\n")
	w.write("fleet/fleet.yaml", head+"  waves:\n"+lines)
}

// written are the requests to a cluster since the last time that write, but those of
// Leases of other clusters.
func (w *world) written(cluster, namespace string) (texts []string) {
	for _, e := range w.auditOf(cluster) {
		if !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && (namespace == "" || e.ObjectRef.Namespace == namespace) {
			texts = append(texts, e.Verb+" "+e.RequestURI)
		}
	}
	return texts
}

// TestMaskedCluster: a masked cluster gets no write of any sort, of a release, of a
// deletion, of drift, of a Lease, also after a restart with a fleet that is broken. It
// catches up when the mask is gone.
func TestMaskedCluster(t *testing.T) { simulated(t, testMaskedCluster) }

func testMaskedCluster(t *testing.T, w *world) {
	w.release()
	w.write("fleet/mask.yaml", "apiVersion: swell.sh/v1\nkind: Mask\nmetadata: {name: outage}\nspec: {reason: no power, where: {targets: [dev-2]}}\n")
	w.commit()
	w.pass()
	w.auditOf("dev-2")
	w.edit("dev-2/c", configMaps, "one", `{"data":{"image":"by hand"}}`, "kubectl-edit")
	w.auditOf("dev-2") // that was not swell
	w.app("app", "2", "two")
	w.commit()
	w.soaked("app", 2)
	w.want("what the clusters run", w.tags("app"), "2 2 1")
	if why := w.unit("app").Rollout.Reason; !strings.Contains(why, "1 of 3 targets owe it, dev-2/c is masked by Mask outage: no power") {
		t.Errorf("the reason is %q", why)
	}
	w.write("fleet/broken.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: x, labels: 1}\n")
	w.commit()
	w.stop()
	w.start() // it knows no good fleet but by what is stored
	w.idle(2 * time.Hour)
	if texts := w.written("dev-2", ""); len(texts) > 0 {
		t.Errorf("written to a masked cluster: %q", texts)
	}
	w.want("what the masked cluster holds", fmt.Sprint(w.there("one"), w.there("two")), "1 2")

	w.must(os.Remove(filepath.Join(w.repo(), "fleet/broken.yaml")))
	w.must(os.Remove(filepath.Join(w.repo(), "fleet/mask.yaml")))
	w.commit()
	w.until("the debt", w.soon(func() bool { return w.tags("app") == "2 2 2" && w.is("app", 2, rollout.Done)() }))
	w.until("what is left over", w.soon(func() bool { return w.there("one") == 0 && w.there("two") == 3 }))
}

// TestMaskInMidWave: an order masks a target that a job is about to write.
func TestMaskInMidWave(t *testing.T) { simulated(t, testMaskInMidWave) }

func testMaskInMidWave(t *testing.T, w *world) {
	w.release()
	w.app("app", "broken")
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "broken" })
	w.give(order.Order{Verb: order.Mask, Scope: order.Scope{Target: "dev-1/a"}, Reason: "we look into it"})
	w.pass()
	w.auditOf("dev-1")
	w.idle(time.Hour) // it would have been rolled back long ago
	if texts := w.written("dev-1", w.tenant+"-a"); len(texts) > 0 {
		t.Errorf("written to a masked target: %q", texts)
	}
	w.want("what the canary runs", w.tag("dev-1/a", "app"), "broken")
	w.give(order.Order{Verb: order.Unmask, Scope: order.Scope{Target: "dev-1/a"}, Reason: "seen enough"})
	w.until("the rollback", w.soon(w.is("app", 2, rollout.RolledBack)))
	w.want("what the canary runs", w.tag("dev-1/a", "app"), "1")
}

// TestHealthAtAMaskedPlace: who masked a cluster because the release made it ill sees when it is
// well again, and the release goes on. Nothing is written there for it.
func TestHealthAtAMaskedPlace(t *testing.T) { simulated(t, testHealthAtAMaskedPlace) }

func testHealthAtAMaskedPlace(t *testing.T, w *world) {
	w.release()
	w.app("app", "broken")
	w.commit()
	w.until("the canary", func() bool {
		return w.tag("dev-1/a", "app") == "broken" && w.unit("app").Targets["dev-1/a"].Reason != ""
	})
	w.give(order.Order{Verb: order.Mask, Scope: order.Scope{Target: "dev-1"}, Reason: "we look into it"})
	w.pass()
	w.auditOf("dev-1")
	w.idle(time.Hour)
	w.pods("dev-1/a", "app", true)
	w.auditOf("dev-1") // that was not swell
	w.until("the health", w.soon(func() bool { return w.unit("app").Targets["dev-1/a"].Health == rollout.HealthGood }))
	w.until("the next wave", w.soon(func() bool { return w.tag("dev-2/c", "app") == "broken" }))
	if texts := w.written("dev-1", ""); len(texts) > 0 {
		t.Errorf("written to a masked cluster: %q", texts)
	}
}

// TestRetire: a target is emptied, by approval, although the commit wants it, and filled
// again when that is taken back.
func TestRetire(t *testing.T) { simulated(t, testRetire) }

func testRetire(t *testing.T, w *world) {
	w.release()
	w.give(order.Order{Verb: order.Retire, Scope: order.Scope{Target: "dev-2"}, Reason: "the site closes"})
	w.until("the plan", w.soon(func() bool { return len(w.plans()) > 0 }))
	w.want("what is there", w.tags("app"), "1 1 1")
	for range 5 { // of the namespaces too
		for _, plan := range w.plans() {
			w.approve(plan)
		}
		for range 10 {
			w.now = w.now.Add(time.Minute)
			w.pass()
		}
	}
	w.want("what is there", w.tags("app"), "1 1 ")
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", w.unit("app").Rollout.ID+1)
	w.want("what is there", w.tags("app"), "2 2 ")
	w.give(order.Order{Verb: order.Restore, Scope: order.Scope{Target: "dev-2"}, Reason: "it does not"})
	w.until("its return", w.soon(func() bool { return w.tags("app") == "2 2 2" }))
}

// TestJobGate: the Job of a gate runs on each target after the soak, once for each bundle;
// the wave behind it waits, and its failure turns the release back.
func TestJobGate(t *testing.T) { simulated(t, testJobGate) }

func testJobGate(t *testing.T, w *world) {
	w.release()
	w.waves("  - {name: canary, match: {labels: {ring: canary}}, soak: 10m, timeout: 1m, gates: [{job: {name: smoke}}]}\n  - {name: rest, timeout: 1m}\n")
	release := func(tag, smoke string) {
		w.app("app", tag, "one")
		w.write("kinds/app/kind.yaml", appKind+fmt.Sprintf(`  - id: smoke
    template:
      apiVersion: batch/v1
      kind: Job
      metadata: {name: smoke, namespace: "${ns}", annotations: {swell.sh/hook: gate}}
      spec:
        activeDeadlineSeconds: 60
        template:
          spec:
            restartPolicy: Never
            containers: [{name: main, image: "registry.example.com/smoke:%s"}]
`, smoke))
		w.commit()
	}
	release("2", "1")
	w.until("the canary", w.canary("app", 2))
	if w.get("dev-1/a", jobs, "smoke") != nil {
		t.Error("the Job runs before the soak is over")
	}
	w.soaked("app", 2)
	w.want("what the clusters run", w.tags("app"), "2 2 2")
	if w.get("dev-1/a", jobs, "smoke") == nil || w.get("dev-1/b", jobs, "smoke") != nil {
		t.Error("the Job did not run in the canary, or runs where no gate asks for it")
	}
	first := w.get("dev-1/a", jobs, "smoke").GetUID()
	w.idle(time.Hour)
	if again := w.get("dev-1/a", jobs, "smoke").GetUID(); again != first {
		t.Error("the Job ran again for nothing")
	}

	release("3", "broken")
	w.until("the canary", w.canary("app", 3))
	w.until("the others", w.resting)
	w.now = w.now.Add(10 * time.Minute)
	w.until("the gate", w.reasonHas("app", "gate job: Job smoke on target dev-1/a: "))
	w.want("what the clusters run", w.tags("app"), "3 2 2")
	w.until("the rollback", w.is("app", 3, rollout.RolledBack))
	w.want("what the clusters run", w.tags("app"), "2 2 2")
	if why := w.unit("app").Rollout.Failure; !strings.Contains(why, "gate job: Job smoke on target dev-1/a: ") {
		t.Errorf("failed with %q", why)
	}
}

// TestHTTPGate: a URL that says no keeps a wave from starting, also after a restart, and
// the release goes on when it says yes.
func TestHTTPGate(t *testing.T) {
	t.Parallel()
	var yes atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if !yes.Load() {
			http.Error(answer, "not signed off", http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	w := newWorldOn(t, realClusters(t))
	w.endpoints = map[string]config.Endpoint{"ci": {URL: server.URL}}
	w.start()
	w.release()
	w.waves("  - {name: canary, match: {labels: {ring: canary}}, timeout: 1m}\n  - {name: rest, timeout: 1m, gates: [{http: {endpoint: ci, path: \"/ok?unit=${unit}\", at: start}}]}\n")
	w.app("app", "2", "one")
	w.commit()
	w.until("the gate", w.reasonHas("app", "gate http of wave rest: endpoint ci: 403 Forbidden: not signed off"))
	w.want("what the clusters run", w.tags("app"), "2 1 1")
	w.stop()
	w.start()
	yes.Store(true)
	w.until("the release", w.is("app", 2, rollout.Done))
	w.want("what the clusters run", w.tags("app"), "2 2 2")
}

// TestHashNamedRollback: objects whose names change with their content come back with the
// bundle that names them, although they were deleted.
func TestHashNamedRollback(t *testing.T) { simulated(t, testHashNamedRollback) }

func testHashNamedRollback(t *testing.T, w *world) {
	w.release()
	w.app("app", "2", "config-2")
	w.commit()
	w.soaked("app", 2)
	w.until("what is left over", w.soon(func() bool { return w.there("one") == 0 && w.there("config-2") == 3 }))
	w.give(order.Order{Verb: order.Rollback, Scope: order.Scope{Unit: "services/app"}, Reason: "it is slow"})
	w.until("the rollback", w.soon(w.is("app", 2, rollout.RolledBack)))
	w.want("what the clusters run", w.tags("app"), "1 1 1")
	w.until("what was deleted", w.soon(func() bool { return w.there("one") == 3 }))
}
