// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	swell "github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/plain"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/testdata/large"
)

// BenchmarkFirstRelease2000 compares the daemon's first release of 20 units of
// 100 objects with a plain loop that sends the same bodies. What counts for the
// daemon is the time from the commit until all is applied and recorded: the
// fetch, the rendering and the writes to the store are in it.
func BenchmarkFirstRelease2000(b *testing.B) {
	for _, of := range []struct {
		name   string
		rounds int
		docs   func(namespace string, unit int) []string // 100 of them
	}{
		{"ConfigMaps", 4, func(namespace string, unit int) (docs []string) {
			for i := range 100 {
				docs = append(docs, large.ConfigMap(namespace, fmt.Sprintf("u%02d-%02d", unit, i)))
			}
			return docs
		}},
		{"Mixed", 2, func(namespace string, unit int) (docs []string) {
			for i := range 13 { // of 8 kinds
				docs = append(docs, large.Mixed(namespace, fmt.Sprintf("u%02d-%02d", unit, i))...)
			}
			return docs[:100]
		}},
	} {
		b.Run(of.name, func(b *testing.B) {
			turns := 0
			plain.Race(b, of.rounds, "released", func(workers int) plain.Cost {
				turns++
				return firstRelease(b, turns, workers, of.docs)
			})
		})
	}
}

// firstRelease brings 20 units to 5 new namespaces in dev-2, by a daemon with
// nothing in its state or, with workers, by a plain loop, and deletes them.
func firstRelease(b *testing.B, turn, workers int, docs func(namespace string, unit int) []string) plain.Cost {
	b.Helper()
	w := newWorldOn(b, realClusters(b))
	w.tenant += fmt.Sprint("-", turn)
	w.must(os.RemoveAll(filepath.Join(w.repo(), "services")))
	w.write("services/swell.yaml", fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Defaults\nmetadata: {name: all}\nspec: {tenant: %s, placement: {match: {labels: {site: two}}}}\n", w.tenant))
	for unit := range 20 {
		namespace := fmt.Sprintf("%s-%d", w.tenant, unit%5)
		if unit < 5 {
			w.create("dev-2", namespaces, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
		}
		w.write(fmt.Sprintf("services/unit%02d/objects.yaml", unit), strings.Join(docs(namespace, unit), "---\n"))
	}
	w.commit()
	snapshot := (&render.Compiler{}).Snapshot("", config.Files(os.DirFS(w.repo())))
	var objects []*object.Object
	for _, unit := range snapshot.Units.All() {
		bundle, err := snapshot.Bundle(unit.Path, "dev-2/c")
		w.must(err)
		objects = append(objects, bundle.Objects...)
	}
	if len(objects) != 2000 {
		b.Fatalf("%d objects, want 2000: %v", len(objects), snapshot.Problems)
	}
	do := func() error { return plain.Apply(b.Context(), w.config("dev-2"), objects, workers) }
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	if workers == 0 {
		w.real, w.patience, w.poll = true, 0, time.Hour // the daemon's own patience
		w.start()
		applied := make(chan struct{})
		tell := sync.OnceFunc(func() { close(applied) })
		w.daemon.Observe = func(_ swell.Record, state *rollout.State) {
			for _, unit := range state.Units {
				if t := unit.Targets["dev-2/c"]; t == nil || t.Applied == "" || t.Applied != t.Wanted {
					return
				}
			}
			if len(state.Units) == 20 {
				tell()
			}
		}
		do = func() error {
			go func() { ended <- w.daemon.Run(ctx) }()
			select {
			case <-applied:
				return nil
			case err := <-ended:
				return fmt.Errorf("the daemon has ended: %w", err)
			}
		}
	}
	cost, err := plain.Measure(len(objects), do)
	cancel()
	w.must(err)
	if workers == 0 {
		w.must(<-ended)
	}
	w.stop()
	w.must(plain.Empty(b.Context(), w.config("dev-2"), objects))
	return cost
}
