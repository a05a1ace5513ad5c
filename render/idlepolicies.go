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
	"github.com/swell-sh/swell/render/policy"
)

// findIdle finds policies that no binding puts in force, bindings of no policy, and parameters that
// are not there. Those of clusters count as far as facts have them.
func (p *policies) findIdle(facts map[string]*config.Facts) {
	known := slices.Clone(p.docObjects())
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		known = slices.Concat(known, facts[name].Policies, facts[name].Params)
	}
	names, bound := map[string][]string{}, map[string]bool{} // by kind; "kind name"
	for _, object := range known {
		kind, _ := object["kind"].(string)
		name, _ := fieldOf(object, "metadata", "name").(string)
		names[kind] = append(names[kind], name)
		policyName, _ := fieldOf(object, "spec", "policyName").(string)
		bound[strings.TrimSuffix(kind, "Binding")+" "+policyName] = true
	}
	for i, doc := range p.from {
		if !policy.IsAdmission(policy.GroupOf(doc.APIVersion), doc.Kind) || isOptional(p.good[i].Object) {
			continue
		}
		policyKind, isBinding := strings.CutSuffix(doc.Kind, "Binding")
		if !isBinding {
			if !bound[doc.Kind+" "+doc.Name] {
				why := fmt.Sprintf("%q: no %sBinding puts it in force, so nothing is judged by it", document.Shorten(doc.Name), doc.Kind)
				p.idle = append(p.idle, config.IdleAt(doc, document.CodeReference, "", why, "metadata", "name"))
			}
			continue
		}
		policyName, _ := fieldOf(p.good[i].Object, "spec", "policyName").(string)
		if !slices.Contains(names[policyKind], policyName) {
			why := fmt.Sprintf("%q: no such %s here", document.Shorten(policyName), policyKind)
			hint := document.DidYouMean(policyName, names[policyKind])
			p.idle = append(p.idle, config.IdleAt(doc, document.CodeReference, hint, why, "spec", "policyName"))
			continue
		}
		p.findIdleParam(i, known)
	}
}

// findIdleParam finds a parameter that a binding names and that is not there.
func (p *policies) findIdleParam(binding int, known []map[string]any) {
	object, doc := p.good[binding].Object, p.from[binding]
	name, _ := fieldOf(object, "spec", "paramRef", "name").(string)
	if name == "" {
		return
	}
	policyName, _ := fieldOf(object, "spec", "policyName").(string)
	var params []string
	for _, other := range known {
		otherName, _ := fieldOf(other, "metadata", "name").(string)
		if other["kind"] != strings.TrimSuffix(doc.Kind, "Binding") || otherName != policyName {
			continue
		}
		paramKind := fieldOf(other, "spec", "paramKind", "kind")
		if paramKind == nil || paramKind == "Secret" { // no Secret is read here
			return
		}
		for _, param := range known {
			if param["kind"] == paramKind {
				paramName, _ := fieldOf(param, "metadata", "name").(string)
				params = append(params, paramName)
			}
		}
	}
	if !slices.Contains(params, name) {
		why := fmt.Sprintf("%q: no such parameter here or in the facts of a cluster", document.Shorten(name))
		hint := document.DidYouMean(name, params)
		p.idle = append(p.idle, config.IdleAt(doc, document.CodeReference, hint, why, "spec", "paramRef", "name"))
	}
}

// docObjects returns all documents of the folder, those with a problem too.
func (p *policies) docObjects() (objects []map[string]any) {
	for _, doc := range p.docs {
		if object, ok := plain(doc); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// isOptional says whether what an admission policy or its binding names may come later.
func isOptional(object map[string]any) bool {
	return fieldOf(object, "metadata", "annotations", config.AnnotationOptional) == config.OptionalTrue
}

// idlePolicies are the groups, versions and resources that policies and bindings name in vain: no
// cluster has them.
func (w *world) idlePolicies() (idle []config.IdleReference) {
	if w.policies == nil || len(w.policies.from) == 0 || w.hard.troubled() {
		return nil
	}
	known := w.hard.resources()
	for i, doc := range w.policies.from {
		object := w.policies.good[i].Object
		if !policy.IsAdmission(policy.GroupOf(doc.APIVersion), doc.Kind) || isOptional(object) {
			continue
		}
		match := "matchConstraints"
		if strings.HasSuffix(doc.Kind, "Binding") {
			match = "matchResources"
		}
		for _, list := range []string{"resourceRules", "excludeResourceRules"} {
			rules, _ := fieldOf(object, "spec", match, list).([]any)
			for n, rule := range rules {
				path := []any{"spec", match, list, n}
				idle = append(idle, known.idleRule(doc, rule, path, w.hard.open)...)
			}
		}
	}
	return idle
}

// resource is one that a cluster serves.
type resource struct{ group, version, name string }

type resources []resource

// resources are those of any cluster.
func (h *hardKinds) resources() (list resources) {
	seen := map[resource]bool{}
	for name, k := range h.served() {
		r := resource{policy.GroupOf(name.apiVersion), name.apiVersion[strings.LastIndex(name.apiVersion, "/")+1:], k.Resource()}
		if !seen[r] {
			seen[r] = true
			list = append(list, r)
		}
	}
	return list
}

// within are those that the lists of a rule name, of which nil and * are all.
func (r resources) within(groups, versions, names []string) resources {
	takes := func(list []string, name string) bool {
		return list == nil || slices.Contains(list, "*") || slices.Contains(list, name)
	}
	return slices.DeleteFunc(slices.Clone(r), func(known resource) bool {
		return !takes(groups, known.group) || !takes(versions, known.version) || !takes(names, known.name)
	})
}

// values are those of one part, without repetitions.
func (r resources) values(part func(resource) string) (list []string) {
	for _, known := range r {
		list = append(list, part(known))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func groupOf(r resource) string        { return r.group }
func versionOf(r resource) string      { return r.version }
func nameOfResource(r resource) string { return r.name }

// idleRule are the names in a rule for resources that match nothing: first of groups, then of
// resources in these, then of their versions. isOpen says that objects of kinds pass that are not
// known: then only names that are surely mistyped count.
func (r resources) idleRule(doc *document.Document, rule any, path []any, isOpen bool) (idle []config.IdleReference) {
	add := func(field string, i int, why, hint string) {
		name := append(slices.Clone(path), field, i)
		idle = append(idle, config.IdleAt(doc, document.CodeReference, hint, why+", so it matches nothing", name...))
	}
	groups, versions := textsOf(fieldOf(rule, "apiGroups")), textsOf(fieldOf(rule, "apiVersions"))
	names := textsOf(fieldOf(rule, "resources"))
	for i, group := range groups {
		if all := r.values(groupOf); group != "*" && !slices.Contains(all, group) && (!isOpen || document.Misspelt(group, all) != "") {
			add("apiGroups", i, fmt.Sprintf("%q: no cluster has such a group", document.Shorten(group)), document.DidYouMean(group, all))
		}
	}
	ofGroups := r.within(groups, nil, nil)
	if len(ofGroups) == 0 {
		return idle
	}
	var bases []string
	for i, name := range names {
		base, _, _ := strings.Cut(name, "/")
		bases = append(bases, base)
		all := ofGroups.values(nameOfResource)
		if base == "*" || slices.Contains(all, base) {
			continue
		}
		hint := r.hintOfResource(base, all)
		if isOpen && !strings.HasPrefix(hint, ", did you mean") {
			continue
		}
		why := fmt.Sprintf("%q: no cluster has such a resource in %s", document.Shorten(name), groupsText(groups))
		add("resources", i, why, hint)
	}
	ofResources := ofGroups.within(nil, nil, bases)
	for i, version := range versions {
		if all := ofResources.values(versionOf); len(all) > 0 && version != "*" && !slices.Contains(all, version) {
			why := fmt.Sprintf("%q: no cluster serves this version of %s", document.Shorten(version), document.Some(names, 3))
			add("apiVersions", i, why, document.DidYouMean(version, all))
		}
	}
	return idle
}

// hintOfResource is what somebody may have meant who wrote a resource in the singular, with a
// capital letter, or in the wrong group.
func (r resources) hintOfResource(name string, all []string) string {
	for _, known := range all {
		if spoken(known) == spoken(name) {
			return fmt.Sprintf(", did you mean %q?", known)
		}
	}
	if elsewhere := r.within(nil, nil, []string{name}).values(groupOf); len(elsewhere) > 0 {
		return fmt.Sprintf(", did you mean that of %s?", groupsText(elsewhere))
	}
	return document.DidYouMean(name, all)
}

func groupsText(groups []string) string {
	quoted := make([]string, len(groups))
	for i, group := range groups {
		quoted[i] = fmt.Sprintf("%q", document.Shorten(group))
	}
	noun := "group "
	if len(groups) > 1 {
		noun = "groups "
	}
	return noun + document.Some(quoted, 3)
}

// textsOf are the texts of a list; never nil.
func textsOf(value any) []string {
	list, _ := value.([]any)
	texts := make([]string, 0, len(list))
	for _, item := range list {
		text, _ := item.(string)
		texts = append(texts, text)
	}
	return texts
}
