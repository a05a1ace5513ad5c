// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"slices"
	"time"

	"github.com/swell-sh/swell/sync/order"
)

// clock is what passes know of the time. They go by the wall: people read it, and Windows are
// about it. When it is set, all that waits for an amount of time is moved by as much, so that
// none of it gets longer or shorter. It is used by the pass only.
type clock struct {
	wall   func() time.Time
	steady func() time.Duration // goes on evenly, since any moment

	lastWall   time.Time // of the last pass
	lastSteady time.Duration

	set   time.Duration // the last step that is told of
	setAt time.Time
}

const (
	// leastStep is what the two clocks may be apart from one pass to the next.
	leastStep = 100 * time.Millisecond
	// toldStep is from when on a step is told of, for an hour.
	toldStep = time.Minute
	tellFor  = time.Hour
)

func newClock(wall func() time.Time, steady func() time.Duration) clock {
	c := clock{wall: wall, steady: steady}
	c.lastWall, c.lastSteady = c.read()
	return c
}

// tick begins a pass: the time by the wall, and by how much it was set since the last one.
func (c *clock) tick() (now time.Time, step time.Duration) {
	now, steady := c.read()
	if step = now.Sub(c.lastWall) - (steady - c.lastSteady); step.Abs() < leastStep {
		step = 0
	}
	c.lastWall, c.lastSteady = now, steady
	if !c.setAt.IsZero() {
		c.setAt = c.setAt.Add(step)
	}
	c.tell(step)
	return now, step
}

// read reads both clocks at one moment, or nearly so: between two readings the process may have
// to wait for a processor.
func (c *clock) read() (wall time.Time, steady time.Duration) {
	for range 5 {
		before := c.steady()
		wall = c.wall().Round(0) // two times of one process would be compared by their steady part
		if steady = c.steady(); steady-before < leastStep/2 {
			break
		}
	}
	return wall, steady
}

// now is the time within a pass, by the wall as it was when the pass began.
func (c *clock) now() time.Time { return c.lastWall.Add(c.steady() - c.lastSteady) }

// tell has a step told of, if it is a large one.
func (c *clock) tell(step time.Duration) {
	if step.Abs() >= toldStep {
		c.set, c.setAt = step, c.lastWall
	}
}

// until is how long it is until a time that the last pass named.
func (c *clock) until(due time.Time) time.Duration {
	return due.Sub(c.now())
}

// condition tells of a clock that was set lately; empty when none was.
func (c *clock) condition() string {
	if c.setAt.IsZero() || c.lastWall.Sub(c.setAt) >= tellFor {
		return ""
	}
	way := "forward"
	if c.set < 0 {
		way = "back"
	}
	return fmt.Sprintf("the clock of this machine was set %s by %s at %s, or the machine slept: "+
		"soaks, timeouts and orders with --for last as long as before; Windows and --until go by the clock",
		way, c.set.Abs().Round(time.Second), c.setAt.UTC().Format(time.RFC3339))
}

// begin begins the record of a pass. What waits for an amount of time is moved by a step of the
// clock first.
func (d *Daemon) begin() Record {
	now, step := d.clock.tick()
	if step != 0 {
		d.orders.shift(step, func(*order.Order) bool { return true })
		d.sweeps.timetable.Shift(step, now)
		d.shift(step)
	}
	return Record{At: now, Err: d.failed}
}

// openClock begins at what the state knows to be over, if it knows of anything: a clock that
// shows an earlier time was set back since. Orders in force were given before that.
func (d *Daemon) openClock(inForce order.Standing) {
	known := d.state.Latest()
	if latest := d.sweeps.ledger.Latest(); latest.After(known) {
		known = latest
	}
	d.clock = newClock(d.Now, d.Steady)
	now := d.clock.lastWall
	if ahead := known.Sub(now); !known.IsZero() && ahead >= leastStep {
		d.clock.tell(-ahead)
		d.orders.shift(-ahead, func(o *order.Order) bool { // those that wait are moved when they are taken
			return slices.ContainsFunc(inForce, func(known order.Order) bool { return known.Seq == o.Seq })
		})
		d.shift(-ahead)
	}
}

// shift moves what waits for an amount of time by a step of the clock.
func (d *Daemon) shift(step time.Duration) {
	d.state.Shift(step)
	d.sweeps.ledger.Shift(step)
	d.informer.Shift(step)
	d.branch.next = d.branch.next.Add(step)
	for name, due := range d.surveys.due {
		if !due.IsZero() {
			d.surveys.due[name] = due.Add(step)
		}
	}
}

// shift moves the ends of orders that were given for an amount of time.
func (o *orders) shift(step time.Duration, isConcerned func(*order.Order) bool) {
	o.standing = slices.Clone(o.standing)
	for i := range o.standing {
		if standing := &o.standing[i]; standing.Relative && isConcerned(standing) {
			standing.Until = standing.Until.Add(step)
			o.moved = append(o.moved, *standing)
		}
	}
}

// saveMoved stores the ends of orders that were moved with the clock.
func (p *pass) saveMoved() error {
	for i := range p.orders.moved {
		if err := p.tx.PutEnd(&p.orders.moved[i]); err != nil {
			return err
		}
	}
	p.orders.moved = nil
	return nil
}
