// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"slices"
	"strings"

	"github.com/swell-sh/swell/config/document"
)

// Tenant is a team that units belong to, and what these may bring to clusters.
type Tenant struct {
	Position document.Position
	Name     string
	// Account is the user that the tenant's units are applied as,
	// "system:serviceaccount:NAMESPACE:NAME". Empty: swell's own.
	Account string
	// Folders are the tenant's: units in them are its, and its units stand in them.
	// Empty: it has none of its own, and its units stand where no other tenant's do.
	Folders []string
	// Owners are those that its files may have in CODEOWNERS. Empty: nobody looks.
	Owners []string
	// Clusters are those where it may be placed. Empty: all that take it.
	Clusters []string
	// Namespaces of its objects; see [Tenant.Namespace].
	Namespaces Names
	// Kinds of its objects in namespaces, as [KindName] has them.
	Kinds Names
	// ClusterKinds are kinds of its objects outside of namespaces; see
	// [Tenant.ClusterKind].
	ClusterKinds []string
	// Labels and Annotations are the keys that its objects may have.
	Labels, Annotations Names
	// Images are those that its containers may run, without tag and digest.
	Images Names
	// PodSecurity is the level of its pods; never empty.
	PodSecurity string
	// ClusterRoles are those that its bindings may give besides its own.
	ClusterRoles []string
	// Allow is what its objects may do besides, of the allowances of the document.
	Allow []string
	// Accounts are service accounts that its objects may name besides its own; see
	// [Tenant.MayName].
	Accounts []string
	// Hosts are the host names that its objects may have. Empty: all that nobody else has.
	Hosts Names
	// Roles are names of those that its account may give more rights than it has itself.
	Roles []string
	// Optional says that what it names may match nothing yet.
	Optional bool

	doc *document.Document
}

// Idle is an item of a list of the spec that names nothing.
func (t *Tenant) Idle(field string, item int, why, hint string) IdleReference {
	return IdleAt(t.doc, document.CodeReference, hint, why, "spec", field, item)
}

// KindName is a kind as tenants name it: Deployment.apps, or ConfigMap of the core group.
func KindName(group, kind string) string {
	if group == "" {
		return kind
	}
	return kind + "." + group
}

// OnCluster says whether the tenant's units may be placed on a cluster, as far as the
// tenant says. Nil is a plain name, of which nothing is said.
func (t *Tenant) OnCluster(name string) bool {
	return t == nil || len(t.Clusters) == 0 || slices.Contains(t.Clusters, name)
}

// tenantAllowances are what a Tenant may be allowed besides its bounds.
var tenantAllowances = []string{"aggregation", "controlPlaneNodes", "externalIPs", "systemPriority", "wideRights"}

// podSecurityLevels are those of Kubernetes, the one that takes least first.
var podSecurityLevels = []string{"restricted", "baseline", "privileged"}

// defaultClusterRoles are those that a binding of a tenant may give where nothing is said.
var defaultClusterRoles = []string{"view", "edit"}

// isSystemNamespace says whether a namespace is one of Kubernetes' own, or where swell itself may
// run: who writes there has the cluster.
func isSystemNamespace(name string) bool {
	return strings.HasPrefix(name, "kube-") || name == "swell" || name == "swell-system"
}

// Namespace says whether an object of the tenant may live in a namespace. One of
// [isSystemNamespace] is named in full.
func (t *Tenant) Namespace(name string) bool {
	return t.Namespaces.Admit(name) && (!isSystemNamespace(name) || slices.Contains(t.Namespaces, name))
}

// ClusterRole says whether a binding of the tenant may give a ClusterRole.
func (t *Tenant) ClusterRole(name string) bool {
	return slices.Contains(t.ClusterRoles, name) || t.ClusterRoleEverywhere(name)
}

// ClusterRoleEverywhere says whether a binding of the tenant may give a ClusterRole in all namespaces.
// Those of ClusterRoles are for its own ones: whoever may edit everywhere has the cluster.
func (t *Tenant) ClusterRoleEverywhere(name string) bool {
	const kind = "ClusterRole.rbac.authorization.k8s.io"
	return t.Allows("wideRights") || t.ClusterKind(kind, name)
}

// MayName says whether an object in a namespace may name a service account of another, or the same
// one, whoever brought it. The account default of each namespace of the tenant is open to it.
func (t *Tenant) MayName(from, namespace, name string) bool {
	return name == "default" && t.Namespace(namespace) || slices.ContainsFunc(t.Accounts, func(pattern string) bool {
		inNamespace, ofName, full := strings.Cut(pattern, "/")
		if !full {
			inNamespace, ofName = from, pattern
		}
		return inNamespace == namespace && like(ofName, name)
	})
}

// Lists says whether the document lists a host name as the tenant's own.
func (t *Tenant) Lists(host string) bool {
	lists := func(pattern string) bool { return !strings.HasPrefix(pattern, "!") }
	return slices.ContainsFunc(t.Hosts, lists) && t.Host(host)
}

// Host says whether an object of the tenant may have a host name, as far as the document says. A
// wildcard is all names below, so none of them may be denied.
func (t *Tenant) Host(name string) bool {
	below, isWildcard := strings.CutPrefix(name, "*")
	return t.Hosts.Admit(name) && !(isWildcard && slices.ContainsFunc(t.Hosts, func(pattern string) bool {
		denied, denies := strings.CutPrefix(pattern, "!")
		last := denied[strings.LastIndex(denied, "*")+1:]
		return denies && (strings.HasSuffix(last, below) || last != denied && strings.HasSuffix(below, last))
	}))
}

// Allows says whether an allowance of the document is given.
func (t *Tenant) Allows(allowance string) bool { return slices.Contains(t.Allow, allowance) }

// ClusterRoleBindingKind is the [KindName] of what gives rights in all namespaces: whatever a tenant's
// ClusterRoles hold, such as reading Secrets, it has everywhere then. So a Tenant names it in full.
const ClusterRoleBindingKind = "ClusterRoleBinding.rbac.authorization.k8s.io"

// ClusterKind says whether the tenant may have an object outside of namespaces, by
// its [KindName] and its name.
func (t *Tenant) ClusterKind(kind, name string) bool {
	inFull := kind == ClusterRoleBindingKind && !t.Allows("wideRights")
	return slices.ContainsFunc(t.ClusterKinds, func(pattern string) bool {
		ofKind, ofName, named := strings.Cut(pattern, "/")
		return (ofKind == kind || !inFull && like(ofKind, kind)) && (!named || like(ofName, name))
	})
}

// TenantOf is the tenant whose folder holds a unit; nil where it is nobody's.
func (r *Repository) TenantOf(unit UnitPath) *Tenant {
	if len(r.folders) == 0 {
		return nil
	}
	for folder := string(unit); folder != "."; folder = path.Dir(folder) {
		if t := r.folders[folder]; t != nil {
			return t
		}
	}
	return nil
}
