// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Package rbac says which rights the accounts of a daemon need in a cluster, as rules of
// RBAC with the reason for each. It follows from what a commit holds there and from what
// sync/apply sends; no cluster is asked.
//
// RBAC has no right to metadata alone, so the rules allow more of Secrets than swell reads.
package rbac

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/swell-sh/swell/config/document"
)

// Feature is what a rule is for.
type Feature string

// Connect, Apply, Lease and Tenants are needed for any work. Without the others, swell says
// less: why pods are not ready (Health), what it has in a cluster after its state was lost
// (Survey), the commands facts pull (Facts) and tree (Tree). StuckPods is there only where
// [Options.StuckPods] asks for it.
const (
	Connect   Feature = "connect"
	Apply     Feature = "apply"
	Health    Feature = "health"
	Lease     Feature = "lease"
	Tenants   Feature = "tenants"
	Survey    Feature = "survey"
	Facts     Feature = "facts"
	Tree      Feature = "tree"
	StuckPods Feature = "stuck-pods"
)

// Optional are the features that may be left out.
func Optional() []Feature { return []Feature{Facts, Health, Lease, Survey, Tree} }

// Rule is a rule with its reason.
type Rule struct {
	Feature Feature
	Why     string // one line for people
	rbacv1.PolicyRule
}

// Account is a service account.
type Account struct{ Namespace, Name string }

func (a Account) String() string { return a.Namespace + "/" + a.Name }

// ParseAccount reads NAMESPACE/NAME.
func ParseAccount(text string) (Account, error) {
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || !document.IsLabel(namespace) || !document.IsName(name) {
		return Account{}, fmt.Errorf("%q: want NAMESPACE/NAME of a service account, like swell/swell", document.Shorten(text))
	}
	return Account{namespace, name}, nil
}

// Role is what one account may do in a namespace, or in the whole cluster where Namespace is
// empty.
type Role struct {
	Name, Namespace string
	Account         Account
	Rules           []Rule // never none
	// Missing are what the account needs besides and is not given here, one line each for people:
	// an administrator decides.
	Missing []string
}

// Object is the Role or ClusterRole, and Binding gives it to the account.
func (r *Role) Object() any {
	var rules []rbacv1.PolicyRule
	for _, rule := range r.Rules {
		rules = append(rules, rule.PolicyRule)
	}
	if r.Namespace == "" {
		return &rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: r.meta(), Rules: rules}
	}
	return &rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: r.meta(), Rules: rules}
}

// Binding gives the role to the account.
func (r *Role) Binding() any {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.Account.Namespace, Name: r.Account.Name}}
	if r.Namespace == "" {
		return &rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: r.meta(), Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name}}
	}
	return &rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: r.meta(), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: r.Name}}
}

func (r *Role) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: r.Name, Namespace: r.Namespace}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

// Options say for whom the roles are. Account is required.
type Options struct {
	// Repository is the name of the monorepo; with [General] it may be empty: any.
	Repository string
	Account    Account
	// LeaseNamespace is where the Lease is; see config.Lease.
	LeaseNamespace string
	Without        []Feature
	// StuckPods gives the right to delete pods where there are StatefulSets. The roles of
	// [General] have it anyway.
	StuckPods bool
}

// objectVerbs are what sync/apply does with an object of a unit: it reads, lists and
// watches it, makes or changes it by a server-side apply, which is a patch that takes the
// right to create too, and deletes it.
var objectVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}

// General are the roles of a daemon that applies any kind. They come close to
// cluster-admin: who may create Pods, read all Secrets and create whatever else, such as the
// tokens of service accounts, can get any right. [Needed] gives less.
func General(o Options) []Role {
	rules := append(o.connect(), Rule{Apply, "objects of any kind", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: objectVerbs}})
	return o.roles(rules, nil)
}

// Reading are the roles of a daemon that applies nothing yet: it finds the clusters, keeps its Lease and
// reads no Secrets. What it applies takes the roles of [Needed].
func Reading(o Options) []Role {
	return o.roles(slices.Concat(o.connect(), scalers(), health(), tree(), factKinds().rules(Facts, pulling, "list")), nil)
}

// roles are the cluster role of the daemon's account with these rules, the role for its
// Lease, and the others.
func (o *Options) roles(rules []Rule, others []Role) []Role {
	name := o.name()
	roles := []Role{{Name: name, Account: o.Account, Rules: rules}, {Name: name, Namespace: o.LeaseNamespace, Account: o.Account, Rules: o.lease()}}
	roles = append(roles, others...)
	for i := range roles {
		roles[i].Rules = slices.DeleteFunc(roles[i].Rules, func(r Rule) bool { return slices.Contains(o.Without, r.Feature) })
	}
	return slices.DeleteFunc(roles, func(r Role) bool { return len(r.Rules) == 0 })
}

// name is that of the daemon's roles.
func (o *Options) name() string {
	if o.Repository == "" {
		return "swell"
	}
	return "swell-" + o.Repository
}

// connect is what every account of a cluster may do by default, and the look at which
// cluster it is.
func (o *Options) connect() []Rule {
	return []Rule{
		{Connect, "which cluster it is", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}},
		{Connect, "which kinds it has; by default every account may ask (system:discovery)",
			rbacv1.PolicyRule{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/version"}, Verbs: []string{"get"}}},
		{Connect, "whether a refusal is for want of a right; by default every account may ask (system:basic-user)",
			rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"selfsubjectaccessreviews"}, Verbs: []string{"create"}}},
	}
}

// lease is what keeps a second daemon away. The name of what is created is not known to
// RBAC.
func (o *Options) lease() []Rule {
	const why = "the Lease that keeps a second daemon from writing"
	own := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "update"}}
	if o.Repository != "" {
		own.ResourceNames = []string{"swell-" + o.Repository}
	}
	return []Rule{
		{Lease, why, own},
		{Lease, why, rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}}},
	}
}

// health says why pods are not ready.
func health() []Rule {
	const why = "why pods are not ready"
	return []Rule{
		{Health, why, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events", "pods"}, Verbs: []string{"list"}}},
		{Health, why, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: []string{"get"}}},
	}
}

// stuckPods is what frees a StatefulSet; none where the objects have no StatefulSet, or
// where it is not asked for.
func (o *Options) stuckPods(objects resources) []Rule {
	if !o.StuckPods || !objects["apps"]["statefulsets"] {
		return nil
	}
	return []Rule{{StuckPods, "a pod that never was ready and that its StatefulSet waits for instead of replacing it",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "delete"}}}}
}

// scalers says what sets the number of replicas of a workload.
func scalers() []Rule {
	return []Rule{{Apply, "whether an autoscaler sets the number of replicas",
		rbacv1.PolicyRule{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"list"}}}}
}

// tree is what controllers make of objects, for swell tree.
func tree() []Rule {
	rule := func(group string, resources ...string) Rule {
		return Rule{Tree, "swell tree: what controllers made of the objects", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list"}}}
	}
	return []Rule{rule("", "endpoints", "persistentvolumeclaims", "pods"), rule("apps", "controllerrevisions", "replicasets"), rule("batch", "jobs"), rule("discovery.k8s.io", "endpointslices")}
}

// resources are names of resources by their API group.
type resources map[string]map[string]bool

func (r resources) add(group, resource string) {
	if r[group] == nil {
		r[group] = map[string]bool{}
	}
	r[group][resource] = true
}

// rules is a rule for each group, sorted.
func (r resources) rules(feature Feature, why string, verbs ...string) (rules []Rule) {
	for _, group := range slices.Sorted(maps.Keys(r)) {
		rules = append(rules, Rule{feature, why, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: slices.Sorted(maps.Keys(r[group])), Verbs: verbs}})
	}
	return rules
}

func compareRoles(a, b Role) int {
	return cmp.Or(cmp.Compare(a.Account.String(), b.Account.String()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
