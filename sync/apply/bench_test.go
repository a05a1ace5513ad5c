// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/store"
)

const benchObjects = 2000

// manyConfigMaps are of about the size of a small service's configuration.
func manyConfigMaps(b testing.TB, namespace string) []*render.Object {
	objects := make([]*render.Object, benchObjects)
	text := strings.Repeat("listen = 0.0.0.0:8080\\n", 20)
	for i := range objects {
		objects[i] = object(b, `
apiVersion: v1
kind: ConfigMap
metadata: {name: c%04d, namespace: %s, labels: {app: cart, tier: web}}
data: {app.toml: "%s", level: info, zone: "%d"}
`, i, namespace, text, i)
	}
	return objects
}

// BenchmarkSweep2000 is one look for drift where there is none. It stands first
// because a LIST also brings what other benchmarks left in the cluster.
func BenchmarkSweep2000(b *testing.B) {
	c, w := connect(b, Options{})
	entries := applied(b, c, manyConfigMaps(b, space(b))...)
	w.take()
	for b.Loop() {
		if got, err := c.Sweep(b.Context(), entries, nil); err != nil || len(got.Drifts) != 0 {
			b.Fatal(fmt.Sprint(got.Drifts, err))
		}
	}
	b.ReportMetric(float64(len(w.take()))/float64(b.N), "requests/op")
}

// plain sends the bodies as a client-go program would that does nothing else.
func plain(b *testing.B, client *rest.RESTClient, objects []*render.Object) time.Duration {
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(16)
	for _, o := range objects {
		group.Go(func() error {
			return client.Patch(types.ApplyPatchType).AbsPath("/api/v1/namespaces/"+o.ID.Namespace+"/configmaps/"+o.ID.Name).
				Param("fieldManager", FieldManager).Param("force", "true").Param("fieldValidation", "Strict").
				Body(o.JSON).Do(context.Background()).Error()
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

// BenchmarkFirstApply2000 compares the rate of a first Apply with the plain
// concurrent PATCH rate: plain/apply is 1 when Apply costs nothing on top.
func BenchmarkFirstApply2000(b *testing.B) {
	cfg := apiServer(b)
	cfg.QPS = -1
	cfg.GroupVersion = nil
	cfg.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	client, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		b.Fatal(err)
	}
	c, _ := connect(b, Options{})
	var ours, theirs time.Duration
	for i := range b.N {
		a, p := manyConfigMaps(b, space(b)), manyConfigMaps(b, space(b))
		apply := func() {
			began := time.Now()
			for _, r := range c.bring(b.Context(), a, nil) {
				if r.Err != nil || r.Action != Created {
					b.Fatalf("%+v", r)
				}
			}
			ours += time.Since(began)
		}
		if i%2 == 0 { // whoever comes second finds a fuller store
			theirs += plain(b, client, p)
			apply()
		} else {
			apply()
			theirs += plain(b, client, p)
		}
	}
	n := float64(benchObjects * b.N)
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "plain/apply")
	b.ReportMetric(n/ours.Seconds(), "applied/s")
	b.ReportMetric(n/theirs.Seconds(), "plain/s")
	b.ReportMetric(0, "ns/op") // holds both
}

// BenchmarkUnchanged2000 is an Apply with nothing to do.
func BenchmarkUnchanged2000(b *testing.B) {
	c, w := connect(b, Options{})
	objects := manyConfigMaps(b, space(b))
	known := map[render.ObjectID]store.Entry{}
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
	objects := manyConfigMaps(b, space(b))
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
