// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// How long a server may keep us waiting. A large fetch may take hours as long as
// it gets on: servers say something every few seconds while they prepare a pack.
const (
	// defaultStall is how long no byte may come.
	defaultStall = 15 * time.Second
	// slowTime is how long less than slowBytes may come: a server that sends a byte
	// now and then is no better than one that is silent.
	slowTime  = time.Minute
	slowBytes = 8 << 10
	// prepareTime is how long a server may make up a pack. Until the pack begins it sends a
	// few bytes each five seconds (uploadpack.keepAlive of Git), as large as the pack may be.
	prepareTime = 10 * time.Minute
	// leastTime is how long a fetch has to be under way before it can be said how it gets on.
	leastTime = time.Second
)

// errStalled ends a conversation with a server that does not get on.
var errStalled = errors.New("the connection was given up")

// patience is how long a server is waited for. The zero value is how long it is in operation.
type patience struct {
	stall, slow, prepare time.Duration
}

func (p patience) orDefaults() patience {
	return patience{cmp.Or(p.stall, defaultStall), cmp.Or(p.slow, slowTime), cmp.Or(p.prepare, prepareTime)}
}

// pace watches over the bytes of the connections of one session.
type pace struct {
	patience

	mu       sync.Mutex
	conns    []net.Conn
	prepares bool      // the server makes up a pack
	since    time.Time // when the window began
	got      int64     // bytes since then
	stalled  error     // why a connection was given up; the first reason
}

func newPace(p patience) *pace { return &pace{patience: p.orDefaults()} }

// dial connects, with every byte watched. It takes no longer than a stall.
func (p *pace) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: p.stall, KeepAlive: 15 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conn)
	return &pacedConn{conn, p}, nil
}

// asksForPack says that the server makes up a pack from now on, until isComing says that it
// sends it.
func (p *pace) asksForPack() { p.window(true) }

func (p *pace) isComing() { p.window(false) }

// isOver says that all has come: the rest is work on this machine.
func (p *pace) isOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns, p.since = nil, time.Time{}
}

func (p *pace) window(prepares bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepares, p.since, p.got = prepares, time.Now(), 0
}

// count takes in bytes that came, and says why the connection is to be given up.
func (p *pace) count(n int, now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since = now
	}
	p.got += int64(n)
	switch long := now.Sub(p.since); {
	case p.prepares && long >= p.prepare:
		return p.giveUpLocked(fmt.Sprintf("the server prepared a pack for %s and sent nothing of it", p.prepare))
	case p.prepares, long < p.slow:
	case p.got < slowBytes:
		return p.giveUpLocked(fmt.Sprintf("the server sent %d bytes in %s", p.got, p.slow))
	default:
		p.since, p.got = now, 0
	}
	return nil
}

// hurry gives the connections up now if the server does not get on. One that prepares a pack has
// a minute first: asked anew, it begins anew.
func (p *pace) hurry(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	long, least := now.Sub(p.since), leastTime
	if p.prepares {
		least = p.slow
	}
	getsOn := !p.prepares && float64(p.got) >= slowBytes*long.Seconds()/p.slow.Seconds()
	if p.since.IsZero() || long < least || getsOn {
		return
	}
	p.giveUpLocked(fmt.Sprintf("the server sent %d bytes in %s, and is asked anew", p.got, long.Round(time.Second)))
	for _, conn := range p.conns {
		conn.Close()
	}
}

func (p *pace) giveUpLocked(why string) error {
	if p.stalled == nil {
		p.stalled = fmt.Errorf("%s: %w", why, errStalled)
	}
	return p.stalled
}

// explain puts the reason why a connection was given up in place of what came of
// it.
func (p *pace) explain(ctx context.Context, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil || p.stalled == nil || ctx.Err() != nil {
		return err
	}
	return p.stalled
}

// pacedConn gives up when nothing comes, or nothing can be sent, for too long.
type pacedConn struct {
	net.Conn
	*pace
}

func (c *pacedConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, c.giveUp("the server sent nothing for " + c.stall.String())
	}
	if slow := c.count(n, time.Now()); err == nil && slow != nil {
		return n, slow
	}
	return n, err
}

func (c *pacedConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, c.giveUp("the server took nothing for " + c.stall.String())
	}
	if err == nil { // a read that waits since before the question has its whole time again
		err = c.SetReadDeadline(time.Now().Add(c.stall))
	}
	return n, err
}

func (p *pace) giveUp(why string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.giveUpLocked(why)
}
