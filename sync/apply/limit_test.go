// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/devcluster"
	"github.com/swell-sh/swell/sync/devcluster/devtest"
)

// server is a model of an API server on a clock of its own: it takes so many
// requests at a time, refuses those above with a 429, and answers each after a
// time.
type server struct {
	limiter  *limiter
	clock    time.Time
	capacity int
	latency  func(under int) time.Duration
	under    int
	refused  int
	answered int
}

func newServer(most, capacity int, latency func(int) time.Duration) *server {
	s := &server{limiter: newLimiter(min(firstLimit, most), most), clock: time.Unix(1e9, 0), capacity: capacity, latency: latency}
	s.limiter.now = func() time.Time { return s.clock }
	return s
}

func constantly(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

var aPatch = &request{op: "apply"}

// round sends as many requests as may be under way, and answers them.
func (s *server) round(t interface{ Fatal(...any) }, after time.Duration) {
	n := s.limiter.current()
	tickets := make([]ticket, n)
	for i := range tickets {
		var err *Error
		var ok bool
		if tickets[i], err, ok = s.limiter.acquire(context.Background(), aPatch); !ok || err != nil {
			t.Fatal("no turn for one of ", n, ": ", err)
		}
	}
	s.under = n
	s.clock = s.clock.Add(s.latency(n))
	for i, ticket := range tickets {
		if i >= s.capacity {
			s.refused++
			s.limiter.release(ticket, aPatch, &Error{Code: 429, class: ErrThrottled, after: after})
			continue
		}
		s.answered++
		s.limiter.release(ticket, aPatch, nil)
	}
	if s.under > s.capacity {
		s.clock = s.clock.Add(after) // everybody waits
	}
}

func TestLimitGrowsToItsMost(t *testing.T) {
	s := newServer(32, 100, constantly(5*time.Millisecond))
	rounds := 0
	for ; s.limiter.current() < 32 && rounds < 100; rounds++ {
		s.round(t, time.Second)
	}
	if rounds > 6 { // half as many more with each: 4, 6, 9, 13, 20, 30, 32
		t.Errorf("%d rounds", rounds)
	}
	for range 100 {
		s.round(t, time.Second)
	}
	if got := s.limiter.current(); got != 32 {
		t.Errorf("got %d, want 32", got)
	}
}

// A server that can take few requests is soon asked for that many at a time,
// and not much of the time is spent in finding out whether it is more.
func TestLimitFollows429(t *testing.T) {
	t.Parallel()
	for _, capacity := range []int{1, 3, 10} {
		s := newServer(32, capacity, constantly(5*time.Millisecond))
		began := s.clock
		for s.clock.Sub(began) < 10*time.Minute {
			s.round(t, time.Second)
		}
		took := s.clock.Sub(began)
		could := float64(capacity) * took.Seconds() / 0.005
		if share := float64(s.answered) / could; share < 0.5 {
			t.Errorf("capacity %d: answered %d, %.0f %% of what it could", capacity, s.answered, 100*share)
		}
		if s.refused > s.answered/100 {
			t.Errorf("capacity %d: refused %d of %d", capacity, s.refused, s.answered)
		}
		s.capacity = 100 // it grew
		for range 1000 {
			s.clock = s.clock.Add(100 * time.Millisecond)
			s.round(t, time.Second)
		}
		if got := s.limiter.current(); got != 32 {
			t.Errorf("capacity %d, then 100: got %d, want 32", capacity, got)
		}
	}
}

// A server that takes ever longer is asked for less; one that takes longer only
// because more is asked of it at a time is not.
func TestLimitFollowsLatency(t *testing.T) {
	queueing := func(under int) time.Duration { return time.Duration(under) * 500 * time.Microsecond }
	s := newServer(16, 100, queueing)
	for range 200 {
		s.round(t, time.Second)
	}
	if got := s.limiter.current(); got != 16 {
		t.Errorf("a server with a queue: got %d, want 16", got)
	}
	s.latency = func(under int) time.Duration { return 20 * queueing(under) }
	least := 16
	for range 20 {
		s.round(t, time.Second)
		least = min(least, s.limiter.current())
	}
	if least > 4 {
		t.Errorf("a server that is 20 times as slow: got %d, want 4 at most", least)
	}
	s.latency = queueing
	for range 200 {
		s.round(t, time.Second)
	}
	if got := s.limiter.current(); got != 16 {
		t.Errorf("a server that is well again: got %d, want 16", got)
	}
}

// TestRetryAfterStopsTheCluster: one request that is told to wait stops all of
// them, of every view; a wish that is too long fails them.
func TestRetryAfterStopsTheCluster(t *testing.T) {
	s := newServer(8, 0, constantly(time.Millisecond))
	ticket, _, _ := s.limiter.acquire(t.Context(), aPatch)
	s.limiter.release(ticket, aPatch, &Error{Code: 429, class: ErrThrottled, after: time.Hour})
	if _, err, ok := s.limiter.acquire(t.Context(), aPatch); ok || !errors.Is(err, ErrThrottled) || !isUnwritten(err) {
		t.Errorf("within the pause: %t, %v", ok, err)
	}
	s.clock = s.clock.Add(maxPause)
	if _, err, ok := s.limiter.acquire(t.Context(), aPatch); !ok || err != nil {
		t.Errorf("after the pause: %t, %v", ok, err)
	}

	const most = 4
	var asked, early atomic.Int32
	var c *Cluster
	pausedUntil := func() time.Time {
		c.limiter.mu.Lock()
		defer c.limiter.mu.Unlock()
		return c.limiter.pausedUntil
	}
	ready := make(chan struct{})
	c = fake(t, Options{Concurrency: most}, func(w http.ResponseWriter, r *http.Request) {
		<-ready
		if asked.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			answerStatus(w, 429, "TooManyRequests", "slow down")
			return
		}
		if time.Now().Before(pausedUntil()) || pausedUntil().IsZero() {
			early.Add(1)
		}
		// Those that were on their way stay until the first one's answer was read:
		// else they would make room for others.
		for pausedUntil().IsZero() && r.Context().Err() == nil {
			<-time.After(time.Millisecond)
		}
		answerMeta(w)
	})
	close(ready)
	objects := manyConfigMaps(t, "shop", 100)
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if early.Load() > most-1 { // were on their way before the first one's answer was read
		t.Errorf("%d of 100 requests came before the time, want those that were under way with the first at most", early.Load())
	}
}

// TestLimiterKeepsItsBounds: whatever happens, never more than most are under
// way, everybody gets a turn, and nobody's turn is lost.
func TestLimiterKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 20).Draw(t, "most")
		seed := rapid.Uint64().Draw(t, "seed")
		l := newLimiter(min(firstLimit, most), most)
		var under, over atomic.Int32
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if random.IntN(5) == 0 {
					go cancel()
				}
				ticket, _, ok := l.acquire(ctx, aPatch)
				if !ok {
					return
				}
				if under.Add(1) > int32(most) {
					over.Add(1)
				}
				under.Add(-1)
				var err *Error
				switch random.IntN(10) {
				case 0:
					err = &Error{Code: 429, class: ErrThrottled}
				case 1:
					err = &Error{class: ErrUnreachable}
				}
				l.release(ticket, aPatch, err)
			})
		}
		all.Wait()
		if over.Load() > 0 || l.under != 0 || len(l.waiting) != 0 || l.current() < 1 {
			t.Fatalf("%d over %d; %d under way and %d waiting in the end", over.Load(), most, l.under, len(l.waiting))
		}
	})
}

// TestThrottledByARealServer: an API server that takes one change at a time and
// answers all others with a 429 gets all objects in the end.
func TestThrottledByARealServer(t *testing.T) {
	t.Parallel()
	tiny, err := devcluster.Start(t.Context(), devtest.Binary(t), filepath.Join(t.TempDir(), "clusters"), []string{"tiny"},
		"--apiserver-arg=enable-priority-and-fairness=false", "--apiserver-arg=max-requests-inflight=20", "--apiserver-arg=max-mutating-requests-inflight=1")
	if err != nil {
		t.Fatal(err)
	}
	defer tiny.Stop()
	cfg, err := tiny.Config("tiny")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := dynamic.NewForConfig(cfg) // a member of system:masters, who is never throttled
	if err != nil {
		t.Fatal(err)
	}
	var binding unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: deployer, namespace: default}]
`), &binding.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Resource(clusterRoleBindings).Create(t.Context(), &binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && resp.StatusCode == http.StatusTooManyRequests {
				refused.Add(1)
			}
			return resp, err
		})
	})
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	deployer := c.As("system:serviceaccount:default:deployer")
	var results []Result
	objects := manyConfigMaps(t, "default", 500)
	known := map[object.ID]bool{}
	for _, r := range deployer.bring(t.Context(), objects, nil) {
		if r.Err != nil && !errors.Is(r.Err, ErrThrottled) {
			t.Fatal(r.Err)
		}
		if r.Err == nil {
			known[r.ID] = true
		}
		results = append(results, r)
	}
	if refused.Load() == 0 {
		t.Error("the server refused nothing, so nothing was tried")
	}
	if len(known) != len(objects) {
		t.Errorf("%d of %d objects were applied, %d requests refused; the last is %+v", len(known), len(objects), refused.Load(), results[len(results)-1])
	}
	t.Logf("%d requests refused for %d objects; %d at a time in the end", refused.Load(), len(objects), c.limiter.current())
}
