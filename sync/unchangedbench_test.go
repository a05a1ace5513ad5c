// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/plain"
)

// cost of one look at all objects.
type cost struct {
	requests  float64
	cpu, took time.Duration // cpu is the API servers'
}

func (c cost) String() string {
	return fmt.Sprintf("%.0f requests, %s of the API servers' CPU, %s", c.requests, c.cpu, c.took.Round(time.Millisecond))
}

// BenchmarkNothingChanged10000: passes of the daemon over 10,000 objects in
// which nothing changed, each of which sweeps them, ten times. Then what a GET
// and a dry run of each of them costs, through ssa.ResourceManager, once.
func BenchmarkNothingChanged10000(b *testing.B) {
	const n, passes = 10_000, 10
	w := newWorld(b)
	w.nothingChanged(b, n)
	bundle, err := w.daemon.Snapshot().Bundle("services/many", "dev-2/c")
	w.must(err)
	for b.Loop() {
		w.requests()
		cpu, began := w.serverCPU(), time.Now()
		for range passes {
			if r := w.nextSweep(); len(r.Drifts)+len(r.Actions) != 0 {
				b.Fatal(r.Drifts, r.Actions)
			}
		}
		ours := cost{cpu: (w.serverCPU() - cpu) / passes, took: time.Since(began) / passes}
		most := 0
		for _, cluster := range []string{"dev-1", "dev-2"} {
			sent := w.requestsTo(cluster)
			if writes := total(sent, "") - total(sent, "get ") - total(sent, "list "); writes != 0 {
				b.Errorf("%s was written to: %v", cluster, sent)
			}
			most = max(most, total(sent, "")/passes)
			ours.requests += float64(total(sent, "")) / passes
		}
		if most > 40 {
			b.Errorf("%d requests to a cluster, want at most 40", most)
		}
		theirs := w.throughManager(bundle.Objects)
		b.Logf("a pass over %d objects: %v; a GET and a dry run of each: %v", n, ours, theirs)
		b.ReportMetric(theirs.requests/ours.requests, "requests-ratio")
		b.ReportMetric(theirs.cpu.Seconds()/max(ours.cpu, plain.ClockTick/passes).Seconds(), "cpu-ratio")
		b.ReportMetric(theirs.took.Seconds()/ours.took.Seconds(), "time-ratio")
		b.ReportMetric(float64(most), "requests/pass/cluster")
		b.ReportMetric(float64(ours.cpu.Milliseconds()), "server-ms/pass")
		b.ReportMetric(float64(ours.took.Milliseconds()), "ms/pass")
	}
	b.ReportMetric(0, "ns/op") // holds both
}

// serverCPU is what the API servers have used. The benchmark is skipped where
// that cannot be known.
func (w *world) serverCPU() time.Duration {
	w.Helper()
	used, ok := plain.ServerCPU(w, w.clusters.Dir, "kube-apiserver")
	if !ok {
		w.Skip("no /proc to read the API servers' CPU time from")
	}
	return used
}

// throughManager has ssa look at each object: it finds none to apply.
func (w *world) throughManager(objects []*object.Object) cost {
	w.Helper()
	log.SetLogger(log.FromContext(w.Context()).WithSink(log.NullLogSink{}))
	cfg := w.config("dev-2")
	cfg.QPS = -1
	var requests atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counting{next, &requests}
	})
	kube, err := client.New(cfg, client.Options{})
	w.must(err)
	manager := ssa.NewResourceManager(kube, nil, ssa.Owner{Field: apply.FieldManager, Group: "swell.sh"})
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = &unstructured.Unstructured{}
		w.must(all[i].UnmarshalJSON(o.JSON))
	}
	requests.Store(0)
	cpu, began := w.serverCPU(), time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for _, o := range all {
		group.Go(func() error {
			entry, err := manager.Apply(w.Context(), o, ssa.DefaultApplyOptions())
			if err == nil && entry.Action != ssa.UnchangedAction {
				err = fmt.Errorf("%s: %s", entry.Subject, entry.Action)
			}
			return err
		})
	}
	w.must(group.Wait())
	return cost{requests: float64(requests.Load()), cpu: w.serverCPU() - cpu, took: time.Since(began)}
}

// counting counts requests.
type counting struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// requestsTo counts what requests counts, of one cluster; the next call of
// either goes on from there.
func (w *world) requestsTo(cluster string) map[string]int {
	w.Helper()
	counts := map[string]int{}
	for _, event := range w.auditLog(cluster) {
		if event.over() {
			counts[strings.TrimSpace(event.Verb+" "+event.ObjectRef.Resource)]++
		}
	}
	return counts
}
