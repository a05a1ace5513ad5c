// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/swell-sh/swell/config/document"
)

// Where is about units on targets: what is in all that is given. The zero value is
// everything.
type Where struct {
	Match   Match
	Targets []TargetName // or clusters
	Units   []UnitPath   // or folders of them
	Tenants []string
	Waves   []string

	optional bool // it may match nothing
}

// Place is a unit on a target, as far as a [Where] asks.
type Place struct {
	Unit   UnitPath
	Tenant string
	Target TargetName
	Labels map[string]string // of the target
	Wave   string            // the target's for the unit; empty where it has none
}

// Has says whether the place is in it.
func (w *Where) Has(at Place) bool {
	return w.Match.Matches(at.Labels) &&
		(len(w.Targets) == 0 || at.Target.in(w.Targets)) &&
		w.takesUnit(at.Unit) &&
		(len(w.Tenants) == 0 || slices.Contains(w.Tenants, at.Tenant)) &&
		(len(w.Waves) == 0 || slices.Contains(w.Waves, at.Wave))
}

// takesUnit says whether places of a unit may be in it; nil has none.
func (w *Where) takesUnit(unit UnitPath) bool {
	return w != nil && (len(w.Units) == 0 ||
		slices.ContainsFunc(w.Units, func(path UnitPath) bool { return Within(string(unit), string(path)) }))
}

// Mask keeps places from any write.
type Mask struct {
	Position document.Position
	Name     string
	Reason   string // may be empty
	Where    Where
	doc      *document.Document
}

// Window says when releases may start at places.
type Window struct {
	Position document.Position
	Name     string
	Reason   string // may be empty
	Deny     bool   // nothing starts in its time; else where it is about, all starts in its time
	Where    Where
	Time     Timetable
	doc      *document.Document
}
