// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
)

// notices are what watches tell the caller of live objects between two checks.
// They move the time of the next check of a target that waits for its objects, and
// nothing else: whatever they say, and if they are lost, the same checks decide the
// same. The zero value has no event, and nothing is watched. They are not stored.
type notices struct {
	requeueAt map[object.UnitTarget]time.Time // when a place with an event is checked, if that is before its turn
	watched   map[object.UnitTarget]bool      // places of which all objects are watched
	// doubted are the places of which the health may have changed since the last look,
	// whatever the state of their rollout.
	doubted map[object.UnitTarget]bool
	// fought counts, by place, the applies in a row that waited for the same as before and had to
	// change back what somebody else had changed: what happens there hastens nothing.
	fought map[object.UnitTarget]int

	// steady says that health never changes by itself: nobody looks at it before a
	// soak or a timeout ends. See [State.Foresee].
	steady bool
}

// fights counts an apply that waits; isFought says that it is one of [notices.fought]. It returns
// how many there were in a row.
func (n *notices) fights(waiting object.UnitTarget, isFought bool) int {
	if !isFought {
		delete(n.fought, waiting)
		return 0
	}
	if n.fought == nil {
		n.fought = map[object.UnitTarget]int{}
	}
	n.fought[waiting]++
	return n.fought[waiting]
}

// Requeue has a place checked at a time, if that is before its turn, because something
// happened to its objects. The first event since the last check counts.
func (s *State) Requeue(at object.UnitTarget, due time.Time) {
	if _, known := s.notices.requeueAt[at]; known {
		return
	}
	if s.notices.requeueAt == nil {
		s.notices.requeueAt = map[object.UnitTarget]time.Time{}
	}
	s.notices.requeueAt[at] = due
	s.look(at.Unit)
}

// Doubt has the health of a place looked at that nothing waits for: something happened to
// its objects. A place that changes all the time is looked at every maxCheck.
func (s *State) Doubt(doubtful object.UnitTarget) {
	u := s.Units[doubtful.Unit]
	if u == nil || u.Targets[doubtful.Target] == nil || s.notices.doubted[doubtful] {
		return
	}
	if s.notices.doubted == nil {
		s.notices.doubted = map[object.UnitTarget]bool{}
	}
	s.notices.doubted[doubtful] = true
	s.look(doubtful.Unit)
}

// Begins notes that a check of the place begins: it sees all that happened before.
func (s *State) Begins(at object.UnitTarget) {
	_, known := s.notices.requeueAt[at]
	if known || s.notices.doubted[at] {
		delete(s.notices.requeueAt, at)
		delete(s.notices.doubted, at)
		s.look(at.Unit)
	}
}

// Watch says which places are watched, and which of them with all their objects. Events of
// others are forgotten.
func (s *State) Watch(all map[object.UnitTarget]bool) {
	for at := range s.notices.requeueAt {
		if _, watched := all[at]; !watched {
			delete(s.notices.requeueAt, at)
			s.look(at.Unit)
		}
	}
	for at := range s.notices.watched {
		if !all[at] {
			delete(s.notices.watched, at)
			s.look(at.Unit)
		}
	}
	for at, whole := range all {
		if !whole || s.notices.watched[at] {
			continue
		}
		if s.notices.watched == nil {
			s.notices.watched = map[object.UnitTarget]bool{}
		}
		s.notices.watched[at] = true
		s.look(at.Unit)
	}
}

// IsWatched says that all objects of the place are watched.
func (s *State) IsWatched(at object.UnitTarget) bool { return s.notices.watched[at] }

// look has the unit looked at in the next Decide.
func (s *State) look(path config.UnitPath) {
	if u := s.Units[path]; u != nil {
		u.settled = false
	}
}

// minWatched is how soon a watched place is checked again without an event: pods are
// not watched, and their own status shows in no event of other objects.
const minWatched = 5 * time.Second

// pause is how long to wait for the next look at something that has been waited
// for since so long: a tenth of that, within limits.
func (n *notices) pause(at object.UnitTarget, waited, most time.Duration) time.Duration {
	if n.steady {
		return horizon
	}
	least := minCheck
	if n.watched[at] {
		least = minWatched
	}
	return min(max(waited/10, least), most)
}

// earlier is the earlier of a time and that at which an event has the place checked.
func (n *notices) earlier(at object.UnitTarget, due time.Time) time.Time {
	if requeue, ok := n.requeueAt[at]; ok && requeue.Before(due) {
		return requeue
	}
	return due
}
