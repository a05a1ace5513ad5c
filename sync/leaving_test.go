// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config"
	standing "github.com/swell-sh/swell/sync/status"
)

// TestAnObjectThatIsBeingDeleted: somebody deletes an object, which waits for a finalizer. That is drift, with what it
// waits for; nothing is written meanwhile; and once it is gone it is made anew.
func TestAnObjectThatIsBeingDeleted(t *testing.T) { simulated(t, testAnObjectThatIsBeingDeleted) }

func testAnObjectThatIsBeingDeleted(t *testing.T, w *world) {
	w.release()
	w.sweeping(config.Drift{})
	ns := w.tenant + "-c"
	w.patch(configMaps, ns, "one", `{"metadata":{"finalizers":["example.com/wait"]}}`)
	w.must(w.client("dev-2").Resource(configMaps).Namespace(ns).Delete(t.Context(), "one", metav1.DeleteOptions{}))
	uid := w.get("dev-2/c", configMaps, "one").GetUID()
	w.nextSweep()
	w.want("status", string(w.standing("app")), string(standing.Drifted))
	const want = "/one: deleted by somebody: terminating, waits for example.com/wait"
	if reason := w.status("app").Reason; !strings.Contains(reason, want) {
		t.Errorf("the reason is %q, want %q in it", reason, want)
	}
	w.requests()
	w.idle(time.Hour)
	for request, n := range w.requests() {
		if strings.HasPrefix(request, "patch configmaps") || strings.HasPrefix(request, "create configmaps") {
			t.Errorf("%d of %s", n, request)
		}
	}
	w.patch(configMaps, ns, "one", `{"metadata":{"finalizers":null}}`)
	w.nextSweep()
	w.until("that it is there again", func() bool {
		return w.get("dev-2/c", configMaps, "one") != nil && w.standing("app") == standing.Done
	})
	if live := w.get("dev-2/c", configMaps, "one"); live.GetUID() == uid {
		t.Error("it is the one that was deleted")
	}
}
