// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/plain"
	"github.com/swell-sh/swell/sync/store"
	"github.com/swell-sh/swell/testdata/large"
)

// manyConfigMaps are n in a namespace.
func manyConfigMaps(t testing.TB, namespace string, n int) []*object.Object {
	objects := make([]*object.Object, n)
	for i := range objects {
		objects[i] = newObject(t, "%s", large.ConfigMap(namespace, fmt.Sprintf("c%05d", i)))
	}
	return objects
}

// manyMixed are 2,000 objects of services in some namespaces, service by
// service.
func manyMixed(t testing.TB, namespaces []string) []*object.Object {
	var objects []*object.Object
	for i := range 250 {
		for _, doc := range large.Mixed(namespaces[i%len(namespaces)], fmt.Sprintf("s%03d", i)) {
			objects = append(objects, newObject(t, "%s", doc))
		}
	}
	return objects
}

// BenchmarkSweep2000 is one look for drift where there is none. It stands first
// because a LIST also brings what other benchmarks left in the cluster.
func BenchmarkSweep2000(b *testing.B) {
	c, w := connect(b, Options{})
	entries := applied(b, c, manyConfigMaps(b, space(b), 2000)...)
	w.take()
	for b.Loop() {
		if got, err := c.Sweep(b.Context(), entries, nil); err != nil || len(got.Drifts) != 0 {
			b.Fatal(fmt.Sprint(got.Drifts, err))
		}
	}
	b.ReportMetric(float64(len(w.take()))/float64(b.N), "requests/op")
}

// BenchmarkFirstApply compares a first Apply with a plain loop that sends the
// same bodies. Each has a new connection and empty namespaces.
func BenchmarkFirstApply(b *testing.B) {
	for _, of := range []struct {
		name               string
		rounds, namespaces int
		objects            func(testing.TB, []string) []*object.Object
	}{
		{"2000ConfigMaps", 4, 1, func(t testing.TB, in []string) []*object.Object { return manyConfigMaps(t, in[0], 2000) }},
		{"10000ConfigMaps", 2, 1, func(t testing.TB, in []string) []*object.Object { return manyConfigMaps(t, in[0], 10_000) }},
		{"2000Mixed", 2, 5, manyMixed},
	} {
		b.Run(of.name, func(b *testing.B) {
			cfg := apiServer(b)
			plain.Race(b, of.rounds, "applied", func(workers int) plain.Cost {
				var in []string
				for range of.namespaces {
					in = append(in, space(b))
				}
				objects := of.objects(b, in)
				// A bundle's order for the plain loop too. Deployments in between would
				// have it measured with what their controllers do.
				slices.SortStableFunc(objects, func(a, b *object.Object) int { return object.CompareApplyOrder(a.ID, b.ID) })
				cost, err := plain.Measure(len(objects), func() error {
					if workers == 0 {
						return firstApply(b.Context(), cfg, objects)
					}
					return plain.Apply(b.Context(), cfg, objects, workers)
				})
				if err := errors.Join(err, plain.Empty(b.Context(), cfg, objects)); err != nil {
					b.Fatal(err)
				}
				return cost
			})
		})
	}
}

func firstApply(ctx context.Context, cfg *rest.Config, objects []*object.Object) error {
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		return err
	}
	for _, r := range c.bring(ctx, objects, nil) {
		if r.Err != nil || r.Action != Created {
			return fmt.Errorf("%s: %s %w", r.ID, r.Action, r.Err)
		}
	}
	return nil
}

// BenchmarkUnchanged2000 is an Apply with nothing to do.
func BenchmarkUnchanged2000(b *testing.B) {
	c, w := connect(b, Options{})
	objects := manyConfigMaps(b, space(b), 2000)
	known := map[object.ID]store.Entry{}
	for i, e := range applied(b, c, objects...) {
		known[objects[i].ID] = e
	}
	w.take()
	for b.Loop() {
		c.bring(b.Context(), objects, known)
	}
	b.ReportMetric(float64(len(w.take())), "requests")
}

// BenchmarkLostState2000 is an Apply of objects that are all there, by an
// inventory that knows none of them.
func BenchmarkLostState2000(b *testing.B) {
	c, w := connect(b, Options{})
	objects := manyConfigMaps(b, space(b), 2000)
	applied(b, c, objects...)
	w.take()
	for b.Loop() {
		c.contacts = &contacts{}
		for _, r := range c.bring(b.Context(), objects, nil) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	}
	b.ReportMetric(float64(len(w.take()))/float64(b.N), "requests/op")
}
