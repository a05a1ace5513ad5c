// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Policy says how a unit treats what it finds in a cluster. It is no part of
// what is rendered: a change of it alone releases nothing.
type Policy struct {
	// Adopt is one of the constants; never empty.
	Adopt Adoption
	// Drift are rules of which the first that matches a target holds.
	Drift []DriftRule
	// Ignore are fields of live objects that belong to others.
	Ignore []IgnoreRule
}

// Adoption is what to do with an object that is there already and was made by
// somebody else.
type Adoption string

const (
	// AdoptNever refuses it.
	AdoptNever Adoption = "never"
	// AdoptIfSame takes it over when that changes nothing that others set in
	// it, and no other deployment tool says that it is its own.
	AdoptIfSame Adoption = "ifSame"
	// AdoptTake takes it over, and its fields from the tool that made it.
	AdoptTake Adoption = "take"
)

// HowToTake ends the text of a refusal to adopt an object.
const HowToTake = "to take it over, say adopt: take in the Defaults of its unit, or annotate it with " + AnnotationAdopt + ": take, in Git"

// Permits says whether more objects may be adopted than by another policy. The empty one is
// the default.
func (a Adoption) Permits(more Adoption) bool {
	order := []Adoption{AdoptNever, AdoptIfSame, AdoptTake}
	rank := func(a Adoption) int { return slices.Index(order, cmp.Or(a, AdoptIfSame)) }
	return rank(a) > rank(more)
}

// DriftRule says what to do about drift on some targets.
type DriftRule struct {
	Match Match
	Mode  DriftMode
}

// DriftMode is what to do about drift.
type DriftMode string

const (
	// DriftCorrect applies the objects again.
	DriftCorrect DriftMode = "correct"
	// DriftReport says what differs and leaves it.
	DriftReport DriftMode = "report"
	// DriftOff does not look.
	DriftOff DriftMode = "off"
)

// DriftOn is the mode on a target with these labels.
func (p *Policy) DriftOn(labels map[string]string) DriftMode {
	for _, rule := range p.Drift {
		if rule.Match.Matches(labels) {
			return rule.Mode
		}
	}
	return DriftCorrect
}

// IgnoreRule names fields that are set when an object is created and belong to
// others from then on.
type IgnoreRule struct {
	Match Match  // targets; the zero Match is all of them
	Kind  string // never empty
	// Object is a name; empty is every object of the kind.
	Object string
	// Fields are JSON pointers (RFC 6901), like "/spec/replicas"; at least one. In
	// a list an index counts the items as they are in Git, and "name=main" stands
	// for the items whose field "name" is "main". None leads to what makes an
	// object ours.
	Fields []string
}

// IgnoredOn are the rules that hold on a target with these labels.
func (p *Policy) IgnoredOn(labels map[string]string) []IgnoreRule {
	var rules []IgnoreRule
	for _, rule := range p.Ignore {
		if rule.Match.Matches(labels) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// policySpec is the part of Defaults that a [Policy] is made of.
type policySpec struct {
	Adopt string
	Drift []struct {
		Match matchSpec
		Mode  string
	}
	Ignore []struct {
		Match        matchSpec
		Kind, Object string
		Fields       []string
	}
}

// addPolicy lays what a document says over the inherited policy.
func (d *Defaults) addPolicy(in *reading, spec policySpec) {
	policy := *d.Policy
	switch Adoption(spec.Adopt) {
	case "":
	case AdoptNever, AdoptIfSame, AdoptTake:
		policy.Adopt = Adoption(spec.Adopt)
	default:
		in.at("spec", "adopt").problem(document.CodeType, "want never, ifSame or take, got %q", spec.Adopt)
	}
	for i, r := range spec.Drift {
		d.refer(in.Document, r.Match, "spec", "drift", i)
	}
	for i, r := range spec.Ignore {
		d.refer(in.Document, r.Match, "spec", "ignore", i)
		if r.Kind != "" {
			d.References = append(slices.Clip(d.References), Reference{At: in.PositionOf("spec", "ignore", i, "kind"), Place: document.PathOf("spec", "ignore", i, "kind"), Kind: r.Kind})
			d.referObject(in.Document, r.Kind, r.Object, "spec", "ignore", i)
			d.referFields(in.Document, r.Kind, r.Fields, "spec", "ignore", i, "fields")
		}
	}
	policy.Drift = slices.Concat(driftRules(in, spec), policy.Drift)
	policy.Ignore = slices.Concat(policy.Ignore, ignoreRules(in, spec))
	d.Policy = &policy
}

// refer notes the match of a rule at a path.
func (d *Defaults) refer(doc *document.Document, written matchSpec, path ...any) {
	path = append(path, "match")
	match, problems := written.match(doc, append(path, "labels")...)
	if len(match.Labels) == 0 || len(problems) > 0 {
		return
	}
	d.References = append(slices.Clip(d.References), Reference{At: doc.PositionOf(path...), Place: document.PathOf(path...), Match: match})
}

// referObject notes the name of an object that a rule at a path is about.
func (d *Defaults) referObject(doc *document.Document, kind, object string, path ...any) {
	if path = append(path, "object"); object != "" {
		d.References = append(slices.Clip(d.References), Reference{At: doc.PositionOf(path...), Place: document.PathOf(path...), Kind: kind, Object: object})
	}
}

// referFields notes the fields that a rule names at a path.
func (d *Defaults) referFields(doc *document.Document, kind string, fields []string, path ...any) {
	d.References = slices.Clip(d.References)
	for i, field := range fields {
		at := append(slices.Clip(path), i)
		d.References = append(d.References, Reference{At: doc.PositionOf(at...), Place: document.PathOf(at...), Kind: kind, Field: field})
	}
}

func driftRules(in *reading, spec policySpec) (rules []DriftRule) {
	for i, r := range spec.Drift {
		match := in.match(r.Match, "spec", "drift", i, "match")
		switch mode := DriftMode(r.Mode); mode {
		case DriftCorrect, DriftReport, DriftOff:
			rules = append(rules, DriftRule{Match: match, Mode: mode})
		default:
			in.at("spec", "drift", i, "mode").problem(document.CodeType, "want correct, report or off, got %q", r.Mode)
		}
	}
	return rules
}

func ignoreRules(in *reading, spec policySpec) (rules []IgnoreRule) {
	for i, r := range spec.Ignore {
		match := in.match(r.Match, "spec", "ignore", i, "match")
		if r.Kind == "" {
			in.at("spec", "ignore", i, "kind").problem(document.CodeReference, "missing, want the kind of the objects that it holds for")
		}
		if len(r.Fields) == 0 {
			in.at("spec", "ignore", i, "fields").problem(document.CodeReference, "missing, want JSON pointers, like %q", "/spec/replicas")
		}
		for j, field := range r.Fields {
			at := in.at("spec", "ignore", i, "fields", j)
			if len(field) < 2 || !strings.HasPrefix(field, "/") {
				at.problem(document.CodeType, "want a JSON pointer, like %q, got %q", "/spec/replicas", field)
			} else if why := wrongPointer(field); why != "" {
				at.problem(document.CodeType, "%q %s", field, why)
			}
		}
		if in.incomplete("spec", "ignore", i) {
			continue // it would hold for more than it says
		}
		rules = append(rules, IgnoreRule{Match: match, Kind: r.Kind, Object: r.Object, Fields: r.Fields})
	}
	return rules
}
