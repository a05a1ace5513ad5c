// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/rollout"
)

func (w *world) troubles() string {
	w.Helper()
	troubles, err := w.store.Conditions()
	w.must(err)
	var lines []string
	for _, t := range troubles {
		lines = append(lines, fmt.Sprintf("%s %s: %s", t.Since.Format("15:04"), t.About, t.Text))
	}
	return strings.Join(lines, "\n")
}

// TestTroublesAreKnown to whoever reads the state, since when they are there, also
// over a restart, and not any longer than that.
func TestTroublesAreKnown(t *testing.T) { simulated(t, testTroublesAreKnown) }

func testTroublesAreKnown(t *testing.T, w *world) {
	w.until("the canary", func() bool {
		return w.unit("app") != nil && w.unit("app").Targets["dev-1/a"].Health == rollout.HealthGood
	})
	w.want("troubles", w.troubles(), "")

	w.write("services/late/late.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: late}\nspec: {imag: x}\n")
	w.commit()
	w.pass()
	if got := w.troubles(); !strings.Contains(got, " unit services/late: not released yet: services/late/late.yaml:4:") {
		t.Errorf("a new unit with a problem: %q", got)
	}
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/late")))
	old, err := os.ReadFile(filepath.Join(w.repo(), "fleet/fleet.yaml"))
	w.must(err)
	w.write("fleet/fleet.yaml", "kind: Cluster\n")
	w.commit()
	from := w.now.Format("15:04")
	w.pass()
	if got := w.troubles(); !strings.HasPrefix(got, from+" commit ") || !strings.Contains(got, ": not taken: fleet/fleet.yaml:1:1: ") {
		t.Errorf("a fleet that cannot be read: %q", got)
	}
	held := w.troubles()
	w.now = w.now.Add(time.Hour)
	w.stop()
	w.start()
	w.pass()
	w.want("after a restart", w.troubles(), held)

	w.must(os.Rename(w.repo(), w.repo()+"-away"))
	w.now = w.now.Add(time.Hour)
	w.pass()
	lines := strings.Split(w.troubles(), "\n")
	if len(lines) != 2 || lines[0] != held || !strings.HasPrefix(lines[1], w.now.Format("15:04")+" git: ") {
		t.Errorf("Git away as well: %q", lines)
	}
	w.must(os.Rename(w.repo()+"-away", w.repo()))
	w.write("fleet/fleet.yaml", string(old))
	w.commit()
	w.now = w.now.Add(time.Hour)
	w.pass()
	w.want("in the end", w.troubles(), "")
}

// TestUnreachedClusters: it is stored which clusters cannot be looked at, and not any longer
// than that, nor once they left the fleet.
func TestUnreachedClusters(t *testing.T) { simulated(t, testUnreachedClusters) }

func testUnreachedClusters(t *testing.T, w *world) {
	unreached := func() string {
		clusters, err := w.store.Unreached()
		w.must(err)
		return strings.Join(clusters, " ")
	}
	w.release()
	w.want("while all is well", unreached(), "")
	w.intercept("dev-2", func(out http.ResponseWriter, _ *http.Request) bool {
		out.WriteHeader(http.StatusUnauthorized)
		return true
	})
	w.now = w.now.Add(24 * time.Hour) // for the sweep
	w.until("the refusal", func() bool { return unreached() == "dev-2" })
	if got := w.troubles(); !strings.Contains(got, "cluster dev-2: ") {
		t.Errorf("conditions: %q", got)
	}
	w.simulated["dev-2"].Fault = func(r *http.Request) (*http.Response, error) {
		if strings.Contains(r.URL.Path, "/leases/") {
			return nil, nil
		}
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("that nothing answers", func() bool { return strings.Contains(w.troubles(), "connection refused") })
	w.leave()
	w.want("once it left the fleet", unreached(), "")
	if got := w.troubles(); strings.Contains(got, "cluster dev-2: ") {
		t.Errorf("conditions once it left the fleet: %q", got)
	}
	w.write("fleet/fleet.yaml", fleetYAML)
	w.commit()
	w.simulated["dev-2"].Fault = nil
	w.until("the end of it", func() bool { return unreached() == "" })
}
