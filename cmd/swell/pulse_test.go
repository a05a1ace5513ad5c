// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/store"
)

// freeAddress is an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestStateError: why a state cannot be opened is told with a word on what to do.
func TestStateError(t *testing.T) {
	for cause, want := range map[error]string{
		store.ErrLocked: "one daemon follows one monorepo",
		syscall.EACCES:  "a folder that the user who runs swell can write",
		syscall.EROFS:   "a folder that the user who runs swell can write",
		syscall.EIO:     "",
	} {
		err := stateError(&fs.PathError{Op: "open", Path: "/var/lib/swell/state.lock", Err: cause})
		if got := hintOf(err); !strings.Contains(got, want) || want == "" && got != "" || !strings.Contains(err.Error(), "/var/lib/swell/state.lock") {
			t.Errorf("%v: %v, hint %q", cause, err, got)
		}
	}
}

// TestUnreadableState: whoever may not read the state is told the way.
func TestUnreadableState(t *testing.T) {
	for cause, want := range map[error]string{
		syscall.EACCES: "its own user and root may: sudo -u",
		syscall.ENOENT: "swell run creates it",
		syscall.EIO:    "",
	} {
		err := unreadable(&fs.PathError{Op: "open", Path: "/var/lib/swell/state.db", Err: cause}, "/var/lib/swell")
		if got := hintOf(err); !strings.Contains(got, want) || want == "" && got != "" || !strings.Contains(err.Error(), "/var/lib/swell") {
			t.Errorf("%v: %v, hint %q", cause, err, got)
		}
	}
}

// TestPulse: a daemon is ready when it knows a commit, and not healthy when no pass ends.
func TestPulse(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newPulse(slog.New(slog.DiscardHandler))
	p.now, p.due = func() time.Time { return now }, now
	address := freeAddress(t)
	if err := p.listen(address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close() })
	want := func(path string, code int, text string) {
		t.Helper()
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != code || strings.TrimSpace(string(body)) != text {
			t.Errorf("%s: %d %q %v, want %d %q", path, answer.StatusCode, body, err, code, text)
		}
	}
	want("/healthz", 200, "ok")
	want("/readyz", 503, "no commit is known yet: swell status and the log say why")
	want("/v1/status", 404, "404 page not found")
	p.beat(sync.Record{Next: now.Add(time.Minute)}, nil)
	want("/readyz", 503, "no commit is known yet: swell status and the log say why")
	p.beat(sync.Record{Commit: "abc", Next: now.Add(time.Minute)}, nil)
	want("/readyz", 200, "ok")
	now = now.Add(passPatience + time.Minute)
	want("/healthz", 200, "ok")
	now = now.Add(time.Second)
	want("/healthz", 503, "no pass has ended for 15m1s: swell status and the log say what it waits for")
	want("/readyz", 503, "no pass has ended for 15m1s: swell status and the log say what it waits for")
	p.beat(sync.Record{Commit: "abc"}, nil) // nothing is due
	now = now.Add(24 * time.Hour)
	want("/healthz", 200, "ok")

	// The same address again is the same listener; another one that cannot be had changes
	// nothing.
	if err := p.listen(address); err != nil {
		t.Error(err)
	}
	if err := p.listen("192.0.2.1:8080"); err == nil || !strings.Contains(err.Error(), "spec.health.listen: listen tcp 192.0.2.1:8080") {
		t.Errorf("an address of another machine: %v", err)
	}
	want("/readyz", 200, "ok")
	next := freeAddress(t)
	if err := p.listen(next); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it still answers at the old address")
	}
	address = next
	want("/readyz", 200, "ok")
	if err := p.listen(""); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("it still answers")
	}
}
