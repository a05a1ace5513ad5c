// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
	standing "github.com/swell-sh/swell/sync/status"
)

// setImage gives the Deployment of app another image as somebody.
func (w *world) setImage(target, tag, manager string) {
	w.Helper()
	const patch = `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/app:TAG"}]`
	w.edit(target, deployments, "app", strings.Replace(patch, "TAG", tag, 1), manager)
}

// TestSomebodyTakesACanaryBack: the canary soaked on the image that somebody had put back by
// hand, where drift is only reported; the wave was passed, and the rest had the new one.
func TestSomebodyTakesACanaryBack(t *testing.T) {
	for name, c := range map[string]struct {
		disturb func(w *world)
		reason  string
	}{
		"image": {func(w *world) { w.setImage("dev-1/a", "1", "kubectl-edit") }, `.spec.template.spec.containers[name="main"].image: `},
		"config": {func(w *world) {
			w.edit("dev-1/a", configMaps, "one", `{"data":{"image":"registry.example.com/app:1"}}`, "kubectl-edit")
		}, ".data.image: "},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.policy("app", `{drift: [{mode: report}]}`)
				w.commit()
				w.sweeping(config.Drift{})
				w.release()
				w.app("app", "2", "one")
				w.commit()
				w.until("the canary", w.canary("app", 2))
				c.disturb(w)
				w.until("the look", func() bool {
					w.now = w.now.Add(time.Second)
					return w.unit("app").Targets["dev-1/a"].Health != rollout.HealthGood
				})
				reason := w.unit("app").Targets["dev-1/a"].Reason
				for _, part := range []string{"changed since it was applied: ", c.reason, "kubectl-edit"} {
					if !strings.Contains(reason, part) {
						t.Errorf("the reason is %q, want %q in it", reason, part)
					}
				}
				w.now = w.now.Add(10 * time.Minute)
				w.until("the way back", func() bool { return w.unit("app").Rollout.Status == rollout.RolledBack })
				w.want("images", w.tags("app"), "1 1 1")
			})
		})
	}
}

// TestTheFirstCanaryIsTakenBack: a release that has nothing to go back to is held, and does
// not go on because nobody looks any more whether it is there.
func TestTheFirstCanaryIsTakenBack(t *testing.T) { simulated(t, testTheFirstCanaryIsTakenBack) }

func testTheFirstCanaryIsTakenBack(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.until("the canary", w.canary("app", 1))
	w.setImage("dev-1/a", "0", "kubectl-edit")
	w.until("the hold", w.soon(func() bool { return w.unit("app").Rollout.Status == rollout.Held }))
	for range 30 {
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	w.want("status", string(w.unit("app").Rollout.Status), string(rollout.Held))
	w.want("images", w.tags("app"), "0  ")
}

// TestAControllerTakesACanaryBack: a controller puts a field back that the release changed, until
// the fight over it pauses. The canary soaked in that pause, and the rest had the new image.
func TestAControllerTakesACanaryBack(t *testing.T) { simulated(t, testAControllerTakesACanaryBack) }

func testAControllerTakesACanaryBack(t *testing.T, w *world) {
	w.waves("  - {name: canary, match: {labels: {ring: canary}}, soak: 1m30s, timeout: 1m}\n  - {name: rest, timeout: 1m}\n")
	w.commit()
	w.watching()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.tick = 10 * time.Millisecond // all that is lost is lost within a minute, however slow the rogue
	stop := w.rogue("dev-1/a", "one")
	w.until("the fight", func() bool { return w.drifts() == "dev-1/a ConfigMap/one fight .data.image=rogue-controller" })
	w.tick = 0
	unit := w.status("app")
	w.want("status", string(unit.Status), string(standing.Fight))
	if !strings.Contains(unit.Reason, "fight with rogue-controller over .data.image") {
		t.Errorf("the reason is %q", unit.Reason)
	}
	w.until("the way back", func() bool { return w.unit("app").Rollout.Status != rollout.Progressing })
	for _, text := range w.events("app", "applied")[3:] {
		if !strings.HasPrefix(text, "dev-1/a ") {
			t.Errorf("another target has the new image, too: %s", text)
		}
	}
	failure := w.unit("app").Rollout.Failure
	for _, part := range []string{
		"wave canary: target dev-1/a: not healthy within 1m0s: ",
		"/one: changed since it was applied: .data.image: rogue-controller",
	} {
		if !strings.Contains(failure, part) {
			t.Errorf("the failure is %q, want %q in it", failure, part)
		}
	}
	stop()
	w.until("what ran before", w.is("app", 2, rollout.RolledBack))
	w.want("images", w.tags("app"), "1 1 1")
}

// TestACanaryTakenBackIsPromoted: an operator lets the release go on over it.
func TestACanaryTakenBackIsPromoted(t *testing.T) { simulated(t, testACanaryTakenBackIsPromoted) }

func testACanaryTakenBackIsPromoted(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.setImage("dev-1/a", "1", "kubectl-edit")
	w.until("the look", func() bool {
		w.now = w.now.Add(time.Second)
		return w.unit("app").Targets["dev-1/a"].Health != rollout.HealthGood
	})
	w.give(order.Order{Verb: order.Promote, Scope: order.Scope{Unit: "services/app"}, Reason: "we know"})
	w.until("the end", w.is("app", 2, rollout.Done))
	w.want("images", w.tags("app"), "1 2 2")
	w.want("status", string(w.standing("app")), "drifted")
}

// TestAnEmergencyFixStays: somebody put the fix in by hand under a mask and committed it; the
// end of the mask took it back at all targets whose wave had not come.
func TestAnEmergencyFixStays(t *testing.T) {
	for name, drift := range map[string]config.Drift{"watched": {Watch: true}, "swept": {}} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.app("app", "1", "one", "two")
				w.commit()
				if drift.Watch {
					w.watching()
				} else {
					w.sweeping(drift)
					w.release()
				}
				testAnEmergencyFixStays(t, w)
			})
		})
	}
}

func testAnEmergencyFixStays(t *testing.T, w *world) {
	w.give(order.Order{Verb: order.Mask, Reason: "incident"})
	w.pass()
	for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} {
		w.setImage(target, "2", "kubectl-set")
	}
	w.edit("dev-1/b", deployments, "app", `{"spec":{"revisionHistoryLimit":3}}`, "kubectl-edit")
	w.edit("dev-1/b", configMaps, "two", `{"data":{"image":"stolen"}}`, "kubectl-edit")
	w.app("app", "2", "one", "two")
	w.commit()
	w.pass()
	w.give(order.Order{Verb: order.Unmask, Reason: "it is in Git"})
	w.until("the canary", w.canary("app", 2))
	for range 3 {
		if w.drift.Watch {
			w.pass()
		} else {
			w.give(order.Order{Verb: order.Reconcile}) // a sweep before the soak is over
		}
		w.pass()
	}
	w.want("images while the canary soaks", w.tags("app"), "2 2 2")
	const stays = "the newest commit changes it too: it stays until its wave"
	events := w.events("app", "reported")
	if len(events) == 0 || !w.drift.Watch && !strings.Contains(strings.Join(events, "\n"), stays) { // watches told of it under the mask
		t.Errorf("reported: %q", events)
	}
	w.now = w.now.Add(10 * time.Minute)
	w.until("the end", w.is("app", 2, rollout.Done))
	w.until("no drift", func() bool { w.now = w.now.Add(time.Minute); w.pass(); return w.drifts() == "" })
	w.want("images", w.tags("app"), "2 2 2")
	w.want("config", w.image("dev-1/b", "two"), "registry.example.com/app:2")
}

// TestASecretFixedByHand: what a Secret holds is never read, so whoever changes a value of one that
// the newest commit changes, too, keeps it until the wave comes. Without such a commit it is corrected.
func TestASecretFixedByHand(t *testing.T) { simulated(t, testASecretFixedByHand) }

func testASecretFixedByHand(t *testing.T, w *world) {
	w.write("kinds/app/kind.yaml", appKind+`  - id: secret
    template:
      apiVersion: v1
      kind: Secret
      metadata: {name: token, namespace: "${ns}"}
      stringData: {token: "${self.spec.image}"}
`)
	w.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+w.tenant+"}\n"+
		"spec: {checks: {plainSecrets: pass}}\n")
	w.commit()
	w.watching()
	token := func(target string) string {
		encoded, _, err := unstructured.NestedString(w.get(target, secrets, "token").Object, "data", "token")
		w.must(err)
		text, err := base64.StdEncoding.DecodeString(encoded)
		w.must(err)
		return strings.TrimPrefix(string(text), "registry.example.com/app:")
	}
	write := func(target, value string) {
		w.edit(target, secrets, "token", `{"data":{"token":"`+base64.StdEncoding.EncodeToString([]byte(value))+`"}}`, "kubectl-edit")
	}
	write("dev-1/b", "stolen")
	w.until("the correction", func() bool { return token("dev-1/b") == "1" && w.drifts() == "" })
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	write("dev-1/b", "fixed")
	w.until("the report", func() bool { return len(w.events("app", "reported")) > 0 })
	for range 20 {
		w.pass()
		pause(t)
	}
	w.want("tokens while the canary soaks", token("dev-1/a")+" "+token("dev-1/b")+" "+token("dev-2/c"), "2 fixed 1")
	w.now = w.now.Add(10 * time.Minute)
	w.until("the end", w.is("app", 2, rollout.Done))
	w.want("tokens", token("dev-1/a")+" "+token("dev-1/b")+" "+token("dev-2/c"), "2 2 2")
}

// TestARolloutIsUndoneByHand: somebody committed the way back to the image before, and undid the
// rollout by hand where the wave of that commit had not come. It stays undone.
func TestARolloutIsUndoneByHand(t *testing.T) { simulated(t, testARolloutIsUndoneByHand) }

func testARolloutIsUndoneByHand(t *testing.T, w *world) {
	w.watching()
	earlier, _, err := unstructured.NestedMap(w.get("dev-2/c", deployments, "app").Object, "spec", "template")
	w.must(err)
	template, err := json.Marshal(earlier)
	w.must(err)
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 2)
	w.app("app", "1", "one")
	w.commit()
	w.until("the canary", w.canary("app", 3))
	w.edit("dev-2/c", deployments, "app", `[{"op":"replace","path":"/spec/template","value":`+string(template)+`}]`, "kubectl-rollout")
	w.until("the report", func() bool { return len(w.events("app", "reported")) > 0 })
	for range 20 {
		w.pass()
		pause(t)
	}
	w.want("images while the canary soaks", w.tags("app"), "1 2 1")
	w.now = w.now.Add(10 * time.Minute)
	w.until("the end", w.is("app", 3, rollout.Done))
	w.want("images", w.tags("app"), "1 1 1")
	w.until("no drift", func() bool { return w.drifts() == "" })
}

// TestAFixThatIsCommittedAsTheMaskEnds: the daemon has not seen the commit yet when it is told
// that the mask is over.
func TestAFixThatIsCommittedAsTheMaskEnds(t *testing.T) {
	simulatedWith(t, func(w *world) { w.poll = time.Hour }, testAFixThatIsCommittedAsTheMaskEnds)
}

func testAFixThatIsCommittedAsTheMaskEnds(t *testing.T, w *world) {
	w.app("app", "1", "one", "two")
	w.commit()
	w.watching()
	w.give(order.Order{Verb: order.Mask, Reason: "incident"})
	w.pass()
	w.setImage("dev-2/c", "2", "kubectl-set")
	w.pass()
	w.app("app", "2", "one", "two")
	w.commit()
	w.give(order.Order{Verb: order.Unmask, Reason: "it is in Git"})
	for range 20 {
		w.pass()
		if tag := w.tag("dev-2/c", "app"); tag != "2" {
			t.Fatalf("the fix was taken back: %s", tag)
		}
		pause(t)
	}
}

// TestDriftBesideARelease: what both bundles agree on is corrected while a release is on its
// way, and what a release changed that failed is none that anybody wants.
func TestDriftBesideARelease(t *testing.T) { simulated(t, testDriftBesideARelease) }

func testDriftBesideARelease(t *testing.T, w *world) {
	w.waves("  - {name: canary, match: {labels: {ring: canary}}, soak: 10h, timeout: 1m}\n  - {name: rest, timeout: 1m}\n")
	w.commit()
	w.sweeping(config.Drift{})
	w.until("the canary", w.canary("app", 1))
	w.now = w.now.Add(10 * time.Hour)
	w.until("the first release", w.is("app", 1, rollout.Done))
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.edit("dev-1/b", deployments, "app", `{"spec":{"replicas":7}}`, "kubectl-edit")
	w.setImage("dev-2/c", "3", "kubectl-edit")
	w.nextSweep()
	w.until("the correction", func() bool {
		n, _, _ := unstructured.NestedInt64(w.get("dev-1/b", deployments, "app").Object, "spec", "replicas")
		w.pass()
		return n == 1
	})
	w.want("images", w.tags("app"), "2 1 3")
	w.app("app", "broken", "one")
	w.commit()
	w.until("the failure", w.soon(func() bool { return w.unit("app").Rollout.Status == rollout.RolledBack }))
	w.nextSweep()
	w.until("the correction", func() bool { w.pass(); return w.tag("dev-2/c", "app") == "1" })
}
