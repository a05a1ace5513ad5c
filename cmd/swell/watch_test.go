// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/exectest"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

// terminal is what a watcher wrote, and fails when it is told to.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
	gone bool
	size [2]int
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return 0, io.ErrClosedPipe
	}
	return s.text.Write(p)
}

// shows waits until the newest picture has a text.
func (s *terminal) shows(t *testing.T, text string) {
	t.Helper()
	for range 300 {
		s.mu.Lock()
		all := s.text.String()
		s.mu.Unlock()
		if i := strings.LastIndex(all, screenHome); i >= 0 && strings.Contains(all[i:], text) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%q is not shown; all that was: %q", text, s.text.String())
}

// TestWatch: the picture follows the daemon, also after it was away, and the terminal's
// size; Ctrl-C and a terminal that goes end it without an error.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	s, err := store.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(path config.UnitPath, event string) {
		u := &rollout.Unit{Path: path, Rollout: &rollout.Rollout{Status: rollout.Progressing, StartedAt: time.Now(), Spec: config.Rollout{Waves: []config.Wave{{Name: "canary"}}}},
			Targets: map[config.TargetName]*rollout.Target{"dev/a": {Wanted: "d1"}}}
		row, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Update(context.Background(), func(tx *store.Tx) error {
			return errors.Join(tx.PutUnit(path, row), tx.AddHistory([]store.Event{{Time: time.Now(), Unit: path, Kind: event}}))
		}); err != nil {
			t.Fatal(err)
		}
	}
	put("shop/cart", "started")
	file := filepath.Join(dir, "daemon.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: %s}, state: %s}\n", dir, state), 0o600); err != nil {
		t.Fatal(err)
	}
	settings, err := readDaemonConfig(configPath{in: ofProcess(), name: file})
	if err != nil {
		t.Fatal(err)
	}
	var server *serve.Server
	listen := func() {
		if server, err = serve.Listen(serve.Options{Store: s, API: settings.API, Wake: func() {}, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
	}
	listen()
	out := &terminal{size: [2]int{80, 24}}
	begin := func() (end func(), over chan error) {
		ctx, cancel := context.WithCancel(t.Context())
		over = make(chan error, 1)
		w := &watcher{out: out, size: func() (int, int, error) {
			out.mu.Lock()
			defer out.mu.Unlock()
			return out.size[0], out.size[1], nil
		}}
		go func() { over <- w.run(ctx, configPath{in: ofProcess(), name: file}) }()
		return cancel, over
	}
	end, over := begin()
	out.shows(t, "shop/cart progressing 1/1 canary  0/1  since 0s")
	put("shop/web", "began")
	out.shows(t, "shop/web began")
	out.shows(t, "2 rollouts under way")
	out.mu.Lock()
	out.size = [2]int{20, 5}
	out.mu.Unlock()
	out.shows(t, "2 rollou…")
	out.mu.Lock()
	out.size = [2]int{80, 24}
	out.mu.Unlock()

	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	out.shows(t, "the daemon does not answer since ")
	put("shop/search", "meanwhile")
	listen()
	out.shows(t, "3 rollouts under way")
	out.shows(t, "shop/search meanwhile")
	end()
	if err := <-over; err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if text := out.text.String(); !strings.HasPrefix(text, screenOpen) || !strings.HasSuffix(text, screenClose) {
		t.Errorf("the terminal is not as it was: %q", text)
	}

	end, over = begin()
	defer end()
	out.mu.Lock()
	out.gone = true
	out.mu.Unlock()
	if err := <-over; err != nil {
		t.Errorf("the terminal is gone: %v", err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestWatchOfAnothersDaemon: who may not reach the socket is told so, and does not wait for
// a daemon that is there. As root it is another user's process that asks.
func TestWatchOfAnothersDaemon(t *testing.T) {
	dir, err := os.MkdirTemp("", "swell") // others may pass it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	closed := filepath.Join(dir, "closed")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(closed, 0)); err != nil {
		t.Fatal(err)
	}
	file, self := filepath.Join(dir, "daemon.yaml"), filepath.Join(dir, "swell")
	text := fmt.Sprintf("apiVersion: swell.sh/v1\nkind: Daemon\nmetadata: {name: x}\nspec: {repository: {url: %s}, state: %s, api: {socket: %s/swell.sock}}\n", dir, dir, closed)
	program, err := os.ReadFile(os.Args[0])
	if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o644), exectest.WriteProgram(self, program)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"events", "-f"}, {"describe", "x"}, {"plan"}, {"watch"}} {
		cmd := exec.CommandContext(t.Context(), self, append(args, "-c", file)...)
		cmd.Dir, cmd.Env = "/", append(os.Environ(), asProgram+"=1")
		if os.Getuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "permission denied: the daemon's own user, root and spec.api.operators may") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if os.Getuid() != 0 { // root passes every folder
		w := &watcher{is: picture{unknown: true}, out: io.Discard, size: func() (int, int, error) { return 80, 24, nil }}
		if err := w.run(ctx, configPath{in: ofProcess(), name: file}); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("watch: %v", err)
		}
	}
}

// TestWaitsFor: a connection whose time is over is taken up without a word, and whoever is
// refused is told why.
func TestWaitsFor(t *testing.T) {
	full := &serve.Error{}
	full.Status, full.Detail = 503, "64 clients watch already"
	for want, err := range map[string]error{
		"":                                       fmt.Errorf("swell.sock: %w", io.EOF),
		"64 clients watch already; trying again": fmt.Errorf("x: %w", full),
		"the daemon does not answer; waiting for it": serve.ErrNobody,
	} {
		if got := waitsFor(err); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}
