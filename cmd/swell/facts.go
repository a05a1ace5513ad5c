// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	gosync "sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config"
	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/fleet"
)

func factsPullCommand(in *invocation) *cobra.Command {
	where := repoFlags{in: in}
	file := configPath{in: in}
	var folder, kubeconfig, kubeContext string
	cmd := &cobra.Command{
		Use:   "pull [CLUSTER...]",
		Short: "Write what clusters have into files of the monorepo",
		Long: `Ask clusters for their version, CustomResourceDefinitions, admission policies with
bindings and parameters, namespaces with labels, LimitRanges and ResourceQuotas, and
write one file for each into the monorepo's folder of facts. No Secret is read. With
the files committed, swell check knows without a cluster what the clusters would say.

Clusters are those of the fleet, reached as the daemon reaches them; or one cluster,
named as the fleet names it, reached with --kubeconfig. A file stays as it is when the
cluster has not changed and the file is younger than half of checks.staleFacts.

Exit codes: 0 all are written, 2 some could not be asked.`,
		Example: `  swell facts pull --config daemon.yaml
  swell facts pull sas-1 --kubeconfig ~/.kube/config --context sas`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := in.findMonorepo(where.argument(nil, 0))
			if err != nil {
				return err
			}
			tree, _, err := where.open(root)
			if err != nil {
				return err
			}
			repository := config.Load(tree, nil)
			settings := &config.Daemon{}
			switch {
			case kubeconfig == "":
				if settings, err = readDaemonConfig(file); err != nil {
					return err
				}
			case len(args) != 1:
				return errors.New("--kubeconfig: want the name of one cluster")
			default:
				settings.Clusters = map[string]config.ClusterAccess{args[0]: {Name: args[0], Kubeconfig: in.path(kubeconfig), Context: kubeContext}}
				settings.Allow = config.AllAllowances()
			}
			p := factsPull{repository: repository, settings: settings, now: time.Now()}
			names, err := p.names(args)
			if err != nil {
				return err
			}
			if folder == "" {
				folder = filepath.Join(root, repository.FactsFolder())
			}
			if p.into, err = openInto(in, root, folder); err != nil {
				return err
			}
			return p.pull(cmd, names)
		},
	}
	where.flags(cmd)
	configFlag(cmd, &file)
	cmd.Flags().StringVarP(&folder, "output", "o", "", "folder of the files (default: the monorepo's folder of facts)")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file to reach the cluster with, in place of the daemon's configuration")
	cmd.Flags().StringVar(&kubeContext, "context", "", "with --kubeconfig: the context (default: the current one)")
	return cmd
}

type factsPull struct {
	repository *config.Repository
	settings   *config.Daemon
	into       *folderInto
	now        time.Time
}

// names are the clusters that were asked for; all of the fleet by default.
func (p *factsPull) names(args []string) ([]string, error) {
	var fleet []string
	for _, c := range p.repository.Clusters {
		fleet = append(fleet, c.Name)
	}
	if len(fleet) == 0 {
		return nil, fmt.Errorf("the fleet has no clusters that can be read: %w", p.repository.Problems)
	}
	for _, name := range args {
		if !slices.Contains(fleet, name) {
			return nil, fmt.Errorf("cluster %q: not in the fleet%s", name, document.DidYouMean(name, fleet))
		}
	}
	if len(args) > 0 {
		return args, nil
	}
	return fleet, nil
}

// pull asks all clusters, and writes what they say.
func (p *factsPull) pull(cmd *cobra.Command, names []string) error {
	found := make([]*config.Facts, len(names))
	errs := make([]error, len(names))
	var all gosync.WaitGroup
	for i, name := range names {
		all.Go(func() { found[i], errs[i] = p.ask(cmd.Context(), name) })
	}
	all.Wait()
	failed := false
	for i, f := range found {
		if errs[i] == nil {
			errs[i] = p.write(cmd, f)
		}
		if errs[i] != nil {
			failed = true
			fmt.Fprintf(cmd.ErrOrStderr(), "swell: error: %v\n", errs[i])
		}
	}
	if failed {
		return exit(exitError)
	}
	return nil
}

func (p *factsPull) ask(ctx context.Context, name string) (*config.Facts, error) {
	conn, err := fleet.Connect(ctx, p.settings, p.repository.Name, name)
	if err != nil {
		return nil, err
	}
	f, err := conn.Facts(ctx)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	f.Cluster, f.Pulled = name, p.now
	return f, nil
}

func (p *factsPull) write(cmd *cobra.Command, f *config.Facts) error {
	name := f.Cluster + ".yaml"
	content, err := f.Write()
	if err != nil {
		return err
	}
	if before, err := p.into.read(name); err == nil && p.stays(name, before, f) {
		content = before
	}
	if err := p.into.write(cmd.ErrOrStderr(), name, content); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: Kubernetes %s, %s, %s, %s\n", f.Cluster, f.Kubernetes, document.Count(len(f.Namespaces), "namespace"),
		document.Count(len(f.Definitions), "definition"), document.Count(len(f.Policies), "policy document"))
	return nil
}

// stays says whether a file that is there says the same, and is not old yet: so that a
// pull each night changes a file only every few days.
func (p *factsPull) stays(name string, before []byte, f *config.Facts) bool {
	old, problems := config.ReadFacts(name, before)
	if len(problems) > 0 || p.now.Sub(old.Pulled) > max(p.repository.Checks.StaleFacts, time.Hour)/2 {
		return false
	}
	same := *f
	same.Pulled = old.Pulled
	content, err := same.Write()
	return err == nil && bytes.Equal(content, before)
}
