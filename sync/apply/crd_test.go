// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/store"
)

// slowDefinitions is a server that goes on judging widgets by the earlier form
// of their definition for a number of requests, as one under load does.
func slowDefinitions(t *testing.T, stale int32, settle time.Duration) (*Cluster, *atomic.Int32) {
	var patches atomic.Int32
	c := fake(t, Options{SettleTime: settle}, func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/apis/apiextensions.k8s.io/v1":
			answer(w, 200, jsonType, `{"kind":"APIResourceList","resources":[{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["patch"]}]}`)
		case path == "/apis/shop.example.com/v1":
			answer(w, 200, jsonType, `{"kind":"APIResourceList","resources":[{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["patch"]}]}`)
		case r.Method == http.MethodGet:
			answer(w, 200, jsonType, `{"kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Established","status":"True"}]}}`)
		case strings.HasSuffix(path, "/widgets/a") && patches.Add(1) <= stale:
			answerStatus(w, 500, "", "failed to create typed patch object (shop/a; shop.example.com/v1, Kind=Widget): .spec.color: field not declared in schema")
		default:
			answerMeta(w)
		}
	})
	return c, &patches
}

func TestObjectsOfAChangedDefinitionGetASecondChance(t *testing.T) {
	t.Parallel()
	definition := newObject(t, widgets, "shop", "Widget", "color: {type: string}")
	objects := []*object.Object{definition, newObject(t, widget, "shop", "color: red")}

	c, patches := slowDefinitions(t, 3, time.Minute)
	results := c.bring(t.Context(), objects, nil)
	inventory(t, results)
	if diff := cmp.Diff([]Action{Configured, Configured}, actions(results)); diff != "" {
		t.Error(diff)
	}
	if n := patches.Load(); n != 4 {
		t.Errorf("%d patches, want 4", n)
	}

	// But not when the definition is as it was.
	c, patches = slowDefinitions(t, 3, time.Minute)
	known := map[object.ID]store.Entry{definition.ID: {ID: definition.ID, UID: "1", Digest: definition.Digest}}
	if got := c.bring(t.Context(), objects, known); got[0].Action != Unchanged || got[1].Err == nil {
		t.Errorf("got %+v", got)
	}
	if n := patches.Load(); n != 1 {
		t.Errorf("%d patches, want 1", n)
	}

	// And not for ever.
	c, _ = slowDefinitions(t, 1<<30, 50*time.Millisecond)
	want := "apply Widget.shop.example.com/shop/a: failed to create typed patch object (shop/a; shop.example.com/v1, Kind=Widget): .spec.color: field not declared in schema"
	if err := c.bring(t.Context(), objects, nil)[1].Err; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A definition that is not served in time is sent again by the next apply.
func TestADefinitionThatIsNotServedIsNotApplied(t *testing.T) {
	c := fake(t, Options{EstablishTimeout: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/apis/apiextensions.k8s.io/v1":
			answer(w, 200, jsonType, `{"kind":"APIResourceList","resources":[{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["patch"]}]}`)
		case r.Method == http.MethodGet:
			answer(w, 200, jsonType, `{"kind":"CustomResourceDefinition","status":{"conditions":[{"type":"Established","status":"False"}]}}`)
		default:
			answerMeta(w)
		}
	})
	got := c.bring(t.Context(), []*object.Object{
		newObject(t, widgets, "shop", "Widget", "color: {type: string}"), newObject(t, widget, "shop", "color: red"),
	}, nil)
	want := "apply CustomResourceDefinition/widgets.shop.example.com: not established within 50ms"
	if err := got[0].Err; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got[0].Action != "" || got[0].Entry.Digest != "" || got[0].Entry.UID == "" || got[1].Action != Skipped {
		t.Errorf("got %+v", got)
	}
}
