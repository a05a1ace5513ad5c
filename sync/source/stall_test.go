// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// between passes connections on to a server. at decides, for each piece that the
// server sends, whether it goes on; it may wait until the test is over.
func between(t *testing.T, server string, at func(sent int, over <-chan struct{}) bool) string {
	t.Helper()
	over := make(chan struct{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				up, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer up.Close()
				running.Go(func() { io.Copy(up, conn); up.Close() })
				piece, sent := make([]byte, 16), 0
				for {
					n, err := up.Read(piece)
					if err != nil || !at(sent, over) {
						return
					}
					if _, err := conn.Write(piece[:n]); err != nil {
						return
					}
					sent += n
				}
			})
		}
	})
	t.Cleanup(func() { close(over); listener.Close(); running.Wait() })
	return listener.Addr().String()
}

// TestFetchGivesUpOnSilence: a server that accepts and says nothing, or stops in the
// middle, is given up in a moment, and the next fetch gets what there is.
func TestFetchGivesUpOnSilence(t *testing.T) {
	for _, scheme := range []string{"http", "ssh"} {
		for name, from := range map[string]int{"from the beginning": 0, "in the middle": 100} {
			t.Run(scheme+" "+name, func(t *testing.T) {
				c := newClone(t)
				c.commit("a", strings.Repeat("1", 5000))
				want := c.push()
				addr, auth, path := strings.TrimPrefix(serve(t, c).URL, "http://"), Auth{}, "/origin.git"
				if scheme == "ssh" {
					s := serveSSH(t)
					addr, auth, path = s.addr, s.auth, c.origin
				}
				var well atomic.Bool
				proxy := between(t, addr, func(sent int, over <-chan struct{}) bool {
					if well.Load() || sent < from {
						return true
					}
					<-over
					return false
				})
				if scheme == "ssh" {
					known, err := os.ReadFile(auth.KnownHostsFile)
					if err != nil {
						t.Fatal(err)
					}
					_, old, _ := net.SplitHostPort(addr)
					_, port, _ := net.SplitHostPort(proxy)
					auth.KnownHostsFile = write(t, filepath.Join(t.TempDir(), "known"), strings.Replace(string(known), ":"+old, ":"+port, 1))
				}
				s := follow(t, Config{URL: scheme + "://" + proxy + path, Dir: t.TempDir(), Auth: auth, Stall: 500 * time.Millisecond})
				_, err := s.Fetch(t.Context())
				if !errors.Is(err, errStalled) {
					t.Fatalf("got %v", err)
				}
				checkMessage(t, err, `: fetch: the server sent nothing for 500ms: the connection was given up$`)
				well.Store(true)
				s.cfg.Stall = time.Minute
				if got, err := s.Fetch(t.Context()); err != nil || got != want {
					t.Errorf("got %v, %v", got, err)
				}
			})
		}
	}
}

// TestFetchMayTakeLong: what comes slowly and steadily comes to its end, however
// much longer than a stall that takes.
func TestFetchMayTakeLong(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	want := c.push()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	proxy := between(t, strings.TrimPrefix(serve(t, c).URL, "http://"), func(int, <-chan struct{}) bool { <-ticker.C; return true })
	s := follow(t, Config{URL: "http://" + proxy + "/origin.git", Dir: t.TempDir(), Stall: 5 * time.Second})
	if got, err := s.Fetch(t.Context()); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestFetchGivesUpOnATrickle: a byte now and then is no progress.
func TestFetchGivesUpOnATrickle(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	over := make(chan struct{})
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		io.WriteString(w, "fff0") // the length of a long line
		for {
			select {
			case <-over:
				return true
			case <-r.Context().Done():
				return true
			case <-ticker.C:
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
			}
		}
	})
	defer close(over)
	s := follow(t, Config{URL: srv.url(), Dir: t.TempDir(), Stall: time.Minute, slow: 500 * time.Millisecond})
	_, err := s.Fetch(t.Context())
	if !errors.Is(err, errStalled) {
		t.Fatalf("got %v", err)
	}
	checkMessage(t, err, `: fetch: the server sent \d+ bytes in 500ms: the connection was given up$`)
}

// TestFetchGivesUpOnAPackThatDoesNotCome: a server may prepare a pack for longer than it may send
// next to nothing, but not for ever.
func TestFetchGivesUpOnAPackThatDoesNotCome(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	c.push()
	srv := serve(t, c)
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		io.WriteString(w, "0008NAK\n")
		for ticker := time.NewTicker(20 * time.Millisecond); r.Context().Err() == nil; <-ticker.C {
			io.WriteString(w, "0005\x01") // as uploadpack.keepAlive has it
			w.(http.Flusher).Flush()
		}
		return true
	})
	s := follow(t, Config{URL: srv.url(), Dir: t.TempDir(), Stall: time.Minute, slow: 10 * time.Millisecond, prepare: time.Second})
	began := time.Now()
	_, err := s.Fetch(t.Context())
	checkMessage(t, err, `: fetch: .*the server prepared a pack for 1s and sent nothing of it: the connection was given up$`)
	if took := time.Since(began); took < time.Second {
		t.Errorf("given up after %s", took)
	}
}

// TestHurryEndsAFetchThatDoesNotGetOn, and leaves others alone.
func TestHurryEndsAFetchThatDoesNotGetOn(t *testing.T) {
	c := newClone(t)
	c.commit("a", "1")
	want := c.push()
	srv := serve(t, c)
	var asked atomic.Int32
	srv.intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if asked.Add(1) > 1 {
			return false
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		io.WriteString(w, "fff0")
		for ticker := time.NewTicker(50 * time.Millisecond); r.Context().Err() == nil; <-ticker.C {
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
		}
		return true
	})
	s := follow(t, Config{URL: srv.url(), Dir: t.TempDir()})
	s.Hurry() // nothing is under way
	ended := make(chan error, 1)
	go func() {
		_, err := s.Fetch(t.Context())
		ended <- err
	}()
	var err error
	for waiting := true; waiting; {
		select {
		case err = <-ended:
			waiting = false
		case <-time.After(100 * time.Millisecond):
			s.Hurry()
		}
	}
	checkMessage(t, err, `: fetch: the server sent \d+ bytes in \d+s, and is asked anew: the connection was given up$`)
	if got, err := s.Fetch(t.Context()); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestPaceInAHurry: what gets on is not given up.
func TestPaceInAHurry(t *testing.T) {
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		bytes    int
		after    time.Duration
		prepares bool
		ends     bool
	}{
		"it has just begun":         {0, leastTime - 1, false, false},
		"as much as it takes":       {slowBytes / 2, slowTime / 2, false, false},
		"less":                      {slowBytes/2 - 1, slowTime / 2, false, true},
		"much, and no pack":         {slowBytes, slowTime, true, true},
		"a pack that is prepared":   {0, slowTime - 1, true, false},
		"no pack, but it has begun": {0, leastTime - 1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPace(patience{})
			p.count(c.bytes, begun)
			p.prepares = c.prepares
			if p.hurry(begun.Add(c.after)); (p.stalled != nil) != c.ends {
				t.Errorf("given up: %v", p.stalled)
			}
		})
	}
}

// TestRetryAfter is a number of seconds or a date.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "30": 30 * time.Second, "99999999": maxAfter, "99999999999999999999": 0,
		"Sun, 01 Mar 2026 12:02:00 GMT": 2 * time.Minute, "Sun, 01 Mar 2026 11:00:00 GMT": 0, "Mon, 02 Mar 2026 12:00:00 GMT": maxAfter,
	} {
		if got := afterOf(header, now); got != want {
			t.Errorf("%q: got %s, want %s", header, got, want)
		}
	}
}

// TestPace: what counts as progress.
func TestPace(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := newPace(patience{})
	for _, step := range []struct {
		after time.Duration
		bytes int
		ends  bool
	}{
		{0, 1, false}, {59 * time.Second, 1, false}, {time.Second, slowBytes, false}, // a window that is full
		{time.Second, 0, false}, {58 * time.Second, slowBytes / 2, false}, {time.Second, slowBytes/2 - 1, true},
	} {
		at = at.Add(step.after)
		if err := p.count(step.bytes, at); (err != nil) != step.ends {
			t.Errorf("%s: %v", at.Format(time.TimeOnly), err)
		}
	}
}

// TestOpenBeforeTheRepositoryIsThere: a path that is not there yet is reported by
// each fetch, and followed as soon as it is.
func TestOpenBeforeTheRepositoryIsThere(t *testing.T) {
	c := newClone(t)
	want := c.commit("a", "1")
	c.push()
	path := filepath.Join(t.TempDir(), "later.git")
	s := follow(t, Config{URL: path, Branch: "main", Dir: t.TempDir()})
	for range 2 {
		_, err := s.Fetch(t.Context())
		checkMessage(t, err, `later.git: fetch: stat .*later.git: no such file or directory$`)
	}
	if _, err := s.Resolve("main"); err == nil {
		t.Error("resolved a revision of nothing")
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := s.Fetch(t.Context())
	checkMessage(t, err, `later.git: fetch: .*: not a Git repository$`)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(c.origin, path); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Fetch(t.Context()); err != nil || got != want {
		t.Fatalf("got %v, %v", got, err)
	}
	if got := files(t, s, want); got["a"] != "1" {
		t.Errorf("got %v", got)
	}
}
