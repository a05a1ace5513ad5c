// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/transport"

	"github.com/swell-sh/swell/sync/apply/line"
)

// How often and how long a request is tried again.
const (
	maxAttempts = 4
	// maxThrottled is for a server that says when to come again: each time, all
	// of the cluster's requests wait and fewer come then.
	maxThrottled = 10
	firstDelay   = 100 * time.Millisecond // doubled for each further attempt, with jitter
	// doubtAfter is the pause after which another cluster may stand at the address.
	doubtAfter = time.Second
	// maxRetryAfter is the longest a server may make us wait. A longer wish is
	// an error that the next pass will meet again, or not.
	maxRetryAfter = 10 * time.Second
)

// request is one request of the kind that may be repeated: the server ends in
// the same state however often it gets it.
type request struct {
	op, object  string // for the error's text
	method      string
	path        string
	query       string // encoded
	accept      string
	contentType string
	body        []byte
	// page: the answer is a page of a list. It has its room until [shares.leave].
	page bool
	// once: a conflict is an answer, not a reason to try again.
	once bool
	// hide says whether an error's text gives away what it must not. May be nil.
	hide func(message string) bool
}

// writes says whether the request changes anything that lasts.
func (r *request) writes() bool {
	asks := r.method == http.MethodGet || r.method == "" || strings.Contains(r.query, "dryRun=All") || strings.HasPrefix(r.path, "/apis/authorization.k8s.io/")
	return !asks
}

// response is an answer.
type response struct {
	answerInfo
	contentType string
	body        []byte
	room        shares // of a page
}

// answerInfo is what there is to know of an answer besides its content.
type answerInfo struct {
	code int
	// asked is the server's clock when it got the request, or up to a second
	// earlier, in whole seconds; zero when it did not say.
	asked time.Time
}

// do sends a request, again where that may help, and returns a 2xx answer or an
// [Error]. After a request that nobody answered it asks whether anybody answers
// at all, see [breaker].
func (c *call) do(ctx context.Context, req *request) (*response, error) {
	unsure := false
	for attempt := 1; ; attempt++ {
		answer, err := c.attempt(ctx, req, c.patience(req))
		if err == nil {
			return answer, nil
		}
		err.unsure = unsure
		unsure = unsure || !isUnwritten(err)
		again := attempt < err.maxAttempts() && err.transient() && !(req.once && err.Code == http.StatusConflict)
		if !again && err.silent() && ctx.Err() == nil && !c.breaker.open.Load() && c.probe(ctx) {
			err.judgeLate(req)
		}
		pause := max(err.after, c.backoff(attempt))
		if again && pause >= doubtAfter {
			c.identity.doubt() // before those go on that wait for their turn as long
		}
		if !again || !wait(ctx, pause) {
			return nil, c.judgeRights(ctx, req, err)
		}
		if pause >= doubtAfter {
			c.identity.doubt() // somebody may have asked meanwhile
		}
	}
}

// attempt sends a request once. The time-out begins when it is its turn. Where requests
// that got no answer make it doubtful again and again which cluster is there, it is not
// sent.
func (c *call) attempt(ctx context.Context, req *request, timeout time.Duration) (*response, *Error) {
	guard := req.writes() && !c.probing
	for range maxAttempts {
		if guard {
			if err := c.sameCluster(ctx, req.op, req.object); err != nil {
				return nil, err
			}
		}
		turn, refusal, ok := c.limiter.acquire(ctx, req)
		switch {
		case refusal != nil:
			return nil, refusal
		case !ok:
			e := transportError(ctx, req, 0, ctx.Err())
			e.unsent = true
			return nil, e
		}
		if !guard || !c.identity.isDoubted() {
			answer, err := c.guarded(ctx, req, timeout)
			c.limiter.release(turn, req, err)
			return answer, err
		}
		c.limiter.release(turn, req, unasked(req)) // it is doubted since it began to wait
	}
	return nil, unasked(req)
}

// guarded sends a request whose turn it is, unless the cluster does not answer.
func (c *call) guarded(ctx context.Context, req *request, timeout time.Duration) (*response, *Error) {
	if c.breaker.open.Load() && !c.probing {
		return nil, unasked(req)
	}
	if err := c.fenced(req); err != nil {
		return nil, err
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if timeout > c.options.Timeout {
		defer time.AfterFunc(c.options.Timeout, func() { c.watchLate(watched, req, cancel) }).Stop()
	}
	answer, err := c.roundTrip(watched, req, timeout)
	var fenced *Error
	switch cause := context.Cause(watched); {
	case err == nil || ctx.Err() != nil:
	case errors.As(cause, &fenced):
		err = fenced
	case errors.Is(cause, errLate):
		err = &Error{Op: req.op, Object: req.object, class: ErrUnreachable, cause: context.DeadlineExceeded, Message: cause.Error()}
	}
	c.answered(err)
	return answer, err
}

// serverTime is how long an API server takes at most for a request that it has admitted by
// webhooks, which have up to 30 s each: it bounds those to 34 s (apiserver, requestTimeoutUpperBound).
const serverTime = 34 * time.Second

// patience is how long a request may take.
func (c *call) patience(req *request) time.Duration {
	if req.isAdmitted() {
		return c.options.WriteTimeout
	}
	return c.options.Timeout
}

// isAdmitted says whether the server asks webhooks before it answers.
func (r *request) isAdmitted() bool { return r.writes() || strings.Contains(r.query, "dryRun=All") }

// errLate is why a request that waits for longer than others may is given up.
var errLate = errors.New("no answer")

// watchLate gives a request up that has taken longer than others may, once nobody answers
// any more, or somebody else may be the one who writes.
func (c *call) watchLate(ctx context.Context, req *request, cancel context.CancelCauseFunc) {
	for waited := c.options.Timeout; ctx.Err() == nil; waited += lateEvery {
		c.probe(context.WithoutCancel(ctx)) // others wait for what comes of it
		if c.breaker.open.Load() {
			cancel(fmt.Errorf("%w within %s", errLate, waited))
		} else if err := c.fenced(req); err != nil {
			err.unsent = false
			err.Message = fmt.Sprintf("%s within %s, and it is given up: %s", errLate, waited, line.One(err.cause.Error()))
			cancel(err)
		}
		if !wait(ctx, lateEvery) {
			return
		}
	}
}

// lateEvery is how often it is looked whether there is a sense in waiting on.
const lateEvery = 5 * time.Second

// judgeLate makes the lack of an answer a matter of the object, where the server answers
// others: a webhook that is asked about it may take its time.
func (e *Error) judgeLate(req *request) {
	if e.Code == 0 && e.class == ErrUnreachable && req.isAdmitted() && errors.Is(e.cause, context.DeadlineExceeded) {
		e.class = ErrDistress
		e.Message += ", while the cluster answers other requests: a webhook that is asked about the object may be slow"
	}
}

// roundTrip sends a request and reads the answer.
func (c *call) roundTrip(ctx context.Context, req *request, timeout time.Duration) (*response, *Error) {
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	httpReq, err := c.httpRequest(timed, req)
	if err != nil {
		return nil, &Error{Op: req.op, Object: req.object, class: ErrRefused, cause: err, unsent: true, Message: line.One(err.Error())}
	}
	began := time.Now()
	httpResp, err := c.client.Do(httpReq)
	if err != nil {
		return nil, transportError(ctx, req, timeout, err)
	}
	defer httpResp.Body.Close()
	shares := c.newShares()
	body, err := readBody(httpResp, &roomReader{timed, httpResp.Body, shares})
	if err != nil || !req.page {
		shares.leave()
	}
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, errNoRoom): // there was an answer
		return nil, &Error{Op: req.op, Object: req.object, class: ErrDistress, cause: err, Message: err.Error()}
	case err != nil:
		return nil, transportError(ctx, req, timeout, err)
	}
	answer := &response{contentType: httpResp.Header.Get("Content-Type"), body: body, room: shares}
	answer.code = httpResp.StatusCode
	answer.asked = askedAt(httpResp.Header, time.Since(began))
	if answer.code >= 200 && answer.code < 300 {
		return answer, nil
	}
	defer shares.leave()
	status, _ := answer.status() // an answer without one is described as it is
	return nil, answerError(req, answer, status, httpResp.Header)
}

// askedAt is [answerInfo.asked] of an answer that took that long. A server writes
// Date with the answer's header, which may be a second after the object was
// written.
func askedAt(h http.Header, took time.Duration) time.Time {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date.Add(-took).Truncate(time.Second)
}

func (c *call) httpRequest(ctx context.Context, req *request) (*http.Request, error) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + req.path
	u.RawQuery = req.query
	httpReq, err := http.NewRequestWithContext(ctx, req.method, u.String(), bytes.NewReader(req.body))
	if err != nil {
		return nil, err
	}
	if c.user != "" { // its groups are the server's to know
		httpReq.Header.Set(transport.ImpersonateUserHeader, c.user)
	}
	if req.accept != "" {
		httpReq.Header.Set("Accept", req.accept)
	}
	if req.contentType != "" {
		httpReq.Header.Set("Content-Type", req.contentType)
	}
	return httpReq, nil
}

// maxPromise is how much memory is made ready for an answer that says how long it will be.
const maxPromise = 1 << 20

// readBody reads an answer from where its body comes through.
func readBody(resp *http.Response, body io.Reader) ([]byte, error) {
	limit := int64(maxAnswer)
	if resp.StatusCode >= 300 {
		limit = maxError // a page that is cut is still good enough to describe
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 {
		buf.Grow(int(min(resp.ContentLength, maxPromise)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(body, limit+1))
	if err == nil && n > limit && limit == maxAnswer {
		err = errTooLarge
	}
	return buf.Bytes(), err
}

func (e *Error) maxAttempts() int {
	if e.class == ErrThrottled && e.after > 0 {
		return maxThrottled
	}
	return maxAttempts
}

// transient says whether the same request may well succeed a moment later. A
// time-out is not: the caller's patience is better spent elsewhere.
func (e *Error) transient() bool {
	switch e.Code {
	case 0:
		return e.class == ErrUnreachable && e.cause != nil && isBroken(e.cause)
	case http.StatusGatewayTimeout: // a server that waited for as long as it may waits as long again
		return e.after <= maxRetryAfter && !strings.Contains(e.Message, "request did not complete within")
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return e.after <= maxRetryAfter
	case http.StatusConflict: // two writers met; a precondition that fails stays so
		return !e.isStanding() && !e.isOtherVersion()
	case http.StatusInternalServerError: // a storage that is full stays so, a webhook that is down too
		return strings.Contains(e.Message, "etcdserver:") && !strings.Contains(e.Message, "space exceeded")
	}
	return false
}

// isBroken says whether an existing connection or stream ended under the
// request, as happens when an API server restarts. The errors of HTTP/2 have
// no exported types.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "http2: ") || strings.Contains(err.Error(), "stream error: ")
}

// backoff is the time before the attempt after the given one: 100 ms, 200 ms,
// 400 ms, each between half and one and a half times as long.
func (c *connection) backoff(attempt int) time.Duration {
	return c.options.Jitter(firstDelay << (attempt - 1))
}

// retryAfter reads the header's number of seconds; its date form is not used by
// API servers.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// wait returns false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
