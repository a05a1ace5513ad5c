// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/singleflight"
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
	asked singleflight.Group
}

// probe asks, after a request that nobody answered, whether anybody answers
// at all. A refusal will do. Of several that want to know, one asks, and the
// others wait for what comes of it.
func (c *connection) probe(ctx context.Context) (answered bool) {
	answer, _, _ := c.breaker.asked.Do("", func() (any, error) {
		// If it is open, who asked just before has had no answer.
		return !c.breaker.open.Load() && c.probeAlone(ctx), nil
	})
	return answer.(bool)
}

func (c *connection) probeAlone(ctx context.Context) (answered bool) {
	req := &request{op: "probe", object: "the cluster", method: http.MethodGet, path: "/version"}
	own := &call{Cluster: &Cluster{connection: c}, probing: true} // it is about the cluster, not about a user
	_, err := own.attempt(ctx, req, min(c.options.Timeout, identityTimeout))
	if err != nil && err.silent() && ctx.Err() == nil {
		c.breaker.open.Store(true)
	}
	return err == nil || !err.silent()
}

// answered takes in what an attempt said of the cluster: an answer of an API
// server, whatever it is, closes the breaker. After none, another cluster may answer.
func (c *connection) answered(err *Error) {
	switch {
	case err == nil || err.Code != 0 && !err.silent():
		c.breaker.open.Store(false)
	case err.silent():
		c.identity.doubt()
	}
}

// unasked is the error for a request that is not sent because of the breaker.
func unasked(req *request) *Error {
	return &Error{
		Op: req.op, Object: req.object, class: ErrUnreachable, unsent: true,
		Message: "not tried: the cluster does not answer",
	}
}
