// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"sync/atomic"
	"time"
)

// A daemon never changes its options. For others, its process opens another daemon on the
// same store, which goes on where this one stopped: what matters is stored.

// handOverPatience is how long jobs under way may take to end by themselves when the
// daemon hands over. After that they are cut short, as by an interrupt.
const handOverPatience = 10 * time.Second

// handing is the way of a daemon to its successor.
type handing struct {
	asked chan struct{}          // told when there is one
	over  bool                   // the Leases are not given back: the successor has them
	file  atomic.Pointer[string] // see [Daemon.SetConfigurationProblem]
}

func newHanding() handing { return handing{asked: make(chan struct{}, 1)} }

// HandOver has Run return after the pass under way, for another daemon of this process
// on the same store. Nobody else can take the Leases in between. It is safe for concurrent
// use.
func (d *Daemon) HandOver() {
	select {
	case d.handing.asked <- struct{}{}:
	default:
	}
}

// SetConfigurationProblem has a condition say why a changed configuration is not in force;
// empty: it is. It is safe for concurrent use.
func (d *Daemon) SetConfigurationProblem(text string) {
	d.handing.file.Store(&text)
	d.wake()
}

// configurationProblem is what was last set.
func (d *Daemon) configurationProblem() string {
	if text := d.handing.file.Load(); text != nil {
		return *text
	}
	return ""
}
