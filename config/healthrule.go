// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"

	"github.com/swell-sh/swell/config/bounds"

	"github.com/swell-sh/swell/config/document"
)

// kindName is how a kind is written. Its lower case is a DNS label.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func (l *loader) loadHealthRule(doc *document.Document) {
	var spec struct {
		Match                   struct{ Group, Kind string }
		Healthy, Failed, Reason string
	}
	in := readOwn(doc, &spec)
	in.name("")
	kindAt := in.at("spec", "match", "kind")
	if group := spec.Match.Group; group != "" && !document.IsName(group) {
		in.at("spec", "match", "group").problem(document.CodeType, "want a group without its version, like cert-manager.io, got %q", document.Shorten(group))
	}
	switch kind := spec.Match.Kind; {
	case kind == "":
		kindAt.problem(document.CodeFleet, "missing")
	case !kindName.MatchString(kind):
		kindAt.problem(document.CodeType, "want a kind like Certificate, got %q", document.Shorten(kind))
	case kind == "Secret" && spec.Match.Group == "" && !in.incomplete("spec", "match", "group"):
		kindAt.problem(document.CodeFleet, "Secret: no rule may read what Secrets hold")
	}
	rule := &HealthRule{Position: doc.Position(), Name: doc.Name, Group: spec.Match.Group, Kind: spec.Match.Kind, KindAt: doc.PositionOf(kindAt.path...)}
	for _, e := range []struct {
		field, text string
		into        *Expression
	}{{"healthy", spec.Healthy, &rule.Healthy}, {"failed", spec.Failed, &rule.Failed}, {"reason", spec.Reason, &rule.Reason}} {
		switch {
		case e.text == "":
			continue
		case len(e.text) > bounds.Rule:
			in.at("spec", e.field).problem(document.CodeType, "want an expression of at most %d bytes, got %d", bounds.Rule, len(e.text))
			continue
		}
		*e.into = Expression{e.text, doc.PositionOf("spec", e.field)}
	}
	if spec.Healthy == "" {
		in.at("spec", "healthy").problem(document.CodeFleet, "missing")
	}
	if in.incomplete("spec", "match") {
		rule.Group, rule.Kind = "", "" // its expressions are checked all the same
	}
	for _, other := range l.repository.HealthRules {
		if rule.Kind != "" && other.Group == rule.Group && other.Kind == rule.Kind {
			in.at("spec", "match").problem(document.CodeFleet, "%s has a HealthRule already, %q at %s", rule.Kind, other.Name, other.Position)
		}
	}
	l.problem(in.problems()...)
	l.repository.HealthRules = append(l.repository.HealthRules, rule)
}
