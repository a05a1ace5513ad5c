// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/swell-sh/swell/config"
)

// TestOwnDeletionsAreNoDrift: what swell deletes is not reported as drift nor put
// back, while it is on its way out and when it is gone, however a look comes upon
// it: a namespace that was approved to go, of a unit that goes and of one that
// stays, and an object with a finalizer. What is wanted again meanwhile comes back.
func TestOwnDeletionsAreNoDrift(t *testing.T) {
	for _, mode := range []string{"correct", "report"} {
		t.Run(mode, func(t *testing.T) {
			simulated(t, func(t *testing.T, w *world) {
				w.write("services/swell.yaml", strings.Replace(read(t, w.repo(), "services/swell.yaml"), "spec: {", "spec: {drift: [{mode: "+mode+"}], ", 1))
				w.sweeping(config.Drift{Watch: true})
				ns := w.stateful()
				w.release()
				stuck := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
					"metadata": map[string]any{"name": "theirs", "finalizers": []any{"example.com/wait"}}}}
				_, err := w.client("dev-2").Resource(configMaps).Namespace(ns).Create(t.Context(), stuck, metav1.CreateOptions{})
				w.must(err)
				w.patch(configMaps, w.tenant+"-c", "one", `{"metadata":{"finalizers":["example.com/wait"]}}`)
				w.app("app", "1")
				w.drop("data")
				w.approve(w.plan())
				w.until("the tombstones", w.soon(func() bool {
					return strings.Contains(w.unit("data").Targets["dev-2/c"].Reason, "Namespace/"+ns+": terminating") && strings.Contains(w.unit("app").Targets["dev-2/c"].Reason, "one: terminating")
				}))
				w.nextSweep()
				w.patch(configMaps, ns, "theirs", `{"metadata":{"finalizers":null}}`)
				w.until("the end of the namespace", func() bool {
					_, err := w.client("dev-2").Resource(namespaces).Get(t.Context(), ns, metav1.GetOptions{})
					return err != nil
				})
				w.nextSweep()
				w.until("the end of the unit", w.soon(func() bool { return w.unit("data") == nil }))

				w.app("app", "1", "one")
				w.commit()
				w.pass()
				w.patch(configMaps, w.tenant+"-c", "one", `{"metadata":{"finalizers":null}}`)
				w.until("the object that is wanted again", w.soon(func() bool { return w.there("one") == 3 && w.resting() }))
				w.nextSweep()
				w.want("drifts", w.drifts(), "")
				for _, unit := range []string{"data", "app", "space"} {
					for _, kind := range []string{"drifted", "reported", "corrected", "restored"} {
						if events := w.events(unit, kind); len(events) > 0 {
							t.Errorf("%s: %s: %q", unit, kind, events)
						}
					}
				}
			})
		})
	}
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
