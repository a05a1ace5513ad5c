// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package checker runs the programs that Checker documents name, in a sandbox. It is
// the only one that runs programs for a monorepo. Which program a name runs comes from
// the configuration of who runs swell, or from a [Recipe]; never from the monorepo.
package checker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/render/checker"
	"github.com/swell-sh/swell/sync/aside"
	"github.com/swell-sh/swell/sync/checker/sandbox"
)

// Runner runs programs. It is safe for concurrent use.
type Runner struct {
	// Programs are those of the configuration, by name. They win over recipes.
	Programs map[string]config.CheckerProgram
	// Sandbox says whether programs may run where a guard of the sandbox is missing.
	Sandbox config.Sandbox
	// Cache keeps verdicts; nil is none.
	Cache *cache.Cache
	// Limits of each run; zero ones are those of [sandbox.DefaultLimits].
	Limits sandbox.Limits
	// Done is told of each program that has ended, from any goroutine. Nil is nobody.
	Done func(Run)

	work     aside.Work[cache.Key, checker.Verdict]
	started  atomic.Int64
	mu       sync.Mutex
	programs map[string]*program // by name, as they were found
	stopped  map[cache.Key]stopped
}

// Run is a program about one text, for people.
type Run struct {
	Program, File string
	Guards        []string
	Took          time.Duration
}

// stopped is a verdict that may be another one another time, and until when it counts.
type stopped struct {
	verdict checker.Verdict
	until   time.Time
}

// stoppedFor is how long a text whose program had to be stopped is not judged again.
const stoppedFor = 10 * time.Minute

// format is part of every key of a verdict: raise it when runs or what is made of
// their output change.
const format = "3"

// Count is how many programs were started.
func (r *Runner) Count() int64 { return r.started.Load() }

// Until has the programs end with ctx.
func (r *Runner) Until(ctx context.Context) *Bound { return r.Within(ctx, 0) }

// Within has the programs end with ctx, and has nobody wait for one longer than the patience: such
// a text is judged when its verdict is there.
func (r *Runner) Within(ctx context.Context, patience time.Duration) *Bound {
	return &Bound{r, ctx, patience}
}

// Bound is a [Runner] for the time of one command.
type Bound struct {
	runner   *Runner
	ctx      context.Context
	patience time.Duration // zero: as long as it takes
}

// Identity is the address of the program that a name runs.
func (b *Bound) Identity(name string) (identity, missing string) {
	p := b.runner.program(name)
	return p.identity, p.missing
}

// Judge runs a program on a text, unless its verdict is known.
func (b *Bound) Judge(request checker.Request) checker.Verdict {
	r := b.runner
	p := r.program(request.Program)
	if p.missing != "" {
		return failed("not checked: " + p.missing)
	}
	key := keyOf(p, request)
	if known, ok := r.known(key); ok {
		return known
	}
	group := aside.Group{Owner: request.Tenant, Name: request.Program}
	verdict, ok := r.work.Do(key, group, b.patience, func() (checker.Verdict, time.Duration) {
		verdict := r.run(b.ctx, p, request)
		if b.ctx.Err() == nil {
			r.keep(key, request, verdict)
		}
		return verdict, 0
	})
	if !ok {
		return failed(fmt.Sprintf("takes longer than %s: it goes on aside, and the unit stays as it is until then", b.patience))
	}
	return verdict
}

// Known are the verdicts of before: nothing runs for texts that have none, and these are
// refused for a reason. It is for what anybody may write.
func (r *Runner) Known(reason string) *Known { return &Known{r, reason} }

// Known runs no program.
type Known struct {
	runner *Runner
	reason string
}

// Identity is the address of the program that a name runs.
func (k *Known) Identity(name string) (identity, missing string) {
	p := k.runner.program(name)
	return p.identity, p.missing
}

// Judge gives the verdict of before.
func (k *Known) Judge(request checker.Request) checker.Verdict {
	p := k.runner.program(request.Program)
	if known, ok := k.runner.known(keyOf(p, request)); ok {
		return known
	}
	return failed("not checked: " + k.reason)
}

// failed is the verdict on what could not be judged now.
func failed(why string) checker.Verdict {
	return checker.Verdict{Findings: []checker.Finding{{Text: why, Retry: true}}}
}

func keyOf(p *program, request checker.Request) cache.Key {
	sum := sha256.New()
	fmt.Fprintf(sum, "verdict %s %q %q %q", format, p.identity, request.File, request.Beside)
	return cache.Key(sum.Sum(nil))
}

// known is a verdict of before.
func (r *Runner) known(key cache.Key) (checker.Verdict, bool) {
	r.mu.Lock()
	last, ok := r.stopped[key]
	r.mu.Unlock()
	if ok && time.Now().Before(last.until) {
		return last.verdict, true
	}
	if r.Cache == nil {
		return checker.Verdict{}, false
	}
	text, ok := r.Cache.Get(key)
	if !ok {
		return checker.Verdict{}, false
	}
	var verdict checker.Verdict
	return verdict, json.Unmarshal(text, &verdict) == nil
}

// keep remembers a verdict. One that may be another one another time, or that may quote a
// secret, is not written anywhere.
func (r *Runner) keep(key cache.Key, request checker.Request, verdict checker.Verdict) {
	switch {
	case verdict.Retry():
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.stopped == nil {
			r.stopped = map[cache.Key]stopped{}
		}
		for other, last := range r.stopped {
			if time.Now().After(last.until) {
				delete(r.stopped, other)
			}
		}
		r.stopped[key] = stopped{verdict, time.Now().Add(stoppedFor)}
	case r.Cache != nil && !(request.Private && len(verdict.Findings) > 0):
		text, err := json.Marshal(verdict)
		if err != nil {
			panic(err) // texts and numbers encode
		}
		r.Cache.Put(key, text)
	}
}

// run runs the program.
func (r *Runner) run(ctx context.Context, p *program, request checker.Request) checker.Verdict {
	if ctx.Err() != nil {
		return failed("interrupted")
	}
	r.started.Add(1)
	about := Run{Program: request.Program, File: request.File.Name}
	names := p.recipe.names(request)
	result, err := sandbox.Run(ctx, r.command(p, request, names))
	about.Guards, about.Took = result.Guards, result.Took
	if r.Done != nil {
		r.Done(about)
	}
	switch {
	case ctx.Err() != nil:
		return failed("interrupted")
	case err != nil:
		return failed(fmt.Sprintf("could not be run: %s", document.Printable(err.Error())))
	}
	return p.verdict(request, result)
}

// command is the program with what it may use.
func (r *Runner) command(p *program, request checker.Request, names names) sandbox.Command {
	command := p.command(request, names, r.Limits)
	command.Required = r.Sandbox.IsRequired()
	return command
}

// verdict is what a run says.
func (p *program) verdict(request checker.Request, result sandbox.Result) checker.Verdict {
	if result.Stopped != "" {
		text := "stopped: " + result.Stopped
		if said := said(result, request, p.recipe); len(said) > 0 {
			text += "; it said: " + said[0].Text
		}
		return checker.Verdict{Findings: []checker.Finding{{Text: text, Retry: result.Hasty}}}
	}
	if result.Exit == 0 {
		return checker.Verdict{}
	}
	if found := said(result, request, p.recipe); len(found) > 0 {
		return checker.Verdict{Findings: found}
	}
	if result.Signal != "" {
		return checker.Verdict{Findings: []checker.Finding{{Text: "ended without words by " + result.Signal}}}
	}
	return checker.Verdict{Findings: []checker.Finding{{Text: fmt.Sprintf("refused with exit code %d and no words", result.Exit)}}}
}

// fileName is the name of the text for the program, which may go by its ending.
func (p *program) fileName(request checker.Request) string {
	return cmp.Or(p.recipe.FileName, request.File.Name)
}
