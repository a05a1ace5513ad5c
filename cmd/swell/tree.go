// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/render/object"
	"github.com/swell-sh/swell/sync/apply"
	"github.com/swell-sh/swell/sync/apply/health"
	"github.com/swell-sh/swell/sync/fleet"
	"github.com/swell-sh/swell/sync/serve"
	"github.com/swell-sh/swell/sync/store"
)

func treeCommand(in *invocation) *cobra.Command {
	file := configPath{in: in}
	var target, output string
	cmd := &cobra.Command{
		Use:   "tree UNIT --config FILE",
		Short: "Show the objects of a unit in the clusters, down to the pods, with their health",
		Long: `Show the objects that were applied for a unit, or for the units below a folder,
and the objects that controllers made from them, with the health of each. The daemon
or, where none runs, its state says which objects there are; the command itself asks the
clusters, with the daemon's credentials. Objects that a tenant's account wrote are read
as that account.

Exit codes: 0 all objects are there and healthy, 1 some are not, 2 some could not be
read.`,
		Example: `  swell tree services/shop/cart
  swell tree services/shop --target sas-1`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return asking(cmd, file, func(t teller) error {
				is, err := t.Inventory(cmd.Context(), unitArgument(args), target)
				if err != nil {
					return err
				}
				trees, errs, err := growTrees(cmd.Context(), file, is)
				if err != nil {
					return err
				}
				if err := writeTrees(cmd.OutOrStdout(), output, trees); err != nil {
					return err
				}
				for _, err := range errs {
					fmt.Fprintf(cmd.ErrOrStderr(), "swell: %v\n", err)
				}
				switch {
				case len(errs) > 0:
					return exit(exitError)
				case slices.ContainsFunc(trees, func(t unitTree) bool { return slices.ContainsFunc(t.Objects, ill) }):
					return exit(exitProblems)
				}
				return nil
			})
		},
	}
	daemonFlags(cmd, &file)
	targetFlag(cmd, &target)
	outputFlag(cmd, &output, formatTable, formatName, formatJSON, formatYAML)
	return cmd
}

// unitTree is what a unit has on a target.
type unitTree struct {
	Unit    config.UnitPath   `json:"unit"`
	Target  config.TargetName `json:"target"`
	Objects []treeNode        `json:"objects"`
}

// treeNode is an object with those that it owns.
type treeNode struct {
	Object string     `json:"object"`
	State  string     `json:"state"` // healthy, progressing, failed, missing or unknown
	Reason string     `json:"reason,omitempty"`
	Owned  []treeNode `json:"owned,omitempty"`
}

func ill(n treeNode) bool {
	return n.State != string(health.Healthy) || slices.ContainsFunc(n.Owned, ill)
}

// growTrees asks the clusters about all that there is of the units. errs are about
// clusters and kinds that could not be looked at.
func growTrees(ctx context.Context, file configPath, is serve.Inventory) (trees []unitTree, errs []error, err error) {
	settings, err := readDaemonConfig(file)
	if err != nil {
		return nil, nil, err
	}
	type asked struct{ cluster, account string }
	parts := map[asked][]store.Entry{}
	for _, o := range is.Objects {
		at := asked{o.Target.Cluster(), o.Account}
		parts[at] = append(parts[at], store.Entry{Unit: o.Unit, Target: o.Target, Version: o.Version, UID: o.UID,
			ID: object.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}})
	}
	for _, at := range slices.SortedFunc(maps.Keys(parts), func(a, b asked) int {
		return cmp.Or(strings.Compare(a.cluster, b.cluster), strings.Compare(a.account, b.account))
	}) {
		found, wrong := growIn(ctx, settings, is.Repository, at.cluster, at.account, parts[at])
		trees, errs = append(trees, found...), append(errs, wrong...)
	}
	return trees, errs, nil
}

// growIn makes the trees of one cluster that an account sees.
func growIn(ctx context.Context, settings *config.Daemon, repository, cluster, account string, entries []store.Entry) (trees []unitTree, errs []error) {
	conn, err := fleet.Connect(ctx, settings, repository, cluster)
	if err != nil {
		return nil, []error{err}
	}
	relatives, unknown, err := conn.As(account).Family(ctx, entries)
	if err != nil {
		return nil, []error{fmt.Errorf("cluster %s: %w", cluster, err)}
	}
	for _, kind := range unknown {
		errs = append(errs, fmt.Errorf("cluster %s: %s could not be listed", cluster, kind))
	}
	for i, e := range entries {
		last := len(trees) - 1
		if last < 0 || trees[last].Unit != e.Unit || trees[last].Target != e.Target {
			trees, last = append(trees, unitTree{Unit: e.Unit, Target: e.Target}), last+1
		}
		trees[last].Objects = append(trees[last].Objects, nodeFor(relatives[i]))
	}
	return trees, errs
}

func nodeFor(r *apply.Relative) treeNode {
	n := treeNode{Object: r.ID.String(), State: string(r.Health.State), Reason: r.Health.Reason}
	switch {
	case r.Missing:
		n.State = "missing"
	case n.State == "":
		n.State = "unknown"
	}
	for _, owned := range r.Owned {
		n.Owned = append(n.Owned, nodeFor(owned))
	}
	return n
}

func writeTrees(w io.Writer, format string, trees []unitTree) error {
	switch format {
	case formatJSON, formatYAML:
		return writeData(w, format, listOf("UnitTreeList", trees))
	case formatName:
		for _, t := range trees {
			for _, n := range t.Objects {
				if _, err := fmt.Fprintf(w, "%s %s\n", t.Target, n.Object); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for i, t := range trees {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s on %s\n", t.Unit, t.Target)
		table := newTable()
		addNodes(table, t.Objects, "")
		if err := table.write(w); err != nil {
			return err
		}
	}
	return nil
}

func addNodes(t *table, nodes []treeNode, indent string) {
	for i, n := range nodes {
		branch, below := "├ ", "│ "
		if i == len(nodes)-1 {
			branch, below = "└ ", "  "
		}
		t.row(indent+branch+n.Object, n.State, n.Reason)
		addNodes(t, n.Owned, indent+below)
	}
}
