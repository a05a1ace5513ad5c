// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/store"
)

// withoutIgnored is a drift without the fields that the unit's policy leaves to
// others; ok is false when nothing is left of it.
func (d *Daemon) withoutIgnored(drift apply.Drift) (_ apply.Drift, ok bool) {
	if drift.Missing || len(drift.Changes) == 0 {
		return drift, true
	}
	rules := d.ignoreRules(drift.Entry.Of())
	if len(rules) == 0 {
		return drift, true
	}
	drift.Changes = slices.DeleteFunc(slices.Clone(drift.Changes), func(c apply.Change) bool {
		return c.Field != "" && slices.ContainsFunc(rules, func(rule config.IgnoreRule) bool { return ignores(rule, drift.Entry.ID, c.Field) })
	})
	return drift, len(drift.Changes) > 0
}

// ignoreRules are those of the newest commit that hold for an object's target.
func (d *Daemon) ignoreRules(of store.Object) []config.IgnoreRule {
	if d.snapshot == nil {
		return nil
	}
	unit := d.snapshot.Units.Get(of.Unit)
	if unit == nil {
		return nil
	}
	on := unit.On(of.Target)
	if on == nil {
		return nil
	}
	return unit.Policy.IgnoredOn(on.Target.Labels)
}

// ignores says whether a rule names the field of an object, or what it is in. An
// index in a pointer names no item of a list whose items have keys.
func ignores(rule config.IgnoreRule, id render.ObjectID, field string) bool {
	if rule.Kind != id.Kind || rule.Object != "" && rule.Object != id.Name {
		return false
	}
	return slices.ContainsFunc(rule.Fields, func(pointer string) bool {
		rest, ok := strings.CutPrefix(field, apply.PointerField(pointer))
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}
