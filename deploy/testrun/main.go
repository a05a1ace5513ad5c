// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

// Command testrun is what make test calls: it brings the parts that tests need to the
// machine, builds the programs that tests run, starts the servers that they share, runs the
// test binaries of a plan, and says what all of that cost. It judges nothing: a test fails
// by itself, and a budget that is exceeded is said, not failed.
//
//	testrun parts               installs the Debian packages that are missing, or says which
//	testrun tool NAME...        builds programs for tests into bin/, once for each state of their sources
//	testrun run [-how HOW,...] [PKG...] runs the plan, or what it has of some packages
//	testrun fuzz                runs the fuzz test whose turn it is with the commit
//	testrun quick [PKG...]      runs what needs no server, in its short form
//
// Exit codes: 0 all passed, 1 a test failed, 2 the tests could not be run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// errFailed says that tests failed; they have said why.
var errFailed = errors.New("tests failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, os.Args[1:])
	switch {
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "testrun: %v\n", err)
		os.Exit(2)
	}
}

func dispatch(ctx context.Context, args []string) error {
	verbs := map[string]func(context.Context, []string) error{"parts": parts, "tool": tools, "run": run, "quick": quickly, "fuzz": fuzz}
	if len(args) == 0 || verbs[args[0]] == nil {
		return errors.New("want parts, tool, quick, run or fuzz")
	}
	return verbs[args[0]](ctx, args[1:])
}
