// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"slices"
	"time"

	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Once is one pass: it observes what happened since the last one, decides what is to be
// done, stores both in one transaction, and begins what was decided. What went wrong
// with single units, targets or clusters, or with Git, is in the record; its Err is set
// only when the store could not be written, and then nothing was begun. What was begun
// goes on in the background, see [Executor]: what became of it is in the record of a
// later pass. Whoever makes no more passes calls [Daemon.Finish]. A pass whose ctx ends
// stops where it is; what is known by then is recorded, and the store says what is not.
func (d *Daemon) Once(ctx context.Context) Record {
	r := d.begin()
	if r.Err != nil {
		return r
	}
	defer d.brake()()
	p := &pass{Daemon: d, r: &r, in: d.observe(ctx, &r)}
	steps := p.all()
	if ctx.Err() != nil {
		steps = p.last()
	}
	if r.Err = p.store(ctx, steps); r.Err == nil {
		d.start(ctx, &r, p)
	}
	d.report(&r, p.plan)
	return r
}

// observation is what happened since the last pass, besides what is known of Git.
type observation struct {
	named   bool // the first good commit has come: the monorepo has a name
	surveys []surveyed
	jobs    []*executor.Job  // that have ended
	sweeps  []*sweep         // that are over
	answers []rollout.Answer // of gates
}

// observe finds out what happened since the last pass. It takes its time, and changes
// nothing that is stored.
func (d *Daemon) observe(ctx context.Context, r *Record) (in observation) {
	if d.orders.pushed.Swap(false) || d.lookFirst(r.At) {
		d.branch.hurry()
	}
	if d.orders.hurried.Swap(false) {
		d.hurry()
	}
	d.findClusters(r)
	in.named = d.fetch(ctx, r)
	d.findAuthors(r)
	d.surveys.follow(d.monorepo.wanted)
	d.fleet.KeepLeases(ctx, slices.DeleteFunc(d.surveyedClusters(), d.isMasked))
	in.surveys = d.endedSurveys(ctx, r)
	in.jobs, in.sweeps, in.answers = d.executor.Collect(), d.endedSweeps(), d.gates.Collect()
	return in
}

// pass is one pass while its transaction is open. What it reads of the state it reads in
// the transaction, and what it did is in the record. When the transaction fails, what is
// in memory is not what is stored, and the daemon has come to its end.
type pass struct {
	*Daemon
	tx   *store.Tx
	r    *Record
	in   observation
	plan rollout.Plan
	jobs []*executor.Job // that are to begin
	// inherited are the orders of other states that are in force from now on, by cluster.
	inherited map[string]string
	// forgotten are the clusters whose identity is not that of the state any more, once this is stored.
	forgotten []string
}

// all are the steps of a pass. Each changes what is in memory and adds to the
// transaction what has to be stored of that.
func (p *pass) all() []func() error {
	return []func() error{
		p.saveFleet, p.trackClusters, p.recordEnded, p.takeAnswers, p.takeSurveys, p.endRebuilding, p.recordSweeps, // what happened
		p.loadApprovals, p.forgetDeparted, p.saveMoved, p.takeOrders, p.takeEvents, // what operators and clusters say
		p.findRenamedUnits, p.withhold, p.tellFound, p.decide, p.prepare, p.writeAhead, p.guard, // what is to be done
		p.saveConditions, p.saveUnreached, p.saveFacts, p.save,
	}
}

// last are the steps when nothing more is to begin.
func (p *pass) last() []func() error { return []func() error{p.recordEnded, p.saveMoved, p.save} }

// store takes the steps in one transaction. What was done must be known also when ctx
// has ended meanwhile.
func (p *pass) store(ctx context.Context, steps []func() error) error {
	p.failed = p.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		p.tx = tx
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if p.failed != nil {
		p.executor.Drop(p.jobs)
		return p.failed
	}
	p.state.Stored()
	p.sweeps.ledger.Stored()
	for _, name := range p.forgotten {
		if c := p.fleet.Of(name); c != nil {
			c.Forget()
		}
	}
	return nil
}

// decide plans what is to be done now.
func (p *pass) decide() error {
	p.monorepo.wanted.Authors, p.monorepo.wanted.Unreleased = p.orders.brought.Authors, p.orders.brought.Unreleased
	p.plan = p.state.Decide(p.monorepo.wanted, p.r.At)
	p.agenda.Take(&p.plan)
	p.r.Transitions = append(p.r.Transitions, p.plan.Transitions...)
	return nil
}

// takeAnswers takes in what gates said.
func (p *pass) takeAnswers() error {
	for _, answer := range p.in.answers {
		p.state.Answer(answer, p.r.At)
	}
	return nil
}

// start begins what the pass decided, now that it is stored.
func (d *Daemon) start(ctx context.Context, r *Record, p *pass) {
	d.carryOrders(p)
	for _, s := range p.in.sweeps {
		d.watchKinds(ctx, s)
	}
	if len(p.in.sweeps)+len(p.in.jobs) > 0 {
		d.suppress(r.At)
	}
	d.syncWatches(ctx, r, p.agenda.Open())
	d.informer.Busy(d.executor.Clusters())
	d.gates.Ask(ctx, p.plan.Questions)
	begun := d.startSweeps(ctx, r)
	d.carryOut(ctx, p.jobs)
	d.await(ctx, p.jobs, begun)
	d.reportStaleKubeconfigs(r)
}

// report logs the pass and says when the next one is due.
func (d *Daemon) report(r *Record, plan rollout.Plan) {
	r.Next = earliest(d.branch.due(), earliest(d.nextSurvey(), earliest(d.nextSweep(), earliest(d.nextEnd(), plan.Wake))))
	if len(r.Actions) > 0 {
		r.Next = r.At // what was recorded may allow the next step
	}
	if d.monorepo.snapshot != nil {
		r.Commit, r.Monorepo = d.monorepo.snapshot.Commit, d.monorepo.name
	}
	r.Took = d.clock.now().Sub(r.At)
	r.log(d.Log)
	d.checkCache()
	if d.Observe != nil {
		d.Observe(*r, d.state)
	}
}

// checkCache says once when the compiler's cache has stopped to store: nothing
// is wrong with what is rendered, but after a restart all is rendered again.
func (d *Daemon) checkCache() {
	c := d.monorepo.compiler.Cache
	if d.told.cacheOff || c == nil {
		return
	}
	if err := c.Err(); err != nil {
		d.told.cacheOff = true
		d.Log.Warn("cache: nothing more is stored until the daemon starts again", "err", err)
	}
}

// earliest is the earlier of two times of which the zero one means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Finish waits until no job goes on any more, and records what became of them.
// It is to be called when the last pass is over, whether or not its ctx ended.
func (d *Daemon) Finish(ctx context.Context) error {
	d.executor.Drain()
	for _, s := range d.sweeps.underWay {
		<-s.over
	}
	var err error
	if ended := d.executor.Collect(); d.failed == nil && len(ended) > 0 {
		r := d.begin()
		p := &pass{Daemon: d, r: &r, in: observation{jobs: ended}}
		err = p.store(ctx, p.last())
	}
	if d.handing.over {
		d.fleet.Abandon()
	} else {
		d.fleet.Release(ctx)
	}
	return err
}
