// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/simulator"
)

// breaking is a server whose first stream breaks at once.
type breaking struct {
	now     atomic.Pointer[simulator.Cluster]
	broke   bool
	breaks  func()
	watches map[*simulator.Cluster]int
}

func breakingAt(first *simulator.Cluster) *breaking {
	b := &breaking{breaks: func() {}, watches: map[*simulator.Cluster]int{}}
	b.now.Store(first)
	return b
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	now := b.now.Load()
	if r.URL.Query().Get("watch") == "" {
		return now.RoundTrip(r)
	}
	if b.watches[now]++; b.broke {
		return now.RoundTrip(r)
	}
	b.broke = true
	b.breaks()
	body := io.NopCloser(io.MultiReader(strings.NewReader(`{"type":`)))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: body, Request: r}, nil
}

// written writes ConfigMaps.
func written(t *testing.T, c *Cluster, n int) {
	t.Helper()
	var objects []*object.Object
	for i := range n {
		objects = append(objects, configMap(t, "default", fmt.Sprintf("c%d", i), "1"))
	}
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// TestWatchOfAnotherCluster: a stream breaks, and another cluster stands at the address for a
// while, whose resourceVersion is far ahead. Nothing of it is watched, and what happened meanwhile
// in the first one is seen when that is back.
func TestWatchOfAnotherCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		first, other := simulator.New(), simulator.New()
		written(t, identified(t, Options{}, other.RoundTrip), 50)
		server := breakingAt(first)
		c := identified(t, Options{Jitter: func(d time.Duration) time.Duration { return d }}, server.RoundTrip)
		found, err := c.Sweep(t.Context(), applied(t, c, configMap(t, "default", "a", "1")), nil)
		if err != nil {
			t.Fatal(err)
		}
		server.breaks = func() {
			server.now.Store(other)
			time.AfterFunc(10*time.Second, func() { server.now.Store(first) })
			written(t, identified(t, Options{}, first.RoundTrip), 1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		seen := ""
		err = c.Watch(ctx, Watch{Kind: configMapKind, Since: found.Lists[configMapKind], See: func(s Seen) {
			seen = s.ID.Name
			cancel()
		}})
		if err != nil || seen != "c0" || server.watches[other] > 0 {
			t.Errorf("%v, seen %q, %d watches of the other cluster", err, seen, server.watches[other])
		}
	})
}

// TestWatchOfAClusterThatWentBack: the etcd of a cluster was put back from a copy. The watch does
// not wait until its resourceVersion is past the one that was seen last: only a sweep tells what
// is there.
func TestWatchOfAClusterThatWentBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		same := func() func() types.UID {
			n := 0
			return func() types.UID {
				n++
				return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n))
			}
		}
		first, copied := simulator.NewWith(same()), simulator.NewWith(same())
		server := breakingAt(first)
		c := identified(t, Options{}, server.RoundTrip)
		written(t, c, 50)
		found, err := c.Sweep(t.Context(), applied(t, c, configMap(t, "default", "a", "1")), nil)
		if err != nil {
			t.Fatal(err)
		}
		server.breaks = func() { server.now.Store(copied) }
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		err = c.Watch(ctx, Watch{Kind: configMapKind, Since: found.Lists[configMapKind], See: func(Seen) {}})
		if !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "the cluster went back from resourceVersion") {
			t.Errorf("%v, want %v", err, ErrExpired)
		}
	})
}

// TestFewThatAreNotAnswered: a look at single objects that a busy server does not answer has to be
// made again; one that it forbids has not.
func TestFewThatAreNotAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, code := simulator.New(), 0
		c := identified(t, Options{}, func(r *http.Request) (*http.Response, error) {
			status := code
			switch {
			case code != 0 && strings.HasSuffix(r.URL.Path, "/configmaps/a"): // and never of the one before
				status = http.StatusForbidden
			case code == 0 || !strings.HasSuffix(r.URL.Path, "/configmaps/b"):
				return server.RoundTrip(r)
			}
			text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":%d}`, status)
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {jsonType}, "Retry-After": {"20"}},
				Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
		})
		entries := applied(t, c, configMap(t, "default", "a", "1"), configMap(t, "default", "b", "1"))
		for _, status := range []int{http.StatusForbidden, http.StatusInternalServerError, http.StatusTooManyRequests} {
			code = status
			found, err := c.SweepFew(t.Context(), entries, nil)
			if want := status != http.StatusForbidden; err == nil || found.Unanswered != want || found.Looked[0] || found.Looked[1] {
				t.Errorf("%d: unanswered %t, looked %v: %v", status, found.Unanswered, found.Looked, err)
			}
		}
	})
}
