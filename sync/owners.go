// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"fmt"
	"time"

	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/ownership"
	"github.com/swell-sh/swell/sync/rollout"
	"github.com/swell-sh/swell/sync/store"
)

// owners is what is known of owners now, by what the store, or a transaction, says.
func (d *Daemon) owners(inventory ownership.Inventory) *ownership.View {
	return &ownership.View{Snapshot: d.monorepo.snapshot, Refused: d.monorepo.wanted.Refused() != "", Broken: d.monorepo.broken, State: d.state, Store: inventory,
		Wants: d.monorepo.wants, Bundle: d.monorepo.bundle, Rebuilding: d.rebuilding}
}

// selectPrunable sorts out what of the job's inventory its unit does not want any more.
func (p *pass) selectPrunable(j *executor.Job) {
	l := p.owners(p.tx).Leftovers(j.Place(), j.Bundle, j.Inventory)
	j.Prunable, j.Kept, j.Moved, j.Left = l.Prunable, l.Kept, l.Moved, l.Left
}

// transferOwnership makes the units that wanted the objects which the job's unit gave up
// send them once more, where the last that was written there is not theirs. anew
// are their entries of objects that were made anew since they knew of them: should
// they come to delete one, it is to be the one that is there.
func (p *pass) transferOwnership(j *executor.Job, now time.Time) (anew []store.Entry, err error) {
	for _, h := range j.Released {
		inventory, err := p.tx.Inventory(h.To.Unit, h.To.Target)
		if err != nil {
			return nil, err
		}
		if entry, ok := inventory[h.ID]; !ok || entry.Digest != "" || entry.UID == "" {
			continue // not written there yet, or written last
		} else if h.Digest != "" && h.UID != entry.UID {
			entry.UID = h.UID
			anew = append(anew, entry)
		}
		p.r.Transitions = append(p.r.Transitions, p.state.Record(rollout.Outcome{
			Action: rollout.Action{Kind: rollout.Sweep, Unit: h.To.Unit, Target: h.To.Target},
			Result: rollout.Drifted,
			Reason: fmt.Sprintf("%s: was written by unit %s, which gave it up", h.ID, j.Unit),
		}, now)...)
	}
	return anew, nil
}
