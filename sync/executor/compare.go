// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"

	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/rollout"
)

// compare looks whether the bundle is live, and all that the unit has. It writes nothing.
func (j *Job) compare(ctx context.Context, conn *apply.Cluster) {
	if len(j.Foreign) > 0 || len(j.LeftBehind()) > 0 {
		j.Ended(rollout.Differs, "")
		return
	}
	for _, preview := range conn.As(j.Account).Preview(ctx, j.Work) {
		switch {
		case ctx.Err() != nil:
			return
		case preview.Err != nil:
			j.Lost = lost(preview.Err)
			j.Ended(j.classify(preview.Err), textOf(preview.Err))
			return
		case preview.Action != apply.Unchanged:
			j.Ended(rollout.Differs, "")
			return
		}
	}
	j.Ended(rollout.Same, "")
}
