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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/faults"
	"github.com/swell-sh/swell/sync/rollout"
)

// reachedBy makes the daemon reach a cluster by a configuration.
func (w *world) reachedBy(name string, cfg *rest.Config) {
	w.Helper()
	conf := clientcmdapi.NewConfig()
	conf.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	conf.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	conf.Contexts[name] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	text, err := clientcmd.Write(*conf)
	w.must(err)
	file := filepath.Join(w.dir, "kubeconfig-"+name)
	w.place(file, string(text))
	w.access[name] = config.ClusterAccess{Name: name, Kubeconfig: file, Context: name}
}

// behind puts a proxy for connections before a cluster, which is reached by cfg.
func (w *world) behind(name string, cfg *rest.Config) *faults.TCP {
	w.Helper()
	proxy, through := faults.NewTCP(w, cfg)
	w.reachedBy(name, through)
	return proxy
}

func (w *world) config(cluster string) *rest.Config {
	w.Helper()
	cfg, err := w.clusters.Config(cluster)
	w.must(err)
	return cfg
}

// TestASlowClusterHoldsNobodyUp: a cluster that black-holes, answers a byte a
// second, or refuses in the middle of a wave. The others are written, checked
// and recorded while nothing is known of it; when it is back it follows.
func TestASlowClusterHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]faults.Mode{"black hole": faults.Hole, "a byte a second": faults.Trickle, "refuses": faults.Refuse, "resets": faults.Reset} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			proxy := w.behind("dev-2", w.config("dev-2"))
			w.patience = 200 * time.Millisecond
			w.stop()
			w.start()
			w.release()
			w.app("app", "2", "one", "two")
			w.commit()
			w.until("the canary", w.canary("app", 2))
			proxy.Set(mode)
			w.now = w.now.Add(10 * time.Minute)
			w.until("the other target of the wave", func() bool {
				target := w.unit("app").Targets["dev-1/b"]
				return target.Health == rollout.HealthGood && target.Applied == target.Wanted
			})
			w.want("images", w.tag("dev-1/a", "app")+w.tag("dev-1/b", "app"), "22")
			if target := w.unit("app").Targets["dev-2/c"]; target.Applied == target.Wanted {
				t.Error("the slow cluster is taken for written")
			}
			proxy.Set(faults.Pass)
			w.until("the end, with the cluster back", w.is("app", 2, rollout.Done))
			w.want("images", w.tags("app"), "2 2 2")
			if w.get("dev-2/c", configMaps, "two") == nil {
				t.Error("a ConfigMap is missing on the cluster that was slow")
			}
		})
	}
}

// TestOthersAreRecordedMeanwhile: a cluster takes a request and thinks about it
// for as long as the test wants. Meanwhile the others are written, checked and
// recorded, another commit is brought to them, and no second job begins for the
// unit there: what it writes in the end is the newest.
func TestOthersAreRecordedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var hold atomic.Bool
	let := make(chan struct{})
	var now, most, gaveUp atomic.Int32
	cfg := faults.HTTP(t, w.config("dev-2"), func(rw http.ResponseWriter, r *http.Request, forward http.Handler) {
		if hold.Load() && r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/deployments/app") {
			most.Store(max(most.Load(), now.Add(1)))
			select {
			case <-let:
			case <-r.Context().Done():
				gaveUp.Add(1)
			}
			now.Add(-1)
		}
		forward.ServeHTTP(rw, r)
	})
	w.reachedBy("dev-2", cfg)
	w.patience, w.connection.Timeout, w.connection.Silence = 200*time.Millisecond, time.Hour, time.Hour
	w.stop()
	w.start()
	w.release()
	hold.Store(true)
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the other target of the wave", func() bool {
		target := w.unit("app").Targets["dev-1/b"]
		return target.Health == rollout.HealthGood && target.Applied == target.Wanted && now.Load() == 1
	})
	w.want("images", w.tags("app"), "2 2 1")
	w.want("trouble of the slow one", string(w.unit("app").Targets["dev-2/c"].Trouble), "")
	w.app("app", "3", "one")
	w.commit()
	w.until("the next canary", func() bool { return w.unit("app").Rollout.ID == 3 && w.tag("dev-1/a", "app") == "3" })
	if now.Load() != 1 || most.Load() != 1 || gaveUp.Load() != 0 {
		t.Errorf("%d requests wait, %d did at a time, %d were given up; want one that waits", now.Load(), most.Load(), gaveUp.Load())
	}
	hold.Store(false)
	close(let)
	w.soaked("app", 3)
	w.want("images", w.tags("app"), "3 3 3")
}

// TestASlowSweepHoldsNobodyUp: drift is found and corrected in one cluster while
// another one does not answer its sweep.
func TestASlowSweepHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.everyTenMinutes()
	var hold atomic.Bool
	cfg := faults.HTTP(t, w.config("dev-2"), func(rw http.ResponseWriter, r *http.Request, forward http.Handler) {
		if hold.Load() && r.URL.Query().Get("labelSelector") != "" {
			<-r.Context().Done() // whoever asked has given up
			return
		}
		forward.ServeHTTP(rw, r)
	})
	w.reachedBy("dev-2", cfg)
	w.patience = 200 * time.Millisecond
	w.stop()
	w.start()
	w.release()
	w.remove("dev-1", configMaps, w.tenant+"-b", "one")
	w.remove("dev-2", configMaps, w.tenant+"-c", "one")
	hold.Store(true)
	w.now = w.now.Truncate(10 * time.Minute).Add(10 * time.Minute)
	w.until("the correction in the cluster that answers", func() bool { return w.get("dev-1/b", configMaps, "one") != nil })
	if w.get("dev-2/c", configMaps, "one") != nil {
		t.Error("the cluster that does not answer was corrected")
	}
	hold.Store(false)
	w.now = w.now.Add(10 * time.Minute)
	w.until("the correction in the other one", func() bool { return w.get("dev-2/c", configMaps, "one") != nil })
}

// hold keeps requests waiting while it is on.
type hold struct {
	on   atomic.Bool
	held atomic.Int32
	let  chan struct{}
}

func (h *hold) end() {
	h.on.Store(false)
	close(h.let)
}

// watchingBut starts a daemon that watches, has no schedule, and sends requests
// to dev-2 through a hold for one kind of them, such as "GET configmaps/one".
func (w *world) watchingBut(request string) *hold {
	w.Helper()
	h := &hold{let: make(chan struct{})}
	w.reachedBy("dev-2", faults.HTTP(w, w.config("dev-2"), func(rw http.ResponseWriter, r *http.Request, forward http.Handler) {
		if _, name, _ := strings.Cut(r.URL.Path, "/namespaces/"+w.tenant+"-c/"); h.on.Load() && request == r.Method+" "+name {
			h.held.Add(1)
			select {
			case <-h.let:
			case <-r.Context().Done():
			}
		}
		forward.ServeHTTP(rw, r)
	}))
	w.patience, w.connection.Timeout, w.connection.Silence = 200*time.Millisecond, time.Hour, time.Hour
	w.watching()
	return h
}

// TestDriftDuringAJob: somebody edits what a unit has just written, while the
// rest of it takes its time. No sweep comes: what the watch saw is looked at
// when the unit is written.
func TestDriftDuringAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.watchingBut(http.MethodPatch + " deployments/app")
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	h.on.Store(true)
	w.now = w.now.Add(10 * time.Minute)
	w.until("the ConfigMap", func() bool {
		return h.held.Load() > 0 && w.image("dev-2/c", "one") == "registry.example.com/app:2"
	})
	w.edit("dev-2/c", configMaps, "one", data, "kubectl-edit")
	for range 10 {
		w.pass()
		pause(t)
	}
	h.end()
	w.until("the correction", func() bool { return w.image("dev-2/c", "one") == "registry.example.com/app:2" })
}

// TestAJobDuringALook: a unit is written while a look at one of its objects,
// which it need not write, takes its time. What it finds is looked at again.
func TestAJobDuringALook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.watchingBut(http.MethodGet + " configmaps/one")
	h.on.Store(true)
	w.edit("dev-2/c", configMaps, "one", data, "kubectl-edit")
	w.until("the look", func() bool { return h.held.Load() > 0 })
	w.app("app", "1", "one", "two")
	w.commit()
	w.soaked("app", 2)
	h.end()
	w.until("the correction", func() bool { return w.image("dev-2/c", "one") == "registry.example.com/app:1" })
}

// TestACommitEndsADeletion: while an object is about to be deleted, in a cluster
// that takes its time, a commit comes that wants it. It is not deleted.
func TestACommitEndsADeletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var hold atomic.Bool
	held, let := make(chan string, 100), make(chan struct{})
	cfg := faults.HTTP(t, w.config("dev-2"), func(rw http.ResponseWriter, r *http.Request, forward http.Handler) {
		// The first is what comes before the DELETE.
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/one") && hold.CompareAndSwap(true, false) {
			held <- r.URL.Path
			select {
			case <-let:
			case <-r.Context().Done():
			}
		}
		forward.ServeHTTP(rw, r)
	})
	w.connection.Timeout, w.connection.Silence = time.Hour, time.Hour
	w.reachedBy("dev-2", cfg)
	w.patience = 200 * time.Millisecond
	w.app("other", "1")
	w.commit()
	w.stop()
	w.start()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	before := w.get("dev-2/c", configMaps, "one").GetUID()
	hold.Store(true)
	w.app("app", "1")
	w.commit()
	w.until("the deletion", func() bool {
		if w.canary("app", 2)() && w.resting() {
			w.now = w.now.Add(10 * time.Minute)
		}
		return len(held) > 0
	})
	w.app("other", "1", "one")
	w.commit()
	w.until("the commit", w.is("other", 2, rollout.Progressing))
	hold.Store(false)
	close(let)
	w.until("other's canary", w.canary("other", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("other", w.is("other", 2, rollout.Done))
	for range 20 {
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	live := w.get("dev-2/c", configMaps, "one")
	if live == nil || live.GetUID() != before {
		t.Errorf("the ConfigMap that a commit wanted in time was deleted: had the UID %s, now %v", before, live)
	}
	w.want("images of other", w.tags("other"), "1 1 1")
}

// TestRBACCutInMidWave: a cluster that allows nothing any more is an error of
// its target, tried again with ever longer pauses; other clusters go on, and so
// does it when it has its rights back.
func TestRBACCutInMidWave(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, token := w.account("dev-2", w.tenant+"-swell", "cluster-admin")
	file := filepath.Join(w.dir, "kubeconfig")
	w.place(file, w.kubeconfig("dev-2", token))
	w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", Kubeconfig: file, Context: "dev-2"}
	w.write("fleet/fleet.yaml", strings.Replace(fleetYAML, "- {name: rest, timeout: 1m}", "- {name: rest, timeout: 1m, maxFailures: 1}", 1))
	w.commit()
	w.stop()
	w.start()
	w.release()
	// Only who the cluster is may still be asked.
	w.remove("dev-2", clusterRoleBindings, "", w.tenant+"-swell")
	w.create("dev-2", clusterRoles, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s-look}\nrules: [{apiGroups: [\"\"], resources: [namespaces], verbs: [get]}]\n", w.tenant)
	w.bindCluster("dev-2", w.tenant+"-look", w.tenant+"-look", w.tenant+"-swell")
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", w.canary("app", 2))
	w.now = w.now.Add(10 * time.Minute)
	w.until("the report", func() bool {
		target := w.unit("app").Targets["dev-2/c"]
		return target.Attempts > 1 && strings.Contains(target.Reason, fmt.Sprintf("User \"system:serviceaccount:default:%s-swell\" cannot patch resource", w.tenant))
	})
	w.until("the other target of the wave", func() bool { return w.unit("app").Targets["dev-1/b"].Health == rollout.HealthGood })
	w.want("images", w.tags("app"), "2 2 1")
	w.bindCluster("dev-2", w.tenant+"-back", "cluster-admin", w.tenant+"-swell")
	w.until("the end, with the rights back", func() bool {
		target := w.unit("app").Targets["dev-2/c"]
		return target.Applied == target.Wanted && target.Health == rollout.HealthGood
	})
	w.want("images", w.tags("app"), "2 2 2")
}

// TestABusyClusterIsNotIll: while a target soaks, the server has no time to say
// how it is. That is no illness, and no reason to soak anew.
func TestABusyClusterIsNotIll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var busy atomic.Int32
	w.reachedBy("dev-1", faults.HTTP(t, w.config("dev-1"), func(rw http.ResponseWriter, r *http.Request, forward http.Handler) {
		if busy.Load() > 0 && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/deployments/app") {
			busy.Add(1)
			rw.Header().Set("Retry-After", "30")
			http.Error(rw, "too many requests", http.StatusTooManyRequests)
			return
		}
		forward.ServeHTTP(rw, r)
	}))
	w.stop()
	w.start()
	w.until("the canary", w.canary("app", 1))
	since := w.unit("app").Targets["dev-1/a"].Since
	busy.Store(1)
	w.until("the look", w.soon(func() bool { return busy.Load() > 1 }))
	target := w.unit("app").Targets["dev-1/a"]
	if target.Health != rollout.HealthGood || !target.Since.Equal(since) {
		t.Errorf("%s since %s, want healthy since %s: %s", target.Health, target.Since, since, target.Reason)
	}
}
