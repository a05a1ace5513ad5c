// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// How long a pass waits for its jobs: what takes longer goes on in the
// background, and a later one records it.
const (
	// defaultPatience is the longest wait. What has ended by then is recorded,
	// so that a long release is known piece by piece.
	defaultPatience = time.Second
	// quietShare of the patience without any job ending is the end of the wait:
	// whoever has not answered by then is slow, and the others need not know.
	quietShare = 10
)

func (j *job) place() rollout.Place { return rollout.Place{Unit: j.Unit, Target: j.Target} }

// lockKey is an object in a cluster that a job writes or deletes.
type lockKey struct {
	cluster string
	id      render.ObjectID
}

// executor are the jobs that were begun and are not recorded yet. There is at
// most one for a unit on a target, and no object is written or deleted by two:
// what the plan wants of one that is taken is left for a later pass, which the
// end of the job brings about.
type executor struct {
	running sync.WaitGroup
	ended   chan struct{} // told when a job ends, for the pass that waits
	wake    chan struct{} // the same, for the pause between two passes

	mu      sync.Mutex
	jobs    map[rollout.Place]*job
	locks   map[lockKey]*job
	done    []*job                   // not recorded yet
	slots   map[string]chan struct{} // by cluster: see unitsAtOnce
	loads   map[string]load          // by cluster: of jobs
	ending  map[*job][]store.Entry   // what jobs are about to delete or to orphan
	cancels map[*job]context.CancelFunc
}

// load is how many jobs and objects there are.
type load struct{ jobs, objects int }

// objectsAhead is how many objects of a cluster are made ready at a time, of as
// many units as that takes. They are in memory as a whole. It is some seconds'
// work for an API server, so that none waits for the next pass.
const objectsAhead = 5000

// room says whether one more job of a cluster may be made ready. A large release
// is made ready piece by piece. Units of any size are ready for whenever one of
// those is done that are worked on.
func (b *executor) room(cluster string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := b.loads[cluster]
	return is.objects < objectsAhead || is.jobs < 2*unitsAtOnce
}

// loadLocked counts a job, or no more where n is -1.
func (b *executor) loadLocked(j *job, n int) {
	is := b.loads[j.cluster]
	is.jobs += n
	if j.bundle != nil {
		is.objects += n * len(j.bundle.Objects)
	}
	b.loads[j.cluster] = is
}

func newExecutor(wake chan struct{}) *executor {
	return &executor{ended: make(chan struct{}, 1), wake: wake, jobs: map[rollout.Place]*job{}, locks: map[lockKey]*job{},
		slots: map[string]chan struct{}{}, loads: map[string]load{}, ending: map[*job][]store.Entry{}, cancels: map[*job]context.CancelFunc{}}
}

// idle says whether an action can be begun: nothing is done for its unit on its
// target.
func (b *executor) idle(a rollout.Action) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.jobs[rollout.Place{Unit: a.Unit, Target: a.Target}] == nil
}

// tryLock makes the job the one of its unit on its target and, where it writes, of
// its objects; it reports whether another one has some of them.
func (b *executor) tryLock(j *job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	var objects []*render.Object
	if j.Kind == rollout.Apply {
		objects = j.bundle.Objects
	}
	for _, o := range objects {
		if b.locks[lockKey{j.cluster, o.ID}] != nil {
			return false
		}
	}
	for _, o := range objects {
		b.locks[lockKey{j.cluster, o.ID}] = j
	}
	b.jobs[j.place()] = j
	b.loadLocked(j, 1)
	return true
}

// lockPrunable makes the job the one of the objects that it is about to delete or to
// orphan. Those that another job is at work on are left, and not given up
// either: that job may be about to leave the object out, and its end would hide
// that it is its own.
func (b *executor) lockPrunable(j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	others := func(id render.ObjectID) bool {
		other := b.locks[lockKey{j.cluster, id}]
		if other == nil || other == j {
			return false
		}
		j.left = append(j.left, fmt.Sprintf("%s stays: another unit is writing it", id))
		return true
	}
	j.prunable = slices.DeleteFunc(j.prunable, func(e store.Entry) bool { return others(e.ID) })
	j.kept = slices.DeleteFunc(j.kept, func(e store.Entry) bool { return others(e.ID) })
	j.moved = slices.DeleteFunc(j.moved, func(h ownership.Transfer) bool { return others(h.ID) })
	ends := slices.Concat(j.prunable, j.kept)
	for _, e := range ends {
		b.locks[lockKey{j.cluster, e.ID}] = j
	}
	if len(ends) > 0 {
		b.ending[j] = ends
	}
}

// begin does jobs of one cluster, in this order and as many at a time as there
// is room for in the cluster, and returns at once.
func (b *executor) begin(ctx context.Context, cluster string, jobs []*job, do func(context.Context, *job)) {
	b.mu.Lock()
	slots := b.slots[cluster]
	if slots == nil {
		slots = make(chan struct{}, unitsAtOnce)
		b.slots[cluster] = slots
	}
	begun := make([]func(), len(jobs))
	for i, j := range jobs {
		own, cancel := context.WithCancel(ctx)
		b.cancels[j] = cancel // also while it waits for its turn
		begun[i] = func() {
			defer cancel()
			if own.Err() == nil {
				do(own, j)
			}
			b.end(j)
		}
	}
	b.mu.Unlock()
	b.running.Go(func() {
		for _, run := range begun {
			slots <- struct{}{} // jobs end when ctx does
			b.running.Go(func() {
				defer func() { <-slots }()
				run()
			})
		}
	})
}

func (b *executor) end(j *job) {
	b.mu.Lock()
	b.done = append(b.done, j)
	b.mu.Unlock()
	for _, told := range []chan struct{}{b.ended, b.wake} {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// collect returns the jobs that have ended, for recording, and gives free
// what they had.
func (b *executor) collect() []*job {
	b.mu.Lock()
	defer b.mu.Unlock()
	done := b.done
	b.done = nil
	for _, j := range done {
		b.releaseLocked(j)
	}
	return done
}

// drop gives up jobs that were not begun.
func (b *executor) drop(jobs []*job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, j := range jobs {
		if b.jobs[j.place()] == j {
			b.releaseLocked(j)
		}
	}
}

func (b *executor) releaseLocked(j *job) {
	delete(b.jobs, j.place())
	b.loadLocked(j, -1)
	delete(b.cancels, j)
	if j.Kind == rollout.Apply {
		for _, o := range j.bundle.Objects {
			delete(b.locks, lockKey{j.cluster, o.ID})
		}
	}
	for _, e := range b.ending[j] {
		delete(b.locks, lockKey{j.cluster, e.ID})
	}
	delete(b.ending, j)
}

// await waits until all of the jobs have ended, or the patience has. When ctx
// ends, so do the jobs, and it waits for that.
func (b *executor) await(ctx context.Context, jobs []*job, patience time.Duration) {
	limit, quiet := time.NewTimer(patience), time.NewTimer(patience/quietShare)
	defer limit.Stop()
	defer quiet.Stop()
	for !b.over(jobs) {
		select {
		case <-b.ended:
			quiet.Reset(patience / quietShare)
		case <-quiet.C:
			return
		case <-limit.C:
			return
		case <-ctx.Done():
			b.running.Wait()
			return
		}
	}
}

func (b *executor) over(jobs []*job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(jobs, func(j *job) bool {
		return b.jobs[j.place()] == j && !slices.Contains(b.done, j)
	})
}

// busy says whether any job is not recorded yet.
func (b *executor) busy() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.jobs) > 0
}

// clusters are those that a job is at work in.
func (b *executor) clusters() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	busy := map[string]bool{}
	for _, j := range b.jobs {
		busy[j.cluster] = true
	}
	return busy
}

// places are the units on targets that a job is at work on.
func (b *executor) places() []rollout.Place {
	b.mu.Lock()
	defer b.mu.Unlock()
	var places []rollout.Place
	for at := range b.jobs {
		places = append(places, at)
	}
	return places
}

// cancelStale ends the jobs that are about to delete, or to orphan, something which
// must stay by now. What they have sent is on its way; nothing more is.
func (b *executor) cancelStale(stays func(j *job, id render.ObjectID) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for j, entries := range b.ending {
		if slices.ContainsFunc(entries, func(e store.Entry) bool { return stays(j, e.ID) }) {
			b.cancels[j]()
		}
	}
}

// Finish waits until no job goes on any more, and records what became of them.
// It is to be called when the last pass is over, whether or not its ctx ended.
func (d *Daemon) Finish(ctx context.Context) error {
	d.executor.running.Wait()
	for _, l := range d.sweeping {
		<-l.over
	}
	var r Record
	err := d.record(ctx, &r, d.executor.collect())
	d.fleet.Release(ctx)
	return err
}
