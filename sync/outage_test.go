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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// A whole fleet was once deleted by one word in what all its units share. Here that
// word is written in every way that we know of.

// liveObject is one in a cluster.
type liveObject struct{ cluster, kind, namespace, name string }

var watchedKinds = map[string]schema.GroupVersionResource{
	"Deployment": deployments, "ConfigMap": configMaps, "Namespace": namespaces,
	"Service": {Version: "v1", Resource: "services"}, "DaemonSet": {Group: "apps", Version: "v1", Resource: "daemonsets"},
}

// allUIDs are those of all live objects of the monorepo, except for what terminates.
func (w *world) allUIDs() map[liveObject]string {
	w.Helper()
	found := map[liveObject]string{}
	for _, cluster := range []string{"dev-1", "dev-2"} {
		client := w.client(cluster)
		for kind, resource := range watchedKinds {
			list, err := client.Resource(resource).List(w.Context(), metav1.ListOptions{LabelSelector: "swell.sh/repository=" + w.tenant})
			w.must(err)
			for _, item := range list.Items {
				if item.GetDeletionTimestamp() == nil {
					found[liveObject{cluster, kind, item.GetNamespace(), item.GetName()}] = string(item.GetUID())
				}
			}
		}
	}
	return found
}

// lost are the objects of before that are not there any more, or are others.
func lost(before, after map[liveObject]string) (gone []string) {
	for o, uid := range before {
		if after[o] != uid {
			gone = append(gone, fmt.Sprintf("%s %s/%s/%s", o.cluster, o.kind, o.namespace, o.name))
		}
	}
	slices.Sort(gone)
	return gone
}

// rest makes passes until nothing has happened for an hour of the daemon's time:
// all soaks are over.
func (w *world) rest() {
	w.Helper()
	w.restIn(200 * time.Millisecond)
}

// restIn is rest. The daemon's time goes on by a tick each time that something is about
// to become healthy: the longer the tick, the faster the clusters have to be.
func (w *world) restIn(tick time.Duration) {
	w.Helper()
	deadline := time.Now().Add(w.longest())
	for calm := 0; calm < 3; {
		if time.Now().After(deadline) {
			w.Fatalf("no rest within %s\n%s", w.longest(), w.describe())
		}
		r := w.pass()
		goesOn := slices.ContainsFunc(r.Transitions, func(tr rollout.Transition) bool {
			return tr.Kind == "healthy" || tr.Kind == "passed" || tr.Unit == "" // a cluster was taken in, or left
		})
		if goesOn || slices.ContainsFunc(r.Actions, func(o rollout.Outcome) bool { return o.Kind != rollout.Check }) || r.Objects["deleted"] > 0 {
			calm = min(calm, 1)
			continue
		}
		if w.daemon.Working() { // on a slow machine, a job or a survey takes longer than three passes
			pause(w.TB)
			continue
		}
		if !w.resting() || w.stepping() {
			w.now = w.now.Add(tick)
			pause(w.TB)
			continue
		}
		calm++
		w.now = w.now.Add(20 * time.Minute)
	}
}

// settledAll says whether all units are done with the newest commit.
func (w *world) settledAll() bool {
	for _, u := range w.daemon.State().Units {
		if u.Blocked != "" || u.Waiting != "" || u.Rollout.Status != rollout.Done || u.Rollout.Reason != "" {
			return false
		}
	}
	return len(w.daemon.State().Units) > 0
}

func (w *world) content(name string) string {
	w.Helper()
	content, err := os.ReadFile(filepath.Join(w.repo(), name))
	w.must(err)
	return string(content)
}

// replace changes a text in a file.
func (w *world) replace(name, old, new string) {
	w.Helper()
	text := w.content(name)
	if !strings.Contains(text, old) {
		w.Fatalf("%s: no %q", name, old)
	}
	w.write(name, strings.ReplaceAll(text, old, new))
}

func (w *world) dropFile(name string) {
	w.Helper()
	w.must(os.RemoveAll(filepath.Join(w.repo(), name)))
}

func (w *world) rename(from, to string) {
	w.Helper()
	to = filepath.Join(w.repo(), to)
	w.must(errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(filepath.Join(w.repo(), from), to)))
}

const gatherKind = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: gather}
spec:
  message: test.Gather
  collect: {notes: {kind: Note, scope: tenant}}
  objects:
  - id: deployment
    when: size(notes) > 0
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${self.metadata.name}", namespace: "${unit.tenant + '-' + target.cell}"}
      spec:
        selector: {matchLabels: {app: gather}}
        template:
          metadata: {labels: {app: gather}}
          spec: {containers: [{name: main, image: "registry.example.com/gather:1"}]}
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: "${unit.tenant + '-' + target.cell}"}
      data: {notes: "${string(size(notes))}"}
`

const noteKind = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: note}
spec:
  message: test.Note
  objects:
  - id: config
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${self.metadata.name}", namespace: "${unit.tenant + '-' + target.cell}"}
      data: {text: note}
`

func messageOf(name string) string {
	return strings.NewReplacer("App", name, "app", strings.ToLower(name)).Replace(strings.Split(appProto, "message AppSpec")[0]) + "message " + name + "Spec { string text = 1; }\n"
}

// smallFleet is five apps with two ConfigMaps each, a kustomization, and a
// collection, on three cells of two clusters; all done.
func smallFleet(t *testing.T) *world {
	w := newWorldOn(t, realClusters(t))
	w.dropFile("services/app")
	w.write("kinds/app/kind.yaml", strings.Replace(appKind, "  - id: deployment\n", "  - id: deployment\n    when: data.switches.deploy\n", 1))
	w.write("data/switches.yaml", "deploy: true\n")
	w.write("kinds/gather/kind.yaml", gatherKind)
	w.write("kinds/gather/gather.proto", messageOf("Gather"))
	w.write("kinds/note/kind.yaml", noteKind)
	w.write("kinds/note/note.proto", messageOf("Note"))
	for i := range 5 {
		w.app(fmt.Sprintf("app-%d", i), "1", fmt.Sprintf("one-%d, two-%d", i, i))
	}
	w.write("services/gather/gather.yaml", "apiVersion: easy.example.com/v1\nkind: Gather\nmetadata: {name: gather}\nspec: {}\n")
	w.write("services/notes/note.yaml", "apiVersion: easy.example.com/v1\nkind: Note\nmetadata: {name: note}\nspec: {}\n")
	w.write("services/kust/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: kust}\nspec: {placement: {topology: cell, match: {labels: {site: two}}}}\n")
	w.write("services/kust/kustomization.yaml", "namespace: "+w.tenant+"-c\nresources: [deployment.yaml, config.yaml]\n")
	w.write("services/kust/deployment.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: kust}
spec:
  selector: {matchLabels: {app: kust}}
  template:
    metadata: {labels: {app: kust}}
    spec: {containers: [{name: main, image: "registry.example.com/kust:1"}]}
`)
	w.write("services/kust/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kust}\ndata: {a: b}\n")
	w.commit()
	w.start()
	w.first()
	return w
}

// first brings the first commit to all clusters, which take what time they need.
func (w *world) first() {
	w.Helper()
	w.restIn(10 * time.Millisecond)
	if !w.settledAll() {
		w.Fatalf("the first release is not done\n%s", w.describe())
	}
}

// outages are edits after which workloads or objects of many units would go. held
// is one of the texts that say so: of the guard, or why nothing is taken from the
// commit.
var outages = []struct {
	name string
	edit func(w *world)
	held string
}{
	{"the template's object is removed", func(w *world) {
		kind := w.content("kinds/app/kind.yaml")
		w.write("kinds/app/kind.yaml", kind[:strings.Index(kind, "  - id: deployment")]+kind[strings.Index(kind, "  - id: config"):])
	}, "loses all workloads"},
	{"when", func(w *world) { w.replace("kinds/app/kind.yaml", "when: data.switches.deploy", `when: "false"`) }, "loses all workloads"},
	{"when, for every object", func(w *world) {
		w.replace("kinds/app/kind.yaml", "when: data.switches.deploy", `when: "false"`)
		w.replace("kinds/app/kind.yaml", "  - id: config\n", "  - id: config\n    when: \"false\"\n")
	}, "renders to nothing"},
	{"each over an empty list", func(w *world) {
		w.replace("kinds/app/kind.yaml", "{name: self.spec.configs}", `{name: "self.spec.configs.filter(c, false)"}`)
	}, "deletes objects of more than 3 units that stay"},
	{"a workload's namespace", func(w *world) {
		w.replace("kinds/app/kind.yaml", "namespace: \"${ns}\"}\n      spec:", "namespace: \"${ns}-new\"}\n      spec:")
	}, "loses all workloads"},
	{"data", func(w *world) { w.write("data/switches.yaml", "deploy: false\n") }, "loses all workloads"},
	{"an override in Defaults", func(w *world) {
		w.replace("services/swell.yaml", "placement: {topology: cell}", "placement: {topology: cell}, overrides: [{kind: App, object: deployment, remove: [{path: spec.template.spec.containers}]}]")
	}, "containers"},
	{"placement", func(w *world) {
		w.replace("services/swell.yaml", "placement: {topology: cell}", "placement: {topology: cell, match: {labels: {site: one}}}")
	}, "loses all workloads"},
	{"tenant", func(w *world) { w.replace("services/swell.yaml", "tenant: "+w.tenant, "tenant: "+w.tenant+"-x") }, "loses all workloads"},
	{"kustomize", func(w *world) { w.replace("services/kust/kustomization.yaml", "deployment.yaml, ", "") }, "loses all workloads"},
	{"kustomize, through a patch", func(w *world) {
		w.replace("services/kust/kustomization.yaml", "\nresources", "\npatches: [{patch: \"{apiVersion: apps/v1, kind: Deployment, metadata: {name: kust}, $patch: delete}\"}]\nresources")
	}, "loses all workloads"},
	{"collect", func(w *world) { w.replace("services/notes/note.yaml", "spec: {}", "spec: {wrong: x}") }, "loses all workloads"},
	{"the kind is removed", func(w *world) { w.dropFile("kinds/app") }, "easy.example.com"},
	{"the kind is renamed", func(w *world) {
		w.replace("kinds/app/app.proto", "App", "Application")
		w.replace("kinds/app/kind.yaml", "test.App", "test.Application")
	}, "easy.example.com"},
	{"a field of the schema is renamed", func(w *world) {
		w.replace("kinds/app/app.proto", "configs", "config_maps")
		w.replace("kinds/app/kind.yaml", "self.spec.configs", "self.spec.config_maps")
	}, "configs"},
	{"a cell is removed", func(w *world) { w.replace("fleet/fleet.yaml", "  - {name: b}\n", "") }, "loses all workloads"},
	{"a cell is renamed", func(w *world) { w.replace("fleet/fleet.yaml", "  - {name: b}\n", "  - {name: bb}\n") }, "loses all workloads"},
	{"a cluster is relabelled", func(w *world) {
		w.replace("fleet/fleet.yaml", "labels: {site: two}", "labels: {site: three}")
		w.replace("services/kust/swell.yaml", "site: two", "ring: canary")
	}, "loses all workloads"},
	{"Defaults are moved", func(w *world) { w.rename("services/swell.yaml", "services/app-0/swell.yaml") }, "no placement"},
	{"a spec is emptied", func(w *world) { w.write("services/app-0/app.yaml", "# later\n") }, "app-0"},
	{"a spec is replaced", func(w *world) {
		w.write("services/app-0/app.yaml", "apiVersion: easy.example.com/v1\nkind: Note\nmetadata: {name: app-0}\nspec: {}\n")
	}, "loses all workloads"},
	{"units excludes them", func(w *world) { w.replace("swell.yaml", "spec: {}", "spec: {units: [services/space]}") }, "swell.yaml names no folder"},
}

// heldTexts are why units or the commit are not as they should be.
func (w *world) heldTexts() string {
	var texts []string
	for path, u := range w.daemon.State().Units {
		texts = append(texts, string(path)+": "+u.Blocked+" "+u.Waiting)
	}
	if s := w.daemon.Snapshot(); s.Held || len(s.Problems) > 0 {
		texts = append(texts, s.Problems.String())
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

// TestOutage: nothing is deleted by any of them, in no wave and not in the canary;
// taking the edit back ends it by itself.
func TestOutage(t *testing.T) {
	t.Parallel()
	w := smallFleet(t)
	before := w.allUIDs()
	if len(before) < 50 {
		t.Fatalf("only %d objects", len(before))
	}
	for i, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			w.TB = t
			writes := map[config.UnitPath]int{}
			for path, u := range w.daemon.State().Units {
				writes[path] = u.Rollout.ID
			}
			o.edit(w)
			w.commit()
			if i%5 == 0 { // the daemon dies as soon as it knows of it
				w.pass()
				w.stop()
				w.start()
			}
			w.rest()
			if gone := lost(before, w.allUIDs()); len(gone) > 0 {
				t.Errorf("%d of %d objects are gone: %q", len(gone), len(before), gone)
			}
			if text := w.heldTexts(); !strings.Contains(text, o.held) {
				t.Errorf("want %q in\n%s", o.held, text)
			}
			for path, u := range w.daemon.State().Units {
				if u.Blocked != "" && u.Rollout.ID != writes[path] {
					t.Errorf("%s: blocked, and its rollout %d began", path, u.Rollout.ID)
				}
				if empty := strings.Contains(u.Blocked, "renders to nothing"); empty != (u.BlockedBy == rollout.ObstacleEmpty) {
					t.Errorf("%s: blocked by %q: %s", path, u.BlockedBy, u.Blocked)
				}
				if strings.Contains(u.Blocked, "loses all workloads") && !strings.Contains(u.Blocked, "swell approve ") {
					t.Errorf("%s: blocked without a way out: %s", path, u.Blocked)
				}
			}
			w.git("revert", "--no-edit", "HEAD")
			w.rest()
			for _, p := range w.plans() { // a namespace that the edit brought
				for _, d := range p.Deletions {
					if _, old := before[liveObject{d.Target.Cluster(), d.Kind, d.Namespace, d.Name}]; old {
						t.Errorf("it was taken back, and %s is to be deleted: %s", d.ID, d.Why)
					}
				}
				w.approve(p)
				w.rest()
			}
			if !w.settledAll() || len(w.plans()) > 0 {
				t.Errorf("it was taken back, and this is left: %v\n%s\n%s", w.plans(), w.heldTexts(), w.describe())
			}
			if gone := lost(before, w.allUIDs()); len(gone) > 0 {
				t.Errorf("%d of %d objects are gone after it was taken back: %q", len(gone), len(before), gone)
			}
			before = w.allUIDs() // some edits bring objects that stay for a while
		})
	}
	w.TB = t
}

// TestOutageForgetsACluster: a cluster that leaves the fleet keeps all that it has.
func TestOutageForgetsACluster(t *testing.T) {
	t.Parallel()
	w := smallFleet(t)
	before := w.allUIDs()
	w.write("fleet/fleet.yaml", strings.Replace(fleetYAML, fleetYAML[strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-2"):strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Rollout")], "", 1))
	w.replace("services/kust/swell.yaml", "match: {labels: {site: two}}", "match: {labels: {ring: canary}}")
	w.replace("services/kust/kustomization.yaml", w.tenant+"-c", w.tenant+"-a")
	w.commit()
	w.rest()
	if !w.settledAll() {
		t.Errorf("left: %s\n%s", w.heldTexts(), w.describe())
	}
	if gone := lost(before, w.allUIDs()); len(gone) > 0 {
		t.Errorf("%d of %d objects are gone: %q", len(gone), len(before), gone)
	}
}

// TestABrokenUnitOnAClusterThatLeft: the cluster is forgotten also by a unit of which
// nothing else is released, although it was in the middle of something there.
func TestABrokenUnitOnAClusterThatLeft(t *testing.T) {
	t.Parallel()
	w := newSurveyor(t)
	ns := w.tenant + "-c"
	w.write("services/shop/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: shop}\nspec: {placement: {match: {labels: {site: two}}}}\n")
	w.write("services/shop/objects.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: refused, namespace: "+ns+"}\nspec: {clusterIP: 192.0.2.1, ports: [{port: 80}]}\n")
	w.commit()
	w.release()
	w.until("the refusal", func() bool { return strings.Contains(w.unit("shop").Rollout.Failure, "failed to allocate IP") })
	cluster := strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: dev-2")
	w.write("fleet/fleet.yaml", fleetYAML[:cluster]+fleetYAML[strings.Index(fleetYAML, "apiVersion: swell.sh/v1\nkind: Rollout"):])
	w.commit() // no target of the fleet is in site two any more
	w.pass()
	w.stop()
	w.start()
	w.rest()
	if u := w.unit("shop"); u == nil || u.Blocked == "" || len(u.Targets) > 0 {
		t.Errorf("left: %s", w.describe())
	}
}

// TestOutageApproved: several commits come one after the other while it is held,
// and the daemon dies before the approval is known to it. Then exactly the list
// goes, the canary first.
func TestOutageApproved(t *testing.T) {
	t.Parallel()
	w := smallFleet(t)
	before := w.allUIDs()
	w.replace("kinds/app/kind.yaml", "when: data.switches.deploy", `when: "false"`)
	w.commit()
	w.rest()
	first := w.plan()
	w.app("app-0", "2", "one-0, two-0") // another commit on top
	w.commit()
	w.rest()
	w.app("other", "1", "three") // and one that has nothing to do with it
	w.commit()
	w.rest()
	if gone := lost(before, w.allUIDs()); len(gone) > 0 {
		t.Fatalf("%d objects are gone: %q", len(gone), gone)
	}
	plan := w.plan()
	if plan.Digest != first.Digest || len(plan.Deletions) != 15 {
		t.Fatalf("plan %s with %d deletions, want %s with 15", plan.Digest.Short(), len(plan.Deletions), first.Digest.Short())
	}
	want := "15 deletions"
	if text := w.unit("app-1").Blocked; !strings.Contains(text, "swell approve "+plan.Digest.Short()) || !strings.Contains(text, want) {
		t.Errorf("blocked %q", text)
	}
	listed := map[string]bool{}
	for _, d := range plan.Deletions {
		listed[fmt.Sprintf("%s %s/%s/%s %s", d.Target.Cluster(), d.Kind, d.Namespace, d.Name, d.UID)] = true
	}
	w.stop()
	w.approve(plan)
	w.start()
	w.until("the canary", func() bool { return w.get("dev-1/a", deployments, "app-1") == nil })
	if w.get("dev-1/b", deployments, "app-1") == nil || w.get("dev-2/c", deployments, "app-1") == nil {
		t.Error("it went everywhere at once")
	}
	w.stop() // again, in the middle
	w.start()
	w.rest()
	after := w.allUIDs()
	for o, uid := range before {
		key := fmt.Sprintf("%s %s/%s/%s %s", o.cluster, o.kind, o.namespace, o.name, uid)
		if gone := after[o] != uid; gone != listed[key] {
			t.Errorf("%s: gone %t, listed %t", key, gone, listed[key])
		}
	}
	if !w.settledAll() || len(w.plans()) > 0 {
		t.Errorf("left: %v\n%s\n%s", w.plans(), w.heldTexts(), w.describe())
	}
	if approvals, err := w.store.Approvals(); err != nil || len(approvals) > 0 {
		t.Errorf("approvals %v, %v", approvals, err)
	}
}

// TestRetryAfterAnApprovedRelease: a release that was approved ended the canary's
// workload, and was turned back, which brought it back. To try it again ends another
// object than the one that was approved, so it waits for approval once more.
func TestRetryAfterAnApprovedRelease(t *testing.T) {
	t.Parallel()
	w := smallFleet(t)
	w.replace("kinds/app/kind.yaml", "when: data.switches.deploy", `when: "self.metadata.name != 'app-0'"`)
	w.theirs("blocked")
	w.app("app-0", "2", "one-0, two-0, blocked")
	w.commit()
	w.rest()
	w.approve(w.plan())
	w.until("the way back", func() bool { return w.unit("app-0").Rollout.Status == rollout.RolledBack })
	w.rest()
	before := w.get("dev-1/a", deployments, "app-0")
	if before == nil {
		t.Fatalf("the canary's workload did not come back\n%s", w.describe())
	}
	w.give(order.Order{Verb: order.Retry, Scope: order.Scope{Unit: "services/app-0"}})
	w.rest()
	if text := w.unit("app-0").Blocked; !strings.Contains(text, "loses all workloads") || !strings.Contains(text, "swell approve "+w.plan().Digest.Short()) {
		t.Errorf("blocked %q\n%s", text, w.describe())
	}
	if after := w.get("dev-1/a", deployments, "app-0"); after == nil || after.GetUID() != before.GetUID() {
		t.Error("the workload is gone, or another one")
	}
}

// TestOutageByHalves: two commits that delete little each, the second while the
// first is on its way, are judged together from then on.
func TestOutageByHalves(t *testing.T) {
	t.Parallel()
	w := smallFleet(t)
	before := w.allUIDs()
	for i := range 3 {
		w.app(fmt.Sprintf("app-%d", i), "1", fmt.Sprintf("one-%d", i))
	}
	w.commit()
	w.until("the canary's", func() bool { return w.there("two-0", "two-1", "two-2") == 6 })
	for i := 3; i < 5; i++ {
		w.app(fmt.Sprintf("app-%d", i), "1", fmt.Sprintf("one-%d", i))
	}
	w.commit()
	w.rest()
	if gone := lost(before, w.allUIDs()); len(gone) != 3 {
		t.Errorf("%d objects are gone: %q", len(gone), gone)
	}
	plan := w.plan()
	if len(plan.Deletions) != 12 {
		t.Errorf("%d deletions in the plan", len(plan.Deletions))
	}
	w.approve(plan)
	w.rest()
	if gone := lost(before, w.allUIDs()); len(gone) != 15 || !w.settledAll() {
		t.Errorf("%d objects are gone: %q\n%s", len(gone), gone, w.describe())
	}
}

// TestReplacedOverTheFleet: all five apps get a ConfigMap of another name, as when
// the name has a hash of what is in it. Nobody is asked.
func TestReplacedOverTheFleet(t *testing.T) {
	t.Parallel()
	w := smallFleet(t)
	for i := range 5 {
		w.app(fmt.Sprintf("app-%d", i), "1", fmt.Sprintf("one-%d, three-%d", i, i))
	}
	w.commit()
	w.rest()
	if !w.settledAll() || len(w.plans()) > 0 {
		t.Errorf("left: %v\n%s\n%s", w.plans(), w.heldTexts(), w.describe())
	}
	if old, new := w.there("two-0", "two-1", "two-2", "two-3", "two-4"), w.there("three-0", "three-1", "three-2", "three-3", "three-4"); old != 0 || new != 15 {
		t.Errorf("%d of the old ones and %d of the new ones are there", old, new)
	}
}
