// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/swell-sh/swell/sync/approval"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/store"
)

// recordEnded takes in what became of the jobs that have ended.
func (p *pass) recordEnded() error { return p.record(p.in.jobs) }

func (p *pass) record(jobs []*executor.Job) error {
	var anew []store.Entry
	now := p.clock.now()
	for _, j := range jobs {
		others, err := p.recordJob(j, now)
		if err != nil {
			return err
		}
		anew = append(anew, others...)
	}
	if err := p.tx.Confirm(anew); err != nil {
		return err
	}
	for _, j := range jobs {
		if err := errors.Join(p.tx.Confirm(j.Confirmed), p.tx.Forget(j.Forgotten), p.tx.MarkDirty(j.Drifted)); err != nil {
			return err
		}
	}
	return p.recordDeletions(jobs)
}

// recordJob takes in one job. anew are entries of other units, see [pass.transferOwnership].
func (p *pass) recordJob(j *executor.Job, now time.Time) (anew []store.Entry, err error) {
	p.requeue(j.Place())
	p.noteLost(j)
	if anew, err = p.transferOwnership(j, now); err != nil {
		return nil, err
	}
	if j.Outcome.Result == "" { // interrupted: nothing is known but what was done to single objects
		p.r.Transitions = append(p.r.Transitions, j.Transitions(now)...)
		return anew, nil
	}
	p.r.Actions = append(p.r.Actions, j.Outcome)
	p.r.count(j)
	p.r.Transitions = append(p.r.Transitions, p.state.Record(j.Outcome, now)...)
	if slices.ContainsFunc(j.Held, func(e store.Entry) bool { return p.guarded.ledger.Approved()[approval.Of(e)] }) {
		p.state.Nudge(j.Unit) // it was approved meanwhile
	}
	p.clearDrift(j)
	p.requestSweep(j.Confirmed)
	j.Drifted = p.noteDrifts(j.Drifts, true, now)
	p.r.Transitions = append(p.r.Transitions, j.Transitions(now)...)
	return anew, nil
}

// save stores what changed in this pass and was not stored by one of its steps.
func (p *pass) save() error {
	return errors.Join(p.saveUnits(), p.sweeps.ledger.Put(p.tx), p.saveHistory())
}

func (p *pass) saveUnits() error {
	changed, dropped := p.state.Changed()
	for _, unit := range changed {
		row, err := json.Marshal(unit)
		if err != nil {
			return err
		}
		if err := p.tx.PutUnit(unit.Path, row); err != nil {
			return err
		}
	}
	for _, path := range dropped {
		if err := p.tx.DeleteUnit(path); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) saveHistory() error {
	events := make([]store.Event, len(p.r.Transitions))
	for i, t := range p.r.Transitions {
		events[i] = store.Event(t)
	}
	return p.tx.AddHistory(events)
}
