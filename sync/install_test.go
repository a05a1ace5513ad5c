// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

const (
	installHooks = "after-install always before-install pair"
	upgradeHooks = "after-upgrade always before-upgrade pair"
)

// hooked is a unit on dev-1/a alone: a Job for each event, a Deployment with an image tag,
// and a ConfigMap with a value. The Jobs run an image tag of their own.
func (w *world) hooked(unit, hookTag, tag, value string) {
	w.Helper()
	w.canaryOnly(unit)
	ns := w.tenant + "-a"
	var b strings.Builder
	for name, hook := range map[string]string{
		"always": "before", "before-install": "before-install", "before-upgrade": "before-upgrade",
		"after-install": "after-install", "after-upgrade": "after-upgrade", "pair": "before-upgrade,after-install",
	} {
		fmt.Fprintf(&b, `apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: %s, annotations: {swell.sh/hook: "%s"}}
spec:
  activeDeadlineSeconds: 1
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example.com/app:%s"}]
---
`, name, ns, hook, hookTag)
	}
	fmt.Fprintf(&b, `apiVersion: apps/v1
kind: Deployment
metadata: {name: hooked, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: hooked}}
  template:
    metadata: {labels: {app: hooked}}
    spec:
      containers: [{name: main, image: "registry.example.com/app:%[2]s"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hooked, namespace: %[1]s}
data: {value: "%[3]s"}
`, ns, tag, value)
	w.write("services/"+unit+"/objects.yaml", b.String())
}

// runs says which hooks ran since it was asked last.
func (w *world) runs(known map[string]string) string {
	w.Helper()
	list, err := w.client("dev-1").Resource(jobs).Namespace(w.tenant+"-a").List(w.Context(), metav1.ListOptions{})
	w.must(err)
	var names []string
	for _, job := range list.Items {
		if name := job.GetName(); known[name] != string(job.GetUID()) {
			names, known[name] = append(names, name), string(job.GetUID())
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestHooksByEvent: hooks of installs run at the first release of a unit on a target, and
// hooks of upgrades at all others, whatever else is done there.
func TestHooksByEvent(t *testing.T) { simulated(t, testHooksByEvent) }

func testHooksByEvent(t *testing.T, w *world) {
	known := map[string]string{}
	w.hooked("hooked", "1", "1", "1")
	w.commit()
	w.soaked("hooked", 1)
	w.want("at the first release", w.runs(known), installHooks)
	for _, name := range []string{"before-upgrade", "after-upgrade"} {
		if entries := w.entries("dev-1", "Job", name); len(entries) > 0 {
			t.Errorf("the inventory has %s, which did not run", name)
		}
	}
	w.want("the history", fmt.Sprint(w.events("hooked", "skipped")), "[dev-1/a Job/"+w.tenant+"-a/after-upgrade does not run: "+
		"it is a hook of upgrades, and this is an install (and 1 more)]")

	w.sweeping(config.Drift{})
	w.edit("dev-1/a", configMaps, "hooked", `{"data":{"value":"by hand"}}`, "somebody")
	w.nextSweep()
	w.until("the correction", func() bool { return w.value("hooked") == "1" })
	w.rest()
	w.want("at a correction of drift", w.runs(known), "")

	w.hooked("hooked", "1", "1", "2")
	w.commit()
	w.soaked("hooked", 2)
	w.want("at the second release", w.runs(known), upgradeHooks)
	if w.get("dev-1/a", jobs, "before-install") == nil {
		t.Error("the Job of a hook that the bundle still has was deleted")
	}

	w.hooked("hooked", "1", "broken", "3")
	w.commit()
	w.until("the objects", func() bool { return w.tag("dev-1/a", "hooked") == "broken" })
	w.want("before the objects of a release that fails", w.runs(known), "always before-upgrade pair")
	w.now = w.now.Add(time.Minute)
	w.until("the rollback", w.is("hooked", 3, rollout.RolledBack))
	w.want("at the rollback, after which no other after-upgrade has run", w.runs(known), "always before-upgrade pair")
	w.nextSweep()
	for range 3 {
		for _, a := range w.pass().Actions {
			if a.Kind != rollout.Check {
				t.Errorf("a pass over nothing changed: %+v", a)
			}
		}
	}
}

// TestHooksOfAFirstReleaseThatFails: the release that mends it is the install, and what comes
// after that is none. A unit that was removed is installed again.
func TestHooksOfAFirstReleaseThatFails(t *testing.T) {
	simulated(t, testHooksOfAFirstReleaseThatFails)
}

func testHooksOfAFirstReleaseThatFails(t *testing.T, w *world) {
	known := map[string]string{}
	w.hooked("hooked", "broken", "1", "1")
	w.commit()
	w.until("the failure", w.is("hooked", 1, rollout.Held))
	w.want("at the release that failed", w.runs(known), "always before-install")
	w.hooked("hooked", "1", "1", "2")
	w.commit()
	w.soaked("hooked", 2)
	w.want("at the release that mends it", w.runs(known), installHooks)
	w.hooked("hooked", "1", "1", "3")
	w.commit()
	w.soaked("hooked", 3)
	w.want("at the release after it", w.runs(known), upgradeHooks)

	w.dropFile("services/hooked")
	w.commit()
	w.until("the removal", func() bool { return w.unit("hooked") == nil && w.get("dev-1/a", deployments, "hooked") == nil })
	clear(known)
	w.hooked("hooked", "1", "1", "4")
	w.commit()
	w.soaked("hooked", 1)
	w.want("at the release after the removal", w.runs(known), installHooks)
}

// TestHooksOfAnAdoption: where objects of the unit were there before swell, also those of a
// unit of another name, the first release is an upgrade. When they go before swell took them
// over, it is an install. What an apply made that was cut short does not count.
func TestHooksOfAnAdoption(t *testing.T) {
	for name, test := range map[string]func(*world){
		"by somebody": func(w *world) {
			w.theirDeployment()
			w.hooked("hooked", "1", "1", "1")
			w.adopts("hooked", "take")
			w.commit()
			w.soaked("hooked", 1)
			w.want("hooks", w.runs(map[string]string{}), upgradeHooks)
			why := "its hooks are those of an upgrade: Deployment/" + w.tenant + "-a/hooked is there, made by "
			if texts := w.events("hooked", "step"); !strings.Contains(fmt.Sprint(texts), why) {
				w.Errorf("the history does not say why: %v", texts)
			}
		},
		"refused and gone": func(w *world) {
			w.theirDeployment()
			w.hooked("hooked", "1", "1", "1")
			w.adopts("hooked", "never")
			w.commit()
			w.until("the failure", w.is("hooked", 1, rollout.Held))
			w.must(w.client("dev-1").Resource(deployments).Namespace(w.tenant+"-a").Delete(w.Context(), "hooked", metav1.DeleteOptions{}))
			known := map[string]string{}
			w.runs(known)
			w.hooked("hooked", "1", "1", "2")
			w.commit()
			w.soaked("hooked", 2)
			w.want("hooks", w.runs(known), installHooks)
		},
		"of a unit of another name": func(w *world) {
			w.hooked("hooked", "1", "1", "1")
			w.commit()
			w.soaked("hooked", 1)
			known := map[string]string{}
			w.runs(known)
			w.rename("services/hooked", "services/renamed")
			w.commit()
			w.soaked("renamed", 2)
			w.want("hooks", w.runs(known), upgradeHooks)
		},
		"of what the unit left": func(w *world) {
			w.defaults("prune: keep")
			w.hooked("hooked", "1", "1", "1")
			w.commit()
			w.soaked("hooked", 1)
			w.dropFile("services/hooked")
			w.commit()
			w.until("the removal", func() bool { return w.unit("hooked") == nil })
			known := map[string]string{}
			w.runs(known)
			w.hooked("hooked", "1", "1", "2")
			w.commit()
			w.soaked("hooked", 1)
			w.want("hooks", w.runs(known), upgradeHooks)
		},
		"of a first release that was cut short": func(w *world) {
			w.hooked("hooked", "1", "broken", "1")
			w.commit()
			w.until("the objects", func() bool { return w.get("dev-1/a", deployments, "hooked") != nil })
			w.until("the end of the jobs", func() bool { return !w.daemon.Busy() })
			w.must(w.store.Update(w.Context(), func(tx *store.Tx) error {
				inventory, err := tx.Inventory("services/hooked", "dev-1/a")
				entries := slices.Collect(maps.Values(inventory))
				return errors.Join(err, tx.Forget(entries), tx.Intend(entries))
			}))
			known := map[string]string{}
			w.want("hooks before the objects", w.runs(known), "always before-install")
			w.hooked("hooked", "1", "1", "2")
			w.commit()
			w.soaked("hooked", 2)
			w.want("hooks", w.runs(known), installHooks)
		},
		"of a state that was lost": func(w *world) {
			w.fresh = true
			w.hooked("hooked", "1", "1", "1")
			w.commit()
			w.soaked("hooked", 1)
			known := map[string]string{}
			w.runs(known)
			w.lose()
			w.hooked("hooked", "1", "1", "2")
			w.commit()
			w.soaked("hooked", 1)
			w.want("hooks", w.runs(known), upgradeHooks)
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(_ *testing.T, w *world) {
				w.release()
				test(w)
			})
		})
	}
}

func (w *world) theirDeployment() {
	w.Helper()
	w.create("dev-1", deployments, `apiVersion: apps/v1
kind: Deployment
metadata: {name: hooked, namespace: %s-a}
spec:
  selector: {matchLabels: {app: hooked}}
  template:
    metadata: {labels: {app: hooked}}
    spec: {containers: [{name: main, image: "registry.example.com/app:old"}]}
`, w.tenant)
}

// adopts gives a unit of the canary a policy of adoption.
func (w *world) adopts(unit, policy string) {
	w.Helper()
	w.policy(unit, "{adopt: "+policy+", placement: {topology: cell, match: {labels: {ring: [canary]}}}}")
}
