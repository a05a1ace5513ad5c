// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package sync is the daemon: it brings the commits of a monorepo to the
// clusters of the fleet. [Daemon.Once] is the whole program, one pass from the
// fetch of a commit to the record of what was done; [Daemon.Run] repeats it.
//
// The truth is in three places: what should be is in Git, what is live is in
// the clusters, and what swell did and is in the middle of is in the store.
// Everything in memory can be lost at any instruction: the next pass goes on
// from the store.
package sync

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/drift"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/gate"
	"github.com/swell-sh/swell/sync/informer"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/sops"
)

// Options of a [Daemon]. Source, Store and Log are required.
type Options struct {
	Source Source
	// Path is the folder of the monorepo inside the repository; empty is its
	// root.
	Path  string
	Store Store
	// Clusters says how to reach the clusters that the monorepo names.
	Clusters map[string]config.ClusterAccess
	// KubeconfigDir is a folder with the kubeconfigs of further clusters, and
	// of those of Clusters that name none. It is looked at in every pass.
	KubeconfigDir string
	// Allow is what kubeconfigs may hold besides the harmless.
	Allow []config.Allowance
	// Reach leads to a cluster that has no kubeconfig, such as a simulated one. Nil,
	// and where it returns nil, is by the kubeconfig.
	Reach func(cluster string) *rest.Config
	// Connection is how each cluster is talked to.
	Connection apply.Options
	Drift      config.Drift
	// Lease says whether, and where, a Lease keeps other daemons from writing.
	Lease config.Lease
	// Endpoints are what gates may ask, by name.
	Endpoints map[string]config.Endpoint
	// EndpointTransport is the way to endpoints. Nil is the network.
	EndpointTransport http.RoundTripper
	// Keys open encrypted Secrets. Nil: there are none.
	Keys *sops.Keys
	// Operators are known by their emails in commits, too.
	Operators []config.Operator
	// Authors are the emails of who wrote what the commit to has and the commit from has
	// not. Nil: nobody is known.
	Authors func(from, to config.Commit) ([]string, error)
	// LeaseTimes are for tests. The zero value is a minute, renewed every 20 s.
	LeaseTimes fleet.LeaseTimes
	// Guard bounds deletions. Nil is [config.DefaultGuard].
	Guard *config.Guard
	// AllowEmpty lets a commit without units remove all that there is.
	AllowEmpty bool
	// Patience is how long a pass waits for what it has begun. What takes longer
	// goes on in the background, and a later one records it. Zero is 1 s.
	Patience time.Duration
	// Poll is how often the branch is looked at. Zero is at every pass.
	Poll time.Duration
	Log  *slog.Logger
	// Compiler renders the commits. The zero value keeps results in memory.
	Compiler render.Compiler
	// Charts render Helm charts of new commits, and Checkers judge texts of them. They may put off
	// work that takes long. Nil: those of the compiler, which are waited for.
	Charts   render.Charts
	Checkers render.Checkers
	// Now is the clock on the wall, which may be set, and Steady one that goes on evenly from
	// any moment. Nil: the real ones; without Steady, a Now that is given is never set.
	Now    func() time.Time
	Steady func() time.Duration
	// Observe, where it is set, is shown the record and the state after every
	// pass. It must not change or keep them.
	Observe func(Record, *rollout.State)
	// Conditions, where it is set, are further ones than the daemon's own: texts by what they
	// are about. It is asked in every pass.
	Conditions func() map[string]string
}

// Daemon follows one monorepo. It is used by one goroutine at a time: whoever makes the
// passes owns all that it holds. What goes on in the background has a lock of its own, and
// wakes the next pass.
type Daemon struct {
	Options
	clock    clock
	branch   *branch        // when Git is looked at
	monorepo monorepo       // what Git wants
	state    *rollout.State // where each unit is on its way there
	agenda   rollout.Agenda // what is due of that
	fleet    *fleet.Fleet   // how clusters are reached
	surveys  surveys        // how well each cluster is known
	executor *executor.Executor
	gates    *gate.Asker
	guarded  guarded // what is not deleted without approval

	sweeps   sweeps // looks for drift, and what they found
	informer *informer.Informer
	policies atomic.Pointer[policies] // of the newest commit, for the background

	orders  orders        // of operators
	told    told          // to operators
	handing handing       // over to another daemon of this process
	arrived chan struct{} // told when something in the background is over, or was seen
	failed  error         // of the first transaction that failed: nothing is stored, or begun, after it
}

// Open prepares a daemon. It talks to nobody yet.
func Open(options Options) (*Daemon, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if start := options.Now(); options.Steady == nil {
		options.Steady = func() time.Duration { return options.Now().Sub(start) } // of time.Now it is what nobody sets
	}
	if options.Keys == nil {
		options.Keys = &sops.Keys{}
	}
	d := &Daemon{Options: options, arrived: make(chan struct{}, 1), handing: newHanding(), orders: orders{given: make(chan struct{}, 1)}, guarded: guarded{limits: config.DefaultGuard}, told: told{warned: map[string]string{}}, sweeps: newSweeps()}
	d.informer = informer.New(d.wake)
	if options.Guard != nil {
		d.guarded.limits = *options.Guard
	}
	d.executor = executor.New(d.arrived)
	d.gates = gate.New(d.Endpoints, d.EndpointTransport, d.wake)
	d.branch = &branch{source: d.Source, poll: d.Poll, wake: d.wake}
	d.Patience = cmp.Or(d.Patience, executor.DefaultPatience)
	d.monorepo = monorepo{history: history{d.Source, d.Path}, compiler: &d.Compiler, charts: d.Compiler.Charts,
		checkers: d.Compiler.Checkers, allowEmpty: d.AllowEmpty,
		wanted: &rollout.Wanted{Held: "no commit yet"}, commits: map[config.Commit]*render.Commit{}}
	if d.Charts != nil {
		d.Compiler.Charts = d.Charts
	}
	if d.Checkers != nil {
		d.Compiler.Checkers = d.Checkers
	}
	var err error
	if d.state, err = LoadState(options.Store); err != nil {
		return nil, err
	}
	swept, err := options.Store.SweptAt()
	if err != nil {
		return nil, err
	}
	d.sweeps.timetable = drift.NewTimetable(d.Drift, d.Now(), swept)
	known, err := options.Store.Clusters()
	if err != nil {
		return nil, err
	}
	d.surveys = newSurveys(known)
	if err := d.loadGuarded(); err != nil {
		return nil, err
	}
	for _, unit := range d.state.Units {
		for _, t := range unit.Targets {
			if t.Trouble == rollout.TroubleUnreachable || t.Trouble == rollout.TroubleUnavailable {
				t.RetryAt = time.Time{} // how to reach it may be another way now
			}
		}
	}
	if d.sweeps.ledger, err = drift.Open(options.Store); err != nil {
		return nil, err
	}
	if d.monorepo.name, err = options.Store.Repository(); err != nil {
		return nil, err
	}
	if err := d.monorepo.loadBounds(options.Store); err != nil {
		return nil, err
	}
	if d.told.conditions, err = openConditions(options.Store); err != nil {
		return nil, err
	}
	if d.told.unreached, err = options.Store.Unreached(); err != nil {
		return nil, err
	}
	if err := d.openOrders(); err != nil {
		return nil, err
	}
	inForce, err := options.Store.Standing()
	if err != nil {
		return nil, err
	}
	d.openClock(inForce)
	if err := d.openFleet(context.Background()); err != nil {
		return nil, err
	}
	return d, nil
}

// Run makes pass after pass until ctx ends, which is no error, or until
// [Daemon.HandOver] was called. It returns an error only when the store cannot be
// written: then nothing may be done.
func (d *Daemon) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { err = errors.Join(err, d.Finish(ctx)) }()
	defer d.branch.end()
	defer d.informer.Wait() // so that the store can be closed
	defer d.gates.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	approvals := time.NewTicker(approvalsEvery)
	defer approvals.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.handing.asked:
			d.handing.over = true
			d.executor.DrainFor(ctx, handOverPatience)
			return nil
		case <-d.arrived:
		case <-timer.C:
		case <-approvals.C:
			if !d.guarded.ledger.Changed(d.Store) {
				continue
			}
		}
		r := d.Once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if r.Err != nil {
			return r.Err
		}
		if timer.Stop(); !r.Next.IsZero() {
			timer.Reset(max(minPause, d.clock.until(r.Next)))
		}
	}
}

// approvalsEvery is how often the daemon looks whether something was approved. It
// costs one read of a number in memory.
const approvalsEvery = 500 * time.Millisecond

// minPause keeps passes that find nothing from following each other at once.
const minPause = 5 * time.Millisecond

// Settle makes passes until nothing is left to do but wait: for a soak, for a
// cluster that does not answer, for a new commit. It waits for a fetch that
// takes long.
func (d *Daemon) Settle(ctx context.Context) (total Record, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() { err = errors.Join(err, d.Finish(ctx)) }()
	defer d.branch.end()
	defer d.informer.Wait() // so that the store can be closed
	defer d.gates.Wait()
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return total, ctx.Err()
		case <-d.arrived:
		case <-timer.C:
		}
		r := d.Once(ctx)
		total.add(r)
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
		if r.Err != nil {
			return total, r.Err
		}
		pause := min(d.clock.until(r.Next), time.Second)
		switch {
		case d.branch.looking != nil || len(d.surveys.underWay) > 0, len(r.Actions) == 0 && (d.executor.Busy() || len(d.sweeps.underWay) > 0):
			select {
			case <-ctx.Done():
			case <-d.arrived:
				pause = 0
			}
		case len(r.Actions) == 0 && len(r.Transitions) == 0 && !inFlight(d.state): // a step that was noted may allow another
			return total, nil
		}
		timer.Reset(max(0, pause))
	}
}

// onceAttempts is how often one pass after the other tries a target in trouble
// before it is left to wait.
const onceAttempts = 3

// inFlight says whether a target was written, in part or as a whole, and is
// about to become healthy or to fail, or could not be written yet and will be, or
// fail, within its wave's timeout.
func inFlight(state *rollout.State) bool {
	for _, unit := range state.Units {
		if unit.Rollout.Status != rollout.Progressing && unit.Rollout.Status != rollout.RollingBack {
			continue
		}
		for _, t := range unit.Targets {
			becoming := t.Applied != "" && t.Applied == t.Wanted && t.Health == rollout.HealthProgressing
			if waiting := t.Dirty && t.Step != ""; t.Trouble == "" && (becoming || waiting) {
				return true
			}
			if t.Wanted != "" && (t.Trouble == rollout.TroubleDeferred || t.Trouble == rollout.TroubleUnavailable && t.Attempts < onceAttempts) {
				return true
			}
		}
	}
	return false
}

// State is what the daemon remembers of its rollouts, for reading.
func (d *Daemon) State() *rollout.State { return d.state }

// Snapshot is that of the last commit; nil before the first.
func (d *Daemon) Snapshot() *render.Snapshot { return d.monorepo.snapshot }
