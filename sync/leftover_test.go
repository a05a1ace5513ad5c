// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	standing "github.com/swell-sh/swell/sync/status"
)

// notToday is the answer of a webhook that keeps an object.
const notToday = `admission webhook "keep.example.com" denied the request: not today`

// denies has dev-2 refuse to delete objects whose path has a part.
func (w *world) denies(part, message string, now func() bool) {
	w.intercept("dev-2", func(rw http.ResponseWriter, r *http.Request) bool {
		if !now() || r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, part) {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusForbidden)
		w.must(json.NewEncoder(rw).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: message}))
		return true
	})
}

// TestADeletionThatIsDenied: what Git dropped lives on, because a webhook or a missing right
// keeps it, and nothing said so: the unit was done, and status ended with 0.
func TestADeletionThatIsDenied(t *testing.T) {
	for name, answer := range map[string]struct{ message, wants string }{
		"webhook": {notToday, "not today"},
		"right": {`configmaps "two" is forbidden: User "swell" cannot delete resource "configmaps" in API group "" in the namespace "x"`,
			"cannot delete"},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.app("app", "1", "one", "two")
				w.commit()
				w.release()
				denies := true
				w.denies("/configmaps/", answer.message, func() bool { return denies })
				w.app("app", "1", "one")
				w.commit()
				w.soaked("app", 2)
				w.idle(time.Hour)
				w.want("status", string(w.standing("app")), string(standing.Leftovers))
				reason := w.status("app").Reason
				for _, part := range []string{"target dev-2/c: ", "two", answer.wants} {
					if !strings.Contains(reason, part) {
						t.Errorf("the reason is %q, want %q in it", reason, part)
					}
				}
				if events := w.events("app", "not deleted"); len(events) != 1 || !strings.Contains(events[0], answer.wants) {
					t.Errorf("events %q", events)
				}
				denies = false
				w.until("the deletion", w.soon(func() bool { return w.there("two") == 0 && w.standing("app") == standing.Done }))
			})
		})
	}
}

// TestWhatIsLeftComesBack: nobody notices what becomes of an object that Git dropped and that
// was not deleted. When Git wants it again it is sent, also where Git wants what was sent before.
func TestWhatIsLeftComesBack(t *testing.T) { simulated(t, testWhatIsLeftComesBack) }

func testWhatIsLeftComesBack(t *testing.T, w *world) {
	w.app("app", "1", "one", "two")
	w.commit()
	w.release()
	before := w.get("dev-2/c", configMaps, "two").Object["data"]
	w.denies("/configmaps/", notToday, func() bool { return true })
	w.app("app", "1", "one")
	w.commit()
	w.until("the denial", w.soon(func() bool { return w.standing("app") == standing.Leftovers }))
	w.edit("dev-2/c", configMaps, "two", `{"data": null}`, "kubectl")
	w.app("app", "1", "one", "two")
	w.commit()
	w.until("the release", w.soon(func() bool { return w.unit("app").Rollout.ID == 3 && w.standing("app") == standing.Done }))
	if after := w.get("dev-2/c", configMaps, "two").Object["data"]; before == nil || !reflect.DeepEqual(after, before) {
		t.Errorf("data %v, want %v", after, before)
	}
}

// TestTheCauseOfADenialIsTold: what comes after a deletion that is denied waits for it, and
// does not hide why.
func TestTheCauseOfADenialIsTold(t *testing.T) { simulated(t, testTheCauseOfADenialIsTold) }

func testTheCauseOfADenialIsTold(t *testing.T, w *world) {
	const stays = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stays, namespace: NS}\n"
	const dropped = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: NS}\n" +
		"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: worker, namespace: NS}\n" +
		"spec:\n  replicas: 0\n  selector: {matchLabels: {a: b}}\n" +
		"  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'registry.example.com/x:1'}]}}\n"
	ns := w.tenant + "-c"
	w.onTwo("extra", strings.ReplaceAll(stays+dropped, "NS", ns))
	w.denies("/deployments/worker", notToday, func() bool { return true })
	w.write("services/extra/objects.yaml", strings.ReplaceAll(stays, "NS", ns))
	w.commit()
	w.approvePlan()
	w.until("the denial", w.soon(func() bool { return w.standing("extra") == standing.Leftovers }))
	if left := w.unit("extra").Targets["dev-2/c"].Left; !strings.Contains(left, "not today") || !strings.Contains(left, "and 1 more") {
		t.Errorf("left: %q", left)
	}
	if !w.exists(configMaps, ns, "a") {
		t.Error("what the workload may need is gone")
	}
}
