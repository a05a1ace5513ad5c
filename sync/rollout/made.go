// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"maps"

	"github.com/swell-sh/swell/config"
)

// Makes notes how many objects of each sort are about to be made on a target, that
// the cluster did not have before. Sorts are the caller's, see package approval.
func (s *State) Makes(path config.UnitPath, name config.TargetName, sorts map[string]int) {
	u := s.Units[path]
	if u == nil || u.Targets[name] == nil || len(sorts) == 0 {
		return
	}
	t := u.Targets[name]
	made := maps.Clone(t.Made)
	if made == nil {
		made = map[string]int{}
	}
	for sort, n := range sorts {
		made[sort] += n
	}
	t.Made = made
	s.touch(path)
}

// Loses takes in that objects of the sorts were deleted on a target, and returns
// how many of them were not replaced.
func (s *State) Loses(path config.UnitPath, name config.TargetName, sorts []string) (lost int) {
	u := s.Units[path]
	if u == nil || u.Targets[name] == nil {
		return len(sorts)
	}
	t := u.Targets[name]
	left := maps.Clone(t.Made)
	for _, sort := range sorts {
		if left[sort] == 0 {
			lost++
			continue
		}
		if left[sort]--; left[sort] == 0 {
			delete(left, sort)
		}
	}
	if len(sorts) > lost {
		if len(left) == 0 {
			left = nil // an empty map is not stored
		}
		t.Made = left
		s.touch(path)
	}
	return lost
}

// CapMade limits the made objects of each sort on a target to the objects that are left
// to delete there: more of them replace nothing.
func (s *State) CapMade(path config.UnitPath, name config.TargetName, left map[string]int) {
	u := s.Units[path]
	if u == nil || u.Targets[name] == nil {
		return
	}
	t := u.Targets[name]
	var made map[string]int // an empty map is not stored
	for sort, n := range t.Made {
		if n = min(n, left[sort]); n > 0 {
			if made == nil {
				made = map[string]int{}
			}
			made[sort] = n
		}
	}
	if !maps.Equal(made, t.Made) {
		t.Made = made
		s.touch(path)
	}
}
