// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Protection is a rule that keeps something from happening to a unit or by it.
type Protection struct {
	// Rule is its kind and name: "Tenant shop", "policy replicas", "Checker nginx", "gate approval".
	Rule string `json:"rule"`
	// Position is the line that says so.
	Position document.Position `json:"at"`
	// Matches counts the parts of the unit that the rule is about, and Noun names them: "objects",
	// "texts", "targets", "files".
	Matches int    `json:"matches"`
	Noun    string `json:"of"`
	// Says is the rule in short; may be empty.
	Says string `json:"says,omitempty"`
}

// Text is how much the rule matches: "2 objects".
func (p *Protection) Text() string { return document.Count(p.Matches, strings.TrimSuffix(p.Noun, "s")) }

// UnitObjects counts the objects of a unit on all of its targets.
type UnitObjects struct{ All, Namespaced int }

// Protections are the rules of the fleet's documents that match a unit: the bounds of its Tenant, the
// owners of its files, the waves and gates of its Rollout, Masks and Windows.
func (r *Repository) Protections(unit *Unit, objects UnitObjects) (all []Protection) {
	places := r.PlacesOf(unit.Defaults)
	for i := range places {
		places[i].Unit = unit.Path
	}
	all = append(all, r.tenantBounds(unit, objects, len(places))...)
	all = append(all, r.owningLines(unit)...)
	all = append(all, r.wavesOver(unit, places)...)
	for _, m := range r.Masks {
		all = append(all, within(&m.Where, places, Protection{Rule: "Mask " + m.Name, Position: m.Position, Says: m.Reason})...)
	}
	for _, w := range r.Windows {
		action := "allow"
		if w.Deny {
			action = "deny"
		}
		says := strings.TrimSpace(fmt.Sprintf("%s: %s for %s %s", action, w.Time.Schedule, w.Time.Duration, w.Reason))
		all = append(all, within(&w.Where, places, Protection{Rule: "Window " + w.Name, Position: w.Position, Says: says})...)
	}
	return all
}

// within is the protection with the number of places that a where has; nothing for none.
func within(where *Where, places []Place, p Protection) []Protection {
	p.Noun = "targets"
	for _, scope := range places {
		if where.Has(scope) {
			p.Matches++
		}
	}
	if p.Matches == 0 {
		return nil
	}
	return []Protection{p}
}

// tenantBounds are the bounds of the unit's Tenant, those by default too.
func (r *Repository) tenantBounds(unit *Unit, objects UnitObjects, targets int) (all []Protection) {
	t := r.Tenants[unit.Defaults.Tenant]
	if t == nil {
		return nil
	}
	for _, bound := range []struct {
		field    string
		matches  int
		noun     string
		byItself string // what holds where nothing is written; empty: no bound
	}{
		{"folders", len(unit.Files), "files", ""},
		{"owners", len(unit.Files), "files", ""},
		{"clusters", targets, "targets", ""},
		{"namespaces", objects.Namespaced, "objects", "all but those of Kubernetes and swell"},
		{"kinds", objects.Namespaced, "objects", ""},
		{"clusterKinds", objects.All - objects.Namespaced, "objects", "none"},
		{"labels", objects.All, "objects", ""},
		{"annotations", objects.All, "objects", ""},
		{"images", objects.All, "objects", ""},
		{"podSecurity", objects.All, "objects", podSecurityLevels[0]},
		{"clusterRoles", objects.All, "objects", strings.Join(defaultClusterRoles, ", ")},
		{"allow", objects.All, "objects", "nothing"},
		{"accounts", objects.Namespaced, "objects", "those of its own units"},
		{"hosts", objects.Namespaced, "objects", "all that no other tenant has"},
		{"serviceAccount", objects.All, "objects", ""},
		{"roles", objects.All, "objects", ""},
	} {
		value := plainOf(t.doc, "spec", bound.field)
		p := Protection{Rule: "Tenant " + t.Name + ": " + bound.field, Position: t.Position, Matches: bound.matches, Noun: bound.noun}
		switch {
		case value != nil:
			p.Position, p.Says = t.doc.PositionOf("spec", bound.field), fieldText(value, nil)
		case bound.byItself != "":
			p.Says = bound.byItself + " (default)"
		default:
			continue
		}
		all = append(all, p)
	}
	return all
}

// owningLines are the lines of CODEOWNERS that say who owns the files of a unit.
func (r *Repository) owningLines(unit *Unit) (all []Protection) {
	for _, file := range unit.Files {
		for _, rule := range r.Owners.deciding(file) {
			position := document.Position{File: r.Owners.File, Line: rule.LineNumber}
			i := slices.IndexFunc(all, func(known Protection) bool { return known.Position == position })
			if i < 0 {
				i = len(all)
				all = append(all, Protection{Rule: "owners " + cmp.Or(ownersText(rule), "none"), Position: position, Noun: "files",
					Says: rule.RawPattern()})
			}
			all[i].Matches++
		}
	}
	return all
}

// wavesOver are the waves of the unit's Rollout that take targets of it, each with its gates.
func (r *Repository) wavesOver(unit *Unit, places []Place) (all []Protection) {
	rollout, doc := r.Rollouts[unit.Defaults.Rollout], r.rolloutDocument(unit.Defaults.Rollout)
	if rollout == nil || doc == nil {
		return nil
	}
	for i := range rollout.Waves {
		wave := &rollout.Waves[i]
		targets := 0
		for _, scope := range places {
			if scope.Wave == wave.Name {
				targets++
			}
		}
		if targets == 0 {
			continue
		}
		p := Protection{Rule: fmt.Sprintf("Rollout %s: wave %s", rollout.Name, wave.Name), Position: doc.PositionOf("spec", "waves", i),
			Matches: targets, Noun: "targets"}
		if wave.Soak > 0 {
			p.Says = "soak " + wave.Soak.String()
		}
		all = append(all, p)
		for n := range wave.Gates {
			p.Rule, p.Position = "gate "+wave.Gates[n].Word(), doc.PositionOf("spec", "waves", i, "gates", n)
			p.Says = fieldText(plainNode(doc, doc.Deepest("spec", "waves", i, "gates", n)), nil)
			all = append(all, p)
		}
	}
	return all
}
