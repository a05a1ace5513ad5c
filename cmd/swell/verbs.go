// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config/document"
)

// rootCommand returns the tree of all verbs.
func rootCommand(in *invocation) *cobra.Command {
	root := &cobra.Command{
		Use:   "swell",
		Short: "Roll a monorepo of short specs out to many Kubernetes clusters, in waves",
		Long: `swell follows a Git monorepo, renders short specs into full Kubernetes objects
without touching a network, checks them, and applies them to many clusters in
canary waves.

render, check, diff and blame need no cluster and no daemon. run is the daemon.`,
		Version: thisBuild().line(),

		PersistentPreRunE: noEmptyTexts,
		SilenceUsage:      true,
		SilenceErrors:     true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		initCommand(in),
		adoptCommand(in),
		renderCommand(in),
		checkCommand(in),
		diffCommand(in),
		planCommand(in),
		blameCommand(in),
		explainCommand(in),
		group("kind", "Make and test easy kinds",
			"",
			kindNewCommand(in),
			kindTestCommand(in)),
		group("schema", "Write schemas of the monorepo's kinds, for servers, editors and kustomize",
			`The protobuf message of a kind is the one source of its schemas. These commands load
the kinds of the monorepo in the current folder and write their schemas. Kinds with
problems are left out, and their problems go to standard error.`,
			schemaCRDCommand(in),
			schemaJSONCommand(in),
			schemaOpenAPICommand(in),
			schemaVSCodeCommand(in),
			schemaCompatCommand(in)),
		group("facts", "What clusters have, as checks without a cluster need it",
			"",
			factsPullCommand(in)),
		rbacCommand(in),
		trustCommand(in),
		doctorCommand(in),
		group("vendor", "Explain how to bring what others publish into the monorepo",
			"",
			vendorChartCommand(in)),
		group("ci", "Preview pull requests from continuous integration",
			"",
			ciInitCommand(in)),
		runCommand(in),
		statusCommand(in),
		describeCommand(in),
		approveCommand(in),
		retryCommand(in),
		group("get units|rollouts|objects|drift|targets", "List units, rollouts, objects, drift or targets as the daemon knows them",
			`List units, rollouts, applied objects, drifted objects or targets as the daemon knows
them. It asks no cluster. Where no daemon runs, it reads the daemon's state and says so.

Exit codes: 0 listed, 2 the state could not be read.`,
			getVerb(in, "units [UNIT]", "List units with their state and its reason", getUnits),
			getRolloutsCommand(in),
			getVerb(in, "objects [UNIT]", "List applied objects, and those that may have been applied", getObjects),
			getVerb(in, "drift [UNIT]", "List drifted objects: who changed which field, and what swell does about it", getDrift),
			getVerb(in, "targets [UNIT]", "List targets with the number of their units and of the healthy ones", getTargets)),
		treeCommand(in),
		historyCommand(in),
		pauseCommand(in),
		resumeCommand(in),
		promoteCommand(in),
		rollbackCommand(in),
		maskCommand(in),
		unmaskCommand(in),
		freezeCommand(in),
		thawCommand(in),
		exemptCommand(in),
		unexemptCommand(in),
		reconcileCommand(in),
		group("quarantine list|clear", "List the bundles that failed before, or let them be released again",
			`A bundle that failed is not released again until another commit brings another one, or
its quarantine is cleared.

Exit codes: 0 listed or ordered, 2 it could not be.`,
			getVerb(in, "list [UNIT]", "List the bundles in quarantine", getQuarantine),
			clearCommand(in)),
		group("target list|retire|restore", "List targets, empty one for good, or take it back",
			`A retired target is emptied, whatever Git wants there, and stays empty until it is
restored.

Exit codes: 0 listed or ordered, 2 it could not be.`,
			getVerb(in, "list [UNIT]", "List targets with the number of their units and of the healthy ones", getTargets),
			retireCommand(in),
			restoreCommand(in)),
		group("cluster accept", "Take a cluster that was made anew for a new one",
			"",
			acceptCommand(in)),
		ordersCommand(in),
		eventsCommand(in),
		watchCommand(in),
		demoCommand(in),
		versionCommand(),
		previewerCommand(in),
	)
	return root
}

// group returns a command that only holds verbs.
func group(use, short, long string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, RunE: oneOfItsVerbs}
	cmd.AddCommand(verbs...)
	return cmd
}

// addCompletion adds cobra's verb for shells. It writes to where the root does by then.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = cobra.ArbitraryArgs, oneOfItsVerbs
	}
}

// oneOfItsVerbs is for commands that only hold others: without a word they show
// their help, and another word than one of theirs is an error.
func oneOfItsVerbs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var verbs []string
	for _, verb := range cmd.Commands() {
		verbs = append(verbs, verb.Name())
	}
	return fmt.Errorf("%s %q: no such command%s", strings.TrimPrefix(cmd.CommandPath(), "swell "), args[0], document.DidYouMean(args[0], verbs))
}
