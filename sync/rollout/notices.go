// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/swell-sh/swell/render"
)

// Notices are what watches tell the caller of live objects between two checks.
// They move the time of the next check of a target that waits for its objects, and
// nothing else: whatever they say, and if they are lost, the same checks decide the
// same. The zero value has no event, and nothing is watched.
//
// The caller changes them between [State.Decide] and the next; they are not
// stored.
type Notices struct {
	// RequeueAt is when a place with an event is checked, if that is before its
	// turn. The caller deletes it when the check begins.
	RequeueAt map[render.Placed]time.Time
	// Watched are the places of which all objects are watched.
	Watched map[render.Placed]bool

	// unwatched says that health never changes by itself: nobody looks at it before a
	// soak or a timeout ends. See [State.Foresee].
	unwatched bool
}

// minWatched is how soon a watched place is checked again without an event: pods are
// not watched, and their own status shows in no event of other objects.
const minWatched = 5 * time.Second

// pause is how long to wait for the next look at something that has been waited
// for since so long: a tenth of that, within limits.
func (n *Notices) pause(at render.Placed, waited, most time.Duration) time.Duration {
	if n.unwatched {
		return horizon
	}
	least := minCheck
	if n.Watched[at] {
		least = minWatched
	}
	return min(max(waited/10, least), most)
}

// earlier is the earlier of a time and that at which an event has the place checked.
func (n *Notices) earlier(at render.Placed, due time.Time) time.Time {
	if requeue, ok := n.RequeueAt[at]; ok && requeue.Before(due) {
		return requeue
	}
	return due
}
