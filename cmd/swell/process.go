// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/checker"
	"github.com/swell-sh/swell/sync/helm"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/sops"
	"github.com/swell-sh/swell/sync/store"
)

// process is what lasts as long as swell run does, while daemons come and go with the
// configuration: the state with its lock, and the answers to whoever looks whether all is
// well.
type process struct {
	file  configPath
	empty bool // see sync.Options.AllowEmpty
	log   *slog.Logger
	is    configuration // in force
	watch configurationWatch
	state *store.Store
	pulse *pulse
	// follows has daemons answer forges and preview pull requests, and put off charts that take
	// long: with --once they do not.
	follows bool
}

// patience is how long a pass waits for a chart, and for the program of a Checker.
const patience = 5 * time.Second

// openProcess reads the configuration and opens the state.
func openProcess(file configPath, empty bool, log *slog.Logger) (*process, error) {
	is, err := readConfiguration(file)
	if err != nil {
		return nil, err
	}
	for _, text := range is.PlainText() {
		log.Warn(text)
	}
	state, err := store.Open(is.State)
	if err != nil {
		return nil, stateError(err)
	}
	return &process{file: file, empty: empty, log: log, is: is, watch: configurationWatch{judged: is.content}, state: state, pulse: newPulse(log)}, nil
}

// close gives everything back.
func (p *process) close() {
	if err := errors.Join(p.pulse.close(), p.state.Close()); err != nil {
		p.log.Error("close", "err", err)
	}
}

// once does what can be done now.
func (p *process) once(ctx context.Context) (sync.Record, *rollout.State, error) {
	d, err := p.open(ctx, p.is)
	if err != nil {
		return sync.Record{}, nil, err
	}
	defer d.close()
	defer daemonSignals(p.file.in, p.log, d.Hurry)()
	record, err := d.Settle(ctx)
	if err == nil {
		err = p.state.Follow(false)
	}
	return record, d.State(), err
}

// follow runs daemons one after the other, each with the newest configuration that can be
// taken, until ctx ends.
func (p *process) follow(ctx context.Context) error {
	p.follows = true
	hangups := make(chan struct{}, 1)
	defer daemonSignals(p.file.in, p.log, func() { tell(hangups) })()
	if err := p.state.Follow(true); err != nil { // before it answers anybody
		return err
	}
	d, err := p.open(ctx, p.is)
	if err != nil {
		return err
	}
	p.log.Info("following", "version", versionText())
	for {
		next, err := p.run(ctx, d, hangups)
		if err == nil && next == nil {
			return p.state.Follow(false)
		}
		if err != nil {
			return err
		}
		if d, err = p.replace(ctx, *next); err != nil {
			return err
		}
	}
}

// run runs a daemon until ctx ends, or until another configuration is to take its place.
func (p *process) run(ctx context.Context, d *openDaemon, hangups <-chan struct{}) (next *configuration, err error) {
	defer d.close()
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan *configuration, 1)
	go func() {
		found <- p.awaitConfiguration(ctx, d, hangups)
		d.HandOver() // or it is over
	}()
	err = d.Run(ctx)
	cancel()
	return <-found, err
}

// replace opens a daemon with the next configuration or, where that does not work, with the
// one in force again.
func (p *process) replace(ctx context.Context, next configuration) (*openDaemon, error) {
	d, err := p.open(ctx, next)
	if err == nil {
		p.is = next
		p.log.Info("the changed configuration is in force")
		return d, nil
	}
	d, back := p.open(ctx, p.is)
	if back != nil {
		return nil, errors.Join(err, back)
	}
	p.refuse(d, err)
	return d, nil
}

// openDaemon is a daemon with all that it has open.
type openDaemon struct {
	*sync.Daemon
	close func()
}

// open opens all that a daemon needs. It begins to answer operators.
func (p *process) open(ctx context.Context, is configuration) (*openDaemon, error) {
	if err := p.pulse.listen(is.Health.Listen); err != nil {
		return nil, err
	}
	last, err := p.state.Brought()
	if err != nil {
		return nil, err
	}
	src, kept, err := openCommits(is.Daemon, last.Commit)
	if err != nil {
		return nil, err
	}
	d := &openDaemon{close: func() {
		if err := errors.Join(kept.Close(), src.Close()); err != nil {
			p.log.Error("close", "err", err)
		}
	}}
	repo := is.Repository
	runner := &checker.Runner{Programs: is.Checkers, Sandbox: is.Sandbox, Cache: kept}
	charts := &helm.Renderer{Sandbox: is.Sandbox}
	var newCharts render.Charts
	var newCheckers render.Checkers
	if p.follows {
		newCharts, newCheckers = &helm.Impatient{Renderer: charts, Patience: patience}, runner.Within(ctx, patience)
	}
	var beyond *outside
	d.Daemon, err = sync.Open(sync.Options{Source: src, Path: repo.Path, Store: p.state, Clusters: is.Clusters,
		KubeconfigDir: is.KubeconfigDir, Allow: is.Allow, Drift: is.Drift, Operators: is.API.Operators, Authors: src.Authors, Lease: is.Lease, Endpoints: is.Endpoints, Keys: &sops.Keys{Secrets: is.Secrets}, Guard: &is.Guard, AllowEmpty: p.empty, Poll: repo.Poll, Log: p.log,
		Compiler: render.Compiler{Cache: kept, Version: buildID(), Checkers: runner.Until(ctx), Charts: charts}, Charts: newCharts, Checkers: newCheckers, Observe: func(r sync.Record, state *rollout.State) {
			p.pulse.beat(r, state)
			beyond.observe(r, state, d.Live)
		}, Conditions: func() map[string]string {
			conditions := beyond.conditions()
			if lost := p.state.LostLog(); lost != "" {
				conditions[store.AboutState] = lost
			}
			return conditions
		}})
	if err != nil {
		d.close()
		return nil, err
	}
	stopServing, err := p.serve(is, d.Daemon, d.Planner(revisions(src, repo.Branch)))
	if err != nil {
		d.close()
		return nil, err
	}
	closeCommits := d.close
	d.close = func() {
		stopServing()
		closeCommits()
	}
	if !p.follows {
		return d, nil
	}
	if beyond, err = p.openOutside(ctx, is, src, d.Daemon); err != nil {
		d.close()
		return nil, err
	}
	closeInside := d.close
	d.close = func() {
		if err := beyond.close(); err != nil {
			p.log.Error("close", "err", err)
		}
		closeInside()
	}
	return d, nil
}

// serve answers operators until stop is called, which is to be before the state is closed.
func (p *process) serve(is configuration, daemon *sync.Daemon, planner *sync.Planner) (stop func(), err error) {
	beside := p.state.Beside()
	server, err := serve.Listen(serve.Options{Store: beside, API: is.API, Wake: daemon.Wake, Planner: planner, Log: p.log, Version: versionText()})
	if err != nil {
		return nil, errors.Join(err, beside.Close())
	}
	return func() {
		if err := errors.Join(server.Close(), beside.Close()); err != nil {
			p.log.Error("close", "err", err)
		}
	}, nil
}

// tell sends on a channel with room for one word, unless one waits there already.
func tell(told chan<- struct{}) {
	select {
	case told <- struct{}{}:
	default:
	}
}
