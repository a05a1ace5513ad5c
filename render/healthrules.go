// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/kind"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/schema"
)

// HealthRules are the compiled rules of a fleet. They are safe for concurrent
// use; nil is no rules. No bundle depends on them.
type HealthRules map[GroupKind]*kind.HealthRule

// GroupKind is a kind of objects in whatever version.
type GroupKind struct{ Group, Kind string }

// For is the rule for an object; nil when there is none.
func (r HealthRules) For(id object.ID) *kind.HealthRule { return r[GroupKind{id.Group, id.Kind}] }

func compileHealthRules(r *config.Repository) (HealthRules, document.Problems) {
	rules := HealthRules{}
	var problems document.Problems
	for _, rule := range r.HealthRules {
		compiled, wrong := kind.CompileHealthRule(rule)
		problems = append(problems, wrong...)
		if why := noSuchKind(rule.Group, rule.Kind); why != "" {
			problems = append(problems, document.Problem{Position: rule.KindAt, Code: document.CodeFleet, Message: "spec.match.kind: " + why})
		}
		rules[GroupKind{rule.Group, rule.Kind}] = compiled
	}
	return rules, problems
}

// noSuchKind finds a kind that a group of Kubernetes' own does not have in any
// version: mostly a group that was left out or mistyped, so that the rule would
// never be asked. Custom resources may come from anywhere.
func noSuchKind(group, name string) string {
	kinds := map[string]bool{}
	for _, version := range schema.Versions() {
		set, err := schema.Kubernetes(version)
		if err != nil {
			panic(err) // it is embedded
		}
		for _, known := range set.Names() {
			apiVersion, kind, _ := strings.Cut(known, " ")
			of, _, grouped := strings.Cut(apiVersion, "/")
			if !grouped {
				of = ""
			}
			if of == group {
				kinds[kind] = true
			}
		}
		if name == "" || len(kinds) == 0 || kinds[name] {
			return "" // the newest version comes first: others are mostly not looked at
		}
	}
	of := fmt.Sprintf("in Kubernetes' group %q", group)
	if group == "" {
		of = "in the core group, which is meant where there is no spec.match.group"
	}
	return fmt.Sprintf("%s: no such kind %s%s", name, of, document.DidYouMean(name, slices.Collect(maps.Keys(kinds))))
}
