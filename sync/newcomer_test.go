// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"

	"github.com/swell-sh/swell/sync/rollout"
)

// TestATenantThatTakesWhatAnotherHas: a unit that brings an object which another tenant's unit was released
// with is held, also by later commits and after a restart, while the other one goes on. When that
// one gives the object up, the newcomer gets it.
func TestATenantThatTakesWhatAnotherHas(t *testing.T) {
	simulatedWith(t, known, testATenantThatTakesWhatAnotherHas)
}

func testATenantThatTakesWhatAnotherHas(t *testing.T, w *world) {
	w.release()
	w.write("services/rival/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: rival}\n"+
		"spec: {tenant: rival, placement: {topology: cell, match: {labels: {ring: canary}}}}\n")
	w.write("services/rival/x.yaml", "apiVersion: v1\nkind: ConfigMap\n"+
		"metadata: {name: one, namespace: "+w.tenant+"-a}\ndata: {from: rival}\n")
	w.commit()
	held := func(when string) {
		t.Helper()
		text := w.pass().Problems.String()
		isHeld := w.unit("rival") == nil && strings.Contains(text, "which had it before")
		if !isHeld || strings.Contains(text, "services/app/app.yaml:1:1: ") {
			t.Fatalf("%s:\n%s\n%s", when, text, w.describe())
		}
	}
	held("at first")
	for n, tag := range []string{"2", "3"} {
		w.app("app", tag, "one", "two")
		w.commit()
		if tag == "3" {
			w.stop()
			w.start()
		}
		held("with image " + tag)
		w.soaked("app", n+2)
	}
	w.want("images", w.tags("app"), "3 3 3")
	w.stop()
	w.start()
	held("after a restart")
	w.app("app", "3", "two")
	w.commit()
	w.until("the newcomer", w.is("rival", 1, rollout.Done))
}
