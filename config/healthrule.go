// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import "regexp"

// kindName is how a kind is written. Its lower case is a DNS label.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func (l *loader) loadHealthRule(doc *Document) {
	var spec struct {
		Match                   struct{ Group, Kind string }
		Healthy, Failed, Reason string
	}
	if !l.decode(doc, &spec) {
		return
	}
	at := func(code Code, message string, path []any, args ...any) {
		l.problem(doc.at(message, code, path...)(args...))
	}
	kindPath := []any{"spec", "match", "kind"}
	if !IsLabel(doc.Name) {
		at(CodeType, "metadata.name: want a DNS label, got %q", []any{"metadata", "name"}, doc.Name)
	}
	if group := spec.Match.Group; group != "" && !IsName(group) {
		at(CodeType, "spec.match.group: want a group without its version, like cert-manager.io, got %q", []any{"spec", "match", "group"}, Shorten(group))
	}
	switch kind := spec.Match.Kind; {
	case kind == "":
		at(CodeFleet, "spec.match.kind: missing", kindPath)
	case !kindName.MatchString(kind):
		at(CodeType, "spec.match.kind: want a kind like Certificate, got %q", kindPath, Shorten(kind))
	case kind == "Secret" && spec.Match.Group == "":
		at(CodeFleet, "spec.match.kind: Secret: no rule may read what Secrets hold", kindPath)
	}
	rule := &HealthRule{Position: doc.Position(), Name: doc.Name, Group: spec.Match.Group, Kind: spec.Match.Kind, KindAt: doc.positionOf(kindPath...)}
	for _, e := range []struct {
		field, text string
		into        *Expression
	}{{"healthy", spec.Healthy, &rule.Healthy}, {"failed", spec.Failed, &rule.Failed}, {"reason", spec.Reason, &rule.Reason}} {
		switch {
		case e.text == "":
			continue
		case len(e.text) > maxRule:
			at(CodeType, "spec.%s: want an expression of at most %d bytes, got %d", []any{"spec", e.field}, e.field, maxRule, len(e.text))
			continue
		}
		*e.into = Expression{e.text, doc.positionOf("spec", e.field)}
	}
	if spec.Healthy == "" {
		at(CodeFleet, "spec.healthy: missing", []any{"spec", "healthy"})
	}
	for _, other := range l.repository.HealthRules {
		if other.Group == rule.Group && other.Kind == rule.Kind {
			at(CodeFleet, "spec.match: %s has a HealthRule already, %q at %s", []any{"spec", "match"}, rule.Kind, other.Name, other.Position)
		}
	}
	l.repository.HealthRules = append(l.repository.HealthRules, rule)
}
