// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/executor"
)

// changing are the objects that a release which has yet to prove itself changed where a job
// looks at its health, each as it was before. It is asked for only where drift is left as it
// is: everywhere else any drift keeps a target from being done.
func (p *pass) changing(j *executor.Job) map[object.ID]*object.Object {
	earlier, proves := p.state.Proves(j.Place())
	if !proves || len(j.Work.Tolerated) == 0 {
		return nil
	}
	before := map[object.ID]*object.Object{}
	if earlier.Digest != "" {
		bundle, err := p.monorepo.bundle(earlier)
		if err != nil || bundle == nil {
			bundle = &object.Bundle{} // its commit is gone: anything may be new
		}
		for _, o := range bundle.Objects {
			before[o.ID] = o
		}
	}
	changing := map[object.ID]*object.Object{}
	for _, o := range j.Bundle.Objects {
		if was := before[o.ID]; j.Work.Tolerated[o.ID] && (was == nil || was.Digest != o.Digest) {
			changing[o.ID] = was
		}
	}
	return changing
}
