// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/rollout"
)

// status answers like an API server.
func status(code int, reason, message string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Audit-Id", "1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"` + strings.ReplaceAll(message, `"`, `\"`) + `"}`))
	}
}

// sitsOut waits until a target of the second wave is in trouble, for far longer than
// the wave's timeout, and expects that nothing is turned back for it and that
// the other target of the wave goes on.
func (w *world) sitsOut(tag, reason string) {
	w.Helper()
	inTrouble := func() bool {
		t := w.unit("app").Targets["dev-2/c"]
		return (t.Trouble == rollout.TroubleUnavailable || t.Trouble == rollout.TroubleUnreachable) && strings.Contains(t.Reason, reason)
	}
	w.until("the trouble: "+reason, inTrouble)
	w.until("the other target of the wave", func() bool {
		return w.tag("dev-1/b", "app") == tag && w.unit("app").Targets["dev-1/b"].Health == rollout.HealthGood
	})
	for range 20 {
		w.now = w.now.Add(10 * time.Minute)
		w.pass()
	}
	u := w.unit("app")
	if !inTrouble() || u.Rollout.Status != rollout.Progressing || len(u.Quarantine) > 0 || w.tag("dev-1/a", "app") != tag {
		w.Fatalf("%s: %d in quarantine\n%s", reason, len(u.Quarantine), w.describe())
	}
}

// TestDistressIsNoVerdict: an API server that cannot write, for whatever reason and
// however long, is waited for. The release goes on by itself when it can again.
func TestDistressIsNoVerdict(t *testing.T) {
	var fault atomic.Pointer[func(http.ResponseWriter)]
	var reads atomic.Bool
	simulatedWith(t, func(w *world) {
		w.intercept("dev-2", func(rw http.ResponseWriter, r *http.Request) bool {
			about := r.Method == http.MethodPatch && !reads.Load() || r.Method == http.MethodGet && reads.Load() && strings.Contains(r.URL.Path, "/deployments/")
			answer := fault.Load()
			if answer == nil || !about {
				return false
			}
			(*answer)(rw)
			return true
		})
	}, func(t *testing.T, w *world) { testDistressIsNoVerdict(w, &fault, &reads) })
}

func testDistressIsNoVerdict(w *world, fault *atomic.Pointer[func(http.ResponseWriter)], reads *atomic.Bool) {
	w.release()
	const webhook = `Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post "https://x": context deadline exceeded`
	for i, test := range []struct {
		reason string
		answer func(http.ResponseWriter)
		reads  bool // it is health that cannot be read
	}{
		{"database space exceeded", status(500, "", "etcdserver: mvcc: database space exceeded"), false},
		{"leader changed", status(500, "", "etcdserver: leader changed"), false},
		{"failed calling webhook", status(500, "InternalError", webhook), false},
		{"exceeded quota", status(403, "Forbidden", `configmaps "x" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1`), false},
		{"not yet ready", status(403, "Forbidden", `configmaps "x" is forbidden: not yet ready to handle request`), false},
		{"cannot patch", status(403, "Forbidden", `configmaps "x" is forbidden: User "swell" cannot patch resource "configmaps" in API group "" in the namespace "shop"`), false},
		{"has been modified", status(409, "Conflict", "the object has been modified; please apply your changes to the latest version"), false},
		{"HTML page", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}, false},
		{"cannot get", status(403, "Forbidden", `deployments.apps "app" is forbidden: User "swell" cannot get resource "deployments" in API group "apps"`), true},
		{"no leader", status(500, "", "etcdserver: no leader"), true},
	} {
		tag := fmt.Sprint(i + 2)
		w.app("app", tag, "one")
		w.commit()
		w.until("the canary", w.canary("app", i+2))
		w.until("the others", w.resting)
		reads.Store(test.reads)
		fault.Store(&test.answer)
		w.now = w.now.Add(10 * time.Minute)
		w.sitsOut(tag, test.reason)
		fault.Store(nil)
		w.now = w.now.Add(10 * time.Minute) // a retry is due by then
		w.until("the end of "+test.reason, w.is("app", i+2, rollout.Done))
		w.want("images", w.tags("app"), tag+" "+tag+" "+tag)
	}
}

// TestARollbackWaitsForAServerInDistress: what has to be put back where the server
// cannot write is put back when it can.
func TestARollbackWaitsForAServerInDistress(t *testing.T) {
	var sick atomic.Bool
	full := status(500, "", "etcdserver: mvcc: database space exceeded")
	simulatedWith(t, func(w *world) {
		w.intercept("dev-1", func(rw http.ResponseWriter, r *http.Request) bool {
			if !sick.Load() || r.Method != http.MethodPatch {
				return false
			}
			full(rw)
			return true
		})
	}, func(t *testing.T, w *world) { testARollbackWaitsForAServerInDistress(t, w, &sick) })
}

func testARollbackWaitsForAServerInDistress(t *testing.T, w *world, sick *atomic.Bool) {
	w.release()
	w.app("app", "broken", "one")
	w.commit()
	w.until("the broken one", func() bool { return w.tag("dev-1/a", "app") == "broken" })
	sick.Store(true)
	w.until("the way back", w.is("app", 2, rollout.RollingBack))
	w.until("the trouble", func() bool { return w.unit("app").Targets["dev-1/a"].Trouble == rollout.TroubleUnavailable })
	for range 20 {
		w.now = w.now.Add(10 * time.Minute)
		w.pass()
	}
	if u := w.unit("app"); u.Rollout.Status != rollout.RollingBack || !strings.Contains(u.Rollout.Reason, "space exceeded") {
		t.Fatal(w.describe())
	}
	sick.Store(false)
	w.now = w.now.Add(10 * time.Minute)
	w.until("the end", w.is("app", 2, rollout.RolledBack))
	w.want("images", w.tags("app"), "1 1 1")
}

// TestRightsCutInMidWave: rights that are taken from swell's account in one cluster
// are that cluster's matter, and giving them back is enough.
func TestRightsCutInMidWave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	account := w.tenant + "-swell"
	_, token := w.account("dev-2", account, "cluster-admin")
	file := filepath.Join(w.dir, "kubeconfig")
	w.place(file, w.kubeconfig("dev-2", token))
	w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", Kubeconfig: file, Context: "dev-2"}
	w.stop()
	w.start()
	w.release()
	for i, role := range []string{"view", ""} { // it may still read, or nothing at all
		tag := fmt.Sprint(i + 2)
		w.app("app", tag, "one")
		w.commit()
		w.until("the canary", w.canary("app", i+2))
		w.until("the others", w.resting)
		w.remove("dev-2", clusterRoleBindings, "", account)
		if role != "" {
			w.bindCluster("dev-2", account+"-view", role, account)
		}
		w.now = w.now.Add(10 * time.Minute)
		w.sitsOut(tag, "is forbidden: User ")
		w.bindCluster("dev-2", account, "cluster-admin", account)
		w.until("the end", w.is("app", i+2, rollout.Done))
		w.want("images", w.tags("app"), tag+" "+tag+" "+tag)
		if role != "" {
			w.remove("dev-2", clusterRoleBindings, "", account+"-view")
		}
	}
}

// TestATenantsRightsCutInMidWave: the same for the account of a tenant.
func TestATenantsRightsCutInMidWave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tenants()
	w.commit()
	w.start()
	w.until("the canary", w.canary("app", 1))
	w.soaked("app", 1)
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.until("the others", w.resting)
	w.remove("dev-2", roleBindings, w.tenant+"-c", "tenant")
	w.now = w.now.Add(10 * time.Minute)
	w.sitsOut("2", "is forbidden: User ")
	w.bind("dev-2", w.tenant+"-c")
	w.until("the end", w.is("app", 2, rollout.Done))
	w.want("images", w.tags("app"), "2 2 2")
}
