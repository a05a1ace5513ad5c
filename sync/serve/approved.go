// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strings"
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync"
	"github.com/swell-sh/swell/sync/order"
	"github.com/swell-sh/swell/sync/store"
)

// Approved is an approval that somebody gave: of a plan of deletions, or of the start of a wave.
type Approved struct {
	// Digest is the plan's or the gate's; only its beginning is known of what the history tells.
	Digest object.Digest   `json:"digest"`
	Unit   config.UnitPath `json:"unit,omitempty"` // empty: the whole fleet
	Wave   string          `json:"wave,omitempty"` // of a gate; empty for a plan
	By     string          `json:"by"`
	Since  time.Time       `json:"since,omitzero"` // zero: nobody knows any more
}

// Text continues "plan x is already".
func (a *Approved) Text() string {
	text := "approved"
	if !a.Since.IsZero() {
		text += " since " + a.Since.UTC().Format(time.RFC3339)
	}
	return text + " by " + a.By
}

// Word is what was approved, "plan" or "gate".
func (a *Approved) Word() string {
	if a.Wave != "" {
		return "gate"
	}
	return "plan"
}

// Already returns the approval of the digest that begins with the digits, or of which only the
// beginning is known; nil when there is none, or when there are several.
func (p *Approvals) Already(digits string) (found *Approved) {
	for i := range p.Approved {
		a := &p.Approved[i]
		if !strings.HasPrefix(string(a.Digest), digits) && !strings.HasPrefix(digits, string(a.Digest)) {
			continue
		}
		if found != nil && found.Digest != a.Digest {
			return nil
		}
		found = a
	}
	return found
}

// addApproved adds what was approved. Of what still waits it adds approvals that the daemon has
// still to take up, and no earlier ones, which do not count any more.
func (v View) addApproved(p *Approvals) error {
	waits, known := map[string]bool{}, map[string]bool{}
	for _, plan := range p.Plans {
		waits[plan.Digest.Short()] = true
	}
	for _, ask := range p.Asks {
		waits[ask.Digest.Short()] = true
	}
	add := func(a Approved, taken bool) {
		if short := a.Digest.Short(); !known[short] && !(taken && waits[short]) {
			known[short] = true
			p.Approved = append(p.Approved, a)
		}
	}
	plans, err := v.Store.Approvals()
	if err != nil {
		return err
	}
	for _, a := range plans {
		unit, whole := p.covered(&a)
		add(Approved{Digest: a.Digest, Unit: unit, By: a.By, Since: a.At.UTC()}, !whole)
	}
	if err := v.addApprovedGates(add); err != nil {
		return err
	}
	old, err := v.Store.ApprovedPlans(maxApproved)
	for _, a := range old {
		add(Approved{Digest: a.Digest, Unit: a.Unit, By: a.By, Since: a.Since.UTC()}, true)
	}
	return err
}

// maxApproved is how many plans that were carried out are looked for in the history.
const maxApproved = 200

// covered returns the unit of the plan that an approval is about, and says whether all that
// the plan deletes is approved: some of it may have been taken back.
func (p *Approvals) covered(a *store.Approval) (unit config.UnitPath, whole bool) {
	for _, plan := range p.Plans {
		if plan.Digest == a.Digest {
			missing := slices.ContainsFunc(plan.Deletions, func(d store.Deletion) bool { return !slices.ContainsFunc(a.Deletions, d.Same) })
			return plan.Unit, !missing
		}
	}
	return "", false
}

// addApprovedGates adds the starts of waves that were approved, by orders and by rollouts.
func (v View) addApprovedGates(add func(a Approved, taken bool)) error {
	orders, err := v.Store.Orders()
	if err != nil {
		return err
	}
	standing, err := v.Store.Standing()
	if err != nil {
		return err
	}
	state, err := sync.LoadState(v.Store)
	if err != nil {
		return err
	}
	addOrders := func(all []order.Order, taken bool) {
		for i := range all {
			if o := &all[i]; o.Verb == order.Approve && !o.Over(v.now()) {
				add(Approved{Digest: o.Digest, Unit: o.Scope.Unit, Wave: o.Scope.Wave, By: o.By, Since: o.At}, taken)
			}
		}
	}
	addOrders(orders, false)
	addOrders(standing, true)
	for path, u := range state.Units {
		for _, g := range u.Rollout.Gates {
			if g.Passed && g.By != "" && g.Digest != "" {
				add(Approved{Digest: g.Digest, Unit: path, Wave: u.Rollout.Spec.Waves[g.Wave].Name, By: g.By}, true)
			}
		}
	}
	return nil
}
