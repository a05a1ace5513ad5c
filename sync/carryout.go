// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/sops"
)

// prepare makes jobs of the actions that are due, with the bundles and the inventory that
// they need. Those of an action that cannot be tried now end here.
func (p *pass) prepare() error {
	var ended []*executor.Job
	for _, cluster := range p.agenda.Clusters() {
		if !p.executor.Room(cluster) {
			continue // for a later pass
		}
		for _, action := range p.agenda.At(cluster) {
			if j := p.jobOf(action); j == nil {
				continue
			} else if j.Outcome.Result != "" {
				ended = append(ended, j)
			} else if p.executor.TryLock(j) { // else something is being written or deleted of what it writes
				p.jobs = append(p.jobs, j)
			}
		}
	}
	return p.record(ended)
}

// jobOf makes the job of an action; nil when it is under way already, or is for a later
// pass. One that cannot be tried now has ended.
func (p *pass) jobOf(action rollout.Action) *executor.Job {
	if !p.executor.Idle(action) || !p.executor.Room(action.Target.Cluster()) || !p.mayBegin(action) {
		return nil
	}
	j := &executor.Job{Action: action, Cluster: action.Target.Cluster()}
	barred, why := p.barred(j.Cluster)
	if barred && why == nil && j.Kind == rollout.Check {
		barred = !p.mayLook(j.Cluster)
	}
	switch {
	case why != nil:
		j.Ended(executor.Unreached(why), why.Error())
		return j
	case barred:
		return nil // not for long
	}
	if err := p.resolve(j); err != nil {
		j.Ended(unmade(err), err.Error())
	} else if j.Kind == rollout.Prove && len(j.Work.Objects) == 0 { // the unit has no such Job
		j.Ended(rollout.Healthy, "the unit has no such Job")
	}
	return j
}

// unmade says what it means for an action that its bundle could not be made. It is not the
// bundle's fault: it is tried again, and fails no wave.
func unmade(err error) rollout.Result {
	if errors.Is(err, config.ErrNoCommit) {
		return rollout.Gone
	}
	return rollout.Unavailable
}

// writeAhead stores every object that the jobs may write. After it, and not before,
// clusters may be touched.
func (p *pass) writeAhead() error {
	for _, j := range p.jobs {
		p.subscribe(j, p.r.At)
		if j.Applies() {
			p.state.Writes(j.Unit, j.Target, j.Tenant)
		}
		if j.Kind == rollout.Apply && j.Bundle != nil {
			p.state.BeginsAs(j.Place(), j.Digest, j.Event, j.Bundle.DiffersByEvent())
			if executor.Recovered(j.Inventory) {
				p.state.Recovers(j.Place())
			}
		}
		intended, suspect := j.WritesAhead()
		if err := errors.Join(p.noteMade(j, intended), p.tx.Intend(intended),
			p.tx.MarkDirty(suspect), p.tx.MarkDirty(j.LeavesOut()), p.tx.Confirm(j.Claims()),
			p.tx.MarkOthersDirty(j.Cluster, slices.Concat(intended, suspect))); err != nil {
			return err
		}
	}
	p.markConcurrent(p.jobs)
	return nil
}

// resolve finds what the job works with.
func (p *pass) resolve(j *executor.Job) error {
	if j.Kind != rollout.Remove {
		bundle, err := p.monorepo.bundle(j.Action)
		if err != nil {
			return err
		}
		j.Bundle = bundle
	}
	if err := p.identify(j); err != nil {
		return err
	}
	inventory, err := p.tx.Inventory(j.Unit, j.Target)
	j.Inventory = inventory
	if err != nil || j.Bundle == nil {
		return err
	}
	j.Event, j.Look = executor.EventOf(p.state, j.Place(), j.Bundle, j.Inventory)
	if j.Foreign, err = p.owners(p.tx).Foreign(j.Action, j.Bundle, j.Inventory); err != nil {
		return err
	}
	if j.Kind == rollout.Check {
		if j.Ends, err = p.ends(j); err != nil {
			return err
		}
	}
	if j.Work, err = p.work(j); err == nil && j.Kind == rollout.Check {
		j.Work.Changing = p.changing(j)
	}
	return err
}

// carryOut begins the jobs, every cluster at its own pace.
func (d *Daemon) carryOut(ctx context.Context, jobs []*executor.Job) {
	byCluster := map[string][]*executor.Job{}
	for _, j := range jobs {
		byCluster[j.Cluster] = append(byCluster[j.Cluster], j)
	}
	for name, jobs := range byCluster {
		c, way, term := d.fleet.Of(name), d.wayTo(name), d.surveys.compared[name]
		if c != nil && slices.ContainsFunc(jobs, (*executor.Job).Changes) {
			c.Writes()
		}
		reach := sharedReach(ctx, way)
		d.executor.Start(ctx, name, jobs, func(own context.Context, j *executor.Job) {
			conn, err := reach()
			switch {
			case own.Err() != nil:
				return
			case err != nil:
				j.Ended(executor.Unreached(err), err.Error())
				return
			}
			j.Do(own, c.During(conn, term), d.Store.ClusterInventory)
			if j.Lost && j.Outcome.Result == rollout.Unreachable {
				c.Lost(ctx, errors.New(j.Outcome.Reason))
			}
		})
	}
}

// sharedReach asks for a connection once, when the first of several jobs wants it.
func sharedReach(ctx context.Context, way func(context.Context) (*apply.Cluster, error)) func() (*apply.Cluster, error) {
	var conn *apply.Cluster
	var err error
	over := make(chan struct{}) // not a lock that is held meanwhile: a simulation sees who waits
	ask := sync.OnceFunc(func() {
		go func() {
			defer close(over)
			conn, err = way(ctx)
		}()
	})
	return func() (*apply.Cluster, error) {
		ask()
		<-over
		return conn, err
	}
}

// work is what the job has to do, by the policy that the newest commit has for
// the unit; also when an earlier bundle is put back.
func (d *Daemon) work(j *executor.Job) (apply.Work, error) {
	w := apply.Work{
		Objects: j.Sends(), Bundle: j.Bundle.Digest, Event: j.Event, Known: j.Inventory,
		Tolerated: d.sweeps.ledger.Tolerated(j.Inventory, d.sweeps.modes.Of(j.Unit, j.Target)), TakenOver: d.sweeps.ledger.TakenOver(j.Inventory), PutBack: j.Why == rollout.WhyRollback,
	}
	w.Adopt, w.Ignore = d.monorepo.policy(j.Unit, j.Target)
	w.Cluster = j.Cluster
	w.Frees, w.Spares = d.freesPods(j)
	var err error
	if w.Rules, err = d.monorepo.healthRulesFor(j.Action); err != nil {
		return w, err
	}
	if j.Applies() && slices.ContainsFunc(w.Objects, func(o *object.Object) bool { return o.Sealed != "" }) {
		tree, err := d.monorepo.treeOf(j.Action)
		if err != nil {
			return w, err
		}
		w.Open = (&sops.Opener{Keys: d.Keys, Tree: tree, Tenant: j.Tenant.Name}).Open
	}
	return w, nil
}
