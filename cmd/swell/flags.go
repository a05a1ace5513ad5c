// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/sync/serve"
)

// flags adds those that say which monorepo is meant.
func (p *repoFlags) flags(cmd *cobra.Command) {
	repoFlag(cmd, p.in, &p.repo, "Git repository of the revisions, or a folder in it")
	cmd.Flags().StringVar(&p.path, "path", "", "folder of the monorepo inside the Git repository (default: the monorepo around the current folder, or the repository's root)")
}

// repoFlag adds the one that says which Git repository is meant.
func repoFlag(cmd *cobra.Command, in *invocation, repo *string, usage string) {
	*repo = "."
	cmd.Flags().Var(&folderFlag{in, repo}, "repo", usage)
}

// folderFlag is a folder that has to be there: a search that began at one that is not would go on
// in the folders above it.
type folderFlag struct {
	in   *invocation
	name *string
}

func (f *folderFlag) String() string {
	if f.name == nil {
		return ""
	}
	return *f.name
}

func (f *folderFlag) Type() string { return "string" }

func (f *folderFlag) Set(name string) error {
	switch info, err := os.Stat(f.in.path(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no such folder%s", f.in.nearFolder(name))
	case err != nil:
		return f.in.named(err)
	case !info.IsDir():
		return errors.New("a file, want a folder")
	}
	*f.name = name
	return nil
}

// cacheFlag adds those of commands that use [repoFlags.compiler].
func (p *repoFlags) cacheFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.cacheDir, "cache", "", "folder that keeps rendered results for the next run; none for no cache (default: swell in the user's cache folder)")
	cmd.Flags().StringVar(&p.checkers, "checkers", "", "file that says which programs Checkers run, of kind CheckerPrograms (default: swell/checkers.yaml in the user's configuration folder)")
}

// configPath is the configuration of a daemon, as the user names it.
type configPath struct {
	in    *invocation
	name  string
	named bool // by --config; else it was found in the current folder
	// socket is where the daemon answers; empty: the configuration says it.
	socket string
}

// configFlag adds the one of commands that look at what a daemon does, or tell it something.
func configFlag(cmd *cobra.Command, file *configPath) {
	file.name = daemonFile
	cmd.Flags().VarP((*configName)(file), "config", "c", "configuration of the daemon (kind: Daemon)")
}

// configName is a configuration that the user names.
type configName configPath

func (c *configName) String() string { return c.name }
func (c *configName) Type() string   { return "string" }

func (c *configName) Set(name string) error {
	c.name, c.named = name, true
	return nil
}

// daemonFlags adds those of commands that a daemon answers.
func daemonFlags(cmd *cobra.Command, file *configPath) {
	configFlag(cmd, file)
	cmd.Flags().StringVar(&file.socket, "socket", "", "socket of the daemon, in place of its configuration, which is not read then")
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

// errNoNumber refuses the value of a flag that takes a number.
var errNoNumber = errors.New("want a whole number")

// limitFlag adds the number of events that a verb shows.
func limitFlag(cmd *cobra.Command, limit *int, standard int, usage string) {
	*limit = standard
	cmd.Flags().VarP((*limitValue)(limit), "limit", "n", usage)
}

// limitValue is a number of events, from 1 to [serve.MaxEvents].
type limitValue int

func (v *limitValue) String() string { return strconv.Itoa(int(*v)) }
func (v *limitValue) Type() string   { return "int" }

func (v *limitValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return errNoNumber
	case n < 1 || n > serve.MaxEvents:
		return fmt.Errorf("want a number from 1 to %d", serve.MaxEvents)
	}
	*v = limitValue(n)
	return nil
}

// eventNumber is the number of an event; negative when none was given.
type eventNumber int64

func (v *eventNumber) Type() string { return "int" }

func (v *eventNumber) String() string {
	if *v < 0 {
		return ""
	}
	return strconv.FormatInt(int64(*v), 10)
}

func (v *eventNumber) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return errNoNumber
	case n < 0:
		return errors.New("want the number of an event, or 0 for all of them")
	}
	*v = eventNumber(n)
	return nil
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
