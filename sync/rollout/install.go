// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import "github.com/swell-sh/swell/render/object"

// proven says that the unit was well on the target once, as far as the state knows.
func (t *Target) proven() bool {
	return t.Installed || t.Good != "" || len(t.Ran) > 0 || t.Applied != "" && t.Health == HealthGood
}

// eventOf is the rule which of its hooks a bundle runs on the target. A bundle installs the
// unit while no bundle was healthy there; so does the fixed bundle after one that failed.
// The bundle that installed it keeps that event until another one is written, so that a
// correction of drift runs no hooks of an upgrade.
func (t *Target) eventOf(digest object.Digest) object.Event {
	if !t.proven() && !t.Existed || digest != "" && t.Installing == digest {
		return object.Install
	}
	return object.Upgrade
}

// EventOf returns the event that a bundle is to a unit on a target, as far as the state
// knows; proven says that no look at the cluster could change that. A target that the state
// does not know is one of an install.
func (s *State) EventOf(unitTarget object.UnitTarget, digest object.Digest) (event object.Event, proven bool) {
	t := s.target(unitTarget)
	if t == nil {
		return object.Install, false
	}
	return t.eventOf(digest), t.proven()
}

// BeginsAs notes the event of a bundle that is about to be written. differs says that its
// hooks differ by it. It must be stored before the first write.
func (s *State) BeginsAs(unitTarget object.UnitTarget, digest object.Digest, event object.Event, differs bool) {
	t, installing := s.target(unitTarget), object.Digest("")
	if event == object.Install && differs {
		installing = digest
	}
	if t != nil && t.Installing != installing {
		t.Installing = installing
		s.touch(unitTarget.Unit)
	}
}

// Recovers notes that objects of the unit were found on the target after the state was lost.
func (s *State) Recovers(unitTarget object.UnitTarget) {
	if t := s.target(unitTarget); t != nil && !t.Installed {
		t.Installed = true
		s.touch(unitTarget.Unit)
	}
}

func (s *State) target(unitTarget object.UnitTarget) *Target {
	if u := s.Units[unitTarget.Unit]; u != nil {
		return u.Targets[unitTarget.Target]
	}
	return nil
}

// found notes the event that the objects in the cluster tell of, before swell writes any.
func (t *Target) found(event object.Event) {
	if event != "" {
		t.Existed, t.Installing = event == object.Upgrade, ""
	}
}
