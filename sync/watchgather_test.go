// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/informer"
	"github.com/swell-sh/swell/sync/store"
)

// TestAWatchThatEndsIsFollowedByASweep: at once when the server forgot what
// happened (410), and not again and again when it refuses the watch.
func TestAWatchThatEndsIsFollowedByASweep(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	for code, refused := range map[int]bool{http.StatusGone: false, http.StatusForbidden: true} {
		d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
		d.Drift.Watch, d.arrived = true, make(chan struct{}, 1)
		conn := answering(t, code)
		d.informer.Listed(t.Context(), "dev", watched{d, "dev", conn}, map[schema.GroupVersionKind]string{kind: "1"}, true)
		<-d.arrived
		r := Record{At: noon.Add(time.Second)}
		looks := d.dueSweeps(&r)
		if refused {
			if len(looks) != 0 || len(r.Errors) != 1 {
				t.Errorf("refused: looks %v, errors %v", looks, r.Errors)
			}
			r = Record{At: noon.Add(time.Second + watchPause)}
			looks = d.dueSweeps(&r)
		}
		if len(looks) != 1 || !looks[0].full || len(r.Errors) > 0 {
			t.Errorf("%d: looks %v, errors %v", code, looks, r.Errors)
		}
	}
}

// answering is a cluster that answers each watch in the same way.
func answering(t *testing.T, code int) *apply.Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Audit-Id", "x")
		if r.URL.Path == "/api/v1" {
			fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["patch"]}]}`)
			return
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":%d}`, code)
	}))
	t.Cleanup(server.Close)
	c, err := apply.Connect(&rest.Config{Host: server.URL}, "shop", apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAFloodOfEventsIsASweep.
func TestAFloodOfEventsIsASweep(t *testing.T) {
	d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
	many := make([]informer.Suspect, informer.MaxSuspects+10)
	for i := range many {
		many[i].ID = object.ID{Kind: "ConfigMap", Name: time.Duration(i).String()}
	}
	d.informer.Requeue("dev", many)
	if looks := d.dueSweeps(&Record{At: noon}); len(looks) != 1 || !looks[0].full || len(looks[0].few) != informer.MaxSuspects {
		t.Errorf("looks %v", looks)
	}
}

// TestAFightThatCannotBeLookedAt is not taken up again at once.
func TestAFightThatCannotBeLookedAt(t *testing.T) {
	d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
	of := store.Object{Target: "dev/a", ID: object.ID{Kind: "ConfigMap", Name: "x"}}
	var err error
	if d.sweeps.ledger, err = drift.Open(fights{{Object: of, Rounds: 1, Until: noon}}); err != nil {
		t.Fatal(err)
	}
	if at := d.nextSweep(); !at.Equal(noon) {
		t.Errorf("next look at %s", at)
	}
	if looks := d.dueSweeps(&Record{At: noon}); len(looks) != 1 || len(looks[0].few) != 1 {
		t.Fatalf("looks %v", looks)
	}
	if at := d.nextSweep(); !at.Equal(noon.Add(drift.MinBackoff)) {
		t.Errorf("next look at %s", at)
	}
	if looks := d.dueSweeps(&Record{At: noon.Add(time.Second)}); len(looks) != 0 {
		t.Errorf("looks %v", looks)
	}
}

// fights is a state that holds nothing else.
type fights []store.Fight

func (f fights) Drifts() ([]store.Drift, error) { return nil, nil }
func (f fights) Fights() ([]store.Fight, error) { return f, nil }
