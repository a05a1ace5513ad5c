// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/smallfile"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
)

// web answers forges, which tell of pushes and pull requests, and people, who look at
// previews.
type web struct {
	settings config.Web
	branch   string // the one that is followed; empty: any may be
	pushed   func() // called when it was pushed to
	troubled func() // called when webhooks are refused, now and then
	previews *preview.Previewer
	log      *slog.Logger

	server *listening          // nil: nobody is answered
	room   *semaphore.Weighted // in bytes, for webhooks that are read at a time

	mu      sync.Mutex
	refused string    // why the last webhook was not taken; empty: it was
	told    time.Time // when that was logged
}

const (
	// maxHook is what a webhook may have, in bytes. One with more is that of a huge push; the
	// next poll finds it. hookRoom is for all that are read at a time: what has not come
	// takes no room.
	maxHook  = 4 << 20
	hookRoom = 64 << 20
	hookTime = 10 * time.Second // for all of it to come
	// refusedEvery is how often it is logged that webhooks are not taken: anybody may send
	// some.
	refusedEvery = time.Minute
)

// listen begins to answer. Nothing does where no address is configured.
func (w *web) listen() error {
	if w.settings.Listen == "" {
		return nil
	}
	listener, err := net.Listen("tcp", w.settings.Listen)
	if err != nil {
		return fmt.Errorf("spec.web.listen: %w", err)
	}
	w.room = semaphore.NewWeighted(hookRoom)
	w.server = serveHTTP(listener, &http.Server{Handler: w.handler(), ReadHeaderTimeout: answerSoon, ReadTimeout: hookTime, WriteTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelDebug)}, webConnections, "web", w.log) // what strangers send is no news
	return nil
}

// close answers nobody any more.
func (w *web) close() error { return w.server.close() }

func (w *web) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hook", w.hook)
	if w.previews != nil {
		mux.Handle("GET /previews/{token}", w.previews)
	}
	return mux
}

// hook takes a webhook. It only wakes.
func (w *web) hook(to http.ResponseWriter, r *http.Request) {
	event, status, err := w.read(to, r)
	if err == nil || status == http.StatusServiceUnavailable || forge.IsHook(r.Header) { // anybody else is no forge that is set up wrongly
		w.note(status, err)
	}
	if err != nil {
		text := err.Error()
		switch status {
		case http.StatusTooManyRequests:
			to.Header().Set("Retry-After", "10")
		case http.StatusServiceUnavailable: // the reason names a file
			text = "webhooks are not taken: the daemon's log says why"
		}
		http.Error(to, text, status)
		return
	}
	if event.Push && (w.branch == "" || event.Branch == w.branch) {
		w.pushed()
	}
	if event.Pull != 0 && w.previews != nil {
		w.previews.Wake(event.Pull)
	}
	to.WriteHeader(status)
}

// read reads a webhook. The status is what it is answered with.
func (w *web) read(to http.ResponseWriter, r *http.Request) (forge.Event, int, error) {
	secret, err := w.secret()
	if err != nil {
		return forge.Event{}, http.StatusServiceUnavailable, err
	}
	body := &roomy{from: http.MaxBytesReader(to, r.Body, maxHook), room: w.room}
	defer body.leave()
	content, err := io.ReadAll(body)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return forge.Event{}, http.StatusRequestEntityTooLarge, fmt.Errorf("more than %d MiB", maxHook>>20)
	case errors.Is(err, errNoRoom):
		return forge.Event{}, http.StatusTooManyRequests, err
	case err != nil:
		return forge.Event{}, http.StatusBadRequest, errors.New("the body did not come")
	}
	event, err := forge.ReadHook(r.Header, content, secret)
	switch {
	case errors.Is(err, forge.ErrNotProved):
		return event, http.StatusUnauthorized, err
	case err != nil:
		return event, http.StatusBadRequest, err
	}
	return event, http.StatusNoContent, nil
}

// errNoRoom means that too much is read at a time.
var errNoRoom = errors.New("too many webhooks at a time")

// roomy reads while there is room.
type roomy struct {
	from  io.Reader
	room  *semaphore.Weighted
	taken int64
}

func (b *roomy) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if !b.room.TryAcquire(int64(n)) {
		return 0, errNoRoom
	}
	b.taken += int64(n)
	return n, err
}

func (b *roomy) leave() { b.room.Release(b.taken) }

// note keeps in mind whether the last webhook was taken. That one was not is logged now and
// then: the forge may have another secret.
func (w *web) note(status int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.refused = ""
		return
	}
	w.refused = fmt.Sprintf("%d %s: %v", status, http.StatusText(status), err)
	if now := time.Now(); now.Sub(w.told) >= refusedEvery {
		w.told = now
		w.log.Warn("webhook refused", "status", status, "err", err)
		w.troubled()
	}
}

// trouble says why webhooks are not taken, where they should be; empty: they are.
func (w *web) trouble() string {
	if w.server == nil || w.settings.HookSecretFile == "" { // nobody wants any
		return ""
	}
	if _, err := w.secret(); err != nil {
		return err.Error()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused == "" {
		return ""
	}
	return "the last one was refused: " + w.refused
}

// secret is what forges prove their webhooks by.
func (w *web) secret() ([]byte, error) {
	if w.settings.HookSecretFile == "" {
		return nil, errors.New("spec.web.hookSecretFile: missing: nobody can prove a webhook")
	}
	secret, err := smallfile.Read(w.settings.HookSecretFile)
	if err != nil {
		return nil, fmt.Errorf("spec.web.hookSecretFile: %w", err)
	}
	if secret = bytes.TrimSpace(secret); len(secret) == 0 {
		return nil, fmt.Errorf("spec.web.hookSecretFile: %s is empty", w.settings.HookSecretFile)
	}
	return secret, nil
}

// pagesURL is where pages of previews are shown; empty: nowhere.
func pagesURL(settings config.Web) string {
	if settings.Listen == "" || settings.URL == "" {
		return ""
	}
	return strings.TrimSuffix(settings.URL, "/") + "/previews/"
}
