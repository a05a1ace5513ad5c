// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/render/policy"
)

// Needed are the roles that a commit takes in these clusters: those of the daemon's own
// account first, then those of its tenants' accounts. The same roles do for all of the
// clusters.
func Needed(s *render.Snapshot, clusters []*config.Cluster, o Options) ([]Role, error) {
	o.Repository = s.Repository.Name
	n := needs{snapshot: s, of: map[Account]*need{o.Account: newNeed()}, own: o.Account, tenant: map[Account]bool{}}
	for _, cluster := range clusters {
		if err := n.inCluster(cluster); err != nil {
			return nil, err
		}
	}
	own := n.of[o.Account]
	rules := append(o.connect(), own.everywhere()...)
	if own.cluster.workloads {
		rules = append(rules, o.workloads(own.cluster)...)
	}
	rules = append(rules, Rule{Survey, "what swell has in the cluster when its state was lost, and whether the state is older; of all kinds, so also of Secrets",
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list"}}})
	rules = append(rules, n.facts(clusters)...)
	return o.roles(rules, n.tenants(&o)), nil
}

// needs is what the accounts of a daemon need.
type needs struct {
	snapshot *render.Snapshot
	own      Account
	of       map[Account]*need
	tenant   map[Account]bool // those of tenants; the daemon's own may be among them
}

// need is what one account applies.
type need struct {
	cluster *scope            // outside of namespaces, and all for the daemon itself
	within  map[string]*scope // by namespace
	params  resources         // of admission policies: whoever writes a policy may read its parameters
}

func newNeed() *need {
	return &need{cluster: newScope(), within: map[string]*scope{}, params: resources{}}
}

// scope is what an account applies in a namespace, or in the whole cluster.
type scope struct {
	objects   resources
	names     names    // of a tenant's objects outside of namespaces
	roles     names    // that may be given any rights, by resource: roles or clusterroles
	own       names    // all roles of the objects
	binds     names    // what bindings refer to, by resource
	workloads bool     // there are some
	missing   []string // see [Role]
}

// names are names of objects by their resource, "GROUP/RESOURCE".
type names map[string]map[string]bool

func (n names) add(resource, name string) {
	if n[resource] == nil {
		n[resource] = map[string]bool{}
	}
	n[resource][name] = true
}

func newScope() *scope {
	return &scope{objects: resources{}, names: names{}, roles: names{}, own: names{}, binds: names{}}
}

// inCluster adds what a cluster's units hold.
func (n *needs) inCluster(cluster *config.Cluster) error {
	for _, unit := range n.snapshot.Units.Sorted() {
		account, tenant, err := n.accountOf(unit)
		if err != nil {
			return err
		}
		bundles, err := n.snapshot.Bundles(unit)
		if err != nil {
			return err
		}
		for _, b := range bundles {
			if b.Target.Cluster() != cluster.Name {
				continue
			}
			if tenant != nil {
				n.tenant[account] = true
			}
			for _, o := range b.Objects {
				if err := n.object(cluster, account, tenant, o); err != nil {
					return fmt.Errorf("%s on %s: %s: %w", unit.Path, b.Target, o.ID, err)
				}
			}
		}
	}
	return nil
}

// accountOf is the account that applies a unit, and the tenant whose own it is; nil where it is the
// daemon's.
func (n *needs) accountOf(unit *render.Unit) (Account, *config.Tenant, error) {
	tenant := n.snapshot.Repository.Tenants[unit.Tenant]
	if tenant == nil || tenant.Account == "" {
		return n.own, nil, nil
	}
	parts := strings.Split(tenant.Account, ":")
	if len(parts) != 4 {
		return Account{}, nil, fmt.Errorf("tenant %s: account %q: want a service account", tenant.Name, tenant.Account)
	}
	return Account{parts[2], parts[3]}, tenant, nil
}

func (n *needs) object(cluster *config.Cluster, account Account, tenant *config.Tenant, o *object.Object) error {
	needed := n.of[account]
	if needed == nil {
		needed = newNeed()
		n.of[account] = needed
	}
	if account == n.own {
		tenant = nil
	}
	into := needed.cluster
	if o.ID.Namespace != "" && account != n.own {
		if needed.within[o.ID.Namespace] == nil {
			needed.within[o.ID.Namespace] = newScope()
		}
		into = needed.within[o.ID.Namespace]
	}
	resource := n.snapshot.Resource(cluster, o.APIVersion(), o.ID.Kind)
	into.objects.add(o.ID.Group, resource)
	if account != n.own && o.ID.Namespace == "" {
		into.names.add(o.ID.Group+"/"+resource, o.ID.Name)
	}
	into.workloads = into.workloads || isWorkload(o.ID)
	switch o.ID.Group {
	case rbacv1.GroupName:
		return into.grants(tenant, o)
	case policy.Group:
		return n.param(cluster, needed, into, tenant, o)
	}
	return nil
}

func isWorkload(id object.ID) bool {
	return id.Group == "apps" || id.Group == "batch" || id.Group == "" && (id.Kind == "Pod" || id.Kind == "PersistentVolumeClaim")
}

// grants notes what a role or a binding of the units takes of whoever writes it. The API
// server asks for it in the namespace of the role, or of the binding, also where that
// refers to a ClusterRole. tenant is nil for the daemon's own account.
func (s *scope) grants(tenant *config.Tenant, o *object.Object) error {
	switch o.ID.Kind {
	case "Role", "ClusterRole":
		resource := strings.ToLower(o.ID.Kind) + "s"
		s.own.add(resource, o.ID.Name)
		if tenant == nil || slices.Contains(tenant.Roles, o.ID.Name) {
			s.roles.add(resource, o.ID.Name)
			return nil
		}
		const text = "%s: whoever writes it needs the rights that it gives. An administrator grants them, or the roles of Tenant %s name it"
		s.miss(text, o.ID, tenant.Name)
	case "RoleBinding", "ClusterRoleBinding":
		var binding struct{ RoleRef struct{ Kind, Name string } }
		if err := json.Unmarshal(o.JSON, &binding); err != nil {
			return err
		}
		s.binds.add(strings.ToLower(binding.RoleRef.Kind)+"s", binding.RoleRef.Name)
	}
	return nil
}

// miss notes what the account needs and is not given. Names of a commit may have line breaks, and the
// line stands in a comment of what an administrator applies.
func (s *scope) miss(format string, args ...any) {
	if text := document.Printable(fmt.Sprintf(format, args...)); !slices.Contains(s.missing, text) {
		s.missing = append(s.missing, text)
	}
}

// param notes the kind of the parameters of an admission policy. A tenant's account is not given it:
// the text of the commit would say what it reads.
func (n *needs) param(cluster *config.Cluster, needed *need, into *scope, tenant *config.Tenant, o *object.Object) error {
	var p struct {
		Spec struct {
			ParamKind struct{ APIVersion, Kind string }
		}
	}
	if err := json.Unmarshal(o.JSON, &p); err != nil {
		return err
	}
	switch param := p.Spec.ParamKind; {
	case param.Kind == "":
	case tenant != nil:
		const text = "%s: whoever writes it must be able to read its parameters, of kind %s. An administrator grants that"
		into.miss(text, o.ID, param.Kind)
	default:
		needed.params.add(groupOf(param.APIVersion), n.snapshot.Resource(cluster, param.APIVersion, param.Kind))
	}
	return nil
}

func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// listVerbs are those of objectVerbs that are asked for without a name.
var listVerbs = []string{"list", "watch"}

// rules are those for what an account applies.
func (s *scope) rules(what string) (rules []Rule) {
	const granting = ": RBAC lets nobody give rights away that he does not have, without this one"
	byName := slices.DeleteFunc(slices.Clone(objectVerbs), func(verb string) bool { return slices.Contains(listVerbs, verb) })
	for _, rule := range s.objects.rules(Apply, what, objectVerbs...) {
		if len(s.names) == 0 {
			rules = append(rules, rule)
			continue
		}
		rule.Verbs = listVerbs
		rules = append(rules, rule)
		for _, resource := range rule.Resources {
			rules = append(rules, s.names.rule(rule.APIGroups[0], resource, what, rule.APIGroups[0]+"/"+resource, byName...))
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(s.roles)) {
		rules = append(rules, s.roles.rule(rbacv1.GroupName, resource, "roles of the units"+granting, resource, "escalate"))
	}
	for _, resource := range slices.Sorted(maps.Keys(s.binds)) {
		rules = append(rules, s.binds.rule(rbacv1.GroupName, resource, "bindings of the units"+granting, resource, "bind"))
	}
	return rules
}

// rule is one for the names of a resource.
func (n names) rule(group, resource, why, key string, verbs ...string) Rule {
	return Rule{Apply, why, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
		ResourceNames: slices.Sorted(maps.Keys(n[key])), Verbs: verbs}}
}

// everywhere are the rules for what an account applies that hold in the whole cluster.
func (n *need) everywhere() []Rule {
	return append(n.cluster.rules("the objects of the units"),
		n.params.rules(Apply, "admission policies of the units: who writes one must be able to read its parameters", "get")...)
}

// workloads are the rules for reading about workloads in a scope.
func (o *Options) workloads(s *scope) []Rule {
	return slices.Concat(scalers(), health(), tree(), o.stuckPods(s.objects))
}

// tenants are the roles of the tenants' accounts, and those that let the daemon act as
// them.
func (n *needs) tenants(o *Options) (roles []Role) {
	for account := range n.tenant {
		name := o.name() + ":" + account.Namespace + ":" + account.Name // no two accounts have one name
		roles = append(roles, Role{Name: name + "-impersonate", Namespace: account.Namespace, Account: n.own,
			Rules: []Rule{{Tenants, "acting as the account of a tenant", rbacv1.PolicyRule{APIGroups: []string{""},
				Resources: []string{"serviceaccounts"}, ResourceNames: []string{account.Name}, Verbs: []string{"impersonate"}}}}})
		needed := n.of[account]
		if account == n.own || needed == nil {
			continue
		}
		if rules := needed.everywhere(); len(rules) > 0 {
			roles = append(roles, Role{Name: name, Account: account, Rules: rules, Missing: needed.cluster.missing})
		}
		for namespace, within := range needed.within {
			within.dropForeignBinds()
			rules := within.rules("the objects of the tenant's units")
			if within.workloads {
				rules = append(rules, o.workloads(within)...)
			}
			roles = append(roles, Role{Name: name, Namespace: namespace, Account: account, Rules: rules, Missing: within.missing})
		}
	}
	slices.SortFunc(roles, compareRoles)
	return roles
}

// dropForeignBinds takes back the bindings to Roles of the namespace that the tenant's units do not
// bring: nobody says whose they are.
func (s *scope) dropForeignBinds() {
	for _, name := range slices.Sorted(maps.Keys(s.binds["roles"])) {
		if !s.own["roles"][name] {
			delete(s.binds["roles"], name)
			s.miss("bindings to Role %s, which no unit of the tenant brings. An administrator grants it", name)
		}
	}
	if len(s.binds["roles"]) == 0 {
		delete(s.binds, "roles")
	}
}

// facts is what swell facts pull lists, with the parameters of the policies that were there
// the last time.
func (n *needs) facts(clusters []*config.Cluster) []Rule {
	listed := factKinds()
	for _, cluster := range clusters {
		facts := n.snapshot.Repository.Facts[cluster.Name]
		if facts == nil {
			continue
		}
		for _, object := range facts.Policies {
			spec, _ := object["spec"].(map[string]any)
			param, _ := spec["paramKind"].(map[string]any)
			apiVersion, _ := param["apiVersion"].(string)
			if kind, _ := param["kind"].(string); kind != "" && !(kind == "Secret" && apiVersion == "v1") {
				listed.add(groupOf(apiVersion), n.snapshot.Resource(cluster, apiVersion, kind))
			}
		}
	}
	return listed.rules(Facts, pulling, "list")
}

// pulling is why facts are listed.
const pulling = "swell facts pull"

// factKinds are what swell facts pull lists in any cluster.
func factKinds() resources {
	listed := resources{}
	listed.add("apiextensions.k8s.io", "customresourcedefinitions")
	for _, resource := range []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	} {
		listed.add(policy.Group, resource)
	}
	for _, resource := range []string{"namespaces", "limitranges", "resourcequotas"} {
		listed.add("", resource)
	}
	return listed
}
