// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/swell-sh/swell/render"
)

// clockTick is what /proc counts CPU time in, on every platform of Linux that
// Go knows.
const clockTick = time.Second / 100

// serverCPU is the CPU time that the API server has used since it started. The
// benchmark is skipped where there is no /proc.
func serverCPU(b *testing.B) time.Duration {
	b.Helper()
	pids, err := os.Open(filepath.Join(clusters.Dir, "pids"))
	if err != nil {
		b.Fatal(err)
	}
	defer pids.Close()
	for lines := bufio.NewScanner(pids); lines.Scan(); {
		pid, name, _ := strings.Cut(lines.Text(), " ")
		if !strings.Contains(name, "kube-apiserver") {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if errors.Is(err, os.ErrNotExist) {
			b.Skip("no /proc to read the API server's CPU time from")
		}
		if err != nil {
			b.Fatal(err)
		}
		// The name in brackets may hold anything; the fields after it are numbered from 3.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		var ticks time.Duration
		for _, field := range fields[14-3 : 16-3] { // utime and stime
			n, err := strconv.Atoi(field)
			if err != nil {
				b.Fatal(err)
			}
			ticks += time.Duration(n)
		}
		return ticks * clockTick
	}
	b.Fatal("no kube-apiserver among the pids")
	return 0
}

// bulk is n ConfigMaps of about the size of a small service's configuration.
func bulk(b *testing.B, namespace string, n int) []*render.Object {
	objects := make([]*render.Object, n)
	text := strings.Repeat("listen = 0.0.0.0:8080\\n", 20)
	for i := range objects {
		objects[i] = object(b, `
apiVersion: v1
kind: ConfigMap
metadata: {name: c%05d, namespace: %s, labels: {app: cart, tier: web}}
data: {app.toml: "%s", level: info, zone: "%d"}
`, i, namespace, text, i)
	}
	return objects
}

// BenchmarkSweepAgainstDryRuns sweeps 10,000 objects in which nothing changed,
// ten times, and then does what a GET and a dry run for each of them does,
// through ssa.ResourceManager, once. It compares requests, CPU time of the API
// server and time of one such look.
func BenchmarkSweepAgainstDryRuns(b *testing.B) {
	const n, sweeps = 10_000, 10
	c, w := connect(b, Options{})
	objects := bulk(b, space(b), n)
	entries := applied(b, c, objects...)
	for b.Loop() {
		w.take()
		cpu, began := serverCPU(b), time.Now()
		for range sweeps {
			if found, err := c.Sweep(b.Context(), entries, nil); err != nil || len(found.Drifts) != 0 {
				b.Fatal(found.Drifts, err)
			}
		}
		ours := cost{cpu: (serverCPU(b) - cpu) / sweeps, took: time.Since(began) / sweeps}
		for _, s := range w.take() {
			if s.method != http.MethodGet {
				b.Errorf("sent %v", s)
			}
			ours.requests++
		}
		ours.requests /= sweeps
		theirs := throughManager(b, objects)
		b.Logf("one sweep of %d objects: %v; a GET and a dry run of each: %v", n, ours, theirs)
		b.ReportMetric(theirs.requests/ours.requests, "requests-ratio")
		b.ReportMetric(theirs.cpu.Seconds()/max(ours.cpu, clockTick/sweeps).Seconds(), "cpu-ratio")
		b.ReportMetric(theirs.took.Seconds()/ours.took.Seconds(), "time-ratio")
		b.ReportMetric(ours.requests, "requests/sweep")
		b.ReportMetric(float64(ours.cpu.Milliseconds()), "server-ms/sweep")
	}
	b.ReportMetric(0, "ns/op") // holds both
}

// cost of one look at all objects.
type cost struct {
	requests  float64
	cpu, took time.Duration
}

func (c cost) String() string {
	return fmt.Sprintf("%.0f requests, %s of the server's CPU, %s", c.requests, c.cpu, c.took.Round(time.Millisecond))
}

// throughManager has ssa look at each object: it finds none to apply.
func throughManager(b *testing.B, objects []*render.Object) cost {
	b.Helper()
	cfg := apiServer(b)
	cfg.QPS = -1
	var requests atomic.Int64
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	kube, err := client.New(cfg, client.Options{})
	if err != nil {
		b.Fatal(err)
	}
	manager := ssa.NewResourceManager(kube, nil, ssa.Owner{Field: FieldManager, Group: "swell.sh"})
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = &unstructured.Unstructured{}
		if err := all[i].UnmarshalJSON(o.JSON); err != nil {
			b.Fatal(err)
		}
	}
	requests.Store(0)
	cpu, began := serverCPU(b), time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for _, o := range all {
		group.Go(func() error {
			entry, err := manager.Apply(b.Context(), o, ssa.DefaultApplyOptions())
			if err == nil && entry.Action != ssa.UnchangedAction {
				err = fmt.Errorf("%s: %s", entry.Subject, entry.Action)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return cost{requests: float64(requests.Load()), cpu: serverCPU(b) - cpu, took: time.Since(began)}
}
