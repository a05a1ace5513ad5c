// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	gosync "sync"
	"time"
)

// gate is where requests of the daemon wait until the world decides what becomes of
// them.
type gate struct {
	mu      gosync.Mutex
	waiting []*call
	streams map[*stream]bool
	opened  int
	asked   map[string]int // how many calls came, by cluster
}

// call is a request that waits at the gate. Calls that look the same share one fate:
// which of them came first is by chance.
type call struct {
	process *process
	cluster string // or git, or [checks]
	what    string // method, path, query and the sum of the body
	method  string
	path    string
	body    []byte
	request *http.Request
	answer  chan answer
	hole    bool          // nobody will ever answer
	name    string        // see key
	since   time.Duration // when it came, since the world began
	due     time.Time     // when a slow webhook lets it through
	inOrder bool          // its wave had its turn when the webhook got it
}

// answer is what becomes of a call.
type answer struct {
	response *http.Response
	text     string // of Git
	err      error
}

func (c *call) key() string {
	if c.name == "" {
		c.name = strconv.Itoa(c.process.number) + " " + c.cluster + " " + c.what
	}
	return c.name
}

// writes says whether the call changes anything but a Lease.
func (c *call) writes() bool {
	return c.cluster != "git" && c.cluster != checks && c.method != http.MethodGet && !c.isLease() &&
		!strings.Contains(c.path, "selfsubject") && !strings.Contains(c.request.URL.RawQuery, "dryRun=All")
}

func (c *call) isLease() bool { return strings.Contains(c.path, "/leases") }

func (c *call) isWatch() bool {
	return c.request != nil && strings.Contains(c.request.URL.RawQuery, "watch=true")
}

// wait keeps a call at the gate until it is answered or given up.
func (g *gate) wait(ctx context.Context, c *call) (answer, error) {
	if c.process.isDead() {
		return answer{}, errKilled
	}
	c.answer, c.since = make(chan answer, 1), time.Since(c.process.world.begun)
	c.key()
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.asked[c.cluster]++
	g.mu.Unlock()
	c.process.world.arrive()
	select {
	case a := <-c.answer:
		return a, a.err
	case <-ctx.Done():
		g.take(c)
		return answer{}, ctx.Err()
	}
}

// take removes a call.
func (g *gate) take(c *call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *call) bool { return other == c })
}

// groups are the calls that wait for a decision, those that look the same together, in an
// order that does not depend on who came first.
func (g *gate) groups() (all [][]*call) {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(g.waiting), func(c *call) bool { return c.hole })
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.key(), b.key()) })
	for i, c := range calls {
		if i > 0 && calls[i-1].key() == c.key() {
			all[len(all)-1] = append(all[len(all)-1], c)
		} else {
			all = append(all, []*call{c})
		}
	}
	return all
}

// slow are the calls that a slow webhook has, the first one first.
func (g *gate) slow() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(g.waiting), func(c *call) bool { return c.due.IsZero() })
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key(), b.key())) })
	return calls
}

// isDue says that a slow webhook lets a call through.
func (g *gate) isDue() bool {
	slow := g.slow()
	return len(slow) > 0 && !slow[0].due.After(time.Now())
}

// of are all calls of a process, those in a hole too.
func (g *gate) of(p *process) []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(g.waiting), func(c *call) bool { return c.process != p })
	slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.key(), b.key()) })
	return calls
}

// transport is the way of one process to one cluster.
type transport struct {
	process *process
	cluster string
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	c := &call{process: t.process, cluster: t.cluster, method: cmp.Or(r.Method, http.MethodGet), path: r.URL.Path, body: body, request: r}
	c.what = c.method + " " + r.URL.RequestURI()
	if len(body) > 0 && !c.isLease() { // whose holder is named by chance
		c.what += fmt.Sprintf(" %08x", crc32.ChecksumIEEE(body))
	}
	a, err := t.process.world.gate.wait(r.Context(), c)
	return a.response, err
}

// stream is the body of a watch. Who reads it waits until it is its turn, so that events
// come one after the other, and it can be broken.
type stream struct {
	body    io.ReadCloser
	gate    *gate
	cluster string
	process *process
	key     string
	number  int // of all streams
	ctx     context.Context
	turn    chan struct{}
	broken  chan struct{}
	waits   bool // guarded by the gate
}

var errBroken = errors.New("http2: client connection lost")

func (s *stream) Read(into []byte) (int, error) {
	s.gate.mu.Lock()
	s.waits = true
	s.gate.mu.Unlock()
	s.process.world.arrive()
	select {
	case <-s.turn:
		return s.body.Read(into)
	case <-s.broken:
		return 0, errBroken
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

func (s *stream) Close() error {
	s.gate.mu.Lock()
	delete(s.gate.streams, s)
	s.waits = false
	s.gate.mu.Unlock()
	return s.body.Close()
}

// sorted are the streams in an order that does not depend on who came first.
func (g *gate) sorted() []*stream {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Keys(g.streams), func(a, b *stream) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
	})
}

// next is a stream that has something to tell, and is told to; false when there is none.
func (w *world) next() bool {
	for _, s := range w.gate.sorted() {
		w.gate.mu.Lock()
		waits := s.waits
		w.gate.mu.Unlock()
		if waits && s.body.(interface{ Pending() bool }).Pending() {
			w.gate.mu.Lock()
			s.waits = false
			w.gate.mu.Unlock()
			s.turn <- struct{}{}
			return true
		}
	}
	return false
}

// cut breaks the streams of a cluster.
func (g *gate) cut(cluster string) (n int) {
	for _, s := range g.sorted() {
		if s.cluster == cluster {
			g.end(s)
			n++
		}
	}
	return n
}

func (g *gate) end(s *stream) {
	g.mu.Lock()
	delete(g.streams, s)
	g.mu.Unlock()
	close(s.broken)
}

// cutOf ends the streams of a process that is gone.
func (g *gate) cutOf(p *process) {
	for _, s := range g.sorted() {
		if s.process == p {
			g.end(s)
		}
	}
}

// forward has the cluster serve a call.
func (w *world) forward(c *call) answer {
	r := c.request.Clone(c.request.Context())
	r.Body = nil
	if len(c.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(c.body))
	}
	response, err := w.clusters[c.cluster].RoundTrip(r)
	if err != nil {
		return answer{err: err}
	}
	if !c.isWatch() || response.StatusCode != http.StatusOK {
		return answer{response: response}
	}
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	if w.gate.streams == nil {
		w.gate.streams = map[*stream]bool{}
	}
	w.gate.opened++
	s := &stream{body: response.Body, gate: &w.gate, cluster: c.cluster, process: c.process, key: c.key(), number: w.gate.opened,
		ctx: c.request.Context(), turn: make(chan struct{}, 1), broken: make(chan struct{})}
	w.gate.streams[s] = true
	response.Body = s
	return answer{response: response}
}
