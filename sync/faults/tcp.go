// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package faults stands between a test and a real API server and makes the faults of
// networks and of the machines in them. It is for tests only; everything in it but the
// fault is real.
package faults

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// Mode is what a [TCP] proxy does with bytes.
type Mode int

const (
	// Pass hands everything on.
	Pass Mode = iota
	// Hole takes connections and what is sent, and never says a word.
	Hole
	// Trickle hands on one byte of an answer a second.
	Trickle
	// Reset cuts connections hard, in the middle of the next answer.
	Reset
	// Refuse lets nobody in, and cuts who is.
	Refuse
)

// TCP is a proxy for connections. It does not look into them.
type TCP struct {
	Addr   string // of the proxy
	target string

	mu       sync.Mutex
	mode     Mode
	changed  chan struct{} // closed when mode changes
	listener net.Listener
	conns    map[net.Conn]bool
	accepted int
}

// NewTCP starts a proxy in front of an API server that ends with the test, and
// returns the configuration for the server behind it.
func NewTCP(t testing.TB, cfg *rest.Config) (p *TCP, through *rest.Config) {
	t.Helper()
	u, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	p = &TCP{target: u.Host, changed: make(chan struct{}), conns: map[net.Conn]bool{}}
	if err := p.listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Set(Refuse) })
	u.Host = p.Addr
	through = rest.CopyConfig(cfg)
	through.Host = u.String()
	return p, through
}

func (p *TCP) listen(addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.listener, p.Addr = listener, listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return nil
}

// Set changes what happens to connections, those that are there included. Who
// was refused is let in again.
func (p *TCP) Set(mode Mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if mode == p.mode {
		return
	}
	if p.mode == Refuse {
		if err := p.listen(p.Addr); err != nil {
			panic(err) // somebody else has the port now
		}
	}
	p.mode = mode
	close(p.changed)
	p.changed = make(chan struct{})
	if mode == Refuse {
		p.listener.Close()
		for conn := range p.conns {
			conn.Close()
		}
	}
}

// Accepted is how many connections there have been.
func (p *TCP) Accepted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}

func (p *TCP) now() (Mode, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.changed
}

func (p *TCP) keep(conn net.Conn, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if there {
		p.conns[conn] = true
	} else {
		delete(p.conns, conn)
	}
}

func (p *TCP) serve(client net.Conn) {
	p.mu.Lock()
	p.accepted++
	p.mu.Unlock()
	p.keep(client, true)
	defer p.keep(client, false)
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	ended := make(chan struct{}, 2)
	go func() { p.copy(server, client, false); ended <- struct{}{} }()
	go func() { p.copy(client, server, true); ended <- struct{}{} }()
	<-ended
}

// copy hands bytes on, as the mode at that moment has it.
func (p *TCP) copy(to, from net.Conn, answer bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.hand(to, buf[:n], answer) || err != nil {
			return
		}
	}
}

// hand hands bytes on; false when the connection is to end.
func (p *TCP) hand(to net.Conn, bytes []byte, answer bool) bool {
	for len(bytes) > 0 {
		mode, changed := p.now()
		n := len(bytes)
		switch {
		case mode == Hole:
			<-changed // what is held back goes its way when the hole is gone
			continue
		case mode == Refuse:
			return false
		case mode == Trickle && answer:
			timer := time.NewTimer(time.Second)
			select {
			case <-timer.C:
				n = 1
			case <-changed:
				timer.Stop()
				continue
			}
		case mode == Reset && answer:
			if _, err := to.Write(bytes[:n/2]); err == nil {
				_ = to.(*net.TCPConn).SetLinger(0)
			}
			return false
		}
		if _, err := to.Write(bytes[:n]); err != nil {
			return false
		}
		bytes = bytes[n:]
	}
	return true
}
