// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/store"
)

// secondCluster is the one of fleetYAML that leaves.
func secondCluster() string {
	from := strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-2")
	return fleetYAML[from:strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Rollout")]
}

// leave takes dev-2 out of the fleet.
func (w *world) leave() {
	w.Helper()
	w.write("fleet/fleet.yaml", strings.Replace(fleetYAML, secondCluster(), "", 1))
	w.commit()
	w.rest()
}

// remembered is how many objects the inventory has in a cluster.
func (w *world) remembered(cluster string) int {
	w.Helper()
	entries, err := w.store.ClusterInventory(cluster)
	w.must(err)
	return len(entries)
}

// same fails the test unless the clusters have the objects that they had, by UID.
func (w *world) same(before map[liveObject]string) {
	w.Helper()
	if after := w.allUIDs(); !maps.Equal(after, before) {
		w.Errorf("the clusters have %d objects, had %d: gone %q", len(after), len(before), lost(before, after))
	}
}

// TestAClusterLeavesTheFleet: no wave waits for it, what swell has there is remembered
// until that is approved to be forgotten, and nothing is written or deleted there. It comes
// back before that, and after it.
func TestAClusterLeavesTheFleet(t *testing.T) {
	simulatedWith(t, surveying, func(t *testing.T, w *world) {
		w.release()
		w.soaked("app", 1)
		w.rest()
		before, has := w.allUIDs(), w.remembered("dev-2")
		w.leave()
		plan := w.plan()
		if plan.Forgets() != "dev-2" || len(plan.Deletions) != has || has == 0 {
			t.Errorf("plan of %q with %d objects, want dev-2 with %d", plan.Forgets(), len(plan.Deletions), has)
		}
		if u := w.unit("app"); !w.settledAll() || u.Waiting != "" || len(u.Targets) != 2 {
			t.Errorf("left: %s", w.describe())
		}
		w.stop()
		w.start()
		w.rest()
		if again := w.plan(); again.Digest != plan.Digest {
			t.Errorf("after a restart it is plan %s, before %s", again.Digest.Short(), plan.Digest.Short())
		}
		w.same(before)

		w.write("fleet/fleet.yaml", fleetYAML)
		w.commit()
		w.rest()
		if plans := w.plans(); len(plans) > 0 || !w.settledAll() || w.remembered("dev-2") != has {
			t.Errorf("it is back, and %v wait; %d of %d objects\n%s", plans, w.remembered("dev-2"), has, w.describe())
		}
		w.same(before)

		w.leave()
		w.approvePlan()
		w.rest()
		if left := w.remembered("dev-2"); left > 0 || len(w.plans()) > 0 {
			t.Errorf("after the approval, %d objects are remembered, and %v wait", left, w.plans())
		}
		known, err := w.store.Clusters()
		if w.must(err); known["dev-2"] != (store.ClusterState{}) {
			t.Errorf("the state still knows %v", known["dev-2"])
		}
		w.same(before)
		w.write("fleet/fleet.yaml", fleetYAML)
		w.commit()
		w.rest()
		if w.remembered("dev-2") != has || !w.settledAll() {
			t.Errorf("it is back, with %d of %d objects\n%s", w.remembered("dev-2"), has, w.describe())
		}
		w.same(before)
	})
}

// TestAClusterIsBackAtOnce: a Cluster that was removed by mistake is brought back within the
// hour, and is looked at and written to without waiting for the next survey.
func TestAClusterIsBackAtOnce(t *testing.T) {
	simulatedWith(t, surveying, func(t *testing.T, w *world) {
		w.release()
		w.soaked("app", 1)
		w.until("the end of the release", w.is("app", 1, rollout.Done))
		w.write("fleet/fleet.yaml", strings.Replace(fleetYAML, secondCluster(), "", 1))
		w.commit()
		w.until("the departure", func() bool { return len(w.plans()) > 0 })
		w.write("fleet/fleet.yaml", fleetYAML)
		w.commit()
		returned := w.now
		w.until("the return", func() bool {
			placed := w.unit("app").Targets["dev-2/c"]
			return placed != nil && placed.Holds(placed.Wanted)
		})
		if took := w.now.Sub(returned); took > time.Minute {
			t.Errorf("it took %s until the cluster was written to again", took)
		}
	})
}

// TestAUnitGoesWhileItsClusterIsAway: what it has there is asked for when the cluster is
// back.
func TestAUnitGoesWhileItsClusterIsAway(t *testing.T) {
	simulatedWith(t, surveying, func(t *testing.T, w *world) {
		w.release()
		w.soaked("app", 1)
		w.rest()
		before := w.allUIDs()
		w.leave()
		w.drop("app")
		w.commit()
		w.rest()
		w.write("fleet/fleet.yaml", fleetYAML)
		w.commit()
		w.approvePlan() // to forget, which comes too late: it is no approval to delete
		w.until("the question", func() bool { return len(w.plans()) == 1 && !w.plan().Deletions[0].Forget })
		w.idle(time.Second)
		plan := w.plan()
		for _, d := range plan.Deletions {
			if d.Forget || d.Target.Cluster() != "dev-2" || d.Unit != "services/app" {
				t.Errorf("the plan has %v", d)
			}
		}
		for o, uid := range w.allUIDs() {
			if before[o] != uid {
				t.Errorf("%v was made anew", o)
			}
		}
		w.approvePlan()
		w.rest()
		if left := w.remembered("dev-2"); left != w.remembered("dev-1")/2 || w.daemon.State().Units["services/app"] != nil {
			t.Errorf("%d objects are left in dev-2, %d in dev-1\n%s", left, w.remembered("dev-1"), w.describe())
		}
	})
}

// TestAClusterIsRenamed: the same cluster, by its UID, has another name in the newest
// commit. It keeps what swell has there, and nobody is asked.
func TestAClusterIsRenamed(t *testing.T) {
	simulatedWith(t, surveying, func(t *testing.T, w *world) {
		w.release()
		w.soaked("app", 1)
		w.rest()
		before, has := w.allUIDs(), w.remembered("dev-2")
		w.access["dev-3"] = config.ClusterAccess{}
		w.simulated["dev-3"] = w.simulated["dev-2"]
		w.stop()
		w.start()
		w.write("fleet/fleet.yaml", strings.Replace(fleetYAML, "metadata: {name: dev-2", "metadata: {name: dev-3", 1))
		w.commit()
		w.pass()                    // the new name is refused while the old one has not left
		time.Sleep(6 * time.Second) // past the next try to get its Lease, which is over by then
		w.rest()
		if plans := w.plans(); len(plans) > 0 || !w.settledAll() || w.remembered("dev-3") != has || w.remembered("dev-2") != 0 {
			t.Errorf("%v wait; %d of %d objects\n%s", plans, w.remembered("dev-3"), has, w.describe())
		}
		delete(w.simulated, "dev-3")
		w.same(before)
		known, err := w.store.Clusters()
		w.must(err)
		if _, exists := known["dev-2"]; exists || known["dev-3"].Survey != store.Known || known["dev-3"].UID == "" {
			t.Errorf("the state knows %v", known)
		}
	})
}

// TestAClusterIsMadeAnew: under its name another cluster answers. Nothing is written to it
// before somebody accepts the UID that it has; then what the old one had is forgotten, and the
// newest commit comes to the new one through the waves.
func TestAClusterIsMadeAnew(t *testing.T) {
	simulatedWith(t, surveying, func(t *testing.T, w *world) {
		w.release()
		w.soaked("app", 1)
		w.rest()
		has, before := w.remembered("dev-2"), w.uid("dev-2")
		w.stop()
		w.simulated["dev-2"] = simulator.New()
		w.start()
		after := w.uid("dev-2")
		accept := func(uid string) {
			w.give(order.Order{Verb: order.Accept, Scope: order.Scope{Target: "dev-2"}, To: uid, Reason: "rebuilt"})
			for range 20 {
				w.pass()
				time.Sleep(time.Second)
				w.now = w.now.Add(10 * time.Second)
			}
		}
		accept(before)
		accept(w.uid("dev-1"))
		accept("1f6a8e04-9d43-4c1b-8b0e-6a4f5d2c7e11") // a slip: no cluster has it
		if n := w.remembered("dev-2"); n != has || w.tag("dev-2/c", "app") != "" {
			t.Errorf("nobody accepted it, and %d objects of %d are remembered, and %q is there", n, has, w.tag("dev-2/c", "app"))
		}
		accept(after)
		w.until("the release", func() bool {
			time.Sleep(5 * time.Second)
			w.now = w.now.Add(time.Minute)
			return w.tags("app") == "1 1 1" && w.settledAll()
		})
		known, err := w.store.Clusters()
		w.must(err)
		if n := w.remembered("dev-2"); n != has || known["dev-2"].UID != after || known["dev-2"].Survey != store.Known {
			t.Errorf("%d objects of %d, and the state knows %+v, want %s", n, has, known["dev-2"], after)
		}
		var texts []string
		for _, text := range w.fleetEvents("accept") {
			_, text, _ = strings.Cut(text, "(")
			texts = append(texts, text)
		}
		w.want("the history, the newest first", strings.Join(texts, "\n"), strings.Join([]string{
			"kube-system had the UID " + before + ", and has " + after + ": 3 objects of 2 units are forgotten)",
			"there was nothing to do: its namespace kube-system has the UID " + after + ")",
			"there was nothing to do: cluster dev-1 has the UID " + w.uid("dev-1") + ")",
			"there was nothing to do: its namespace kube-system has the UID " + after + ")",
		}, "\n"))
	})
}

// uid is the identity of a cluster.
func (w *world) uid(cluster string) string {
	w.Helper()
	live, err := w.client(cluster).Resource(namespaces).Get(w.Context(), "kube-system", metav1.GetOptions{})
	w.must(err)
	return string(live.GetUID())
}
