// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/rollout"
)

// watching starts a daemon that watches and has no schedule, with the first
// commit released and every kind watched.
func (w *world) watching() {
	w.drift = config.Drift{Watch: true}
	w.stop()
	w.start()
	w.release()
	w.now = w.now.Add(time.Second)
	w.until("the watches", func() bool { return w.quiet() })
}

// quiet makes a pass and says whether it did nothing.
func (w *world) quiet() bool {
	w.Helper()
	r := w.pass()
	return len(r.Swept)+len(r.Actions)+len(r.Drifts)+len(r.Errors) == 0
}

// image is the value in a ConfigMap of the app.
func (w *world) image(target, name string) string {
	w.Helper()
	object := w.get(target, configMaps, name)
	if object == nil {
		return ""
	}
	return object.Object["data"].(map[string]any)["image"].(string)
}

// TestWatchFindsDriftAtOnce: edits, deletions and removed labels are found and
// corrected without a sweep.
func TestWatchFindsDriftAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.watching()
	for name, disturb := range map[string]func(){
		"edit": func() { w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit") },
		"deletion": func() {
			w.must(w.client("dev-1").Resource(configMaps).Namespace(w.tenant+"-b").Delete(t.Context(), "one", metav1.DeleteOptions{}))
		},
		"label": func() { w.edit("dev-1/b", configMaps, "one", `{"metadata":{"labels":null}}`, "cleaner") },
	} {
		t.Run(name, func(t *testing.T) {
			disturb()
			var swept []string
			w.until("the correction", func() bool {
				r := w.pass()
				swept = append(swept, r.Swept...)
				object := w.get("dev-1/b", configMaps, "one")
				return object != nil && object.GetLabels()["app.kubernetes.io/managed-by"] == "swell" && w.image("dev-1/b", "one") == "registry.example.com/app:1"
			})
			w.until("the end", func() bool { return !w.unit("app").Targets["dev-1/b"].Drifted && w.drifts() == "" })
			if len(swept) > 0 {
				t.Errorf("swept %v", swept)
			}
		})
	}
}

// TestWatchDoesNotTakeOwnWritesForDrift: releases find no drift, and need no
// look at what was just written.
func TestWatchDoesNotTakeOwnWritesForDrift(t *testing.T) {
	simulated(t, testWatchDoesNotTakeOwnWritesForDrift)
}

func testWatchDoesNotTakeOwnWritesForDrift(t *testing.T, w *world) {
	w.watching()
	w.audit()
	for _, tag := range []string{"2", "3"} {
		w.app("app", tag, "one", "two", "three-"+tag)
		w.commit()
		before := w.unit("app").Rollout.ID
		for _, o := range w.until("the canary", func() bool {
			u := w.unit("app")
			return u.Rollout.ID > before && u.Targets["dev-1/a"].Health == rollout.HealthGood && u.Targets["dev-1/a"].Applied == u.Targets["dev-1/a"].Wanted
		}) {
			if o.Why == rollout.WhyDrift {
				t.Errorf("corrected: %+v", o)
			}
		}
		w.now = w.now.Add(10 * time.Minute)
		for _, o := range w.until("the rollout", w.is("app", before+1, rollout.Done)) {
			if o.Why == rollout.WhyDrift {
				t.Errorf("corrected: %+v", o)
			}
		}
	}
	w.until("the end of what was left", func() bool { return w.get("dev-2/c", configMaps, "three-"+w.tag("dev-2/c", "app")) != nil && w.quiet() })
	w.want("drift", w.drifts(), "")
	for what, n := range w.requests() {
		if what == "get configmaps" && n > 3 { // one for each that is pruned
			t.Errorf("%d looks at single ConfigMaps", n)
		}
	}
	if events := w.events("app", "drifted"); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

// TestWatchReportsOnce: reported drift is found at once too, and what happens
// to the object after that does not keep the daemon busy.
func TestWatchReportsOnce(t *testing.T) { simulated(t, testWatchReportsOnce) }

func testWatchReportsOnce(t *testing.T, w *world) {
	w.policy("app", `{drift: [{mode: report}]}`)
	w.commit()
	w.watching()
	w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit")
	want := "dev-1/b ConfigMap/one report .data.image=kubectl-edit"
	w.until("the report", func() bool { return w.drifts() == want })
	w.until("rest", w.quiet)
	w.audit()
	for i := range 5 {
		w.edit("dev-1/b", configMaps, "one", fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, i), "kubectl-edit")
		w.quiet()
		pause(t)
	}
	w.until("rest", w.quiet)
	if got := w.asked(); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	w.want("drift", w.drifts(), want)
}

// rogue is a controller that keeps a ConfigMap of the app as it wants it, until
// the test ends or stop is called.
func (w *world) rogue(target, name string) (stop func()) {
	cluster, cell, _ := strings.Cut(target, "/")
	maps := w.client(cluster).Resource(configMaps).Namespace(w.tenant + "-" + cell)
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			live, err := maps.Get(ctx, name, metav1.GetOptions{})
			if err == nil && live.Object["data"].(map[string]any)["image"] != "stolen" {
				_, err = maps.Patch(ctx, name, types.MergePatchType, []byte(data), metav1.PatchOptions{FieldManager: "rogue-controller"})
			}
			if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				w.Error(err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// TestFightWithAController: a controller that keeps writing our field. swell
// gives in, says who it is, survives a restart with that, tries again after
// growing pauses, and wins when the other one is gone.
func TestFightWithAController(t *testing.T) { simulated(t, testFightWithAController) }

func testFightWithAController(t *testing.T, w *world) {
	w.watching()
	w.audit()
	w.tick = 10 * time.Millisecond // all that is lost is lost within a minute, however slow the rogue
	stop := w.rogue("dev-1/b", "one")
	fighting := "dev-1/b ConfigMap/one fight .data.image=rogue-controller"
	w.until("the fight", func() bool { return w.drifts() == fighting })
	events := w.events("app", "fight")
	if len(events) != 1 || !strings.HasPrefix(events[0], "dev-1/b ConfigMap/"+w.tenant+"-b/one: fight with rogue-controller over .data.image, not corrected before ") {
		t.Errorf("events %q", events)
	}
	if n := w.requests()["patch configmaps"]; n != 2*5 { // each is refused first, which names the rogue
		t.Errorf("%d PATCHes of ConfigMaps, want two for each of 5 corrections", n)
	}
	w.want("status", string(w.unit("app").Rollout.Status), string(rollout.Done))
	fights, err := w.store.Fights()
	w.must(err)
	if len(fights) != 1 || fights[0].Rounds != 1 {
		t.Fatalf("fights %+v", fights)
	}

	w.stop()
	w.start()
	for range 5 { // within the pause
		w.pass()
		pause(t)
	}
	if n := w.requests()["patch configmaps"]; n != 0 {
		t.Errorf("%d PATCHes of ConfigMaps during the pause", n)
	}
	w.now = fights[0].Until
	w.until("the second round", func() bool {
		fights, err = w.store.Fights()
		w.must(err)
		return len(fights) == 1 && fights[0].Rounds == 2
	})
	if pause := fights[0].Until.Sub(w.now); pause < 110*time.Second || pause > 2*time.Minute {
		t.Errorf("the second pause is %s", pause)
	}
	if n := w.requests()["patch configmaps"]; n != 2 {
		t.Errorf("%d PATCHes of ConfigMaps in the second round, want two for the one correction", n)
	}
	stop()
	w.now = fights[0].Until
	w.until("the correction", func() bool { return w.image("dev-1/b", "one") == "registry.example.com/app:1" && w.drifts() == "" })
}

// TestAFightIsTakenUpByOrder: who stopped the other writer need not wait for the pause.
func TestAFightIsTakenUpByOrder(t *testing.T) {
	for _, verb := range []order.Verb{order.Reconcile, order.Retry} {
		t.Run(string(verb), func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.watching()
				w.tick = 10 * time.Millisecond
				stop := w.rogue("dev-1/b", "one")
				w.until("the fight", func() bool { return strings.Contains(w.drifts(), " fight ") })
				stop()
				began := w.now
				w.give(order.Order{Verb: verb, Scope: order.Scope{Target: "dev-2"}})
				for range 20 {
					w.pass()
				}
				w.want("after an order about another cluster", w.image("dev-1/b", "one"), "stolen")
				w.give(order.Order{Verb: verb, Scope: order.Scope{Unit: "services/app"}})
				w.until("the correction", func() bool {
					return w.image("dev-1/b", "one") == "registry.example.com/app:1" && w.drifts() == ""
				})
				if took := w.now.Sub(began); took > 30*time.Second {
					t.Errorf("it waited for %s", took)
				}
			})
		})
	}
}

// TestFightEndsWhenGitChangesTheObject: the new content is sent at once.
func TestFightEndsWhenGitChangesTheObject(t *testing.T) {
	simulated(t, testFightEndsWhenGitChangesTheObject)
}

func testFightEndsWhenGitChangesTheObject(t *testing.T, w *world) {
	w.watching()
	w.tick = 10 * time.Millisecond
	stop := w.rogue("dev-2/c", "one")
	w.until("the fight", func() bool { return strings.Contains(w.drifts(), " fight ") })
	w.tick = 0
	stop()
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 2)
	w.want("data", w.image("dev-2/c", "one"), "registry.example.com/app:2")
	w.want("drift", w.drifts(), "")
	fights, err := w.store.Fights()
	w.must(err)
	if len(fights) != 0 {
		t.Errorf("fights %+v", fights)
	}
	if events := w.events("app", "fight over"); len(events) != 1 {
		t.Errorf("events %q", events)
	}
}

// TestWatchLeavesAloneWhatIsOff: an edit where nobody wants to know sends
// nothing and is not found; elsewhere it is.
func TestWatchLeavesAloneWhatIsOff(t *testing.T) { simulated(t, testWatchLeavesAloneWhatIsOff) }

func testWatchLeavesAloneWhatIsOff(t *testing.T, w *world) {
	w.policy("app", `{drift: [{match: {labels: {site: two}}, mode: "off"}]}`)
	w.commit()
	w.watching()
	w.audit()
	w.edit("dev-2/c", configMaps, "one", data, "kubectl-edit")
	for range 10 {
		w.pass()
		pause(t)
	}
	if got := w.asked(); len(got) > 0 {
		t.Errorf("sent %v", got)
	}
	w.want("data", w.image("dev-2/c", "one"), "stolen")
	w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit")
	w.until("the correction", func() bool { return w.image("dev-1/b", "one") == "registry.example.com/app:1" && w.drifts() == "" })
	w.want("data", w.image("dev-2/c", "one"), "stolen")
}

// TestWatchTakesUpWhatWasLeft: drift that was not to be corrected when a watch saw it, or
// that nobody looked at, is corrected as soon as it may be. There is no schedule.
func TestWatchTakesUpWhatWasLeft(t *testing.T) {
	for name, test := range map[string]struct{ left, taken func(*world) }{
		"reported": {
			func(w *world) { w.policy("app", `{drift: [{mode: report}]}`) },
			func(w *world) { w.policy("app", `{drift: [{mode: correct}]}`) },
		},
		"off": {
			func(w *world) { w.policy("app", `{drift: [{mode: "off"}]}`) },
			func(w *world) { w.policy("app", `{drift: [{mode: correct}]}`) },
		},
		"ignored": {
			func(w *world) { w.policy("app", `{ignore: [{kind: ConfigMap, fields: [/data/image]}]}`) },
			func(w *world) { w.policy("app", `{drift: [{mode: correct}]}`) },
		},
		"masked": {
			func(w *world) {
				w.give(order.Order{Verb: order.Mask, Scope: order.Scope{Unit: "services/app"}, Reason: "we look into it"})
			},
			func(w *world) { w.give(order.Order{Verb: order.Unmask, Scope: order.Scope{Unit: "services/app"}}) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.watching()
				test.left(w)
				w.commit()
				w.until("rest", w.quiet)
				w.edit("dev-1/b", configMaps, "one", data, "kubectl-edit")
				for range 10 {
					w.pass()
					pause(t)
				}
				w.want("data", w.image("dev-1/b", "one"), "stolen")
				test.taken(w)
				w.commit()
				w.until("the correction", func() bool { return w.quiet() && w.image("dev-1/b", "one") != "stolen" && w.drifts() == "" })
			})
		})
	}
}
