// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
)

// policy is how the newest commit wants a unit to treat, on a target, what
// others do; zero values when it does not know the unit.
func (d *Daemon) policy(path config.UnitPath, target config.TargetName) (config.Adoption, []config.IgnoreRule) {
	return policyIn(d.snapshot, path, target)
}

func policyIn(s *render.Snapshot, path config.UnitPath, target config.TargetName) (config.Adoption, []config.IgnoreRule) {
	if s == nil {
		return "", nil
	}
	unit := s.Units.Get(path)
	if unit == nil {
		return "", nil
	}
	on := unit.On(target)
	if on == nil {
		return unit.Policy.Adopt, nil
	}
	return unit.Policy.Adopt, unit.Policy.IgnoredOn(on.Target.Labels)
}
