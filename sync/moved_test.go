// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// theirs makes a ConfigMap of somebody else on dev-2/c: a bundle that wants it is
// refused there.
func (w *world) theirs(name string) {
	w.Helper()
	_, err := w.client("dev-2").Resource(configMaps).Namespace(w.tenant+"-c").Patch(w.Context(), name, types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"},"data":{"image":"theirs"}}`), metav1.PatchOptions{FieldManager: "other"})
	w.must(err)
}

// owners says for each target which unit wrote the ConfigMap "moving" last, and
// with which tag.
func (w *world) owners() string {
	w.Helper()
	var all []string
	for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} {
		live := w.get(target, configMaps, "moving")
		if live == nil {
			all = append(all, "-")
			continue
		}
		image, _, err := unstructured.NestedString(live.Object, "data", "image")
		w.must(err)
		all = append(all, strings.TrimPrefix(live.GetAnnotations()["swell.sh/unit"], "services/")+" "+strings.TrimPrefix(image, "registry.example.com/app:"))
	}
	return strings.Join(all, ", ")
}

// moving are the UIDs of the ConfigMap "moving".
func (w *world) moving() string {
	uids := ""
	for _, o := range w.uids() {
		if strings.Contains(o, " moving ") {
			uids += o + "\n"
		}
	}
	return uids
}

// shared releases "other", which has the ConfigMap "moving", beside "app".
func (w *world) shared() {
	w.Helper()
	w.app("other", "1", "moving")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	w.want("at first", w.owners(), "other 1, other 1, other 1")
}

// settled makes passes until nothing is done for half an hour but to look.
func (w *world) settled() {
	w.Helper()
	w.idle(30 * time.Minute)
	for range 3 {
		for _, a := range w.pass().Actions {
			u := w.daemon.State().Units[a.Unit]
			if again := a.Result == rollout.Refused && u.Rollout.Stalled; a.Kind == rollout.Apply && !again { // what has nothing to go back to is tried again
				w.Errorf("written again: %v", a)
			}
		}
		w.now = w.now.Add(10 * time.Minute)
	}
}

// TestRollbackLeavesWhatMoved: an object moves to another unit, and the one that
// had it fails and is put back. It stays with the other one, whoever corrects
// what; the history and the target say so. When Git gives it back, it comes back.
func TestRollbackLeavesWhatMoved(t *testing.T) { simulated(t, testRollbackLeavesWhatMoved) }

func testRollbackLeavesWhatMoved(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.shared()
	before := w.moving()
	w.theirs("theirs")
	w.app("other", "1", "theirs")
	w.app("app", "2", "one", "moving")
	w.commit()
	w.until("the canary of app", w.canary("app", 2))
	w.until("the canary of other", w.canary("other", 2))
	w.until("the prune of the canary", func() bool { return !w.unit("other").Targets["dev-1/a"].Leftovers })
	w.now = w.now.Add(10 * time.Minute)
	w.until("the rollback", w.is("other", 2, rollout.RolledBack))
	w.until("app", w.is("app", 2, rollout.Done))
	w.settled()
	w.want("after the rollback", w.owners(), "app 2, app 2, app 2")
	for _, target := range []config.TargetName{"dev-1/a", "dev-1/b", "dev-2/c"} {
		said := fmt.Sprintf("ConfigMap/%s-%s/moving moved to unit services/app", w.tenant, target[len(target)-1:])
		if history := w.history("services/other", target); !strings.Contains(history, "moved: "+said) {
			t.Errorf("%s: the history does not say %q:\n%s", target, said, history)
		}
		if reason := w.unit("other").Targets[target].Reason; !strings.Contains(reason, said) {
			t.Errorf("%s: the target says %q, want %q", target, reason, said)
		}
	}

	w.must(w.client("dev-1").Resource(deployments).Namespace(w.tenant+"-a").Delete(t.Context(), "other", metav1.DeleteOptions{}))
	w.nextSweep()
	w.until("the correction", func() bool { return w.tag("dev-1/a", "other") == "1" && !w.unit("other").Targets["dev-1/a"].Drifted })
	w.settled()
	w.want("after a correction", w.owners(), "app 2, app 2, app 2")
	w.edit("dev-1/a", configMaps, "moving", data, "kubectl-edit")
	w.nextSweep()
	w.until("the correction of what moved", func() bool { return w.owners() == "app 2, app 2, app 2" })

	w.git("revert", "--no-edit", "HEAD")
	w.soaked("app", 3)
	w.until("the way back to other", w.soon(func() bool { return w.owners() == "other 1, other 1, other 1" }))
	w.until("the end", w.is("other", 3, rollout.Done))
	w.settled()
	w.want("the objects", w.moving(), before)
}

// sharedOnTwo releases "other", which has the ConfigMap "moving", beside "next" on
// dev-2/c alone.
func (w *world) sharedOnTwo() (uid types.UID) {
	w.Helper()
	w.app("other", "1", "moving")
	w.app("next", "1")
	for _, unit := range []string{"other", "next"} {
		w.policy(unit, "{placement: {match: {labels: {site: two}}}}")
	}
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	w.until("next", w.is("next", 1, rollout.Done))
	w.theirs("theirs")
	w.theirs("theirs-too")
	return w.get("dev-2/c", configMaps, "moving").GetUID()
}

// TestMovedBetweenTwoThatFail: the unit that the object moved to fails after the
// one that had it was put back: now it is that one's again. So it is when the other
// unit only drops it.
func TestMovedBetweenTwoThatFail(t *testing.T) {
	for name, next := range map[string]func(w *world){
		"fails": func(w *world) {
			w.now = w.now.Add(2 * time.Minute)
			w.until("the rollback of next", w.is("next", 2, rollout.RolledBack))
		},
		"drops it": func(w *world) {
			w.app("next", "1")
			w.commit()
			w.until("next", w.is("next", 3, rollout.Done))
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				before := w.sharedOnTwo()
				w.app("other", "1", "theirs")
				w.app("next", "broken", "moving")
				w.commit()
				w.until("the rollback of other", w.is("other", 2, rollout.RolledBack))
				w.want("while next is on its way", w.owners(), "-, -, next broken")
				next(w)
				w.until("the way back", w.soon(func() bool { return w.owners() == "-, -, other 1" }))
				w.settled()
				w.want("at the end", w.owners(), "-, -, other 1")
				w.want("the object", string(w.get("dev-2/c", configMaps, "moving").GetUID()), string(before))
			})
		})
	}
}

// TestMovedAndBothFailAtOnce: both units are put back in the same pass, and the
// object with them.
func TestMovedAndBothFailAtOnce(t *testing.T) { simulated(t, testMovedAndBothFailAtOnce) }

func testMovedAndBothFailAtOnce(t *testing.T, w *world) {
	before := w.sharedOnTwo()
	w.app("other", "2", "theirs")
	w.app("next", "2", "moving", "theirs-too")
	w.commit()
	w.until("the rollback of other", w.is("other", 2, rollout.RolledBack))
	w.until("the rollback of next", w.is("next", 2, rollout.RolledBack))
	w.until("the way back", w.soon(func() bool { return w.owners() == "-, -, other 1" }))
	w.settled()
	w.want("at the end", w.owners(), "-, -, other 1")
	w.want("the object", string(w.get("dev-2/c", configMaps, "moving").GetUID()), string(before))
}

// TestMovedToAUnitThatFails: the unit that the object moved to fails, with nothing
// to go back to, and the one that had it goes on without: it stays for as long as
// Git wants it, and no longer.
func TestMovedToAUnitThatFails(t *testing.T) { simulated(t, testMovedToAUnitThatFails) }

func testMovedToAUnitThatFails(t *testing.T, w *world) {
	w.shared()
	w.theirs("theirs")
	before := w.moving()
	w.app("other", "2")
	w.app("late", "2", "moving", "theirs")
	w.policy("late", "{placement: {match: {labels: {site: two}}}}")
	w.app("app", "1", "one", "moving")
	w.policy("app", "{placement: {match: {labels: {site: one}}}}")
	w.commit()
	w.approvePlan() // app leaves dev-2/c
	w.soaked("app", 2)
	w.until("the failure", w.is("late", 1, rollout.Held))
	w.until("other", w.is("other", 2, rollout.Done))
	w.settled()
	w.want("after the failure", w.owners(), "app 1, app 1, late 2")
	w.want("the objects", w.moving(), before)
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/late")))
	w.commit()
	w.until("the removal", w.soon(func() bool { return w.unit("late") == nil }))
	w.want("after the removal", w.owners(), "app 1, app 1, -")
}

// TestMovedFromABrokenUnit: an object moves away from a unit with a problem. When
// the last good bundle of that is written again, the object is left out.
func TestMovedFromABrokenUnit(t *testing.T) { simulated(t, testMovedFromABrokenUnit) }

func testMovedFromABrokenUnit(t *testing.T, w *world) {
	w.sweeping(config.Drift{})
	w.shared()
	w.write("services/other/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: other}\nspec: {imgae: x}\n")
	w.app("app", "2", "one", "moving")
	w.commit()
	w.soaked("app", 2)
	w.want("moved", w.owners(), "app 2, app 2, app 2")
	w.must(w.client("dev-2").Resource(deployments).Namespace(w.tenant+"-c").Delete(t.Context(), "other", metav1.DeleteOptions{}))
	w.nextSweep()
	w.until("the correction", func() bool { return w.tag("dev-2/c", "other") == "1" && !w.unit("other").Targets["dev-2/c"].Drifted })
	w.want("after it", w.owners(), "app 2, app 2, app 2")
}
