// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package preview keeps a preview on each open pull request: a comment that says what the
// fleet would see, a commit status, and a page with all of it. It reads pull requests from
// the forge, when a webhook wakes it or by polling; has them rendered against the newest
// commit of the branch, once more when that moves; and writes only what says something new.
//
// It never decides anything about a release, and nothing that it does holds up a pass.
//
// # What is stored
//
// A folder, which may be deleted at any time: comments are found again on the forge.
//
//	pulls/7.json      what was posted on pull request 7: see posted
//	pages/TOKEN.html  the page of a preview; the token is what makes its link secret
package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/sync/forge"
)

// Options of a [Previewer]. All but Link, NoForks, Poll, Troubled and Now are required.
type Options struct {
	Forge forge.Forge
	// Render makes a preview: [Renderer.Render].
	Render func(context.Context, Ask) (Answer, error)
	// Branch is the one that is followed.
	Branch string
	// Dir is the folder of what is stored.
	Dir string
	// Link is where pages are shown, such as https://swell.example.com/previews/. Empty:
	// there are none.
	Link string
	// NoForks leaves pull requests of other repositories out.
	NoForks bool
	// Poll is how often the forge is asked for all open pull requests. Zero is a minute.
	Poll time.Duration
	// Troubled is called when Trouble says something else.
	Troubled func()
	Log      *slog.Logger
	Now      func() time.Time
}

const (
	defaultPoll = time.Minute
	// maxOpen is how many pull requests are previewed: those that changed last.
	maxOpen = 2000
	// slow is how long a preview may take before its status says that it is under way.
	slow = 5 * time.Second
)

// Previewer is at work between Run and the end of its context. Its other methods may be
// called at any time.
type Previewer struct {
	Options
	files files

	mu    sync.Mutex // guards what others hand over
	woken map[int]bool
	all   bool          // of the pull requests, all are to be read
	base  config.Commit // the newest one; empty: none yet
	name  string        // of the monorepo
	wake  chan struct{}
	// troubles are what the forge refused last, by pull request; 0: it concerns all.
	troubles map[int]string

	// What follows belongs to Run.
	known   map[int]*pull
	listed  time.Time      // when all are read next
	closed  time.Time      // nothing is asked of the forge before
	failed  int            // how often in a row all could not be read
	running map[bool]*pull // under way, by whether it is that of a fork
	warmed  config.Commit  // the base that was rendered last
	done    chan rendered
}

// pull is an open pull request.
type pull struct {
	forge.Pull
	posted posted
	// base is the commit that the last preview was made against, and of the head; empty: none
	// was.
	base, head config.Commit
	answer     *Answer   // that is not posted yet
	begun      time.Time // of a preview under way
	read       time.Time // when its head was
	slow       bool      // its status says that it is under way
	tries      int
	next       time.Time // no try before
}

// rendered is what became of a preview.
type rendered struct {
	pull   *pull
	base   config.Commit
	head   config.Commit
	answer Answer
	err    error
}

// New prepares previews.
func New(o Options) (*Previewer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Poll == 0 {
		o.Poll = defaultPoll
	}
	p := &Previewer{Options: o, files: files{o.Dir}, woken: map[int]bool{}, wake: make(chan struct{}, 1), troubles: map[int]string{}, known: map[int]*pull{}, running: map[bool]*pull{}, done: make(chan rendered, 2)}
	return p, p.files.make()
}

// SetBase says which commit the branch has now, and what the monorepo is called in it.
func (p *Previewer) SetBase(commit config.Commit, name string) {
	p.mu.Lock()
	moved := p.base != commit
	p.base, p.name = commit, name
	p.mu.Unlock()
	if moved {
		p.rouse()
	}
}

// Wake has a pull request read again; 0: all of them.
func (p *Previewer) Wake(number int) {
	p.mu.Lock()
	if number == 0 || len(p.woken) >= maxOpen {
		p.all = true
	} else {
		p.woken[number] = true
	}
	p.mu.Unlock()
	p.rouse()
}

func (p *Previewer) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Trouble says which previews are not as they should be, since the forge refused something;
// empty: all are.
func (p *Previewer) Trouble() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	numbers := slices.Sorted(maps.Keys(p.troubles))
	if len(numbers) == 0 {
		return ""
	}
	text := p.troubles[numbers[0]]
	if more := len(numbers) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// setTrouble takes note of what the forge refused for a pull request; empty: nothing.
func (p *Previewer) setTrouble(number int, text string) {
	p.mu.Lock()
	changed := p.troubles[number] != text
	if p.troubles[number] = text; text == "" {
		delete(p.troubles, number)
	}
	p.mu.Unlock()
	if changed && p.Troubled != nil {
		p.Troubled()
	}
}

// Run keeps the previews until ctx ends.
func (p *Previewer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		now := p.Now()
		p.read(ctx, now)
		p.post(ctx, now)
		p.begin(ctx, now)
		p.tellSlow(ctx, now)
		p.sleep(ctx, p.due(p.Now()))
	}
	for _, is := range p.running {
		if is != nil {
			<-p.done
		}
	}
}

// sleep waits for something to happen, or until a time.
func (p *Previewer) sleep(ctx context.Context, until time.Time) {
	timer := time.NewTimer(max(until.Sub(p.Now()), 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-p.wake:
	case r := <-p.done:
		p.take(r)
	}
}

// due is when there is something to do next.
func (p *Previewer) due(now time.Time) time.Time {
	next := latest(p.listed, p.closed)
	if base := p.newest(); base != p.warmed && p.running[false] == nil {
		next = now
	}
	for _, is := range p.known {
		at := time.Time{}
		switch {
		case is.answer != nil:
			at = latest(is.next, p.closed)
		case !is.begun.IsZero() && !is.slow:
			at = latest(is.begun.Add(slow), p.closed)
		case is.begun.IsZero() && p.wants(is, p.newest()) && p.running[is.Fork] == nil:
			at = is.next
		}
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return latest(next, now)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p *Previewer) newest() config.Commit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.base
}

// statusName is what the status of the monorepo's previews is called, and subject what the
// comment is about.
func (p *Previewer) statusName() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return StatusName(p.name)
}

func (p *Previewer) subject() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Subject(p.name)
}

// read reads what was said to have changed, and now and then all.
func (p *Previewer) read(ctx context.Context, now time.Time) {
	if now.Before(p.closed) {
		return
	}
	p.mu.Lock()
	woken, all := p.woken, p.all || !now.Before(p.listed)
	p.woken, p.all = map[int]bool{}, false
	p.mu.Unlock()
	if all {
		p.readAll(ctx, now)
		return
	}
	for number := range woken {
		is, err := p.Forge.Get(ctx, number)
		if err != nil && !forge.IsNotFound(err) {
			p.refused(ctx, now, number, err)
			p.Wake(0) // later
			return
		}
		if err != nil || !is.Open || is.Base != p.Branch {
			p.forget(number)
			continue
		}
		p.keep(is)
	}
}

func (p *Previewer) readAll(ctx context.Context, now time.Time) {
	open, err := p.Forge.Open(ctx, p.Branch)
	if err != nil {
		p.failed++
		p.listed = now.Add(min(forge.Pause(p.failed), p.Poll))
		p.refused(ctx, now, 0, err)
		return
	}
	p.failed, p.listed = 0, now.Add(p.Poll)
	p.setTrouble(0, "")
	there := map[int]bool{}
	for _, is := range open[:min(len(open), maxOpen)] {
		there[is.Number] = true
		p.keep(is)
	}
	for number := range p.known {
		if !there[number] {
			p.forget(number)
		}
	}
	if err := p.files.sweep(now, there); err != nil {
		p.Log.Error("previews: tidy up", "err", err)
	}
}

// keep takes what the forge says of a pull request.
func (p *Previewer) keep(is forge.Pull) {
	if is.Fork && p.NoForks {
		return
	}
	known := p.known[is.Number]
	if known == nil {
		known = &pull{posted: p.files.read(is.Number)}
		p.known[is.Number] = known
	}
	if known.Head != is.Head { // what it failed for may be mended
		known.read = p.Now()
		known.tries, known.next, known.answer = 0, time.Time{}, nil
	}
	known.Pull = is
}

// forget is about a pull request that is not open any more.
func (p *Previewer) forget(number int) {
	delete(p.known, number)
	p.setTrouble(number, "")
}

// refused takes note of an error of the forge about a pull request; 0 is all of them.
func (p *Previewer) refused(ctx context.Context, now time.Time, number int, err error) {
	if ctx.Err() != nil {
		return
	}
	var limit *forge.LimitError
	if errors.As(err, &limit) {
		p.closed, number = limit.Until, 0
		if limit.Own {
			return
		}
		p.Wake(0) // afterwards
	}
	p.setTrouble(number, err.Error())
	p.Log.Warn("previews", "pull", number, "err", err)
}

// wants says whether a preview is to be made.
func (p *Previewer) wants(is *pull, base config.Commit) bool {
	return base != "" && is.answer == nil && (is.head != is.Head || is.base != base)
}

// begin begins the previews that come first: those whose head is new, and those that changed
// last. At a time there is one of ours and one of a fork.
func (p *Previewer) begin(ctx context.Context, now time.Time) {
	base := p.newest()
	for _, fork := range []bool{false, true} {
		if p.running[fork] != nil {
			continue
		}
		var first *pull
		for _, is := range p.known {
			if is.Fork == fork && p.wants(is, base) && !now.Before(is.next) && (first == nil || before(is, first) < 0) {
				first = is
			}
		}
		switch {
		case first != nil:
			p.render(ctx, now, first, base)
		case !fork && base != p.warmed:
			p.warm(ctx, base)
		}
	}
}

// warm has the base rendered before anybody asks for a preview against it.
func (p *Previewer) warm(ctx context.Context, base config.Commit) {
	p.warmed = base
	none := &pull{}
	p.running[false] = none
	go func() {
		_, err := p.Render(ctx, Ask{Base: base, Branch: p.Branch})
		p.done <- rendered{pull: none, err: err}
	}()
}

// before orders pull requests by whose preview comes first.
func before(a, b *pull) int {
	fresh := func(is *pull) int {
		if is.head != is.Head {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(fresh(a), fresh(b)), b.Updated.Compare(a.Updated), cmp.Compare(b.Number, a.Number))
}

func (p *Previewer) render(ctx context.Context, now time.Time, is *pull, base config.Commit) {
	if p.running[is.Fork] = is; !is.Fork {
		p.warmed = base
	}
	is.begun, is.slow = now, false
	if is.posted.Token == "" {
		is.posted.Token = newToken()
	}
	ask := Ask{Base: base, Branch: p.Branch, Ref: is.Ref, Fork: is.Fork, Link: p.link(is)}
	head := is.Head
	go func() {
		answer, err := p.Render(ctx, ask)
		p.done <- rendered{is, base, head, answer, err}
	}()
}

// link is where the page of a pull request is shown; empty: nowhere.
func (p *Previewer) link(is *pull) string {
	if p.Link == "" {
		return ""
	}
	return p.Link + is.posted.Token
}

// take takes what became of a preview.
func (p *Previewer) take(r rendered) {
	is := r.pull
	p.running[is.Fork] = nil
	began := is.begun
	is.begun = time.Time{}
	switch {
	case p.known[is.Number] != is: // it was closed meanwhile
	case is.Head != r.head: // it was pushed to meanwhile
	case r.err != nil:
		is.tries++
		is.next = p.Now().Add(forge.Pause(is.tries))
		p.Log.Warn("preview", "pull", is.Number, "err", r.err)
		if is.tries < maxTries {
			return
		}
		is.answer = &Answer{Head: r.head, Failed: r.err.Error()}
	case r.answer.Failed == "" && r.answer.Head != r.head: // Git knew more than the forge said
		p.Wake(is.Number)
	default:
		p.Log.Info("preview", "pull", is.Number, "commit", r.head, "base", r.base, "text", r.answer.Text, "waited", began.Sub(is.read), "took", p.Now().Sub(began))
		is.tries, is.next = 0, time.Time{}
		is.base, is.head, is.answer = r.base, r.head, &r.answer
	}
}

// maxTries is after how many the pull request says that there is no preview. It is tried
// again all the same.
const maxTries = 3

// post posts what was made, for the pull requests that changed last first.
func (p *Previewer) post(ctx context.Context, now time.Time) {
	var ready []*pull
	for _, is := range p.known {
		if is.answer != nil && !now.Before(is.next) {
			ready = append(ready, is)
		}
	}
	slices.SortFunc(ready, func(a, b *pull) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.Number, a.Number)) })
	for _, is := range ready {
		if now.Before(p.closed) || ctx.Err() != nil {
			return
		}
		if err := p.write(ctx, is); err != nil {
			is.tries++
			is.next = now.Add(forge.Pause(is.tries))
			p.refused(ctx, now, is.Number, err)
			continue
		}
		p.setTrouble(is.Number, "")
		failed := is.answer.Failed != ""
		is.answer = nil
		if failed { // never taken for the last word
			is.base = ""
			is.tries++
			is.next = now.Add(forge.Pause(is.tries + maxTries))
		} else {
			is.tries, is.next = 0, time.Time{}
		}
	}
}

// tellSlow says of previews that take long that they are under way.
func (p *Previewer) tellSlow(ctx context.Context, now time.Time) {
	for _, is := range p.running {
		if is == nil || is.Number == 0 || is.slow || now.Sub(is.begun) < slow || now.Before(p.closed) {
			continue
		}
		is.slow = true
		err := p.status(ctx, is, forge.Status{Commit: is.Head, Name: p.statusName(), State: forge.Pending, Text: "rendering", Pull: is.Number})
		if err != nil {
			p.refused(ctx, now, is.Number, err)
		}
	}
}
