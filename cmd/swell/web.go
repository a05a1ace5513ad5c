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
	"os"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/preview"
)

// web answers forges, which tell of pushes and pull requests, and people, who look at
// previews.
type web struct {
	settings config.Web
	branch   string // the one that is followed; empty: any may be
	pushed   func() // called when it was pushed to
	previews *preview.Previewer
	log      *slog.Logger
	slots    chan struct{} // of webhooks that are read at a time

	server *listening // nil: nobody is answered
}

const (
	// maxHook is what a webhook may have, in bytes. One with more is that of a huge push; the
	// next poll finds it.
	maxHook   = 4 << 20
	hookSlots = 8
	hookTime  = 10 * time.Second // for all of it to come
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
	w.slots = make(chan struct{}, hookSlots)
	w.server = serveHTTP(listener, &http.Server{Handler: w.handler(), ReadHeaderTimeout: answerSoon, ReadTimeout: hookTime, WriteTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelDebug)}, "web", w.log) // what strangers send is no news
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
	secret, err := w.secret()
	if err != nil {
		w.log.Error("webhook", "err", err)
		http.Error(to, "webhooks are not taken: the daemon's log says why", http.StatusServiceUnavailable)
		return
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	default:
		to.Header().Set("Retry-After", "10")
		http.Error(to, "too many webhooks at a time", http.StatusTooManyRequests)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(to, r.Body, maxHook))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		http.Error(to, fmt.Sprintf("more than %d MiB", maxHook>>20), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(to, "the body did not come", http.StatusBadRequest)
		return
	}
	event, err := forge.ReadHook(r.Header, body, secret)
	switch {
	case errors.Is(err, forge.ErrNotProved):
		http.Error(to, err.Error(), http.StatusUnauthorized)
		return
	case err != nil:
		http.Error(to, err.Error(), http.StatusBadRequest)
		return
	}
	if event.Push && (w.branch == "" || event.Branch == w.branch) {
		w.pushed()
	}
	if event.Pull != 0 && w.previews != nil {
		w.previews.Wake(event.Pull)
	}
	to.WriteHeader(http.StatusNoContent)
}

// trouble says why no webhook is taken, where they should be.
func (w *web) trouble() error {
	if w.server == nil || w.settings.HookSecretFile == "" { // nobody wants any
		return nil
	}
	_, err := w.secret()
	return err
}

// secret is what forges prove their webhooks by.
func (w *web) secret() ([]byte, error) {
	if w.settings.HookSecretFile == "" {
		return nil, errors.New("spec.web.hookSecretFile: missing: nobody can prove a webhook")
	}
	secret, err := os.ReadFile(w.settings.HookSecretFile)
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
