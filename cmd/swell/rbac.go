// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/render"
	"github.com/swell-sh/swell/sync/rbac"
)

func rbacCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	var o rbacOptions
	cmd := &cobra.Command{
		Use:   "rbac [FOLDER | REVISION]",
		Short: "Print the rights that a daemon needs in a cluster, as RBAC",
		Long: `Print the roles that the daemon's account needs in a cluster, and those of its tenants'
accounts, with bindings. The rights are those that the objects of the monorepo take
there, and no others: when a commit brings a new kind, print them again. Keep the
rights for a kind that is gone until swell has deleted its objects.

Without --cluster, one set of roles is printed that fits all clusters of the fleet.
With --all it fits any monorepo: every kind may be applied, and none of the monorepo's
files is read. Roles and bindings are among the kinds, so whoever has that account can
give himself every right, as cluster-admin has.

A tenant's account gets objects outside of namespaces by their names, and may give away
no rights that it does not have: a role of the units is written with escalate where the
roles of the Tenant name it, and bound where it is one of the units' own. What it needs
besides is said in comments, for an administrator to decide. No account gets escalate,
bind or impersonate without names.

Each rule says which feature it is for. These features may be left out by --without:
  facts    swell facts pull
  health   why pods are not ready
  lease    the Lease that keeps a second daemon away (lease: {enabled: false})
  survey   what swell has in a cluster after its state was lost; swell status says
           which kinds it could not list
  tree     swell tree

--stuck-pods adds the right to delete pods where there are StatefulSets. One whose pods
start in order never replaces a pod that does not get ready, also when a bad release was
rolled back. With the right, swell deletes such a pod if it never was ready; without it,
swell status names the command. --all has the right anyway.

Exit codes: 0 printed, 1 some units have problems and are left out, 2 not printed.`,
		Example: `  swell rbac --cluster sas-1 --account swell/swell | kubectl --context sas-1 apply -f -
  swell rbac --cluster sas-1 --stuck-pods
  swell rbac --all --without tree,facts
  swell rbac -o table`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := o.read()
			if err != nil {
				return err
			}
			if o.all {
				if len(args)+len(o.clusters) > 0 {
					return errors.New("--all: want neither a folder nor --cluster: it fits every monorepo")
				}
				return writeRoles(cmd.OutOrStdout(), o.output, rbac.General(options))
			}
			compiler, done, err := where.compiler(cmd)
			if err != nil {
				return err
			}
			defer done()
			snapshot, err := where.accepted(cmd.Context(), compiler, where.argument(args, 0))
			if err != nil {
				return err
			}
			printProblems(cmd.ErrOrStderr(), snapshot.Problems)
			if snapshot.Held {
				return exit(exitError)
			}
			clusters, err := o.pick(snapshot)
			if err != nil {
				return err
			}
			roles, err := rbac.Needed(snapshot, clusters, options)
			if err != nil {
				return err
			}
			if err := writeRoles(cmd.OutOrStdout(), o.output, roles); err != nil {
				return err
			}
			if o.output != formatYAML {
				printMissing(cmd.ErrOrStderr(), roles)
			}
			if len(snapshot.Problems) > 0 {
				return exit(exitProblems)
			}
			return nil
		},
	}
	where.flags(cmd)
	where.cacheFlag(cmd)
	outputFlag(cmd, &o.output, formatYAML, formatJSON, formatTable, formatName)
	cmd.Flags().StringSliceVar(&o.clusters, "cluster", nil, "only what this cluster takes (may be repeated)")
	cmd.Flags().StringVar(&o.account, "account", "swell/swell", "service account of the daemon, as NAMESPACE/NAME")
	cmd.Flags().StringVar(&o.lease, "lease-namespace", config.DefaultLeaseNamespace, "lease.namespace of the daemon's configuration")
	cmd.Flags().StringSliceVar(&o.without, "without", nil, "features to leave out")
	cmd.Flags().BoolVar(&o.all, "all", false, "rights to apply every kind")
	cmd.Flags().BoolVar(&o.stuckPods, "stuck-pods", false, "the right to delete pods that a StatefulSet waits for and never replaces")
	return cmd
}

// rbacOptions are what the flags of swell rbac say.
type rbacOptions struct {
	clusters, without      []string
	account, lease, output string
	all, stuckPods         bool
}

// read checks the flags.
func (o *rbacOptions) read() (options rbac.Options, err error) {
	if options.Account, err = rbac.ParseAccount(o.account); err != nil {
		return options, fmt.Errorf("--account %w", err)
	}
	if options.LeaseNamespace = o.lease; !document.IsLabel(o.lease) {
		return options, fmt.Errorf("--lease-namespace %q: want the name of a namespace", o.lease)
	}
	options.StuckPods = o.stuckPods
	var known []string
	for _, feature := range rbac.Optional() {
		known = append(known, string(feature))
	}
	for _, name := range o.without {
		if !slices.Contains(known, name) {
			return options, fmt.Errorf("--without %q: want %s%s", name, oneOf(known), document.DidYouMean(name, known))
		}
		options.Without = append(options.Without, rbac.Feature(name))
	}
	return options, nil
}

// pick are the clusters that the flags name; all where they name none.
func (o *rbacOptions) pick(s *render.Snapshot) (picked []*config.Cluster, err error) {
	var names []string
	for _, c := range s.Repository.Clusters {
		names = append(names, c.Name)
		if len(o.clusters) == 0 || slices.Contains(o.clusters, c.Name) {
			picked = append(picked, c)
		}
	}
	for _, name := range o.clusters {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--cluster %q: not in the fleet%s", name, document.DidYouMean(name, names))
		}
	}
	return picked, nil
}

// writeRoles writes the roles with their bindings.
func writeRoles(w io.Writer, format string, roles []rbac.Role) error {
	switch format {
	case formatTable:
		return ruleTable(roles).write(w)
	case formatYAML:
		return writeRolesYAML(w, roles)
	case formatName:
		for i := range roles {
			if _, err := fmt.Fprintln(w, roleName(&roles[i])); err != nil {
				return err
			}
		}
		return nil
	}
	objects := struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Items      []any  `json:"items"`
	}{"v1", "List", []any{}}
	for i := range roles {
		objects.Items = append(objects.Items, roles[i].Object(), roles[i].Binding())
	}
	return writeIndented(w, objects)
}

// printMissing says what accounts need and are not given, a line each.
func printMissing(w io.Writer, roles []rbac.Role) {
	for i := range roles {
		for _, missing := range roles[i].Missing {
			fmt.Fprintf(w, "swell: note: %s is not given %s: %s\n", roles[i].Account, within(roles[i].Namespace), missing)
		}
	}
}

// roleName is how kubectl names a role.
func roleName(r *rbac.Role) string {
	if r.Namespace == "" {
		return "ClusterRole/" + r.Name
	}
	return "Role/" + r.Namespace + "/" + r.Name
}

// ruleTable has a row for each rule.
func ruleTable(roles []rbac.Role) *table {
	t := newTable()
	t.row("ACCOUNT", "WHERE", "FEATURE", "VERBS", "GROUPS", "RESOURCES")
	for i := range roles {
		r := &roles[i]
		for _, rule := range r.Rules {
			var groups []string
			for _, group := range rule.APIGroups {
				groups = append(groups, cmp.Or(group, "core"))
			}
			what := strings.Join(slices.Concat(rule.Resources, rule.NonResourceURLs), ",")
			if len(rule.ResourceNames) > 0 {
				what += ": " + strings.Join(rule.ResourceNames, ",")
			}
			t.row(r.Account.String(), cmp.Or(r.Namespace, "everywhere"), string(rule.Feature), strings.Join(rule.Verbs, ","), orDash(strings.Join(groups, ",")), what)
		}
	}
	return t
}

// writeRolesYAML writes a stream of documents, with the reason above each rule.
func writeRolesYAML(w io.Writer, roles []rbac.Role) error {
	var b strings.Builder
	for i := range roles {
		r := &roles[i]
		fmt.Fprintf(&b, "---\n# What %s may do %s.\n", r.Account, within(r.Namespace))
		for _, missing := range r.Missing {
			fmt.Fprintf(&b, "# Not given: %s.\n", missing)
		}
		head, err := marshalYAML(headOf(r))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%srules:\n", head)
		why := ""
		for _, rule := range r.Rules {
			if reason := string(rule.Feature) + ": " + rule.Why; reason != why {
				why = reason
				fmt.Fprintf(&b, "# %s\n", why)
			}
			if err := writeRule(&b, rule.PolicyRule); err != nil {
				return err
			}
		}
		binding, err := marshalYAML(r.Binding())
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "---\n%s", binding)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func within(namespace string) string {
	if namespace == "" {
		return "everywhere in the cluster"
	}
	return "in the namespace " + namespace
}

// headOf is a role without its rules.
func headOf(r *rbac.Role) any {
	kind, metadata := "ClusterRole", map[string]string{"name": r.Name}
	if r.Namespace != "" {
		kind, metadata["namespace"] = "Role", r.Namespace
	}
	return map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": kind, "metadata": metadata}
}

// writeRule writes one rule as an item of a list.
func writeRule(b *strings.Builder, rule rbacv1.PolicyRule) error {
	text, err := marshalYAML(rule)
	if err != nil {
		return err
	}
	indent := "- "
	for line := range strings.Lines(string(text)) {
		b.WriteString(indent + line)
		indent = "  "
	}
	return nil
}
