// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/rollout"
)

// defaults writes the policy of all units.
func (w *world) defaults(policy string) {
	w.Helper()
	w.write("services/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec:\n  tenant: %s\n  placement: {topology: cell}\n  %s\n", w.tenant, policy))
}

// history is what happened to a unit on a target, oldest first, as kind and text.
func (w *world) history(unit config.UnitPath, target config.TargetName) string {
	w.Helper()
	events, err := w.store.History(unit, 1000)
	w.must(err)
	var b strings.Builder
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e.Target == target {
			fmt.Fprintf(&b, "%s: %s\n", e.Kind, e.Text)
		}
	}
	return b.String()
}

// TestFirstContact: an object of somebody else is refused with its maker's name,
// and with adopt: take becomes the unit's; the history says from whom.
func TestFirstContact(t *testing.T) { simulated(t, testFirstContact) }

func testFirstContact(t *testing.T, w *world) {
	w.release()
	const unit, target = "services/late", "dev-1/a"
	ns := w.tenant + "-a"
	for _, name := range []string{"two", "three"} {
		_, err := w.client("dev-1").Resource(configMaps).Namespace(ns).Patch(t.Context(), name, types.ApplyPatchType,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"},"data":{"image":"theirs"}}`), metav1.PatchOptions{FieldManager: "other"})
		w.must(err)
	}
	w.app("late", "1", "two", "three")
	w.commit()
	w.until("the refusal", func() bool {
		u := w.unit("late")
		return u != nil && u.Targets[target].Reason != ""
	})
	refused := func(name string) string {
		return "apply ConfigMap/" + ns + "/" + name + ": it is there already, with other values: .data.image by other (Apply): to take it over, say adopt: take in the Defaults of its unit, or annotate it with swell.sh/adopt: take, in Git"
	}
	if !strings.Contains(w.history(unit, target), refused("three")+"; "+refused("two")) {
		t.Errorf("the history is %s", w.history(unit, target))
	}
	w.want("the ConfigMap", fmt.Sprint(w.get(target, configMaps, "two").Object["data"]), "map[image:theirs]")

	w.defaults("adopt: take")
	w.app("late", "2", "two", "three")
	w.commit()
	w.until("the release", func() bool { return w.tag(target, "late") == "2" && w.unit("late").Targets[target].Trouble == "" })
	for _, name := range []string{"two", "three"} {
		w.want(name, fmt.Sprint(w.get(target, configMaps, name).Object["data"]), "map[image:registry.example.com/app:2]")
	}
	for _, want := range []string{
		"adopted: ConfigMap/" + ns + "/three: was made by other (Apply) (and 1 more)\n",
		"overwritten: ConfigMap/" + ns + "/three: .data.image: other (Apply) (and 1 more)\n",
	} {
		if !strings.Contains(w.history(unit, target), want) {
			t.Errorf("the history is %s, want %s in it", w.history(unit, target), want)
		}
	}
}

// TestRefusedWriteInTheHistory: of a write that the API server refused, the history
// has the refusal with its reason, and does not say that anything was taken.
func TestRefusedWriteInTheHistory(t *testing.T) { simulated(t, testRefusedWriteInTheHistory) }

func testRefusedWriteInTheHistory(t *testing.T, w *world) {
	w.release()
	const unit, target = "services/late", "dev-1/a"
	ns := w.tenant + "-a"
	_, err := w.client("dev-1").Resource(configMaps).Namespace(ns).Patch(t.Context(), "two", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"},"data":{"image":"theirs"},"immutable":true}`), metav1.PatchOptions{FieldManager: "other"})
	w.must(err)
	w.defaults("adopt: take")
	w.app("late", "1", "two")
	w.commit()
	w.until("the refusal", func() bool {
		u := w.unit("late")
		return u != nil && u.Targets[target].Reason != ""
	})
	history := w.history(unit, target)
	if want := "apply ConfigMap/" + ns + "/two: "; !strings.Contains(history, want) || !strings.Contains(history, "immutable") {
		t.Errorf("the history is %s, want the refusal of %s", history, want)
	}
	for _, kind := range []string{"overwritten: ", "adopted: ", "left: "} {
		if strings.Contains("\n"+history, "\n"+kind) {
			t.Errorf("the history is %s, and nothing was written", history)
		}
	}
	w.want("the ConfigMap", fmt.Sprint(w.get(target, configMaps, "two").Object["data"]), "map[image:theirs]")
}

// TestIgnored: a rule that is new in Git ends a drift without a release, and the
// next release leaves the field alone. So it is with an autoscaler, without any
// rule.
func TestIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	schedule, err := cron.ParseStandard("*/10 * * * *")
	w.must(err)
	w.drift = config.Drift{Schedule: schedule, Location: time.UTC}
	w.stop()
	w.start()
	w.release()
	apps := w.client("dev-2").Resource(deployments).Namespace(w.tenant + "-c")
	sweep := func() (texts []string) {
		t.Helper()
		w.now = w.now.Truncate(10 * time.Minute).Add(10 * time.Minute)
		r := w.pass()
		if len(r.Swept) != 2 {
			t.Fatalf("swept %v", r.Swept)
		}
		for _, d := range r.Drifts {
			texts = append(texts, drift.Text(d))
		}
		return texts
	}
	_, err = apps.Patch(t.Context(), "app", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "hpa"}, "scale")
	w.must(err)
	if found := sweep(); found != nil {
		t.Errorf("scaled: %v", found)
	}
	_, err = apps.Patch(t.Context(), "app", types.MergePatchType, []byte(`{"spec":{"replicas":4}}`), metav1.PatchOptions{FieldManager: "vpa"})
	w.must(err)
	w.defaults("ignore: [{kind: Deployment, fields: [/spec/replicas]}]")
	w.commit()
	w.pass()
	if found := sweep(); found != nil {
		t.Errorf("ignored: %v", found)
	}
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 2)
	w.want("images", w.tags("app"), "2 2 2")
	for target, want := range map[string]string{"dev-2/c": "4", "dev-1/a": "1"} {
		spec := w.get(target, deployments, "app").Object["spec"].(map[string]any)
		w.want("replicas on "+target, fmt.Sprint(spec["replicas"]), want)
	}
	if found := sweep(); found != nil {
		t.Errorf("after the release: %v", found)
	}
	w.want("rollout", string(w.unit("app").Rollout.Status), string(rollout.Done))
}
