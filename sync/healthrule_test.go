// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// stateRule makes ConfigMaps healthy when their annotation "state" has a value.
func (w *world) stateRule(state string) {
	w.write("fleet/health.yaml", fmt.Sprintf(`apiVersion: swell.sh/v1
kind: HealthRule
metadata: {name: state}
spec:
  match: {kind: ConfigMap}
  healthy: object.metadata.annotations.state == '%[1]s'
  failed: object.metadata.annotations.state == 'dead'
  reason: "'%[1]s is wanted, got ' + object.metadata.annotations.state"
`, state))
}

func (w *world) setState(target, name, state string) {
	w.Helper()
	cluster, cell, _ := strings.Cut(target, "/")
	_, err := w.client(cluster).Resource(configMaps).Namespace(w.tenant+"-"+cell).Patch(w.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"state":"`+state+`"}}}`), metav1.PatchOptions{})
	w.must(err)
}

// TestAWaveWaitsForAHealthRule: the newest commit's rule holds for what was
// released before it too, and releases nothing itself.
func TestAWaveWaitsForAHealthRule(t *testing.T) { simulated(t, testAWaveWaitsForAHealthRule) }

func testAWaveWaitsForAHealthRule(t *testing.T, w *world) {
	w.stateRule("up")
	w.commit()
	says := func(target config.TargetName, text string) func() bool {
		return func() bool {
			u := w.unit("app")
			return u != nil && u.Targets[target] != nil && u.Targets[target].Health == rollout.HealthProgressing && strings.Contains(u.Targets[target].Reason, text)
		}
	}
	one := "ConfigMap/" + w.tenant + "-a/one: "
	w.until("the rule's word", says("dev-1/a", one+`HealthRule "state": healthy: no such key: state`))
	w.setState("dev-1/a", "one", "starting")
	w.until("the reason", says("dev-1/a", one+"up is wanted, got starting"))

	w.stateRule("ready")
	w.commit()
	for _, a := range w.until("the new rule", says("dev-1/a", one+"ready is wanted, got starting")) {
		if a.Kind != rollout.Check {
			t.Errorf("a rule released something: %+v", a)
		}
	}
	w.setState("dev-1/a", "one", "up")
	w.until("the new rule", says("dev-1/a", one+"ready is wanted, got up"))

	// While the fleet has a problem, and nobody knows an earlier one any more, the
	// rules are those that the bundle came with.
	w.stateRule("ready'")
	w.commit()
	w.stop()
	w.setState("dev-1/a", "one", "starting")
	w.start()
	w.until("the rule of the bundle's commit", says("dev-1/a", one+"up is wanted, got starting"))
	if s := w.daemon.Snapshot(); !s.Held || !strings.Contains(s.Problems.String(), "fleet/health.yaml:6:12: spec.healthy: ") {
		t.Errorf("held: %v: %s", s.Held, s.Problems)
	}
	w.want("images", w.tags("app"), "1  ")

	w.stateRule("up")
	w.commit()
	w.setState("dev-1/a", "one", "up")
	w.until("the canary", func() bool { return w.unit("app").Targets["dev-1/a"].Health == rollout.HealthGood })
	w.now = w.now.Add(10 * time.Minute)
	w.until("the next wave", says("dev-2/c", `HealthRule "state": healthy: no such key: state`))
	w.want("images", w.tags("app"), "1 1 1")
	w.setState("dev-1/b", "one", "up")
	w.setState("dev-2/c", "one", "up")
	w.until("the end", w.is("app", 1, rollout.Done))

	w.app("app", "2", "one")
	w.commit()
	w.until("another bundle", func() bool { return w.tag("dev-1/a", "app") == "2" })
	w.setState("dev-1/a", "one", "dead")
	w.until("the end of the rollout", w.is("app", 2, rollout.RollingBack))
	if why := w.unit("app").Rollout.Failure; !strings.Contains(why, one+"up is wanted, got dead") {
		t.Errorf("failed with %q", why)
	}
}
