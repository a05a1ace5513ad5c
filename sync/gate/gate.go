// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package gate asks endpoints outside whether a wave may go on: a Prometheus server, or a
// URL. It asks in the background and decides nothing about releases: what an answer means
// is said in package rollout. It talks only to the endpoints of the daemon's
// configuration, never to an address that a monorepo names.
package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/config/smallfile"
	"github.com/swell-sh/swell/sync/apply/line"
	"github.com/swell-sh/swell/sync/rollout"
)

const (
	// timeout is how long an endpoint has for an answer.
	timeout = 10 * time.Second
	// atOnce is how many questions are asked at a time.
	atOnce = 32
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 1 << 20
)

// Asker asks the questions of gates. It is safe for concurrent use.
type Asker struct {
	endpoints map[string]config.Endpoint
	transport http.RoundTripper
	wake      func()
	slots     chan struct{}
	running   sync.WaitGroup

	mu      sync.Mutex
	asked   map[key]bool
	answers []rollout.Answer
}

// key is one gate of one rollout.
type key struct {
	unit                config.UnitPath
	rollout, wave, gate int
}

func keyOf(q rollout.Question) key { return key{q.Unit, q.Rollout, q.Wave, q.Gate} }

// New is an asker that calls wake when an answer has come. transport is its way to the
// endpoints; nil is the network.
func New(endpoints map[string]config.Endpoint, transport http.RoundTripper, wake func()) *Asker {
	if transport == nil {
		transport = network
	}
	return &Asker{endpoints: endpoints, transport: transport, wake: wake, slots: make(chan struct{}, atOnce), asked: map[key]bool{}}
}

// Ask asks questions in the background, each that is not being asked already.
func (a *Asker) Ask(ctx context.Context, questions []rollout.Question) {
	for _, q := range questions {
		a.mu.Lock()
		known := a.asked[keyOf(q)]
		a.asked[keyOf(q)] = true
		a.mu.Unlock()
		if known {
			continue
		}
		a.running.Go(func() {
			select {
			case a.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			answer := a.answer(ctx, q)
			<-a.slots
			if ctx.Err() != nil {
				return
			}
			a.mu.Lock()
			a.answers = append(a.answers, answer)
			a.mu.Unlock()
			a.wake()
		})
	}
}

// Collect returns the answers that have come. They may be asked again from now on.
func (a *Asker) Collect() []rollout.Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	answers := a.answers
	a.answers = nil
	for _, answer := range answers {
		delete(a.asked, keyOf(answer.Question))
	}
	return answers
}

// Wait waits until nothing is asked any more, after the context of all has ended.
func (a *Asker) Wait() { a.running.Wait() }

func (a *Asker) answer(ctx context.Context, q rollout.Question) rollout.Answer {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	kind, reason, endpoint := rollout.NoAnswer, "", ""
	switch {
	case q.Of.Prometheus != nil:
		kind, reason = a.query(ctx, q.Of.Prometheus, q.Values)
		endpoint = q.Of.Prometheus.Endpoint
	case q.Of.HTTP != nil:
		kind, reason = a.get(ctx, q.Of.HTTP, q.Values)
		endpoint = q.Of.HTTP.Endpoint
	}
	reason = a.redacted(reason, endpoint)
	return rollout.Answer{Question: q, Kind: kind, Reason: document.Printable(line.One(reason))}
}

// query asks a Prometheus server.
func (a *Asker) query(ctx context.Context, gate *config.PrometheusGate, values map[string]string) (rollout.AnswerKind, string) {
	endpoint, err := a.endpoint(gate.Endpoint)
	if err != nil {
		return rollout.NoAnswer, err.Error()
	}
	query, err := promQL(gate.Query, values)
	if err != nil {
		return rollout.NoAnswer, "query: " + err.Error()
	}
	client, err := api.NewClient(api.Config{Address: endpoint.URL, Client: a.client(endpoint)})
	if err != nil {
		return rollout.NoAnswer, err.Error()
	}
	result, _, err := prometheus.NewAPI(client).Query(ctx, query, time.Now())
	if err != nil {
		return rollout.NoAnswer, fmt.Sprintf("endpoint %s: %s", gate.Endpoint, refusal(err))
	}
	value, err := number(result)
	if err != nil {
		return rollout.NoAnswer, fmt.Sprintf("endpoint %s: %s", gate.Endpoint, err)
	}
	switch {
	case gate.AtMost != nil && !(value <= *gate.AtMost):
		return rollout.No, fmt.Sprintf("%s is %v, above %v", query, value, *gate.AtMost)
	case gate.AtLeast != nil && !(value >= *gate.AtLeast):
		return rollout.No, fmt.Sprintf("%s is %v, below %v", query, value, *gate.AtLeast)
	}
	return rollout.Yes, ""
}

// number is the one number that a query is to give. No number is no answer: a series that
// is not there says nothing of its value.
func number(result model.Value) (float64, error) {
	switch v := result.(type) {
	case *model.Scalar:
		return finite(float64(v.Value))
	case model.Vector:
		if len(v) == 1 {
			return finite(float64(v[0].Value))
		}
		return 0, fmt.Errorf("the query gives %d numbers, want one", len(v))
	}
	return 0, fmt.Errorf("the query gives a %s, want one number", result.Type())
}

// finite refuses NaN, which is what a division by nothing gives: it is no answer.
func finite(v float64) (float64, error) {
	if v != v {
		return 0, errors.New("the query gives NaN")
	}
	return v, nil
}

// get asks a URL.
func (a *Asker) get(ctx context.Context, gate *config.HTTPGate, values map[string]string) (rollout.AnswerKind, string) {
	endpoint, err := a.endpoint(gate.Endpoint)
	if err != nil {
		return rollout.NoAnswer, err.Error()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(endpoint.URL, "/")+config.Expand(gate.Path, escaped(values)), nil)
	if err != nil {
		return rollout.NoAnswer, fmt.Sprintf("endpoint %s: %s", gate.Endpoint, err)
	}
	response, err := a.client(endpoint).Do(request)
	if err != nil {
		return rollout.NoAnswer, fmt.Sprintf("endpoint %s: %s", gate.Endpoint, cause(err))
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body) // of a long one, the beginning
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return rollout.Yes, ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
	kind := rollout.No
	if response.StatusCode >= 500 {
		kind = rollout.NoAnswer
	}
	return kind, strings.TrimSuffix(fmt.Sprintf("endpoint %s: %s: %s", gate.Endpoint, response.Status, first), ": ")
}

// redacted is a reason without what an endpoint was sent to know us by, which it may send back.
func (a *Asker) redacted(reason, name string) string {
	if reason == "" {
		return ""
	}
	endpoint := a.endpoints[name]
	var r config.Redactor
	if token, err := tokenOf(endpoint); err == nil {
		r.AddLogin("", token)
	}
	r.AddURL(endpoint.URL)
	return r.RedactAnswer(reason)
}

// client follows no redirect: the token is for the endpoint alone.
func (a *Asker) client(endpoint config.Endpoint) *http.Client {
	return &http.Client{Transport: authorized{endpoint, a.transport}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (a *Asker) endpoint(name string) (config.Endpoint, error) {
	endpoint, ok := a.endpoints[name]
	if !ok {
		return endpoint, fmt.Errorf("the daemon's configuration has no endpoint %q: add it to spec.endpoints", name)
	}
	return endpoint, nil
}

// network keeps no connection open: gates are asked too rarely for that.
var network = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true
	return t
}()

// tokenOf is the token of an endpoint; empty: it has none.
func tokenOf(endpoint config.Endpoint) (string, error) {
	if endpoint.TokenFile == "" {
		return "", nil
	}
	token, err := smallfile.Read(endpoint.TokenFile)
	return strings.TrimSpace(string(token)), err
}

// errTooLong ends an answer.
var errTooLong = fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)

// boundedAnswer ends with an error after maxAnswer bytes.
type boundedAnswer struct {
	io.ReadCloser
	read int
}

func (b *boundedAnswer) Read(into []byte) (int, error) {
	if b.read >= maxAnswer {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), maxAnswer-b.read)])
	b.read += n
	return n, err
}

// authorized sends the token of an endpoint along, and to nobody else. What it answers is bounded.
type authorized struct {
	config.Endpoint
	transport http.RoundTripper
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := tokenOf(a.Endpoint)
	if err != nil {
		return nil, err
	}
	if token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedAnswer{ReadCloser: response.Body}
	return response, nil
}

// refusal is why Prometheus gave no result. The library's errors about an answer that is none of Prometheus
// have parts of it, cut anywhere, so these say nothing of the answer.
func refusal(err error) error {
	if refusal, ok := errors.AsType[*prometheus.Error](err); ok && refusal.Type != prometheus.ErrBadResponse {
		return refusal
	}
	if _, ok := errors.AsType[*url.Error](err); ok {
		return cause(err)
	}
	if errors.Is(err, errTooLong) {
		return errTooLong
	}
	return errors.New("the answer is none of the Prometheus API: is its URL in spec.endpoints that of a Prometheus server?")
}

// cause is an error without the address, which may hold what is nobody's business.
func cause(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", timeout)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}
