// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// connect opens a connection, and returns it with the answer.
func connect(t *testing.T, l net.Listener) (conn net.Conn, status int, body string) {
	t.Helper()
	conn, err := net.Dial(l.Addr().Network(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return conn, answer.StatusCode, string(text)
}

// Whoever keeps many connections is told that it has too many, and leaves room to others.
func TestConnectionsAreBounded(t *testing.T) {
	inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	caller := make(chan string, 1)
	who := func(net.Addr) (string, int) { return <-caller, 2 }
	l := Bound(inner, Bounds{All: 3, Name: "test", Log: slog.New(slog.DiscardHandler), Caller: who})
	closed := make(chan struct{}, 10)
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	server.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- struct{}{}
		}
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	come := func(who string, status int, text string) net.Conn {
		t.Helper()
		caller <- who
		conn, got, body := connect(t, inner)
		if got != status || !strings.Contains(body, text) {
			t.Errorf("%s: %d %s, want %d %q", who, got, body, status, text)
		}
		return conn
	}
	first := come("ann", 200, "")
	come("ann", 200, "")
	come("ann", 429, `"detail":"ann has 2 connections to test, and may have no more: close some"`)
	come("bob", 200, "")
	come("cid", 503, `"detail":"test has 3 connections, and takes no more: try again later"`)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	<-closed
	come("cid", 200, "")
}

func TestByAddress(t *testing.T) {
	caller := ByAddress(7)
	for address, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1",
		"[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[fe80::1%lo]:80": "fe80::/64",
	} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if got, most := caller(addr); got != want || most != 7 {
			t.Errorf("%s: %s, %d", address, got, most)
		}
	}
}

// TestRefusedAfterItAsked: who is refused gets to ask before the answer comes. Go's client takes one that
// is there earlier for nobody's, and says nothing of it.
func TestRefusedAfterItAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		l := Bound(nil, Bounds{All: 1, Name: "test"}).(*listener)
		l.refuse(ours, http.StatusTooManyRequests, "too many")
		if _, err := io.WriteString(theirs, "G"); err != nil {
			t.Fatalf("nobody reads what is asked: %v", err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(theirs), nil)
		if err != nil || answer.StatusCode != http.StatusTooManyRequests {
			t.Errorf("got %v, %v", answer, err)
		}
		_ = theirs.Close()
		synctest.Wait()
	})
}
