// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/swell-sh/swell/config/document"
)

// whereSpec is Where as it is written.
type whereSpec struct {
	Match                          matchSpec
	Targets, Units, Tenants, Waves []string
	Optional                       bool
}

func (r *reading) where(spec whereSpec) Where {
	w := Where{Tenants: spec.Tenants, Waves: spec.Waves, optional: spec.Optional}
	w.Match = r.match(spec.Match, "spec", "where", "match")
	for _, name := range spec.Targets {
		w.Targets = append(w.Targets, TargetName(name))
	}
	for i, path := range spec.Units {
		clean := CleanUnitPath(path)
		if clean == "" {
			r.at("spec", "where", "units", i).problem(document.CodeType, "%q: want the path of a unit, or of a folder of units, from the root of the monorepo", document.Shorten(path))
		}
		w.Units = append(w.Units, clean)
	}
	return w
}

// CleanUnitPath is a path as units have it, where it is written with what can mean one thing
// only: ./ or / before it, / after it. It is empty where it is none below the root.
func CleanUnitPath(written string) UnitPath {
	clean := path.Clean(strings.TrimLeft(written, "/"))
	if written == "" || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return ""
	}
	return UnitPath(clean)
}

func (l *loader) loadMask(doc *document.Document) {
	var spec struct {
		Reason string
		Where  whereSpec
	}
	in := readOwn(doc, &spec)
	in.name("")
	m := &Mask{Position: doc.Position(), doc: doc, Name: doc.Name, Reason: spec.Reason, Where: in.where(spec.Where)}
	if document.Lookup(document.Lookup(doc.Node, "spec"), "where") == nil {
		in.at("spec", "where").problem(document.CodeFleet, `missing: say what is masked, like {targets: [sas-1]}; swell mask --all masks everything`)
	}
	in.reason(spec.Reason)
	l.problem(in.problems()...)
	l.repository.Masks = append(l.repository.Masks, m)
}

func (l *loader) loadWindow(doc *document.Document) {
	var spec struct {
		Action, Schedule, Duration, TimeZone, Reason string
		Where                                        whereSpec
	}
	in := readOwn(doc, &spec)
	in.name("")
	w := &Window{Position: doc.Position(), doc: doc, Name: doc.Name, Reason: spec.Reason, Deny: spec.Action == "deny", Where: in.where(spec.Where),
		Time: Timetable{Schedule: spec.Schedule, TimeZone: spec.TimeZone, Duration: duration(spec.Duration)}}
	if spec.Action != "deny" && spec.Action != "allow" {
		in.at("spec", "action").problem(document.CodeType, "want deny or allow, got %q", spec.Action)
	}
	if field, err := w.Time.check(); err != nil {
		in.at("spec", field).problem(document.CodeType, "%s", err)
	}
	in.reason(spec.Reason)
	l.problem(in.problems()...)
	l.repository.Windows = append(l.repository.Windows, w)
}

func (r *reading) reason(text string) {
	if !document.IsPrintable(text) {
		r.at("spec", "reason").problem(document.CodeType, "want one line whose characters all show")
	}
}

// checkWheres finds masks and windows that are about nothing in the fleet: mostly a
// mistyped name, which would silently let writes through.
func (l *loader) checkWheres() {
	waves := map[string]bool{}
	for _, r := range l.repository.Rollouts {
		for i := range r.Waves {
			waves[r.Waves[i].Name] = true
		}
	}
	for doc, where := range l.protecting() {
		l.checkWhere(doc, where, waves)
	}
}

// protecting are where the masks and windows are that have to match something.
func (l *loader) protecting() iter.Seq2[*document.Document, *Where] {
	return func(yield func(*document.Document, *Where) bool) {
		for _, m := range l.repository.Masks {
			if !m.Where.optional && !yield(m.doc, &m.Where) {
				return
			}
		}
		for _, w := range l.repository.Windows {
			if !w.Where.optional && !yield(w.doc, &w.Where) {
				return
			}
		}
	}
}

func (l *loader) checkWhere(doc *document.Document, where *Where, waves map[string]bool) {
	if why := l.repository.WhyNoTarget(where.Match); why != "" {
		l.idleInFleet(IdleAt(doc, document.CodeFleet, "", why, "spec", "where", "match"))
	}
	for i, name := range where.Targets {
		if why, hint := l.repository.whyNoName(name); why != "" {
			l.idleInFleet(IdleAt(doc, document.CodeFleet, hint, why, "spec", "where", "targets", i))
		}
	}
	for i, name := range where.Waves {
		if !waves[name] {
			hint := document.DidYouMean(name, slices.Collect(maps.Keys(waves)))
			l.idleInFleet(IdleAt(doc, document.CodeFleet, hint, "no rollout has a wave "+document.Shorten(name), "spec", "where", "waves", i))
		}
	}
	for i, name := range where.Tenants {
		if tenants := l.repository.Tenants; len(tenants) > 0 && tenants[name] == nil {
			hint := document.DidYouMean(name, slices.Collect(maps.Keys(tenants)))
			why := fmt.Sprintf("%q: no such Tenant in the fleet", document.Shorten(name))
			l.idleInFleet(IdleAt(doc, document.CodeFleet, hint, why, "spec", "where", "tenants", i))
		}
	}
}

// checkWhereUnits finds units and folders that masks and windows name and that are not there,
// and tenants that no unit has, where tenants are plain names.
func (l *loader) checkWhereUnits() {
	known := sync.OnceValue(l.knownUnits) // mostly nobody asks
	for doc, where := range l.protecting() {
		l.checkWhereOfUnits(doc, where, known)
	}
}

// knownUnits are the paths of units and of the folders above them, and their tenants.
type knownUnits struct{ paths, tenants map[string]bool }

func (l *loader) knownUnits() knownUnits {
	known := knownUnits{map[string]bool{}, map[string]bool{}}
	for unit := range l.repository.Units() {
		if tenant := unit.Defaults.Tenant; tenant != "" {
			known.tenants[tenant] = true
		}
		for folder := string(unit.Path); folder != "." && !known.paths[folder]; folder = path.Dir(folder) {
			known.paths[folder] = true
		}
	}
	return known
}

func (l *loader) checkWhereOfUnits(doc *document.Document, where *Where, known func() knownUnits) {
	for i, name := range where.Units {
		if name != "" && !known().paths[string(name)] { // an empty one has a problem already
			hint := document.DidYouMean(string(name), slices.Collect(maps.Keys(known().paths)))
			why := fmt.Sprintf("%q: no such unit, or folder of units", document.Shorten(string(name)))
			l.idleInUnits(IdleAt(doc, document.CodeReference, hint, why, "spec", "where", "units", i))
		}
	}
	if len(l.repository.Tenants) > 0 {
		return // the fleet says who there is
	}
	for i, name := range where.Tenants {
		if !known().tenants[name] {
			hint := document.DidYouMean(name, slices.Collect(maps.Keys(known().tenants)))
			why := fmt.Sprintf("%q: no unit has this tenant", document.Shorten(name))
			l.idleInUnits(IdleAt(doc, document.CodeReference, hint, why, "spec", "where", "tenants", i))
		}
	}
}

// releaseSpec is Release as it is written.
type releaseSpec struct {
	Tiers  []string
	Budget struct{ FailedUnits, Units, UnitsPerTarget *int }
}

// release reads how commits that change many units are released.
func (r *reading) release(spec releaseSpec) Release {
	release := Release{Tiers: spec.Tiers, Budget: Budget{FailedUnits: spec.Budget.FailedUnits}}
	for i, tier := range spec.Tiers {
		switch {
		case tier == "":
			r.at("spec", "release", "tiers", i).problem(document.CodeType, "want a value of the label %q", TierLabel)
		case slices.Contains(spec.Tiers[:i], tier):
			r.at("spec", "release", "tiers", i).problem(document.CodeFleet, "%q is there twice", document.Shorten(tier))
		}
	}
	for _, bound := range []struct {
		field       string
		value       *int
		least, most int
		to          *int
	}{
		{"failedUnits", spec.Budget.FailedUnits, 0, 1000, nil},
		{"units", spec.Budget.Units, 1, 10000, &release.Budget.Units},
		{"unitsPerTarget", spec.Budget.UnitsPerTarget, 1, 10000, &release.Budget.UnitsPerTarget},
	} {
		if bound.value == nil {
			continue
		}
		if *bound.value < bound.least || *bound.value > bound.most {
			r.at("spec", "release", "budget", bound.field).problem(document.CodeType, "want from %d to %d, got %d", bound.least, bound.most, *bound.value)
		}
		if bound.to != nil {
			*bound.to = *bound.value
		}
	}
	return release
}
