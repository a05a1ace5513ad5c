// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package executor carries out the actions of a plan in the background, unit by unit:
// it applies bundles, checks their health, and deletes prunable objects. There is at
// most one job for a unit on a target, and no two jobs write or delete one object.
//
// It decides nothing about releases and stores nothing: a job holds its result until
// the caller collects it.
package executor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// How long a pass waits for its jobs: a job that takes longer continues in the
// background, and a later pass records it.
const (
	// DefaultPatience is the longest wait. What has ended by then is recorded,
	// so that a long release is known piece by piece.
	DefaultPatience = time.Second
	// quietShare of the patience without any job ending is the end of the wait: a
	// cluster that has not answered by then is slow, and must not delay the others.
	quietShare = 10
)

// lockKey is an object in a cluster that a job writes or deletes.
type lockKey struct {
	cluster string
	id      object.ID
}

// Executor are the jobs that were begun and are not recorded yet. There is at
// most one for a unit on a target, and no object is written or deleted by two:
// what the plan wants of one that is taken is left for a later pass, which the
// end of the job brings about.
type Executor struct {
	running sync.WaitGroup
	ended   chan struct{} // told when a job ends, for the pass that waits
	wake    chan struct{} // the same, for the pause between two passes

	mu      sync.Mutex
	jobs    map[object.UnitTarget]*Job
	locks   map[lockKey]*Job
	done    []*Job                   // not recorded yet
	slots   map[string]chan struct{} // by cluster: see UnitsAtOnce
	loads   map[string]load          // by cluster: of jobs
	ending  map[*Job][]store.Entry   // what jobs are about to delete or to orphan
	cancels map[*Job]context.CancelFunc
	waiting map[*Job]bool // for a slot: nothing of them was done yet
}

// load is how many jobs and objects there are.
type load struct{ jobs, objects int }

// ObjectsAhead is how many objects of a cluster are made ready at a time, of as
// many units as that takes. They are in memory as a whole. It is some seconds'
// work for an API server, so that none waits for the next pass.
const ObjectsAhead = 5000

// Room says whether one more job of a cluster may be made ready. A large release
// is made ready piece by piece. Units of any size are ready for whenever one of
// those is done that are worked on.
func (x *Executor) Room(cluster string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	is := x.loads[cluster]
	return is.objects < ObjectsAhead || is.jobs < 2*UnitsAtOnce
}

// loadLocked counts a job, or no more where n is -1.
func (x *Executor) loadLocked(j *Job, n int) {
	is := x.loads[j.Cluster]
	is.jobs += n
	if j.Bundle != nil {
		is.objects += n * len(j.Bundle.Objects)
	}
	x.loads[j.Cluster] = is
}

// New returns an executor. It sends on wake when a job has ended, to start a pass.
func New(wake chan struct{}) *Executor {
	return &Executor{ended: make(chan struct{}, 1), wake: wake, jobs: map[object.UnitTarget]*Job{}, locks: map[lockKey]*Job{},
		slots: map[string]chan struct{}{}, loads: map[string]load{}, ending: map[*Job][]store.Entry{}, cancels: map[*Job]context.CancelFunc{}, waiting: map[*Job]bool{}}
}

// Idle says whether an action can be begun: nothing is done for its unit on its
// target.
func (x *Executor) Idle(a rollout.Action) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.jobs[object.UnitTarget{Unit: a.Unit, Target: a.Target}] == nil
}

// TryLock makes the job the one of its unit on its target and, where it writes, of
// its objects; it reports whether another one has some of them.
func (x *Executor) TryLock(j *Job) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	var objects []*object.Object
	if j.Applies() {
		objects = j.Bundle.Objects
	}
	for _, o := range objects {
		if x.locks[lockKey{j.Cluster, o.ID}] != nil {
			return false
		}
	}
	for _, o := range objects {
		x.locks[lockKey{j.Cluster, o.ID}] = j
	}
	x.jobs[j.Place()] = j
	x.loadLocked(j, 1)
	return true
}

// LockPrunable makes the job the one of the objects that it is about to delete or to
// orphan. Those that another job is at work on are left, and not given up
// either: that job may be about to leave the object out, and its end would hide
// that it is its own.
func (x *Executor) LockPrunable(j *Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	others := func(id object.ID) bool {
		other := x.locks[lockKey{j.Cluster, id}]
		if other == nil || other == j {
			return false
		}
		j.Left = append(j.Left, fmt.Sprintf("%s stays: another unit is writing it", id))
		return true
	}
	j.Prunable = slices.DeleteFunc(j.Prunable, func(e store.Entry) bool { return others(e.ID) })
	j.Kept = slices.DeleteFunc(j.Kept, func(e store.Entry) bool { return others(e.ID) })
	j.Moved = slices.DeleteFunc(j.Moved, func(h ownership.Transfer) bool { return others(h.ID) })
	ends := slices.Concat(j.Prunable, j.Kept)
	for _, e := range ends {
		x.locks[lockKey{j.Cluster, e.ID}] = j
	}
	if len(ends) > 0 {
		x.ending[j] = ends
	}
}

// Start does jobs of one cluster, in this order and as many at a time as there
// is room for in the cluster, and returns at once.
func (x *Executor) Start(ctx context.Context, cluster string, jobs []*Job, do func(context.Context, *Job)) {
	x.mu.Lock()
	slots := x.slots[cluster]
	if slots == nil {
		slots = make(chan struct{}, UnitsAtOnce)
		x.slots[cluster] = slots
	}
	begun := make([]func(), len(jobs))
	for i, j := range jobs {
		own, cancel := context.WithCancel(ctx)
		x.cancels[j], x.waiting[j] = cancel, true // also while it waits for its turn
		begun[i] = func() {
			defer cancel()
			x.begin(j)
			if own.Err() == nil {
				do(own, j)
			}
			x.end(j)
		}
	}
	x.mu.Unlock()
	x.running.Go(func() {
		for _, run := range begun {
			slots <- struct{}{} // jobs end when ctx does
			x.running.Go(func() {
				defer func() { <-slots }()
				run()
			})
		}
	})
}

func (x *Executor) begin(j *Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.waiting, j)
}

func (x *Executor) end(j *Job) {
	x.mu.Lock()
	x.done = append(x.done, j)
	x.mu.Unlock()
	for _, told := range []chan struct{}{x.ended, x.wake} {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}

// Collect returns the jobs that have ended, for recording, and gives free
// what they had.
func (x *Executor) Collect() []*Job {
	x.mu.Lock()
	defer x.mu.Unlock()
	done := x.done
	x.done = nil
	for _, j := range done {
		x.releaseLocked(j)
	}
	return done
}

// Drop gives up jobs that were not begun.
func (x *Executor) Drop(jobs []*Job) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, j := range jobs {
		if x.jobs[j.Place()] == j {
			x.releaseLocked(j)
		}
	}
}

func (x *Executor) releaseLocked(j *Job) {
	delete(x.jobs, j.Place())
	x.loadLocked(j, -1)
	delete(x.cancels, j)
	if j.Applies() {
		for _, o := range j.Bundle.Objects {
			delete(x.locks, lockKey{j.Cluster, o.ID})
		}
	}
	for _, e := range x.ending[j] {
		delete(x.locks, lockKey{j.Cluster, e.ID})
	}
	delete(x.ending, j)
}

// Wait waits until all of the jobs have ended, or the patience has. When ctx
// ends, so do the jobs, and it waits for that.
func (x *Executor) Wait(ctx context.Context, jobs []*Job, patience time.Duration) {
	limit, quiet := time.NewTimer(patience), time.NewTimer(patience/quietShare)
	defer limit.Stop()
	defer quiet.Stop()
	for !x.over(jobs) {
		select {
		case <-x.ended:
			quiet.Reset(patience / quietShare)
		case <-quiet.C:
			return
		case <-limit.C:
			return
		case <-ctx.Done():
			x.running.Wait()
			return
		}
	}
}

func (x *Executor) over(jobs []*Job) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !slices.ContainsFunc(jobs, func(j *Job) bool {
		return x.jobs[j.Place()] == j && !slices.Contains(x.done, j)
	})
}

// Busy says whether any job is not recorded yet.
func (x *Executor) Busy() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.jobs) > 0
}

// Clusters are those that a job is at work in.
func (x *Executor) Clusters() map[string]bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	busy := map[string]bool{}
	for _, j := range x.jobs {
		busy[j.Cluster] = true
	}
	return busy
}

// Places are the units on targets that a job is at work on.
func (x *Executor) Places() []object.UnitTarget {
	x.mu.Lock()
	defer x.mu.Unlock()
	var places []object.UnitTarget
	for at := range x.jobs {
		places = append(places, at)
	}
	return places
}

// CancelStale ends the jobs that are about to delete, or to orphan, something which
// must stay by now. What they have sent is on its way; nothing more is.
func (x *Executor) CancelStale(stays func(j *Job, id object.ID) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for j, entries := range x.ending {
		if slices.ContainsFunc(entries, func(e store.Entry) bool { return stays(j, e.ID) }) {
			x.cancels[j]()
		}
	}
}

// Cancel ends the jobs that these are. What they have sent is on its way; nothing more is.
func (x *Executor) Cancel(these func(j *Job) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for j, cancel := range x.cancels {
		if these(j) {
			cancel()
		}
	}
}

// CancelWaiting ends those of these jobs of which nothing was done yet.
func (x *Executor) CancelWaiting(these func(j *Job) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for j := range x.waiting {
		if these(j) {
			x.cancels[j]()
		}
	}
}

// UnitsAtOnce is how many units of one cluster are worked on at a time. What
// the API server sees is bounded by the connection; this bounds memory.
const UnitsAtOnce = 32

// DrainFor waits until no job is under way, or the patience has ended.
func (x *Executor) DrainFor(ctx context.Context, patience time.Duration) {
	x.mu.Lock()
	jobs := slices.Collect(maps.Values(x.jobs))
	x.mu.Unlock()
	x.Wait(ctx, jobs, patience)
}

// Drain waits until no job is under way.
func (x *Executor) Drain() { x.running.Wait() }
