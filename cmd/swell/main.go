// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command swell follows a Git monorepo, renders short specs into Kubernetes
// objects offline, checks them, and applies them to many clusters in waves.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := interruptible(os.Stderr)
	defer stop()
	return execute(ctx, ofProcess(), os.Args[1:])
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
	return exitCode(ctx, stderr, stdout.result(root.ExecuteContext(ctx)))
}
