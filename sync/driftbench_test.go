// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/plain"
	"github.com/swell-sh/swell/sync/rollout"
)

// corrected calls disturb, which edits one of the many ConfigMaps, and returns
// when the edit is undone in the cluster.
func (w *world) corrected(name string, disturb func()) time.Time {
	w.Helper()
	maps := w.client("dev-2").Resource(configMaps).Namespace(w.tenant + "-c")
	ctx, cancel := context.WithTimeout(w.Context(), w.longest())
	defer cancel()
	watch, err := maps.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
	w.must(err)
	defer watch.Stop()
	disturb()
	edited := false
	for event := range watch.ResultChan() {
		live, ok := event.Object.(interface {
			UnstructuredContent() map[string]any
		})
		if !ok {
			w.Fatalf("watch: %v", event.Object)
		}
		stolen := live.UnstructuredContent()["data"].(map[string]any)["number"] == "stolen"
		if edited && !stolen {
			return time.Now()
		}
		edited = edited || stolen
	}
	w.Fatalf("not corrected within %s", w.longest())
	return time.Time{}
}

// BenchmarkDriftOfOneIn10000: one of 10,000 ConfigMaps is edited. How long from
// the beginning of a sweep until it is corrected in the cluster; and with the
// watch, from the edit. The one is held against a plain LIST of them all and one
// PATCH, the other against a plain watch and one PATCH.
func BenchmarkDriftOfOneIn10000(b *testing.B) {
	const n = 10_000
	w := newWorld(b)
	w.manyConfigMaps(n)
	w.commit()
	w.sweeping(config.Drift{})
	w.release()
	w.until("the ConfigMaps", w.is("many", 1, rollout.Done))
	patch := `{"data":{"number":"stolen"}}`
	var sweep, watch, plainSweep, plainWatch time.Duration
	bundle, err := w.daemon.Snapshot().Bundle("services/many", "dev-2/c")
	w.must(err)
	one := func(name string) *object.Object {
		return bundle.Objects[slices.IndexFunc(bundle.Objects, func(o *object.Object) bool { return o.ID.Name == name })]
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	rounds := 0
	for b.Loop() {
		rounds++
		name := fmt.Sprintf("many-%05d", 4242+rounds)
		var began time.Time
		end := w.corrected(name, func() {
			w.edit("dev-2/c", configMaps, name, patch, "kubectl-edit")
			began = time.Now()
			w.nextSweep() // finds it, and corrects it in the same pass
		})
		sweep += end.Sub(began)
		w.until("rest", func() bool { return len(w.pass().Actions) == 0 && w.drifts() == "" })
	}
	// run lets a new daemon run while do is at work, and returns its heap before
	// that.
	run := func(drift config.Drift, do func()) float64 {
		w.real, w.drift = true, drift
		w.stop()
		w.start()
		idle := make(chan struct{})
		w.daemon.Observe = func(r sync.Record, _ *rollout.State) {
			if len(r.Actions) > 0 {
				return
			}
			select {
			case idle <- struct{}{}:
			default:
			}
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.daemon.Run(ctx) }()
		<-idle // the first pass renders, and sweeps where it watches
		<-idle
		used := heap()
		do()
		cancel()
		w.must(<-ended)
		return float64(used)
	}
	for i := range rounds { // while no daemon runs
		name := fmt.Sprintf("many-%05d", 5000+i)
		var began time.Time
		end := w.corrected(name, func() {
			w.edit("dev-2/c", configMaps, name, patch, "kubectl-edit")
			began = time.Now()
			w.must(plain.Correct(b.Context(), w.config("dev-2"), one(name)))
		})
		plainSweep += end.Sub(began)
		watching, kept := make(chan struct{}), make(chan error, 1)
		go func() {
			kept <- plain.Keep(b.Context(), w.config("dev-2"), one(name), func() { close(watching) })
		}()
		select {
		case <-watching:
		case err := <-kept:
			b.Fatal(err)
		}
		end = w.corrected(name, func() {
			began = time.Now()
			w.edit("dev-2/c", configMaps, name, patch, "kubectl-edit")
		})
		plainWatch += end.Sub(began)
		w.must(<-kept)
	}
	without := run(config.Drift{}, func() {})
	with := run(config.Drift{Watch: true}, func() {
		warm := fmt.Sprintf("many-%05d", 77)
		w.corrected(warm, func() { w.edit("dev-2/c", configMaps, warm, patch, "kubectl-edit") }) // until the watch is there
		for i := range rounds {
			name := fmt.Sprintf("many-%05d", 4141+i)
			var began time.Time
			end := w.corrected(name, func() {
				began = time.Now()
				w.edit("dev-2/c", configMaps, name, patch, "kubectl-edit")
			})
			watch += end.Sub(began)
		}
	})
	b.ReportMetric(float64(sweep.Milliseconds())/float64(rounds), "ms-from-sweep")
	b.ReportMetric(float64(watch.Milliseconds())/float64(rounds), "ms-from-edit-with-watch")
	b.ReportMetric(sweep.Seconds()/plainSweep.Seconds(), "sweep/plain")
	b.ReportMetric(watch.Seconds()/plainWatch.Seconds(), "watch/plain")
	b.ReportMetric((with-without)/n, "watch-heap-B/object")
	b.ReportMetric(0, "ns/op") // holds both
}
