// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// newSurveyor is a world whose daemon surveys the clusters, and finds nothing but
// its own.
func newSurveyor(t *testing.T) *world {
	w := newWorldOn(t, realClusters(t))
	w.fresh = true
	w.start()
	return w
}

// surveying has the daemon survey its clusters.
func surveying(w *world) { w.fresh = true }

// copyState keeps a copy of the state as it is on disk.
func (w *world) copyState(to string) {
	w.Helper()
	w.nextSecond()
	w.must(os.MkdirAll(filepath.Join(w.dir, to), 0o700))
	for _, file := range w.stateFiles() {
		content, err := os.ReadFile(file)
		w.must(err)
		w.must(os.WriteFile(filepath.Join(w.dir, to, filepath.Base(file)), content, 0o600))
	}
}

// nextSecond waits until the clusters' clocks show another second than that of the
// last write: times of managed fields have no parts of one.
func (w *world) nextSecond() {
	for began := time.Now().Unix(); time.Now().Unix() == began; {
		pause(w.TB)
	}
}

// stateFiles are those that hold the state, without its lock.
func (w *world) stateFiles() []string {
	w.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "state", "state.db*"))
	w.must(err)
	return files
}

// restore puts a copy of the state in the place of that which is there. Nobody
// uses it meanwhile.
func (w *world) restore(from string) {
	w.Helper()
	for _, file := range w.stateFiles() {
		w.must(os.Remove(file))
	}
	files, err := filepath.Glob(filepath.Join(w.dir, from, "*"))
	w.must(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		w.must(err)
		w.must(os.WriteFile(filepath.Join(w.dir, "state", filepath.Base(file)), content, 0o600))
	}
}

// fleetEvents are the texts of a kind in the history of the fleet.
func (w *world) fleetEvents(kind string) (texts []string) {
	w.Helper()
	history, err := w.store.History("", 10_000)
	w.must(err)
	for _, e := range history {
		if e.Kind == kind && e.Unit == "" {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

// TestAnOlderStateIsNoticed: a copy of the state is put back. What was released
// since stays, the newest commit comes through the waves, and what the state
// never knew is found, and is removed by approval.
func TestAnOlderStateIsNoticed(t *testing.T) { simulatedWith(t, surveying, testAnOlderStateIsNoticed) }

func testAnOlderStateIsNoticed(t *testing.T, w *world) {
	w.release()
	w.stop()
	w.copyState("copy")
	w.start()
	w.app("app", "2", "one")
	w.app("extra", "1", "three", "four")
	w.commit()
	w.soaked("app", 2)
	w.until("extra", w.is("extra", 1, rollout.Done))
	w.stop()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/extra")))
	w.app("app", "3", "one")
	w.commit()
	before := w.uids()
	w.restore("copy")
	w.start()
	w.until("the canary", func() bool {
		for _, image := range []string{w.tag("dev-1/a", "app"), w.tag("dev-1/b", "app"), w.tag("dev-2/c", "app")} {
			if image == "1" {
				t.Fatal("the image of the earlier release came back")
			}
		}
		u := w.unit("app")
		return w.tag("dev-1/a", "app") == "3" && u.Targets["dev-1/a"].Health == rollout.HealthGood
	})
	w.want("images while the canary soaks", w.tags("app"), "3 2 2")
	w.want("the survey", string(w.survey("dev-1").Survey+w.survey("dev-2").Survey), "rebuildingrebuilding")
	if older := w.fleetEvents("older"); len(older) != 2 || !strings.Contains(older[0], "the state is older than the cluster: ") {
		t.Errorf("events %q", older)
	}
	w.idle(9 * time.Minute)
	w.want("images while the canary soaks", w.tags("app"), "3 2 2")
	w.soaked("app", w.unit("app").Rollout.ID)
	w.until("the end of the rebuilding", w.rebuilt)
	w.until("the plan", func() bool { return len(w.plans()) == 1 })
	w.idle(time.Hour)
	w.sameUIDs("before the approval", before)
	w.want("what nobody wants", fmt.Sprint(len(w.plan().Deletions), " ", w.plan().Unit), "9 services/extra")
	w.approve(w.plan())
	w.until("the deletions", w.soon(func() bool { return w.unit("extra") == nil && len(w.plans()) == 0 }))
	w.sameUIDs("what is left", slices.DeleteFunc(before, func(o string) bool {
		return strings.Contains(o, " extra ") || strings.Contains(o, " three ") || strings.Contains(o, " four ")
	}))
}

// TestAnOlderStateThatMissesDeletions: since the copy, swell has only deleted, and objects that
// are gone show nothing. The Lease names the process that did it.
func TestAnOlderStateThatMissesDeletions(t *testing.T) {
	simulatedWith(t, surveying, testAnOlderStateThatMissesDeletions)
}

func testAnOlderStateThatMissesDeletions(t *testing.T, w *world) {
	w.app("extra", "1", "three", "four")
	w.commit()
	w.release()
	w.until("extra", w.is("extra", 1, rollout.Done))
	w.stop()
	w.copyState("copy")
	w.start()
	w.app("extra", "1", "three")
	w.commit()
	w.until("the deletion", w.soon(func() bool { return w.is("extra", 2, rollout.Done)() && w.get("dev-2/c", configMaps, "four") == nil }))
	w.stop()
	w.restore("copy")
	w.start()
	w.until("the survey", func() bool { return len(w.fleetEvents("older")) == 2 })
	if older := w.fleetEvents("older"); !strings.Contains(older[0], "does not know") || !strings.Contains(older[0],
		config.AnnotationWriter) {
		t.Errorf("events %q", older)
	}
	w.until("the end", w.soon(w.rebuilt))
	w.want("what was deleted", fmt.Sprint(w.get("dev-1/a", configMaps, "four") == nil, w.get("dev-2/c", configMaps, "four") == nil),
		"true true")
}

// TestAnOlderStateWhereAllIsKept: everything swell has made is marked to be kept. What it has
// made since the copy shows that the state is older, although what was orphaned looks alike.
func TestAnOlderStateWhereAllIsKept(t *testing.T) {
	simulatedWith(t, surveying, testAnOlderStateWhereAllIsKept)
}

func testAnOlderStateWhereAllIsKept(t *testing.T, w *world) {
	w.replace("services/swell.yaml", "spec: {", "spec: {prune: keep, ")
	w.commit()
	w.release()
	w.app("orphan", "1")
	w.commit()
	w.until("what will be an orphan", w.is("orphan", 1, rollout.Done))
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/orphan")))
	w.commit()
	w.until("the orphan", w.soon(func() bool { return w.unit("orphan") == nil }))
	w.stop()
	w.copyState("copy")
	w.start()
	w.idle(time.Minute)
	w.want("with an orphan", fmt.Sprint(w.fleetEvents("older")), "[]")
	w.app("extra", "1")
	w.commit()
	w.until("extra", w.is("extra", 1, rollout.Done))
	w.stop()
	w.restore("copy")
	w.start()
	w.until("the end of the rebuilding", w.soon(func() bool { return w.rebuilt() && w.unit("extra") != nil }))
	older := w.fleetEvents("older")
	if len(older) != 2 || !strings.Contains(older[0], "extra") {
		t.Errorf("events %q", older)
	}
}

// TestCutShortIsNoLostState: an apply that was cut short is no reason to hold deletions until
// all units of the cluster are done.
func TestCutShortIsNoLostState(t *testing.T) {
	simulatedWith(t, surveying, testCutShortIsNoLostState)
}

func testCutShortIsNoLostState(t *testing.T, w *world) {
	w.app("app", "1", "one", "two")
	w.commit()
	w.release()
	w.want("before", string(w.survey("dev-1").Survey), "known")
	two := w.entries("dev-1", "ConfigMap", "two")
	if len(two) != 2 {
		t.Fatalf("%d entries", len(two))
	}
	// As if the daemon had been killed before it had the server's answers.
	w.must(w.store.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.Forget(two), tx.Intend(two)) }))
	w.stop()
	w.start()
	w.idle(time.Minute)
	w.want("after", string(w.survey("dev-1").Survey), "known")
	w.want("what was taken in", strings.Join(w.fleetEvents("rebuilding"), "; "), "")
	w.app("app", "1", "one")
	w.commit()
	w.soaked("app", 2)
	w.want("what is left of it", fmt.Sprint(len(w.entries("dev-1", "ConfigMap", "two"))), "0")
	for _, at := range w.uids() {
		if strings.Contains(at, " two ") {
			t.Errorf("%s is still there", at)
		}
	}
}

// entries are what the inventory has of a kind and name in a cluster.
func (w *world) entries(cluster, kind, name string) (found []store.Entry) {
	w.Helper()
	w.must(w.store.Update(w.Context(), func(tx *store.Tx) error {
		all, err := tx.ClusterInventory(cluster)
		found = slices.DeleteFunc(all, func(e store.Entry) bool { return e.ID.Kind != kind || e.ID.Name != name })
		return err
	}))
	return found
}

// TestALostLog: the process was killed, and somebody removed the -wal.
func TestALostLog(t *testing.T) { simulatedWith(t, surveying, testALostLog) }

func testALostLog(t *testing.T, w *world) {
	w.release()
	w.stop()
	w.copyState("copy")
	w.start()
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 2)
	w.stop()
	w.restore("copy") // which is what the file holds when its -wal is gone
	w.start()
	w.pass()
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.pass()
		w.want("images", w.tags("app"), "2 2 2")
	}
	w.until("the rollout", w.soon(func() bool { return w.unit("app").Rollout.Status == rollout.Done && w.rebuilt() }))
	w.want("drift", w.drifts(), "")
}

// TestAnOlderStateOfOneCluster: in the other one nothing happened since the copy.
func TestAnOlderStateOfOneCluster(t *testing.T) {
	simulatedWith(t, surveying, testAnOlderStateOfOneCluster)
}

func testAnOlderStateOfOneCluster(t *testing.T, w *world) {
	w.write("services/away/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: away}\n"+
		"spec: {placement: {topology: cell, match: {labels: {site: two}}}}\n")
	w.app("away", "1", "five")
	w.commit()
	w.release()
	w.until("away", w.is("away", 1, rollout.Done))
	w.stop()
	w.copyState("copy")
	w.start()
	w.app("away", "2", "five")
	w.commit()
	w.until("the next release", w.is("away", 2, rollout.Done))
	w.stop()
	w.restore("copy")
	before := w.get("dev-1/a", deployments, "app").GetResourceVersion()
	w.start()
	w.until("the survey", func() bool { return w.survey("dev-2").Survey == store.Rebuilding })
	w.want("the other cluster", string(w.survey("dev-1").Survey), "known")
	w.until("the end", w.soon(w.rebuilt))
	w.want("image", w.tag("dev-2/c", "away"), "2")
	w.want("the Deployment in the other cluster", w.get("dev-1/a", deployments, "app").GetResourceVersion(), before)
	w.want("the unit that nothing happened to", string(w.unit("app").Rollout.Status), "done")
}

// TestDriftWhileNobodyLooked is what is not the work of swell: the state is as new
// as ever, and it is corrected.
func TestDriftWhileNobodyLooked(t *testing.T) {
	simulatedWith(t, surveying, testDriftWhileNobodyLooked)
}

func testDriftWhileNobodyLooked(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	w.stop()
	w.edit("dev-1/b", deployments, "app", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:hotfix"}]`, "kubectl-edit")
	w.must(w.client("dev-2").Resource(configMaps).Namespace(w.tenant+"-c").Delete(t.Context(), "one", metav1.DeleteOptions{}))
	w.start()
	w.now = w.now.Add(10 * time.Minute)
	w.until("the corrections", func() bool {
		return w.tags("app") == "1 1 1" && w.get("dev-2/c", configMaps, "one") != nil && !w.unit("app").Targets["dev-1/b"].Drifted
	})
	w.want("the surveys", string(w.survey("dev-1").Survey+w.survey("dev-2").Survey), "knownknown")
	w.want("events", fmt.Sprint(w.fleetEvents("older")), "[]")
}

// TestAClusterThatWasPutBack: the storage of a cluster is older than the state.
// That is drift of the cluster, and it is corrected.
func TestAClusterThatWasPutBack(t *testing.T) {
	simulatedWith(t, surveying, testAClusterThatWasPutBack)
}

func testAClusterThatWasPutBack(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 2)
	w.stop()
	// The record is of a later apply than the object's: as if etcd held an earlier one.
	s, err := store.Open(filepath.Join(w.dir, "state"))
	w.must(err)
	inventory, err := s.Inventory("services/app", "dev-1/b")
	w.must(err)
	var later []store.Entry
	for _, e := range inventory {
		at, err := time.Parse(time.RFC3339, e.Written)
		w.must(err)
		e.Written, e.Fingerprint = store.Written(at.Add(time.Minute)), "of a later apply"
		later = append(later, e)
	}
	w.must(errors.Join(s.Update(t.Context(), func(tx *store.Tx) error { return tx.Confirm(later) }), s.Close()))
	w.start()
	w.want("drifted", fmt.Sprint(len(w.nextSweep().Drifts)), "2")
	w.want("the surveys", string(w.survey("dev-1").Survey+w.survey("dev-2").Survey), "knownknown")
	w.want("events", fmt.Sprint(w.fleetEvents("older")), "[]")
}
