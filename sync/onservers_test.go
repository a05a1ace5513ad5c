// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"pgregory.net/rapid"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/diff"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/source"
	"github.com/swell-sh/swell/sync/source/gittest"
	"github.com/swell-sh/swell/sync/store"
)

// TestPreviewOnServers is [TestPreviewIsWhatTheDaemonDoes] on real API servers: what a preview says of an edit
// is held against the objects that are there before and after the daemon took it. SWELL_SERVER_EDITS is how many
// edits, each of the whole example, which is brought back after it; SWELL_SEED is the first one.
func TestPreviewOnServers(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SWELL_SERVER_EDITS"))
	if n == 0 {
		t.Skip("SWELL_SERVER_EDITS is not set: each edit takes seconds on three clusters")
	}
	seed, _ := strconv.Atoi(os.Getenv("SWELL_SEED"))
	example := exampleFiles(t)
	edited := rapid.Custom(func(rt *rapid.T) files {
		f := maps.Clone(example)
		for range rapid.IntRange(1, 3).Draw(rt, "edits") {
			edits[rapid.IntRange(0, len(edits)-1).Draw(rt, "edit")](rt, f)
		}
		return f
	})
	clusters := devtest.Start(t, "sas-1", "vla-1", "myt-1")
	access := map[string]config.ClusterAccess{}
	for _, name := range []string{"sas-1", "vla-1", "myt-1"} {
		access[name] = config.ClusterAccess{Name: name, Kubeconfig: clusters.Kubeconfig, Context: name}
	}
	s := &serverFleet{T: t, access: access, clients: map[string]dynamic.Interface{}, now: time.Now()}
	for name := range access {
		cfg, err := clusters.Config(name)
		s.must(err)
		cfg.QPS = -1
		s.clients[name], err = dynamic.NewForConfig(cfg)
		s.must(err)
		if s.mapper == nil {
			kinds, err := discovery.NewDiscoveryClientForConfig(cfg)
			s.must(err)
			s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
		}
	}
	s.begin(example)
	for i := range n {
		s.try(seed+i, example, edited.Example(seed+i))
	}
}

// serverFleet is a daemon with real clusters.
type serverFleet struct {
	*testing.T
	access  map[string]config.ClusterAccess
	clients map[string]dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	d       *Daemon
	store   *store.Store
	repo    string
	now     time.Time
	commits int
}

func (s *serverFleet) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// begin brings the example to the clusters.
func (s *serverFleet) begin(example files) {
	dir := s.TempDir()
	s.repo = filepath.Join(dir, "repo")
	s.must(gittest.Init(s.repo))
	s.push(example)
	var err error
	s.store, err = store.Open(filepath.Join(dir, "state"))
	s.must(err)
	from, err := source.Open(source.Config{URL: s.repo, Branch: "main", Dir: filepath.Join(dir, "state", "git")})
	s.must(err)
	log := slog.New(slog.NewTextHandler(s.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	now := func() time.Time { return s.now }
	s.d, err = Open(Options{Source: from, Store: s.store, Clusters: s.access, Patience: 24 * time.Hour, Now: now, Log: log})
	s.must(err)
	s.Cleanup(func() { s.must(errors.Join(s.d.Finish(s.T.Context()), from.Close(), s.store.Close())) })
	s.settle()
}

// push makes the next commit.
func (s *serverFleet) push(f files) {
	s.Helper()
	entries, err := os.ReadDir(s.repo)
	s.must(err)
	for _, entry := range entries {
		if entry.Name() != ".git" {
			s.must(os.RemoveAll(filepath.Join(s.repo, entry.Name())))
		}
	}
	for name, content := range f {
		name = filepath.Join(s.repo, name)
		s.must(errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)))
	}
	s.commits++ // one that changes nothing else is a commit, too
	s.must(os.WriteFile(filepath.Join(s.repo, "commits.txt"), []byte(strconv.Itoa(s.commits)), 0o644))
	_, err = gittest.Commit(s.repo, "change")
	s.must(err)
}

// settle makes passes until nothing changes any more in more than an hour.
func (s *serverFleet) settle() {
	s.Helper()
	deadline := time.Now().Add(5 * time.Minute)
	for calm, idle := 0, 0; calm < 4; idle++ {
		r := s.d.Once(s.Context())
		s.must(r.Err)
		if time.Now().After(deadline) {
			s.Fatalf("no rest: busy %v, %s, %v, %v:\n%s", s.d.Busy(), s.awaited(), r.Transitions, r.Objects, leftOf(s.d))
		}
		changed := len(r.Transitions)+r.Objects[apply.Created]+r.Objects[apply.Configured]+r.Objects[apply.Deleted] > 0
		if changed {
			calm = 0
		}
		if changed || s.d.Busy() || len(s.awaited()) > 0 { // an action alone may be one that waits
			idle = 0
		}
		step := 200 * time.Millisecond // what a slow machine's controllers do would be late
		if idle >= 5 {
			step, idle = 20*time.Minute, 0
			calm++
		}
		s.now = s.now.Add(step)
		time.Sleep(20 * time.Millisecond)
	}
}

// awaited are the targets whose clusters have yet to do something.
func (s *serverFleet) awaited() (list []string) {
	for path, unit := range s.d.state.Units {
		for name, t := range unit.Targets {
			starting := t.Applied != "" && t.Applied == t.Wanted && t.Health == rollout.HealthProgressing
			if t.Trouble == "" && (starting || t.Step != "" && t.Wanted != "") {
				list = append(list, fmt.Sprintf("%s on %s: %s %s %s", path, name, t.Health, t.Step, t.Reason))
			}
		}
	}
	return list
}

// try previews an edit, has the daemon take it, and brings the example back.
func (s *serverFleet) try(seed int, example, f files) {
	names := maps.Clone(example)
	maps.Copy(names, f)
	for name := range names {
		if f[name] != example[name] {
			s.Logf("seed %d: %s:\n%s", seed, name, cmp.Diff(strings.Split(example[name], "\n"), strings.Split(f[name], "\n")))
		}
	}
	var compiler render.Compiler
	base := compiler.Snapshot("base", example.tree())
	compiler.Base = base.Repository
	head := compiler.Snapshot("head", f.tree())
	report, plan := &diff.Report{Refused: "held"}, &Forecast{}
	if !head.Held {
		var err error
		report, plan, err = PreviewPlan(base, head, &compiler, config.DefaultGuard, rollout.Now{}, s.now)
		s.must(err)
	}
	objects := slices.DeleteFunc(s.objectsOf(base, head), func(key clusterObject) bool { return staysWhole(report, key) })
	before := s.live(objects)
	s.push(f)
	s.settle()
	forecast := predictedAt(head, report, plan, s.now, false)
	s.compare(fmt.Sprintf("seed %d, before approval", seed), objects, before, s.live(objects), forecast, plan)
	s.approveAll()
	s.settle()
	forecast = predictedAt(head, report, plan, s.now, true)
	s.compare(fmt.Sprintf("seed %d, after approval", seed), objects, before, s.live(objects), forecast, plan)
	s.push(example)
	s.settle()
	s.approveAll()
	s.settle()
	restored := s.live(objects)
	for key, first := range before {
		if now, ok := restored[key]; !ok || now.content != first.content {
			s.Fatalf("seed %d: %s in %s does not come back:\n%s\n%s\n%s",
				seed, key.id, key.cluster, first.content, now.content, leftOf(s.d))
		}
	}
}

// staysWhole says that an object is of a unit that leaves with a Namespace which others keep, as the preview says: the
// wave in which it stays is not over, so nobody knows how far the unit is cleaned.
func staysWhole(report *diff.Report, key clusterObject) bool {
	kept := map[config.UnitPath]bool{}
	for _, c := range report.Changes {
		kept[c.Unit] = kept[c.Unit] || strings.HasPrefix(c.Along, "it stays as long as")
	}
	return slices.ContainsFunc(report.Changes, func(c diff.Change) bool {
		for i, target := range c.Targets {
			if kept[c.Unit] && key == (clusterObject{target.Cluster(), c.IDs[i]}) {
				return true
			}
		}
		return false
	})
}

func (s *serverFleet) approveAll() {
	plans, err := s.store.Plans()
	s.must(err)
	for _, p := range plans {
		s.must(approveIn(s.Context(), s.store, p.Digest, s.now))
	}
}

// objectsOf are those that two commits bring to clusters. A Job is another one each time that it runs.
func (s *serverFleet) objectsOf(snapshots ...*render.Snapshot) []clusterObject {
	found := map[clusterObject]bool{}
	for _, snapshot := range snapshots {
		for _, unit := range snapshot.Units.All() {
			bundles, err := snapshot.BundlesByTarget(unit.Path)
			s.must(err)
			for target, b := range bundles {
				for _, o := range b.Objects {
					if !o.ID.IsJob() {
						found[clusterObject{target.Cluster(), o.ID}] = true
					}
				}
			}
		}
	}
	return slices.Collect(maps.Keys(found))
}

// seen is an object on a cluster.
type seen struct{ uid, content string }

// live are the objects that are there.
func (s *serverFleet) live(objects []clusterObject) map[clusterObject]seen {
	found := map[clusterObject]seen{}
	for _, key := range objects {
		mapping, err := s.mapper.RESTMapping(schema.GroupKind{Group: key.id.Group, Kind: key.id.Kind})
		if err != nil {
			s.mapper.Reset()
			continue // a kind that is not defined has no objects
		}
		resource := s.clients[key.cluster].Resource(mapping.Resource).Namespace(key.id.Namespace)
		u, err := resource.Get(s.Context(), key.id.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		s.must(err)
		scaler := object.ID{Group: "autoscaling", Kind: "HorizontalPodAutoscaler", Namespace: key.id.Namespace, Name: key.id.Name}
		if slices.Contains(objects, clusterObject{key.cluster, scaler}) {
			unstructured.RemoveNestedField(u.Object, "spec", "replicas") // it is the scaler's
		}
		found[key] = seen{string(u.GetUID()), written(s.T, u)}
	}
	return found
}

// written is what Git may have written of an object: without what servers and controllers add.
func written(t *testing.T, u *unstructured.Unstructured) string {
	delete(u.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	for _, count := range []string{"deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"} {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", count)
	}
	if u.GetKind() == "Service" { // others when it is made again
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIP")
		unstructured.RemoveNestedField(u.Object, "spec", "clusterIPs")
	}
	text, err := json.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compare holds what became of objects against what was said.
func (s *serverFleet) compare(
	when string, objects []clusterObject, before, after map[clusterObject]seen, forecast map[placement]diff.Action, plan *Forecast,
) {
	s.Helper()
	want := map[clusterObject]diff.Action{}
	for placed, action := range forecast {
		key := clusterObject{placed.Target.Cluster(), placed.id}
		if !slices.Contains(objects, key) {
			continue
		}
		if action == diff.Forgotten || action == diff.Released { // its marks may go
			if want[key] == "" {
				want[key] = diff.Released
			}
			continue
		}
		want[key] = action
	}
	did := map[clusterObject]diff.Action{}
	for key, first := range before {
		switch now, ok := after[key]; {
		case !ok:
			did[key] = diff.Deleted
		case now.uid != first.uid:
			did[key] = diff.Replaced
		case now.content != first.content:
			did[key] = diff.Configured
		}
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			did[key] = diff.Created
		}
	}
	var objections []string
	keys := maps.Clone(want)
	maps.Copy(keys, did)
	for key := range keys {
		if want[key] == did[key] || want[key] == diff.Released && (did[key] == "" || did[key] == diff.Configured) {
			continue
		}
		objections = append(objections, fmt.Sprintf("%s %s: said %q, did %q\n%s\n%s",
			key.cluster, key.id, want[key], did[key], before[key].content, after[key].content))
	}
	if len(objections) > 0 {
		slices.Sort(objections)
		s.Fatalf("%s:\n%s\n%s\n%s", when, strings.Join(objections, "\n"), comesTo(plan), leftOf(s.d))
	}
}
