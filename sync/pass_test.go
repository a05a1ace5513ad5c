// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"errors"
	"testing"
	"time"

	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/store"
)

// step takes some steps of a pass, in a transaction of their own.
func (d *Daemon) step(t testing.TB, r *Record, in observation, steps func(p *pass) []func() error) *pass {
	t.Helper()
	p := &pass{Daemon: d, r: r, in: in}
	if err := p.store(t.Context(), steps(p)); err != nil {
		t.Fatal(err)
	}
	return p
}

// recordThese takes in what became of jobs.
func (d *Daemon) recordThese(t testing.TB, jobs ...*executor.Job) {
	t.Helper()
	d.step(t, &Record{At: d.Now()}, observation{jobs: jobs}, (*pass).last)
}

// Busy says whether anything is under way, or over and not recorded yet.
func (d *Daemon) Busy() bool { return d.executor.Busy() || len(d.sweeps.underWay) > 0 }

// Working says whether anything is under way that ends by itself, whatever the clock says:
// Busy, a survey of a cluster, or a look at Git.
func (d *Daemon) Working() bool {
	return d.Busy() || len(d.surveys.underWay) > 0 || d.branch.looking != nil
}

// Add takes in the record of a later pass.
func (r *Record) Add(next Record) { r.add(next) }

// TestNothingAfterAFailedTransaction: what is in memory is not what is stored, so the
// daemon stores nothing any more, and begins nothing, even if it could again.
func TestNothingAfterAFailedTransaction(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	full := errors.New("the disk is full")
	p := &pass{Daemon: d, r: &Record{At: time.Now()}}
	broken := func() error {
		p.r.Transitions = append(p.r.Transitions, p.state.Retry("", "", "x", time.Now())...)
		return errors.Join(p.tx.SetRepository("half"), full)
	}
	if err := p.store(t.Context(), []func() error{broken}); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if r := d.Once(t.Context()); !errors.Is(r.Err, full) {
		t.Errorf("the next pass says %v", r.Err)
	}
	if err := d.Finish(t.Context()); err != nil {
		t.Error(err)
	}
	events, err := s.History("", 10)
	if name, nameless := s.Repository(); err != nil || nameless != nil || name != "" || len(events) > 0 {
		t.Errorf("stored %q and %v, %v, %v", name, events, err, nameless)
	}
}

// TestAPassReadsWhatItWrote: the steps of a pass see what the ones before them changed.
func TestAPassReadsWhatItWrote(t *testing.T) {
	s := emptyState(t)
	d := stateless(t, s)
	here, _ := twoHolders(t, s)
	d.step(t, &Record{}, observation{}, func(p *pass) []func() error {
		return []func() error{func() error { return p.tx.Forget([]store.Entry{here}) }, func() error {
			holders, err := p.tx.Holders("dev", here.ID)
			before, err2 := s.Holders("dev", here.ID)
			if len(holders) != 1 || len(before) != 2 {
				t.Errorf("the pass sees %v, others %v", holders, before)
			}
			return errors.Join(err, err2)
		}}
	})
}
