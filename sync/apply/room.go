// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// # How much of answers is in memory
//
// One answer has at most maxAnswer bytes, all pages of a list together maxList, the answers of
// one cluster that are read at a time roomOfCluster, and those of all clusters [RoomOfAll]. A
// page of a list counts until it is decoded. Whoever finds no room waits, as long as the
// request may take. One answer at a time may go on beyond each bound, so that answers of which
// each is half read do not wait for one another.

const (
	// maxAnswer has room for the largest object several times over: etcd takes 1.5 MiB of one.
	// Of a list that has more in a page, smaller pages are asked for.
	maxAnswer = 16 << 20
	// maxError is for the text of a refusal.
	maxError = 64 << 10
	// maxList is for the metadata of 150,000 objects, of about 3 KiB each. A server whose
	// pages have no end is given up there.
	maxList = 512 << 20
	// roomOfCluster lets four of the largest answers be read at a time, or all that the
	// requests under way to a cluster mostly bring.
	roomOfCluster = 64 << 20
	// RoomOfAll is a tenth of what a large fleet takes in all, and lets four clusters have
	// their full room.
	RoomOfAll = 256 << 20
)

var (
	errTooLarge = fmt.Errorf("answer of more than %d MiB", maxAnswer>>20)
	errNoRoom   = errors.New("the answers that are read at a time leave no room for this one: it is asked for again later")
)

// Room bounds the bytes of answers that are read at a time. It is safe for concurrent use.
type Room struct {
	most int64

	mu         sync.Mutex
	taken      int64
	isExceeded bool          // somebody reads on beyond the bound
	freed      chan struct{} // closed when room is given back; nil: nobody waits
}

// NewRoom returns room for so many bytes.
func NewRoom(most int64) *Room { return &Room{most: most} }

// roomShare is the room that one answer has.
type roomShare struct {
	room     *Room
	bytes    int64
	isBeyond bool // the bound does not hold for it
}

// take waits until there is room for so many bytes more.
func (s *roomShare) take(ctx context.Context, bytes int64) error {
	for {
		freed, ok := s.tryTake(bytes)
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return errNoRoom
		}
	}
}

// tryTake takes the room, or says when to try again.
func (s *roomShare) tryTake(bytes int64) (freed <-chan struct{}, ok bool) {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case s.isBeyond:
	case r.taken+bytes <= r.most:
		r.taken += bytes
		s.bytes += bytes
	case !r.isExceeded:
		r.isExceeded, s.isBeyond = true, true
	default:
		if r.freed == nil {
			r.freed = make(chan struct{})
		}
		return r.freed, false
	}
	return nil, true
}

// leave gives the room back. It may be called again.
func (s *roomShare) leave() {
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken -= s.bytes
	if s.isBeyond {
		r.isExceeded = false
	}
	if r.freed != nil {
		close(r.freed)
		r.freed = nil
	}
	s.bytes, s.isBeyond = 0, false
}

// shares are the room of one answer, of its cluster and of all.
type shares []*roomShare

func (c *connection) newShares() shares {
	all := shares{{room: c.room}}
	if c.options.Room != nil {
		all = append(all, &roomShare{room: c.options.Room})
	}
	return all
}

func (all shares) leave() {
	for _, s := range all {
		s.leave()
	}
}

// roomReader reads while there is room.
type roomReader struct {
	ctx  context.Context // of the request
	from io.Reader
	all  shares
}

func (r *roomReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	for _, s := range r.all {
		if noRoom := s.take(r.ctx, int64(n)); noRoom != nil {
			return n, noRoom
		}
	}
	return n, err
}
