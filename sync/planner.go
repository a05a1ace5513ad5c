// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/cache"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// Planner makes forecasts of commits, beside a daemon or without one. It reads the state
// and changes nothing. It is safe for concurrent use.
type Planner struct {
	// Resolve finds the commit of a revision; an empty one is the branch that is followed.
	Resolve func(rev string) (config.Commit, error)
	Commits Commits
	// Authors is that of [Options].
	Authors    func(from, to config.Commit) ([]string, error)
	Operators  []config.Operator
	Path       string // of the monorepo's folder in the repository
	Guard      config.Guard
	AllowEmpty bool
	// Cache has what the daemon rendered, and Version is that of the compiler.
	Cache   *cache.Cache
	Version string
	// Checkers run programs as the daemon does, and are waited for.
	Checkers render.Checkers
	// Charts render Helm charts as the daemon has them rendered.
	Charts render.Charts
	Now    func() time.Time
}

// Planner makes forecasts for what the daemon follows. resolve finds commits.
func (d *Daemon) Planner(resolve func(rev string) (config.Commit, error)) *Planner {
	return &Planner{Resolve: resolve, Commits: d.Source, Authors: d.Authors, Operators: d.Operators, Path: d.Path, Guard: d.guarded.limits, AllowEmpty: d.AllowEmpty,
		Cache: d.Compiler.Cache, Version: d.Compiler.Version, Checkers: d.monorepo.checkers, Charts: d.monorepo.charts, Now: d.Now}
}

// ErrNoCommit means that there is no commit to make a forecast of.
var ErrNoCommit = errors.New("no such commit")

// Forecast is that of a revision.
func (p *Planner) Forecast(ctx context.Context, s *store.Store, rev string) (*Forecast, error) {
	commit, err := p.Resolve(rev)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCommit, err)
	}
	past := p.history()
	tree, err := past.tree(commit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCommit, err)
	}
	if _, err := fs.Stat(tree, "swell.yaml"); err != nil {
		return nil, fmt.Errorf("%w: commit %s has no swell.yaml in %q", ErrNoCommit, commit.Short(), p.Path)
	}
	last, err := s.Brought()
	if err != nil {
		return nil, err
	}
	state, err := LoadState(s)
	if err != nil {
		return nil, err
	}
	compiler := &render.Compiler{Cache: p.Cache, Version: p.Version, Checkers: p.Checkers, Charts: p.Charts,
		Base: past.repository(last.BaseOf(commit)), Before: past.lastTaken(last.Commit, tree), Between: past.between(last.Commit, commit)}
	compiler.Releases = releasesOf(state, compiler, past.tree)
	snapshot := compiler.Snapshot(commit, tree)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	f, err := p.begin(s, snapshot, compiler)
	if err != nil {
		return nil, err
	}
	ends := time.Now().Add(foreseeFor)
	f.run(func() bool { return ctx.Err() == nil && time.Now().Before(ends) })
	return &f.Forecast, ctx.Err()
}

func (p *Planner) history() history { return history{p.Commits, p.Path} }

// begin reads the state.
func (p *Planner) begin(s *store.Store, snapshot *render.Snapshot, compiler *render.Compiler) (*forecast, error) {
	f := &forecast{now: p.Now()}
	f.Commit = snapshot.Commit
	state, err := LoadState(s)
	if err != nil {
		return nil, err
	}
	repository, err := s.Repository()
	if err != nil {
		return nil, err
	}
	clusters, err := s.Clusters()
	if err != nil {
		return nil, err
	}
	f.prospect = prospect{snapshot: snapshot, state: state, compiler: compiler, broken: ownership.Broken(snapshot), has: stored{s.Reader},
		rebuilding: func(cluster string) bool { return clusters[cluster].Survey == store.Rebuilding }}
	if f.wanted, err = p.wanted(s, snapshot, state, repository); err != nil || f.wanted.Refused() != "" {
		return f, err
	}
	brought, err := s.Brought() // with the state: another commit may have been taken meanwhile
	if err != nil {
		return nil, err
	}
	if f.wanted.Authors, err = p.authors(brought, snapshot.Commit); err != nil {
		return nil, err
	}
	f.wanted.Unreleased = brought.Unreleased
	f.Taken = brought.Commit == snapshot.Commit
	return f, p.judge(f, s)
}

// wanted is what the commit wants, with the orders in force and those that wait.
func (p *Planner) wanted(s *store.Store, snapshot *render.Snapshot, state *rollout.State, repository string) (*rollout.Wanted, error) {
	standing, err := s.Standing()
	if err != nil {
		return nil, err
	}
	waiting, err := s.Orders()
	if err != nil {
		return nil, err
	}
	if why := refused(snapshot, repository); why != "" {
		return &rollout.Wanted{Commit: snapshot.Commit, Held: why}, nil
	}
	w := plainly(snapshot, state, p.history().tree)
	w.AllowEmpty, w.Bounds = p.AllowEmpty, boundsOf(snapshot.Repository, snapshot.Base)
	w.Order(standing.With(waiting))
	return w, nil
}

// authors are those of what a commit brings that is not the last one.
func (p *Planner) authors(brought store.Brought, commit config.Commit) ([]string, error) {
	if brought.Commit == commit || p.Authors == nil {
		return brought.Authors, nil
	}
	emails, err := p.Authors(brought.Commit, commit)
	if err != nil { // another history: all that it has
		if emails, err = p.Authors("", commit); err != nil {
			return nil, err
		}
	}
	return rollout.Union(namedAuthors(emails, p.Operators), nil), nil
}

// judge finds the deletions that wait for approval. The forecast goes on as if they had
// it.
func (p *Planner) judge(f *forecast, s *store.Store) error {
	losses, err := f.losses(nil)
	if err != nil {
		return err
	}
	if err := addDeparting(losses, s, f.wanted.Clusters); err != nil {
		return err
	}
	ledger, err := approval.Open(stillLedger{s})
	if err != nil {
		return err
	}
	if _, _, err := ledger.Load(stillLedger{s}); err != nil {
		return err
	}
	verdict, err := f.prospect.judge(p.Guard, ledger, losses)
	if err != nil {
		return err
	}
	f.plans = ledger.PlansOf(verdict, f.now)
	f.withheld = withheldBy(verdict, f.plans, f.Commit)
	f.wanted.Approved = verdict.Ends
	return nil
}

// stillLedger reads what was approved once.
type stillLedger struct{ *store.Store }

func (stillLedger) Changes() (int64, error) { return 0, nil }
