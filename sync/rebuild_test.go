// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestOwnClusters has those of these tests that cannot be on shared clusters, one after the other. Where
// the state is lost, what other tests left behind would be taken in; where the storage is ill, it is so for all.
func TestOwnClusters(t *testing.T) {
	t.Parallel()
	own := devtest.Start(t, "dev-1", "dev-2")
	t.Run("StateLost", func(t *testing.T) { stateLost(t, own) })
	t.Run("StorageInDistress", func(t *testing.T) { storageInDistress(newWorldOn(t, own)) })
}

func stateLost(t *testing.T, own *devcluster.Clusters) {
	for name, test := range map[string]func(*world){
		"what nobody wants takes approval": lostWithLeftovers,
		"a unit with a problem":            lostWithABrokenUnit,
		"a unit that is ill":               lostWithAnIllUnit,
		"moved meanwhile":                  lostWhileMoving,
		"a cluster is away":                lostWithAClusterAway,
		"an API is down":                   lostWithAnAPIDown,
		"what was orphaned":                lostWithKeptObjects,
		"nothing has changed":              lostUnchanged,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, own)
			w.fresh = true
			w.tenant = fmt.Sprintf("t%x", time.Now().UnixNano()&0xffffffff)
			w.write("services/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {topology: cell}}\n", w.tenant))
			w.commit()
			t.Cleanup(w.wipe)
			w.start()
			test(w)
		})
	}
}

// wipe deletes what the world left in its clusters, so that no later one finds
// it.
func (w *world) wipe() {
	for cluster, cells := range map[string][]string{"dev-1": {"a", "b"}, "dev-2": {"c"}} {
		client := w.client(cluster)
		for _, cell := range cells {
			for _, resource := range []schema.GroupVersionResource{deployments, configMaps} {
				w.must(client.Resource(resource).Namespace(w.tenant+"-"+cell).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			}
			unlabel := []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`)
			_, err := client.Resource(namespaces).Patch(context.Background(), w.tenant+"-"+cell, types.MergePatchType, unlabel, metav1.PatchOptions{})
			w.must(err)
		}
	}
}

// lose takes the state away, and starts a daemon without one.
func (w *world) lose() {
	w.Helper()
	if w.daemon != nil {
		w.stop()
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "state", "state.db*"))
	w.must(err)
	if len(files) == 0 {
		w.Fatal("there is no state to lose")
	}
	for _, file := range files {
		w.must(os.Remove(file))
	}
	w.start()
}

// survey says how far a cluster's survey is.
func (w *world) survey(cluster string) store.ClusterState {
	w.Helper()
	all, err := w.store.Clusters()
	w.must(err)
	return all[cluster]
}

// rebuilt says whether the inventories of both clusters are whole.
func (w *world) rebuilt() bool {
	return w.survey("dev-1").Survey == "known" && w.survey("dev-2").Survey == "known"
}

// uids are the live objects of the world with their UIDs, sorted.
func (w *world) uids() []string {
	w.Helper()
	var all []string
	for cluster, cells := range map[string][]string{"dev-1": {"a", "b"}, "dev-2": {"c"}} {
		for _, cell := range cells {
			for _, resource := range []schema.GroupVersionResource{deployments, configMaps} {
				list, err := w.client(cluster).Resource(resource).Namespace(w.tenant+"-"+cell).List(w.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=swell"})
				w.must(err)
				for _, o := range list.Items {
					all = append(all, fmt.Sprintf("%s/%s %s %s %s", cluster, cell, o.GetKind(), o.GetName(), o.GetUID()))
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func (w *world) sameUIDs(what string, before []string) {
	w.Helper()
	if after := w.uids(); !slices.Equal(before, after) {
		w.Errorf("%s: before\n%s\nafter\n%s", what, strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
}

// state lost: rebuilt from labels, adopt only, prune off until a full known-good
// pass; what nobody wants then takes approval, however little it is.
func lostWithLeftovers(w *world) {
	w.app("other", "1", "three")
	w.app("app", "1", "one", "two")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	w.want("the survey of empty clusters", string(w.survey("dev-1").Survey), "known")
	w.stop()
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/other")))
	w.app("app", "1", "one")
	w.commit()
	before := w.uids()
	w.lose()
	w.until("the survey", func() bool { return w.survey("dev-1").Survey != "" && w.survey("dev-2").Survey != "" })
	history, err := w.store.History("", 1000)
	w.must(err)
	var events []string
	for _, e := range history {
		if e.Kind == "rebuilding" {
			events = append(events, e.Text)
		}
	}
	slices.Sort(events)
	w.want("events", strings.Join(events, "; "), "cluster dev-1: 12 objects taken in; cluster dev-2: 6 objects taken in")
	w.want("the survey", string(w.survey("dev-1").Survey), "rebuilding")
	w.until("the canary", func() bool { u := w.unit("app"); return u != nil && u.Targets["dev-1/a"].Health == rollout.HealthGood })
	w.stop() // the state has how far it is
	w.start()
	w.want("the survey while the canary soaks", string(w.survey("dev-1").Survey), "rebuilding")
	w.idle(9 * time.Minute)
	if len(w.plans()) > 0 {
		w.Errorf("a plan before everything was healthy: %v", w.plans())
	}
	w.release()
	w.until("the end of the rebuilding", w.rebuilt)
	w.until("the plans", func() bool { return len(w.plans()) == 2 })
	w.idle(time.Hour)
	w.sameUIDs("nothing is deleted or made anew", before)

	var listed []string
	for _, p := range w.plans() {
		for _, d := range p.Deletions {
			listed = append(listed, fmt.Sprintf("%s %s %s %s", d.Unit, d.Target, d.ID, d.Why))
		}
	}
	var expected []string
	found := "it was found when the inventory was rebuilt, and nobody applied it since"
	for _, o := range []string{"services/app dev-1 ConfigMap/%s-a/two", "services/app dev-1 ConfigMap/%s-b/two", "services/app dev-2 ConfigMap/%s-c/two",
		"services/other dev-1 ConfigMap/%s-a/three", "services/other dev-1 Deployment/%s-a/other",
		"services/other dev-1 ConfigMap/%s-b/three", "services/other dev-1 Deployment/%s-b/other",
		"services/other dev-2 ConfigMap/%s-c/three", "services/other dev-2 Deployment/%s-c/other"} {
		expected = append(expected, fmt.Sprintf(o, w.tenant)+" "+found)
	}
	if !slices.Equal(listed, expected) {
		w.Errorf("listed\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(expected, "\n"))
	}
	for _, p := range w.plans() {
		w.approve(p)
	}
	w.until("the deletions", w.soon(func() bool { return w.unit("other") == nil && len(w.plans()) == 0 }))
	left := slices.DeleteFunc(before, func(o string) bool {
		return strings.Contains(o, " two ") || strings.Contains(o, " three ") || strings.Contains(o, " other ")
	})
	w.sameUIDs("what is left", left)
}

// A unit that does not render wants nobody knows what: its objects stay, and
// nothing is deleted in its clusters until it does.
func lostWithABrokenUnit(w *world) {
	w.app("other", "1", "three")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	before := w.uids()
	good, err := os.ReadFile(filepath.Join(w.repo(), "services/other/app.yaml"))
	w.must(err)
	w.write("services/other/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: other}\nspec: {imgae: x}\n")
	w.app("app", "1")
	w.commit()
	w.lose()
	w.release()
	w.idle(time.Hour)
	w.sameUIDs("while a unit is broken", before)
	w.want("the survey", string(w.survey("dev-1").Survey), "rebuilding")
	w.write("services/other/app.yaml", string(good))
	w.commit()
	w.soaked("other", 1)
	w.until("the end of the rebuilding", w.rebuilt)
	w.until("the plan", func() bool { return len(w.plans()) == 1 })
	w.idle(time.Hour)
	w.sameUIDs("after", before)
	w.want("what is left to remove", fmt.Sprint(len(w.plan().Deletions), " ", w.plan().Unit), "3 services/app")
	w.want("other", fmt.Sprint(w.unit("other").Rollout.Status, w.unit("other").Waiting), "done")
}

// While a unit is not healthy, nothing is deleted in its clusters, not even what
// the new inventory knows well.
func lostWithAnIllUnit(w *world) {
	w.release()
	w.app("other", "broken", "three")
	w.app("app", "1", "one", "late")
	w.commit()
	w.lose()
	w.until("the ill unit", func() bool { u := w.unit("other"); return u != nil && u.Targets["dev-1/a"].Applied != "" })
	w.until("the canary", w.canary("app", 1))
	w.now = w.now.Add(2 * time.Minute) // the ill one is late by then
	w.soaked("app", 1)
	w.app("app", "1", "one")
	w.commit()
	w.soaked("app", 2)
	w.idle(time.Hour)
	for _, target := range []string{"dev-1/a", "dev-1/b"} {
		if w.get(target, configMaps, "late") == nil {
			w.Errorf("the ConfigMap on %s is gone", target)
		}
	}
	w.want("why it stays", w.unit("app").Targets["dev-1/a"].Reason, "ConfigMap/"+w.tenant+"-a/late stays: the inventory of its cluster is being rebuilt")
	w.app("other", "1", "three")
	w.commit()
	w.soaked("other", 2)
	w.until("the deletions", w.soon(func() bool { return w.there("late") == 0 }))
	w.until("the end of the rebuilding", w.rebuilt)
}

// A bundle that is live was approved once: nobody is asked again, and nothing is written.
// Where one object is not, the wave of its target asks.
func lostUnchanged(w *world) {
	w.release()
	w.replace("fleet/fleet.yaml", "name: rest, timeout: 1m", "name: rest, timeout: 1m, gates: [{approval: {}}]")
	w.commit()
	versions := func() (all []string) {
		for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} {
			all = append(all, w.get(target, deployments, "app").GetResourceVersion(), w.get(target, configMaps, "one").GetResourceVersion())
		}
		return all
	}
	before := versions()
	w.lose()
	w.rest()
	if !w.settledAll() || !w.rebuilt() {
		w.Errorf("nothing has changed\n%s", w.describe())
	}
	w.want("resourceVersions", fmt.Sprint(versions()), fmt.Sprint(before))

	configMap := w.get("dev-2/c", configMaps, "one")
	w.must(unstructured.SetNestedField(configMap.Object, "by hand", "data", "image"))
	namespace := w.client("dev-2").Resource(configMaps).Namespace(configMap.GetNamespace())
	_, err := namespace.Update(w.Context(), configMap, metav1.UpdateOptions{})
	w.must(err)
	w.lose()
	w.rest()
	u := w.unit("app")
	w.want("the target that differs", string(u.Targets["dev-2/c"].Applied), "")
	w.want("the one beside it", string(u.Targets["dev-1/b"].Health), string(rollout.HealthGood))
	if !strings.Contains(u.Rollout.Reason, "gate approval of wave rest: swell approve") {
		w.Errorf("one object differs\n%s", w.describe())
	}
}

// A unit that was renamed and an object that moved while nobody looked: no
// deletes, and no plans.
func lostWhileMoving(w *world) {
	w.app("other", "1", "three")
	w.app("app", "1", "one", "two")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	before := w.uids()
	w.git("mv", "services/other", "services/renamed")
	w.app("app", "1", "one")
	w.write("services/renamed/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: other}\nspec:\n  image: registry.example.com/app:1\n  configs: [three, two]\n")
	w.commit()
	w.lose()
	w.soaked("app", 1)
	w.soaked("renamed", 1)
	w.until("the end of the rebuilding", w.rebuilt)
	w.idle(time.Hour)
	w.sameUIDs("moved and renamed", before)
	if plans := w.plans(); len(plans) > 0 || w.unit("other") != nil {
		w.Errorf("plans %v, the old unit %v", plans, w.unit("other"))
	}
	// and once more, with an inventory
	w.git("mv", "services/renamed", "services/again")
	w.app("app", "1", "one", "two")
	w.write("services/again/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: other}\nspec:\n  image: registry.example.com/app:1\n  configs: [three]\n")
	w.commit()
	w.soaked("app", 2)
	w.soaked("again", 2) // it goes on counting from its old name
	w.until("the end of the second name", w.soon(func() bool { return w.unit("renamed") == nil }))
	w.idle(time.Hour)
	w.sameUIDs("moved and renamed again", before)
}

// aggregated API down, partial discovery: those kinds are unknown, and it says
// so; the others are taken in.
func lostWithAnAPIDown(w *world) {
	w.release()
	before := w.uids()
	apiServices := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	down := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": "v1.down.example.com"},
		"spec": map[string]any{"group": "down.example.com", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
			"insecureSkipTLSVerify": true, "service": map[string]any{"name": "nobody", "namespace": "default"}}}}
	client := w.client("dev-1").Resource(apiServices)
	_, err := client.Create(w.Context(), down, metav1.CreateOptions{})
	w.must(err)
	remove := func() error { return client.Delete(w.Context(), "v1.down.example.com", metav1.DeleteOptions{}) }
	w.until("the server to notice", func() bool {
		cfg, err := w.clusters.Config("dev-1")
		w.must(err)
		discovery, err := kubernetes.NewForConfig(cfg)
		w.must(err)
		_, err = discovery.Discovery().ServerResourcesForGroupVersion("down.example.com/v1")
		groups, listed := discovery.Discovery().ServerGroups()
		w.must(listed)
		return apierrors.IsServiceUnavailable(err) && slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == "down.example.com" })
	})
	w.app("app", "1")
	w.commit()
	w.lose()
	w.release()
	w.until("the end of the rebuilding", w.rebuilt)
	w.want("unknown", w.survey("dev-1").Unknown, "down.example.com/v1")
	events, err := w.store.History("", 1000)
	w.must(err)
	if !slices.ContainsFunc(events, func(e store.Event) bool {
		return e.Kind == "unknown" && e.Text == "cluster dev-1: it is not known what swell has of down.example.com/v1: they could not be listed"
	}) {
		w.Errorf("the history does not say so: %v", events)
	}
	w.want("unknown in the other cluster", w.survey("dev-2").Unknown, "")
	w.until("the plan", func() bool { return len(w.plans()) == 1 })
	w.idle(time.Hour)
	w.sameUIDs("with an API down", before)
	w.must(remove())
	w.until("the survey that sees all", w.soon(func() bool { return w.survey("dev-1").Unknown == "" }))
	w.sameUIDs("with the API gone", before)
}

// A cluster that does not answer when the state is lost is rebuilt when it is
// back; the others do not wait for it, and nothing is written to it before.
func lostWithAClusterAway(w *world) {
	w.release()
	before := w.uids()
	good := w.access["dev-2"]
	dead := filepath.Join(w.dir, "dead")
	w.must(os.WriteFile(dead, []byte("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: dev-2, context: {cluster: c, user: u}}], users: [{name: u, user: {token: x}}]}"), 0o600))
	w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", Kubeconfig: dead, Context: "dev-2"}
	w.lose()
	w.until("the canary", func() bool {
		u := w.unit("app")
		return u != nil && u.Targets["dev-1/a"].Health == rollout.HealthGood
	})
	w.now = w.now.Add(10 * time.Minute)
	w.until("the cluster that answers", func() bool { return w.survey("dev-1").Survey == "known" })
	w.want("the survey of the other", string(w.survey("dev-2").Survey), "")
	w.access["dev-2"] = good
	w.stop()
	w.start()
	w.until("the rollout", w.is("app", 1, rollout.Done))
	w.until("the survey", func() bool { return w.survey("dev-2").Survey == "known" })
	w.sameUIDs("after it is back", before)
	if plans := w.plans(); len(plans) > 0 {
		w.Errorf("plans: %v", plans)
	}
}
