// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/store"
)

// TestAWatchThatEndsIsFollowedByASweep: at once when the server forgot what
// happened (410), and not again and again when it refuses the watch.
func TestAWatchThatEndsIsFollowedByASweep(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	conn := &apply.Cluster{}
	end := func(err error) *Daemon {
		d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
		d.Drift.Watch = true
		d.watches.streams["dev"] = &streams{conn: conn, cancel: map[schema.GroupVersionKind]context.CancelFunc{kind: func() {}}}
		d.watches.ended = []endedWatch{{"dev", kind, conn, err}}
		return d
	}
	d := end(apply.ErrExpired)
	r := Record{At: noon.Add(time.Second)}
	if looks := d.dueSweeps(&r); len(looks) != 1 || !looks[0].full || len(r.Errors) > 0 {
		t.Errorf("looks %v, errors %v", looks, r.Errors)
	}
	d = end(apply.ErrRefused)
	r = Record{At: noon.Add(time.Second)}
	if looks := d.dueSweeps(&r); len(looks) != 0 || len(r.Errors) != 1 {
		t.Errorf("looks %v, errors %v", looks, r.Errors)
	}
	r = Record{At: noon.Add(time.Second + watchPause)}
	if looks := d.dueSweeps(&r); len(looks) != 1 || !looks[0].full {
		t.Errorf("looks %v after the pause", looks)
	}
	d = end(apply.ErrExpired)
	d.watches.ended[0].conn = &apply.Cluster{} // of a connection that was given up
	r = Record{At: noon.Add(time.Second)}
	if looks := d.dueSweeps(&r); len(looks) != 0 {
		t.Errorf("looks %v", looks)
	}
}

// TestAFloodOfEventsIsASweep, and takes bounded memory.
func TestAFloodOfEventsIsASweep(t *testing.T) {
	d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
	d.arrived = make(chan struct{}, 1)
	d.watches.writing.Store(map[string]bool{"dev": true}) // so that nothing is held against the store
	for i := range maxSuspects + 10 {
		d.onEvent("dev", apply.Seen{ID: render.ObjectID{Kind: "ConfigMap", Name: time.Duration(i).String()}})
	}
	if n := len(d.watches.suspects["dev"]); n != maxSuspects {
		t.Errorf("%d noted", n)
	}
	if looks := d.dueSweeps(&Record{At: noon}); len(looks) != 1 || !looks[0].full {
		t.Errorf("looks %v", looks)
	}
}

// TestAFightThatCannotBeLookedAt is not taken up again at once.
func TestAFightThatCannotBeLookedAt(t *testing.T) {
	d := sleeper(t, "0 0 1 1 *", 0, noon, "dev")
	of := store.Object{Target: "dev/a", ID: render.ObjectID{Kind: "ConfigMap", Name: "x"}}
	var err error
	if d.ledger, err = drift.Open(fights{{Object: of, Rounds: 1, Until: noon}}); err != nil {
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
	// The clock is set back by a day: the pause does not last for a day more.
	yesterday := noon.Add(-24 * time.Hour)
	if looks := d.dueSweeps(&Record{At: yesterday}); len(looks) != 0 {
		t.Errorf("looks %v", looks)
	}
	if looks := d.dueSweeps(&Record{At: yesterday.Add(drift.MaxBackoff)}); len(looks) != 1 {
		t.Errorf("looks %v when the longest pause is over", looks)
	}
}

// fights is a state that holds nothing else.
type fights []store.Fight

func (f fights) Drifts() ([]store.Drift, error) { return nil, nil }
func (f fights) Fights() ([]store.Fight, error) { return f, nil }
