// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/faults"
	"github.com/swell-sh/swell/sync/store"
)

// liveConfigMap is what the server has, read by somebody else; nil for nothing.
func liveConfigMap(t *testing.T, o *object.Object) *unstructured.Unstructured {
	t.Helper()
	live, err := somebody(t).Resource(configMaps).Namespace(o.ID.Namespace).Get(t.Context(), o.ID.Name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return live
}

func valueOf(live *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(live.Object, "data", "value")
	return value
}

// inTheWay is a fault between a Cluster and a real API server.
type inTheWay struct {
	name string
	// http answers the n-th PATCH or DELETE of a test, from 1; nil forwards.
	http func(w http.ResponseWriter, r *http.Request, forward http.Handler, n int)
	// tcp is what happens to connections.
	tcp faults.Mode
	// class of the error; nil: it works in the end.
	class   error
	message string
	// wrote says that the server has the new value in spite of an error.
	wrote bool
	// sure says that the inventory keeps what it knew: nothing was written.
	sure bool
	// either: whether the write went through is a matter of chance.
	either bool
}

func firstOnly(fault func(w http.ResponseWriter, r *http.Request, forward http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler, int) {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler, n int) {
		if n == 1 {
			fault(w, r, forward)
			return
		}
		forward.ServeHTTP(w, r)
	}
}

func always(fault func(w http.ResponseWriter, r *http.Request, forward http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler, int) {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler, _ int) { fault(w, r, forward) }
}

// afterwards lets the request through and answers something else.
func afterwards(fault func(w http.ResponseWriter, answer *httptest.ResponseRecorder)) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		real := httptest.NewRecorder()
		forward.ServeHTTP(real, r)
		fault(w, real)
	}
}

func html503(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	answer(w, 503, "text/html", page)
}

func gatewayTimeout(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
	answer(w, 504, "text/html", page)
}

// cutShort says how long the answer is, and sends half of it.
func cutShort(w http.ResponseWriter, real *httptest.ResponseRecorder) {
	w.Header().Set("Content-Type", real.Header().Get("Content-Type"))
	w.WriteHeader(real.Code)
	_, _ = w.Write(real.Body.Bytes()[:real.Body.Len()/2])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// halfAnAnswer sends half of the answer as if it were all.
func halfAnAnswer(w http.ResponseWriter, _ *httptest.ResponseRecorder) {
	answer(w, 200, jsonType, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"uid":"`)
}

func statusOf(code int, reason, message string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answerStatus(w, code, reason, message) }
}

var faultsInTheWay = []inTheWay{
	{name: "refuses", tcp: faults.Refuse, class: ErrUnreachable, either: true},
	{name: "black-holes", tcp: faults.Hole, class: ErrUnreachable, message: "no answer within ", either: true},
	{name: "answers a byte a second", tcp: faults.Trickle, class: ErrUnreachable, message: "no answer within ", either: true},
	{name: "resets in mid-answer", tcp: faults.Reset, class: ErrUnreachable, either: true},
	{name: "html 503 once", http: firstOnly(html503)},
	{name: "html 503", http: always(html503), class: ErrUnreachable, message: "answered 503 Service Unavailable with an HTML page"},
	{name: "504 after the write went through once", http: firstOnly(afterwards(gatewayTimeout))},
	{name: "504 after the write went through", http: always(afterwards(gatewayTimeout)), class: ErrUnreachable, message: "answered 504 Gateway Timeout", wrote: true},
	{name: "truncated answer once", http: firstOnly(afterwards(cutShort))},
	{name: "truncated answer", http: always(afterwards(cutShort)), class: ErrUnreachable, wrote: true},
	{name: "truncated JSON", http: always(afterwards(halfAnAnswer)), class: ErrUnreachable, message: "not as an API server", wrote: true},
	{name: "409 once", http: firstOnly(statusOf(409, "Conflict", "the object has been modified"))},
	{name: "410", http: always(statusOf(410, "Expired", "too old")), class: ErrDistress, message: "too old", sure: true},
	{name: "429 once", http: firstOnly(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "1")
		answerStatus(w, 429, "TooManyRequests", "slow down")
	})},
	{name: "429 for an hour", http: always(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "3600")
		answerStatus(w, 429, "TooManyRequests", "slow down")
	}), class: ErrThrottled, message: "slow down", sure: true},
	{name: "500 of a server that lost its store for a moment", http: firstOnly(statusOf(500, "InternalError", "etcdserver: leader changed"))},
	{name: "502 once", http: firstOnly(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		answer(w, 502, "text/plain", "bad gateway")
	})},
	{name: "token expired 401", http: always(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		r.Header.Set("Authorization", "Bearer expired")
		forward.ServeHTTP(w, r)
	}), class: ErrRights, message: "Unauthorized", sure: true},
	{name: "RBAC cut 403", http: always(func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		r.Header.Set("Impersonate-User", "system:serviceaccount:default:nobody")
		forward.ServeHTTP(w, r)
	}), class: ErrRights, message: `User "system:serviceaccount:default:nobody" cannot `, sure: true},
}

// TestFaultsInTheWay: an apply and a prune with each fault between them and a
// real API server. What the inventory then says is true, and when the fault is
// gone the same call brings it to the end.
func TestFaultsInTheWay(t *testing.T) {
	t.Parallel()
	for _, fault := range faultsInTheWay {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			namespace := space(t)
			c, clear := fault.between(t)
			old, wanted := configMap(t, namespace, "cart", "old"), configMap(t, namespace, "cart", "new")
			known := inventory(t, c.bring(t.Context(), []*object.Object{old}, nil))
			before := liveConfigMap(t, old).GetResourceVersion()

			clear(false)
			got := c.bring(t.Context(), []*object.Object{wanted}, known)[0]
			fault.judge(t, got.Err)
			wrote, sure := valueOf(liveConfigMap(t, old)) == "new", got.Entry.Digest == old.Digest
			switch {
			case wrote && sure:
				t.Error("the inventory has what the server has not any more")
			case fault.either:
			case wrote != (fault.class == nil || fault.wrote):
				t.Errorf("written %t", wrote)
			case got.Err != nil && sure != fault.sure:
				t.Errorf("sure that nothing was written: %t, want %t: %v", sure, fault.sure, got.Err)
			}
			clear(true)
			known[wanted.ID] = got.Entry
			if got := c.bring(t.Context(), []*object.Object{wanted}, known)[0]; got.Err != nil || got.Entry.Digest != wanted.Digest {
				t.Errorf("with the fault gone: %+v", got)
			}
			live := liveConfigMap(t, old)
			if live.GetResourceVersion() == before || valueOf(live) != "new" || string(live.GetUID()) != known[wanted.ID].UID {
				t.Errorf("in the end the server has %v", live)
			}
			fault.prune(t, c, clear, wanted, known[wanted.ID])
		})
	}
}

// prune deletes the object with the fault in the way, and again without it.
func (f *inTheWay) prune(t *testing.T, c *Cluster, clear func(bool), o *object.Object, entry store.Entry) {
	t.Helper()
	clear(false)
	r := c.Prune(t.Context(), []store.Entry{entry})[0]
	live := liveConfigMap(t, o)
	switch {
	case f.class == nil && (r.Err != nil || !r.Forget || live != nil):
		t.Errorf("prune: %+v, the server has %v", r, live)
	case f.class != nil:
		f.judge(t, r.Err)
		if r.Forget || r.Action != "" || !f.either && f.wrote != (live == nil) {
			t.Errorf("prune: %+v, the server has %v", r, live)
		}
	}
	clear(true)
	if r := c.Prune(t.Context(), []store.Entry{entry})[0]; r.Err != nil || !r.Forget || liveConfigMap(t, o) != nil {
		t.Errorf("prune with the fault gone: %+v", r)
	}
}

func (f *inTheWay) judge(t *testing.T, err error) {
	t.Helper()
	switch {
	case f.class == nil && err != nil:
		t.Error(err)
	case f.class != nil && (!errors.Is(err, f.class) || !strings.Contains(err.Error(), f.message)):
		t.Errorf("got %v, want %v: %s", err, f.class, f.message)
	}
}

// between connects to the real API server through the fault, which is not in
// the way yet. clear puts it there, or takes it away and waits until the
// cluster answers.
func (f *inTheWay) between(t *testing.T) (c *Cluster, clear func(cleared bool)) {
	t.Helper()
	cfg := apiServer(t)
	var on atomic.Bool
	var n atomic.Int32
	set := func(bool) {}
	if f.http != nil {
		cfg = faults.HTTP(t, cfg, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
			if on.Load() && (r.Method == http.MethodPatch || r.Method == http.MethodDelete) {
				f.http(w, r, forward, int(n.Add(1)))
				return
			}
			forward.ServeHTTP(w, r)
		})
	} else {
		var proxy *faults.TCP
		proxy, cfg = faults.NewTCP(t, cfg)
		set = func(faulty bool) {
			mode := faults.Pass
			if faulty {
				mode = f.tcp
			}
			proxy.Set(mode)
		}
	}
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c, func(cleared bool) {
		n.Store(0)
		on.Store(!cleared)
		set(!cleared)
		c.options.Timeout = time.Minute
		if !cleared {
			if f.http == nil { // one who waits for nothing need not wait long
				c.options.Timeout = 2 * time.Second
			}
			return
		}
		eventually(t, func() (bool, string) {
			_, err := c.Identity(context.WithoutCancel(t.Context()))
			if err != nil {
				return false, err.Error()
			}
			return true, ""
		})
	}
}

// TestWrongCertificate: somebody else's certificate gets no request, and so no
// token.
func TestWrongCertificate(t *testing.T) {
	var asked atomic.Int32
	cfg := apiServer(t)
	through := faults.HTTP(t, cfg, func(w http.ResponseWriter, r *http.Request, forward http.Handler) {
		asked.Add(1)
		forward.ServeHTTP(w, r)
	})
	wrong := rest.CopyConfig(through)
	wrong.CAData = cfg.CAData
	c, err := Connect(wrong, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	unreachable(t, c, "certificate signed by unknown authority")
	if asked.Load() != 0 {
		t.Errorf("%d requests reached whoever has the wrong certificate", asked.Load())
	}
}

// TestTheBreakerOpensAndCloses: nothing is sent to a cluster that does not
// answer, by any view, but the question whether it is back.
func TestTheBreakerOpensAndCloses(t *testing.T) {
	hole := inTheWay{tcp: faults.Hole}
	c, clear := hole.between(t)
	namespace := space(t)
	if _, err := c.Identity(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := &wire{}
	c.client.Transport = w.wrap(c.client.Transport)
	clear(false)
	objects := manyConfigMaps(t, namespace, 2000)
	for _, r := range c.bring(t.Context(), objects, nil) {
		if !errors.Is(r.Err, ErrUnreachable) {
			t.Fatalf("%s: %v", r.ID, r.Err)
		}
	}
	if sent := len(w.all); sent > c.options.Concurrency+2 { // those under way, discovery, and the question whether anybody is there
		t.Errorf("%d requests were sent", sent)
	}
	w.take()
	w.all = nil
	for _, view := range []*Cluster{c, c.As("system:serviceaccount:default:somebody")} {
		if r := view.bring(t.Context(), objects[:1], nil)[0]; !errors.Is(r.Err, ErrUnreachable) || !strings.Contains(r.Err.Error(), "not tried: the cluster does not answer") {
			t.Errorf("got %v", r.Err)
		}
	}
	if len(w.all) != 0 {
		t.Errorf("sent %v to a cluster that does not answer", w.all)
	}
	clear(true)
	if r := c.bring(t.Context(), objects[:1], nil)[0]; r.Err != nil {
		t.Errorf("with the cluster back: %v", r.Err)
	}
}
