// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command swell follows a Git monorepo, renders short specs into Kubernetes
// objects offline, checks them, and applies them to many clusters in waves.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/swell-sh/swell/config/document"
	"github.com/swell-sh/swell/sync/serve"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := interruptible(os.Stderr)
	defer stop()
	return execute(ctx, ofProcess(), os.Args[1:])
}

// Exit codes that more than one verb uses.
const (
	exitProblems = 1 // the input has problems; for diff: there are changes
	exitError    = 2 // what was asked for could not be done
)

// exit ends the program with a code and no further words.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hinted is an error with a word on what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// hintOf is what to do about an error; empty where it does not say.
func hintOf(err error) string {
	var ours hinted
	var theirs *serve.Error
	switch {
	case errors.As(err, &ours):
		return ours.hint
	case errors.As(err, &theirs):
		return theirs.Hint
	}
	return ""
}

// execute runs the verb that the arguments name, and returns the exit code.
func execute(ctx context.Context, in *invocation, args []string) int {
	stdout, stderr := in.screen(in.stdout), in.screen(in.stderr)
	defer stdout.end()
	defer stderr.end()
	root := rootCommand(in)
	root.SetArgs(longUpdate(args))
	root.SetIn(in.stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	addCompletion(root)
	err := root.ExecuteContext(ctx)
	var code exit
	if err == nil || errors.As(err, &code) {
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "swell: interrupted")
		return interrupted
	}
	fmt.Fprintf(stderr, "swell: error: %v\n", err)
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(stderr, "swell: hint: %s\n", hint)
	}
	return exitError
}

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
	root.AddCommand(initCommand(in), adoptCommand(in), renderCommand(in), checkCommand(in), diffCommand(in), planCommand(in), blameCommand(in), explainCommand(in), kindCommand(in), schemaCommand(in), factsCommand(in), rbacCommand(in), vendorCommand(in), ciCommand(in),
		runCommand(in), statusCommand(in), describeCommand(in), approveCommand(in), retryCommand(in), getCommand(in), treeCommand(in), historyCommand(in),
		pauseCommand(in), resumeCommand(in), promoteCommand(in), rollbackCommand(in), maskCommand(in), unmaskCommand(in), freezeCommand(in), thawCommand(in), reconcileCommand(in),
		quarantineCommand(in), targetCommand(in), ordersCommand(in), eventsCommand(in), watchCommand(in), demoCommand(in), versionCommand(), previewerCommand(in))
	return root
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
