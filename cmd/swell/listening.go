// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// listening is an HTTP server at work.
type listening struct {
	server *http.Server
	over   chan struct{} // closed when it is over
}

// serveHTTP has a server answer at a listener, with bounds that all servers have. what is its
// name in the log.
func serveHTTP(listener net.Listener, server *http.Server, what string, log *slog.Logger) *listening {
	server.IdleTimeout, server.MaxHeaderBytes = time.Minute, 16<<10
	l := &listening{server, make(chan struct{})}
	go func() {
		defer close(l.over)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(what, "err", err)
		}
	}()
	return l
}

// close answers nobody any more. Nil is a server that never was.
func (l *listening) close() error {
	if l == nil {
		return nil
	}
	err := l.server.Close()
	<-l.over
	return err
}
