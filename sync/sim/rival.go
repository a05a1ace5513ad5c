// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"os"
	"path/filepath"
)

// A second daemon may follow the same monorepo to the same clusters, with a copy of the
// state or with none: the Leases keep the two apart. It is the rival until it writes for
// the first time; from then on the other one is.

// startRival starts a second daemon.
func (w *world) startRival() string {
	if w.rival != nil || w.process == nil {
		return ""
	}
	w.rivals++
	d := &disk{world: w, dir: filepath.Join(w.dir, fmt.Sprintf("rival-%d", w.rivals)), memory: newMemory()}
	text := "with no state"
	if n := len(w.disk.copies); n > 0 && w.rand.IntN(3) > 0 {
		d.putBack(w.disk.copies[n-1])
		d.memory, text = w.disk.copies[n-1].memory.clone(), "with a copy of the state"
	}
	if w.rival = w.run(d); w.rival == nil {
		return ""
	}
	w.rival.second = true
	w.judge.lineages++
	w.judge.lineage[w.rival.number] = w.judge.lineages
	return fmt.Sprintf("process %d %s", w.rival.number, text)
}

// killRival kills the second daemon.
func (w *world) killRival() string {
	p := w.rival
	if p == nil {
		return ""
	}
	p.struck = "beside another one"
	p.die()
	w.endRival()
	return fmt.Sprint(p.number)
}

// endRival buries a second daemon that is over.
func (w *world) endRival() {
	p := w.rival
	w.finishInFlight(p)
	w.end(p)
	if err := os.RemoveAll(p.disk.dir); err != nil {
		panic(err)
	}
}

// reapRival notices that the second daemon is over.
func (w *world) reapRival() {
	if p := w.rival; p != nil {
		select {
		case <-p.over:
			w.ended(p)
			w.endRival()
		default:
		}
	}
}

// takeOver makes the rival the daemon that is talked to, and the other one the rival.
func (w *world) takeOver() {
	w.tell("process %d takes over", w.rival.number)
	w.stats.situation("a second daemon takes over")
	w.disk.memory = w.judge.memory
	before, after := w.process, w.rival
	w.disk, w.process, w.rival = after.disk, after, before
	if after.second = false; before != nil {
		before.second = true
	}
	w.judge.takenOver(after)
}
