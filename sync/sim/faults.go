// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is what goes wrong with one request.
type fault struct {
	name string
	// fits says which calls it can happen to. Nil: any to a cluster.
	fits func(*call) bool
	// served: the cluster does what was asked all the same, and only the answer is
	// another one.
	served bool
	answer func(*http.Request) answer
}

var (
	errRefused = fmt.Errorf("dial tcp 192.0.2.1:6443: connect: %w", syscall.ECONNREFUSED)
	errReset   = fmt.Errorf("read tcp 192.0.2.1:6443: read: %w", syscall.ECONNRESET)
)

func writing(c *call) bool { return c.writes() }
func reading(c *call) bool { return c.method == http.MethodGet }

// faults are all of them but what a cluster does as a whole, see [cluster].
var faults = []fault{
	{name: "refused connection", answer: failing(errRefused)},
	{name: "reset connection", answer: failing(errReset)},
	{name: "reset after the write", fits: writing, served: true, answer: failing(errReset)},
	{name: "black hole"},
	{name: "black hole after the write", fits: writing, served: true},
	{name: "500", answer: refusal(500, "InternalError", "Internal error occurred: something", "")},
	{name: "429", answer: refusal(429, "TooManyRequests", "the server has received too many requests", "1")},
	{name: "429, 20 s", answer: refusal(429, "TooManyRequests", "the server has received too many requests", "20")},
	{name: "409", fits: writing, answer: refusal(409, "Conflict", "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again", "")},
	{name: "410", fits: func(c *call) bool { return c.isWatch() }, answer: refusal(410, "Expired", "too old resource version", "")},
	{name: "504", answer: refusal(504, "Timeout", "Timeout: request did not complete within the allotted timeout", "")},
	{name: "504 after the write", fits: writing, served: true, answer: refusal(504, "Timeout", "Timeout: request did not complete within the allotted timeout", "")},
	{name: "denied by admission", fits: func(c *call) bool { return c.method == http.MethodPatch && c.writes() }, answer: refusal(400, "BadRequest", `admission webhook "sim.example.com" denied the request: by chance`, "")},
	{name: "webhook down", fits: writing, answer: refusal(500, "InternalError", `Internal error occurred: failed calling webhook "x.example.com": failed to call webhook: Post "https://x": context deadline exceeded`, "")},
	{name: "HTML 503", answer: page(503)},
	{name: "403", answer: refusal(403, "Forbidden", `configmaps "x" is forbidden: User "swell" cannot patch resource "configmaps" in API group "" in the namespace "shop"`, "")},
	{name: "no space", fits: writing, answer: refusal(500, "", "etcdserver: mvcc: database space exceeded", "")},
	{name: "no leader", answer: refusal(500, "", "etcdserver: no leader", "")},
	{name: "401", fits: reading, answer: refusal(401, "Unauthorized", "Unauthorized", "")},
}

func failing(err error) func(*http.Request) answer {
	return func(*http.Request) answer { return answer{err: err} }
}

// refusal answers like an API server that refuses a request.
func refusal(code int, reason, message, retryAfter string) func(*http.Request) answer {
	return func(r *http.Request) answer {
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":%d,"reason":%q,"message":%s}`, code, reason, strconv.Quote(message))
		a := respond(r, code, "application/json", body)
		a.response.Header.Set("Audit-Id", "1")
		if retryAfter != "" {
			a.response.Header.Set("Retry-After", retryAfter)
		}
		return a
	}
}

func page(code int) func(*http.Request) answer {
	return func(r *http.Request) answer {
		return respond(r, code, "text/html", "<html><body>Service unavailable</body></html>")
	}
}

func respond(r *http.Request, code int, contentType, body string) answer {
	return answer{response: &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/2.0", ProtoMajor: 2, Request: r,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}}
}

var errGit = errors.New("git: the server answers with status 500")

// let has calls that look the same answered as the state of the world is.
func (w *world) let(group []*call) string {
	text := ""
	for _, c := range group {
		text = w.letOne(c)
	}
	return text
}

func (w *world) letOne(c *call) string {
	if c.cluster == "git" {
		w.gate.take(c)
		if w.git.down {
			c.answer <- answer{err: errGit}
			return "500"
		}
		w.git.head.fetched, w.git.gone = true, false
		w.judge.fetched(c.process, w.git.head)
		c.answer <- answer{text: string(w.git.head.id)}
		return w.git.head.id.Short()
	}
	if c.cluster == checks {
		return w.answerOf(c)
	}
	at := w.clusters[c.cluster]
	switch {
	case at.away == "refuses":
		return w.give(c, failing(errRefused), false, "refused")
	case at.away != "":
		return w.drop(c, false)
	case at.sick == tooBusy && c.method != http.MethodGet:
		return w.give(c, refusal(429, "TooManyRequests", at.sick, "9"), false, "429")
	case at.sick != "" && c.method != http.MethodGet && (at.sick != noLeases || c.isLease()):
		return w.give(c, refusal(500, "", at.sick, ""), false, "500 in distress")
	case at.fails(c.path):
		return w.give(c, brokenKind, false, "500 for its kind")
	case at.denied(c):
		w.judge.denied(at, keyOf(c.path))
		return w.give(c, denyDeletion, false, "403, deletions are denied")
	case at.renamed(c):
		return w.give(c, renamedName, false, "422, a webhook renames it")
	case at.rightsUp && c.writes():
		return w.give(c, refusal(403, "Forbidden", `"x" is forbidden: User "swell" cannot patch resource "x" in API group "" in the namespace "shop"`, ""), false, "403")
	case at.rightsUp && strings.Contains(c.path, "selfsubject"):
		return w.give(c, denyReview, false, "no right")
	case c.method == http.MethodPatch && strings.Contains(string(c.body), `"sim.example.com/denied":"true"`):
		return w.give(c, refusal(400, "BadRequest", `admission webhook "sim.example.com" denied the request: by policy`, ""), false, "400 by policy")
	}
	if at.slow && c.writes() && c.due.IsZero() {
		c.hole, c.due = true, time.Now().Add(webhookTime)
		w.judge.delayed(c)
		return "a slow webhook has it"
	}
	return w.give(c, nil, true, "")
}

func denyReview(r *http.Request) answer {
	return respond(r, 201, "application/json", `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":false}}`)
}

// give answers a call; other takes the place of the cluster's own answer.
func (w *world) give(c *call, other func(*http.Request) answer, served bool, text string) string {
	w.gate.take(c)
	var a answer
	if served {
		a = w.serve(c)
		if a.response != nil && text == "" {
			text = strconv.Itoa(a.response.StatusCode)
		}
	}
	if other != nil {
		if a.response != nil {
			a.response.Body.Close()
		}
		a = other(c.request)
	}
	c.answer <- a
	return text
}

// drop leaves a call unanswered for ever.
func (w *world) drop(c *call, served bool) string {
	c.hole = true
	if served {
		if a := w.serve(c); a.response != nil {
			a.response.Body.Close()
		}
	}
	return "no answer"
}

// fail has a fault happen to calls.
func (w *world) fail(f *fault, group []*call) {
	w.stats.fault(f.name)
	for _, c := range group {
		w.judge.faulty(c, f)
		if f.answer == nil {
			w.drop(c, f.served)
		} else {
			w.give(c, f.answer, f.served, f.name)
		}
	}
}

// serve has the cluster do what was asked, under the eyes of the judge.
func (w *world) serve(c *call) answer {
	w.judge.before(c)
	a := w.forward(c)
	code := 0
	if a.response != nil {
		code = a.response.StatusCode
	}
	w.judge.after(c, code)
	return a
}
