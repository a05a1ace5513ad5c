// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/swell-sh/swell/config"
)

// Source is where commits come from: a [source.Source].
type Source interface {
	Commits
	// Fetch returns the newest commit of the branch, whose tree can be had after it.
	Fetch(ctx context.Context) (config.Commit, error)
	// Hurry ends a Fetch under way whose server does not get on.
	Hurry()
}

// busy is the error of a server that asks to be left alone for a while; zero: it does not.
type busy interface {
	error
	RetryAfter() time.Duration
}

// branch looks at the branch, in the background when that takes its time. It is used
// by the pass only.
type branch struct {
	source Source
	poll   time.Duration
	wake   func()

	looking chan fetched // the look under way; nil when there is none
	failed  int          // how often in a row it failed
	next    time.Time    // when to look next
	failure string       // why the last look failed; empty when it did not
}

const (
	// fetchPatience is how long a pass waits for Git. A longer fetch goes on
	// in the background, so that a Git server that hangs holds up no rollout.
	fetchPatience = 5 * time.Second
	// fetchLimit is when a fetch is given up that gets on all the time: the first
	// one may be large. One that does not get on ends much earlier, see package
	// source.
	fetchLimit = 12 * time.Hour
	// fetchRetry is the pause after a fetch that failed. It doubles up to the time
	// between two polls.
	fetchRetry = time.Second
)

// fetched is what became of a look at the branch.
type fetched struct {
	commit config.Commit
	err    error
	over   bool // else it is still under way, and err says so
}

// newest looks at the branch when it is time to. ok is false when nobody looked, or
// when there is still no answer.
func (b *branch) newest(ctx context.Context, now time.Time) (answer fetched, ok bool) {
	if b.looking != nil {
		select {
		case answer = <-b.looking:
			return b.answered(answer, now), true
		default:
			return fetched{}, false
		}
	}
	if now.Before(b.next) {
		return fetched{}, false
	}
	b.next = now.Add(b.poll)
	b.looking = make(chan fetched, 1)
	go b.fetch(ctx, b.looking)
	timer := time.NewTimer(fetchPatience)
	defer timer.Stop()
	select {
	case answer = <-b.looking:
		return b.answered(answer, now), true
	case <-timer.C:
		return fetched{err: fmt.Errorf("git: no answer yet after %s, still waiting", fetchPatience)}, true
	}
}

func (b *branch) answered(answer fetched, now time.Time) fetched {
	b.looking = nil
	if answer.err == nil {
		b.failed = 0
		return answer
	}
	pause := min(fetchRetry<<min(b.failed, 10), b.poll)
	b.failed++
	if busy, ok := errors.AsType[busy](answer.err); ok {
		pause = max(pause, busy.RetryAfter())
	}
	b.next = now.Add(pause)
	return answer
}

// fetch fetches, and wakes the daemon.
func (b *branch) fetch(ctx context.Context, answer chan<- fetched) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	commit, err := b.source.Fetch(ctx)
	answer <- fetched{commit, err, true}
	b.wake()
}

// due is when the branch is to be looked at next; zero is never.
func (b *branch) due() time.Time {
	if b.looking != nil {
		return time.Time{} // its end is told
	}
	return b.next
}

// hurry has the branch looked at in the next pass, which is due at once: the zero time
// would be never.
func (b *branch) hurry() { b.next, b.failed = time.Unix(0, 0), 0 }

// again is hurry that ends a look under way, where Git does not get on.
func (b *branch) again() {
	b.source.Hurry()
	b.hurry()
}

// end waits for a look that is still under way when its ctx has ended, so that the
// source can be closed after it.
func (b *branch) end() {
	if b.looking != nil {
		<-b.looking
		b.looking = nil
	}
}
