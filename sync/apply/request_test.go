// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// fake starts a server that knows ConfigMaps and answers everything else with
// handle, over HTTP/2 and TLS; it returns a Cluster for it.
func fake(t *testing.T, opt Options, handle http.HandlerFunc) *Cluster {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1" {
			answer(w, 200, jsonType, `{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["patch"]}]}`)
			return
		}
		handle(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := Connect(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, testRepository, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answer(w http.ResponseWriter, code int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

func answerStatus(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Audit-Id", "1")
	answer(w, code, jsonType, fmt.Sprintf(`{"kind":"Status","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason, message, code))
}

func answerMeta(w http.ResponseWriter) {
	answer(w, 200, jsonType+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1", `{"kind":"PartialObjectMetadata","metadata":{"uid":"1"}}`)
}

const page = "<!doctype html>\n<html><h1>Sorry</h1>" // and a long style sheet

// applyOne applies one object that is known with another digest.
func applyOne(t *testing.T, c *Cluster) Result {
	t.Helper()
	o := configMap(t, "shop", "cart", "1")
	known := map[object.ID]store.Entry{o.ID: {ID: o.ID, UID: "1", Digest: "earlier"}}
	return c.bring(t.Context(), []*object.Object{o}, known)[0]
}

func TestWhoseFaultItWas(t *testing.T) {
	status := func(code int, reason, message string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) { answerStatus(w, code, reason, message) }
	}
	raw := func(code int, contentType, body string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, _ int) { answer(w, code, contentType, body) }
	}
	for _, test := range []struct {
		name     string
		answer   func(w http.ResponseWriter, n int) // n counts requests from 1
		class    error                              // nil: it works in the end
		message  string
		requests int
		sure     bool // that nothing was written
	}{
		{"html 503", raw(503, "text/html", page), ErrUnreachable, "answered 503 Service Unavailable with an HTML page", maxAttempts, false},
		{"html 500", raw(500, "text/html", page), ErrUnreachable, "answered 500 Internal Server Error with an HTML page", 1, false},
		{"html 200", raw(200, "text/html", page), ErrUnreachable, `answered 200 OK, but not as an API server: got content type "text/html"`, 1, false},
		{"html 404", raw(404, "text/html", page), ErrUnreachable, "answered 404 Not Found with an HTML page", 1, false},
		{"other json", raw(200, jsonType, `{"ok":true}`), ErrUnreachable, `answered 200 OK, but not as an API server: got a "" instead of a "PartialObjectMetadata"`, 1, false},
		{"text 503", raw(503, "text/plain", "no\n upstream"), ErrUnreachable, "answered 503 Service Unavailable: no upstream", maxAttempts, false},
		{"redirect", func(w http.ResponseWriter, _ int) { w.Header().Set("Location", "/else"); w.WriteHeader(302) }, ErrUnreachable, `answered 302 Found with content type ""`, 1, false},
		{"forbidden", status(403, "Forbidden", "no\nrights"), ErrRights, "no rights", 1, true},
		{"unauthorized", status(401, "Unauthorized", "Unauthorized"), ErrRights, "Unauthorized", 1, true},
		{"invalid", status(422, "Invalid", "no"), ErrRefused, "no", 1, true},
		{"webhook down", status(500, "InternalError", `failed calling webhook "x"`), ErrWebhook, `failed calling webhook "x"`, 1, false},
		{"etcd moves", status(500, "", "etcdserver: leader changed"), ErrDistress, "etcdserver: leader changed", maxAttempts, false},
		{"etcd is full", status(500, "", "etcdserver: mvcc: database space exceeded"), ErrDistress, "etcdserver: mvcc: database space exceeded", 1, false},
		{"throttled for long", func(w http.ResponseWriter, _ int) {
			w.Header().Set("Retry-After", "3600")
			answerStatus(w, 429, "TooManyRequests", "slow down")
		}, ErrThrottled, "slow down", 1, true},
		{"throttled for ever", status(429, "TooManyRequests", "slow down"), ErrThrottled, "slow down", maxAttempts, true},
		{"throttled once", once(status(429, "TooManyRequests", "slow down")), nil, "", 2, true},
		{"conflict once", once(status(409, "Conflict", "the object has been modified")), nil, "", 2, true},
		{"504 after the write, then refused", func(w http.ResponseWriter, n int) {
			if n == 1 {
				answerStatus(w, 504, "Timeout", "late")
				return
			}
			answerStatus(w, 422, "Invalid", "no")
		}, ErrRefused, "no", 2, false},
		{"connection cut once", once(func(w http.ResponseWriter, _ int) { panic(http.ErrAbortHandler) }), nil, "", 2, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int32
			c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" || strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") { // the probe after nobody answered, or not as was hoped
					test.answer(w, -1)
					return
				}
				test.answer(w, int(n.Add(1)))
			})
			got := applyOne(t, c)
			if int(n.Load()) != test.requests {
				t.Errorf("%d requests, want %d", n.Load(), test.requests)
			}
			if test.class == nil {
				if got.Err != nil {
					t.Error(got.Err)
				}
				return
			}
			if got.Err == nil || !errors.Is(got.Err, test.class) {
				t.Fatalf("got %v, want %v", got.Err, test.class)
			}
			if diff := cmp.Diff("apply ConfigMap/shop/cart: "+test.message, got.Err.Error()); diff != "" {
				t.Error(diff)
			}
			if sure := got.Entry.Digest != ""; sure != test.sure {
				t.Errorf("sure that nothing was written: %t, want %t", sure, test.sure)
			}
		})
	}
}

// once answers the first request with f, and the others as an API server would.
func once(f func(http.ResponseWriter, int)) func(http.ResponseWriter, int) {
	return func(w http.ResponseWriter, n int) {
		if n == 1 {
			f(w, n)
			return
		}
		answerMeta(w)
	}
}

// nobody is an address where nobody listens. A port that was free a moment ago
// may be anybody's by now; this one is given to nobody who does not ask for it.
const nobody = "127.0.0.1:1"

// What never left leaves the inventory as it was.
func TestAnUnsentApplyIsKnownNotToHaveHappened(t *testing.T) {
	t.Parallel()
	closed, err := Connect(&rest.Config{Host: "http://" + nobody}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := applyOne(t, closed); got.Err == nil || got.Entry.Digest == "" {
		t.Errorf("closed port: %+v", got)
	}
	// Here the PATCH itself got lost, and may have arrived.
	cut := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	if got := applyOne(t, cut); got.Err == nil || got.Entry.Digest != "" {
		t.Errorf("cut: %+v", got)
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	var n atomic.Int32
	var first, second time.Time
	c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			first = time.Now()
			w.Header().Set("Retry-After", "1")
			answerStatus(w, 429, "TooManyRequests", "slow down")
			return
		}
		second = time.Now()
		answerMeta(w)
	})
	if got := applyOne(t, c); got.Err != nil {
		t.Fatal(got.Err)
	}
	if waited := second.Sub(first); waited < time.Second {
		t.Errorf("waited %s", waited)
	}
}

// A page where discovery should be must not make the kinds look gone: entries
// would be forgotten.
func TestAProxyDoesNotSpeakForTheServer(t *testing.T) {
	for _, code := range []int{200, 403, 404, 503} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) { answer(w, code, "text/plain", "404 page not found") })
			entries := []store.Entry{
				{ID: object.ID{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, Version: "v1", UID: "1", Digest: "x", Fingerprint: "x"},
				{ID: object.ID{Group: "x", Kind: "Thing", Name: "a"}, Version: "v1", UID: "1", Digest: "x", Fingerprint: "x"},
			}
			for _, r := range c.Prune(t.Context(), entries) {
				if r.Err == nil || r.Forget || r.Action != "" {
					t.Errorf("prune: %+v", r)
				}
			}
			if got, err := c.Sweep(t.Context(), entries, nil); err == nil || len(got.Drifts) != 0 {
				t.Errorf("sweep: %v, %v", got.Drifts, err)
			}
			if h, _, err := c.Health(t.Context(), Work{Objects: []*object.Object{{ID: entries[1].ID, Version: "v1"}}}); err == nil {
				t.Errorf("health: %v", h)
			}
		})
	}
}

// unreachable applies many objects and looks that every one of them says so.
func unreachable(t *testing.T, c *Cluster, message string) {
	t.Helper()
	var objects []*object.Object
	for i := range 100 {
		objects = append(objects, configMap(t, "shop", fmt.Sprintf("c%d", i), "1"))
	}
	for _, r := range c.bring(t.Context(), objects, nil) {
		if r.Err == nil || !errors.Is(r.Err, ErrUnreachable) {
			t.Fatalf("%s: %v", r.ID, r.Err)
		}
	}
	_, err := c.Identity(t.Context())
	if err == nil || !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want %s", err, message)
	}
}

// A proxy whose API server is away answers for each object, and for none.
func TestHTML503CostsOneTry(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	c := fake(t, Options{Concurrency: 4}, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		answer(w, 503, "text/html", page)
	})
	unreachable(t, c, "answered 503 Service Unavailable with an HTML page")
	// Apply: what is under way at a time, and a probe. Identity: the same for one.
	if most := int32(4*maxAttempts + 1 + maxAttempts + 1); n.Load() > most {
		t.Errorf("%d requests, want at most %d", n.Load(), most)
	}
}

func TestClosedPort(t *testing.T) {
	c, err := Connect(&rest.Config{Host: "http://" + nobody}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	unreachable(t, c, "connection refused")
}

// hole accepts connections and never says a word.
func hole(t *testing.T) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return listener.Addr().String()
}

func TestBlackHole(t *testing.T) {
	for _, scheme := range []string{"http://", "https://"} {
		cfg := &rest.Config{Host: scheme + hole(t)}
		var w wire
		cfg.Wrap(w.wrap)
		c, err := Connect(cfg, testRepository, Options{Timeout: 100 * time.Millisecond, Concurrency: 4})
		if err != nil {
			t.Fatal(err)
		}
		unreachable(t, c, "no answer within 100ms")
		// Each costs a time-out. Apply: one in each row, and a probe. Identity: one.
		if most := 4 + 1 + 1; len(w.all) > most {
			t.Errorf("%s: %d requests, want at most %d", scheme, len(w.all), most)
		}
	}
}

// A write that gets no answer is the fault of its object, where others are answered, and of
// the cluster, where none is. Then nobody waits for as long as a webhook may take.
func TestAWriteWithoutAnAnswer(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers bool
		// How long a request, and one that admission judges, may take. The first is long where
		// answers come, so that a slow machine gives them in time.
		timeout, write time.Duration
		class          error
		message        string
	}{
		{"others are answered", true, 3 * time.Second, 4 * time.Second, ErrDistress,
			"no answer within 4s, while the cluster answers other requests: a webhook that is asked about the object may be slow"},
		{"none is", false, 50 * time.Millisecond, time.Hour, ErrUnreachable, "no answer within 50ms"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var silent atomic.Bool
			c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				if !silent.Load() || r.URL.Path == "/version" && test.answers {
					answerMeta(w)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			})
			if got := applyOne(t, c); got.Err != nil {
				t.Fatal(got.Err) // from here on the kinds are known, and there is a connection
			}
			silent.Store(true)
			c.options.Timeout, c.options.WriteTimeout = test.timeout, test.write
			got := applyOne(t, c)
			if !errors.Is(got.Err, test.class) || got.Err.Error() != "apply ConfigMap/shop/cart: "+test.message {
				t.Errorf("got %v", got.Err)
			}
			if got.Entry.Digest != "" {
				t.Error("it is certain that nothing was written")
			}
		})
	}
}

// A write outlasts the webhooks that an API server asks, which have 30 s each; what nobody judges
// does not, and an option for all requests counts for writes, too.
func TestHowLongARequestMayTake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		options             Options
		write, trial, reads time.Duration
	}{
		{Options{}, 40 * time.Second, 40 * time.Second, 15 * time.Second},
		{Options{Timeout: 3 * time.Second}, 3 * time.Second, 3 * time.Second, 3 * time.Second},
		{Options{WriteTimeout: time.Minute}, time.Minute, time.Minute, 15 * time.Second},
	} {
		cluster, err := Connect(&rest.Config{Host: "https://127.0.0.1:1"}, "shop", test.options)
		if err != nil {
			t.Fatal(err)
		}
		c := &call{Cluster: cluster}
		for _, asked := range []struct {
			method, query string
			want          time.Duration
		}{
			{http.MethodPatch, "fieldManager=swell", test.write}, {http.MethodDelete, "", test.write}, {http.MethodPost, "", test.write},
			{http.MethodPatch, "dryRun=All", test.trial}, {http.MethodGet, "", test.reads}, {"", "", test.reads},
		} {
			if got := c.patience(&request{method: asked.method, query: asked.query}); got != asked.want {
				t.Errorf("%+v: %s %q may take %s, want %s", test.options, asked.method, asked.query, got, asked.want)
			}
		}
	}
}

// After the network changed, packets of an old connection go nowhere, while a
// new one would do: the request that found out is still answered.
func TestAStuckConnectionIsLeft(t *testing.T) {
	t.Parallel()
	cfg := apiServer(t)
	var mu sync.Mutex
	var dialled []*stuckConn
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		mu.Lock()
		defer mu.Unlock()
		dialled = append(dialled, &stuckConn{Conn: conn})
		return dialled[len(dialled)-1], err
	}
	c, err := Connect(cfg, testRepository, Options{Silence: time.Second, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	o := configMap(t, space(t), "a", "1")
	applied(t, c, o)
	mu.Lock()
	for _, conn := range dialled {
		conn.stuck.Store(true)
	}
	stuck := len(dialled)
	mu.Unlock()
	applied(t, c, o)
	mu.Lock()
	defer mu.Unlock()
	if len(dialled) == stuck {
		t.Error("answered on a connection that is stuck")
	}
}

// stuckConn swallows what is written once it is stuck.
type stuckConn struct {
	net.Conn
	stuck atomic.Bool
}

func (c *stuckConn) Write(p []byte) (int, error) {
	if c.stuck.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func TestTheCallersDeadline(t *testing.T) {
	c, err := Connect(&rest.Config{Host: "http://" + hole(t)}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Identity(ctx)
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if want := "get Namespace/kube-system: no answer before the deadline"; err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// An answer that trickles in counts against the deadline too.
func TestSlowAnswer(t *testing.T) {
	c := fake(t, Options{Timeout: 100 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, jsonType, "{")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := c.Identity(t.Context())
	if !errors.Is(err, ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c, err := Connect(&rest.Config{Host: server.URL}, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	unreachable(t, c, "certificate")
}

func TestAtMostConcurrencyRequests(t *testing.T) {
	const most = 3
	var now atomic.Int32
	tooMany := make(chan struct{}, 10*most)
	c := fake(t, Options{Concurrency: most}, func(w http.ResponseWriter, r *http.Request) {
		if now.Add(1) > most {
			tooMany <- struct{}{}
		}
		defer now.Add(-1)
		select { // stay for as long as another one would need to get here
		case <-tooMany:
			tooMany <- struct{}{}
		case <-time.After(50 * time.Millisecond):
		}
		answerMeta(w)
	})
	var objects []*object.Object
	for i := range 3 * most {
		objects = append(objects, configMap(t, "shop", fmt.Sprintf("c%d", i), "1"))
	}
	var other errgroup.Group
	other.Go(func() error {
		c.bring(t.Context(), objects[:most], nil)
		return nil
	})
	inventory(t, c.bring(t.Context(), objects[most:], nil))
	if err := other.Wait(); err != nil || len(tooMany) > 0 {
		t.Errorf("more than %d requests at a time", most)
	}
}
