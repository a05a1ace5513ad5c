// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/sync/simulator"
)

// silence is the body of an answer that never goes on.
type silence struct{ context.Context }

func (s silence) Read([]byte) (int, error) {
	<-s.Done()
	return 0, s.Err()
}

// TestWatchInSilence: one stream never begins, and one that nothing comes over is not
// ended when the server was asked to. What happened meanwhile is seen all the same.
func TestWatchInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, began := simulator.New(), []time.Duration{}
		start := time.Now()
		c, err := Connect(&rest.Config{Host: "http://simulator.invalid", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				return cluster.RoundTrip(r)
			}
			switch began = append(began, time.Since(start)); len(began) {
			case 1:
				<-r.Context().Done()
				return nil, r.Context().Err()
			case 2:
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {jsonType}}, Body: io.NopCloser(silence{r.Context()}), Request: r}, nil
			}
			return cluster.RoundTrip(r)
		})}, testRepository, Options{Timeout: 15 * time.Second, Jitter: func(d time.Duration) time.Duration { return d }})
		if err != nil {
			t.Fatal(err)
		}
		entries := applied(t, c, configMap(t, "default", "a", "1"))
		kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		found, err := c.Sweep(t.Context(), entries, nil)
		if err != nil {
			t.Fatal(err)
		}
		applied(t, c, configMap(t, "default", "b", "1"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err = c.Watch(ctx, Watch{Kind: kind, Since: found.Lists[kind], See: func(s Seen) {
			if s.ID.Name == "b" {
				cancel()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		second := 15*time.Second + minWatchPause
		if want := []time.Duration{0, second, second + watchLife + watchGrace + 2*minWatchPause}; !slices.Equal(began, want) {
			t.Errorf("streams began after %v, want %v", began, want)
		}
	})
}
