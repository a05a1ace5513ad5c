// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package aside does work that may take long while those who ask for it go on: a chart that
// loops, or a text that a program is slow to judge, holds up nobody else.
package aside

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Group is work that is alike: where some of it is late, the rest may be, too.
type Group struct {
	Owner string // the tenant that it is for
	Name  string
}

const (
	// lateFor is for how long a group is done aside after work of it was late.
	lateFor = 10 * time.Minute
	// lateWithin is the time in which callers wait in vain for at most so many groups of an owner, and
	// of all. Further ones are done aside from the start, so that many groups that are late hold up
	// nobody for longer than a few of them do.
	lateWithin  = time.Minute
	mostOfOwner = 2
	mostOfAll   = 6
	// maxAsked is how many results are kept that nobody has taken, with those that are to be made aside.
	// Of these an owner has maxWaiting at most, and fewWaiting however many others have.
	maxAsked   = 1000
	maxWaiting = 250
	fewWaiting = 5
)

// Work is work of one sort. Equal keys ask for the same, which is done once while it is under way.
// The zero value is ready. It is safe for concurrent use.
type Work[K comparable, V any] struct {
	once  sync.Once
	turns chan struct{} // as many as there are processors: work that somebody waits for
	left  chan struct{} // as many again: work that somebody waited for, and nobody does any more

	mu     sync.Mutex
	asked  map[K]*result[V]
	late   map[Group]time.Time // groups with work that took longer than callers wait: when it was so last
	missed []missed            // since [lateWithin], the oldest first
	aside  queue
}

// missed is a group that a caller waited for in vain.
type missed struct {
	Group
	time time.Time
}

// result is there when done is closed. Nothing of it changes afterwards.
type result[V any] struct {
	done  chan struct{}
	value V
	until time.Time // when it is forgotten; zero: when somebody has taken it
}

func (r *result[V]) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Do returns what do makes of the key, and for how long that is to be given to others, too; zero:
// to whoever waits for it now. ok is false where it is not there after the patience, or where other
// work of its group was late, or too many groups were: then it is done aside, and is there when it is
// asked for later. Where too much is to be done aside, it is begun when it is asked for later. A patience
// of zero waits as long as it takes, and for no work aside but the same.
func (w *Work[K, V]) Do(key K, group Group, patience time.Duration, do func() (value V, keep time.Duration)) (value V, ok bool) {
	r, late := w.begin(key, group, patience, do)
	switch {
	case patience == 0:
		<-r.done
	case !late:
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-r.done:
		case <-timer.C:
			w.setMissed(group)
		}
	}
	if r == nil || !r.isDone() {
		return value, false
	}
	w.taken(key, r)
	return r.value, true
}

// begin finds a result, or work under way, or begins it. late says that its group is done aside; then
// the result is nil where too much is to be done there.
func (w *Work[K, V]) begin(key K, group Group, patience time.Duration, do func() (V, time.Duration)) (r *result[V], late bool) {
	w.once.Do(func() {
		processors := runtime.GOMAXPROCS(0)
		w.turns, w.left = make(chan struct{}, processors), make(chan struct{}, processors)
		w.asked, w.late = map[K]*result[V]{}, map[Group]time.Time{}
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	late = patience > 0 && w.isLate(group)
	if r = w.asked[key]; r != nil && !(r.isDone() && !r.until.IsZero() && time.Now().After(r.until)) {
		return r, late
	}
	if len(w.asked) >= maxAsked {
		for other, result := range w.asked {
			if result.isDone() {
				delete(w.asked, other)
			}
		}
	}
	if waiting := w.aside.waiting(group.Owner); late && (waiting >= maxWaiting || waiting >= fewWaiting && len(w.asked) >= maxAsked) {
		return nil, late
	}
	r = &result[V]{done: make(chan struct{})}
	w.asked[key] = r
	if late {
		w.doAside(r, group, patience, do)
	} else {
		go w.doInTurn(r, group, patience, do)
	}
	return r, late
}

// setLate notes that work of a group was late.
func (w *Work[K, V]) setLate(group Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late[group] = time.Now()
}

// setMissed notes that a caller waited for a group in vain, be it that others have all turns.
func (w *Work[K, V]) setMissed(group Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.ContainsFunc(w.missed, func(m missed) bool { return m.Group == group }) {
		w.missed = append(w.missed, missed{group, time.Now()})
	}
}

// isLate says whether a group is done aside. The lock is held.
func (w *Work[K, V]) isLate(group Group) bool {
	if since, late := w.late[group]; late && time.Since(since) <= lateFor {
		return true
	}
	maps.DeleteFunc(w.late, func(_ Group, since time.Time) bool { return time.Since(since) > lateFor })
	w.missed = slices.DeleteFunc(w.missed, func(m missed) bool { return time.Since(m.time) > lateWithin })
	ofOwner := 0
	for _, m := range w.missed {
		if m.Group == group {
			return true
		}
		if m.Owner == group.Owner {
			ofOwner++
		}
	}
	return ofOwner >= mostOfOwner || len(w.missed) >= mostOfAll
}

// taken forgets a result that somebody has, but for one that is kept.
func (w *Work[K, V]) taken(key K, r *result[V]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.until.IsZero() && w.asked[key] == r {
		delete(w.asked, key)
	}
}

// doInTurn does what somebody waits for. When nobody does any more, its group is done aside from then
// on, and it leaves its place to the next one, unless too many have left theirs: each may take as much
// memory as there is for one.
func (w *Work[K, V]) doInTurn(r *result[V], group Group, patience time.Duration, do func() (V, time.Duration)) {
	w.turns <- struct{}{}
	leave := sync.OnceFunc(func() { <-w.turns })
	defer leave()
	if patience > 0 {
		timer := time.AfterFunc(patience, func() {
			w.setLate(group)
			select {
			case w.left <- struct{}{}:
				leave()
				<-r.done
				<-w.left
			default:
			}
		})
		defer timer.Stop()
	}
	r.finish(do)
}

// doAside does what nobody waits for, one at a time, and the owners in turn. Its group stays there while its
// work takes long. The lock is held.
func (w *Work[K, V]) doAside(r *result[V], group Group, patience time.Duration, do func() (V, time.Duration)) {
	isFirst := w.aside.add(group.Owner, func() {
		begun := time.Now()
		if r.finish(do); time.Since(begun) > patience {
			w.setLate(group)
		}
	})
	if isFirst {
		go w.workAside()
	}
}

// workAside does what there is to be done aside.
func (w *Work[K, V]) workAside() {
	for {
		w.mu.Lock()
		next := w.aside.next()
		w.mu.Unlock()
		if next == nil {
			return
		}
		next()
	}
}

func (r *result[V]) finish(do func() (V, time.Duration)) {
	value, keep := do()
	if r.value = value; keep > 0 {
		r.until = time.Now().Add(keep)
	}
	close(r.done)
}
