// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	gosync "sync"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
)

// pulse answers whether the daemon is well, to whoever asks. The answers name no unit, no
// cluster and no repository.
type pulse struct {
	log *slog.Logger
	now func() time.Time

	address string
	server  *listening // nil: nobody is answered

	mu     gosync.Mutex
	due    time.Time     // of the next pass; zero: none is
	commit config.Commit // of the last pass
}

const (
	// passPatience is how long a pass may take, and how late it may begin. The first render
	// of the largest monorepos takes a minute or two.
	passPatience = 15 * time.Minute
	// answerSoon is how long a question, and its answer, may take.
	answerSoon = 5 * time.Second
)

func newPulse(log *slog.Logger) *pulse { return &pulse{log: log, now: time.Now, due: time.Now()} }

// beat takes note of a pass.
func (p *pulse) beat(r sync.Record, _ *rollout.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due, p.commit = r.Next, r.Commit
}

// listen has questions answered at an address, and at no other; at none where it is empty.
func (p *pulse) listen(address string) error {
	if address == p.address {
		return nil
	}
	var listener net.Listener
	if address != "" {
		var err error
		if listener, err = net.Listen("tcp", address); err != nil {
			return fmt.Errorf("spec.health.listen: %w", err)
		}
	}
	if err := p.close(); err != nil {
		p.log.Error("close", "err", err)
	}
	p.address = address
	if listener == nil {
		return nil
	}
	p.server = serveHTTP(listener, &http.Server{Handler: p.handler(), ReadTimeout: answerSoon, WriteTimeout: answerSoon,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn)}, healthConnections, "health", p.log)
	return nil
}

// close answers nobody any more.
func (p *pulse) close() error {
	err := p.server.close()
	p.server, p.address = nil, ""
	return err
}

func (p *pulse) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", answers(p.healthy))
	mux.Handle("GET /readyz", answers(p.ready))
	return mux
}

// answers answers ok, or with what is wrong.
func answers(wrong func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		text := wrong()
		if text == "" {
			text = "ok"
		} else {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, text+"\n")
	})
}

// healthy says why the daemon does not get on: a pass does not end, or none begins.
func (p *pulse) healthy() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if late := p.now().Sub(p.due); !p.due.IsZero() && late > passPatience {
		return fmt.Sprintf("no pass has ended for %s: swell status and the log say what it waits for", late.Round(time.Second))
	}
	return ""
}

// ready says why the daemon does not do its work yet.
func (p *pulse) ready() string {
	if text := p.healthy(); text != "" {
		return text
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.commit == "" {
		return "no commit is known yet: swell status and the log say why"
	}
	return ""
}
