// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import "time"

// Notices are what the caller hears of live objects between two looks at them.
// They move the time of the next look at a target that waits for its objects,
// and nothing else: whatever they say, and if they are lost, the same looks
// decide the same. The zero value has heard nothing, and hears nothing.
//
// The caller changes them between [State.Decide] and the next; they are not
// stored.
type Notices struct {
	// Stirred says of a place at which something happened when to look, if that
	// is before its turn. The caller takes it away when it begins to look.
	Stirred map[Place]time.Time
	// Heard are the places at which whatever happens is noticed.
	Heard map[Place]bool
}

// minHeard is how soon a place that is heard is looked at again if nothing is
// noticed: what pods say about themselves shows in nothing that is heard.
const minHeard = 5 * time.Second

// pause is how long to wait for the next look at something that has been waited
// for since so long: a tenth of that, within limits.
func (n *Notices) pause(at Place, waited, most time.Duration) time.Duration {
	least := minCheck
	if n.Heard[at] {
		least = minHeard
	}
	return min(max(waited/10, least), most)
}

// stirs is the earlier of a time and that at which the place is to be looked at
// because something happened there.
func (n *Notices) stirs(at Place, due time.Time) time.Time {
	if stirred, ok := n.Stirred[at]; ok && stirred.Before(due) {
		return stirred
	}
	return due
}
