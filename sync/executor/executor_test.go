// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestACommitWhileAJobWaitsForItsTurn: a deletion that is not begun yet ends when
// a commit wants the object, like one that is.
func TestACommitWhileAJobWaitsForItsTurn(t *testing.T) {
	b := New(make(chan struct{}, 1))
	var all []*Job
	for i := range UnitsAtOnce + 1 {
		j := &Job{Action: rollout.Action{Kind: rollout.Check, Unit: config.UnitPath(rune('a' + i)), Target: "dev/a"}, Cluster: "dev"}
		j.Prunable = []store.Entry{{ID: object.ID{Kind: "ConfigMap", Name: string(j.Unit)}}}
		b.TryLock(j)
		b.LockPrunable(j)
		all = append(all, j)
	}
	let := make(chan struct{})
	begun := make(chan *Job, len(all))
	b.Start(t.Context(), "dev", all, func(ctx context.Context, j *Job) {
		begun <- j
		select {
		case <-let:
		case <-ctx.Done():
		}
		if ctx.Err() == nil {
			j.Objects = map[apply.Action]int{apply.Deleted: 1}
		}
	})
	for range UnitsAtOnce {
		<-begun
	}
	last := all[len(all)-1]
	b.CancelStale(func(j *Job, _ object.ID) bool { return j == last })
	close(let)
	b.Drain()
	for _, j := range all {
		if deleted := j.Objects[apply.Deleted] > 0; deleted != (j != last) {
			t.Errorf("unit %q: deleted is %t", j.Unit, deleted)
		}
	}
}

// TestARunIsSuspectedAhead: a hook that is to run for another bundle is not what its entry
// says from the moment that the job begins, also where its text is the same.
func TestARunIsSuspectedAhead(t *testing.T) {
	hook := &object.Object{ID: object.ID{Group: "batch", Kind: "Job", Namespace: "shop", Name: "migrate"}, Digest: "text",
		JSON: []byte(`{"metadata":{"annotations":{"swell.sh/hook":"before"}}}`)}
	ran := store.Entry{ID: hook.ID, UID: "1", Digest: "text", Ran: "x"}
	for _, test := range []struct {
		bundle object.Digest
		want   []store.Entry
	}{
		{"x", nil},
		{"y", []store.Entry{ran}},
	} {
		j := &Job{Action: rollout.Action{Kind: rollout.Apply}, Inventory: Entries{hook.ID: ran},
			Bundle: &object.Bundle{Digest: test.bundle, Objects: []*object.Object{hook}}}
		if intended, suspect := j.WritesAhead(); len(intended) > 0 || !cmp.Equal(suspect, test.want) {
			t.Errorf("%s: intended %v, suspect %v", test.bundle, intended, suspect)
		}
	}
}
