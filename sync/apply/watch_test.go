// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// watched starts a watch of one kind from a sweep of the entries. The lines say
// what was seen of objects in the namespace.
func watched(t *testing.T, c *Cluster, namespace string, kind schema.GroupVersionKind, entries []store.Entry) <-chan string {
	t.Helper()
	found, err := c.Sweep(t.Context(), entries, nil)
	if err != nil || found.Lists[kind] == "" {
		t.Fatalf("lists %v, %v", found.Lists, err)
	}
	lines, ended := make(chan string, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	byID := map[object.ID]store.Entry{}
	for _, e := range entries {
		byID[e.ID] = e
	}
	go func() {
		ended <- c.Watch(ctx, Watch{Kind: kind, Since: found.Lists[kind], See: func(s Seen) {
			if s.ID.Namespace == namespace {
				lines <- fmt.Sprintf("%s gone=%t differs=%t", s.ID.Name, s.Gone, s.Differs(byID[s.ID], nil))
			}
		}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return lines
}

func next(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	select {
	case got := <-lines:
		if got != want {
			t.Fatalf("saw %q, want %q", got, want)
		}
	case <-t.Context().Done():
		t.Fatalf("saw nothing, want %q", want)
	}
}

// TestWatch: edits, deletions and lost labels are seen; what does not touch our
// fields, and our own writes, differ from nothing.
func TestWatch(t *testing.T) {
	t.Parallel()
	c, w := connect(t, Options{})
	ns := space(t)
	entries := applied(t, c, configMap(t, ns, "edited", "1"), configMap(t, ns, "deleted", "1"),
		configMap(t, ns, "unlabelled", "1"), configMap(t, ns, "added-to", "1"))
	w.take()
	lines := watched(t, c, ns, kindOf(entries[0].ID, "v1"), entries)
	edit(t, entries[0].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	next(t, lines, "edited gone=false differs=true")
	remove(t, entries[1].ID)
	next(t, lines, "deleted gone=true differs=true")
	edit(t, entries[2].ID, types.MergePatchType, `{"metadata":{"labels":null}}`, "cleaner")
	next(t, lines, "unlabelled gone=true differs=true")
	edit(t, entries[3].ID, types.MergePatchType, `{"data":{"other":"2"},"metadata":{"finalizers":["example.com/x"],"ownerReferences":[]}}`, "controller")
	next(t, lines, "added-to gone=false differs=false")
	edit(t, entries[3].ID, types.MergePatchType, `{"metadata":{"finalizers":null}}`, "controller")
	next(t, lines, "added-to gone=false differs=false")
	for _, s := range w.take() {
		if s.accept != acceptMetaList && s.accept != acceptWatch {
			t.Errorf("asked for more than metadata: %v", s)
		}
	}
}

// TestWatchOwnWrites: what the answer to our write says is what the watch sees.
func TestWatchOwnWrites(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	entry := applied(t, c, newObject(t, deployment, ns, "web", "1"))[0]
	kind := kindOf(entry.ID, "v1")
	found, err := c.Sweep(t.Context(), []store.Entry{entry}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after := applied(t, c, newObject(t, deployment+"      hostNetwork: true\n", ns, "web", "1"))[0]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = c.Watch(ctx, Watch{Kind: kind, Since: found.Lists[kind], See: func(s Seen) {
		if s.ID == entry.ID && s.Fingerprint == after.Fingerprint {
			if s.Differs(after, nil) || !s.Differs(entry, nil) {
				t.Errorf("differs from the new entry: %t, from the old one: %t", s.Differs(after, nil), s.Differs(entry, nil))
			}
			cancel()
		}
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestWatchOfACustomResource(t *testing.T) {
	c, _ := connect(t, Options{})
	ns := space(t)
	discard(t, crds, "", "widgets."+ns+".example.com")
	entries := applied(t, c, newObject(t, widgets, ns, "Widget", "size: {type: string}"), newObject(t, widget, ns, "size: big"))[1:]
	lines := watched(t, c, ns, kindOf(entries[0].ID, "v1"), entries)
	resource := schema.GroupVersionResource{Group: ns + ".example.com", Version: "v1", Resource: "widgets"}
	patch := func(patch string) {
		if _, err := somebody(t).Resource(resource).Namespace(ns).Patch(t.Context(), "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`{"metadata":{"annotations":{"a":"b"}}}`)
	next(t, lines, "a gone=false differs=false")
	patch(`{"spec":{"size":"small"}}`)
	next(t, lines, "a gone=false differs=true")
}

// TestWatchRefused: a kind that we may not watch is said so, and not asked for
// again and again.
func TestWatchRefused(t *testing.T) {
	cfg := apiServer(t)
	cfg.Impersonate.UserName = "nobody"
	c, err := Connect(cfg, testRepository, Options{})
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	err = c.Watch(t.Context(), Watch{Kind: kind, Since: "1", See: func(Seen) {}})
	if !errors.Is(err, ErrRights) || !strings.Contains(err.Error(), `watch ConfigMap: configmaps is forbidden: User "nobody" cannot watch resource`) {
		t.Errorf("got %v", err)
	}
}

// TestWatchExpired: the server compacted what happened since.
func TestWatchExpired(t *testing.T) {
	gone := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version: 1 (9)","reason":"Expired","code":410}`
	for name, handle := range map[string]http.HandlerFunc{
		"in the stream": func(w http.ResponseWriter, r *http.Request) {
			answer(w, 200, jsonType, `{"type":"ERROR","object":`+gone+`}`)
		},
		"at once": func(w http.ResponseWriter, r *http.Request) { answer(w, 410, jsonType, gone) },
	} {
		t.Run(name, func(t *testing.T) {
			c := fake(t, Options{}, handle)
			err := c.Watch(t.Context(), Watch{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Since: "1", See: func(Seen) { t.Error("saw something") }})
			if !errors.Is(err, ErrExpired) || err.Error() != "watch ConfigMap: too old resource version: 1 (9)" {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestWatchGoesOnWhereItWas: a broken stream, a cut event and an orderly end
// lose nothing and repeat nothing; a bookmark counts as seen.
func TestWatchGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	event := `{"type":%q,"object":{"kind":"PartialObjectMetadata","metadata":{"name":%q,"namespace":"shop","resourceVersion":%q}}}` + "\n"
	var asked []string
	var streams atomic.Int32
	c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" { // where the cluster stands now
			answer(w, 200, jsonType, `{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"20"}}`)
			return
		}
		asked = append(asked, r.URL.Query().Get("resourceVersion"))
		switch streams.Add(1) {
		case 1:
			answer(w, 200, jsonType, fmt.Sprintf(event, "ADDED", "a", "5")+fmt.Sprintf(event, "BOOKMARK", "", "9")+`{"type":"MODIF`)
		case 2:
			w.Header().Set("Content-Type", jsonType)
			fmt.Fprintf(w, event, "MODIFIED", "b", "12")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 3:
			answer(w, 503, "text/html", "<html>busy</html>")
		case 4:
			answer(w, 200, jsonType, "")
		default:
			answer(w, 200, jsonType, fmt.Sprintf(event, "DELETED", "c", "14"))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var seen []string
	err := c.Watch(ctx, Watch{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Since: "1", See: func(s Seen) {
		seen = append(seen, s.ID.Name)
		if s.Gone {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"1", "9", "12", "12", "12"}, asked); diff != "" {
		t.Error(diff)
	}
}

// TestWatchTakesNoWholeObjects: a server that answers with more than metadata
// is not listened to.
func TestWatchTakesNoWholeObjects(t *testing.T) {
	c := fake(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, jsonType, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"a":"hunter2"}}}`)
	})
	err := c.Watch(t.Context(), Watch{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Since: "1", See: func(Seen) { t.Error("saw it") }})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), `got a "ConfigMap" instead of a "PartialObjectMetadata"`) {
		t.Errorf("got %v", err)
	}
}

// TestWatchesShareOneConnection with all other requests.
func TestWatchesShareOneConnection(t *testing.T) {
	cfg := apiServer(t)
	var dialled atomic.Int32
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	c, err := Connect(cfg, testRepository, Options{Silence: time.Hour}) // a slow server's is left for a new one
	if err != nil {
		t.Fatal(err)
	}
	ns := space(t)
	entries := applied(t, c, configMap(t, ns, "a", "1"))
	entries = append(entries, applied(t, c, newObject(t, deployment, ns, "web", "1"))...)
	maps := watched(t, c, ns, kindOf(entries[0].ID, "v1"), entries)
	watched(t, c, ns, kindOf(entries[1].ID, "v1"), entries)
	edit(t, entries[0].ID, types.MergePatchType, `{"data":{"value":"2"}}`, "kubectl-edit")
	next(t, maps, "a gone=false differs=true")
	if n := dialled.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestFramesAreBounded in both forms: an event that does not end is not read to
// its end.
func TestFramesAreBounded(t *testing.T) {
	t.Parallel()
	endless := io.MultiReader(strings.NewReader(`{"type":"ADDED","object":{}}`+"\n"+`{"type":"ADDED","object":{"a":"`), zeros{})
	next := jsonFrames(endless)
	if e, err := next(); err != nil || e.kind != "ADDED" {
		t.Errorf("the first event: %+v, %v", e, err)
	}
	if _, err := next(); err == nil || !strings.Contains(err.Error(), "event of more than") {
		t.Errorf("JSON: %v", err)
	}
	if _, err := protobufFrames(io.MultiReader(strings.NewReader("\xff\xff\xff\xff"), zeros{}))(); err == nil || !strings.Contains(err.Error(), "event of 4294967295 bytes") {
		t.Errorf("protobuf: %v", err)
	}
}

// zeros is a text of zeros without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
