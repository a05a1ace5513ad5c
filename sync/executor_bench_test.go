// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/faults"
	"github.com/swell-sh/swell/sync/rollout"
)

// twenty is a fleet of twenty clusters, each with one cell, and the namespaces
// for them. All are one API server, which has another identity under each name.
func (w *world) twenty() (proxies []*faults.TCP) {
	w.Helper()
	w.lease.Off = true // they are one API server, with one Lease
	var docs strings.Builder
	for i := range 20 {
		name := fmt.Sprintf("c-%02d", i)
		fmt.Fprintf(&docs, "apiVersion: swell.sh/v1\nkind: Cluster\nmetadata: {name: %s, labels: {site: many}}\nspec: {cells: [{name: x%02d}]}\n---\n", name, i)
		cfg := faults.HTTP(w, w.config("dev-1"), func(rw http.ResponseWriter, r *http.Request, forward http.Handler) {
			if r.URL.Path == "/api/v1/namespaces/kube-system" {
				rw.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(rw, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"kube-system","uid":"%s"}}`, name)
				return
			}
			forward.ServeHTTP(rw, r)
		})
		proxies = append(proxies, w.behind(name, cfg))
		w.create("dev-1", namespaces, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s-x%02d}\n", w.tenant, i)
	}
	docs.WriteString("apiVersion: swell.sh/v1\nkind: Rollout\nmetadata: {name: default}\nspec: {waves: [{name: all, maxFailures: 1}]}\n")
	w.write("fleet/fleet.yaml", docs.String())
	w.git("rm", "-r", "--quiet", "services/space")
	return proxies
}

// BenchmarkOneOfTwentyIsBlackHoled releases a unit of 50 ConfigMaps to twenty
// clusters, with all of them well and with one that swallows what is sent to
// it: the time until the others are written, healthy and recorded.
func BenchmarkOneOfTwentyIsBlackHoled(b *testing.B) {
	w := newWorld(b)
	proxies := w.twenty()
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	w.patience = 0 // the daemon's own
	tag := 0
	release := func() time.Duration {
		tag++
		w.app("app", fmt.Sprint(tag), names...)
		w.commit()
		began := time.Now()
		for !w.wellBut(tag, "c-00/x00") {
			if len(w.pass().Actions) == 0 {
				<-time.After(5 * time.Millisecond) // as the daemon rests between passes
			}
			w.now = w.now.Add(10 * time.Millisecond)
		}
		return time.Since(began)
	}
	w.stop()
	w.commit()
	w.start()
	release()
	var well, holed time.Duration
	for b.Loop() {
		well += release()
		w.until("the whole fleet", w.is("app", tag, rollout.Done))
		proxies[0].Set(faults.Hole)
		holed += release()
		proxies[0].Set(faults.Pass)
		w.until("the whole fleet", w.is("app", tag, rollout.Done))
	}
	b.ReportMetric(holed.Seconds()/well.Seconds(), "holed/well")
	b.ReportMetric(well.Seconds()/float64(b.N), "well-s/release")
	b.ReportMetric(0, "ns/op") // holds both
}

// wellBut says whether the n-th rollout of app is where it should be on every
// target but one.
func (w *world) wellBut(n int, but config.TargetName) bool {
	u := w.unit("app")
	if u == nil || u.Rollout.ID != n {
		return false
	}
	for name, target := range u.Targets {
		if name != but && (target.Applied != target.Wanted || target.Health != rollout.HealthGood) {
			return false
		}
	}
	return true
}
