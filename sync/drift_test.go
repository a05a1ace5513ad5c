// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
)

// sweeping gives the daemon a schedule of every ten minutes.
func (w *world) sweeping(more config.Drift) {
	schedule, err := cron.ParseStandard("*/10 * * * *")
	w.must(err)
	more.Schedule, more.Location = schedule, time.UTC
	w.drift = more
	w.stop()
	w.start()
}

// nextSweep goes to the next time of that schedule and makes a pass, or more while a
// cluster's Lease is still being taken by a daemon that has just started.
func (w *world) nextSweep() sync.Record {
	w.Helper()
	w.now = w.now.Truncate(10 * time.Minute).Add(10 * time.Minute)
	r := w.pass()
	for deadline := time.Now().Add(w.longest()); len(r.Swept) < 2 && time.Now().Before(deadline); pause(w.TB) {
		r.Add(w.pass())
	}
	if len(r.Swept) != 2 {
		w.Fatalf("swept %v, errors %v; want two clusters", r.Swept, r.Errors)
	}
	return r
}

// edit changes an object of the tenant as somebody.
func (w *world) edit(target string, resource schema.GroupVersionResource, name, patch, manager string) {
	w.Helper()
	cluster, cell, _ := strings.Cut(target, "/")
	kind := types.MergePatchType
	if strings.HasPrefix(patch, "[") {
		kind = types.JSONPatchType
	}
	_, err := w.client(cluster).Resource(resource).Namespace(w.tenant+"-"+cell).Patch(w.Context(), name, kind, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	w.must(err)
}

// drifts are what the state knows, one line each, without times.
func (w *world) drifts() string {
	w.Helper()
	drifts, err := w.store.Drifts()
	w.must(err)
	var lines []string
	for _, d := range drifts {
		line := fmt.Sprintf("%s %s/%s %s", d.Target, d.ID.Kind, d.ID.Name, d.Mode)
		if d.Missing {
			line += " missing"
		}
		for _, c := range d.Changes {
			line += " " + c.Field + "=" + c.Manager
			if !d.Deep && c.Time.IsZero() {
				w.Errorf("no time: %+v", c)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// events are the texts of a kind in the history of a unit, oldest first.
func (w *world) events(unit, kind string) []string {
	w.Helper()
	history, err := w.store.History(config.UnitPath("services/"+unit), 1000)
	w.must(err)
	var texts []string
	for _, e := range history {
		if e.Kind == kind {
			texts = append([]string{string(e.Target) + " " + e.Text}, texts...)
		}
	}
	return texts
}

// policy writes the Defaults of a unit.
func (w *world) policy(unit, spec string) {
	w.write("services/"+unit+"/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: policy}\nspec: "+spec+"\n")
}

const data = `{"data":{"image":"stolen"}}`

// TestDriftModes: by the labels of its targets, the same edit is corrected,
// reported once, or not looked at.
func TestDriftModes(t *testing.T) { simulated(t, testDriftModes) }

func testDriftModes(t *testing.T, w *world) {
	w.app("app", "1", "one", "two")
	w.policy("app", `{drift: [{match: {labels: {ring: canary}}, mode: "off"}, {match: {labels: {site: two}}, mode: report}]}`)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} {
		w.edit(target, configMaps, "one", data, "kubectl-edit")
		w.edit(target, configMaps, "two", data, "vim")
	}
	w.nextSweep()
	w.until("the correction", func() bool { return w.unit("app").Rollout.Reason == "" && !w.unit("app").Targets["dev-1/b"].Drifted })
	reported := "dev-2/c ConfigMap/one report .data.image=kubectl-edit\ndev-2/c ConfigMap/two report .data.image=vim"
	for range 3 {
		w.want("known", w.drifts(), reported)
		for target, want := range map[string]string{"dev-1/a": "stolen", "dev-1/b": "registry.example.com/app:1", "dev-2/c": "stolen"} {
			w.want("data on "+target, w.get(target, configMaps, "two").Object["data"].(map[string]any)["image"].(string), want)
		}
		events := w.events("app", "reported")
		if len(events) != 2 || !strings.Contains(events[0], "dev-2/c ConfigMap/"+w.tenant+"-c/one: .data.image: kubectl-edit (Update, ") {
			t.Errorf("events %q", events)
		}
		w.want("status", string(w.unit("app").Rollout.Status)+w.unit("app").Rollout.Reason, string(rollout.Done))
		if r := w.nextSweep(); len(r.Actions) > 0 {
			t.Errorf("actions %v", r.Actions)
		}
	}
	// Another change is news, also to a daemon that has just started.
	w.edit("dev-2/c", configMaps, "one", `[{"op":"remove","path":"/metadata/labels/app.kubernetes.io~1managed-by"}]`, "cleaner")
	w.stop()
	w.start()
	w.pass()
	w.nextSweep()
	if events := w.events("app", "reported"); len(events) != 3 || !strings.Contains(events[2], `.metadata.labels["app.kubernetes.io/managed-by"]`) {
		t.Errorf("events %q", events)
	}

	// What is deleted is reported too, and a release that sends only other
	// objects leaves all of it alone.
	w.must(w.client("dev-2").Resource(configMaps).Namespace(w.tenant+"-c").Delete(t.Context(), "two", metav1.DeleteOptions{}))
	w.nextSweep()
	w.app("app", "1", "one", "three", "two")
	w.commit()
	w.soaked("app", 2)
	if w.get("dev-2/c", configMaps, "two") != nil || w.get("dev-2/c", configMaps, "three") == nil {
		t.Error("want the new ConfigMap, and the deleted one left alone")
	}
	// A mode that corrects takes up what was only reported.
	w.policy("app", `{drift: [{mode: correct}]}`)
	w.commit()
	w.pass()
	w.nextSweep()
	w.until("the corrections", func() bool { return w.drifts() == "" && w.get("dev-2/c", configMaps, "two") != nil })
	w.want("data", w.get("dev-2/c", configMaps, "one").Object["data"].(map[string]any)["image"].(string), "registry.example.com/app:1")
}

// TestReportedDriftEndsWithARelease: Git changes the object, so it is sent.
func TestReportedDriftEndsWithARelease(t *testing.T) { simulated(t, testReportedDriftEndsWithARelease) }

func testReportedDriftEndsWithARelease(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit")
	w.nextSweep()
	w.want("known", w.drifts(), "dev-1/b ConfigMap/one report .data.image=kubectl-edit")
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 2)
	w.want("known", w.drifts(), "")
	if events := w.events("app", "restored"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
}

// TestReleaseOverReportedDrift: what a release waits for and misses is made anew,
// where drift is only reported or not looked for. The release failed, and could
// not be put back either.
func TestReleaseOverReportedDrift(t *testing.T) { simulated(t, testReleaseOverReportedDrift) }

func testReleaseOverReportedDrift(t *testing.T, w *world) {
	w.app("app", "1", "one")
	w.policy("app", `{drift: [{match: {labels: {site: two}}, mode: "off"}, {mode: report}]}`)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.edit("dev-1/a", deployments, "app", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:2"}]`, "kubectl-edit")
	for _, target := range []string{"dev-1/b", "dev-2/c"} {
		cluster, cell, _ := strings.Cut(target, "/")
		w.must(w.client(cluster).Resource(deployments).Namespace(w.tenant+"-"+cell).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	}
	w.nextSweep()
	w.want("known", w.drifts(), "dev-1/a Deployment/app report .spec.template.spec.containers[name=\"main\"].image=kubectl-edit\n"+
		"dev-1/b Deployment/app report missing")
	w.want("left alone", w.tags("app"), "2  ")

	w.app("app", "1", "one", "two") // the Deployment is as before
	w.commit()
	w.soaked("app", 2)
	w.want("released", w.tags("app"), "2 1 1")
	w.want("known", w.drifts(), `dev-1/a Deployment/app report .spec.template.spec.containers[name="main"].image=kubectl-edit`)
}

// TestModesOfABrokenUnit: a commit that is held, or in which the unit has a
// problem, does not change what is done about drift; a daemon that has never
// seen the unit without corrects nothing.
func TestModesOfABrokenUnit(t *testing.T) { simulated(t, testModesOfABrokenUnit) }

func testModesOfABrokenUnit(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit")
	want := "dev-1/b ConfigMap/one report .data.image=kubectl-edit"
	w.policy("app", `{drift: [{mode: corect}]}`)
	w.commit()
	w.pass()
	w.nextSweep()
	w.want("with a mistake in the mode", w.drifts(), want)
	w.stop()
	w.start()
	w.pass()
	w.nextSweep()
	w.want("after a restart", w.drifts(), want)
	w.write("fleet/fleet.yaml", "kind: Cluster\n")
	w.commit()
	w.stop()
	w.start()
	w.pass()
	w.nextSweep()
	w.want("with a broken fleet", w.drifts(), want)
	w.want("data", w.get("dev-1/b", configMaps, "one").Object["data"].(map[string]any)["image"].(string), "stolen")
}

// TestHealthCountsWhereDriftIsReported: an edit in the middle of a wave does not
// make it fail.
func TestHealthCountsWhereDriftIsReported(t *testing.T) {
	simulated(t, testHealthCountsWhereDriftIsReported)
}

func testHealthCountsWhereDriftIsReported(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "2" })
	w.edit("dev-1/a", deployments, "app", `{"spec":{"replicas":2}}`, "kubectl-scale")
	w.soaked("app", 2)
	w.want("images", w.tags("app"), "2 2 2")
}

// TestIgnoredFieldsDoNotDrift: a field that the policy leaves to others may
// change owners; what else is changed is drift.
func TestIgnoredFieldsDoNotDrift(t *testing.T) { simulated(t, testIgnoredFieldsDoNotDrift) }

func testIgnoredFieldsDoNotDrift(t *testing.T, w *world) {
	w.policy("app", `{ignore: [{kind: Deployment, fields: [/spec/replicas]}, {kind: ConfigMap, object: other, fields: [/data]}]}`)
	w.commit()
	w.watching()
	w.edit("dev-2/c", deployments, "app", `{"spec":{"replicas":2}}`, "autoscaler")
	for range 10 {
		w.pass()
		pause(t)
	}
	w.until("rest", w.quiet)
	w.sweeping(config.Drift{})
	w.pass()
	if r := w.nextSweep(); len(r.Drifts) > 0 || w.drifts() != "" {
		t.Errorf("found %v, known %s", r.Drifts, w.drifts())
	}
	replicas, _, err := unstructured.NestedInt64(w.get("dev-2/c", deployments, "app").Object, "spec", "replicas")
	w.must(err)
	w.want("replicas", fmt.Sprint(replicas), "2")

	w.edit("dev-2/c", deployments, "app", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:hotfix"}]`, "kubectl-edit")
	w.edit("dev-2/c", configMaps, "one", data, "vim")
	r := w.nextSweep()
	var found []string
	for _, drift := range r.Drifts {
		for _, c := range drift.Changes {
			found = append(found, drift.Entry.ID.Kind+c.Field)
		}
	}
	slices.Sort(found)
	w.want("found", strings.Join(found, " "), `ConfigMap.data.image Deployment.spec.template.spec.containers[name="main"].image`)
	w.until("the correction", func() bool { return w.tag("dev-2/c", "app") == "1" && w.drifts() == "" })
}

// TestHealthCountsWhereFieldsAreIgnored: an autoscaler takes its field in the
// middle of a wave, which goes on.
func TestHealthCountsWhereFieldsAreIgnored(t *testing.T) {
	simulated(t, testHealthCountsWhereFieldsAreIgnored)
}

func testHealthCountsWhereFieldsAreIgnored(t *testing.T, w *world) {
	w.policy("app", `{ignore: [{kind: Deployment, fields: [/spec/replicas]}]}`)
	w.commit()
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "2" })
	w.edit("dev-1/a", deployments, "app", `{"spec":{"replicas":2}}`, "autoscaler")
	w.soaked("app", 2)
	w.want("images", w.tags("app"), "2 2 2")
	replicas, _, err := unstructured.NestedInt64(w.get("dev-1/a", deployments, "app").Object, "spec", "replicas")
	w.must(err)
	w.want("replicas", fmt.Sprint(replicas), "2")
}
