// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/simulator"
	"github.com/swell-sh/swell/sync/store"
)

// roundTrip is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// identified is a connection that knows which cluster it leads to.
func identified(t *testing.T, options Options, to roundTrip) *Cluster {
	t.Helper()
	c, err := Connect(&rest.Config{Host: "http://simulator.invalid", Transport: to}, testRepository, options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAnotherClusterInTheMiddle: the connection breaks in the middle of an apply, and
// behind the address is another cluster from then on. Nothing is written there. Where it
// is the same one, the apply goes on.
func TestAnotherClusterInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		another bool
	}{{"another", true}, {"the same", false}} {
		t.Run(test.name, func(t *testing.T) {
			first, second := simulator.New(), simulator.New()
			now, writes, broken := first, map[*simulator.Cluster]int{}, false
			c := identified(t, Options{Concurrency: 1}, func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPatch {
					if !broken {
						broken = true
						if test.another {
							now = second
						}
						return nil, io.ErrUnexpectedEOF
					}
					writes[now]++
				}
				return now.RoundTrip(r)
			})
			results := c.bring(t.Context(), []*object.Object{configMap(t, "default", "a", "1"), configMap(t, "default", "b", "1")}, nil)
			if !test.another {
				if results[0].Err != nil || results[1].Err != nil || writes[first] != 2 {
					t.Errorf("%v, %v, %d writes", results[0].Err, results[1].Err, writes[first])
				}
				return
			}
			for _, r := range results {
				if r.Err == nil || !strings.Contains(r.Err.Error(), "another cluster answers than before") || !IsLost(r.Err) {
					t.Errorf("%s: %v", r.ID, r.Err)
				}
			}
			if writes[second] > 0 {
				t.Errorf("%d writes to the other cluster", writes[second])
			}
		})
	}
}

// TestDoubtedAgainAndAgain: each time that a write's turn comes, another request got no
// answer meanwhile. The write is given up in the end, and nothing of it is sent.
func TestDoubtedAgainAndAgain(t *testing.T) {
	t.Parallel()
	cluster, writes := simulator.New(), 0
	c := identified(t, Options{Concurrency: 1}, func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPatch {
			writes++
		}
		return cluster.RoundTrip(r)
	})
	c.limiter.now = func() time.Time { c.identity.doubt(); return time.Now() }
	results := c.bring(t.Context(), []*object.Object{configMap(t, "default", "a", "1")}, nil)
	if err := results[0].Err; err == nil || !IsLost(err) || writes > 0 {
		t.Errorf("%v, %d writes", err, writes)
	}
}

// TestAnotherClusterAfterAPause: a server asks to come again later, and then another
// cluster stands at the address. Nothing is written there.
func TestAnotherClusterAfterAPause(t *testing.T) {
	t.Parallel()
	first, second := simulator.New(), simulator.New()
	now, writes := first, 0
	c := identified(t, Options{Concurrency: 1}, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch {
			return now.RoundTrip(r)
		}
		if now == first {
			now = second
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody, Request: r}, nil
		}
		writes++
		return now.RoundTrip(r)
	})
	results := c.bring(t.Context(), []*object.Object{configMap(t, "default", "a", "1")}, nil)
	if err := results[0].Err; err == nil || !strings.Contains(err.Error(), "another cluster answers than before") || writes > 0 {
		t.Errorf("%v, %d writes", err, writes)
	}
}

// TestAnotherClusterForThoseWhoWait: while a server asks to come again later, all writes
// wait, and all of them ask who is there before they are sent.
func TestAnotherClusterForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := simulator.New(), simulator.New()
		now, writes := first, 0
		c := identified(t, Options{Concurrency: 1}, func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch {
				return now.RoundTrip(r)
			}
			if now == first {
				now = second
				return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody, Request: r}, nil
			}
			writes++
			return now.RoundTrip(r)
		})
		for _, result := range c.bring(t.Context(), []*object.Object{configMap(t, "default", "a", "1"), configMap(t, "default", "b", "1")}, nil) {
			if result.Err == nil || !strings.Contains(result.Err.Error(), "another cluster answers than before") {
				t.Errorf("%s: %v", result.ID, result.Err)
			}
		}
		if writes > 0 {
			t.Errorf("%d writes", writes)
		}
	})
}

// broken is the body of a watch whose connection breaks.
type broken struct{ io.ReadCloser }

func (broken) Read([]byte) (int, error) { return 0, errors.New("http2: client connection lost") }

// TestAnotherClusterAfterABrokenWatch: a watch breaks, with no other request under way, and
// then another cluster stands at the address. Nothing is written there.
func TestAnotherClusterAfterABrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := simulator.New(), simulator.New()
		now, writes := first, 0
		c := identified(t, Options{}, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch {
				writes++
			}
			answer, err := now.RoundTrip(r)
			if r.URL.Query().Get("watch") != "" {
				answer.Body, now = broken{answer.Body}, second
			}
			return answer, err
		})
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error)
		go func() {
			watched <- c.Watch(ctx, Watch{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Began: func() {}, See: func(Seen) {}})
		}()
		synctest.Wait()
		results := c.bring(t.Context(), []*object.Object{configMap(t, "default", "a", "1")}, nil)
		if err := results[0].Err; err == nil || !strings.Contains(err.Error(), "another cluster answers than before") || writes > 0 {
			t.Errorf("%v, %d writes", err, writes)
		}
		cancel()
		if err := <-watched; err != nil {
			t.Error(err)
		}
	})
}

// TestAnotherClusterBeforeARemoval: a request gets no answer, and then another cluster
// stands at the address. It has none of the objects, or others under their names: nothing
// is forgotten for that.
func TestAnotherClusterBeforeARemoval(t *testing.T) {
	t.Parallel()
	first, second := simulator.New(), simulator.New()
	now, asked := first, 0
	c := identified(t, Options{Concurrency: 1}, func(r *http.Request) (*http.Response, error) {
		if now == second && strings.HasSuffix(r.URL.Path, "/namespaces/kube-system") {
			asked++
		}
		return now.RoundTrip(r)
	})
	var entries []store.Entry
	other := configMap(t, "default", "other", "1")
	for _, result := range c.bring(t.Context(), []*object.Object{configMap(t, "default", "gone", "1"), other}, nil) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		entries = append(entries, result.Entry)
	}
	elsewhere, err := Connect(&rest.Config{Host: "http://simulator.invalid", Transport: second}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := elsewhere.bring(t.Context(), []*object.Object{other}, nil); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	now = second
	c.identity.doubt()
	for i, r := range c.Prune(t.Context(), entries) {
		refused := r.Err != nil && strings.Contains(r.Err.Error(), "another cluster answers than before") && IsLost(r.Err)
		if !refused || r.Forget || r.Action != "" || r.Entry != entries[i] {
			t.Errorf("%+v", r)
		}
	}
	if asked == 0 {
		t.Error("nobody asked which cluster it is")
	}
	now = first
	for _, r := range c.Prune(t.Context(), entries) {
		if r.Err != nil || r.Action != Deleted || !r.Forget {
			t.Errorf("back at the cluster: %+v", r)
		}
	}
}

// TestAnotherClusterDuringASurvey: what two clusters hold is no inventory of one.
func TestAnotherClusterDuringASurvey(t *testing.T) {
	t.Parallel()
	first, second := simulator.New(), simulator.New()
	now := first
	c := identified(t, Options{Concurrency: 1}, func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			now = second
		}
		return now.RoundTrip(r)
	})
	if entries, _, err := c.Survey(t.Context()); err == nil || !IsLost(err) || err.Error() != "survey all kinds: another cluster answers than before" {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}
