// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// monorepo is what is known of the monorepo: its newest commit, what that wants, and a
// few earlier commits. It is used by the pass only.
type monorepo struct {
	history
	compiler *render.Compiler
	charts   render.Charts   // of earlier commits
	checkers render.Checkers // of earlier commits
	// accepted is the last commit that did not hold the fleet, also of an earlier process; empty:
	// there was none.
	accepted config.Commit
	// taken is its repository; nil before one was taken in this process.
	taken *config.Repository
	// base is the commit that the newest one goes to, whose rules judge it too; empty: there is
	// none.
	base config.Commit
	// allowEmpty lets a commit without units remove all that there is.
	allowEmpty bool

	// unconfirmed says that the newest commit is that of the state, and that Git has not been
	// seen since the daemon began.
	unconfirmed bool

	name     string           // for good; empty before the first commit was taken
	snapshot *render.Snapshot // of the newest commit; nil before the first
	broken   []*render.Unit   // units of it with problems
	// wasBroken are the units that had problems in the commit before, which may have been
	// rendered several times; nil: there was none.
	wasBroken map[config.UnitPath]bool
	wanted    *rollout.Wanted // what it wants

	// Of the last fleet without a problem; nil when there was none.
	tenants     map[string]*config.Tenant
	healthRules render.HealthRules
	own         map[string]*config.Rollout // its rollouts
	rollouts    *config.Rollouts           // those by which releases begin
	// bounds are stored: they hold also while the daemon has seen no good fleet yet.
	bounds, stored rollout.Bounds
	// wantedFrom remembers what was made of each unit, with those rollouts, while it is
	// unchanged.
	wantedFrom map[*render.Unit]*rollout.WantedUnit
	commits    map[config.Commit]*render.Commit // a few earlier ones, to go back to
}

// start says which commit was taken last in an earlier process, before the first one is taken in
// this one.
func (m *monorepo) start(stored store.Brought, commit config.Commit, tree config.Tree) {
	m.accepted, m.base = stored.Commit, stored.BaseOf(commit)
	m.compiler.Before = m.lastTaken(m.accepted, tree)
	m.compiler.Base = m.repository(m.base)
}

// take makes a commit the newest one. there is what was released before.
func (m *monorepo) take(commit config.Commit, tree config.Tree, there *rollout.State) {
	if m.snapshot != nil && m.snapshot.Commit != commit && m.taken != nil {
		m.base, m.compiler.Base = m.accepted, m.taken
	}
	m.compiler.Between = m.between(m.accepted, commit)
	m.compiler.Releases = releasesOf(there, m.compiler, m.tree)
	if m.snapshot = m.compiler.Snapshot(commit, tree); !m.snapshot.Held {
		m.accepted, m.taken = commit, m.snapshot.Repository
	}
	m.broken = ownership.Broken(m.snapshot)
	m.wanted = m.want(there)
}

// want is what the snapshot wants, in the words of package rollout. Units that
// did not change since the last snapshot keep their value.
func (m *monorepo) want(there *rollout.State) *rollout.Wanted {
	s := m.snapshot
	if why := refused(s, m.name); why != "" {
		return &rollout.Wanted{Commit: s.Commit, Held: why, Bounds: m.bounds}
	}
	m.tenants, m.healthRules = s.Repository.Tenants, s.HealthRules
	m.own = keepRollouts(m.own, s.Repository.Rollouts)
	m.rollouts = config.NewRollouts(m.own, s.Repository, s.Base)
	memory, before := m.wantedFrom, earlier(m.tree).once()
	if is := boundsOf(s.Repository, s.Base); !reflect.DeepEqual(is, m.bounds) {
		m.bounds, memory = is, nil
	}
	m.wantedFrom = make(map[*render.Unit]*rollout.WantedUnit, s.Units.Len())
	w := wantOf(s, there, before, func(unit *render.Unit) *rollout.WantedUnit {
		known := memory[unit]
		if spec := m.rollouts.For(unit.Path, unit.Rollout); known == nil || known.Rollout != spec || known.Frozen != "" {
			known = before.wantUnit(s, unit, spec, there.Units[unit.Path])
		}
		m.wantedFrom[unit] = known
		return known
	})
	w.AllowEmpty, w.Bounds = m.allowEmpty, m.bounds
	return w
}

// boundsOf are what the fleet's documents keep releases from. The budget is the stricter of the
// commit's and of that which it goes to, base; nil is none.
func boundsOf(r, base *config.Repository) rollout.Bounds {
	b := rollout.Bounds{Release: r.Release}
	if base != nil {
		b.Release.Budget = r.Release.Budget.Stricter(base.Release.Budget)
	}
	for _, m := range r.Masks {
		b.Masks = append(b.Masks, rollout.Mask{Name: m.Name, Reason: m.Reason, Where: m.Where})
	}
	for _, w := range r.Windows {
		b.Windows = append(b.Windows, rollout.Window{Name: w.Name, Reason: w.Reason, Deny: w.Deny, Where: w.Where, Time: w.Time})
	}
	return b
}

// bundle is the one that an action is about: of the last snapshot, or rendered
// again from the commit that it came with.
func (m *monorepo) bundle(a rollout.Action) (*object.Bundle, error) {
	if m.snapshot != nil {
		if b, err := m.snapshot.Bundle(a.Unit, a.Target); err != nil || b != nil && b.Digest == a.Digest {
			return b, err
		}
	}
	commit, err := m.commit(a.Commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", a.Commit.Short(), err)
	}
	b, err := commit.Bundle(a.Rendered(), a.Target, a.Digest)
	if err != nil || a.Origin == "" {
		return b, err
	}
	return b.Renamed(a.Unit), nil
}

// treeOf is the tree that the bundle of an action is rendered from.
func (m *monorepo) treeOf(a rollout.Action) (config.Tree, error) {
	if m.snapshot != nil {
		if b, err := m.snapshot.Bundle(a.Unit, a.Target); err == nil && b != nil && b.Digest == a.Digest {
			return m.snapshot.Repository.Tree, nil
		}
	}
	return m.tree(a.Commit)
}

// keptCommits is how many earlier commits are kept loaded. A rollback of many
// units mostly goes to one or two.
const keptCommits = 4

func (m *monorepo) commit(hash config.Commit) (*render.Commit, error) {
	if known := m.commits[hash]; known != nil {
		return known, nil
	}
	tree, err := m.tree(hash)
	if err != nil {
		return nil, err
	}
	commit, err := render.NewCommit(tree, m.compiler.Cache, m.compiler.Version, m.checkers, m.charts)
	if err != nil {
		return nil, err
	}
	if len(m.commits) == keptCommits {
		clear(m.commits)
	}
	m.commits[hash] = commit
	return commit, nil
}

// healthRulesFor are those of the newest good fleet. Where there was none since the
// daemon began, they are those of the commit that the action is about: without
// any, an object might pass for healthy.
func (m *monorepo) healthRulesFor(a rollout.Action) (render.HealthRules, error) {
	if m.healthRules != nil {
		return m.healthRules, nil
	}
	commit, err := m.commit(a.Commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", a.Commit.Short(), err)
	}
	return commit.HealthRules, nil
}

// tenantIn is the tenant that a job's bundle comes from: the newest commit's,
// or that of the commit which renders the bundle.
func (m *monorepo) tenantIn(a rollout.Action) (rollout.Tenant, error) {
	if m.snapshot != nil && !m.snapshot.Held {
		if unit := m.snapshot.Units.Get(a.Unit); unit != nil {
			if on := unit.On(a.Target); on != nil && on.Digest == a.Digest {
				return m.tenant(rollout.Tenant{Name: unit.Tenant}), nil
			}
		}
	}
	commit, err := m.commit(a.Commit)
	if err != nil {
		return rollout.Tenant{}, err
	}
	found := commit.Tenant(a.Rendered())
	if found == nil {
		return rollout.Tenant{}, errors.New("the unit is not in the commit that renders its bundle")
	}
	return m.tenant(rollout.Tenant{Name: found.Name, Account: found.Account}), nil
}

// tenant is a tenant with the account that it has now: what the newest good
// fleet says or, where that does not know the tenant any more, what was known.
func (m *monorepo) tenant(known rollout.Tenant) rollout.Tenant {
	if doc := m.tenants[known.Name]; doc != nil {
		known.Account = doc.Account
	}
	return known
}

// policy is how the newest commit wants a unit to treat, on a target, what
// others do; zero values when it does not know the unit.
func (m *monorepo) policy(path config.UnitPath, target config.TargetName) (config.Adoption, []config.IgnoreRule) {
	return policyIn(m.snapshot, path, target)
}

func policyIn(s *render.Snapshot, path config.UnitPath, target config.TargetName) (config.Adoption, []config.IgnoreRule) {
	if s == nil {
		return "", nil
	}
	unit := s.Units.Get(path)
	if unit == nil {
		return "", nil
	}
	on := unit.On(target)
	if on == nil {
		return unit.Policy.Adopt, nil
	}
	return unit.Policy.Adopt, unit.Policy.IgnoredOn(on.Target.Labels)
}

// isKnown says that it is known what a commit wants: only then can objects that
// were found be given to bundles.
func (m *monorepo) isKnown() bool { return m.snapshot != nil && m.wanted.Refused() == "" }

// isConfirmed says that it is known what Git wants now: only then can a state be found to be
// older than a cluster, and what nobody knows be given to bundles.
func (m *monorepo) isConfirmed() bool { return m.isKnown() && !m.unconfirmed }

// wants are the bundles of the newest commit in a cluster that have an object, but for
// those of retired targets.
func (m *monorepo) wants(cluster string, id object.ID) []object.UnitTarget {
	return m.wanted.Present(m.compiler.Wants(cluster, id))
}

// mayWant are those, and bundles of units with a problem that may have it.
func (m *monorepo) mayWant(cluster string, id object.ID) []object.UnitTarget {
	return m.wanted.Present(m.compiler.MayWant(cluster, id))
}
