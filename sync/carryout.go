// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// job is one action of a plan on its way, and what becomes of it.
type job struct {
	rollout.Action
	bundle    *render.Bundle // nil for Remove
	inventory map[render.ObjectID]store.Entry
	work      apply.Work // of an Apply and a Check

	cluster string
	tenant  rollout.Tenant // whose bundle it is
	account string         // that it is done as; empty: swell's own
	writers []string       // the accounts that may have written what is there

	// foreign are the objects of the bundle that are another unit's by now, with
	// its entries: see [ownership.View.Foreign].
	foreign []ownership.Transfer

	// outcome has no Result until something is known.
	outcome   rollout.Outcome
	objects   map[apply.Action]int
	confirmed []store.Entry
	forgotten []store.Entry
	drifts    []apply.Drift // that a check came upon

	// What the inventory holds and the unit does not want any more: see
	// [Daemon.selectPrunable] and [Daemon.guard].
	prunable []store.Entry        // may be deleted
	held     []store.Entry        // wait for approval
	kept     []store.Entry        // are marked to be kept, so they are orphaned
	moved    []ownership.Transfer // are another unit's now
	left     []string             // why others stay, in one line each
	waits    string               // what held waits for
	ends     string               // the work that the bundle ends without approval, see [Daemon.ends]

	released []ownership.Transfer // of moved, once it was done
	deleted  []store.Entry        // objects that are gone now
	// unreplaced is how many of them no new object of their sort replaces.
	unreplaced int
	orphaned   []string      // objects that stay and are not ours to look after any more, with the reason
	changed    []store.Entry // that were approved, and are not what they were
	drifted    []store.Entry // those of them to be corrected

	notes []note
	lost  bool // the cluster did not answer
}

func (j *job) ended(result rollout.Result, reason string) {
	j.outcome = rollout.Outcome{Action: j.Action, Result: result, Reason: reason}
}

// writeAhead gets the bundles and the inventory that the plan's actions need, and
// writes ahead: the state that the plan was made from, and every object that
// may be written. After it, and not before, clusters may be touched.
func (d *Daemon) writeAhead(ctx context.Context, r *Record, plan rollout.Plan) ([]*job, error) {
	changed, dropped := d.state.Changed()
	if ctx.Err() != nil || len(plan.Actions)+len(changed)+len(dropped) == 0 {
		return nil, nil
	}
	var jobs []*job
	for _, action := range plan.Actions {
		if !d.executor.idle(action) || !d.executor.room(action.Target.Cluster()) {
			continue // under way already, or for a later pass
		}
		j := &job{Action: action, cluster: action.Target.Cluster()}
		if barred, why := d.barred(j.cluster); why != nil {
			j.ended(unreached(why), why.Error())
		} else if barred {
			continue // not for long
		} else if err := d.resolve(j); err != nil {
			// Not the bundle's fault: it is tried again, and fails no wave.
			j.ended(rollout.Unavailable, err.Error())
		} else if !d.executor.tryLock(j) {
			continue // of what it writes, something is being written or deleted
		} else if action.Kind == rollout.Apply {
			d.state.Writes(action.Unit, action.Target, j.tenant)
		}
		jobs = append(jobs, j)
	}
	for _, j := range jobs {
		d.subscribe(j, r.At)
	}
	d.markConcurrent(jobs)
	err := d.Store.Update(ctx, func(tx *store.Tx) error {
		for _, j := range jobs {
			intended, suspect := j.writesAhead()
			if err := errors.Join(d.noteMade(j, intended), tx.Intend(intended), tx.MarkDirty(suspect), tx.Confirm(j.claims()),
				tx.MarkOthersDirty(j.cluster, slices.Concat(intended, suspect))); err != nil {
				return err
			}
		}
		return d.putState(tx)
	})
	if err != nil {
		d.executor.drop(jobs)
		return nil, err
	}
	d.state.Stored()
	return jobs, nil
}

// resolve finds what the job works with.
func (d *Daemon) resolve(j *job) error {
	if j.Kind != rollout.Remove {
		bundle, err := d.bundle(j.Action)
		if err != nil {
			return err
		}
		j.bundle = bundle
	}
	if err := d.identify(j); err != nil {
		return err
	}
	inventory, err := d.Store.Inventory(j.Unit, j.Target)
	j.inventory = inventory
	if err != nil || j.bundle == nil {
		return err
	}
	if j.foreign, err = d.owners().Foreign(j.Action, j.bundle, j.inventory); err != nil {
		return err
	}
	if j.Kind == rollout.Check {
		if j.ends, err = d.ends(j); err != nil {
			return err
		}
	}
	j.work, err = d.work(j)
	return err
}

// bundle is the one that an action is about: of the last snapshot, or rendered
// again from the commit that it came with.
func (d *Daemon) bundle(a rollout.Action) (*render.Bundle, error) {
	if d.snapshot != nil {
		if b, err := d.snapshot.Bundle(a.Unit, a.Target); err != nil || b != nil && b.Digest == a.Digest {
			return b, err
		}
	}
	commit, err := d.commit(a.Commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", a.Commit.Short(), err)
	}
	return commit.Bundle(a.Unit, a.Target, a.Digest)
}

// keptCommits is how many earlier commits are kept loaded. A rollback of many
// units mostly goes to one or two.
const keptCommits = 4

func (d *Daemon) commit(hash config.Commit) (*render.Commit, error) {
	if known := d.commits[hash]; known != nil {
		return known, nil
	}
	tree, err := d.Source.Tree(hash)
	if err != nil {
		return nil, err
	}
	commit, err := render.NewCommit(config.Sub(tree, d.Path), d.Compiler.Cache, d.Compiler.Version)
	if err != nil {
		return nil, err
	}
	if len(d.commits) == keptCommits {
		clear(d.commits)
	}
	d.commits[hash] = commit
	return commit, nil
}

// writesAhead lists the objects that the job may write: those that are new to the
// inventory, and those whose content is not what it says as soon as the job begins.
func (j *job) writesAhead() (intended, suspect []store.Entry) {
	if j.Kind != rollout.Apply || j.bundle == nil || j.outcome.Result != "" {
		return nil, nil
	}
	for _, o := range j.sends() {
		known, ok := j.inventory[o.ID]
		if !ok {
			intended = append(intended, store.Entry{Unit: j.Unit, Target: j.Target, ID: o.ID, Version: o.Version})
			continue
		}
		if known.Digest != o.Digest {
			suspect = append(suspect, known)
		}
	}
	return intended, suspect
}

// unitsAtOnce is how many units of one cluster are worked on at a time. What
// the API server sees is bounded by the connection; this bounds memory.
const unitsAtOnce = 32

// carryOut begins the jobs, every cluster at its own pace, waits for as long as
// the patience lasts, and returns those that have ended, of earlier passes too.
func (d *Daemon) carryOut(ctx context.Context, jobs []*job) []*job {
	byCluster := map[string][]*job{}
	var ended, begun []*job
	for _, j := range jobs {
		if j.outcome.Result != "" {
			ended = append(ended, j)
			continue
		}
		byCluster[j.cluster] = append(byCluster[j.cluster], j)
		begun = append(begun, j)
	}
	for name, jobs := range byCluster {
		c, way, term := d.fleet.Of(name), d.wayTo(name), d.compared[name]
		reach := sync.OnceValues(func() (*apply.Cluster, error) { return way(ctx) })
		d.executor.begin(ctx, name, jobs, func(own context.Context, j *job) {
			conn, err := reach()
			switch {
			case own.Err() != nil:
				return
			case err != nil:
				j.ended(unreached(err), err.Error())
				return
			}
			d.do(own, c.During(conn, term), j)
			if j.lost && j.outcome.Result == rollout.Unreachable {
				c.Lost(ctx, errors.New(j.outcome.Reason))
			}
		})
	}
	d.executor.await(ctx, begun, d.Patience)
	return append(ended, d.executor.collect()...)
}

func (d *Daemon) do(ctx context.Context, conn *apply.Cluster, j *job) {
	switch j.Kind {
	case rollout.Apply:
		results := conn.As(j.account).Apply(ctx, j.work)
		j.noteResults(results)
		j.notes = notesOf(results)
		if text := j.movedText(); text != "" {
			j.notes = append(j.notes, note{"moved", text})
		}
		j.judge(ctx, results, rollout.Applied)
	case rollout.Check:
		d.check(ctx, conn, j)
	case rollout.Remove:
		results, left := d.prune(ctx, conn, j)
		j.judge(ctx, results, rollout.Removed)
		if j.outcome.Result == rollout.Removed && left != "" {
			j.ended(rollout.Deferred, left)
		}
	}
}

// work is what the job has to do, by the policy that the newest commit has for
// the unit; also when an earlier bundle is put back.
func (d *Daemon) work(j *job) (apply.Work, error) {
	w := apply.Work{
		Objects: j.sends(), Bundle: j.bundle.Digest, Known: j.inventory, Tolerated: d.ledger.Tolerated(j.inventory, d.modes.Of(j.Unit, j.Target)), TakenOver: d.ledger.TakenOver(j.inventory), PutBack: j.Why == rollout.WhyRollback,
	}
	w.Adopt, w.Ignore = d.policy(j.Unit, j.Target)
	var err error
	w.Rules, err = d.healthRulesFor(j.Action)
	return w, err
}

// healthRulesFor are those of the newest good fleet. Where there was none since the
// daemon began, they are those of the commit that the action is about: without
// any, an object might pass for healthy.
func (d *Daemon) healthRulesFor(a rollout.Action) (render.HealthRules, error) {
	if d.healthRules != nil {
		return d.healthRules, nil
	}
	commit, err := d.commit(a.Commit)
	if err != nil {
		return nil, fmt.Errorf("commit %s: %w", a.Commit.Short(), err)
	}
	return commit.HealthRules, nil
}

// noteResults notes what the inventory must learn.
func (j *job) noteResults(results []apply.Result) {
	if j.objects == nil {
		j.objects = map[apply.Action]int{}
	}
	for _, res := range results {
		if res.Action != "" {
			j.objects[res.Action]++
		}
		res.Entry.Unit, res.Entry.Target = j.Unit, j.Target
		if res.Forget {
			j.forgotten = append(j.forgotten, res.Entry)
			if res.Action == apply.Deleted {
				j.deleted = append(j.deleted, res.Entry)
			} else {
				j.orphaned = append(j.orphaned, fmt.Sprintf("%s: %s", res.ID, res.Reason))
			}
		} else if res.Entry.UID != "" && (j.Kind == rollout.Apply || res.Entry != j.inventory[res.ID]) {
			// what is only looked at may have been written by another unit meanwhile
			j.confirmed = append(j.confirmed, res.Entry)
		}
	}
}

// toldErrors is how many objects' errors an outcome tells in full: whoever mends
// one wants to know of the next, and nobody reads a thousand.
const toldErrors = 5

// judge makes one outcome of the results: the worst, with the reasons of the
// objects that it is owed to. Those that were skipped for the sake of another
// have none of their own. A bundle of which nothing went wrong may still have to
// wait.
func (j *job) judge(ctx context.Context, results []apply.Result, good rollout.Result) {
	if ctx.Err() != nil {
		return
	}
	worst := good
	var reasons, skipped []string
	for _, res := range results {
		if res.Err == nil {
			continue
		}
		j.lost = j.lost || lost(res.Err)
		result := j.classify(res.Err)
		if rank[result] > rank[worst] {
			worst, reasons, skipped = result, nil, nil
		}
		switch {
		case rank[result] < rank[worst]:
		case res.Action == apply.Skipped:
			skipped = append(skipped, res.Err.Error())
		default:
			reasons = append(reasons, res.Err.Error())
		}
	}
	if len(reasons) == 0 {
		reasons = skipped
	}
	told := 1 // the objects are not to blame, and would all say the same
	if worst == rollout.Failed || worst == rollout.Refused {
		told = toldErrors
	}
	j.ended(worst, someOf(reasons, told))
	if worst != good {
		return
	}
	for _, res := range results {
		if res.Waits != "" {
			j.ended(rollout.Waiting, res.Reason)
			j.outcome.Step, j.outcome.Outside = res.Waits, res.IsOutside()
			return
		}
	}
}

var rank = map[rollout.Result]int{rollout.Deferred: 1, rollout.Unavailable: 2, rollout.Unreachable: 3, rollout.Failed: 4, rollout.Refused: 4}

// classify says what an error means for the release. Only [rollout.Failed] and
// [rollout.Refused] are held against the bundle, and [rollout.Deferred] when it
// lasts: what is missing, and a webhook that does not answer, may be the bundle's
// own doing. All else is the target's trouble.
func (j *job) classify(err error) rollout.Result {
	var objects []*render.Object
	if j.bundle != nil {
		objects = j.bundle.Objects
	}
	switch {
	case errors.Is(err, apply.ErrUnreachable):
		return rollout.Unreachable
	case errors.Is(err, apply.ErrFailed):
		return rollout.Failed
	case errors.Is(err, apply.ErrMissing), apply.IsOwnWebhook(err, objects):
		return rollout.Deferred
	case errors.Is(err, apply.ErrRefused):
		return rollout.Refused
	}
	return rollout.Unavailable
}

// unreached says what it means for an action that the cluster could not be made
// contact with.
func unreached(err error) rollout.Result {
	if errors.As(err, new(fleet.NotWriter)) {
		return rollout.Unavailable
	}
	for _, answered := range []error{apply.ErrThrottled, apply.ErrDistress, apply.ErrRights} {
		if errors.Is(err, answered) {
			return rollout.Unavailable
		}
	}
	return rollout.Unreachable
}

// lost says whether the connection is of no use any more: nobody answers on it,
// or its credentials are not taken. What is behind one of the cluster's kinds
// may be away all the same.
func lost(err error) bool {
	var e *apply.Error
	return apply.IsLost(err) || errors.As(err, &e) && e.Code == http.StatusUnauthorized
}

// applied are the drifts from what was applied: an object that is not there may
// never have been.
func (j *job) applied(drifts []apply.Drift) []apply.Drift {
	for i := range drifts {
		drifts[i].Entry = j.inventory[drifts[i].Entry.ID]
	}
	return slices.DeleteFunc(drifts, func(drift apply.Drift) bool { return !apply.Judged(drift.Entry) })
}

// check looks at the health of what was applied, and prunes what an earlier
// bundle left once the new objects are healthy.
func (d *Daemon) check(ctx context.Context, conn *apply.Cluster, j *job) {
	health, drifts, err := conn.As(j.account).Health(ctx, j.work)
	if ctx.Err() == nil {
		j.drifts = j.applied(drifts)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil && health.State != apply.Failed: // health that cannot be read is not ill health
		j.lost = lost(err)
		j.ended(rollout.Unavailable, err.Error())
		if j.classify(err) == rollout.Unreachable {
			j.outcome.Result = rollout.Unreachable
		}
		return
	case health.State == apply.Failed:
		j.ended(rollout.Failed, health.Reason)
		return
	case health.State != apply.Healthy:
		j.ended(rollout.Unhealthy, health.Reason)
		return
	}
	if j.ends != "" {
		j.ended(rollout.Unhealthy, j.ends)
		return
	}
	j.ended(rollout.Healthy, j.movedText())
	j.outcome.Runs = string(approval.WorkOf(approval.Remaining(j.bundle)))
	if !j.Prune {
		return
	}
	_, left := d.prune(ctx, conn, j)
	if ctx.Err() == nil {
		j.outcome.Pruned, j.outcome.Reason = left == "", strings.Trim(left+"; "+j.outcome.Reason, "; ")
	}
}
