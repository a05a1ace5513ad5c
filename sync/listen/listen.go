// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package listen bounds how many connections a listener has at a time, in all and of each
// caller. Who comes too often is told so over HTTP at once, and takes no place of others. It
// reads no request, and does not know the server.
package listen

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Bounds are how many connections there may be. All fields are required.
type Bounds struct {
	All int
	// Caller says whom a connection is of, by its other end, and how many that one may have.
	Caller func(address net.Addr) (caller string, most int)
	// Name is that of the listener in the log.
	Name string
	Log  *slog.Logger
}

// ByAddress counts callers of TCP by their address; those of IPv6 by the network of 64 bits,
// all of which one machine mostly has.
func ByAddress(most int) func(net.Addr) (string, int) {
	return func(address net.Addr) (string, int) {
		parsed, err := netip.ParseAddrPort(address.String())
		if err != nil {
			return address.String(), most
		}
		ip := parsed.Addr().Unmap()
		if ip.Is4() {
			return ip.String(), most
		}
		network, _ := ip.WithZone("").Prefix(64) // it has more bits
		return network.String(), most
	}
}

const (
	// refusalsAtOnce is how many callers are told at a time that they come too often; others are
	// only closed. refusalPatience is for one to read it.
	refusalsAtOnce  = 16
	refusalPatience = time.Second
	// mostUnread is read of a request that is refused, so that its sender gets to read the answer.
	mostUnread = 64 << 10
	// reportEvery is how often refusals are logged: anybody may bring them about.
	reportEvery = time.Minute
)

// listener gives out connections while there are few.
type listener struct {
	net.Listener
	bounds   Bounds
	refusals chan struct{} // a token for each caller that is being told

	mu        sync.Mutex
	all       int
	perCaller map[string]int // those of none are not there
	reported  time.Time      // when a refusal was logged
}

// Bound is a listener that has at most so many connections at a time.
func Bound(l net.Listener, bounds Bounds) net.Listener {
	return &listener{Listener: l, bounds: bounds, refusals: make(chan struct{}, refusalsAtOnce), perCaller: map[string]int{}}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		caller, most := l.bounds.Caller(conn.RemoteAddr())
		status, why := l.enter(caller, most)
		if why == "" {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.leave(caller) })}, nil
		}
		l.refuse(conn, status, why)
	}
}

// enter counts a connection, or says why there is no place for it.
func (l *listener) enter(caller string, most int) (status int, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.perCaller[caller] >= most:
		const text = "%s has %d connections to %s, and may have no more: close some"
		status, why = http.StatusTooManyRequests, fmt.Sprintf(text, caller, most, l.bounds.Name)
	case l.all >= l.bounds.All:
		const text = "%s has %d connections, and takes no more: try again later"
		status, why = http.StatusServiceUnavailable, fmt.Sprintf(text, l.bounds.Name, l.bounds.All)
	default:
		l.all++
		l.perCaller[caller]++
		return 0, ""
	}
	if now := time.Now(); now.Sub(l.reported) >= reportEvery {
		l.reported = now
		l.bounds.Log.Warn("connection refused", "listener", l.bounds.Name, "err", why)
	}
	return status, why
}

func (l *listener) leave(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.perCaller[caller]--; l.perCaller[caller] == 0 {
		delete(l.perCaller, caller)
	}
}

// refuse tells a caller why nobody answers, and holds up nobody else for it.
func (l *listener) refuse(conn net.Conn, status int, why string) {
	select {
	case l.refusals <- struct{}{}:
	default:
		_ = conn.Close() // too many are being told
		return
	}
	go func() {
		defer func() { <-l.refusals }()
		defer func() { _ = conn.Close() }() // nothing more is said
		// A client of Go takes an answer that is there before it has asked for nobody's.
		_ = conn.SetReadDeadline(time.Now().Add(refusalPatience / 2))
		_, _ = conn.Read(make([]byte, 1))
		_ = conn.SetDeadline(time.Now().Add(refusalPatience))
		if _, err := conn.Write(refusal(status, why)); err != nil {
			return
		}
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the other end reads to here
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, mostUnread)) // or the answer is lost with it
	}()
}

// refusal is an answer of HTTP with a problem as RFC 9457 has it.
func refusal(status int, why string) []byte {
	body, err := json.Marshal(map[string]any{"status": status, "title": http.StatusText(status), "detail": why})
	if err != nil {
		panic(err) // texts and numbers encode
	}
	const head = "HTTP/1.1 %d %s\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\n" +
		"Retry-After: 10\r\nConnection: close\r\n\r\n%s"
	return fmt.Appendf(nil, head, status, http.StatusText(status), len(body), body)
}

// counted is a connection that has a place until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
