// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/swell-sh/swell/sync/listen"
)

// listening is an HTTP server at work.
type listening struct {
	server *http.Server
	over   chan struct{} // closed when it is over
}

// connections are how many a server has at a time, in all and of each address.
type connections struct{ all, each int }

var (
	// webConnections: a proxy in front of swell is one address, and a forge sends as many webhooks
	// as there are pushes. An address alone leaves half to others. Each takes some 20 KiB; bodies
	// have a bound of their own, hookRoom.
	webConnections = connections{1024, 512}
	// healthConnections are far more than kubelets and load balancers keep, of which each has one
	// or two.
	healthConnections = connections{64, 16}
)

// serveHTTP has a server answer at a listener, with bounds that all servers have. name is that in
// the log.
func serveHTTP(listener net.Listener, server *http.Server, most connections, name string, log *slog.Logger) *listening {
	server.IdleTimeout, server.MaxHeaderBytes = time.Minute, 16<<10
	l := &listening{server, make(chan struct{})}
	bounded := listen.Bound(listener, listen.Bounds{All: most.all, Caller: listen.ByAddress(most.each), Name: name, Log: log})
	go func() {
		defer close(l.over)
		if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			log.Error(name, "err", err)
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
