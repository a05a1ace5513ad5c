// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// names are n names of ConfigMaps.
func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("map-%03d", i)
	}
	return all
}

// soon is ok, asked a minute of the daemon's time later each time: what is put
// off comes sooner.
func (w *world) soon(ok func() bool) func() bool {
	return func() bool {
		w.now = w.now.Add(time.Minute)
		return ok()
	}
}

// plans are those that wait.
func (w *world) plans() []store.Plan {
	w.Helper()
	plans, err := w.store.Plans()
	w.must(err)
	return plans
}

// plan is the one that waits.
func (w *world) plan() store.Plan {
	w.Helper()
	plans := w.plans()
	if len(plans) != 1 {
		w.Fatalf("%d plans, want one: %v\n%s", len(plans), plans, w.describe())
	}
	return plans[0]
}

func (w *world) approve(p store.Plan) {
	w.Helper()
	w.beside(func(tx *store.Tx) error { return tx.Approve(p.Digest, "ada", w.now) })
}

// approvePlan waits for deletions that need approval, and approves them.
func (w *world) approvePlan() {
	w.Helper()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
	w.approve(w.plan())
}

// there counts the ConfigMaps of the tenant that have one of the names, over all
// targets.
func (w *world) there(names ...string) int {
	w.Helper()
	n := 0
	for _, at := range []struct{ cluster, cell string }{{"dev-1", "a"}, {"dev-1", "b"}, {"dev-2", "c"}} {
		list, err := w.client(at.cluster).Resource(configMaps).Namespace(w.tenant+"-"+at.cell).List(w.Context(), metav1.ListOptions{})
		w.must(err)
		for _, item := range list.Items {
			if slices.Contains(names, item.GetName()) {
				n++
			}
		}
	}
	return n
}

// idle makes passes over some time in which nothing is deleted.
func (w *world) idle(over time.Duration) (transitions []rollout.Transition) {
	w.Helper()
	for range 10 {
		r := w.pass()
		transitions = append(transitions, r.Transitions...)
		if n := r.Objects["deleted"]; n > 0 {
			w.Errorf("deleted %d objects\n%s", n, w.describe())
		}
		if len(r.Actions) == 0 {
			w.now = w.now.Add(over / 10)
		}
		pause(w.TB)
	}
	return transitions
}

// TestDeletionsAboveTheGuard: held in all waves, with the exact list; neither the
// rollout nor another unit's deletions are disturbed; approved, they go.
func TestDeletionsAboveTheGuard(t *testing.T) { simulated(t, testDeletionsAboveTheGuard) }

func testDeletionsAboveTheGuard(t *testing.T, w *world) {
	all := names(15)
	w.app("app", "1", all...)
	w.app("other", "1", "one", "two")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	w.app("app", "2", all[12:]...)
	w.app("other", "1", "one")
	w.commit()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
	plan := w.plan()
	w.want("whose plan it is", string(plan.Unit), "services/app")
	var listed []string
	for _, d := range plan.Deletions {
		listed = append(listed, fmt.Sprintf("%s %s", d.Target, d.ID))
		live := w.get(string(d.Target), configMaps, d.Name)
		if live == nil || string(live.GetUID()) != d.UID {
			t.Errorf("%s on %s: listed with UID %q, live is %v", d.ID, d.Target, d.UID, live)
		}
		w.want("why", d.Why, "the unit deletes more than 10 objects or 10 % of what it has on the target")
	}
	var expected []string
	for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} { // the canary alone is applied by now
		for _, name := range all[:12] {
			expected = append(expected, fmt.Sprintf("%s ConfigMap/%s-%s/%s", target, w.tenant, target[len("dev-1/"):], name))
		}
	}
	if !slices.Equal(listed, expected) {
		t.Errorf("listed %q, want %q", listed, expected)
	}
	w.want("what the unit waits for", w.unit("app").Waiting, "36 deletions pending: swell approve "+plan.Digest.Short())

	w.soaked("app", 2) // it fails nothing
	w.until("other", w.is("other", 2, rollout.Done))
	w.until("what the other unit dropped", func() bool { return w.there("two") == 0 })
	w.want("the Deployments", w.tags("app"), "2 2 2")
	w.stop() // the state has it
	w.start()
	transitions := w.idle(time.Hour)
	for _, tr := range transitions {
		t.Errorf("changed while it waits: %v", tr)
	}
	again := w.plan()
	if again.Digest != plan.Digest || !again.At.Equal(plan.At) || w.there(all...) != 45 {
		t.Errorf("after an hour: plan %s of %s, want %s of %s; %d objects of 45", again.Digest.Short(), again.At, plan.Digest.Short(), plan.At, w.there(all...))
	}

	w.approve(plan)
	w.until("the deletions", func() bool { return w.there(all[:12]...) == 0 })
	w.until("the end", func() bool { return w.unit("app").Waiting == "" && len(w.plans()) == 0 })
	if n := w.there(all...); n != 9 {
		t.Errorf("%d ConfigMaps are left, want 9", n)
	}
	if told := w.events("app", "deleted"); len(told) != 3 || !strings.Contains(told[0], " ConfigMap/"+w.tenant) || !strings.HasSuffix(told[0], " (and 11 more)") {
		t.Errorf("the history tells of deletions %q", told)
	}
	w.until("the approval is used up", func() bool {
		approvals, err := w.store.Approvals()
		w.must(err)
		return len(approvals) == 0
	})
	var approved []string
	events, err := w.store.History("services/app", 1000)
	w.must(err)
	for _, e := range events {
		if e.Kind == "approved" {
			approved = append(approved, e.Text)
		}
	}
	w.want("the history", strings.Join(approved, "\n"), "plan "+plan.Digest.Short()+": 36 deletions, by ada")
}

// TestApprovalIsBoundToThePlan: what comes on top of what was approved stays
// held, also after the rest has gone; the old digest approves nothing any more.
func TestApprovalIsBoundToThePlan(t *testing.T) { simulated(t, testApprovalIsBoundToThePlan) }

func testApprovalIsBoundToThePlan(t *testing.T, w *world) {
	all := names(20)
	w.app("app", "1", all...)
	w.commit()
	w.release()
	w.app("app", "1", all[12:]...)
	w.commit()
	w.soaked("app", 2)
	first := w.plan()
	w.approve(first)
	w.app("app", "1", all[15:]...) // three more, before the daemon looks
	w.commit()
	w.soaked("app", 3)
	w.until("what was approved", func() bool { return w.there(all[:12]...) == 0 })
	w.idle(time.Hour)
	if n := w.there(all[12:15]...); n != 9 {
		t.Errorf("%d of the 9 that were not approved are there", n)
	}
	second := w.plan()
	if second.Digest == first.Digest || len(second.Deletions) != 9 {
		t.Errorf("plan %s with %d deletions", second.Digest.Short(), len(second.Deletions))
	}
	beside := w.store.Beside()
	defer beside.Close()
	err := beside.Update(t.Context(), func(tx *store.Tx) error { return tx.Approve(first.Digest, "ada", w.now) })
	if !errors.Is(err, store.ErrNoPlan) {
		t.Errorf("the first plan again: %v", err)
	}
	w.approve(second)
	w.until("the rest", func() bool { return w.there(all[:15]...) == 0 })
}

// TestRejectedPlan: what is rejected stays held and says by whom, over a restart
// too; another plan is not rejected; approved after all, it goes.
func TestRejectedPlan(t *testing.T) { simulated(t, testRejectedPlan) }

func testRejectedPlan(t *testing.T, w *world) {
	all := names(15)
	reject := func(p store.Plan) {
		w.beside(func(tx *store.Tx) error {
			return tx.Reject(p.Digest, store.Rejection{At: w.now, By: "ada", Reason: "still read"})
		})
	}
	rejected := func(p store.Plan) string {
		return fmt.Sprintf("%d deletions pending: rejected by ada: still read; take the change back in Git, or approve it after all: swell approve %s", len(p.Deletions), p.Digest.Short())
	}
	w.app("app", "1", all...)
	w.commit()
	w.release()
	w.app("app", "1", all[12:]...)
	w.commit()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
	first := w.plan()
	reject(first)
	w.until("the rejection", func() bool { return w.unit("app").Waiting == rejected(first) })
	w.stop()
	w.start()
	w.idle(time.Hour)
	w.want("after a restart", w.unit("app").Waiting, rejected(first))
	if n := w.there(all...); n != 45 {
		t.Errorf("%d of 45 objects", n)
	}

	w.app("app", "1", all[13:]...)
	w.commit()
	w.until("another plan", func() bool { return len(w.plans()) == 1 && w.plan().Digest != first.Digest })
	second := w.plan()
	w.until("which nobody rejected", func() bool {
		return w.unit("app").Waiting == fmt.Sprintf("%d deletions pending: swell approve %s", len(second.Deletions), second.Digest.Short())
	})
	reject(second)
	w.until("the second rejection", func() bool { return w.unit("app").Waiting == rejected(second) })
	w.approve(second)
	w.until("the deletions", func() bool { return w.there(all[:13]...) == 0 })
	w.until("the end", func() bool { return w.unit("app").Waiting == "" && len(w.plans()) == 0 })
}

// TestApprovalLapses: an approval that was never used ends when the commit wants
// the objects again.
func TestApprovalLapses(t *testing.T) { simulated(t, testApprovalLapses) }

func testApprovalLapses(t *testing.T, w *world) {
	all := names(12)
	w.app("app", "1", all...)
	w.commit()
	w.release()
	w.app("app", "1")
	w.commit()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
	plan := w.plan()
	w.stop() // it works without a daemon, too
	w.approve(plan)
	w.git("revert", "--no-edit", "HEAD")
	w.start()
	w.soaked("app", 3)
	w.git("revert", "--no-edit", "HEAD")
	w.soaked("app", 4)
	w.idle(time.Hour)
	if n := w.there(all...); n != 36 {
		t.Errorf("%d of 36 objects are there", n)
	}
	w.want("the plan", w.plan().Digest.Short(), plan.Digest.Short())
}

// TestApprovalLapsesBesideABrokenUnit: the same while a unit of the tenant has a
// problem, for which nothing is deleted: that the objects are wanted is known.
func TestApprovalLapsesBesideABrokenUnit(t *testing.T) {
	simulated(t, testApprovalLapsesBesideABrokenUnit)
}

func testApprovalLapsesBesideABrokenUnit(t *testing.T, w *world) {
	all := names(12)
	w.app("app", "1", all...)
	w.commit()
	w.release()
	w.app("app", "1")
	w.commit()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
	plan := w.plan()
	w.stop()
	w.approve(plan)
	w.write("services/bad/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: bad}\nspec: {imaeg: x}\n")
	w.app("app", "1", all...)
	w.commit()
	w.start()
	w.soaked("app", 3)
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/bad")))
	w.app("app", "1")
	w.commit()
	w.soaked("app", 4)
	w.idle(time.Hour)
	if n := w.there(all...); n != 36 {
		t.Errorf("%d of 36 objects are there", n)
	}
	w.want("the plan", w.plan().Digest.Short(), plan.Digest.Short())
}

// TestTargetsForgetAPlanWithItsUnit: a plan ends because another unit has a problem,
// and comes again when that is mended. What the targets say follows at once, and not
// when they are tried the next time.
func TestTargetsForgetAPlanWithItsUnit(t *testing.T) { simulated(t, testTargetsForgetAPlanWithItsUnit) }

func testTargetsForgetAPlanWithItsUnit(t *testing.T, w *world) {
	w.app("gone", "1", names(12)...)
	w.commit()
	w.release()
	w.until("gone", w.is("gone", 1, rollout.Done))
	w.drop("gone")
	w.idle(time.Hour)
	said := func(text string) func() bool {
		return func() bool { return strings.Contains(w.unit("gone").Targets["dev-1/a"].Reason, text) }
	}
	if !said("swell approve " + w.plan().Digest.Short())() {
		t.Fatal(w.describe())
	}
	soon := func(what string, ok func() bool) {
		t.Helper()
		for range 10 { // the daemon's time stands still
			if w.pass(); ok() {
				return
			}
			pause(t)
		}
		t.Errorf("%s\n%s", what, w.describe())
	}
	w.write("services/bad/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: bad}\nspec: {imaeg: x}\n")
	w.commit()
	soon("the problem is not told", said("which has a problem"))
	if len(w.plans()) > 0 || said("swell approve")() {
		t.Errorf("a plan is told of that there is not\n%s", w.describe())
	}
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/bad")))
	w.commit()
	soon("the plan is not told", said("swell approve"))
}

// TestGuardThatCannotBeStored: when what is held cannot be written, nothing is
// deleted, not even what is free.
func TestGuardThatCannotBeStored(t *testing.T) { simulated(t, testGuardThatCannotBeStored) }

func testGuardThatCannotBeStored(t *testing.T, w *world) {
	all := names(12)
	w.app("app", "1", all...)
	w.app("other", "1", "one")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "state", "state.db"))
	w.must(err)
	defer db.Close()
	_, err = db.Exec("DROP TABLE plans")
	w.must(err)
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/app")))
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/other")))
	w.commit()
	if r := w.daemon.Once(t.Context()); r.Err == nil || len(r.Actions) > 0 {
		t.Errorf("err %v, actions %v", r.Err, r.Actions)
	}
	if n := w.there(append(all, "one")...); n != 39 {
		t.Errorf("%d of 39 ConfigMaps are there", n)
	}
}

// TestFleetsGuard: deletions that are small for each unit, and in each wave, are
// held when the commit adds up to too much; there is one plan for all of them.
func TestFleetsGuard(t *testing.T) { simulated(t, testFleetsGuard) }

func testFleetsGuard(t *testing.T, w *world) {
	w.guard = &config.Guard{Unit: config.DefaultGuard.Unit, Fleet: config.DeletionLimit{Objects: 8, Percent: 50}, Units: 3}
	w.stop()
	w.start()
	for i := range 3 {
		w.app(fmt.Sprintf("app-%d", i), "1", fmt.Sprintf("one-%d", i), fmt.Sprintf("two-%d", i))
	}
	w.commit()
	w.release()
	w.soaked("app-0", 1)
	for i := range 3 {
		w.until("app", w.is(fmt.Sprintf("app-%d", i), 1, rollout.Done))
		w.app(fmt.Sprintf("app-%d", i), "1", fmt.Sprintf("one-%d", i))
	}
	w.commit()
	for i := range 3 {
		w.soaked(fmt.Sprintf("app-%d", i), 2)
	}
	w.idle(time.Hour)
	plan := w.plan()
	if plan.Unit != "" || len(plan.Deletions) != 9 || w.there("two-0", "two-1", "two-2") != 9 {
		t.Errorf("a plan of %q with %d deletions; %d of 9 objects are there", plan.Unit, len(plan.Deletions), w.there("two-0", "two-1", "two-2"))
	}
	w.want("what a unit waits for", w.unit("app-1").Waiting, "3 deletions pending: swell approve "+plan.Digest.Short()+" (9 deletions of the whole fleet)")
	w.approve(plan)
	w.until("the deletions", func() bool { return w.there("two-0", "two-1", "two-2") == 0 })
	w.until("no plan", func() bool { return len(w.plans()) == 0 })

	w.app("app-0", "1") // one unit on three targets: little
	w.commit()
	w.soaked("app-0", 3)
	w.until("a small deletion", func() bool { return w.there("one-0") == 0 })
}

var (
	statefulSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	claims       = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// onTwo releases a unit of objects on dev-2/c alone, and waits until they are
// applied.
func (w *world) onTwo(unit, objects string) {
	w.Helper()
	w.write("services/"+unit+"/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: "+unit+"}\nspec: {placement: {match: {labels: {site: two}}}}\n")
	w.write("services/"+unit+"/objects.yaml", objects)
	w.commit()
	w.release()
	w.until(unit, func() bool { u := w.unit(unit); return u != nil && u.Targets["dev-2/c"].Applied != "" })
}

// drop takes a unit out of Git, and waits until its deletions wait for approval.
func (w *world) drop(unit string) {
	w.Helper()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services", unit)))
	w.commit()
	w.until("the plan", func() bool { return len(w.plans()) > 0 })
}

// stateful is a unit on dev-2/c with a namespace of its own, and data in it.
func (w *world) stateful() (namespace string) {
	w.Helper()
	namespace = w.tenant + "-data"
	w.onTwo("data", strings.ReplaceAll(`apiVersion: v1
kind: Namespace
metadata: {name: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NS}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: NS}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: nowhere, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: NS}
spec:
  replicas: 0
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: main, image: registry.example.com/store:1}]}
`, "NS", namespace))
	return namespace
}

// exists looks for an object in dev-2.
func (w *world) exists(resource schema.GroupVersionResource, namespace, name string) bool {
	w.Helper()
	list, err := w.client("dev-2").Resource(resource).Namespace(namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	w.must(err)
	return len(list.Items) > 0 && list.Items[0].GetDeletionTimestamp() == nil
}

// TestKindsThatTakeApproval: what takes data along waits however little it is,
// and with it what a StatefulSet may need.
func TestKindsThatTakeApproval(t *testing.T) { simulated(t, testKindsThatTakeApproval) }

func testKindsThatTakeApproval(t *testing.T, w *world) {
	ns := w.stateful()
	w.drop("data")
	w.idle(time.Hour)
	plan := w.plan()
	var listed []string
	for _, d := range plan.Deletions {
		listed = append(listed, d.Kind+": "+d.Why)
	}
	w.want("listed", strings.Join(listed, "\n"), `Namespace: deleting a Namespace needs approval
ConfigMap: StatefulSet/`+ns+`/store may need it, and deleting that needs approval
PersistentVolumeClaim: deleting a PersistentVolumeClaim needs approval
StatefulSet: deleting a StatefulSet needs approval`)
	if !w.exists(statefulSets, ns, "store") || !w.exists(claims, ns, "disk") || !w.exists(configMaps, ns, "settings") || !w.exists(namespaces, "", ns) {
		t.Error("something was deleted")
	}
	w.approve(plan)
	w.until("the removal", w.soon(func() bool { return w.unit("data") == nil }))
	if w.exists(statefulSets, ns, "store") || w.exists(namespaces, "", ns) {
		t.Error("something is left")
	}
	w.until("no plan", func() bool { return len(w.plans()) == 0 })
}

// TestApprovedEnd: a release that ends a unit's workloads is well on every target once that is
// approved.
func TestApprovedEnd(t *testing.T) { simulated(t, testApprovedEnd) }

func testApprovedEnd(t *testing.T, w *world) {
	w.release()
	w.write("kinds/app/kind.yaml", strings.Replace(appKind, "id: deployment\n", "id: deployment\n    when: \"false\"\n", 1))
	w.commit()
	w.approvePlan()
	w.soaked("app", 2)
	w.want("what the clusters run", w.tags("app"), "  ")
}

// TestWhatBeginsAnewIsAskedForAnew: a release that was approved is taken back. Its approval is over
// then, so it writes nothing when somebody tries it again.
func TestWhatBeginsAnewIsAskedForAnew(t *testing.T) {
	simulated(t, testWhatBeginsAnewIsAskedForAnew)
}

func testWhatBeginsAnewIsAskedForAnew(t *testing.T, w *world) {
	w.release()
	w.write("kinds/app/kind.yaml", strings.Replace(appKind, "id: deployment\n", "id: deployment\n    when: \"false\"\n", 1))
	w.commit()
	w.approvePlan()
	w.until("the canary", w.canary("app", 2))
	scope := order.Scope{Unit: "services/app"}
	w.give(order.Order{Verb: order.Rollback, Scope: scope, Reason: "it has no workload"})
	w.until("the rollback", w.is("app", 2, rollout.RolledBack))
	w.idle(time.Second)
	w.give(order.Order{Verb: order.Retry, Scope: scope})
	w.until("the question", func() bool { return len(w.plans()) > 0 })
	w.idle(time.Minute)
	if u := w.unit("app"); u.Rollout.ID != 2 || u.Rollout.Status != rollout.RolledBack || w.plan().Unit != "services/app" {
		t.Errorf("nobody approved it again, and rollout %d is %s\n%s", u.Rollout.ID, u.Rollout.Status, w.describe())
	}
	w.approvePlan()
	w.soaked("app", 3)
}

// TestHeldDeletionIsSettledByHand: somebody lets go of one object and deletes
// another one by hand: nothing is left to approve.
func TestHeldDeletionIsSettledByHand(t *testing.T) { simulated(t, testHeldDeletionIsSettledByHand) }

func testHeldDeletionIsSettledByHand(t *testing.T, w *world) {
	ns := w.stateful()
	w.drop("data")
	client := w.client("dev-2")
	detach := []byte(`{"metadata":{"annotations":{"client.lifecycle.config.k8s.io/deletion":"detach"}}}`)
	for _, o := range []struct {
		resource        schema.GroupVersionResource
		namespace, name string
	}{{namespaces, "", ns}, {claims, ns, "disk"}, {configMaps, ns, "settings"}} {
		_, err := client.Resource(o.resource).Namespace(o.namespace).Patch(t.Context(), o.name, types.MergePatchType, detach, metav1.PatchOptions{FieldManager: "kubectl-annotate"})
		w.must(err)
	}
	w.must(client.Resource(statefulSets).Namespace(ns).Delete(t.Context(), "store", metav1.DeleteOptions{}))
	w.until("the end", w.soon(func() bool { return w.unit("data") == nil && len(w.plans()) == 0 }))
	if !w.exists(claims, ns, "disk") || !w.exists(namespaces, "", ns) || !w.exists(configMaps, ns, "settings") {
		t.Error("what was orphaned is gone")
	}
}

// TestPruneDisabledInGitOnly: the annotation was in the last bundle; the live
// object lost it by hand, and is kept. In Git again without it, it is not kept any more.
func TestPruneDisabledInGitOnly(t *testing.T) { simulated(t, testPruneDisabledInGitOnly) }

func testPruneDisabledInGitOnly(t *testing.T, w *world) {
	keep := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: precious, namespace: %s-c, annotations: {swell.sh/prune: disabled}}\n", w.tenant)
	plain := fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: %s-c}\n", w.tenant)
	w.onTwo("kept", keep+plain+strings.ReplaceAll(plain, "plain", "third"))
	w.until("kept", w.is("kept", 1, rollout.Done))
	_, err := w.client("dev-2").Resource(configMaps).Namespace(w.tenant+"-c").Patch(t.Context(), "precious", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"swell.sh/prune":null}}}`), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
	w.must(err)
	w.write("services/kept/objects.yaml", strings.TrimPrefix(strings.ReplaceAll(plain, "plain", "third"), "---\n"))
	w.commit()
	w.until("the deletion of the other", func() bool {
		return w.get("dev-2/c", configMaps, "plain") == nil && !w.unit("kept").Targets["dev-2/c"].Leftovers
	})
	w.idle(time.Hour)
	if live := w.get("dev-2/c", configMaps, "precious"); live == nil || live.GetAnnotations()["swell.sh/prune"] != "disabled" {
		t.Errorf("the object that Git said to keep, and its mark: %v", live)
	}
	if u := w.unit("kept"); u.Rollout.Status != rollout.Done || u.Targets["dev-2/c"].Reason != "" || u.Targets["dev-2/c"].Leftovers {
		t.Errorf("the unit still has to do with it\n%s", w.describe())
	}
	if plans := w.plans(); len(plans) > 0 {
		t.Errorf("it waits for approval: %v", plans)
	}
	third := strings.TrimPrefix(strings.ReplaceAll(plain, "plain", "third"), "---\n")
	w.write("services/kept/objects.yaml", third+strings.ReplaceAll(plain, "plain", "precious"))
	w.commit()
	w.until("it is in Git again", w.is("kept", 3, rollout.Done))
	w.write("services/kept/objects.yaml", third)
	w.commit()
	w.until("the deletion, for nothing keeps it any more", func() bool { return w.get("dev-2/c", configMaps, "precious") == nil })
}

// TestJobBesideAHeldDeletion: a Job waits with what is held, for it may be its
// hook. When somebody deletes that by hand, the Job goes, too.
func TestJobBesideAHeldDeletion(t *testing.T) { simulated(t, testJobBesideAHeldDeletion) }

func testJobBesideAHeldDeletion(t *testing.T, w *world) {
	ns := w.tenant + "-c"
	w.onTwo("data", strings.ReplaceAll(`apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk, namespace: NS}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: nowhere, resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: load, namespace: NS}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/app:1"}]
`, "NS", ns))
	w.drop("data")
	w.idle(time.Hour)
	if !w.exists(jobs, ns, "load") {
		t.Error("the Job went before what it may be a hook of")
	}
	w.must(w.client("dev-2").Resource(claims).Namespace(ns).Delete(t.Context(), "disk", metav1.DeleteOptions{}))
	w.until("the end", w.soon(func() bool { return w.unit("data") == nil && len(w.plans()) == 0 }))
	if w.exists(jobs, ns, "load") {
		t.Error("the Job is left, and nobody knows it any more")
	}
}

// numbered are ConfigMaps of a namespace, as documents.
func numbered(namespace, name string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d, namespace: %s}\n", name, i, namespace)
	}
	return b.String()
}

// TestWhatMovesInReplacesNothing: a unit takes over as many objects as it drops of
// its own. They were there before, so they make up for none of those that go.
func TestWhatMovesInReplacesNothing(t *testing.T) { simulated(t, testWhatMovesInReplacesNothing) }

func testWhatMovesInReplacesNothing(t *testing.T, w *world) {
	ns := w.tenant + "-c"
	w.onTwo("giver", numbered(ns, "moving", 12)+numbered(ns, "giver", 1))
	w.onTwo("taker", numbered(ns, "dropped", 12)+numbered(ns, "taker", 1))
	w.until("all", w.soon(func() bool { return w.settledAll() }))
	w.write("services/giver/objects.yaml", numbered(ns, "giver", 1))
	w.write("services/taker/objects.yaml", numbered(ns, "moving", 12)+numbered(ns, "taker", 1))
	w.commit()
	w.rest()
	if plan := w.plan(); plan.Unit != "services/taker" || len(plan.Deletions) != 12 {
		t.Errorf("a plan of %q with %d deletions", plan.Unit, len(plan.Deletions))
	}
	for _, name := range []string{"moving-0", "moving-11", "dropped-0", "dropped-11"} {
		if !w.exists(configMaps, ns, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// TestNewObjectsReplaceOnlyWhatGoesWithThem: while a deletion waits for approval,
// objects are added. They make up for none of those that a later commit drops.
func TestNewObjectsReplaceOnlyWhatGoesWithThem(t *testing.T) {
	simulated(t, testNewObjectsReplaceOnlyWhatGoesWithThem)
}

func testNewObjectsReplaceOnlyWhatGoesWithThem(t *testing.T, w *world) {
	ns := w.tenant + "-c"
	const claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk, namespace: %s}\n" +
		"spec: {accessModes: [ReadWriteOnce], storageClassName: \"\", volumeName: nowhere, resources: {requests: {storage: 1Gi}}}\n"
	const web = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: %s}\nspec:\n  replicas: 0\n" +
		"  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: main, image: registry.example.com/web:1}]}\n"
	old := fmt.Sprintf(web, ns) + numbered(ns, "old", 12)
	w.onTwo("shop", fmt.Sprintf(claim, ns)+old)
	w.rest()
	w.write("services/shop/objects.yaml", old)
	w.commit()
	w.rest()
	if plan := w.plan(); len(plan.Deletions) != 1 {
		t.Fatalf("a plan with %d deletions", len(plan.Deletions))
	}
	w.write("services/shop/objects.yaml", old+numbered(ns, "new", 12))
	w.commit()
	w.rest()
	w.write("services/shop/objects.yaml", fmt.Sprintf(web, ns)+numbered(ns, "new", 12))
	w.commit()
	w.rest()
	if plan := w.plan(); len(plan.Deletions) != 13 {
		t.Errorf("a plan with %d deletions", len(plan.Deletions))
	}
	if !w.exists(configMaps, ns, "old-0") || !w.exists(configMaps, ns, "old-11") {
		t.Error("what new objects do not replace is gone")
	}
}
