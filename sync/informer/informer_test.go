// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
)

var (
	noon       = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cart       = object.UnitTarget{Unit: "services/cart", Target: "dev/a"}
	configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// server is an API server of ConfigMaps and of K0 to K39, of which only the watches
// are looked at.
type server struct {
	*testing.T
	conn connection

	mu      sync.Mutex
	open    map[string]int         // streams by path
	events  map[string]chan string // by path
	refuses bool
	lists   int
}

func newServer(t *testing.T) *server {
	s := &server{T: t, open: map[string]int{}, events: map[string]chan string{}}
	// Handlers end with their requests, which Close waits for.
	ctx, cancel := context.WithCancel(context.Background())
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(ctx, w, r) }))
	t.Cleanup(listener.Close)
	t.Cleanup(cancel)
	s.conn = s.connect(listener.URL)
	return s
}

func (s *server) connect(address string) connection {
	s.Helper()
	c, err := apply.Connect(&rest.Config{Host: address}, "shop", apply.Options{})
	if err != nil {
		s.Fatal(err)
	}
	return connection{c}
}

// connection takes all that it sees for drift, unless it is called "same".
type connection struct{ cluster *apply.Cluster }

func (c connection) Watch(ctx context.Context, account string, s Stream) error {
	return c.cluster.As(account).Watch(ctx, apply.Watch{
		Kind: s.Kind, Namespace: s.Namespace, Since: s.Since, Began: s.Began,
		See: func(seen apply.Seen) {
			s.See(Seen{ID: seen.ID, Fingerprint: seen.Fingerprint,
				MayDiffer: func() bool { return seen.ID.Name != "same" }, MayAil: func() bool { return seen.ID.Name == "ill" }})
		},
	})
}

func (s *server) serve(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Audit-Id", "x")
	switch {
	case r.URL.Path == "/api/v1":
		kinds := []string{`{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["patch"]}`}
		for i := range 40 {
			kinds = append(kinds, fmt.Sprintf(`{"name":"k%d","kind":"K%d","namespaced":true,"verbs":["patch"]}`, i, i))
		}
		fmt.Fprintf(w, `{"kind":"APIResourceList","resources":[%s]}`, strings.Join(kinds, ","))
	case s.isRefusing():
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":403}`)
	case r.URL.Query().Get("watch") == "":
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"7"}}`)
	default:
		s.stream(ctx, w, r)
	}
}

func (s *server) isRefusing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refuses
}

func (s *server) stream(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	events := s.of(r.URL.Path, 1)
	defer s.of(r.URL.Path, -1)
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-events:
			fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		case <-ctx.Done():
			return
		case <-r.Context().Done():
			return
		}
	}
}

// of counts the streams of a path, and gives what is to be sent there.
func (s *server) of(path string, more int) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[path] += more
	if s.events[path] == nil {
		s.events[path] = make(chan string)
	}
	return s.events[path]
}

// streams is how many are open, all in all.
func (s *server) streams() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		n += open
	}
	return n
}

// changed sends an event about a ConfigMap.
func (s *server) changed(name string) {
	s.of("/api/v1/configmaps", 0) <- fmt.Sprintf(`{"type":"MODIFIED","object":{"kind":"PartialObjectMetadata","metadata":{"name":%q,"namespace":"shop","resourceVersion":"9"}}}`, name)
}

func (s *server) eventually(what string, ok func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatal(what)
		}
	}
}

// informer is one that tells woken when it has something for the next pass.
func (s *server) informer() (in *Informer, woken chan bool) {
	woken = make(chan bool, 1000)
	in = New(func() { woken <- true })
	s.Cleanup(in.Wait) // the contexts of tests end before
	return in, woken
}

func configMap(name string) *object.Object {
	return &object.Object{ID: object.ID{Kind: "ConfigMap", Namespace: "shop", Name: name}, Version: "v1"}
}

func (s *server) connOf(string) Connection { return s.conn }

// listed is a sweep of the ConfigMaps.
func (s *server) listed(ctx context.Context, in *Informer) {
	in.Listed(ctx, "dev", s.conn, map[schema.GroupVersionKind]string{configMaps: "5"}, true)
}

// TestOneWatchForDriftAndHealth: the one that goes on from a sweep takes the place of
// the one for health, and serves both.
func TestOneWatchForDriftAndHealth(t *testing.T) {
	s := newServer(t)
	in, woken := s.informer()
	in.Subscribe(cart, noon, "dev", "", []*object.Object{configMap("a")})
	open := []object.UnitTarget{cart}
	s.eventually("no watch for health", func() bool { return in.Sync(t.Context(), noon, open, s.connOf)[cart] })
	if in.Has("dev", configMap("a").ID) || s.lists != 1 {
		t.Errorf("a watch for health counts as one for drift, or asked %d times what is now", s.lists)
	}
	s.listed(t.Context(), in)
	if !in.Has("dev", configMap("a").ID) || !in.Sync(t.Context(), noon, open, s.connOf)[cart] {
		t.Error("not watched after a sweep")
	}
	s.eventually("not one stream", func() bool { return s.streams() == 1 })
	<-woken // by the beginning of a watch: who knows what happened before
	in.DrainDue()
	s.changed("a")
	<-woken
	found := in.Drain()
	if diff := cmp.Diff(map[string][]Suspect{"dev": {{ID: configMap("a").ID, Fingerprint: found.Suspects["dev"][0].Fingerprint}}}, found.Suspects); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[object.UnitTarget]time.Time{cart: noon}, in.DrainDue()); diff != "" {
		t.Error(diff)
	}
	// The release is over: the watch for drift stays.
	in.Sync(t.Context(), noon.Add(time.Hour), nil, s.connOf)
	if !in.Has("dev", configMap("a").ID) {
		t.Error("the watch for drift went with the release")
	}
}

// TestSuspects: what does not differ, and what is left as it is, is none; where jobs
// are at work, all is.
func TestSuspects(t *testing.T) {
	s := newServer(t)
	in, woken := s.informer()
	s.listed(t.Context(), in)
	names := func() (all []string) {
		for _, suspect := range in.Drain().Suspects["dev"] {
			all = append(all, suspect.ID.Name)
		}
		return all
	}
	in.Suppress(map[string]map[object.ID]Suppression{"dev": {configMap("left").ID: {Until: time.Now().Add(time.Hour)}}})
	for _, name := range []string{"same", "left", "other"} {
		s.changed(name)
	}
	<-woken
	if got := names(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("suspects %v", got)
	}
	in.Suppress(nil) // a job has written it, and somebody else after that
	<-woken
	if got := names(); !slices.Equal(got, []string{"left"}) {
		t.Errorf("suspects once nothing is left as it is: %v", got)
	}
	if in.Suppress(nil); len(names()) > 0 {
		t.Error("it is a suspect again")
	}
	in.Busy(map[string]bool{"dev": true})
	s.changed("same")
	<-woken
	if got := names(); !slices.Equal(got, []string{"same"}) {
		t.Errorf("suspects where a job is at work %v", got)
	}
}

// TestAFloodIsBounded: what is too much to be noted is said so.
func TestAFloodIsBounded(t *testing.T) {
	in, woken := newServer(t).informer()
	in.Busy(map[string]bool{"dev": true})
	for i := range MaxSuspects + 10 {
		in.see("dev", true, Seen{ID: configMap(fmt.Sprint(i)).ID, MayAil: func() bool { return false }})
		<-woken
	}
	if found := in.Drain(); len(found.Suspects["dev"]) != MaxSuspects || !slices.Equal(found.Flooded, []string{"dev"}) {
		t.Errorf("%d noted, flooded %v", len(found.Suspects["dev"]), found.Flooded)
	}
	if found := in.Drain(); len(found.Suspects)+len(found.Flooded) > 0 {
		t.Errorf("found again: %v", found)
	}
}

// TestStirred: what a watch for drift sees of an object that may get ill is gathered, once.
func TestStirred(t *testing.T) {
	s := newServer(t)
	in, woken := s.informer()
	s.listed(t.Context(), in)
	for _, name := range []string{"well", "ill", "ill", "other"} {
		s.changed(name)
	}
	<-woken
	s.eventually("nothing stirred", func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return len(in.stirred["dev"]) > 0
	})
	if diff := cmp.Diff(map[string]map[object.ID]bool{"dev": {configMap("ill").ID: true}}, in.DrainStirred()); diff != "" {
		t.Error(diff)
	}
	if again := in.DrainStirred(); len(again) > 0 {
		t.Errorf("stirred again: %v", again)
	}
}

// TestARefusedWatch: one for drift is said to have ended, one for health is tried
// again a minute later.
func TestARefusedWatch(t *testing.T) {
	s := newServer(t)
	s.refuses = true
	in, woken := s.informer()
	s.listed(t.Context(), in)
	<-woken
	if found := in.Drain(); len(found.Ended) != 1 || found.Ended[0].Kind != configMaps.GroupKind() || !strings.Contains(found.Ended[0].Err.Error(), "watch ConfigMap: no") {
		t.Errorf("ended %v", found.Ended)
	}
	if in.Has("dev", configMap("a").ID) {
		t.Error("watched for drift although refused")
	}
	in.Subscribe(cart, noon, "dev", "", []*object.Object{configMap("a")})
	sync := func(now time.Time) bool {
		return in.Sync(t.Context(), now, []object.UnitTarget{cart}, s.connOf)[cart]
	}
	isRefused := func() bool {
		in.mu.Lock()
		defer in.mu.Unlock()
		return len(in.refused) == 1
	}
	s.eventually("not refused", func() bool { return !sync(noon) && isRefused() })
	s.mu.Lock()
	s.refuses = false
	s.mu.Unlock()
	for range 3 {
		if sync(noon.Add(watchRetry - time.Second)); s.streams() > 0 || s.lists > 0 {
			t.Fatal("asked again at once")
		}
	}
	s.eventually("not tried again", func() bool { return sync(noon.Add(watchRetry + time.Second)) })
}

// TestAnotherConnection: watches of one that was given up end, and what ends them is
// nobody's trouble.
func TestAnotherConnection(t *testing.T) {
	old, s := newServer(t), newServer(t)
	in, _ := s.informer()
	old.listed(t.Context(), in)
	in.Subscribe(cart, noon, "dev", "", []*object.Object{{ID: object.ID{Kind: "K1", Namespace: "shop", Name: "x"}, Version: "v1"}})
	old.eventually("not watched", func() bool {
		return in.Sync(t.Context(), noon, []object.UnitTarget{cart}, old.connOf)[cart] && old.streams() == 2
	})
	s.listed(t.Context(), in)
	s.eventually("not watched anew", func() bool {
		return in.Sync(t.Context(), noon, []object.UnitTarget{cart}, s.connOf)[cart] && s.streams() == 2
	})
	old.eventually("watched still", func() bool { return old.streams() == 0 })
	if found := in.Drain(); len(found.Ended) > 0 {
		t.Errorf("ended %v", found.Ended)
	}
	in.Listed(t.Context(), "dev", s.conn, nil, false) // a sweep that did not see all
	if !in.Has("dev", configMap("a").ID) {
		t.Error("a kind that was not asked for is watched no more")
	}
	in.Listed(t.Context(), "dev", s.conn, nil, true)
	if in.Has("dev", configMap("a").ID) {
		t.Error("a kind that is not there is watched")
	}
}

// TestWatchesForHealthAreBounded, and those that are of no use end after a while.
func TestWatchesForHealthAreBounded(t *testing.T) {
	s := newServer(t)
	in, _ := s.informer()
	var open []object.UnitTarget
	for i := range 40 {
		at := object.UnitTarget{Unit: config.UnitPath(fmt.Sprintf("services/%d", i)), Target: "dev/a"}
		open = append(open, at)
		in.Subscribe(at, noon, "dev", "", []*object.Object{{ID: object.ID{Kind: fmt.Sprintf("K%d", i), Namespace: "shop", Name: "x"}, Version: "v1"}})
	}
	s.eventually("too few or too many", func() bool {
		watched := 0
		for _, all := range in.Sync(t.Context(), noon, open, s.connOf) {
			if all {
				watched++
			}
		}
		return watched == watchesAtOnce && s.streams() == watchesAtOnce
	})
	in.Sync(t.Context(), noon.Add(watchKept), nil, s.connOf)
	if n := s.streams(); n != watchesAtOnce {
		t.Errorf("%d streams left at once", n)
	}
	in.Sync(t.Context(), noon.Add(watchKept+time.Second), nil, s.connOf)
	s.eventually("streams without use", func() bool { return s.streams() == 0 })
}
