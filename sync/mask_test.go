// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// writesTo are the requests by which swell wrote in a simulated cluster since the last
// call, those for its Lease included.
func (w *world) writesTo(cluster string) (writes []string) {
	w.Helper()
	for _, e := range w.recorder.since(cluster, w.read[cluster]) {
		w.read[cluster]++
		if e.UserAgent == "swell" && (e.Verb == "create" || e.Verb == "update" || e.Verb == "patch" || e.Verb == "delete") && !strings.Contains(e.RequestURI, "dryRun") {
			writes = append(writes, e.Verb+" "+e.RequestURI)
		}
	}
	return writes
}

func maskOf(scope order.Scope) order.Order {
	return order.Order{Verb: order.Mask, Scope: scope, Reason: "by hand"}
}

// TestMaskedClusterGetsNoWrite: while a cluster is masked it gets no request that writes,
// not even for the Lease, whatever Git wants and whatever others change there, over a
// restart too; after that it catches up. But for one: the Lease says that it is masked.
func TestMaskedClusterGetsNoWrite(t *testing.T) { simulated(t, testMaskedClusterGetsNoWrite) }

func testMaskedClusterGetsNoWrite(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.app("app", "1", "one", "two")
	w.commit()
	w.release()
	w.give(maskOf(order.Scope{Target: "dev-2"}))
	w.pass()
	time.Sleep(time.Second)
	w.writesTo("dev-2")
	w.app("app", "2", "one")
	w.commit()
	w.edit("dev-2/c", configMaps, "one", `{"data": {"image": "theirs"}}`, "kubectl-edit")
	w.until("the canary", w.canary("app", 2))
	pass := func() {
		for range 20 {
			w.now = w.now.Add(10 * time.Minute)
			w.pass()
			pause(t)
		}
	}
	pass()
	w.stop()
	w.start()
	pass()
	if writes := w.writesTo("dev-2"); len(writes) > 0 {
		t.Errorf("written: %q", writes)
	}
	w.want("images", w.tags("app"), "2 2 1")
	if told := w.events("app", "reported"); len(told) != 1 || !strings.Contains(told[0], "kubectl-edit") {
		t.Errorf("what others changed there is not told once: %q", told)
	}
	w.give(order.Order{Verb: order.Unmask, Scope: order.Scope{Target: "dev-2"}})
	w.until("the end", func() bool { return w.tags("app") == "2 2 2" && w.there("two") == 0 })
	w.until("the correction", func() bool {
		data, _ := w.get("dev-2/c", configMaps, "one").Object["data"].(map[string]any)
		return data["image"] == "registry.example.com/app:2"
	})
}

// TestMaskOrderedWhileTheDaemonIsDown: it holds from the start, for the Lease too.
func TestMaskOrderedWhileTheDaemonIsDown(t *testing.T) {
	simulated(t, testMaskOrderedWhileTheDaemonIsDown)
}

func testMaskOrderedWhileTheDaemonIsDown(t *testing.T, w *world) {
	w.release()
	w.stop()
	w.give(maskOf(order.Scope{Target: "dev-2"}))
	w.writesTo("dev-2")
	w.start()
	for range 5 {
		w.pass()
		pause(t)
	}
	if writes := w.writesTo("dev-2"); len(writes) > 0 {
		t.Errorf("written: %q", writes)
	}
}

// TestMaskEndsUnderABrokenFleet: the Lease of a cluster is kept again when its mask is over,
// also while no good fleet is known.
func TestMaskEndsUnderABrokenFleet(t *testing.T) {
	simulated(t, testMaskEndsUnderABrokenFleet)
}

func testMaskEndsUnderABrokenFleet(t *testing.T, w *world) {
	w.release()
	w.write("fleet/broken.yaml", "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: x, labels: 1}\n")
	w.commit()
	w.stop()
	w.start()
	time.Sleep(time.Minute)
	w.pass()
	w.give(maskOf(order.Scope{Target: "dev-2"}))
	time.Sleep(time.Minute)
	w.pass()
	w.give(order.Order{Verb: order.Unmask})
	w.pass()
	w.writesTo("dev-2")
	time.Sleep(time.Minute)
	if len(w.writesTo("dev-2")) == 0 {
		t.Error("the Lease is not renewed")
	}
}

// TestMaskStopsAJob: a job that is under way when its place is masked sends nothing more,
// and goes on when the mask is over.
func TestMaskStopsAJob(t *testing.T) { simulated(t, testMaskStopsAJob) }

func testMaskStopsAJob(t *testing.T, w *world) {
	w.release()
	w.patience = 200 * time.Millisecond
	w.stop()
	w.start()
	var held, asked atomic.Int32
	w.intercept("dev-1", func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, w.tenant+"-a/deployments") {
			return false
		}
		if asked.Add(1) == 1 {
			held.Add(1)
			<-r.Context().Done()
			held.Add(-1)
		}
		return false
	})
	w.app("app", "2", "one")
	w.commit()
	w.until("the request", func() bool { return held.Load() == 1 })
	w.give(maskOf(order.Scope{Unit: "services/app", Target: "dev-1/a"}))
	w.until("the end of the job", func() bool { return held.Load() == 0 && !w.daemon.Busy() })
	w.writesTo("dev-1")
	for range 5 {
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	for _, request := range w.writesTo("dev-1") {
		if strings.Contains(request, w.tenant+"-a/") {
			t.Errorf("written: %s", request)
		}
	}
	w.give(order.Order{Verb: order.Unmask})
	w.until("the canary", w.canary("app", 2))
}

// TestDriftAtAMaskedPlace: it is reported, and corrected when the mask is over.
func TestDriftAtAMaskedPlace(t *testing.T) { simulated(t, testDriftAtAMaskedPlace) }

func testDriftAtAMaskedPlace(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	w.give(maskOf(order.Scope{Unit: "services/app", Target: "dev-2/c"}))
	w.edit("dev-2/c", configMaps, "one", `{"data": {"image": "theirs"}}`, "kubectl-edit")
	w.nextSweep()
	w.idle(time.Minute)
	image := func() any {
		data, _ := w.get("dev-2/c", configMaps, "one").Object["data"].(map[string]any)
		return data["image"]
	}
	if image() != "theirs" {
		t.Errorf("corrected to %v", image())
	}
	if said := w.events("app", "reported"); len(said) != 1 {
		t.Errorf("reported: %q", said)
	}
	w.give(order.Order{Verb: order.Unmask})
	w.until("the correction", func() bool { return image() == "registry.example.com/app:1" })
}

// TestMaskThatEndsByTime: the place is looked at as soon as the time of the mask is over, long
// before the next sweep is due.
func TestMaskThatEndsByTime(t *testing.T) { simulated(t, testMaskThatEndsByTime) }

func testMaskThatEndsByTime(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	w.nextSweep()
	mask := maskOf(order.Scope{Target: "dev-2/c"})
	mask.Until = w.now.Add(time.Minute)
	w.give(mask)
	w.pass()
	w.edit("dev-2/c", configMaps, "one", `{"data": {"image": "theirs"}}`, "kubectl-edit")
	w.now = mask.Until.Add(time.Second)
	var swept []string
	for range 20 {
		swept = append(swept, w.pass().Swept...)
		pause(t)
	}
	if !slices.Contains(swept, "dev-2") {
		t.Errorf("swept %v", swept)
	}
	data, _ := w.get("dev-2/c", configMaps, "one").Object["data"].(map[string]any)
	if data["image"] != "registry.example.com/app:1" {
		t.Errorf("not corrected: %v", data)
	}
}

// TestOrdersInForce: they are in force over a restart until one ends them that has their
// scope, or until their time is over; each has its line in the history, once.
func TestOrdersInForce(t *testing.T) { simulated(t, testOrdersInForce) }

func testOrdersInForce(t *testing.T, w *world) {
	w.release()
	inForce := func() string {
		standing, err := w.store.Standing()
		w.must(err)
		var texts []string
		for _, o := range standing {
			texts = append(texts, string(o.Verb)+" "+o.Scope.Text())
		}
		return strings.Join(texts, ", ")
	}
	in := func(unit config.UnitPath) order.Scope { return order.Scope{Unit: unit} }
	w.give(order.Order{Verb: order.Pause, Scope: in("services"), Reason: "why"})
	w.give(order.Order{Verb: order.Pause, Scope: in("services/app")})
	w.give(order.Order{Verb: order.Freeze, Scope: in("services/app"), Reason: "holidays", Until: w.now.Add(time.Hour)})
	w.stop()
	w.start()
	w.pass()
	w.want("in force", inForce(), "pause services, pause services/app, freeze services/app")
	w.app("app", "2", "one")
	w.commit()
	w.idle(time.Minute)
	w.want("images", w.tags("app"), "1 1 1")

	w.give(order.Order{Verb: order.Resume, Scope: in("services/app")})
	w.pass()
	w.want("in force", inForce(), "pause services, freeze services/app")
	w.give(order.Order{Verb: order.Resume})
	w.pass()
	w.want("in force", inForce(), "freeze services/app")
	w.idle(time.Minute)
	w.want("images", w.tags("app"), "1 1 1")
	w.now = w.now.Add(2 * time.Hour)
	w.until("the canary", w.canary("app", 2))
	w.want("in force", inForce(), "")
	w.give(order.Order{Verb: order.Resume})
	w.pass()

	events, err := w.store.History("", 1000)
	w.must(err)
	var said []string
	for i := len(events) - 1; i >= 0; i-- {
		switch e := events[i]; order.Verb(e.Kind) {
		case order.Pause, order.Freeze, order.Resume, order.Thaw:
			said = append(said, e.Kind+": "+e.Text)
		}
	}
	// The moments are those of the daemon's clock.
	for i := range said {
		if before, after, ok := strings.Cut(said[i], " until "); ok {
			_, after, _ = strings.Cut(after, ",")
			said[i] = before + " until T," + after
		}
	}
	if diff := cmp.Diff([]string{
		"pause: services, by ann: why",
		"pause: services/app, by ann",
		"freeze: services/app until T, by ann: holidays",
		"resume: services/app, by ann (ends pause of services/app by ann)",
		"resume: everything, by ann (ends pause of services by ann: why)",
		"thaw: the time of freeze is over (services/app until T, by ann: holidays)",
		"resume: everything, by ann (nothing was in force)",
	}, said); diff != "" {
		t.Error(diff)
	}
}

// TestReconcileOrder looks for drift in the clusters of its scope before it is time.
func TestReconcileOrder(t *testing.T) { simulated(t, testReconcileOrder) }

func testReconcileOrder(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	w.nextSweep()
	w.give(order.Order{Verb: order.Reconcile, Scope: order.Scope{Unit: "services/app", Target: "dev-2"}})
	var swept []string
	w.until("the sweep", func() bool {
		swept = append(swept, w.pass().Swept...)
		return len(swept) > 0
	})
	w.want("swept", strings.Join(swept, " "), "dev-2")
	if !w.is("app", 1, rollout.Done)() {
		t.Error(w.describe())
	}
	if said := w.events("app", "reconcile"); len(said) != 1 || said[0] != "dev-2 by ann (Git, and 1 cluster for drift)" {
		t.Errorf("said %q", said)
	}
	w.give(maskOf(order.Scope{Target: "dev-2"}))
	w.give(order.Order{Verb: order.Reconcile})
	w.pass()
	events, err := w.store.History("", 1)
	w.must(err)
	w.want("said of a masked cluster", events[0].Text, "by ann (Git, and 2 clusters for drift)")
	swept = nil
	w.until("the sweep of the masked cluster", func() bool {
		swept = append(swept, w.pass().Swept...)
		return slices.Contains(swept, "dev-2")
	})
}
