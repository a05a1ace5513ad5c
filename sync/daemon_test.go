// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/sops"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/source/gittest"
	"github.com/swell-sh/swell/sync/store"
)

func TestMain(m *testing.M) { os.Exit(devtest.Main(m, shared)) }

// shared are the real API servers for the tests of this package that need some.
var shared = &devtest.Shared{Names: []string{"dev-1", "dev-2", "dev-3"}}

// realClusters are the real API servers.
func realClusters(t testing.TB) *devcluster.Clusters {
	t.Helper()
	return shared.Clusters(t)
}

// world is a Git repository, a clock and a daemon for one test. Its names are
// apart from those of other tests by the tenant.
type world struct {
	endpoints map[string]config.Endpoint
	testing.TB
	clusters  *devcluster.Clusters          // nil when they are simulated
	simulated map[string]*simulator.Cluster // nil when they are real
	// connected leads to the cluster that has a name by now; mostly nil: to the simulated one.
	connected   func(name string) http.RoundTripper
	recorder    recorder // of what simulated ones are asked
	tenant      string
	dir         string
	now         time.Time
	real        bool // the daemon has the real clock
	access      map[string]config.ClusterAccess
	drift       config.Drift
	secrets     config.Secrets
	read        map[string]int64 // of the audit logs, by cluster
	kubeconfigs string           // of kubeconfigs; mostly none
	// patience of the daemon. The usual one is longer than any test, so that a
	// pass is over when all of it is done, however slow the machine.
	patience time.Duration
	poll     time.Duration // of the branch; zero is at every pass
	// tick is how far the daemon's clock goes on with a pass that did nothing.
	// Zero is what [world.until] says.
	tick time.Duration

	connection apply.Options
	lease      config.Lease
	times      fleet.LeaseTimes
	allow      []config.Allowance
	logged     strings.Builder

	// fresh lets the daemon survey the clusters, which other tests leave objects
	// in, when it starts without a state.
	fresh    bool
	guard    *config.Guard
	empty    bool // AllowEmpty
	checkers render.Checkers

	failure *failing // what the daemon has for a store; mostly nil
	store   *store.Store
	source  *source.Source
	leaves  bool // Git does not answer while gitAway is set; the daemon knows authors
	gitAway atomic.Bool
	daemon  *sync.Daemon
}

// fleetYAML is two clusters: dev-1 with the cells a (canary) and b, and dev-2.
const fleetYAML = `apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-1, labels: {site: one}}
spec:
  cells:
  - {name: a, labels: {ring: canary}}
  - {name: b}
---
apiVersion: swell.sh/v1
kind: Cluster
metadata: {name: dev-2, labels: {site: two}}
spec:
  cells:
  - {name: c}
---
apiVersion: swell.sh/v1
kind: Rollout
metadata: {name: default}
spec:
  waves:
  - {name: canary, match: {labels: {ring: canary}}, soak: 10m, timeout: 1m}
  - {name: rest, timeout: 1m}
`

const appKind = `apiVersion: swell.sh/v1
kind: EasyKind
metadata: {name: app}
spec:
  message: test.App
  let:
  - {name: ns, value: "unit.tenant + '-' + target.cell"}
  objects:
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${self.metadata.name}", namespace: "${ns}"}
      spec:
        replicas: 1
        selector: {matchLabels: {app: "${self.metadata.name}"}}
        template:
          metadata: {labels: {app: "${self.metadata.name}"}}
          spec:
            containers:
            - {name: main, image: "${self.spec.image}"}
  - id: config
    each: {name: self.spec.configs}
    template:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${name}", namespace: "${ns}"}
      data: {image: "${self.spec.image}"}
`

const appProto = `syntax = "proto3";
package test;
import "library/go/k8s/protoc_gen_crd/proto/crd.proto";
message App {
  option (protoc_gen_crd.k8s_crd) = {api_group: "easy.example.com", kind: "App", singular: "app", plural: "apps"};
  AppSpec spec = 1;
}
message AppSpec {
  string image = 1;
  repeated string configs = 2;
}
`

const spaceUnit = `apiVersion: easy.example.com/v1
kind: Space
metadata: {name: space}
`

func newWorld(t testing.TB) *world {
	t.Helper()
	w := newWorldOn(t, realClusters(t))
	w.start()
	return w
}

// simulated runs a test of a world whose clusters are simulated, in a bubble of its
// own: what waits for time to pass does so at once.
func simulated(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	simulatedWith(t, func(*world) {}, test)
}

// simulatedWith does the same with a world that was prepared before its daemon starts.
func simulatedWith(t *testing.T, prepare func(w *world), test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := emptyWorld(t)
		w.simulated = map[string]*simulator.Cluster{"dev-1": simulator.New(), "dev-2": simulator.New()}
		w.begin()
		prepare(w)
		w.start()
		test(t, w)
	})
}

// intercept lets answer have each request to a simulated cluster first. It says whether
// it answered.
func (w *world) intercept(cluster string, answer func(http.ResponseWriter, *http.Request) bool) {
	w.simulated[cluster].Fault = func(r *http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		if !answer(recorder, r) {
			return nil, nil
		}
		res := recorder.Result()
		res.Request = r
		return res, nil
	}
}

// newWorldOn is a world on some clusters, whose daemon is not started yet.
func newWorldOn(t testing.TB, clusters *devcluster.Clusters) *world {
	t.Helper()
	w := emptyWorld(t)
	w.clusters = clusters
	for _, name := range []string{"dev-1", "dev-2"} {
		w.access[name] = config.ClusterAccess{Name: name, Kubeconfig: clusters.Kubeconfig, Context: name}
	}
	w.begin()
	return w
}

func emptyWorld(t testing.TB) *world {
	w := &world{TB: t, dir: t.TempDir(), patience: 24 * time.Hour, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.tenant = strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	w.access = map[string]config.ClusterAccess{"dev-1": {}, "dev-2": {}}
	w.recorder.events, w.read = map[string][]audited{}, map[string]int64{}
	return w
}

// reach leads to a simulated cluster; nil when there is none.
func (w *world) reach(cluster string) *rest.Config {
	c := w.simulated[cluster]
	if c == nil {
		return nil
	}
	cfg := c.Config()
	if cfg.Transport = w.recorder.through(cluster, c); w.connected != nil {
		cfg.Transport = w.connected(cluster)
	}
	return cfg
}

// begin makes the first commit.
func (w *world) begin() {
	w.Helper()
	w.must(gittest.Init(w.repo()))
	w.write("swell.yaml", "apiVersion: swell.sh/v1\nkind: Repository\nmetadata: {name: "+w.tenant+"}\nspec: {}\n")
	w.write("fleet/fleet.yaml", fleetYAML)
	w.write("kinds/app/kind.yaml", appKind)
	w.write("kinds/app/app.proto", appProto)
	for _, file := range []string{"kinds/space/kind.yaml", "kinds/space/space.proto"} {
		content, err := os.ReadFile("../testdata/monorepo/" + file)
		w.must(err)
		w.write(file, string(content))
	}
	w.write("services/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {topology: cell}}\n", w.tenant))
	w.write("services/space/space.yaml", spaceUnit)
	w.app("app", "1", "one")
	w.commit()
	w.Cleanup(w.stop)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) repo() string { return filepath.Join(w.dir, "repo") }

func (w *world) git(args ...string) {
	w.Helper()
	_, err := gittest.Run(w.repo(), args...)
	w.must(err)
}

func (w *world) write(name, content string) {
	w.Helper()
	name = filepath.Join(w.repo(), name)
	w.must(errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)))
}

// app writes the spec of an app with an image tag and some ConfigMaps.
func (w *world) app(unit, tag string, configs ...string) {
	w.write("services/"+unit+"/app.yaml", fmt.Sprintf(
		"apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: %s}\nspec:\n  image: registry.example.com/app:%s\n  configs: [%s]\n",
		filepath.Base(unit), tag, strings.Join(configs, ", ")))
}

func (w *world) commit() {
	w.Helper()
	_, err := gittest.Commit(w.repo(), "change")
	w.must(err)
}

// start opens a daemon on the state that is there.
func (w *world) start() {
	w.Helper()
	var err error
	w.store, err = store.Open(filepath.Join(w.dir, "state"))
	w.must(err)
	if !w.fresh {
		w.must(w.store.Update(w.Context(), func(tx *store.Tx) error {
			var errs []error
			for name := range w.access {
				errs = append(errs, tx.Surveyed(name, store.Known, ""))
			}
			return errors.Join(errs...)
		}))
	}
	w.source, err = source.Open(source.Config{URL: w.repo(), Branch: "main", Dir: filepath.Join(w.dir, "state", "git")})
	w.must(err)
	w.open()
}

// open opens a daemon on the store and the source that are open.
func (w *world) open() {
	w.Helper()
	var err error
	now := func() time.Time { return w.now }
	if w.real {
		now = time.Now
	}
	var state sync.Store = w.store
	if w.failure != nil {
		w.failure.Store, state = w.store, w.failure
	}
	from, authors := sync.Source(w.source), (func(_, _ config.Commit) ([]string, error))(nil)
	if w.leaves {
		from, authors = gitThatLeaves{w.source, &w.gitAway}, w.source.Authors
	}
	w.daemon, err = sync.Open(sync.Options{Source: from, Authors: authors, Store: state, Clusters: w.access, KubeconfigDir: w.kubeconfigs, Allow: w.allow, Reach: w.reach, Drift: w.drift, Patience: w.patience, Poll: w.poll, Connection: w.connection, Lease: w.lease, Endpoints: w.endpoints, Keys: &sops.Keys{Secrets: w.secrets}, LeaseTimes: w.times, Guard: w.guard, AllowEmpty: w.empty, Compiler: render.Compiler{Checkers: w.checkers},
		Log: slog.New(slog.NewTextHandler(w.logs(), nil)), Now: now})
	w.must(err)
}

// gitThatLeaves is a Git server that does not answer for a while. What was fetched is there.
type gitThatLeaves struct {
	*source.Source
	away *atomic.Bool
}

func (g gitThatLeaves) Fetch(ctx context.Context) (config.Commit, error) {
	if g.away.Load() {
		return "", errors.New("git: connection refused")
	}
	return g.Source.Fetch(ctx)
}

// logs is where the daemon logs to. A benchmark prints figures only.
func (w *world) logs() io.Writer {
	if _, ok := w.TB.(*testing.B); ok {
		return io.Discard
	}
	return io.MultiWriter(w.Output(), &w.logged)
}

func (w *world) stop() {
	if w.daemon != nil {
		w.must(errors.Join(w.daemon.Finish(context.Background()), w.source.Close(), w.store.Close()))
		w.daemon = nil
	}
}

// pass makes one pass, and another one that records what it began; the clock stands
// still in them.
func (w *world) pass() sync.Record {
	w.Helper()
	r := w.daemon.Once(w.Context())
	w.must(r.Err)
	if w.daemon.Busy() {
		r.Add(w.daemon.Once(w.Context()))
		w.must(r.Err)
	}
	return r
}

// longest is how long anything may take. What takes a second may take a minute on
// a machine that is shared, and a benchmark has more to do.
func (w *world) longest() time.Duration {
	if _, ok := w.TB.(*testing.B); ok {
		return 20 * time.Minute
	}
	return 5 * time.Minute
}

// until makes passes until ok, a second of the daemon's time apart; less while
// something is on its way in the clusters, which know nothing of that time: a
// slow machine's objects would be late.
func (w *world) until(what string, ok func() bool) (all []rollout.Outcome) {
	w.Helper()
	deadline := time.Now().Add(w.longest())
	for !ok() {
		if time.Now().After(deadline) {
			w.Fatalf("%s: not within %s\n%s", what, w.longest(), w.describe())
		}
		r := w.pass()
		all = append(all, r.Actions...)
		if len(r.Actions) == 0 {
			tick := time.Second
			if !w.resting() || w.stepping() {
				tick = 200 * time.Millisecond
			}
			w.now = w.now.Add(cmp.Or(w.tick, tick))
			pause(w.TB)
		}
	}
	return all
}

// pause lets the controllers of the clusters do their work.
func pause(t testing.TB) {
	select {
	case <-t.Context().Done():
	case <-time.After(50 * time.Millisecond):
	}
}

func (w *world) unit(name string) *rollout.Unit {
	return w.daemon.State().Units[config.UnitPath("services/"+name)]
}

func (w *world) describe() string {
	var b strings.Builder
	for path, u := range w.daemon.State().Units {
		fmt.Fprintf(&b, "%s: %s wave %d %q blocked %q\n", path, u.Rollout.Status, u.Rollout.Wave, u.Rollout.Reason, u.Blocked)
		for name, t := range u.Targets {
			fmt.Fprintf(&b, "  %s: %s %s wanted %s applied %s %q\n", name, t.Health, t.Trouble, t.Wanted.Short(), t.Applied.Short(), t.Reason)
		}
	}
	return b.String()
}

// done says whether a unit's n-th rollout has a status.
func (w *world) is(unit string, id int, status rollout.Status) func() bool {
	return func() bool {
		u := w.unit(unit)
		return u != nil && u.Rollout.ID == id && u.Rollout.Status == status
	}
}

// release brings the first commit out to all targets.
func (w *world) release() {
	w.Helper()
	w.soaked("app", 1)
	w.until("the namespaces", w.is("space", 1, rollout.Done))
}

// soaked lets the canary of a unit's rollout soak, and waits for its end. The
// clock leaps over the soak when nothing of any unit is on its way: what is would
// be late after it.
func (w *world) soaked(unit string, id int) {
	w.Helper()
	w.until("the canary of "+unit, w.canary(unit, id))
	w.until("the others", w.resting)
	w.now = w.now.Add(10 * time.Minute)
	w.until("the rollout of "+unit, w.is(unit, id, rollout.Done))
}

// canary says whether the canary of a unit's n-th rollout is healthy.
func (w *world) canary(unit string, id int) func() bool {
	return func() bool {
		u := w.unit(unit)
		if u == nil || u.Rollout.ID != id {
			return false
		}
		t := u.Targets["dev-1/a"]
		return t.Health == rollout.HealthGood && t.Applied == t.Wanted
	}
}

// resting says whether no target is about to become healthy.
func (w *world) resting() bool {
	for _, u := range w.daemon.State().Units {
		for _, t := range u.Targets {
			if t.Applied != "" && t.Applied == t.Wanted && t.Health == rollout.HealthProgressing && t.Trouble == "" {
				return false
			}
		}
	}
	return true
}

// stepping says whether a target that is written waits for a phase or a hook.
func (w *world) stepping() bool {
	for _, u := range w.daemon.State().Units {
		for _, t := range u.Targets {
			if t.Step != "" && t.Wanted != "" && t.Trouble == "" {
				return true
			}
		}
	}
	return false
}

// TestSoakedWaitsForTheOthers: a unit that takes a second is not late because
// another one's soak is over.
func TestSoakedWaitsForTheOthers(t *testing.T) { simulated(t, testSoakedWaitsForTheOthers) }

func testSoakedWaitsForTheOthers(t *testing.T, w *world) {
	w.write("services/slow/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: slow}\n"+
		"spec: {overrides: [{kind: App, object: deployment, update: [{path: spec.minReadySeconds, value: 1}]}]}\n")
	w.app("slow", "1", "two")
	w.commit()
	w.release()
	w.soaked("slow", 1)
}

func (w *world) client(cluster string) dynamic.Interface {
	w.Helper()
	cfg := w.reach(cluster)
	var err error
	if cfg == nil {
		cfg, err = w.clusters.Config(cluster)
		w.must(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	w.must(err)
	return client
}

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// get reads an object of the tenant in a cell; nil when it is not there.
func (w *world) get(target string, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	w.Helper()
	cluster, cell, _ := strings.Cut(target, "/")
	list, err := w.client(cluster).Resource(resource).Namespace(w.tenant+"-"+cell).List(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	w.must(err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// tag is the image tag that the Deployment of an app runs; "" without one.
func (w *world) tag(target, name string) string {
	w.Helper()
	object := w.get(target, deployments, name)
	if object == nil {
		return ""
	}
	containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	w.must(err)
	return strings.TrimPrefix(containers[0].(map[string]any)["image"].(string), "registry.example.com/app:")
}

func (w *world) tags(name string) string {
	return strings.Join([]string{w.tag("dev-1/a", name), w.tag("dev-1/b", name), w.tag("dev-2/c", name)}, " ")
}

func (w *world) want(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestWaves: the canary alone first, the rest after its soak, and then nothing
// is written any more.
func TestWaves(t *testing.T) { simulated(t, testWaves) }

func testWaves(t *testing.T, w *world) {
	w.until("the canary", func() bool {
		u := w.unit("app")
		return u != nil && u.Targets["dev-1/a"].Health == rollout.HealthGood
	})
	w.want("images while the canary soaks", w.tags("app"), "1  ")
	w.now = w.now.Add(9 * time.Minute)
	w.pass()
	w.want("images before the soak is over", w.tags("app"), "1  ")
	w.now = w.now.Add(time.Minute)
	w.until("the rollout", w.is("app", 1, rollout.Done))
	w.want("images", w.tags("app"), "1 1 1")
	for range 3 {
		w.now = w.now.Add(time.Hour)
		if r := w.pass(); len(r.Actions) > 0 {
			t.Errorf("a pass over nothing changed: %v", r.Actions)
		}
	}
}

// TestRollback: a change that does not become healthy is put back where it
// was written, and is not tried again.
func TestRollback(t *testing.T) { simulated(t, testRollback) }

func testRollback(t *testing.T, w *world) {
	w.release()
	w.app("app", "broken", "one", "two")
	w.commit()
	before := w.get("dev-2/c", deployments, "app").GetResourceVersion()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "broken" })
	w.want("images", w.tags("app"), "broken 1 1")
	w.until("the reason", w.reasonHas("app", "ImagePullBackOff"))
	w.now = w.now.Add(2 * time.Minute)
	w.until("the rollback", w.is("app", 2, rollout.RolledBack))
	w.want("images", w.tags("app"), "1 1 1")
	w.want("why", fmt.Sprint(strings.Contains(w.unit("app").Rollout.Failure, "ImagePullBackOff")), "true")
	w.want("resourceVersion of an untouched target", w.get("dev-2/c", deployments, "app").GetResourceVersion(), before)
	if w.get("dev-1/a", configMaps, "two") == nil {
		t.Error("the ConfigMap that the newest commit wants was deleted")
	}
	w.commit() // another commit with the same bad unit
	w.now = w.now.Add(time.Hour)
	for _, a := range w.pass().Actions {
		if a.Kind != rollout.Check { // leftovers are looked at now and then
			t.Errorf("tried again: %v", a)
		}
	}
	w.app("app", "2", "one")
	w.commit()
	w.soaked("app", 3)
	w.want("images", w.tags("app"), "2 2 2")
	w.until("the end of what the bad release left", func() bool { return w.get("dev-1/a", configMaps, "two") == nil })
}

// TestRepairedByHand: somebody puts the canary back by hand while it fails. That
// says nothing good of what was applied, so the wave does not pass.
func TestRepairedByHand(t *testing.T) { simulated(t, testRepairedByHand) }

func testRepairedByHand(t *testing.T, w *world) {
	w.release()
	w.app("app", "broken", "one")
	w.commit()
	w.until("the canary", func() bool { return w.tag("dev-1/a", "app") == "broken" })
	_, err := w.client("dev-1").Resource(deployments).Namespace(w.tenant+"-a").Patch(t.Context(), "app", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/app:1"}]}}}}`), metav1.PatchOptions{FieldManager: "kubectl-rollout"})
	w.must(err)
	drifted := false
	for range 15 {
		r := w.pass()
		drifted = drifted || len(r.Drifts) > 0
		w.now = w.now.Add(time.Minute)
		w.want("images after the canary", w.tag("dev-1/b", "app")+w.tag("dev-2/c", "app"), "11")
		pause(t)
	}
	w.want("found", fmt.Sprint(drifted), "true")
	w.until("the rollback", w.is("app", 2, rollout.RolledBack))
	w.want("images", w.tags("app"), "1 1 1")
}

// TestMoveAndRollback: an object that moves to a unit whose release fails is
// not deleted when that unit is put back.
func TestMoveAndRollback(t *testing.T) { simulated(t, testMoveAndRollback) }

func testMoveAndRollback(t *testing.T, w *world) {
	w.app("other", "1", "moving")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	w.app("other", "1")
	w.app("app", "broken", "one", "moving")
	w.commit()
	w.until("the canary of app", func() bool { return w.tag("dev-1/a", "app") == "broken" })
	w.until("the canary of other", w.canary("other", 2))
	w.now = w.now.Add(10 * time.Minute) // app's is late by then
	w.until("the rollout of other", w.is("other", 2, rollout.Done))
	w.until("the rollback", w.is("app", 2, rollout.RolledBack))
	for range 5 {
		w.now = w.now.Add(time.Minute)
		w.pass()
	}
	for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} {
		if w.get(target, configMaps, "moving") == nil {
			t.Errorf("%s: the ConfigMap that moved is gone", target)
		}
	}
	w.want("images of app", w.tags("app"), "1 1 1")
}

// TestRestart: a daemon that goes away at any pass leaves a state from which
// the next one goes on: same waves, same soak, same end.
func TestRestart(t *testing.T) { simulated(t, testRestart) }

func testRestart(t *testing.T, w *world) {
	w.release()
	w.app("app", "2", "one", "two")
	w.commit()
	w.until("the canary", func() bool {
		w.stop()
		w.start()
		return w.canary("app", 2)()
	})
	w.want("images while the canary soaks", w.tags("app"), "2 1 1")
	w.now = w.now.Add(9 * time.Minute)
	w.stop()
	w.start()
	w.pass()
	w.want("images before the soak is over", w.tags("app"), "2 1 1")
	w.now = w.now.Add(time.Minute)
	w.until("the rollout", w.is("app", 2, rollout.Done))
	w.want("images", w.tags("app"), "2 2 2")
}

// TestPrune: what a unit does not want any more goes after the new objects are
// healthy; what moved to another unit stays; a removed unit goes.
func TestPrune(t *testing.T) { simulated(t, testPrune) }

func testPrune(t *testing.T, w *world) {
	w.app("other", "1", "three")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	moved := w.get("dev-1/a", configMaps, "one").GetUID()
	w.app("app", "1", "two")
	w.app("other", "1", "three", "one")
	w.commit()
	w.soaked("app", 2)
	w.until("other", w.is("other", 2, rollout.Done))
	for _, target := range []string{"dev-1/a", "dev-1/b", "dev-2/c"} {
		for _, name := range []string{"one", "two", "three"} {
			if w.get(target, configMaps, name) == nil {
				t.Errorf("%s: ConfigMap %s is gone", target, name)
			}
		}
	}
	w.want("the moved ConfigMap", string(w.get("dev-1/a", configMaps, "one").GetUID()), string(moved))
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services/app")))
	w.commit()
	w.until("the removal", func() bool { return w.unit("app") == nil })
	w.want("Deployments of the removed unit", w.tags("app"), "  ")
	if w.get("dev-1/a", configMaps, "two") != nil {
		t.Error("a ConfigMap of the removed unit is still there")
	}
	w.want("Deployments of the other unit", w.tags("other"), "1 1 1")
	if w.get("dev-1/b", configMaps, "one") == nil {
		t.Error("the ConfigMap that moved went with the unit that it left")
	}
}

// TestNothingDeletedInDoubt: a unit that does not render, a fleet that cannot
// be read, a unit that renders to nothing: no object goes.
func TestNothingDeletedInDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.app("other", "1")
	w.commit()
	w.release()
	w.until("other", w.is("other", 1, rollout.Done))
	for _, broken := range []struct{ name, file, content string }{
		{"unknown field", "services/app/app.yaml", "apiVersion: easy.example.com/v1\nkind: App\nmetadata: {name: app}\nspec: {imgae: x}\n"},
		{"empty file", "services/app/app.yaml", "# nothing\n"},
		{"fleet", "fleet/fleet.yaml", "kind: Cluster\n"},
		{"root", "swell.yaml", "{"},
		{"kind", "kinds/app/kind.yaml", "kind: EasyKind\n"},
	} {
		t.Run(broken.name, func(t *testing.T) {
			old, err := os.ReadFile(filepath.Join(w.repo(), broken.file))
			w.must(err)
			w.write(broken.file, broken.content)
			// The other unit drops nothing either: its tenant has a broken unit.
			w.commit()
			for range 5 {
				if r := w.pass(); r.Objects["deleted"] > 0 || len(r.Problems) == 0 && r.NewCommit {
					t.Errorf("deleted %d, problems %v", r.Objects["deleted"], r.Problems)
				}
				w.now = w.now.Add(time.Minute)
			}
			w.want("images of app", w.tags("app"), "1 1 1")
			w.want("images of other", w.tags("other"), "1 1 1")
			w.write(broken.file, string(old))
			w.commit()
			w.pass()
		})
	}
}

// TestDrift: somebody's edit is found on the schedule, named and corrected; so
// is a deletion.
func TestDrift(t *testing.T) { simulated(t, testDrift) }

func testDrift(t *testing.T, w *world) {
	schedule, err := cron.ParseStandard("*/10 * * * *")
	w.must(err)
	w.drift = config.Drift{Schedule: schedule, Location: time.UTC}
	w.stop()
	w.start()
	w.release()
	w.now = w.now.Truncate(10 * time.Minute).Add(10 * time.Minute) // nothing has drifted yet
	if r := w.pass(); len(r.Swept) != 2 || len(r.Drifts) != 0 {
		t.Errorf("swept %v, found %v; want two clusters and no drift", r.Swept, r.Drifts)
	}
	namespace := w.tenant + "-b"
	_, err = w.client("dev-1").Resource(deployments).Namespace(namespace).Patch(t.Context(), "app", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/app:hotfix"}]}}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	w.must(err)
	w.must(w.client("dev-1").Resource(configMaps).Namespace(namespace).Delete(t.Context(), "one", metav1.DeleteOptions{}))
	w.now = w.now.Add(time.Minute)
	if r := w.pass(); len(r.Swept) > 0 {
		t.Errorf("swept %v a minute after the last time", r.Swept)
	}
	w.now = w.now.Add(9 * time.Minute)
	r := w.pass()
	var texts []string
	for _, found := range r.Drifts {
		texts = append(texts, drift.Text(found))
	}
	found := strings.Join(texts, "\n")
	for _, want := range []string{"Deployment/" + namespace + "/app: ", `containers[name="main"].image`, "kubectl-edit", "ConfigMap/" + namespace + "/one: deleted"} {
		if !strings.Contains(found, want) {
			t.Errorf("found %q, want %q in it", found, want)
		}
	}
	w.until("the correction", func() bool { return !w.unit("app").Targets["dev-1/b"].Drifted })
	w.want("images", w.tags("app"), "1 1 1")
	if w.get("dev-1/b", configMaps, "one") == nil {
		t.Error("the deleted ConfigMap was not put back")
	}
	w.want("rollout", string(w.unit("app").Rollout.Status), string(rollout.Done))
}

// TestUnreachable: a cluster that does not answer, one without a kubeconfig
// that parses, and Git that is away: the others go on, and all recovers alone.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	w := newWorld(t)
	good := w.access["dev-2"]
	dead := filepath.Join(w.dir, "dead")
	for name, kubeconfig := range map[string]string{
		"black hole": fmt.Sprintf("{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'https://%s'}}], contexts: [{name: dev-2, context: {cluster: c, user: u}}], users: [{name: u, user: {token: x}}]}", listener.Addr()),
		"no YAML":    "{",
	} {
		w.must(os.WriteFile(dead, []byte(kubeconfig), 0o600))
		w.access["dev-2"] = config.ClusterAccess{Name: "dev-2", Kubeconfig: dead, Context: "dev-2"}
		w.stop()
		w.start()
		w.until("the canary", w.canary("app", 1))
		w.now = w.now.Add(10 * time.Minute)
		w.until("the other target of the wave: "+name, func() bool { return w.unit("app").Targets["dev-1/b"].Health == rollout.HealthGood })
		w.until("the report: "+name, func() bool {
			return w.unit("app").Targets["dev-2/c"].Trouble != "" || w.unit("space").Targets["dev-2/c"].Trouble != ""
		})
		if reason := w.unit("space").Targets["dev-2/c"].Reason; !strings.Contains(reason, "cluster dev-2: ") {
			t.Errorf("%s: reason %q", name, reason)
		}
	}
	w.access["dev-2"] = good
	w.stop()
	w.start()
	w.until("the end, with the cluster back", w.is("app", 1, rollout.Done))
	w.want("images", w.tags("app"), "1 1 1")

	w.must(os.Rename(w.repo(), w.repo()+"-away"))
	both := w.pass()
	if len(both.Errors) != 1 || len(both.Actions) > 0 {
		t.Errorf("Git is away: errors %v, actions %v", both.Errors, both.Actions)
	}
	w.must(os.Rename(w.repo()+"-away", w.repo()))
	r := w.pass()
	if len(r.Errors) != 0 || len(r.Actions) > 0 {
		t.Errorf("Git is back: errors %v, actions %v", r.Errors, r.Actions)
	}
	if both.Add(r); len(both.Errors) != 0 { // run --once is to end with 0
		t.Errorf("both passes together: errors %v, which were overcome", both.Errors)
	}
}

// TestOtherCluster: a kubeconfig that leads to another cluster than before is
// not written to.
func TestOtherCluster(t *testing.T) { simulated(t, testOtherCluster) }

func testOtherCluster(t *testing.T, w *world) {
	w.release()
	w.simulated["dev-2"] = w.simulated["dev-1"]
	w.stop()
	w.start()
	w.app("app", "2", "one")
	w.commit()
	w.until("the canary", func() bool {
		return w.tag("dev-1/a", "app") == "2" && w.unit("app").Targets["dev-1/a"].Health == rollout.HealthGood
	})
	w.now = w.now.Add(10 * time.Minute)
	w.until("the report", func() bool { return w.unit("app").Targets["dev-2/c"].Trouble != "" })
	if reason := w.unit("app").Targets["dev-2/c"].Reason; !strings.Contains(reason, "not the cluster we knew") {
		t.Errorf("reason %q", reason)
	}
	w.want("a namespace of dev-2 in dev-1", w.tag("dev-1/c", "app"), "")
}
