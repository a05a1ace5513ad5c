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
	if own.workloads {
		rules = slices.Concat(rules, scalers(), health(), tree(), o.stuckPods(own.cluster.objects))
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
	cluster   *scope            // outside of namespaces, and all for the daemon itself
	within    map[string]*scope // by namespace
	workloads bool              // there are some
	params    resources         // of admission policies: whoever writes a policy may read its parameters
}

func newNeed() *need {
	return &need{cluster: newScope(), within: map[string]*scope{}, params: resources{}}
}

// scope is what an account applies in a namespace, or in the whole cluster.
type scope struct {
	objects resources
	roles   resources                  // of objects, those that give rights away
	binds   map[string]map[string]bool // what bindings refer to: names by resource, roles or clusterroles
}

func newScope() *scope {
	return &scope{objects: resources{}, roles: resources{}, binds: map[string]map[string]bool{}}
}

// inCluster adds what a cluster's units hold.
func (n *needs) inCluster(cluster *config.Cluster) error {
	for _, unit := range n.snapshot.Units.Sorted() {
		account, ofTenant, err := n.accountOf(unit)
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
			if ofTenant {
				n.tenant[account] = true
			}
			for _, o := range b.Objects {
				if err := n.object(cluster, account, o); err != nil {
					return fmt.Errorf("%s on %s: %s: %w", unit.Path, b.Target, o.ID, err)
				}
			}
		}
	}
	return nil
}

// accountOf is the account that applies a unit, and whether it is one of a tenant.
func (n *needs) accountOf(unit *render.Unit) (account Account, ofTenant bool, err error) {
	tenant := n.snapshot.Repository.Tenants[unit.Tenant]
	if tenant == nil || tenant.Account == "" {
		return n.own, false, nil
	}
	parts := strings.Split(tenant.Account, ":")
	if len(parts) != 4 {
		return Account{}, false, fmt.Errorf("tenant %s: account %q: want a service account", tenant.Name, tenant.Account)
	}
	return Account{parts[2], parts[3]}, true, nil
}

func (n *needs) object(cluster *config.Cluster, account Account, o *object.Object) error {
	is := n.of[account]
	if is == nil {
		is = newNeed()
		n.of[account] = is
	}
	into := is.cluster
	if o.ID.Namespace != "" && account != n.own {
		if is.within[o.ID.Namespace] == nil {
			is.within[o.ID.Namespace] = newScope()
		}
		into = is.within[o.ID.Namespace]
	}
	into.objects.add(o.ID.Group, n.snapshot.Resource(cluster, o.APIVersion(), o.ID.Kind))
	is.workloads = is.workloads || o.ID.Group == "apps" || o.ID.Group == "batch" || o.ID.Group == "" && (o.ID.Kind == "Pod" || o.ID.Kind == "PersistentVolumeClaim")
	switch o.ID.Group {
	case rbacv1.GroupName:
		return into.grants(o)
	case policy.Group:
		return n.param(cluster, is, o)
	}
	return nil
}

// grants notes what a role or a binding of the units takes of whoever writes it. The API
// server asks for it in the namespace of the role, or of the binding, also where that
// refers to a ClusterRole.
func (s *scope) grants(o *object.Object) error {
	switch o.ID.Kind {
	case "Role", "ClusterRole":
		s.roles.add(rbacv1.GroupName, strings.ToLower(o.ID.Kind)+"s")
	case "RoleBinding", "ClusterRoleBinding":
		var binding struct{ RoleRef struct{ Kind, Name string } }
		if err := json.Unmarshal(o.JSON, &binding); err != nil {
			return err
		}
		resource := strings.ToLower(binding.RoleRef.Kind) + "s"
		if s.binds[resource] == nil {
			s.binds[resource] = map[string]bool{}
		}
		s.binds[resource][binding.RoleRef.Name] = true
	}
	return nil
}

// param notes the kind of the parameters of an admission policy.
func (n *needs) param(cluster *config.Cluster, is *need, o *object.Object) error {
	var p struct {
		Spec struct {
			ParamKind struct{ APIVersion, Kind string }
		}
	}
	if err := json.Unmarshal(o.JSON, &p); err != nil {
		return err
	}
	if param := p.Spec.ParamKind; param.Kind != "" {
		is.params.add(groupOf(param.APIVersion), n.snapshot.Resource(cluster, param.APIVersion, param.Kind))
	}
	return nil
}

func groupOf(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// rules are those for what an account applies.
func (s *scope) rules(what string) []Rule {
	const granting = ": RBAC lets nobody give rights away that he does not have, without this one"
	rules := s.objects.rules(Apply, what, objectVerbs...)
	rules = append(rules, s.roles.rules(Apply, "roles of the units"+granting, "escalate")...)
	for _, resource := range slices.Sorted(maps.Keys(s.binds)) {
		rules = append(rules, Rule{Apply, "bindings of the units" + granting, rbacv1.PolicyRule{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, ResourceNames: slices.Sorted(maps.Keys(s.binds[resource])), Verbs: []string{"bind"}}})
	}
	return rules
}

// everywhere are the rules for what an account applies that hold in the whole cluster.
func (n *need) everywhere() []Rule {
	return append(n.cluster.rules("the objects of the units"),
		n.params.rules(Apply, "admission policies of the units: who writes one must be able to read its parameters", "get")...)
}

// tenants are the roles of the tenants' accounts, and those that let the daemon act as
// them.
func (n *needs) tenants(o *Options) (roles []Role) {
	for account := range n.tenant {
		name := o.name() + ":" + account.Namespace + ":" + account.Name // no two accounts have one name
		roles = append(roles, Role{Name: name + "-impersonate", Namespace: account.Namespace, Account: n.own, Rules: []Rule{{Tenants, "acting as the account of a tenant",
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, ResourceNames: []string{account.Name}, Verbs: []string{"impersonate"}}}}})
		is := n.of[account]
		if account == n.own || is == nil {
			continue
		}
		if rules := is.everywhere(); len(rules) > 0 {
			roles = append(roles, Role{Name: name, Account: account, Rules: rules})
		}
		for namespace, within := range is.within {
			rules := within.rules("the objects of the tenant's units")
			if is.workloads {
				rules = slices.Concat(rules, scalers(), health(), tree(), o.stuckPods(within.objects))
			}
			roles = append(roles, Role{Name: name, Namespace: namespace, Account: account, Rules: rules})
		}
	}
	slices.SortFunc(roles, compareRoles)
	return roles
}

// facts is what swell facts pull lists, with the parameters of the policies that were there
// the last time.
func (n *needs) facts(clusters []*config.Cluster) []Rule {
	listed := resources{}
	listed.add("apiextensions.k8s.io", "customresourcedefinitions")
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
		listed.add(policy.Group, resource)
	}
	for _, resource := range []string{"namespaces", "limitranges", "resourcequotas"} {
		listed.add("", resource)
	}
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
	return listed.rules(Facts, "swell facts pull", "list")
}
