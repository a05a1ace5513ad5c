// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
)

// Walls are bounds that hold for the objects of every tenant, unless its document opens them: what
// an object would give its tenant of the cluster, or of other tenants. An account of the tenant's
// own, and Kubernetes' rights, stop the same things later, and only where there is one.

// refusing notes that a tenant may not have what stands at a path.
type refusing func(path []any, format string, args ...any)

func (r ruling) walls(id object.ID, content map[string]any, refuse refusing) {
	r.wallOfPods(content, refuse)
	switch {
	case id.Group == "rbac.authorization.k8s.io":
		r.wallOfRights(id.Kind, content, refuse)
		r.wallOfSubjects(id.Namespace, content, refuse)
	case len(r.Hosts) > 0 && object.HasHosts(id):
		r.wallOfHosts(id, content, refuse)
	case id.Group == "" && id.Kind == "Service" && !r.Allows("externalIPs"):
		if addresses, _ := fieldOf(content, "spec", "externalIPs").([]any); len(addresses) > 0 {
			refuse([]any{"spec", "externalIPs"}, "tenant %s may not take addresses: its allow has no externalIPs", r.Name)
		}
	}
}

// wallOfPods keeps pods to the tenant's level of Pod Security, off the control plane, and out of
// the priority of Kubernetes' own.
func (r ruling) wallOfPods(content map[string]any, refuse refusing) {
	apiVersion, _ := content["apiVersion"].(string)
	kindName, _ := content["kind"].(string)
	path := policy.PodPath(apiVersion, kindName)
	if path == nil {
		return
	}
	if r.PodSecurity != "privileged" {
		if why := policy.OfLevel(r.PodSecurity, apiVersion, kindName, content); why != "" {
			refuse(path, "tenant %s may have pods of level %s of Pod Security alone: %s", r.Name, r.PodSecurity, why)
		}
	}
	pod, _ := fieldOf(content, path...).(map[string]any)
	at := func(field ...any) []any { return append(slices.Clone(path), field...) }
	if class, _ := pod["priorityClassName"].(string); strings.HasPrefix(class, "system-") && !r.Allows("systemPriority") {
		refuse(at("priorityClassName"), "tenant %s may not have the priority of Kubernetes' own: its allow has no systemPriority", r.Name)
	}
	if r.Allows("controlPlaneNodes") {
		return
	}
	const why = "tenant %s may not run %s: its allow has no controlPlaneNodes"
	if node, _ := pod["nodeName"].(string); node != "" {
		refuse(at("nodeName"), why, r.Name, "on a node by name, past the scheduler")
	}
	tolerations, _ := pod["tolerations"].([]any)
	for i, item := range tolerations {
		toleration, _ := item.(map[string]any)
		if key, _ := toleration["key"].(string); key == "" || slices.Contains(controlPlane, key) {
			refuse(at("tolerations", i), why, r.Name, "on nodes of the control plane")
		}
	}
}

// wallOfHosts keeps host names to those of the tenant's document. Which others may be had depends on
// what other units have, see [disputes].
func (r ruling) wallOfHosts(id object.ID, content map[string]any, refuse refusing) {
	for _, host := range object.Hosts(id, content) {
		if !r.Host(host.Name) {
			refuse(host.Path, "%q is no host name of tenant %s: its hosts are %s", document.Shorten(host.Name), r.Name, r.Hosts)
		}
	}
}

// controlPlane are the taints of nodes of the control plane. A toleration without a key is one of
// all.
var controlPlane = []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}

// tokens are the resource of tokens of service accounts, in rules of roles.
const tokens = "serviceaccounts/token"

// wideValues are those of fields of rules that give more than they name. So do resources like
// */token, which are those of all kinds.
var wideValues = map[string][]any{
	"apiGroups": {"*"}, "resources": {"*"}, "nonResourceURLs": {"*", "/*"},
	"verbs": {"*", "escalate", "bind", "impersonate"},
}

// wallOfRights keeps roles to what they name, and bindings to the tenant's own ClusterRoles and
// those of its document.
func (r ruling) wallOfRights(kindName string, content map[string]any, refuse refusing) {
	if !r.Allows("wideRights") {
		rules, _ := content["rules"].([]any)
		for i, item := range rules {
			rule, _ := item.(map[string]any)
			names, _ := rule["resourceNames"].([]any)
			switch n := indexOf(rule["resources"], tokens); {
			case n >= 0 && kindName == "ClusterRole":
				const text = "tenant %s may not give tokens of service accounts in all namespaces: use a Role, or its allow has wideRights"
				refuse([]any{"rules", i, "resources", n}, text, r.Name)
			case n >= 0 && len(names) == 0: // no names are all names
				const text = "tenant %s may not give the tokens of all service accounts: name some by resourceNames, or its allow has wideRights"
				refuse([]any{"rules", i, "resources", n}, text, r.Name)
			}
			for field, wide := range wideValues {
				values, _ := rule[field].([]any)
				for n, value := range values {
					text, _ := value.(string)
					if slices.Contains(wide, value) || field == "resources" && strings.HasPrefix(text, "*/") {
						const text = "tenant %s may not give %q: name what it needs, or its allow has wideRights"
						refuse([]any{"rules", i, field, n}, text, r.Name, fmt.Sprint(value))
					}
				}
			}
		}
	}
	if kind, _ := fieldOf(content, "roleRef", "kind").(string); kind == "ClusterRole" {
		name, _ := fieldOf(content, "roleRef", "name").(string)
		switch {
		case !r.ClusterRole(name):
			const text = "tenant %s may not give the ClusterRole %q: its clusterRoles are %s"
			refuse([]any{"roleRef", "name"}, text, r.Name, name, orNone(r.ClusterRoles))
		case kindName == "ClusterRoleBinding" && !r.ClusterRoleEverywhere(name):
			const text = "tenant %s may not give the ClusterRole %q in all namespaces: use a RoleBinding, or its allow has wideRights"
			refuse([]any{"roleRef", "name"}, text, r.Name, name)
		}
	}
	if r.Allows("aggregation") || kindName != "ClusterRole" {
		return
	}
	const why = "tenant %s may not give the roles of others rights, or take theirs: its allow has no aggregation"
	if content["aggregationRule"] != nil {
		refuse([]any{"aggregationRule"}, why, r.Name)
	}
	labels, _ := fieldOf(content, "metadata", "labels").(map[string]any)
	for key := range labels {
		if strings.HasPrefix(key, "rbac.authorization.k8s.io/aggregate-to-") {
			refuse([]any{"metadata", "labels", key}, why, r.Name)
		}
	}
}

// indexOf finds a text in a list; -1 where it is not there.
func indexOf(list any, text string) int {
	items, _ := list.([]any)
	return slices.Index(items, any(text))
}

// fieldOf is the value at a path of mappings; nil where there is none.
func fieldOf(value any, path ...any) any {
	for _, step := range path {
		m, _ := value.(map[string]any)
		key, _ := step.(string)
		value = m[key]
	}
	return value
}
