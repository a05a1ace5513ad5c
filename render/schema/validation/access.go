// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package validation

import "slices"

const (
	rbac      = "io.k8s.api.rbac.v1."
	rbacGroup = "rbac.authorization.k8s.io"
)

var accessTypes = types{
	rbac + "Role":        {Fields: map[string]Rule{"rules": each(mapping(roleRule))}},
	rbac + "ClusterRole": {Fields: map[string]Rule{"rules": each(mapping(policyRule))}},
	rbac + "AggregationRule": {Self: mapping(func(m map[string]any) Flaws {
		if len(list(m, "clusterRoleSelectors")) == 0 {
			return missing("clusterRoleSelectors", "")
		}
		return nil
	})},
	rbac + "RoleBinding": {Self: mapping(func(m map[string]any) Flaws {
		return append(roleRef(m, "Role", "ClusterRole"), subjects(m, true)...)
	})},
	rbac + "ClusterRoleBinding": {Self: mapping(func(m map[string]any) Flaws {
		return append(roleRef(m, "ClusterRole"), subjects(m, false)...)
	})},
}

func roleRule(m map[string]any) Flaws {
	if len(list(m, "nonResourceURLs")) > 0 {
		return say("remove it: a Role is about resources of its namespace").at("nonResourceURLs")
	}
	return policyRule(m)
}

func policyRule(m map[string]any) (found Flaws) {
	if l, ok := m["verbs"].([]any); ok && len(l) == 0 {
		found = append(found, say("want at least one verb").at("verbs")...)
	}
	if len(list(m, "nonResourceURLs")) > 0 {
		for _, field := range [...]string{"apiGroups", "resources", "resourceNames"} {
			if len(list(m, field)) > 0 {
				found = append(found, say("remove it, or nonResourceURLs: a rule is about only one of them").at(field)...)
			}
		}
		return found
	}
	for _, field := range [...]string{"apiGroups", "resources"} {
		if m[field] == nil || m[field] != nil && list(m, field) != nil && len(list(m, field)) == 0 {
			found = append(found, missing(field, "")...)
		}
	}
	return found
}

// roleRef is about the role of a binding. Its group has a default.
func roleRef(m map[string]any, kinds ...string) (found Flaws) {
	ref := object(m, "roleRef")
	if group := text(ref, "apiGroup"); group != "" && group != rbacGroup {
		found = append(found, want(rbacGroup).at("apiGroup").at("roleRef")...)
	}
	if kind, isText := ref["kind"].(string); isText && !slices.Contains(kinds, kind) {
		text := "Role or ClusterRole"
		if len(kinds) == 1 {
			text = "ClusterRole, as the binding is for all namespaces"
		}
		found = append(found, want(text).at("kind").at("roleRef")...)
	}
	return append(found, segment(ref["name"]).at("name").at("roleRef")...)
}

// subjects are who gets a role. The group of users and groups has a default.
func subjects(m map[string]any, namespaced bool) (found Flaws) {
	for i, item := range list(m, "subjects") {
		subject, ok := item.(map[string]any)
		if !ok {
			continue
		}
		f := nonEmpty(subject["name"]).at("name")
		group := text(subject, "apiGroup")
		switch kind, isText := subject["kind"].(string); {
		case !isText:
		case kind == "ServiceAccount":
			f = append(f, except("", dnsName)(subject["name"]).at("name")...)
			if group != "" {
				f = append(f, say("remove it: a ServiceAccount is in the group of the core").at("apiGroup")...)
			}
			if subject["namespace"] == nil || subject["namespace"] == "" {
				f = append(f, serviceAccountPlace(namespaced)...)
			}
		case kind == "User" || kind == "Group":
			if group != "" && group != rbacGroup {
				f = append(f, want(rbacGroup).at("apiGroup")...)
			}
		default:
			f = append(f, want("one of ServiceAccount, User, Group").at("kind")...)
		}
		found = append(found, f.item(i).at("subjects")...)
	}
	return found
}

func serviceAccountPlace(namespaced bool) Flaws {
	if namespaced { // it may be that of the binding for some API servers
		return nil
	}
	return missing("namespace", ", a ServiceAccount is in one")
}
