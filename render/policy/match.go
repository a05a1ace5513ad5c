// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	server "k8s.io/apiserver/pkg/admission"
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

// matches says whether the creation of an object is matched, and in which version the
// policy sees the object: mostly its own.
func (m *matcher) matches(r *request) (version string, ok bool) {
	version = r.object.APIVersion
	if m == nil {
		return version, true
	}
	if _, excluded := m.anyRule(m.excluded, r); excluded {
		return "", false
	}
	if len(m.resources) > 0 {
		if version, ok = m.anyRule(m.resources, r); !ok {
			return "", false
		}
	}
	return version, m.objects.Matches(labels.Set(r.labels)) && m.matchesNamespace(r)
}

// selects says whether the labels of namespaces matter.
func (m *matcher) selects() bool { return m != nil && !m.namespaces.Empty() }

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

// anyRule finds a rule that matches the object's version or, where the policy does not
// want exactly that, another one that the API server has of the kind.
func (m *matcher) anyRule(list []admission.NamedRuleWithOperations, r *request) (version string, ok bool) {
	rule := func(attributes server.Attributes) bool {
		return slices.ContainsFunc(list, func(named admission.NamedRuleWithOperations) bool {
			matcher := rules.Matcher{Rule: named.RuleWithOperations, Attr: attributes}
			return matcher.Matches() && (len(named.ResourceNames) == 0 || slices.Contains(named.ResourceNames, r.object.Name))
		})
	}
	if rule(r.attributes) {
		return r.object.APIVersion, true
	}
	among := func(list []string, name string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, name)
	}
	if m.exact || !slices.ContainsFunc(list, func(named admission.NamedRuleWithOperations) bool {
		return among(named.APIGroups, GroupOf(r.object.APIVersion)) && among(named.Resources, r.object.Resource) && !among(named.APIVersions, "*")
	}) {
		return "", false
	}
	for _, other := range r.in.Versions(r.object.APIVersion, r.object.Kind) {
		if rule(otherVersion{r.attributes, other}) {
			return other, true
		}
	}
	return "", false
}

// otherVersion is the same request for another version of the resource.
type otherVersion struct {
	server.Attributes
	apiVersion string
}

func (o otherVersion) GetResource() schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(o.apiVersion) // as the schemas have it
	return gv.WithResource(o.Attributes.GetResource().Resource)
}
