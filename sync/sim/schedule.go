// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// play makes a world and plays the choices. Each is a number that one event is drawn
// from; zero is the event that does least harm. Then all faults stop, see [world.recover].
func play(seed uint64, choices []uint64, dir string, s *stats) *world {
	w := newWorld(seed, dir, s)
	s.now.histories++
	ordered := map[string]time.Duration{}
	for i := 0; w.shape.settled && i < patienceSteps && w.judge.objection == nil; i++ {
		if w.calmly(ordered); w.left() == "" {
			break
		}
	}
	for _, choice := range choices {
		if w.judge.objection != nil {
			break
		}
		w.choose(choice)
	}
	w.recover()
	w.shutDown()
	return w
}

// choices are those of a seed.
func choices(seed uint64, n int) []uint64 {
	r := rand.New(rand.NewPCG(seed, 2))
	all := make([]uint64, n)
	for i := range all {
		all[i] = r.Uint64() | 1
	}
	return all
}

// choose has one event happen.
func (w *world) choose(choice uint64) {
	w.rand = rand.New(rand.NewPCG(choice, 3))
	if choice == 0 {
		w.benign()
		return
	}
	groups := w.gate.groups()
	n := w.rand.IntN(100)
	switch {
	case w.process == nil && n < 60 && !(w.disk.full.Load() && n < 45): // it would end at once
		w.startAgain()
	case len(groups) > 20 && n < 80: // a survey
		w.burst(groups, 100)
	case len(groups) > 0 && n < 60:
		w.burst(groups, pick(w.rand, 1, 2, 5, 20))
	case len(groups) > 0 && n < 66:
		w.goOn(pick(w.rand, time.Second, 20*time.Second, 2*time.Minute), func([]*call) bool { return true })
	case len(groups) > 0 && n < 82:
		w.untilWrite()
		w.chooseFault(w.gate.groups())
	case n < 90 || len(groups) == 0 && n < 60:
		w.pass(pick(w.rand, 10*time.Millisecond, 250*time.Millisecond, time.Second, 5*time.Second, 30*time.Second, 2*time.Minute, 11*time.Minute))
	default:
		w.untilWrite()
		w.event()
	}
}

// mostReads is how many requests are let through while one that writes is waited for.
const mostReads = 60

// untilWrite lets requests through and time pass, half of the time, until a request waits
// that writes: there things go wrong in more ways.
func (w *world) untilWrite() {
	if w.rand.IntN(2) == 0 {
		return
	}
	for n := 0; n < mostReads && w.process != nil && w.writtenTo() == ""; n++ {
		if groups := w.gate.groups(); len(groups) > 0 {
			w.burst(groups, 1)
		} else {
			w.pass(20 * time.Second)
		}
	}
}

// mostOn is how many steps [world.goOn] takes at the most.
const mostOn = 300

// goOn lets time pass, and the requests through that may be, the first one first.
func (w *world) goOn(d time.Duration, may func([]*call) bool) {
	began := w.judge.elapsed
	for n := 0; n < mostOn && w.judge.elapsed-began < d && w.judge.objection == nil && w.process != nil; n++ {
		groups := w.gate.groups()
		if i := slices.IndexFunc(groups, may); i >= 0 {
			w.tell("let %s: %s", w.nameOf(groups[i]), w.let(groups[i]))
			w.stepped()
		} else {
			w.pass(min(5*time.Second, d))
		}
	}
}

// benign is the event that does least harm.
func (w *world) benign() {
	groups := w.gate.groups()
	switch {
	case w.process == nil:
		w.startAgain()
	case len(groups) > 0:
		w.burst(groups, 1)
	default:
		w.pass(time.Minute)
	}
}

// burst lets n requests through, one after the other.
func (w *world) burst(groups [][]*call, n int) {
	for ; n > 0 && len(groups) > 0; n-- {
		group := groups[w.rand.IntN(len(groups))]
		w.tell("let %s: %s", w.nameOf(group), w.let(group))
		w.stepped()
		groups = w.gate.groups()
	}
}

// nameOf tells of calls that look the same, and of how many wait besides.
func (w *world) nameOf(group []*call) string {
	return fmt.Sprintf("%s (%d of %d)", group[0].key(), len(group), len(w.gate.groups()))
}

func (w *world) chooseFault(groups [][]*call) {
	if len(groups) == 0 {
		return
	}
	if writes := slices.DeleteFunc(slices.Clone(groups), func(g []*call) bool { return !g[0].writes() }); len(writes) > 0 && w.rand.IntN(4) > 0 {
		groups = writes
	}
	group := groups[w.rand.IntN(len(groups))]
	c := group[0]
	if c.cluster == "git" {
		w.stats.fault("Git fails")
		for _, c := range group {
			w.gate.take(c)
			c.answer <- answer{err: errGit}
		}
		w.tell("fail %s: Git", c.key())
		w.stepped()
		return
	}
	f := &faults[w.rand.IntN(len(faults))]
	if f.fits != nil && !f.fits(c) {
		w.burst(groups, 1)
		return
	}
	w.tell("fail %s: %s", w.nameOf(group), f.name) // before: the answer sets the daemon going
	w.fail(f, group)
	w.stepped()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	before := time.Now()
	w.elapse(d)
	w.tell("time %s", time.Since(before))
	w.stepped()
}

// stepped ends a step. Each takes a little time, never the same: what began at two steps
// does not come to its deadline at one moment, where chance would say which is first.
func (w *world) stepped() {
	w.settle()
	took := 300*time.Microsecond + time.Duration(w.rand.IntN(1_000_000))
	time.Sleep(took)
	w.judge.elapsed += took
	w.letSlow()
	w.settleAll()
	w.fightOn()
	w.stats.now.steps++
	w.reap()
	w.judge.look()
}

// reap notices that a process is over.
func (w *world) reap() {
	w.reapRival()
	p := w.process
	if p == nil {
		return
	}
	if p.isDead() {
		w.tell("process %d died %s", p.number, p.struck)
		w.stats.situation("killed " + p.struck)
		w.finishInFlight(p)
		w.end(p)
		w.disk.keep()
		return
	}
	select {
	case <-p.over:
		w.ended(p)
		w.end(p)
		w.disk.keep()
	default:
	}
}

// ended objects to a daemon that ended for another reason than a full disk or a kill.
func (w *world) ended(p *process) {
	switch {
	case errors.Is(p.err, syscall.ENOSPC):
		w.stats.situation("ended, the disk is full")
	case p.err != nil && !p.isDead():
		w.judge.objectf("state", "process %d ended: %v", p.number, p.err)
	}
	w.tell("process %d is over", p.number)
}

// finishInFlight decides which requests of a dead process arrive all the same.
func (w *world) finishInFlight(p *process) {
	for _, c := range w.gate.of(p) {
		if c.writes() && !c.hole && w.clusters[c.cluster].away == "" && w.clusters[c.cluster].sick == "" && !w.clusters[c.cluster].rightsUp && w.rand.IntN(2) == 0 {
			a := w.serve(c)
			if a.response != nil {
				a.response.Body.Close()
			}
			w.tell("arrives late: %s", c.key())
		}
		w.gate.take(c)
		c.answer <- answer{err: errKilled}
	}
}

func (w *world) startAgain() {
	w.start()
	w.tell("start")
	w.stepped()
}

// shutDown ends what is left, so that the bubble can end.
func (w *world) shutDown() {
	w.killRival()
	if p := w.process; p != nil {
		p.struck = "at the end"
		p.die()
		w.end(p)
	}
	time.Sleep(lateTimeouts) // no time passes any more when this goroutine ends
}

// lateTimeouts is longer than what a daemon that has ended still waits for an answer to.
const lateTimeouts = 10 * time.Second
