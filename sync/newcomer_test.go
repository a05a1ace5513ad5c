// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
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
		w.forecast("app", "rival")
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

// forecast looks that the newest commit's forecast is about a unit, and that another one stays.
func (w *world) forecast(released, left config.UnitPath) {
	w.Helper()
	planner := &sync.Planner{Commits: w.source, Now: func() time.Time { return w.now }, Guard: config.DefaultGuard,
		Resolve: func(string) (config.Commit, error) {
			return w.daemon.State().Units["services/"+released].Rollout.Commit, nil
		}}
	f, err := planner.Forecast(w.Context(), w.store, "")
	w.must(err)
	var units, stay []config.UnitPath
	for _, unit := range f.Units {
		units = append(units, unit.Unit)
	}
	for _, unit := range f.Stays {
		stay = append(stay, unit.Unit)
	}
	want := [][]config.UnitPath{{"services/" + released}, {"services/" + left}}
	if diff := cmp.Diff(want, [][]config.UnitPath{units, stay}); diff != "" {
		w.Errorf("units of the forecast, and those that stay (-want +got):\n%s", diff)
	}
}
