// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	standing "github.com/swell-sh/swell/sync/status"
)

// TestADeletionThatIsDenied: what Git dropped lives on, because a webhook or a missing right
// keeps it, and nothing said so: the unit was done, and status ended with 0.
func TestADeletionThatIsDenied(t *testing.T) {
	for name, answer := range map[string]struct {
		text  string
		wants string
	}{
		"webhook": {`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"admission webhook \"keep.example.com\" denied the request: not today"}`, "not today"},
		"right":   {`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"configmaps \"two\" is forbidden: User \"swell\" cannot delete resource \"configmaps\" in API group \"\" in the namespace \"x\""}`, "cannot delete"},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.app("app", "1", "one", "two")
				w.commit()
				w.release()
				denies := true
				w.intercept("dev-2", func(rw http.ResponseWriter, r *http.Request) bool {
					if !denies || r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/configmaps/") {
						return false
					}
					rw.Header().Set("Content-Type", "application/json")
					rw.WriteHeader(http.StatusForbidden)
					_, err := rw.Write([]byte(answer.text))
					w.must(err)
					return true
				})
				w.app("app", "1", "one")
				w.commit()
				w.soaked("app", 2)
				w.idle(time.Hour)
				w.want("status", string(w.standing("app")), string(standing.Leftovers))
				if reason := w.status("app").Reason; !strings.Contains(reason, "target dev-2/c: ") || !strings.Contains(reason, "two") || !strings.Contains(reason, answer.wants) {
					t.Errorf("the reason is %q", reason)
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

// TestTheCauseOfADenialIsTold: what comes after a deletion that is denied waits for it, and
// does not hide why.
func TestTheCauseOfADenialIsTold(t *testing.T) { simulated(t, testTheCauseOfADenialIsTold) }

func testTheCauseOfADenialIsTold(t *testing.T, w *world) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: NS}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: stays, namespace: NS}\n"
	const workload = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: worker, namespace: NS}\nspec: {replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: 'registry.example.com/x:1'}]}}}\n"
	ns := w.tenant + "-c"
	w.onTwo("extra", strings.ReplaceAll(config+workload, "NS", ns))
	w.intercept("dev-2", func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodDelete || !strings.Contains(r.URL.Path, "/deployments/worker") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusForbidden)
		_, err := rw.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"admission webhook \"keep.example.com\" denied the request: not today"}`))
		w.must(err)
		return true
	})
	w.write("services/extra/objects.yaml", strings.ReplaceAll("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stays, namespace: NS}\n", "NS", ns))
	w.commit()
	w.approvePlan()
	w.until("the denial", w.soon(func() bool { return w.standing("extra") == standing.Leftovers }))
	at := w.unit("extra").Targets["dev-2/c"]
	if !strings.Contains(at.Left, "not today") || !strings.Contains(at.Left, "and 1 more") {
		t.Errorf("left: %q", at.Left)
	}
	if !w.exists(configMaps, ns, "a") {
		t.Error("what the workload may need is gone")
	}
}
