// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/simulator"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAConnectionThatBeganElsewhere: two kubeconfigs are swapped for a moment in which swell
// connects. When they are swapped back, the right cluster is written to.
func TestAConnectionThatBeganElsewhere(t *testing.T) {
	right, other := simulator.New(), simulator.New()
	now := right
	wire := roundTrip(func(r *http.Request) (*http.Response, error) { return now.RoundTrip(r) })
	given := &rest.Config{Host: "http://simulator.invalid", Transport: wire}
	c := newCluster("dev-1", "shop", kubeconfig{given: given}, apply.Options{})
	c.pin = func(_ context.Context, _, uid string) (string, error) { return uid, nil }
	if _, err := c.Reach(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = other
	found, _, err := c.connect(t.Context()) // as in the background, while the cluster does not answer
	if err != nil {
		t.Fatal(err)
	}
	c.link = found
	for range 2 {
		if _, err := c.Reach(t.Context()); err == nil || !strings.Contains(err.Error(), "not the cluster we knew") {
			t.Errorf("another cluster: %v", err)
		}
	}
	c.link = found
	now = right
	conn, err := c.Reach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`)
	o := &object.Object{ID: object.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}, Version: "v1", JSON: text}
	if results := conn.Apply(t.Context(), apply.Work{Objects: []*object.Object{o}}); len(results) != 1 || results[0].Err != nil {
		t.Errorf("after they were swapped back: %+v", results)
	}
}
