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
	"github.com/swell-sh/swell/sync/rollout"
)

// Options of a [Previewer]. All but Link, NoForks, Poll, Explain, Troubled
// and Now are required.
type Options struct {
	Forge forge.Forge
	// Project names the repository and the forge that it is on: what was posted otherHead is
	// of no use here.
	Project string
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
	// Explain adds to an error of the forge what may be wrong.
	Explain func(error) error
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
	// maxReady is how many previews wait for their turn to be posted. While there are so many,
	// none is made. One that the forge refused does not count.
	maxReady = 50
	// maxHeld is how many previews may be held, with those that the forge refused.
	maxHeld = 500
	// standEvery is how often a preview is made anew where nothing but how units stand is new: each
	// unit of a large release stands in another way a few times.
	standEvery = time.Minute
	// restShare is how many times as long as it took a preview that failed is not tried again:
	// one that takes too long leaves the time to others.
	restShare = 10
)

// Previewer is at work between Run and the end of its context. Its other methods may be
// called at any time.
type Previewer struct {
	Options
	files files

	mu    sync.Mutex // guards what others hand over
	woken map[int]bool
	all   bool         // of the pull requests, all are to be read
	base  Base         // the newest one; zero: none yet
	fleet *rollout.Now // how it is; never nil
	wake  chan struct{}
	// troubles are what the forge refused last, by pull request; 0: it concerns all.
	troubles map[int]string

	// What follows belongs to Run.
	known    map[int]*pull
	gone     map[int]*pull  // closed, or into another branch, which is to be told
	listed   time.Time      // when all are read next
	closed   time.Time      // nothing is asked of the forge before
	noWrites time.Time      // nothing is written there before
	failed   int            // how often in a row the forge did nothing that was asked
	running  map[bool]*pull // under way, by whether it is that of a fork
	warmed   config.Commit  // the base that was rendered last
	done     chan rendered
}

// pull is an open pull request.
type pull struct {
	forge.Pull
	posted posted
	// base is what the last preview was made against, and head the commit of the pull request;
	// empty: none was.
	base    Base
	head    config.Commit
	units   []config.UnitPath // that it is about
	stood   string            // how they were then, see [rollout.Now.KeyOf]
	seen    *rollout.Now      // in which they are so; nil: nobody has looked
	answer  *Answer           // that is not posted yet
	readyAt time.Time         // when it was made
	begun   time.Time         // of a preview under way
	read    time.Time         // when its head was
	slow    bool              // its status says that it is under way
	away    bool              // it is open, and into another branch
	renders forge.Tries       // of previews of its head
	unmade  int               // how many in a row were not made
	posts   forge.Tries       // of posting the answer
	refused bool              // the forge took the answer not, and takes those of others
}

// rendered is what became of a preview.
type rendered struct {
	pull   *pull
	fork   bool // when it was begun
	base   Base
	fleet  *rollout.Now
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
	p := &Previewer{Options: o, files: files{o.Dir, o.Project}, fleet: &rollout.Now{}, woken: map[int]bool{}, wake: make(chan struct{}, 1), troubles: map[int]string{}, known: map[int]*pull{}, gone: map[int]*pull{}, running: map[bool]*pull{}, done: make(chan rendered, 2)}
	return p, p.files.make()
}

// Base is what pull requests are compared with.
type Base struct {
	Commit   config.Commit // the newest one, also where nothing is taken from it
	Monorepo string        // its name
	// Since is the commit that was taken before it, whose rules judge it, too; empty: there is none.
	Since config.Commit
	// Aside says why it is not the newest commit of the branch: a sentence. Empty: it is.
	Aside string
}

// SetBase says what pull requests are compared with from now on.
func (p *Previewer) SetBase(base Base) {
	p.mu.Lock()
	moved := p.base != base
	p.base = base
	p.mu.Unlock()
	if moved {
		p.rouse()
	}
}

// SetFleet says how the fleet is from now on. Previews that are about units which stand in another way
// are made once more.
func (p *Previewer) SetFleet(fleet rollout.Now) {
	p.mu.Lock()
	before := p.fleet
	p.fleet = &fleet
	p.mu.Unlock()
	if !before.Same(&fleet) {
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
		p.tellGone(ctx, now)
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
	earlier := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	if p.isWoken() {
		earlier(p.closed)
	}
	base := p.newest()
	if base.Commit != p.warmed && p.running[false] == nil {
		earlier(now)
	}
	room := p.hasRoom()
	for _, is := range p.known {
		switch {
		case is.answer != nil:
			earlier(latest(is.posts.Next, p.writable()))
		case !is.begun.IsZero() && !is.slow:
			earlier(latest(is.begun.Add(slow), p.writable()))
		case is.begun.IsZero() && room && p.running[is.Fork] == nil:
			if from, wants := p.wants(is, base); wants {
				earlier(from)
			}
		}
	}
	if base.Monorepo != "" {
		for _, is := range p.gone {
			earlier(latest(is.posts.Next, p.writable()))
		}
	}
	return latest(next, now)
}

// writable is before when nothing is written.
func (p *Previewer) writable() time.Time { return latest(p.closed, p.noWrites) }

// hasRoom says whether further previews may be made.
func (p *Previewer) hasRoom() bool {
	ready, held := 0, 0
	for _, is := range p.known {
		if is.answer == nil {
			continue
		}
		held++
		if !is.refused && !is.answer.Nothing { // which may wait, see mergeTime
			ready++
		}
	}
	return ready < maxReady && held < maxHeld
}

func (p *Previewer) isWoken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all || len(p.woken) > 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p *Previewer) newest() Base {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.base
}

func (p *Previewer) live() *rollout.Now {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet
}

// statusName is what the status of the monorepo's previews is called, and subject what the
// comment is about.
func (p *Previewer) statusName() string { return StatusName(p.newest().Monorepo) }

func (p *Previewer) subject() string { return Subject(p.newest().Monorepo) }

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
		switch {
		case err != nil && forge.IsRefusal(err) && !forge.IsNotFound(err): // all are read once more, by and by
			p.Log.Warn("previews: read", "pull", number, "err", err)
		case err != nil && !forge.IsNotFound(err):
			p.refused(ctx, now, number, err)
			p.Wake(0) // later
			return
		case err != nil || !is.Open || is.Base != p.Branch:
			p.leave(number, err == nil && is.Open)
		default:
			p.keep(is)
		}
	}
}

func (p *Previewer) readAll(ctx context.Context, now time.Time) {
	open, err := p.Forge.Open(ctx, p.Branch)
	if err != nil {
		p.refused(ctx, now, 0, err)
		p.listed = p.closed
		return
	}
	p.failed, p.listed = 0, now.Add(p.Poll)
	p.setTrouble(0, "")
	there := map[int]bool{}
	for i, is := range open {
		there[is.Number] = true
		if i < maxOpen {
			p.keep(is)
		} else {
			delete(p.known, is.Number)
			p.setTrouble(is.Number, "")
		}
	}
	stray, err := p.files.sweep(now, there)
	if err != nil {
		p.Log.Error("previews: tidy up", "err", err)
	}
	p.ask(slices.AppendSeq(stray, maps.Keys(p.known)), there)
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
		delete(p.gone, is.Number)
		if known.posted.Gone { // it was opened again
			known.posted.Gone = false
			if err := p.files.write(is.Number, known.posted); err != nil {
				p.Log.Error("previews", "pull", is.Number, "err", err)
			}
		}
	}
	if known.Head != is.Head { // what it failed for may be mended
		known.read = p.Now()
		known.renders, known.posts, known.unmade = forge.Tries{}, forge.Tries{}, 0
		known.answer, known.refused = nil, false
	}
	known.Pull = is
}

// refused takes note of an error of the forge about a pull request; 0 is all of them. Where
// not only that one is to blame, nothing more is asked for a while.
func (p *Previewer) refused(ctx context.Context, now time.Time, number int, err error) {
	if ctx.Err() != nil {
		return
	}
	var limit *forge.LimitError
	switch {
	case errors.As(err, &limit) && limit.Own:
		p.noWrites = limit.Until
		return
	case errors.As(err, &limit):
		p.closed, number = limit.Until, 0
		p.Wake(0) // afterwards
	case number == 0 || !forge.IsRefusal(err):
		p.failed++
		p.closed, number = now.Add(min(forge.Pause(p.failed), p.Poll)), 0
	}
	if p.Explain != nil {
		err = p.Explain(err)
	}
	p.setTrouble(number, err.Error())
	p.Log.Warn("previews", "pull", number, "err", err)
}

// wants says whether a preview is to be made, and from when.
func (p *Previewer) wants(pr *pull, base Base) (from time.Time, wants bool) {
	switch {
	case base.Commit == "" || pr.answer != nil:
		return time.Time{}, false
	case pr.head != pr.Head || pr.base != base:
		return pr.renders.Next, true
	case p.standsOtherwise(pr):
		return latest(pr.renders.Next, pr.readyAt.Add(standEvery)), true
	}
	return time.Time{}, false
}

// standsOtherwise says that a unit which the last preview is about stands in another way now.
func (p *Previewer) standsOtherwise(pr *pull) bool {
	fleet := p.live()
	if pr.seen == fleet {
		return false
	}
	if fleet.KeyOf(pr.units) != pr.stood {
		return true
	}
	pr.seen = fleet
	return false
}

// begin begins the previews that come first: those whose head is new, and those that changed
// last. At a time there is one of ours and one of a fork.
func (p *Previewer) begin(ctx context.Context, now time.Time) {
	base, room := p.newest(), p.hasRoom()
	for _, fork := range []bool{false, true} {
		if p.running[fork] != nil {
			continue
		}
		var first *pull
		for _, is := range p.known {
			from, wants := p.wants(is, base)
			if room && is.Fork == fork && wants && !now.Before(from) && (first == nil || before(is, first) < 0) {
				first = is
			}
		}
		switch {
		case first != nil:
			p.render(ctx, first, base)
		case !fork && base.Commit != p.warmed:
			p.warm(ctx, base)
		}
	}
}

// warm has the base rendered before anybody asks for a preview against it.
func (p *Previewer) warm(ctx context.Context, base Base) {
	p.warmed = base.Commit
	none := &pull{}
	p.running[false] = none
	go func() {
		_, err := p.Render(ctx, Ask{Base: base, Branch: p.Branch})
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("preview", "base", base.Commit, "err", err)
		}
		p.done <- rendered{pull: none}
	}()
}

// before orders pull requests by whose preview comes first: those with a new head, and those
// whose preview failed last of all.
func before(a, b *pull) int {
	rank := func(is *pull) int {
		switch {
		case is.renders.Failed > 0:
			return 2
		case is.head != is.Head:
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), b.Updated.Compare(a.Updated), cmp.Compare(b.Number, a.Number))
}

func (p *Previewer) render(ctx context.Context, is *pull, base Base) {
	if p.running[is.Fork] = is; !is.Fork {
		p.warmed = base.Commit
	}
	is.begun, is.slow = p.Now(), false
	if is.posted.Token == "" {
		is.posted.Token = newToken()
	}
	r := rendered{pull: is, fork: is.Fork, base: base, fleet: p.live(), head: is.Head}
	ask := Ask{Base: base, Branch: p.Branch, Ref: is.Ref, Fork: is.Fork, Link: p.link(is), Number: is.Number, URL: is.URL, Now: *r.fleet}
	go func() {
		r.answer, r.err = p.Render(ctx, ask)
		p.done <- r
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
	is, now := r.pull, p.Now()
	p.running[r.fork] = nil
	took, waited := now.Sub(is.begun), time.Duration(0)
	if is.head != r.head {
		waited = is.begun.Sub(is.read)
	}
	is.begun = time.Time{}
	if p.known[is.Number] != is || is.Head != r.head { // it was closed, or pushed to, meanwhile
		return
	}
	if r.err == nil && r.answer.Page != "" {
		r.err = p.files.page(is.posted.Token, r.answer.Page)
		r.answer.Page = "" // it may be large, and what is posted may have to wait
	}
	switch {
	case r.err != nil:
		p.Log.Warn("preview", "pull", is.Number, "err", r.err)
		p.fail(is, fmt.Sprintf("pull request %d cannot be rendered: %v", is.Number, r.err), unrendered)
	case r.answer.Failed == "" && r.answer.Head != r.head: // Git knows another one than the forge said
		p.Log.Info("preview: Git has another head than the forge says", "pull", is.Number, "commit", r.head, "fetched", r.answer.Head)
		p.fail(is, "", otherHead)
		p.Wake(is.Number)
	default:
		is.base, is.head, is.answer, is.readyAt, is.unmade = r.base, r.head, &r.answer, now, 0
		is.units, is.stood, is.seen = r.answer.Units, r.fleet.KeyOf(r.answer.Units), r.fleet
		if r.answer.Failed != "" && !r.answer.Waits || r.answer.Again {
			is.renders.Fail(now, restShare*took)
			is.base = Base{} // it is tried again
		} else {
			is.renders = forge.Tries{}
		}
		p.Log.Info("preview", "pull", is.Number, "commit", r.head, "base", r.base.Commit, "text", cmp.Or(r.answer.Failed, r.answer.Text), "waited", waited, "took", took)
	}
}

// fail takes note of a preview that was not made, for a reason that may pass, and of the
// trouble that it is from the first time; empty: none is. After some tries the pull request
// says so, and why.
func (p *Previewer) fail(is *pull, trouble, why string) {
	is.renders.Fail(p.Now(), 0)
	if is.unmade++; is.unmade >= maxTries {
		trouble = cmp.Or(trouble, fmt.Sprintf("pull request %d has no preview: %s", is.Number, why))
	}
	if trouble != "" {
		p.setTrouble(is.Number, trouble)
	}
	if is.unmade == maxTries {
		is.answer = &Answer{Head: is.Head, Failed: why}
	}
}

const (
	// maxTries is after how many the pull request says that there is no preview: some ten
	// minutes. It is tried again all the same.
	maxTries = 8
	// unrendered is what it says then: the reason may be nobody else's business.
	unrendered = "the daemon could not fetch or render it, as its log says"
	otherHead  = "the forge names one commit as its head, and Git has another one there: a push may bring them together"
)

// post posts what was made, for the pull requests that changed last first.
func (p *Previewer) post(ctx context.Context, now time.Time) {
	var ready []*pull
	for _, is := range p.known {
		if is.answer != nil && !now.Before(is.posts.Next) {
			ready = append(ready, is)
		}
	}
	slices.SortFunc(ready, func(a, b *pull) int { return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.Number, a.Number)) })
	for _, is := range ready {
		if now.Before(p.writable()) || ctx.Err() != nil {
			return
		}
		err := p.reviewed(ctx, is, now)
		if p.known[is.Number] != is || now.Before(is.posts.Next) {
			continue // it was merged, or may be
		}
		if err == nil {
			err = p.write(ctx, is)
		}
		if err != nil {
			is.posts.Fail(now, 0)
			is.refused = forge.IsRefusal(err)
			p.refused(ctx, now, is.Number, err)
			continue
		}
		if is.unmade < maxTries {
			p.setTrouble(is.Number, "")
		}
		p.failed = 0
		is.answer, is.posts, is.refused = nil, forge.Tries{}, false
	}
}

// mergeTime is how long a preview of nothing waits that would take the place of another one of the same
// head: it was merged, most likely, and the forge is about to say so.
const mergeTime = time.Minute

// reviewed looks whether a pull request is still open before a preview takes the place of another one of
// the same head. What was reviewed stays on one that was merged.
func (p *Previewer) reviewed(ctx context.Context, pr *pull, now time.Time) error {
	if pr.posted.Comment == 0 || pr.posted.Read != pr.Head || pr.posted.Digest == pr.answer.Digest {
		return nil
	}
	current, err := p.Forge.Get(ctx, pr.Number)
	switch {
	case err != nil && !forge.IsNotFound(err):
		return err
	case err != nil || !current.Open || current.Base != p.Branch:
		p.leave(pr.Number, err == nil && current.Open)
	case pr.answer.Nothing && now.Sub(pr.readyAt) < mergeTime:
		pr.posts.Next = pr.readyAt.Add(mergeTime)
	}
	return nil
}

// tellSlow says of previews that take long that they are under way, where nothing else is said
// of the head.
func (p *Previewer) tellSlow(ctx context.Context, now time.Time) {
	for _, is := range p.running {
		if is == nil || p.known[is.Number] != is || is.slow || now.Sub(is.begun) < slow || now.Before(p.writable()) {
			continue
		}
		is.slow = true
		if is.posted.Head == is.Head && is.posted.State != "" {
			continue
		}
		err := p.status(ctx, is, forge.Status{Commit: is.Head, Name: p.statusName(), State: forge.Pending, Text: "rendering", Pull: is.Number})
		if err != nil {
			p.refused(ctx, now, is.Number, err)
		}
	}
}
