// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swell-sh/swell/config"
)

// newWeb listens at an address of its own. pushes counts what it was told.
func newWeb(t *testing.T) (w *web, at string, pushes *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(hookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pushes = &atomic.Int64{}
	w = &web{settings: config.Web{Listen: address, HookSecretFile: secret}, branch: "main", pushed: func() { pushes.Add(1) }, troubled: func() {}, log: slog.New(slog.DiscardHandler)}
	if err := w.listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w, "http://" + address, pushes
}

// sendHook sends a webhook that is signed with a secret.
func sendHook(ctx context.Context, at, secret string, body io.Reader, signed []byte) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/hook", body)
	if err != nil {
		return 0, err
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write(signed)
	request.Header.Set("X-GitHub-Event", "push")
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum.Sum(nil)))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

func TestWebhooks(t *testing.T) {
	w, at, pushes := newWeb(t)
	send := func(secret, body string) int {
		t.Helper()
		code, err := sendHook(t.Context(), at, secret, strings.NewReader(body), []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	for _, test := range []struct {
		name, secret, body string
		code               int
		pushes             int64
	}{
		{"a push", hookSecret, `{"ref":"refs/heads/main"}`, http.StatusNoContent, 1},
		{"replayed", hookSecret, `{"ref":"refs/heads/main"}`, http.StatusNoContent, 1}, // it looks once more, which is no harm
		{"another branch", hookSecret, `{"ref":"refs/heads/other"}`, http.StatusNoContent, 0},
		{"a tag", hookSecret, `{"ref":"refs/tags/main"}`, http.StatusNoContent, 0},
		{"another secret", "guess", `{"ref":"refs/heads/main"}`, http.StatusUnauthorized, 0},
		{"no JSON", hookSecret, `ref=main`, http.StatusBadRequest, 0},
		{"empty", hookSecret, ``, http.StatusBadRequest, 0},
		{"50 MiB", hookSecret, strings.Repeat("x", 50<<20), http.StatusRequestEntityTooLarge, 0},
	} {
		before := pushes.Load()
		if code := send(test.secret, test.body); code != test.code || pushes.Load()-before != test.pushes {
			t.Errorf("%s: %d, %d pushes; want %d, %d", test.name, code, pushes.Load()-before, test.code, test.pushes)
		}
	}
	if got := w.trouble(); !strings.HasPrefix(got, "the last one was refused: 413 ") {
		t.Errorf("trouble %q", got)
	}
	if send(hookSecret, "{}"); w.trouble() != "" {
		t.Errorf("trouble %q", w.trouble())
	}
	stranger, err := http.Post(at+"/hook", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _ = stranger.Body.Close(); stranger.StatusCode != http.StatusUnauthorized || w.trouble() != "" {
		t.Errorf("a stranger: %d, trouble %q", stranger.StatusCode, w.trouble())
	}
	for path, code := range map[string]int{"/": 404, "/hook": 405, "/previews/x": 404} {
		answer, err := http.Get(at + path)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != code {
			t.Errorf("GET %s: %d", path, answer.StatusCode)
		}
		_ = answer.Body.Close()
	}
}

// drip is a body that never ends, a byte now and then.
type drip struct{ ctx context.Context }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(50 * time.Millisecond):
		p[0] = 'x'
		return 1, nil
	}
}

// Many at a time, and bodies that do not come, hold up nobody; where what came takes all the
// room, the forge is told to come again.
func TestWebhookFlood(t *testing.T) {
	w, at, pushes := newWeb(t)
	body := []byte(`{"ref":"refs/heads/main"}`)
	push := func() int {
		t.Helper()
		code, err := sendHook(t.Context(), at, hookSecret, bytes.NewReader(body), body)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var slow gosync.WaitGroup
	for range 200 {
		slow.Go(func() { _, _ = sendHook(ctx, at, hookSecret, drip{ctx}, nil) })
	}
	if code := push(); code != http.StatusNoContent {
		t.Fatalf("beside 200 slow ones: %d", code)
	}
	const large = 256 << 10
	slow.Go(func() {
		_, _ = sendHook(ctx, at, hookSecret, io.MultiReader(strings.NewReader(strings.Repeat("x", large)), drip{ctx}), nil)
	})
	waitForRoom(t, "a large body takes none", func() bool { return !hasRoom(w, hookRoom-large/2) })
	cancel()
	slow.Wait()
	waitForRoom(t, "it is not given back", func() bool { return hasRoom(w, hookRoom) })

	if !w.room.TryAcquire(hookRoom - int64(len(body)) + 1) {
		t.Fatal("somebody else takes room")
	}
	if code := push(); code != http.StatusTooManyRequests {
		t.Errorf("without room: %d", code)
	}
	w.room.Release(hookRoom - int64(len(body)) + 1)
	before := pushes.Load()
	var flood gosync.WaitGroup
	var taken atomic.Int64
	for range 200 {
		flood.Go(func() {
			code, err := sendHook(t.Context(), at, hookSecret, bytes.NewReader(body), body)
			switch {
			case err != nil:
				t.Error(err)
			case code == http.StatusNoContent:
				taken.Add(1)
			case code != http.StatusTooManyRequests:
				t.Error(fmt.Sprint(code))
			}
		})
	}
	flood.Wait()
	if taken.Load() == 0 || pushes.Load()-before != taken.Load() {
		t.Errorf("%d taken, %d pushes", taken.Load(), pushes.Load()-before)
	}
	waitForRoom(t, "the flood did not give it back", func() bool { return hasRoom(w, hookRoom) })
}

// hasRoom tells whether so many bytes of webhooks might be read now.
func hasRoom(w *web, bytes int64) bool {
	if !w.room.TryAcquire(bytes) {
		return false
	}
	w.room.Release(bytes)
	return true
}

// waitForRoom waits until the room is as it should be.
func waitForRoom(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("room for webhooks: %s", otherwise)
		}
	}
}

// Whoever keeps connections to a listener of the daemon leaves room to others, and is told.
func TestListenersAreBounded(t *testing.T) {
	for name, most := range map[string]connections{"web": webConnections, "health": healthConnections} {
		if most.each < 1 || most.each*2 > most.all {
			t.Errorf("%s: one address has %d of %d connections", name, most.each, most.all)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	server := serveHTTP(listener, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-held
	})}, connections{all: 2, each: 1}, "health", slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		close(held)
		_ = server.close() // nothing is under way
	})
	first, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Body.Close()
	second, err := http.Get("http://" + listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Body.Close()
	text, err := io.ReadAll(second.Body)
	const want = "127.0.0.1 has 1 connections to health, and may have no more: close some"
	if err != nil || second.StatusCode != 429 || !strings.Contains(string(text), want) {
		t.Errorf("%d %s %v, want %q", second.StatusCode, text, err, want)
	}
}
