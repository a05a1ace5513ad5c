// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/sync/order"
)

// TestAStandbyKnowsTheOrders: a daemon with a state of its own that takes over from one that
// died has its masks, freezes and pauses in force before it writes anything.
func TestAStandbyKnowsTheOrders(t *testing.T) { simulated(t, testAStandbyKnowsTheOrders) }

func testAStandbyKnowsTheOrders(t *testing.T, w *world) {
	w.release()
	w.give(maskOf(order.Scope{Target: "dev-2"}))
	w.give(order.Order{Verb: order.Freeze, Scope: order.Scope{Unit: "services/app"}, Reason: "holidays"})
	w.give(order.Order{Verb: order.Pause, Scope: order.Scope{Unit: "services/other"}, Until: w.now.Add(time.Minute)})
	w.pass()
	time.Sleep(5 * time.Second)
	w.app("app", "2", "one", "two")
	w.commit()
	w.daemon.Freeze()
	w.now = w.now.Add(time.Hour)
	second := w.twin()
	second.simulated, second.read = w.simulated, map[string]int64{}
	second.recorder.events = map[string][]audited{}
	second.start()
	second.until("the takeover", func() bool {
		time.Sleep(10 * time.Second)
		second.now = second.now.Add(10 * time.Second)
		second.pass()
		return second.unit("app") != nil && strings.Contains(second.holder("dev-1"), "/") && len(second.orders()) > 0
	})
	second.until("both Leases", func() bool {
		time.Sleep(10 * time.Second)
		second.now = second.now.Add(10 * time.Second)
		second.pass()
		return len(second.orders()) == 3
	})
	in := second.orders()
	slices.Sort(in)
	const first, other = "freeze services/app on dev-1 by ann: holidays", "freeze services/app on dev-2 by ann: holidays"
	if !slices.Equal(in, []string{first, other, "mask dev-2 by ann: by hand"}) {
		t.Errorf("in force: %q", in)
	}
	second.writesTo("dev-2")
	for range 30 {
		time.Sleep(10 * time.Second)
		second.now = second.now.Add(time.Minute)
		second.pass()
	}
	if writes := second.writesTo("dev-2"); len(writes) > 1 { // the Lease that says so
		t.Errorf("written to the masked cluster: %q", writes)
	}
	w.want("images", w.tags("app"), "1 1 1")
	second.give(order.Order{Verb: order.Thaw})
	second.give(order.Order{Verb: order.Unmask})
	second.until("the release", second.soon(func() bool {
		time.Sleep(10 * time.Second)
		return w.tags("app") == "2 2 2"
	}))
}

// TestALeaseKeepsItsOrders: over a restart, and when it is given back, at any moment. What
// somebody writes into it who is no daemon counts for its cluster alone.
func TestALeaseKeepsItsOrders(t *testing.T) { simulated(t, testALeaseKeepsItsOrders) }

func testALeaseKeepsItsOrders(t *testing.T, w *world) {
	w.release()
	w.give(order.Order{Verb: order.Freeze, Scope: order.Scope{Unit: "services/app"}, Reason: "holidays"})
	w.pass()
	carries := func(cluster string) string {
		list, err := w.client(cluster).Resource(leases).Namespace("kube-system").List(t.Context(), metav1.ListOptions{})
		w.must(err)
		return list.Items[0].GetAnnotations()["swell.sh/orders"]
	}
	w.stop() // it is given back, and nothing was renewed since
	if got := carries("dev-1"); !strings.Contains(got, "holidays") {
		t.Errorf("when it was given back: %q", got)
	}
	w.start()
	for range 5 {
		w.pass()
		if got := carries("dev-2"); !strings.Contains(got, "holidays") {
			t.Errorf("after a restart: %q", got)
		}
	}
	w.stop()
	patch := `{"metadata": {"annotations": {"swell.sh/orders": "garbage"}}}`
	theirs := w.client("dev-2").Resource(leases).Namespace("kube-system")
	_, err := theirs.Patch(t.Context(), "swell-"+w.tenant, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
	w.start()
	w.until("the pause", func() bool { w.pass(); return len(w.orders()) == 2 })
	const want = "pause dev-2 by swell: the orders that the Lease of cluster dev-2 carries cannot be read"
	if got := w.orders()[1]; !strings.HasPrefix(got, want) {
		t.Errorf("in force: %q", got)
	}
}

// TestOrdersOfAStateThatIsPutBack: an order that was given since the copy of the state was made
// is in force by the Leases; one that a state knows to have ended does not come back from them.
func TestOrdersOfAStateThatIsPutBack(t *testing.T) { simulated(t, testOrdersOfAStateThatIsPutBack) }

func testOrdersOfAStateThatIsPutBack(t *testing.T, w *world) {
	w.release()
	w.stop()
	w.copyState("copy")
	w.start()
	w.give(maskOf(order.Scope{Target: "dev-2"}))
	w.pass()
	w.stop()
	w.must(os.RemoveAll(filepath.Join(w.dir, "state")))
	w.must(os.CopyFS(filepath.Join(w.dir, "state"), os.DirFS(filepath.Join(w.dir, "copy"))))
	w.start()
	w.app("app", "2", "one", "two")
	w.commit()
	w.writesTo("dev-2")
	w.until("the mask", func() bool { return len(w.orders()) == 1 })
	if got := w.orders()[0]; got != "mask dev-2 by ann: by hand" {
		t.Errorf("in force: %q", got)
	}
	for range 30 {
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	isLease := func(write string) bool { return strings.Contains(write, "/leases/") }
	if writes := slices.DeleteFunc(w.writesTo("dev-2"), isLease); len(writes) > 0 {
		t.Errorf("written to the masked cluster: %q", writes)
	}

	theirs := w.client("dev-2").Resource(leases).Namespace("kube-system")
	carries := func() string {
		live, err := theirs.Get(t.Context(), "swell-"+w.tenant, metav1.GetOptions{})
		w.must(err)
		return live.GetAnnotations()["swell.sh/orders"]
	}
	mask := carries()
	w.give(order.Order{Verb: order.Unmask})
	w.until("the end of the mask", func() bool { w.pass(); return carries() == "" })
	w.stop()
	_, err := theirs.Patch(t.Context(), "swell-"+w.tenant, types.MergePatchType, // as where it died before it wrote the Lease
		fmt.Appendf(nil, `{"metadata": {"annotations": {"swell.sh/orders": %q}}}`, mask), metav1.PatchOptions{})
	w.must(err)
	w.start()
	w.until("the Lease", func() bool { w.pass(); return carries() == "" })
	if got := w.orders(); len(got) > 0 {
		t.Errorf("in force again: %q", got)
	}
}

// orders are those in force, in short.
func (w *world) orders() (texts []string) {
	w.Helper()
	standing, err := w.store.Standing()
	w.must(err)
	for _, o := range standing {
		texts = append(texts, string(o.Verb)+" "+o.Scope.Text()+" "+o.Text())
	}
	return texts
}

// TestSwappedKubeconfigs: the state is lost, and two kubeconfigs are swapped. The Leases say
// which cluster is which, so the first wave is not written to the wrong one.
func TestSwappedKubeconfigs(t *testing.T) {
	simulatedWith(t, func(w *world) { w.fresh = true }, testSwappedKubeconfigs)
}

func testSwappedKubeconfigs(t *testing.T, w *world) {
	w.release()
	w.stop()
	swap := func() {
		w.simulated["dev-1"], w.simulated["dev-2"] = w.simulated["dev-2"], w.simulated["dev-1"]
	}
	swap()
	w.must(os.RemoveAll(filepath.Join(w.dir, "state")))
	w.start()
	w.app("app", "2", "one", "two")
	w.commit()
	if n := w.writes(20); n > 0 {
		t.Errorf("%d objects written", n)
	}
	const want = "it is cluster dev-2 by the annotation swell.sh/cluster of this Lease, and the state knows nothing of it"
	if text := w.trouble("cluster dev-1"); !strings.Contains(text, want) {
		t.Errorf("said %q", text)
	}
	w.stop()
	swap() // as the text says: nothing of the wrong ones was kept
	w.start()
	w.until("the release", w.soon(func() bool { return w.tags("app") == "2 2 2" }))
}
