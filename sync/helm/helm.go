// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package helm has Helm charts rendered by processes of this binary, in the sandbox that
// programs of Checkers run in. A process renders one chart after another. One that a chart
// brings down, or that takes too long, is one problem of that chart, and the next chart has
// another process.
package helm

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/helm"
	"github.com/swell-sh/swell/sync/aside"
	"github.com/swell-sh/swell/sync/checker/sandbox"
	"github.com/swell-sh/swell/sync/helm/engine"
)

// Renderer renders charts. The zero value is ready. It is safe for concurrent use.
type Renderer struct {
	// Wait is how long a request may take; zero is a minute. The process stops itself long
	// before that, by the time that it computes.
	Wait time.Duration
	// CPU is how much of it a request, or the reading of its chart, may take; zero is 20 s. Whole seconds.
	CPU time.Duration
	// Sandbox says whether charts may be rendered where a guard of the sandbox is missing.
	Sandbox config.Sandbox

	work aside.Work[requestKey, helm.Answer]

	mu   sync.Mutex
	idle []*worker
}

// limits are those of a process. Its own, for one request, are smaller.
var limits = sandbox.Limits{CPU: 24 * time.Hour, Memory: 1 << 30, FileSize: 1 << 20, Processes: 64}

// idleFor is how long a process waits for another request.
const idleFor = 30 * time.Second

// worker is a process that renders.
type worker struct {
	served *sandbox.Served
	charts [engine.Slots]string // hashes of those that it has
	next   int                  // slot
	expiry *time.Timer
}

// render has a process render a chart. tooLong says that it came to a limit, or was stopped for the
// time that it took: it would be so again.
func (r *Renderer) render(request helm.Request) (answer helm.Answer, tooLong bool) {
	w, err := r.worker()
	if err != nil {
		return failed(fmt.Sprintf("cannot be rendered here: %v", err), true), false
	}
	reply, err := w.ask(request, r.wait(), r.cpu())
	if err != nil || reply.Last {
		w.served.Close()
	} else {
		r.rest(w)
	}
	if err != nil {
		stopped := w.served.Stopped()
		return explain(stopped, err), isAboutTime(stopped)
	}
	return reply.Answer, reply.Last
}

// isAboutTime says that a process was stopped for the time that it took, and not for its memory.
func isAboutTime(stopped string) bool { return stopped != "" && !strings.Contains(stopped, "memory") }

func (r *Renderer) wait() time.Duration {
	if r.Wait > 0 {
		return r.Wait
	}
	return time.Minute
}

func (r *Renderer) cpu() time.Duration {
	if r.CPU > 0 {
		return r.CPU
	}
	return 20 * time.Second
}

func failed(text string, retry bool) helm.Answer {
	return helm.Answer{Problems: []helm.Finding{{Text: document.Printable(text), Retry: retry}}}
}

// worker is a process that waits for a request, or a new one.
func (r *Renderer) worker() (*worker, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.idle) > 0 {
		w := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		if w.expiry.Stop() {
			return w, nil
		}
	}
	served, err := sandbox.Serve(r.command())
	if err != nil {
		return nil, err
	}
	return &worker{served: served}, nil
}

// command is this binary as a process that renders.
func (r *Renderer) command() sandbox.Command {
	return sandbox.Command{Program: "/proc/self/exe", Args: []string{engine.Name}, Limits: limits, Required: r.Sandbox.IsRequired()}
}

// rest has a process wait for another request.
func (r *Renderer) rest(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.expiry = time.AfterFunc(idleFor, w.served.Close)
	r.idle = append(r.idle, w)
}

// Close ends the processes that wait.
func (r *Renderer) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.idle {
		if w.expiry.Stop() {
			w.served.Close()
		}
	}
	r.idle = nil
}

// ask sends a request, with its chart where the process does not have it, and waits for
// the answer.
func (w *worker) ask(request helm.Request, wait, cpu time.Duration) (reply engine.Reply, err error) {
	late := time.AfterFunc(wait, func() { w.served.Stop(fmt.Sprintf("rendering was not done after %s", wait)) })
	defer late.Stop()
	slot := -1
	for i, hash := range w.charts {
		if hash == request.Chart.Hash {
			slot = i
		}
	}
	if slot < 0 {
		slot = w.next
		w.next = (w.next + 1) % engine.Slots
		w.charts[slot] = request.Chart.Hash
		_ = engine.Send(w.served, engine.Message{CPU: cpu, Slot: slot, Chart: &request.Chart}) // the answer tells
	}
	request.Chart, request.Tenant = helm.Chart{}, ""
	_ = engine.Send(w.served, engine.Message{CPU: cpu, Slot: slot, Request: &request})
	return reply, engine.Receive(w.served, &reply)
}

// explain is the answer of a process that gave none.
func explain(stopped string, err error) helm.Answer {
	var crash *engine.NoFrame
	switch {
	case stopped != "":
		return failed(stopped, isAboutTime(stopped))
	case errors.As(err, &crash) && (strings.Contains(crash.Text, "out of memory") || strings.Contains(crash.Text, "cannot allocate memory")): // Go has words for the heap, and others for its own tables
		return failed("rendering takes more memory than there is for it: does a template loop?", false)
	case errors.As(err, &crash) && strings.Contains(crash.Text, "goroutine stack exceeds"):
		return failed("templates call each other without an end", false)
	case errors.As(err, &crash):
		line, _, _ := strings.Cut(crash.Text, "\n")
		return failed("the process that renders charts ended: "+document.Shorten(line), false)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failed("the process that renders charts was ended, as a kernel does that is short of memory", true)
	}
	return failed("the process that renders charts gave no answer: "+err.Error(), true)
}
