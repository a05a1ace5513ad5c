// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"math"
	"sync"
	"time"
)

// limiter bounds the requests under way to one API server, between one and
// most, by what the server can take:
//
//   - It begins low, and grows by one with each answer until something is in the
//     way; answers count when at least half as many requests as allowed were
//     under way.
//   - A 429 takes a quarter off it, the first one half, at most once for the
//     requests that were under way together, and stops all requests to the
//     cluster for as long as the answer says. It does not grow for a second after
//     that; each further 429 that growing brings doubles this time, up to a
//     minute, because what a server can take is mostly the same for a while.
//   - It shrinks, down to what it began with, when requests take more than twice
//     as long as such requests did in the long run. The long run is with as many
//     requests as there were, so waiting for each other in the server does not
//     count.
//   - Else it grows by one with each round of answers.
//
// The arithmetic for latency is that of gradient limiters, and the rest is that
// of TCP.
type limiter struct {
	first, most int
	now         func() time.Time

	mu      sync.Mutex
	under   int             // way
	waiting []chan struct{} // in the order in which they came; closed when it is their turn
	limit   float64
	round   uint64 // counts begun requests, for "under way together"
	cut     uint64 // round up to which answers say nothing new
	steep   bool   // nothing has been in the way yet
	// pausedUntil is what a Retry-After asked for.
	pausedUntil time.Time
	// growAfter and hold are when it may grow again after a 429, and how long
	// the wait after the next one is.
	growAfter time.Time
	hold      time.Duration
	latency   map[string]*latency // by operation: a write takes longer than a read
}

// latency is how long requests of one sort take.
type latency struct {
	short average // over the last few
	long  average // in the long run
}

const (
	firstLimit = 4
	// maxPause bounds the pause: whoever wishes for more, such as a gateway that
	// says an hour to everybody, is asked again then.
	maxPause  = 30 * time.Second
	firstHold = time.Second
	mostHold  = time.Minute
	// tolerance is how many times as long as in the long run a request may take.
	tolerance = 2
	// slack is a difference in latency that is noise.
	slack = 10 * time.Millisecond
)

// average is an exponential one over about n values; the first n are averaged
// plainly.
type average struct {
	n     float64
	count float64
	value float64
}

func (a *average) add(v float64) {
	a.count = min(a.count+1, a.n)
	a.value += (v - a.value) / a.count
}

func newLimiter(first, most int) *limiter {
	return &limiter{first: first, most: most, now: time.Now, limit: float64(first), steep: true, hold: firstHold,
		latency: map[string]*latency{}}
}

// ticket is a request under way.
type ticket struct {
	round uint64
	under int // way at that moment, itself included
	began time.Time
}

// acquire waits for its turn. A pause that is longer than a request may be made
// to wait, or than ctx lasts, is an error, which says so; nil and false is that
// ctx has ended.
func (l *limiter) acquire(ctx context.Context, req *request) (ticket, *Error, bool) {
	for {
		l.mu.Lock()
		pause := l.pausedUntil.Sub(l.now())
		switch {
		case pause > maxRetryAfter, pause > 0 && endsWithin(ctx, pause):
			l.mu.Unlock()
			return ticket{}, throttled(req), false
		case pause <= 0 && l.under < l.currentLocked() && len(l.waiting) == 0:
			l.under++
			t := l.ticketLocked()
			l.mu.Unlock()
			return t, nil, true
		case pause > 0:
			l.mu.Unlock()
			if !wait(ctx, pause) {
				return ticket{}, nil, false
			}
			continue
		}
		turn := make(chan struct{})
		l.waiting = append(l.waiting, turn)
		l.admitLocked()
		l.mu.Unlock()
		select {
		case <-turn: // and counted already
		case <-ctx.Done():
			l.leave(turn)
			return ticket{}, nil, false
		}
		l.mu.Lock()
		if pause = l.pausedUntil.Sub(l.now()); pause > 0 { // since it stood in the queue
			l.under--
			l.admitLocked() // the others find the pause as well, and come back
			l.mu.Unlock()
			continue
		}
		t := l.ticketLocked()
		l.mu.Unlock()
		return t, nil, true
	}
}

func endsWithin(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < d
}

func throttled(req *request) *Error {
	return &Error{
		Op: req.op, Object: req.object, class: ErrThrottled, unsent: true,
		Message: "not tried: the cluster asked to slow down",
	}
}

func (l *limiter) ticketLocked() ticket {
	l.round++
	return ticket{l.round, l.under, l.now()}
}

// leave takes one who waits out of the queue, or gives back its turn.
func (l *limiter) leave(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == turn {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return
		}
	}
	l.under--
	l.admitLocked()
}

func (l *limiter) admitLocked() {
	for len(l.waiting) > 0 && l.under < l.currentLocked() {
		l.under++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

func (l *limiter) currentLocked() int { return max(1, min(l.most, int(l.limit))) }

// current is how many requests may be under way.
func (l *limiter) current() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.currentLocked()
}

// release takes in how a request ended. Only what concerns single objects says
// anything about latency.
func (l *limiter) release(t ticket, req *request, err *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under--
	took := l.now().Sub(t.began)
	switch {
	case err != nil && err.class == ErrThrottled:
		l.throttledLocked(t, err.after)
	case err != nil && (err.Code == 0 || err.silent()): // that is for the breaker
	case !req.single():
	default:
		l.answeredLocked(t, l.lateLocked(req.op, took))
	}
	l.admitLocked()
}

func (l *limiter) throttledLocked(t ticket, after time.Duration) {
	if until := l.now().Add(min(after, maxPause)); until.After(l.pausedUntil) {
		l.pausedUntil = until
	}
	l.growAfter = l.pausedUntil.Add(l.hold)
	if t.round <= l.cut {
		return
	}
	share := 0.75
	if l.steep {
		share = 0.5 // it grew blindly
	}
	l.cut, l.steep = l.round, false
	l.limit = max(1, math.Floor(share*l.limit))
	l.hold = min(2*l.hold, mostHold)
}

// lateLocked takes in how long a request took, and returns how many times as
// long as in the long run they take at the moment; at most 1 is as usual.
func (l *limiter) lateLocked(op string, took time.Duration) float64 {
	known := l.latency[op]
	if known == nil {
		known = &latency{short: average{n: 20}, long: average{n: 200}}
		l.latency[op] = known
	}
	known.short.add(took.Seconds())
	known.long.add(took.Seconds())
	usual := tolerance * known.long.value
	if known.short.value <= usual+slack.Seconds() {
		return 1
	}
	return known.short.value / usual
}

func (l *limiter) answeredLocked(t ticket, late float64) {
	if t.round <= l.cut || l.now().Before(l.growAfter) {
		return
	}
	full := 2*t.under >= l.currentLocked() // else it says nothing of so many
	switch {
	case late > 1:
		// Once for a round, in proportion, and not to the utmost: a webhook that
		// takes its time is not helped by a queue before it.
		l.cut, l.steep = l.round, false
		l.limit = min(l.limit, max(float64(l.first), l.limit*max(0.5, 1/late)))
	case !full:
	case l.steep:
		l.limit = min(float64(l.most), l.limit+1)
	default:
		l.limit = min(float64(l.most), l.limit+1/l.limit)
	}
	if l.hold > firstHold && l.now().Sub(l.growAfter) > l.hold {
		l.hold = firstHold // it grew for as long again, and nothing was in the way
	}
}

// single says whether the request is about one object, so that its latency can
// be held against that of others.
func (r *request) single() bool { return r.op == "apply" || r.op == "get" || r.op == "delete" }
