// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/sync/serve"
)

// flags adds those that say which monorepo is meant.
func (p *repoFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.repo, "repo", ".", "Git repository of the revisions, or a folder in it")
	cmd.Flags().StringVar(&p.path, "path", "", "folder of the monorepo inside the Git repository (default: the monorepo around the current folder, or the repository's root)")
}

// cacheFlag adds those of commands that use [repoFlags.compiler].
func (p *repoFlags) cacheFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.cacheDir, "cache", "", "folder that keeps rendered results for the next run; none for no cache (default: swell in the user's cache folder)")
	cmd.Flags().StringVar(&p.checkers, "checkers", "", "file that says which programs Checkers run, of kind CheckerPrograms (default: swell/checkers.yaml in the user's configuration folder)")
}

// configPath is the configuration of a daemon, as the user names it.
type configPath struct {
	in   *invocation
	name string
}

// configFlag adds the one of commands that look at what a daemon does, or tell it something.
func configFlag(cmd *cobra.Command, file *configPath) {
	cmd.Flags().StringVarP(&file.name, "config", "c", "daemon.yaml", "configuration of the daemon (kind: Daemon)")
}

// dirFlag adds the one of commands that write files of kinds.
func dirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "write a file for each kind into this folder, not to standard output")
}

// scopeFlags adds those that say what an order is about, and why it is given.
func scopeFlags(cmd *cobra.Command, r *serve.Request) {
	cmd.Flags().StringVar(&r.Tenant, "tenant", "", "only what this tenant has")
	cmd.Flags().StringVar(&r.Wave, "wave", "", "only targets in waves with this name")
	cmd.Flags().BoolVar(&r.All, "all", false, "everything")
	cmd.Flags().StringVar(&r.Reason, "reason", "", "the reason, for the history")
}

// targetFlag adds the one of commands about the objects of targets.
func targetFlag(cmd *cobra.Command, target *string) {
	cmd.Flags().StringVar(target, "target", "", "only this target (cluster/cell), or the targets of this cluster")
}

// unitFlag adds the one of commands that render: a unit can be named by a folder of the user, too.
func unitFlag(cmd *cobra.Command, unit *string) {
	cmd.Flags().StringVar(unit, "unit", "", "only this unit, or the units below this folder of the monorepo; ./NAME is looked up from the current folder")
}

// formatFlag is the value of a verb's -o flag.
type formatFlag struct {
	value   *string
	formats []string
}

// outputFlag adds -o to a verb that writes these formats. The first one is the
// default.
func outputFlag(cmd *cobra.Command, value *string, formats ...string) {
	*value = formats[0]
	cmd.Flags().VarP(&formatFlag{value, formats}, "output", "o", "format: "+oneOf(formats))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func (f *formatFlag) String() string { return *f.value }
func (f *formatFlag) Type() string   { return "format" }

func (f *formatFlag) Set(value string) error {
	if !slices.Contains(f.formats, value) {
		return fmt.Errorf("want %s", oneOf(f.formats))
	}
	*f.value = value
	return nil
}
