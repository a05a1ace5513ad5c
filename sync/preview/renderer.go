// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/forge"
	"github.com/swell-sh/swell/sync/rollout"
)

// Ask is what a preview is to be made of.
type Ask struct {
	Base Base
	// Branch is where the base is from.
	Branch string
	// Ref is where Git has the head, such as refs/pull/7/head. Empty: the base is to be
	// rendered, and there is no preview.
	Ref string
	// Link is where all of it will be shown; empty: nowhere.
	Link string
	// Fork says that nobody of ours wrote the head.
	Fork bool
	// Number is that of the pull request, and URL where the forge shows it.
	Number int
	URL    string
	// Now is how the fleet is.
	Now rollout.Now
}

// Answer is a preview.
type Answer struct {
	Head    config.Commit // that of the ref, when it was fetched
	Bad     bool          // it must not be merged as it is
	Text    string        // the verdict, in a line
	Nothing bool          // nothing changes, and nothing is wrong
	Comment string        // markdown
	Digest  string        // of what the comment says, whatever the base's commit is called
	Page    string        // HTML: all of it
	Notes   []forge.Note  // the problems, by line
	// Units are those that it is about: it is made once more when one of them stands in another way.
	Units []config.UnitPath
	// Failed is why there is no preview, in words for whoever wrote the change; the rest is
	// empty then, but for Waits: it is the base's fault, so it is tried when that moves.
	Failed string
	Waits  bool
	// Again says that the preview is not the last word: something could not be found out now.
	Again bool
	// Retry is why none could be made now, for the daemon's log; all else is empty then, but
	// for Last.
	Retry string
	// Last says that the process answers no more: another one is to begin anew.
	Last bool
}

// State is that of the answer's status.
func (a *Answer) State() forge.State {
	if a.Bad {
		return forge.Failure
	}
	return forge.Success
}

// Renderer makes previews in processes of their own: one that a change brings down, or that
// takes too long or too much, is one preview that failed. A process makes one preview after
// another, and remembers what it rendered.
type Renderer struct {
	// Command starts a process that answers on its standard output what it is asked on its
	// standard input: values of [Ask] and [Answer] in JSON, one a line.
	Command func() *exec.Cmd
	// First is what it is sent before that; fork says that it is for forks.
	First func(fork bool) any
	// Time is how long a preview of ours may take, and ForkTime one of somebody else. Zero
	// is 10 minutes, and 2.
	Time, ForkTime time.Duration
	// Log is told what a process said that ended by itself.
	Log *slog.Logger
	// Idle is how long a process for forks waits for another one; zero is a minute.
	Idle time.Duration

	ours, theirs worker
}

const (
	defaultTime     = 10 * time.Minute
	defaultForkTime = 2 * time.Minute
	maxStderr       = 4 << 10 // bytes that are kept of what a process says at its end
)

// worker is a process, or none yet. It makes one preview at a time.
type worker struct {
	mu      sync.Mutex
	process *process
	expiry  *time.Timer
}

type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *json.Decoder
	stderr *beginning
	// greeted has what became of the first thing that it was sent, until a question is.
	greeted chan error
}

// Render makes a preview. The error is that none was made, for a reason that may pass; with a
// Failed answer, it is the change itself that is to blame.
func (r *Renderer) Render(ctx context.Context, ask Ask) (Answer, error) {
	w, limit := &r.ours, orDefault(r.Time, defaultTime)
	if ask.Fork {
		w, limit = &r.theirs, orDefault(r.ForkTime, defaultForkTime)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expiry != nil {
		w.expiry.Stop()
	}
	if w.process == nil {
		p, err := start(r.Command(), r.First(ask.Fork))
		if err != nil {
			return Answer{}, fmt.Errorf("start the process that renders previews: %w", err)
		}
		w.process = p
	}
	answer, err := w.process.ask(ctx, ask, limit)
	switch {
	case err != nil || answer.Last:
		w.stop()
	case ask.Fork:
		w.expiry = time.AfterFunc(orDefault(r.Idle, time.Minute), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stop()
		})
	}
	var blamed *failure
	var crash *crashed
	switch {
	case errors.As(err, &crash): // what it said may be nobody else's business
		r.Log.Error("the process that renders previews ended", "said", crash.said)
		return Answer{Failed: "the program that renders it failed, as the daemon's log says"}, nil
	case errors.As(err, &blamed):
		return Answer{Failed: blamed.text}, nil
	case err == nil && answer.Retry != "":
		return Answer{}, errors.New(answer.Retry)
	}
	return answer, err
}

// crashed is a process that ended by itself.
type crashed struct{ said string }

func (c *crashed) Error() string { return "the process that renders previews ended" }

func orDefault(is, otherwise time.Duration) time.Duration {
	if is == 0 {
		return otherwise
	}
	return is
}

// Close ends the processes.
func (r *Renderer) Close() {
	for _, w := range []*worker{&r.ours, &r.theirs} {
		w.mu.Lock()
		w.stop()
		w.mu.Unlock()
	}
}

func (w *worker) stop() {
	if w.process != nil {
		w.process.kill()
		w.process = nil
	}
}

func start(cmd *exec.Cmd, first any) (*process, error) {
	p := &process{cmd: cmd, stderr: &beginning{}, greeted: make(chan error, 1)}
	cmd.Stderr = p.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, json.NewDecoder(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.greeted <- json.NewEncoder(in).Encode(first) }()
	return p, nil
}

// failure is one that the change is to blame for.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// ask sends a question and waits for the answer. After an error the process is no good.
func (p *process) ask(ctx context.Context, ask Ask, limit time.Duration) (answer Answer, err error) {
	told := make(chan error, 1)
	go func() {
		var err error
		if p.greeted != nil {
			err = <-p.greeted
			p.greeted = nil
		}
		if err == nil {
			err = json.NewEncoder(p.in).Encode(ask)
		}
		if err == nil {
			err = p.out.Decode(&answer)
		}
		told <- err
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case err := <-told:
		if err != nil {
			p.kill()
			return Answer{}, p.explain(err)
		}
		return answer, nil
	case <-late.C:
		p.kill()
		<-told
		return Answer{}, &failure{fmt.Sprintf("rendering it was not done after %s", limit)}
	case <-ctx.Done():
		p.kill()
		<-told
		return Answer{}, context.Cause(ctx)
	}
}

// explain is why a process gave no answer.
func (p *process) explain(err error) error {
	said := p.stderr.String()
	for _, out := range []string{"out of memory", "cannot allocate memory"} {
		if strings.Contains(said, out) {
			return &failure{"rendering it takes more memory than there is for it"}
		}
	}
	if strings.Contains(said, "goroutine stack exceeds") {
		return &failure{"rendering it goes deeper than there is room for"}
	}
	if said = strings.TrimSpace(said); said != "" {
		return &crashed{said}
	}
	return fmt.Errorf("the process that renders previews ended: %w", err)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // or it has ended
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// beginning keeps the beginning of what a process says, which has the reason of a crash.
type beginning struct {
	mu   sync.Mutex
	text []byte
}

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), maxStderr-len(b.text))]...)
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
