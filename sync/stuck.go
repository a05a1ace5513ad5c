// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/executor"
	"github.com/swell-sh/swell/sync/rollout"
)

// freesPods says whether a job may delete a pod that a StatefulSet of its bundle waits for
// and never replaces. spares says why neither swell nor an operator is to, in a few words.
//
// Where drift is only reported, swell writes for releases alone: a look that belongs to
// none names the command.
func (d *Daemon) freesPods(j *executor.Job) (frees bool, spares string) {
	if !slices.ContainsFunc(j.Bundle.Objects, func(o *object.Object) bool { return apply.HoldsPodsBack(o.ID) }) {
		return false, ""
	}
	if why := d.masked(j.Place()); why != "" {
		return false, why
	}
	if why := d.state.Paused(d.monorepo.wanted, j.Place(), d.clock.now()); why != "" {
		return false, why
	}
	return j.Why != rollout.WhyRetry || d.sweeps.modes.Of(j.Unit, j.Target) == config.DriftCorrect, ""
}
