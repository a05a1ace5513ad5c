// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
)

// matcher is MatchResources, with the defaults of the API filled in.
type matcher struct {
	resources, excluded []admission.NamedRuleWithOperations
	exact               bool
	namespaces, objects labels.Selector
}

// matcher compiles what a policy or a binding matches; nil is everything.
func (c *compilation) matcher(m *admission.MatchResources, path ...any) *matcher {
	if m == nil {
		return nil
	}
	selector := func(s *metav1.LabelSelector, field string) labels.Selector {
		if s == nil {
			return labels.Everything()
		}
		compiled, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			c.flaw(append(slices.Clip(path), field), "%s", err)
			return labels.Nothing()
		}
		return compiled
	}
	return &matcher{resources: m.ResourceRules, excluded: m.ExcludeResourceRules, exact: m.MatchPolicy != nil && *m.MatchPolicy == admission.Exact,
		namespaces: selector(m.NamespaceSelector, "namespaceSelector"), objects: selector(m.ObjectSelector, "objectSelector")}
}

// matches says whether the creation of an object is matched.
func (m *matcher) matches(r *request) bool {
	if m == nil {
		return true
	}
	if len(m.resources) > 0 && !anyRule(m.resources, r) || anyRule(m.excluded, r) {
		return false
	}
	return m.objects.Matches(labels.Set(r.labels)) && m.matchesNamespace(r)
}

// matchesNamespace says so of the namespace. What lives in none is in all of them, and
// a Namespace is in itself.
func (m *matcher) matchesNamespace(r *request) bool {
	switch {
	case m.namespaces.Empty():
		return true
	case r.isNamespace():
		return m.namespaces.Matches(labels.Set(r.labels))
	case !r.object.Namespaced:
		return true
	}
	return m.namespaces.Matches(labels.Set(r.namespace().Labels))
}

func anyRule(list []admission.NamedRuleWithOperations, r *request) bool {
	return slices.ContainsFunc(list, func(named admission.NamedRuleWithOperations) bool {
		matcher := rules.Matcher{Rule: named.RuleWithOperations, Attr: r.attributes}
		return matcher.Matches() && (len(named.ResourceNames) == 0 || slices.Contains(named.ResourceNames, r.object.Name))
	})
}
