// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command swell follows a Git monorepo, renders short specs into Kubernetes
// objects offline, checks them, and applies them to many clusters in waves.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
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

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(longUpdate(args))
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exit
	if err == nil || errors.As(err, &code) {
		return int(code)
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		fmt.Fprintln(stderr, "swell: interrupted")
		return 130 // as a shell reports an interrupt
	}
	fmt.Fprintf(stderr, "swell: error: %v\n", err)
	var hint hinted
	if errors.As(err, &hint) {
		fmt.Fprintf(stderr, "swell: hint: %s\n", hint.hint)
	}
	return exitError
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "swell",
		Short: "Roll a monorepo of short specs out to many Kubernetes clusters, in waves",
		Long: `swell follows a Git monorepo, renders short specs into full Kubernetes objects
without touching a network, checks them, and applies them to many clusters in
canary waves.

render, check, diff and blame need no cluster and no daemon. run is the daemon.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return hinted{err, cmd.CommandPath() + " --help lists the flags"}
	})
	root.AddCommand(renderCommand(), checkCommand(), diffCommand(), blameCommand(), explainCommand(), kindCommand(), schemaCommand(),
		runCommand(), statusCommand(), approveCommand(), getCommand(), treeCommand(), historyCommand(), demoCommand(), versionCommand())
	return root
}

// arguments makes an error about the number of arguments say where help is.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return hinted{err, cmd.CommandPath() + " --help shows what it takes"}
		}
		return nil
	}
}
