// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"testing"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// TestConcurrentIsASweepsOwn: a job keeps what differs at its place from being judged by the
// sweeps of its cluster that were under way beside it, and by no later one. Otherwise two
// clusters that are swept in turns would be swept again at once for ever.
func TestConcurrentIsASweepsOwn(t *testing.T) {
	d := &Daemon{sweeps: newSweeps(), executor: executor.New(make(chan struct{}, 1))}
	entry := store.Entry{Unit: "shop/cart", Target: "two/a", ID: object.ID{Kind: "ConfigMap", Name: "x"}}
	begin := func(cluster string) *sweep {
		l := &sweep{cluster: cluster, over: make(chan struct{}), concurrent: map[object.UnitTarget]bool{}, entries: []store.Entry{entry},
			found: apply.Swept{Drifts: []drift.Finding{{Entry: entry}}, Looked: []bool{true}}}
		d.sweeps.underWay[cluster] = l
		return l
	}
	job := &executor.Job{Action: rollout.Action{Unit: entry.Unit, Target: entry.Target}, Cluster: "two"}

	begin("one") // and goes on all the time
	first := begin("two")
	d.markConcurrent([]*executor.Job{job})
	close(first.over)
	d.sweeps.postponed[entry.Place()] = nil
	d.executor.TryLock(job) // so that what was postponed stays so
	if done := d.endedSweeps(); len(done) != 1 || len(done[0].found.Drifts) != 0 || len(d.sweeps.postponed[entry.Place()]) != 1 {
		t.Errorf("beside a job: %+v, %v", done, d.sweeps.postponed)
	}
	second := begin("two")
	close(second.over)
	if done := d.endedSweeps(); len(done) != 1 || len(done[0].found.Drifts) != 1 {
		t.Errorf("after it: %+v", done)
	}
}
