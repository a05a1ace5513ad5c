// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
)

// breaker keeps requests from a cluster that does not answer. It is closed to
// begin with, and requests flow. It opens when a request got no answer and
// neither does the question whether anybody is there at all: from then on every
// request, of every call and view, fails without being sent, those that wait
// for their turn too, so that a cluster which swallows packets costs two
// time-outs and not two for each object. Only [Cluster.Identity] is sent while
// it is open; any answer to it closes the breaker.
type breaker struct {
	open  atomic.Bool
	mu    sync.Mutex   // held while somebody asks
	asked atomic.Int64 // how often somebody did
}

// probe asks, after a request that nobody answered, whether anybody answers
// at all. A refusal will do. Of several that want to know, one asks, and the
// others wait for what comes of it.
func (c *connection) probe(ctx context.Context) {
	asked := c.breaker.asked.Load()
	c.breaker.mu.Lock()
	defer c.breaker.mu.Unlock()
	if c.breaker.asked.Load() != asked || c.breaker.open.Load() {
		return
	}
	req := &request{op: "probe", object: "the cluster", method: http.MethodGet, path: "/version"}
	own := &call{Cluster: &Cluster{connection: c}, probing: true} // it is about the cluster, not about a user
	_, err := own.attempt(ctx, req, min(c.options.Timeout, identityTimeout))
	if err != nil && err.silent() && ctx.Err() == nil {
		c.breaker.open.Store(true)
	}
	c.breaker.asked.Add(1)
}

// answered takes in what an attempt said of the cluster: an answer of an API
// server, whatever it is, closes the breaker.
func (c *connection) answered(err *Error) {
	if err == nil || err.Code != 0 && !err.silent() {
		c.breaker.open.Store(false)
	}
}

// unasked is the error for a request that is not sent because of the breaker.
func unasked(req *request) *Error {
	return &Error{
		Op: req.op, Object: req.object, class: ErrUnreachable, unsent: true,
		Message: "not tried: the cluster does not answer",
	}
}
