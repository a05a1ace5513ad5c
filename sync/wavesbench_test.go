// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	swell "github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/plain"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkWaves200 brings a change of 200 objects to each of three clusters: in three waves
// without a soak, in one wave, and by plain loops that send the same bodies, to one cluster
// after the other and to all at once. What counts for the daemon is the time from the commit
// until the release is done: the fetch, the rendering, the health and the writes to the store
// are in it.
func BenchmarkWaves200(b *testing.B) {
	for _, of := range []struct {
		name string
		docs func(namespace, unit string) []string
	}{
		{"ConfigMaps", func(namespace, unit string) (docs []string) {
			for i := range 200 {
				docs = append(docs, large.ConfigMap(namespace, fmt.Sprintf("%s-%03d", unit, i)))
			}
			return docs
		}},
		{"Mixed", func(namespace, unit string) (docs []string) {
			for i := range 25 { // of 8 kinds
				docs = append(docs, large.Mixed(namespace, fmt.Sprintf("%s-%02d", unit, i))...)
			}
			return docs
		}},
	} {
		b.Run(of.name, func(b *testing.B) { benchmarkWaves(b, of.docs) })
	}
}

func benchmarkWaves(b *testing.B, docs func(namespace, unit string) []string) {
	w := sitesOn(b)
	w.dropFile("services/app")
	w.dropFile("services/space")
	for cluster := range w.access {
		w.create(cluster, namespaces, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", w.tenant)
	}
	_, waves, _ := strings.Cut(sitesYAML, "kind: Rollout\n")
	w.write("fleet/fleet.yaml", strings.ReplaceAll(sitesYAML, "soak: 10m, ", ""))
	head, _, _ := strings.Cut(waves, "  waves:\n")
	w.write("fleet/once.yaml", "apiVersion: swell.sh/v1\nkind: Rollout\n"+strings.Replace(head, "default", "once", 1)+"  waves: [{name: all}]\n")
	w.write("services/once/swell.yaml", "apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: once}\nspec: {rollout: once}\n")
	version := 0
	write := func(unit string) {
		version++
		text := strings.Join(docs(w.tenant, unit), "---\n")
		w.write("services/"+unit+"/objects.yaml", strings.ReplaceAll(text, "labels: {", fmt.Sprintf("annotations: {version: \"%d\"}, labels: {", version)))
	}
	write("waves")
	write("once")
	w.commit()

	w.real, w.patience, w.poll = true, 0, time.Hour // the daemon's own patience
	w.start()
	done := make(chan map[config.UnitPath]config.Commit, 1)
	w.daemon.Observe = func(_ swell.Record, state *rollout.State) {
		is := map[config.UnitPath]config.Commit{}
		for path, u := range state.Units {
			if u.Rollout.Status == rollout.Done && u.Rollout.Reason == "" {
				is[path] = u.Rollout.Commit
			}
		}
		select {
		case <-done: // nobody took the last one
		default:
		}
		done <- is
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.daemon.Run(ctx) }()
	until := func(units ...config.UnitPath) {
		commit := config.Commit(w.head())
		for late := time.After(w.longest()); ; {
			select {
			case is := <-done:
				if !slices.ContainsFunc(units, func(path config.UnitPath) bool { return is[path] != commit }) {
					return
				}
			case err := <-ended:
				b.Fatal(err)
			case <-late:
				b.Fatal("the release is not done")
			}
		}
	}
	until("services/waves", "services/once")

	daemon := func(unit string) func() time.Duration {
		return func() time.Duration {
			write(unit)
			w.commit()
			began := time.Now()
			w.daemon.Hurry()
			until(config.UnitPath("services/" + unit))
			return time.Since(began)
		}
	}
	loops := func(atOnce int) func() time.Duration {
		return func() time.Duration {
			write("plain")
			snapshot := (&render.Compiler{}).Snapshot("", config.Files(os.DirFS(w.repo())))
			w.dropFile("services/plain")
			var group errgroup.Group
			group.SetLimit(atOnce)
			began := time.Now()
			for cluster, target := range map[string]config.TargetName{"dev-1": "dev-1/a", "dev-2": "dev-2/b", "dev-3": "dev-3/c"} {
				bundle, err := snapshot.Bundle("services/plain", target)
				w.must(err)
				if len(bundle.Objects) != 200 {
					b.Fatalf("%d objects, want 200: %v", len(bundle.Objects), snapshot.Problems)
				}
				group.Go(func() error {
					return plain.Apply(b.Context(), w.config(cluster), bundle.Objects, plain.Workers[len(plain.Workers)-1])
				})
			}
			w.must(group.Wait())
			return time.Since(began)
		}
	}
	turns := map[string]func() time.Duration{"waves": daemon("waves"), "once": daemon("once"), "plain-after": loops(1), "plain-at-once": loops(3)}
	took := map[string]time.Duration{}
	loops(3)()       // makes them
	const rounds = 4 // everybody is first once
	for b.Loop() {
		for round := range rounds {
			names := slices.Sorted(maps.Keys(turns))
			names = slices.Concat(names[round%len(names):], names[:round%len(names)])
			for _, name := range names {
				one := turns[name]()
				took[name] += one
			}
		}
	}
	for name, sum := range took {
		b.ReportMetric(float64(sum.Milliseconds())/rounds, name+"-ms")
	}
	b.ReportMetric(took["waves"].Seconds()/took["once"].Seconds(), "waves/once")
	b.ReportMetric(took["waves"].Seconds()/took["plain-after"].Seconds(), "waves/plain-after")
	b.ReportMetric(0, "ns/op") // holds all
	cancel()
	w.must(<-ended)
	w.stop()
}

// head is the newest commit of the repository.
func (w *world) head() string {
	w.Helper()
	text, err := os.ReadFile(w.repo() + "/.git/refs/heads/main")
	w.must(err)
	return strings.TrimSpace(string(text))
}
