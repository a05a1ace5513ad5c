// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

func (l *loader) loadTenant(doc *document.Document) {
	var spec struct {
		ServiceAccount                                                                          *struct{ Namespace, Name string }
		Folders, Owners, Clusters, Namespaces, Kinds, ClusterKinds, Labels, Annotations, Images []string
		PodSecurity                                                                             string
		ClusterRoles, Allow, Accounts, Hosts, Roles                                             []string
		Optional                                                                                bool
	}
	in := readOwn(doc, &spec)
	in.name("")
	t := &Tenant{doc: doc, Position: doc.Position(), Name: doc.Name, Folders: spec.Folders, Owners: spec.Owners, Clusters: spec.Clusters,
		Namespaces:  in.names(spec.Namespaces, "namespaces", isNamespacePattern, "a namespace like shop, or shop-*"),
		Kinds:       in.names(spec.Kinds, "kinds", isKindPattern, "a kind with its group, like ConfigMap, Deployment.apps or *.batch"),
		Labels:      in.names(spec.Labels, "labels", isKeyPattern, "a key like example.com/team, or example.com/*"),
		Annotations: in.names(spec.Annotations, "annotations", isKeyPattern, "a key like example.com/team, or example.com/*"),
		Images:      in.names(spec.Images, "images", isImagePattern, "an image in full with its registry, without tag and digest, like registry.example.com/shop/*"),
	}
	t.ClusterKinds = in.names(spec.ClusterKinds, "clusterKinds", isClusterKindPattern, "a kind with its group, and perhaps names, like Namespace or ClusterRole.rbac.authorization.k8s.io/shop-*")
	t.Accounts = in.names(spec.Accounts, "accounts", isAccountPattern, "a service account like builder or monitoring/prometheus")
	t.Hosts = in.names(spec.Hosts, "hosts", isHostPattern, "a host name in lower case, like shop.example.com or *.shop.example.com")
	t.PodSecurity = cmp.Or(spec.PodSecurity, podSecurityLevels[0])
	if !slices.Contains(podSecurityLevels, t.PodSecurity) {
		const text = "want one of %s, got %q"
		levels := strings.Join(podSecurityLevels, ", ")
		in.at("spec", "podSecurity").problem(document.CodeType, text, levels, document.Shorten(t.PodSecurity))
	}
	if t.ClusterRoles = spec.ClusterRoles; t.ClusterRoles == nil {
		t.ClusterRoles = defaultClusterRoles
	}
	t.Allow, t.Roles, t.Optional = spec.Allow, spec.Roles, spec.Optional
	for i, allowance := range t.Allow {
		if !slices.Contains(tenantAllowances, allowance) {
			const text = "%q: want one of %s"
			in.at("spec", "allow", i).problem(document.CodeType, text, document.Shorten(allowance), strings.Join(tenantAllowances, ", "))
		}
	}
	for i, pattern := range t.Namespaces {
		if strings.HasPrefix(pattern, "kube-") && strings.Contains(pattern, "*") {
			const text = "%q: Kubernetes' own namespaces are named in full, like kube-public"
			in.at("spec", "namespaces", i).problem(document.CodeType, text, document.Shorten(pattern))
		}
	}
	if account := spec.ServiceAccount; account != nil {
		for _, part := range []struct{ field, name string }{{"namespace", account.Namespace}, {"name", account.Name}} {
			if !document.IsLabel(part.name) {
				in.at("spec", "serviceAccount", part.field).problem(document.CodeType, "want a DNS label, got %q", document.Shorten(part.name))
			}
		}
		t.Account = "system:serviceaccount:" + account.Namespace + ":" + account.Name
	}
	for i, folder := range t.Folders {
		if !fs.ValidPath(folder) || folder == "." {
			in.at("spec", "folders", i).problem(document.CodeType, "%q: want a folder relative to the root, like %q", document.Shorten(folder), "services/shop")
		}
	}
	for i, owner := range t.Owners {
		if !strings.Contains(owner, "@") || strings.ContainsAny(owner, " \t\n") {
			in.at("spec", "owners", i).problem(document.CodeType, "%+q: want an owner as CODEOWNERS has it, like @example/shop or ops@example.com", document.Shorten(owner))
		}
	}
	l.problem(in.problems()...)
	l.repository.Tenants[t.Name] = t
	l.tenantsRead = append(l.tenantsRead, doc)
}

// closedFields are lists of names that admit nothing but what stands in them.
var closedFields = []string{"clusterKinds", "accounts"}

// names reads patterns of names in a field of the spec.
func (r *reading) names(list []string, field string, valid func(string) bool, want string) Names {
	for i, pattern := range list {
		rest, denies := strings.CutPrefix(pattern, "!")
		if denies && slices.Contains(closedFields, field) {
			r.at("spec", field, i).problem(document.CodeType, "%+q: nothing is admitted here that is not named, so nothing needs to be denied: remove it", document.Shorten(pattern))
			continue
		}
		if !valid(rest) {
			r.at("spec", field, i).problem(document.CodeType, "%+q: want %s", document.Shorten(pattern), want)
		}
	}
	return list
}

// isNamespacePattern says whether s is a DNS label when a letter stands in place of each star.
func isNamespacePattern(s string) bool { return document.IsLabel(strings.ReplaceAll(s, "*", "x")) }

func isKindPattern(s string) bool {
	kind, group, grouped := strings.Cut(s, ".")
	for _, c := range []byte(kind) {
		if letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'; !letter && c != '*' {
			return false
		}
	}
	return kind != "" && (!grouped || document.IsName(strings.ReplaceAll(group, "*", "x")))
}

func isClusterKindPattern(s string) bool {
	kind, name, named := strings.Cut(s, "/")
	return isKindPattern(kind) && (!named || name != "" && !strings.ContainsAny(name, "/ \t\n"))
}

// isAccountPattern says whether s is a service account, perhaps with its namespace, which has no stars.
func isAccountPattern(s string) bool {
	namespace, name, full := strings.Cut(s, "/")
	if !full {
		namespace, name = "x", s
	}
	return document.IsLabel(namespace) && document.IsName(strings.ReplaceAll(name, "*", "x"))
}

// isHostPattern says whether s is a host name when letters stand in place of each star.
func isHostPattern(s string) bool { return document.IsName(strings.ReplaceAll(s, "*", "x")) }

// isKeyPattern says whether s can be a key of labels, with stars.
func isKeyPattern(s string) bool {
	prefix, name, prefixed := strings.Cut(s, "/")
	if !prefixed {
		prefix, name = "x", s
	}
	return document.IsName(strings.ReplaceAll(prefix, "*", "x")) && name != "" && !strings.ContainsAny(name, "/ \t\n")
}

// isImagePattern says whether s is an image in full, with stars. The registry has none
// at its end, where registry.example.com* would also be registry.example.com.evil.org.
func isImagePattern(s string) bool {
	registry, path, ok := strings.Cut(s, "/")
	host := strings.ContainsAny(registry, ".:") || registry == "localhost"
	return s == "*" || ok && host && path != "" && !strings.HasSuffix(registry, "*") && !strings.ContainsAny(s, "@ \t\n") && !strings.Contains(path, ":")
}

// checkTenants finds clusters that are for unknown tenants, and tenants that are for
// unknown clusters: mostly a mistyped name, which would silently keep the tenant out.
// It finds folders that belong to two tenants, too.
func (l *loader) checkTenants() {
	tenants := l.repository.Tenants
	if len(tenants) == 0 {
		return // they are plain names
	}
	for _, cluster := range l.repository.Clusters {
		for i, name := range cluster.Tenants {
			if name != "*" && tenants[name] == nil {
				l.problem(document.Problem{Position: cluster.tenantsAt[i], Code: document.CodeFleet, Message: fmt.Sprintf("spec.tenants[%d]: %q: no such Tenant in the fleet%s",
					i, name, document.DidYouMean(name, slices.Collect(maps.Keys(tenants))))})
			}
		}
	}
	var clusters []string
	for _, cluster := range l.repository.Clusters {
		clusters = append(clusters, cluster.Name)
	}
	taken := map[string]*Tenant{}  // folders
	below := map[string][]string{} // the folders of taken that are below a folder
	for _, doc := range l.tenantsRead {
		t := tenants[doc.Name]
		for i, name := range t.Clusters {
			if !t.Optional && !slices.Contains(clusters, name) {
				l.idleInFleet(IdleAt(doc, document.CodeFleet, document.DidYouMean(name, clusters),
					fmt.Sprintf("%q: no such Cluster in the fleet", document.Shorten(name)), "spec", "clusters", i))
			}
		}
		for i, folder := range t.Folders {
			problem := func(format string, args ...any) {
				l.problem(doc.Problem(doc.Deepest("spec", "folders", i), document.CodeFleet, "spec.folders[%d]: %q: %s", i, document.Shorten(folder), fmt.Sprintf(format, args...)))
			}
			if units := l.repository.layout.units; !slices.ContainsFunc(units, func(root string) bool { return Within(folder, root) }) {
				problem("not in a folder of units: want one of %s, or a folder below", strings.Join(units, ", "))
			}
			related := slices.Clone(below[folder])
			for at := folder; at != "."; at = path.Dir(at) {
				related = append(related, at)
			}
			slices.Sort(related)
			for _, other := range related {
				if taken[other] != nil && taken[other] != t {
					problem("%q is tenant %s's already", other, taken[other].Name)
				}
			}
			taken[folder] = t
			for at := path.Dir(folder); at != "."; at = path.Dir(at) {
				below[at] = append(below[at], folder)
			}
		}
	}
	l.repository.folders = taken
}
