// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/status"
	"github.com/swell-sh/swell/sync/store"
)

// ErrNobody means that nobody answers at the socket.
var ErrNobody = errors.New("nobody answers")

// Client asks a daemon. It answers what a [View] does.
type Client struct {
	path string
	http *http.Client
}

// ErrSilent means that somebody has the socket, and does not answer: a process that hangs, or
// that was stopped.
var ErrSilent = errors.New("no answer")

// helloPatience is how long an answer is waited for that costs nothing.
const helloPatience = 3 * time.Second

// Dial looks whether a daemon answers at a socket. The error is [ErrNobody] when none does,
// and [ErrSilent] when one does not answer in time.
func Dial(ctx context.Context, path string) (*Client, error) {
	c := &Client{path: path}
	c.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) }}}
	conn, err := dial(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%s: %w", path, ErrNobody)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w: the daemon's own user, root and spec.api.operators may", path, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := conn.Close(); err != nil {
		return nil, err
	}
	return c, c.hello(ctx)
}

// hello looks whether anything at all is answered: the system accepts connections for a process
// that is stopped.
func (c *Client) hello(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, helloPatience)
	defer cancel()
	got, err := c.request(timed, http.MethodGet, "/v1/hello", nil, nil) // there is no such path, which is an answer
	switch {
	case err == nil:
		return got.Body.Close()
	case ctx.Err() == nil && timed.Err() != nil:
		return fmt.Errorf("%s: %w within %s: a daemon has it open, and is stopped or hangs", c.path, ErrSilent, helloPatience)
	}
	return err
}

// Close gives up the connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// request is a request to the API.
func (c *Client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, (&url.URL{Scheme: "http", Host: "swell", Path: path, RawQuery: query.Encode()}).String(), content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if sudo := os.Getenv("SUDO_USER"); sudo != "" {
		r.Header.Set(onBehalfHeader, sudo)
	}
	got, err := c.http.Do(r)
	var ours *url.Error
	if errors.As(err, &ours) {
		return nil, fmt.Errorf("%s: %w", c.path, ours.Err)
	}
	return got, err
}

// ask returns what the API answers.
func ask[T any](ctx context.Context, c *Client, method, path string, query url.Values, body any) (value T, err error) {
	got, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return value, err
	}
	defer got.Body.Close()
	if got.StatusCode >= http.StatusBadRequest {
		return value, c.problem(got)
	}
	if err := json.NewDecoder(got.Body).Decode(&value); err != nil {
		return value, fmt.Errorf("%s: the answer: %w", c.path, err)
	}
	return value, nil
}

// maxProblem is how much of an error is read.
const maxProblem = 1 << 20

func (c *Client) problem(got *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(got.Body, maxProblem))
	if err != nil {
		return fmt.Errorf("%s: %w", c.path, err)
	}
	problem := &Error{}
	if json.Unmarshal(text, problem) != nil || problem.Detail == "" {
		return fmt.Errorf("%s: %s: %q", c.path, got.Status, text)
	}
	return problem
}

func below(unit string) url.Values {
	query := url.Values{}
	if unit != "" {
		query.Set("unit", unit)
	}
	return query
}

// Status is [View.Status].
func (c *Client) Status(ctx context.Context, unit string) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "/v1/status", below(unit), nil)
}

func items[T any](ctx context.Context, c *Client, path string, query url.Values) ([]T, error) {
	found, err := ask[List[T]](ctx, c, http.MethodGet, path, query, nil)
	return found.Items, err
}

// Units is [View.Units].
func (c *Client) Units(ctx context.Context, unit string) ([]status.Unit, error) {
	return items[status.Unit](ctx, c, "/v1/units", below(unit))
}

// Rollouts is [View.Rollouts].
func (c *Client) Rollouts(ctx context.Context, place string, all bool) ([]status.UnderWay, error) {
	query := url.Values{"all": {strconv.FormatBool(all)}}
	if place != "" {
		query.Set("place", place)
	}
	return items[status.UnderWay](ctx, c, "/v1/rollouts", query)
}

// Describe is [View.Describe].
func (c *Client) Describe(ctx context.Context, unit string) (status.Description, error) {
	return ask[status.Description](ctx, c, http.MethodGet, "/v1/rollouts/"+unit, nil, nil)
}

// Objects is [View.Objects].
func (c *Client) Objects(ctx context.Context, unit string) ([]Object, error) {
	return items[Object](ctx, c, "/v1/objects", below(unit))
}

// Inventory is [View.Inventory].
func (c *Client) Inventory(ctx context.Context, unit, target string) (Inventory, error) {
	query := below(unit)
	if target != "" {
		query.Set("target", target)
	}
	return ask[Inventory](ctx, c, http.MethodGet, "/v1/inventory", query, nil)
}

// Drift is [View.Drift].
func (c *Client) Drift(ctx context.Context, unit string) ([]Drifted, error) {
	return items[Drifted](ctx, c, "/v1/drift", below(unit))
}

// Targets is [View.Targets].
func (c *Client) Targets(ctx context.Context, unit string) ([]TargetCount, error) {
	return items[TargetCount](ctx, c, "/v1/targets", below(unit))
}

// History is [View.History].
func (c *Client) History(ctx context.Context, q Query) ([]store.Recorded, error) {
	query := below(string(q.Below))
	query.Set("limit", strconv.Itoa(q.Limit))
	query.Set("since", strconv.FormatInt(q.Since, 10))
	return items[store.Recorded](ctx, c, "/v1/history", query)
}

// Approvals is [View.Approvals].
func (c *Client) Approvals(ctx context.Context) (Approvals, error) {
	return ask[Approvals](ctx, c, http.MethodGet, "/v1/plans", nil, nil)
}

// Retriable is [View.Retriable].
func (c *Client) Retriable(ctx context.Context) ([]rollout.Retriable, error) {
	return items[rollout.Retriable](ctx, c, "/v1/retriable", nil)
}

// Orders is [View.Orders].
func (c *Client) Orders(ctx context.Context) (Orders, error) {
	return ask[Orders](ctx, c, http.MethodGet, "/v1/orders", nil, nil)
}

// Give gives an order. With a key in the request it may be repeated.
func (c *Client) Give(ctx context.Context, r Request) (Given, error) {
	return ask[Given](ctx, c, http.MethodPost, "/v1/orders", nil, r)
}

// Judge approves or rejects a plan or a gate.
func (c *Client) Judge(ctx context.Context, j Judge) (Judgement, error) {
	verb := "/approve"
	if j.Reject {
		verb = "/reject"
	}
	return ask[Judgement](ctx, c, http.MethodPost, "/v1/plans/"+string(j.Digest)+verb, nil, map[string]string{"reason": j.Reason})
}

// Plan is [View.Plan].
func (c *Client) Plan(ctx context.Context, rev string) (*sync.Forecast, error) {
	query := url.Values{}
	if rev != "" {
		query.Set("rev", rev)
	}
	return ask[*sync.Forecast](ctx, c, http.MethodGet, "/v1/plan", query, nil)
}

// ApprovePlan approves all that a plan names.
func (c *Client) ApprovePlan(ctx context.Context, a PlanApproval) (PlanApproved, error) {
	return ask[PlanApproved](ctx, c, http.MethodPost, "/v1/plan/"+string(a.Digest)+"/approve", nil, map[string]string{"commit": string(a.Commit), "reason": a.Reason})
}

// Watch hands events to take as they happen, those after since first, until ctx ends or
// the connection does. last is the number to go on after; gap says which events were
// missed, where some were.
func (c *Client) Watch(ctx context.Context, unit config.UnitPath, since int64, take func(store.Recorded) error, gap func(Resync) error) (last int64, err error) {
	query := below(string(unit))
	query.Set("since", strconv.FormatInt(since, 10))
	got, err := c.request(ctx, http.MethodGet, "/v1/watch", query, nil)
	if err != nil {
		return since, err
	}
	defer got.Body.Close()
	if got.StatusCode >= http.StatusBadRequest {
		return since, c.problem(got)
	}
	silent := time.AfterFunc(silence, func() { got.Body.Close() })
	defer silent.Stop()
	last = since
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, maxProblem)
	var kind, data string
	id := since
	for lines.Scan() {
		silent.Reset(silence)
		line := lines.Text()
		if line == "" {
			if err := deliver(kind, data, take, gap); err != nil {
				return last, err
			}
			last, kind, data = id, "", ""
			continue
		}
		switch field, value, _ := strings.Cut(line, ": "); field {
		case "id":
			if id, err = strconv.ParseInt(value, 10, 64); err != nil {
				return last, err
			}
		case "event":
			kind = value
		case "data":
			data = value
		}
	}
	if ctx.Err() != nil {
		return last, ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return last, fmt.Errorf("%s: %w", c.path, err)
	}
	return last, fmt.Errorf("%s: %w", c.path, io.EOF)
}

// silence is how long nothing may come: two heartbeats, and some.
const silence = 2*heartbeatEvery + 5*time.Second

func deliver(kind, data string, take func(store.Recorded) error, gap func(Resync) error) error {
	switch kind {
	case "event":
		var e store.Recorded
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return err
		}
		return take(e)
	case "resync":
		var r Resync
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return err
		}
		return gap(r)
	}
	return nil
}
